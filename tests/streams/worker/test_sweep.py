"""Sessions and tasks are removed when nothing was heard of them for as long as they are kept, and never before."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import KafkaConnectionError

from detectors import limits_from
from schemas import topics
from schemas.testing import session_event
from streams.policy.policy import Policy
from streams.topics import MS_PER_HOUR
from streams.worker import sweep as module
from streams.worker.keeping import MS_PER_DAY, SLACK_MS
from streams.worker.settings import WorkerSettings
from streams.worker.sweep import Sweeper
from tests.kit import tool_call
from tests.streams.worker.conftest import TASK_EVENTS, TELLING, TOOL_CALLS, Bench, task_event

if TYPE_CHECKING:
    from tests.streams.worker.conftest import MakeRecord

DAYS = 7
SETTINGS = WorkerSettings(sweep_interval=0.01)
SESSION_EVENTS = TopicPartition(SETTINGS.kafka.topic(topics.SESSIONS), 0)
KEPT_MS = DAYS * MS_PER_DAY + SLACK_MS
ENDED_MS = 24 * MS_PER_HOUR + SLACK_MS
SECONDS_OF_TEST_MS = 60_000


class Owned:
    """What a sweeper asks of its worker, around the partition of a bench."""

    def __init__(self, bench: Bench) -> None:
        self.began_ms = int(time.time() * 1_000)
        self.settings = SETTINGS
        self.recovering = False
        self.metrics = bench.metrics
        self.overrides = bench.overrides
        self.read_back = True
        changelogs = SimpleNamespace(whole=lambda _: self.read_back)
        self.ownerships = SimpleNamespace(current={0: bench.partition}, changelogs=changelogs)
        self.consumer = self
        self.ahead: dict[TopicPartition, int] = {}
        self.asked = 0
        self.away = False

    async def ends(self, tps: list[TopicPartition]) -> dict[TopicPartition, int]:
        """Give the ends of the inputs: where the partition is, but for those that are ahead."""
        self.asked += 1
        await asyncio.sleep(0)
        if self.away:
            raise KafkaConnectionError
        positions = self.ownerships.current[0].positions
        return {tp: positions[tp] + self.ahead.get(tp, 0) for tp in tps}


@pytest.fixture
def telling() -> Bench:
    """Give a partition under whose detectors tasks are remembered."""
    return Bench(TELLING, limits_from([("file", {"tasks.retention_days": DAYS})]))


@pytest.fixture
def owned(telling: Bench) -> Owned:
    """Give a worker that has nothing but that partition."""
    return Owned(telling)


async def swept(owned: Owned) -> None:
    """Let a sweeper run until it has looked twice, or as long as that may take."""
    running = asyncio.create_task(Sweeper(cast("Any", owned)).run())
    wanted, deadline = owned.asked + 2, time.monotonic() + 0.2
    while owned.asked < wanted and time.monotonic() < deadline and not running.done():  # noqa: ASYNC110 - a sweeper tells nobody
        await asyncio.sleep(0.005)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def seen(bench: Bench, owned: Owned, record: MakeRecord, **ages_ms: int) -> None:
    """Have tasks heard of so long ago, and committed."""
    for name, age in sorted(ages_ms.items(), key=lambda pair: -pair[1]):
        bench.apply([record(task_event(name=name), timestamp=owned.began_ms - age)])
    bench.commit()


def met(bench: Bench, owned: Owned, record: MakeRecord, *, ended: bool = False, **ages_ms: int) -> None:
    """Have sessions heard of so long ago for the last time, by their end or a call, and committed."""
    for name, age in sorted(ages_ms.items(), key=lambda pair: -pair[1]):
        event = session_event(0, "ended", session_id=name) if ended else tool_call(name, 0)
        bench.apply([record(event, timestamp=owned.began_ms - age)])
    bench.commit()


def removed(bench: Bench) -> tuple[list[bytes], list[bytes]]:
    """Commit, and give the sessions and tasks of which tombstones are written."""
    taken = bench.commit()
    sessions, tasks = ([], []) if taken is None else (taken.sessions, taken.tasks)
    return [key for key, value in sessions if value is None], [key for key, value in tasks if value is None]


async def test_tasks_are_removed_by_age(telling: Bench, owned: Owned, record: MakeRecord) -> None:
    """One a little younger than the retention stays; one that has reached it is removed by the next commit."""
    seen(telling, owned, record, old=KEPT_MS, young=KEPT_MS - SECONDS_OF_TEST_MS)
    await asyncio.sleep(0.002)
    await swept(owned)
    assert telling.partition.changed.is_set()
    taken = telling.commit()
    assert (taken.tasks, taken.applied) == ([(b"old", None)], {})
    assert telling.stored_tasks.keys() == {b"young"}
    assert telling.value("traction_tasks_expired_total") == 1
    await swept(owned)
    assert telling.commit() is None


@pytest.mark.parametrize(("ended", "kept_ms"), [(False, KEPT_MS), (True, ENDED_MS)])
async def test_sessions_are_removed_by_age(
    telling: Bench, owned: Owned, record: MakeRecord, *, ended: bool, kept_ms: int
) -> None:
    """Those that ended sooner than those that did not, each at its time, whether or not they are in memory."""
    met(telling, owned, record, ended=ended, old=kept_ms, young=kept_ms - SECONDS_OF_TEST_MS)
    owned.ownerships.current = {0: telling.own()}
    met(telling, owned, record, ended=ended, old2=kept_ms, young2=kept_ms - SECONDS_OF_TEST_MS)
    await asyncio.sleep(0.002)
    await swept(owned)
    taken = telling.commit()
    assert (sorted(taken.sessions), taken.applied) == ([(b"old", None), (b"old2", None)], {})
    assert telling.stored.keys() == {b"young", b"young2"}
    assert telling.value("traction_sessions_expired_total") == 2
    assert telling.value("traction_tasks_expired_total") == 0


async def test_a_straggler_keeps_an_ended_session(telling: Bench, owned: Owned, record: MakeRecord) -> None:
    """Its age is that of the latest record, also of one that came after the end; it is still one that ended."""
    met(telling, owned, record, ended=True, s=ENDED_MS + 9)
    met(telling, owned, record, s=ENDED_MS - SECONDS_OF_TEST_MS)
    await swept(owned)
    assert removed(telling) == ([], [])
    met(telling, owned, record, ended=True, t=ENDED_MS + 9)
    met(telling, owned, record, t=ENDED_MS)
    await asyncio.sleep(0.002)
    await swept(owned)
    assert removed(telling) == ([b"t"], [])


async def test_a_policy_that_changes_holds_for_the_next_look(telling: Bench, owned: Owned, record: MakeRecord) -> None:
    """Tasks are kept for as long as the policy in force says, not the one that was in force at the start."""
    seen(telling, owned, record, old=KEPT_MS - SECONDS_OF_TEST_MS)
    await swept(owned)
    assert telling.commit() is None
    telling.overrides.replace(Policy(limits={"tasks.retention_days": DAYS - 1}))
    await swept(owned)
    assert telling.commit().tasks == [(b"old", None)]


async def test_while_records_wait_their_time_counts(telling: Bench, owned: Owned, record: MakeRecord) -> None:
    """A worker that was away must not remove a task whose next event is among what it has not read yet."""
    seen(telling, owned, record, old=3 * KEPT_MS, away=2 * KEPT_MS - 1)
    owned.ownerships.current = {0: telling.own()}  # it has read nothing since it came back
    owned.ahead[TASK_EVENTS] = 9
    await swept(owned)
    assert telling.commit() is None
    telling.apply([record(task_event(name="other"), timestamp=owned.began_ms - 2 * KEPT_MS + 1)])
    await swept(owned)
    assert removed(telling) == ([], [b"old"])
    assert b"away" in telling.stored_tasks


@pytest.mark.parametrize("behind", [SESSION_EVENTS, TOOL_CALLS])
async def test_while_any_input_of_sessions_waits_its_time_counts(
    telling: Bench, owned: Owned, record: MakeRecord, behind: TopicPartition
) -> None:
    """A session's next event may wait in any of them; of those that were read to the end it comes from now on."""
    met(telling, owned, record, old=3 * KEPT_MS, away=2 * KEPT_MS - 1)
    seen(telling, owned, record, task=3 * KEPT_MS)
    owned.ownerships.current = {0: telling.own()}
    owned.ahead[behind] = 9
    await swept(owned)
    assert removed(telling) == ([], [b"task"])  # of tasks nothing waits
    event = tool_call("other", 0) if behind == TOOL_CALLS else session_event(0, "turn", session_id="other")
    telling.apply([record(event, timestamp=owned.began_ms - 2 * KEPT_MS + 1)])
    await swept(owned)
    assert removed(telling) == ([b"old"], [])
    owned.ahead[behind] = 0
    await swept(owned)
    assert removed(telling) == ([b"away", b"other"], [])


