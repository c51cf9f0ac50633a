"""`traction topics diff` tells what on a real broker is otherwise than the layout says, all of it and nothing else."""

from __future__ import annotations

import asyncio
import json
import shlex
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka.admin import NewPartitions

from schemas.topics import TOPICS
from streams.kafka import KafkaSettings, admin, running
from streams.topic_diff import Different, compare, diff_topics
from streams.topics import Found, Plan, create_topics, describe
from tests.doors.kit import command
from tests.topic_config import configure

if TYPE_CHECKING:
    from pathlib import Path

LAYOUT = """
[topics]
partitions = 2

[topics.config]
alerts = { "retention.ms" = 86_400_000 }
"{app_id}-sessions-changelog" = { "segment.bytes" = 33_554_432 }
"""


async def change(kafka: KafkaSettings, name: str, config: dict[str, str], partitions: int) -> None:
    """Configure a topic as somebody else might, and nothing else of it; give it more partitions."""
    async with running(admin(kafka), kafka) as client:
        await configure(client, config, name)
        await client.create_partitions({name: NewPartitions(partitions)})
        while (await describe(client, [name]))[name].partitions != partitions:  # noqa: ASYNC110 - known a moment later
            await asyncio.sleep(0.02)


@pytest.fixture
def options(bootstrap: str, prefix: str, tmp_path: Path) -> list[str]:
    """Give the options for a layout of the test's own."""
    file = tmp_path / "kafka.toml"
    file.write_text(LAYOUT)
    return ["--bootstrap", bootstrap, "--prefix", prefix, "--app-id", f"{prefix}app", "--layout", str(file)]


def told(options: list[str], code: int) -> Any:
    """Run the command, for machines."""
    done = command("topics", "diff", "--json", *options)
    assert done.code == code, done.output
    return json.loads(done.output)


def test_what_differs_is_told_until_it_is_mended(options: list[str], prefix: str, bootstrap: str) -> None:
    """Missing topics, then none; changed and added configuration and partitions, for people and for machines."""
    before = told(options, 1)
    assert before["ok"] is False
    assert len(before["missing"]) == len(TOPICS) + 4
    assert before["different"] == []
    assert command("topics", "create", *options).code == 0
    assert told(options, 0) == {"ok": True, "missing": [], "different": []}
    said = command("topics", "diff", *options)
    assert (said.code, said.output.strip()) == (0, "all topics are as they should be")

    kafka = KafkaSettings(bootstrap=bootstrap, prefix=prefix)
    config = {"cleanup.policy": "delete", "retention.ms": "1000", "compression.type": "lz4"}
    asyncio.run(change(kafka, f"{prefix}alerts", config, partitions=3))
    after = told(options, 1)
    assert after["missing"] == []
    assert [tuple(one.values()) for one in after["different"]] == [
        (f"{prefix}alerts", "partitions", "2", "3"),
        (f"{prefix}alerts", "retention.ms", "86400000", "1000"),
        (f"{prefix}alerts", "compression.type", None, "lz4"),
    ]
    said = command("topics", "diff", *options)
    assert said.code == 1
    assert f"{prefix}alerts: retention.ms is 1000, not 86400000" in said.output
    assert f"{prefix}alerts: compression.type is lz4, and should not be set" in said.output
    (line,) = [line for line in said.output.splitlines() if line.startswith("kafka-configs.sh")]
    assert shlex.split(line)[3:] == [
        *("--alter", "--topic", f"{prefix}alerts"),
        *("--add-config", "retention.ms=86400000", "--delete-config", "compression.type"),
    ]
    assert "do not add partitions" in said.output


async def test_without_a_layout_it_is_compared_with_what_create_makes(bootstrap: str, prefix: str) -> None:
    """The same numbers give no difference, another replication gives one for each topic."""
    kafka, app_id = KafkaSettings(bootstrap=bootstrap, prefix=prefix), f"{prefix}app"
    await create_topics(kafka, partitions=1, app_id=app_id)
    assert not (await diff_topics(kafka, partitions=1, app_id=app_id)).any
    found = await diff_topics(kafka, partitions=1, replication=2, app_id=app_id)
    assert {(one.setting, one.wanted, one.found) for one in found.different} == {("replication", "2", "1")}
    assert len(found.different) == len(TOPICS) + 4
    assert any("kafka-reassign-partitions.sh" in line for line in found.remedies(bootstrap))


def test_lists_in_another_order_are_the_same() -> None:
    """Brokers may list policies as they like; three copies also need two that have a record."""
    wanted = Plan("t", 1, {"cleanup.policy": "compact,delete"}, same_partitions=False)
    config = {"cleanup.policy": "delete,compact", "min.insync.replicas": "1"}
    found = compare([wanted], {"t": Found("t", 1, 3, config, frozenset(config))}, 3)
    assert found.different == [Different("t", "min.insync.replicas", "2", "1")]
    (line,) = compare([wanted], {"t": Found("t", 1, 1, {"cleanup.policy": "compact"})}, 1).remedies("b:1")
    assert "cleanup.policy=[compact,delete]" in shlex.split(line)


def test_brokers_that_are_away_are_told() -> None:
    """Exit code 1 with words, also for machines."""
    done = command("topics", "diff", "--bootstrap", "127.0.0.1:1", "--json")
    assert done.code == 1
    assert json.loads(done.output)["ok"] is False
