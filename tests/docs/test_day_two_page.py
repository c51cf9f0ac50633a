"""Runs the commands of the page on day two as it has them, with a worker where one is needed, on a real broker."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from schemas import topics
from schemas.common import Task
from schemas.events import ToolCall
from streams.kafka import KafkaSettings
from streams.rewind import rewind
from streams.topics import TopicsError, create_topics, partition_counts
from tests.kit import Wire, WorkerInside, outcome, tool_call, traffic
from tests.processes import TRACTION

if TYPE_CHECKING:
    from pathlib import Path

    from schemas.events import SessionInput
    from tests.docs.conftest import Find

COMMANDS = ("FORGET", *(f"TOPICS_{name}" for name in ("CREATE", "CHECK", "PLAN_PARTITIONS", "REWIND")))
"""Whose application id the environment gives."""

TOOL = """#!{python}
import asyncio, sys
from aiokafka.admin import AIOKafkaAdminClient
words = dict(zip(sys.argv[1::1], sys.argv[2::1]))
async def main():
    client = AIOKafkaAdminClient(bootstrap_servers=words["--bootstrap-server"])
    await client.start()
    await client.delete_topics([words["--topic"]])
    while words["--topic"] in await client.list_topics():
        await asyncio.sleep(0.1)
    await client.close()
assert "--delete" in sys.argv
asyncio.run(main())
"""
"""Stands in for Kafka's own tool, of which the page needs to delete a topic."""

PARTITIONS, MORE = 4, 6


class Page:
    """The topics of a test, and a shell in which the page's commands find them."""

    def __init__(self, wire: Wire, block: Find, path: Path) -> None:
        self.wire = wire
        self._block = block
        self._path = path
        tool = path / "kafka-topics.sh"
        tool.write_text(TOOL.format(python=sys.executable), "utf-8")
        tool.chmod(0o755)

    async def run(self, name: str, *, code: int = 0) -> str:
        """Run a block in a shell that ends at the first command that fails, and give what it prints."""
        app, prefix = self.wire.app_id, self.wire.settings.prefix
        text = self._block(name).text.replace("kafka:9092", self.wire.settings.bootstrap)
        text = text.replace("traction-sessions-", f"{app}-sessions-").replace("traction-tasks-", f"{app}-tasks-")
        text = text.replace("--partitions 32", f"--partitions {MORE}")
        text = text.replace("wide.agent.", f"{prefix}wide.").replace("traction-wide", f"{app}-wide")
        own = {"TRACTION_BOOTSTRAP": self.wire.settings.bootstrap, "TRACTION_PREFIX": prefix}
        own |= {f"TRACTION_{command}_APP_ID": app for command in COMMANDS}
        own |= {"TRACTION_TOPICS_CREATE_PARTITIONS": str(PARTITIONS), "TRACTION_TOPICS_CREATE_REPLICATION": "1"}
        own["PATH"] = f"{self._path}:{os.path.dirname(TRACTION)}:{os.environ['PATH']}"  # noqa: PTH120 - as it has it
        kept = {key: value for key, value in os.environ.items() if not key.startswith("TRACTION_")}
        ran = await asyncio.to_thread(
            subprocess.run, ["/bin/sh", "-e", "-c", text], env=kept | own, capture_output=True, text=True, check=False
        )
        assert ran.returncode == code, ran.stderr
        return ran.stdout


@pytest.fixture
async def page(bootstrap: str, prefix: str, block: Find, tmp_path: Path) -> Page:
    """Give the page, and topics of the test's own."""
    settings = KafkaSettings(bootstrap=bootstrap, prefix=prefix)
    app_id = prefix.rstrip(".")
    await create_topics(settings, partitions=PARTITIONS, replication=1, app_id=app_id)
    return Page(Wire(settings, app_id, PARTITIONS), block, tmp_path)


async def test_plan_forget_and_rebuild(page: Page) -> None:
    """In the page's order: plan, topics beside, rebuild what was lost, forget a session and a task.

    States that are rebuilt are those of an uninterrupted run, and alerts that come again have the ids that they had.
    """
    wire = page.wire
    session = [
        tool_call("claude-6f0e2a91", number, arguments={"path": "a"}, result="the same", task=Task(id="SHOP-412"))
        for number in range(3)
    ]
    events: list[SessionInput] = [*session, *traffic(sessions=10, episodes=2)]
    half = len(events) // 2
    async with WorkerInside(wire):
        await wire.send(events[:half])
        await wire.until_applied()
        assert "Do not add partitions" in await page.run("day-two-plan", code=1)
        with pytest.raises(TopicsError, match="are running"):
            await rewind(wire.settings, wire.app_id, write=True)
    with pytest.raises(TopicsError, match="has states"):
        await rewind(wire.settings, wire.app_id, write=True)
    before = Counter(alert.alert_id for alert in await wire.alerts())
    await page.run("day-two-beside")
    wide = f"{wire.settings.prefix}wide.{topics.TOOL_CALLS.name}"
    assert await partition_counts(wire.settings, {wide}) == {wide: MORE}

    told = await page.run("day-two-rebuild")
    calls = sum(isinstance(event, ToolCall) for event in events[:half])
    assert f"{calls} records of {wire.settings.topic(topics.TOOL_CALLS)} would be read again" in told
    assert f"{calls} records of {wire.settings.topic(topics.TOOL_CALLS)} are read again" in told

    async with WorkerInside(wire):
        await wire.send(events[half:])
        await wire.until_applied()
        wanted = outcome(events)
        times = Counter(alert.alert_id for alert in await wire.alerts())
        assert times == Counter(wanted.alerts.keys()) + before
        assert await wire.states() == wanted.states
        assert await wire.tasks() == wanted.tasks

        told = await page.run("day-two-forget")
        assert "would forget session claude-6f0e2a91" in told
        assert "done: workers and escalation remember nothing of it" in told
        assert (await wire.states()).keys() == wanted.states.keys() - {"claude-6f0e2a91"}
        assert "done: " in await page.run("day-two-forget-task")
        assert (await wire.tasks()).keys() == wanted.tasks.keys() - {"SHOP-412"}


def test_the_times_that_the_page_names_are_those_of_the_topics(pages: dict[str, str]) -> None:
    """What of a session is where, for how long: every topic of the contract is there, with its retention."""
    rows = [line.strip("| ").split(" | ") for line in pages["docs/day-two.md"].splitlines() if line.startswith("| `")]
    told = {name: row[-1] for row in rows for name in re.findall(r"`agent\.([a-z-]+)`", row[0])}
    assert told.keys() == {topic.name for topic in topics.TOPICS}
    for topic in topics.TOPICS:
        days = re.fullmatch(r"(\d+) days", told[topic.name])
        assert (int(days[1]) * 24 if days else None) == topic.retention_hours, topic.name