@pytest.mark.parametrize(("recovering", "read_back"), [(True, True), (False, False)])
async def test_nothing_is_removed_before_the_state_is_back(
    telling: Bench, owned: Owned, record: MakeRecord, *, recovering: bool, read_back: bool
) -> None:
    """What is back of a task may be older than what is not, whatever Faust believes; nor are the brokers asked then."""
    seen(telling, owned, record, old=2 * KEPT_MS)
    owned.recovering, owned.read_back = recovering, read_back
    await swept(owned)
    assert (owned.asked, telling.commit()) == (0, None)


async def test_a_partition_that_was_lost_is_left_alone(
    telling: Bench, owned: Owned, record: MakeRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when it is lost in the middle of a sweep: the slice under way is the last."""
    monkeypatch.setattr(module, "SLICE_STATES", 1)
    seen(telling, owned, record, **{f"old{number}": 2 * KEPT_MS for number in range(5)})
    running = asyncio.create_task(Sweeper(cast("Any", owned)).run())
    while not telling.value("traction_tasks_expired_total"):  # noqa: ASYNC110 - turn by turn is the point
        await asyncio.sleep(0)
    telling.partition.ended = True
    await asyncio.sleep(0.05)
    assert telling.value("traction_tasks_expired_total") == 1
    assert not running.done()
    running.cancel()


async def test_a_sweep_waits_for_commits(
    telling: Bench, owned: Owned, record: MakeRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nearly all states may be too old at once: only so many of them wait to be removed at any time."""
    monkeypatch.setattr(module, "SLICE_STATES", 2)
    monkeypatch.setattr(module, "MAX_REMOVED_STATES", 4)
    seen(telling, owned, record, **{f"old{number}": 2 * KEPT_MS for number in range(11)})
    running = asyncio.create_task(Sweeper(cast("Any", owned)).run())
    counts: list[int] = []
    while sum(counts) < 11:
        while not telling.partition.changed.is_set():  # noqa: ASYNC110 - turn by turn is the point
            await asyncio.sleep(0)
        await asyncio.sleep(0.05)
        counts.append(len(removed(telling)[1]))
    assert counts == [4, 4, 3]
    running.cancel()


@pytest.mark.parametrize("lost_first", [False, True])
async def test_a_sweep_that_waits_ends_with_the_partition(
    telling: Bench, owned: Owned, record: MakeRecord, monkeypatch: pytest.MonkeyPatch, *, lost_first: bool
) -> None:
    """Who gives the partition up wakes it: it removes nothing more, and sweeps what is owned next."""
    monkeypatch.setattr(module, "SLICE_STATES", 1)
    monkeypatch.setattr(module, "MAX_REMOVED_STATES", 2)
    seen(telling, owned, record, **{f"old{number}": 2 * KEPT_MS for number in range(5)})
    running = asyncio.create_task(Sweeper(cast("Any", owned)).run())
    while telling.value("traction_tasks_expired_total") < 2:  # noqa: ASYNC110 - turn by turn is the point
        await asyncio.sleep(0)
    given_up = telling.partition
    given_up.ended = True
    if not lost_first:
        telling.commit()
    given_up.room.set()
    owned.ownerships.current = {0: telling.own()}
    while telling.value("traction_tasks_expired_total") < 4:  # noqa: ASYNC110 - turn by turn is the point
        await asyncio.sleep(0.005)
    assert not given_up.tasks.changed or lost_first
    assert telling.value("traction_tasks_expired_total") == 4
    running.cancel()


async def test_brokers_that_are_away_are_waited_for(telling: Bench, owned: Owned, record: MakeRecord) -> None:
    """The sweep is tried again, and removes then what it would have removed before."""
    seen(telling, owned, record, old=2 * KEPT_MS)
    owned.away = True
    await swept(owned)
    assert (owned.asked, telling.commit()) == (2, None)
    owned.away = False
    await swept(owned)
    assert telling.commit().tasks == [(b"old", None)]


async def test_an_idle_task_s_own_times_do_not_count(telling: Bench, owned: Owned, record: MakeRecord) -> None:
    """A recording of long ago that is sent today, and an event dated into the future, age by the brokers' clock."""
    telling.apply([record(task_event(name="replayed", at_ms=1), timestamp=owned.began_ms)])
    telling.apply([record(task_event(name="ahead", at_ms=9 * owned.began_ms), timestamp=owned.began_ms - 2 * KEPT_MS)])
    telling.commit()
    await swept(owned)
    telling.commit()
    assert telling.stored_tasks.keys() == {b"replayed"}
