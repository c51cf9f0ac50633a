"""For orchestrators in Python: directives and terminations as they come, answers, known-flapping tasks, fitness.

    from streams.client import KafkaSettings, Orchestrator, Termination

Needs Kafka and nothing else of Traction to run here. What it does over the wire is in docs/orchestrators.md, for other
languages. It must not decide how a session is stopped or an agent told: that is the orchestrator's.
"""

from schemas.outputs import Directive, KnownFlapping, Termination
from streams.client.answers import Answer
from streams.client.fitness import FitnessTotals, rank
from streams.client.orchestrator import Item, Orchestrator
from streams.client.tables import known_flapping
from streams.kafka import KafkaSettings, KafkaUnavailable
from streams.topics import TopicsError

__all__ = [
    "Answer",
    "Directive",
    "FitnessTotals",
    "Item",
    "KafkaSettings",
    "KafkaUnavailable",
    "KnownFlapping",
    "Orchestrator",
    "Termination",
    "TopicsError",
    "known_flapping",
    "rank",
]
