"""A rolling restart, process by process and under load: no alert and no escalation is lost or doubled."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

from schemas import topics
from schemas.decode import decode
from streams.topics import default_group
from tests.kit import WorkerProcess, assert_same, outcome, traffic
from tests.processes import TRACTION, TractionProcess
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from schemas.topics import Topic
    from tests.kit import Wire

NAMES = ("one", "two")
RATE = 250
"""Events a second, so that the load lasts while six processes end and start."""


def escalate(wire: Wire) -> TractionProcess:
    """Start an escalation consumer."""
    settings = wire.settings
    return TractionProcess(
        TRACTION, "escalate", "--bootstrap", settings.bootstrap, "--prefix", settings.prefix, "--app-id", wire.app_id,
        "--group", default_group(wire.app_id), "--port", "0", "--session-timeout", "6",
    )  # fmt: skip


async def written(wire: Wire, topic: Topic) -> list[Any]:
    """Read what escalation wrote to a topic."""
    return [decode(topic, record.value) for record in await wire.records(wire.settings.topic(topic)) if record.value]


async def test_a_rolling_restart_loses_and_doubles_nothing(wire: Wire, start: Callable[..., WorkerProcess]) -> None:
    """Each worker with a lasting name, then each escalation consumer, ends by SIGTERM with exit code 0 and comes back.

    Alerts and states are what the detectors make of the events in one go; each session that is to be stopped is asked
    to be once, and no directive or notification comes twice.
    """
    workers: dict[str, WorkerProcess] = {
        name: start("--instance-id", name, "--session-timeout", "20") for name in NAMES
    }
    escalations = [escalate(wire), escalate(wire)]
    try:
        await asyncio.gather(*(each.ready() for each in (*workers.values(), *escalations)))
        await asyncio.gather(*(each.ready(2) for each in workers.values()))
        events = traffic(sessions=30, episodes=5)
        sending = asyncio.create_task(wire.send(events, rate=RATE))
        for name in NAMES:
            owned = workers[name].partitions
            assert await workers[name].end() == 0
            workers[name] = start("--instance-id", name, "--session-timeout", "20")
            await workers[name].ready(2)
            assert workers[name].partitions == owned
        for number in range(len(escalations)):
            assert await escalations[number].end() == 0
            escalations[number] = escalate(wire)
            await escalations[number].ready()
        await sending
        await wire.until_applied()
        wanted = outcome(events)
        await assert_same(wire, wanted)
        stopped = {alert.session_id for alert in wanted.alerts.values() if alert.level == "terminate"}
        assert stopped

        async def answered() -> bool:
            return {each.session_id for each in await written(wire, topics.TERMINATIONS)} >= stopped

        await until(answered)
        assert {each.session_id for each in await written(wire, topics.TERMINATIONS)} == stopped
        for topic, name in (
            (topics.DIRECTIVES, "directive_id"),
            (topics.NOTIFICATIONS, "notification_id"),
        ):
            times = Counter(getattr(each, name) for each in await written(wire, topic))
            assert {each for each, count in times.items() if count > 1} == set(), topic.name
        first = [(each.termination_id, each.attempt) for each in await written(wire, topics.TERMINATIONS)]
        assert len(set(first)) == len(first)
    finally:
        for each in escalations:
            each.kill()
