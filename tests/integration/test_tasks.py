"""Tasks over all their sessions, on a real broker: judged in one place, remembered over restarts, and forgotten."""

from __future__ import annotations

import itertools
import signal
from typing import TYPE_CHECKING

from aiokafka.partitioner import murmur2

from detectors import limits_from
from schemas import topics
from streams.policy.policy import Policy
from tests.kit import WorkerInside, assert_same, attempt, outcome
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiokafka.structs import ConsumerRecord

    from schemas.events import FixAttempt
    from tests.kit import Wire, WorkerProcess

TASK = "task"
SECONDS_OF_DAY = 86_400


def apart(wire: Wire, count: int) -> list[str]:
    """Give names of sessions of which no two, nor the task, are in one partition."""
    places = {(murmur2(TASK.encode()) & 0x7FFFFFFF) % wire.partitions}
    found = []
    for name in (f"s{number}" for number in itertools.count()):
        place = (murmur2(name.encode()) & 0x7FFFFFFF) % wire.partitions
        if place not in places:
            places.add(place)
            found.append(name)
        if len(found) == count:
            break
    return found


async def test_a_task_is_judged_over_its_sessions(wire: Wire, start: Callable[..., WorkerProcess]) -> None:
    """Three sessions on two workers try A, B, A, B at one task: it is warned about once and terminated once.

    The worker that has the task is killed between; a success ends the task, and nothing of it is kept.
    """
    workers = {name: start("--instance-id", name, "--session-timeout", "20") for name in ("one", "two")}
    for worker in workers.values():
        await worker.ready(2)
    sessions = apart(wire, 3)
    attempts = [attempt(sessions[number % 3], number, TASK) for number in range(4)]
    for event in attempts[:3]:
        await _apply(wire, event)
    place = (murmur2(TASK.encode()) & 0x7FFFFFFF) % wire.partitions
    name = next(name for name, worker in workers.items() if place in worker.partitions)
    assert await workers[name].end(signal.SIGKILL) == -signal.SIGKILL
    assert (await wire.tasks())[TASK].tried == 3
    await start("--instance-id", name, "--session-timeout", "20").ready(2)
    await _apply(wire, attempts[3])
    await assert_same(wire, outcome(attempts))
    alerts = [alert for alert in await wire.alerts() if alert.scope == "task"]
    assert [alert.level for alert in alerts if alert.level != "notice"] == ["warn", "terminate"]
    terminate = alerts[-1]
    assert (terminate.task_id, terminate.session_id, terminate.detector) == (TASK, sessions[0], "fix_break")
    assert terminate.evidence.attempt_ids == ("a0", "a1", "a2", "a3")
    assert terminate.evidence.position is not None
    assert terminate.evidence.position.topic == wire.settings.topic(topics.FIX_ATTEMPTS)
    assert {record.key for record in await wire.alert_records()} == {TASK.encode()}
    attempts.append(attempt(sessions[1], 4, TASK, outcome="success", failing=()))
    await _apply(wire, attempts[4])
    await assert_same(wire, outcome(attempts))
    assert await wire.tasks() == {}
    assert [record.value for record in await _of_task(wire)][-1] is None


async def _of_task(wire: Wire) -> list[ConsumerRecord]:
    return [record for record in await wire.records(wire.tasks_changelog) if record.key == TASK.encode()]


async def _apply(wire: Wire, event: FixAttempt) -> None:
    """Send one event and wait until its session and its task have it: between sessions nothing else keeps an order."""
    await wire.send([event])
    await wire.until_applied()


async def test_a_task_that_nothing_is_heard_of_is_forgotten(wire: Wire) -> None:
    """After the retention a tombstone follows its state; nothing of it is there after a restart, its session is."""
    options = {
        "policy": Policy(limits_from([("test", {"tasks.retention_days": 1 / SECONDS_OF_DAY})])),
        "sweep_interval": 0.1,
    }
    async with WorkerInside(wire, **options) as inside:
        await wire.send([attempt("s", 0, TASK)])

        async def forgotten() -> bool:
            return inside.value("traction_tasks_expired_total") == 1 and inside.value("traction_live_tasks") == 0

        await until(forgotten)
    assert [record.value is None for record in await _of_task(wire)] == [False, True]
    async with WorkerInside(wire) as again:
        changelogs = again.worker.ownerships.changelogs
        stored = [list(changelogs.states(wire.tasks_changelog, number).keys()) for number in range(wire.partitions)]
        assert stored == [[]] * wire.partitions
    assert await wire.tasks() == {}
    assert (await wire.states()).keys() == {"s"}
