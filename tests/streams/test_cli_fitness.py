"""Fitness is summed over partitions and shown as asked; what is wrong with Kafka is told in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from aiokafka.errors import TopicAuthorizationFailedError
from click.exceptions import ClickException

from streams.cli.looking import run
from streams.kafka import KafkaSettings
from tests.streams.asking_kit import ask, lines, told
from tests.streams.outputs_kit import fitness, put

if TYPE_CHECKING:
    from typing import NoReturn


async def test_fitness_is_shown(kafka: KafkaSettings) -> None:
    """By configuration and type of task, the best first or the most of what is asked for."""
    ran = await ask(kafka, "fitness", ladders=False)
    assert ran.stdout == "nothing was counted yet\n"
    await put(
        kafka,
        fitness(0, "a", tasks=4, attempts=9, flapped=3, tokens=5, cost_usd=0.5, task_type="bugfix"),
        fitness(1, "a", tasks=2, attempts=2, converged=1, flapped=1, tokens=7, cost_usd=0.25, task_type="bugfix"),
        fitness(0, "b", tasks=3, converged=3, task_type="bugfix"),
        fitness(0, "b", tasks=1),
    )
    b, other, a = await lines(kafka, "fitness", ladders=False)
    assert [(row["model"], row["task_type"]) for row in (b, other, a)] == [("b", "bugfix"), ("b", ""), ("a", "bugfix")]
    assert (a["tasks"], a["converged"], a["flapped"], a["cost_usd"], a["score"]) == (6, 1, 4, 0.75, 2 / 7)
    assert (b["convergence_rate"], b["flapping_rate"]) == (1, 0)

    first, *_ = await lines(kafka, "fitness", "--sort", "flapped", "--task-type", "bugfix", ladders=False)
    assert first["model"] == "a"
    assert len(await lines(kafka, "fitness", "--task-type", "", ladders=False)) == 1
    head, best, *_ = (await ask(kafka, "fitness", ladders=False)).stdout.splitlines()
    assert head.split()[:3] == ["CONFIGURATION", "TASK", "TYPE"]
    assert best.split() == ["b", "bugfix", "3", "0", "3", "(100%)", "0", "(0%)", "0.80", "0", "$0.00"]


async def test_brokers_and_topics_that_are_not_there(kafka: KafkaSettings) -> None:
    """Which, and what to do."""
    away, missing = KafkaSettings(bootstrap="127.0.0.1:1"), KafkaSettings(bootstrap=kafka.bootstrap, prefix="nobody's.")
    commands = {"fitness": False, "sessions list": True, "tasks list": True, "alerts wrong a": False}
    for command, ladders in commands.items():
        assert "Is it running and reachable" in await told(away, *command.split(), ladders=ladders)
        said = await told(missing, *command.split(), ladders=ladders)
        assert "Create what is missing: traction topics create" in said


@pytest.mark.parametrize("names", [{"agent.alerts"}, "agent.alerts"])
def test_missing_rights_are_told(names: object) -> None:
    """Which topic, for whom, and what is needed; as the client words it, a set or a text."""

    async def refused() -> NoReturn:
        raise TopicAuthorizationFailedError(names)

    kafka = KafkaSettings(security_protocol="SASL_SSL", username="dana", password="x")  # noqa: S106 - of nobody
    with pytest.raises(ClickException, match=r"dana has no right to read or write the topic .*agent.alerts"):
        run(kafka, refused)
