"""The topics of the contract: what each carries, how it is keyed, and how long it is kept.

Real names are a prefix (setting, default ``agent.``) and the name here. Nothing in here talks to a broker.
"""

from typing import Literal

import msgspec

from schemas.events import Control, FixAttempt, Override, Review, SessionEvent, ToolCall
from schemas.outputs import Alert, Directive, Fitness, KnownFlapping, Notification, Termination

DEFAULT_PREFIX = "agent."


class Topic(msgspec.Struct, frozen=True, kw_only=True):
    """One topic of the contract.

    ``record`` is the struct of its values, None where values are bytes as they came. ``key`` says what the key is.
    ``session_input`` marks the topics that feed the per-session state: they have equal partition counts.
    ``retention_hours`` is None where compaction alone decides.
    """

    name: str
    direction: Literal["in", "out"]
    record: type[msgspec.Struct] | None
    key: str
    cleanup: Literal["delete", "compact", "compact,delete"]
    session_input: bool = False
    retention_hours: int | None
    description: str


WEEK_HOURS = 7 * 24

TOOL_CALLS = Topic(
    name="tool-calls",
    direction="in",
    record=ToolCall,
    key="session_id",
    cleanup="delete",
    session_input=True,
    retention_hours=WEEK_HOURS,
    description="Calls of tools by agents, with their results.",
)
FIX_ATTEMPTS = Topic(
    name="fix-attempts",
    direction="in",
    record=FixAttempt,
    key="session_id",
    cleanup="delete",
    session_input=True,
    retention_hours=WEEK_HOURS,
    description="Tries at solving a task.",
)
REVIEWS = Topic(
    name="reviews",
    direction="in",
    record=Review,
    key="session_id",
    cleanup="delete",
    session_input=True,
    retention_hours=WEEK_HOURS,
    description="Rounds of review of a session's pull request.",
)
SESSIONS = Topic(
    name="sessions",
    direction="in",
    record=SessionEvent,
    key="session_id",
    cleanup="delete",
    session_input=True,
    retention_hours=WEEK_HOURS,
    description="What the agent's harness says of its session.",
)
CONTROL = Topic(
    name="control",
    direction="in",
    record=Control,
    key="session_id",
    cleanup="delete",
    session_input=True,
    retention_hours=WEEK_HOURS,
    description="What orchestrators and people decide for a session.",
)
OVERRIDES = Topic(
    name="overrides",
    direction="in",
    record=Override,
    key="scope",
    cleanup="compact",
    retention_hours=None,
    description="Standing exceptions, read whole by every process.",
)
ALERTS = Topic(
    name="alerts",
    direction="out",
    record=Alert,
    key="task_id",
    cleanup="delete",
    retention_hours=WEEK_HOURS,
    description="Loops noticed, warned about, to be terminated, or recovered.",
)
DIRECTIVES = Topic(
    name="directives",
    direction="out",
    record=Directive,
    key="session_id",
    cleanup="delete",
    retention_hours=WEEK_HOURS,
    description="What an orchestrator should do next with a session.",
)
TERMINATIONS = Topic(
    name="terminations",
    direction="out",
    record=Termination,
    key="session_id",
    cleanup="compact,delete",
    retention_hours=4 * WEEK_HOURS,
    description="Verdicts: sessions to stop. Compacted, so that a late subscriber still sees them.",
)
KNOWN_FLAPPING = Topic(
    name="known-flapping",
    direction="out",
    record=KnownFlapping,
    key="task_id",
    cleanup="compact",
    retention_hours=None,
    description="Tasks not to retry without a person.",
)
NOTIFICATIONS = Topic(
    name="notifications",
    direction="out",
    record=Notification,
    key="task_id",
    cleanup="delete",
    retention_hours=WEEK_HOURS,
    description="What people are told, and by which sinks.",
)
FITNESS = Topic(
    name="fitness",
    direction="out",
    record=Fitness,
    key="fitness_id",
    cleanup="compact",
    retention_hours=None,
    description="How configurations of agents fare with types of tasks, for who selects agents.",
)
DEAD_LETTERS = Topic(
    name="dead-letters",
    direction="out",
    record=None,
    key="as it came",
    cleanup="delete",
    retention_hours=2 * WEEK_HOURS,
    description="Records that could not be read: bytes as they came, the reason in headers.",
)

TOPICS = (
    TOOL_CALLS,
    FIX_ATTEMPTS,
    REVIEWS,
    SESSIONS,
    CONTROL,
    OVERRIDES,
    ALERTS,
    DIRECTIVES,
    TERMINATIONS,
    KNOWN_FLAPPING,
    NOTIFICATIONS,
    FITNESS,
    DEAD_LETTERS,
)
SESSION_INPUTS = tuple(topic for topic in TOPICS if topic.session_input)
