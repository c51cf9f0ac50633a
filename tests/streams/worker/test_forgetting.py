"""What people want forgotten: emptied at once, removed when no record from before can come, and never brought back."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka import TopicPartition

from detectors import SessionState, TaskEvent, TaskState, decode_state, decode_task
from schemas import topics
from schemas.common import Task
from schemas.events import Control
from schemas.testing import session_event
from streams.worker import sweep as module
from streams.worker.live import FORGOTTEN
from streams.worker.records import decode_stored
from streams.worker.sweep import Sweeper
from tests.kit import BEGIN, attempt, tool_call
from tests.streams.worker.conftest import SETTINGS, TOOL_CALLS, Bench, task_event
from tests.streams.worker.test_sweep import Owned

if TYPE_CHECKING:
    from aiokafka.structs import ConsumerRecord

    from tests.streams.worker.conftest import MakeRecord

WORD_MS = int(time.time() * 1_000) - 60_000
CONTROL = TopicPartition(SETTINGS.kafka.topic(topics.CONTROL), 0)


def forget(session: str = "s", event_id: str = "f", **fields: Any) -> Control:
    """Build the word to forget a session; by its own clock it is older than anything else."""
    return Control(event_id=event_id, session_id=session, occurred_at=BEGIN, action="forget", **fields)


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the sweeper look all the time."""
    monkeypatch.setattr(module, "FORGOTTEN_SECONDS", 0.01)


@pytest.fixture
def known(bench: Bench, record: MakeRecord) -> Bench:
    """Give a partition that has a session with three calls, and another one, both committed."""
    calls = [tool_call(name, number) for name in ("s", "other") for number in range(3)]
    bench.apply(record(call, timestamp=WORD_MS - 9) for call in calls)
    bench.commit()
    return bench


def word(record: MakeRecord, **fields: Any) -> ConsumerRecord:
    """Give the record of a word."""
    return record(forget(**fields), timestamp=WORD_MS)


def calls_of(bench: Bench, session: str = "s") -> int | None:
    """Tell how many calls are stored of a session; None where nothing is stored."""
    value = bench.stored.get(session.encode())
    return None if value is None else decode_state(decode_stored(value).state).calls


class Answering(Owned):
    """The same, and tells when it was asked where the inputs end."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench)
        self.settings = SETTINGS
        self.answered = asyncio.Event()

    async def ends(self, tps: list[TopicPartition]) -> dict[TopicPartition, int]:
        """Give the ends of the inputs."""
        found = await super().ends(tps)
        self.answered.set()
        return found


async def sweep(bench: Bench, *, behind: tuple[TopicPartition, ...] = ()) -> None:
    """Have the sweeper look for what was to be forgotten, once or more, and commit; nothing expires meanwhile."""
    owned = Answering(bench)
    owned.ahead = dict.fromkeys(behind, 1)
    sweeping = asyncio.create_task(Sweeper(owned).run())  # type: ignore[arg-type]  # what it asks of a worker
    await owned.answered.wait()
    await asyncio.sleep(0)  # what it does with the answer
    sweeping.cancel()
    await asyncio.gather(sweeping, return_exceptions=True)
    bench.commit()


def test_a_word_empties_the_session_and_tells_its_task(known: Bench, record: MakeRecord) -> None:
    """In one commit: its state is empty, whatever its clocks say, the task is told, and others are as they were."""
    other = known.stored[b"other"]
    known.apply([record(tool_call("s", 3, task=Task(id="T")), timestamp=WORD_MS - 9), word(record)])
    (told,) = [out for out in known.commit().outgoing if b"forget" in (out.value or b"")]
    event = decode_task(told.value or b"", TaskEvent)
    assert (told.key, event.word, event.session_id, event.spent.calls) == (b"T", "forget", "s", 0)
    stored = decode_stored(known.stored[b"s"])
    assert decode_state(stored.state) == SessionState()
    assert stored.applied.keys() == {FORGOTTEN}
    assert known.stored[b"other"] == other
    assert known.value("traction_control_total", action="forget") == 1


def test_what_came_before_the_word_changes_nothing(known: Bench, record: MakeRecord) -> None:
    """Up to the word's own time, also after a restart, and also when the session has gone on meanwhile."""
    known.apply([word(record), record(tool_call("s", 4), timestamp=WORD_MS)])
    known.commit()
    assert calls_of(known) == 0
    known.own()
    known.apply([record(tool_call("s", 5), timestamp=WORD_MS - 1)])
    known.apply([record(session_event(6, "turn", session_id="s"), timestamp=WORD_MS + 1)])
    known.apply([record(tool_call("s", 7), timestamp=WORD_MS)])
    known.commit()
    assert calls_of(known) == 0
    assert known.value("traction_events_total", topic="agent.tool-calls", result="late") == 3
    known.apply([record(tool_call("s", 8), timestamp=WORD_MS + 1)])
    known.commit()
    assert calls_of(known) == 1


def test_a_second_word_is_taken_too(known: Bench, record: MakeRecord) -> None:
    """Though it has the time of the first: the session may have worked for several tasks, and each is told."""
    known.apply([word(record), word(record, event_id="g", task=Task(id="T2"))])
    told = [out.key for out in known.commit().outgoing if b"forget" in (out.value or b"")]
    assert told == [b"s", b"T2"]


async def test_it_is_removed_when_nothing_from_before_can_come(known: Bench, record: MakeRecord) -> None:
    """At once where all inputs were applied to their ends; as long as one is behind, it stays known."""
    known.apply([word(record)])
    known.commit()
    await sweep(known, behind=(TOOL_CALLS,))
    assert calls_of(known) == 0
    await sweep(known)
    assert b"s" not in known.stored
    assert known.partition.sessions.loaded(b"s") is None
    assert not known.partition.sessions.forgotten
    assert calls_of(known, "other") == 3


@pytest.mark.parametrize("taken_over", [True, False])
async def test_what_a_former_owner_was_to_forget_is_removed(
    known: Bench, record: MakeRecord, monkeypatch: pytest.MonkeyPatch, *, taken_over: bool
) -> None:
    """All states are looked at soon after partitions were taken over, and not before the interval is over otherwise.

    What was found waits for the inputs then, as if its word had been read by this owner.
    """
    known.apply([word(record)])
    known.commit()
    known.own()
    monkeypatch.setattr(module, "TAKEN_OVER_SECONDS", 0.0)
    owned = Answering(known)
    owned.ahead = {TOOL_CALLS: 1}
    sweeping = asyncio.create_task(Sweeper(owned).run())  # type: ignore[arg-type]  # what it asks of a worker
    await asyncio.sleep(0)  # it has seen what is owned
    if taken_over:
        owned.ownerships.current = {0: known.own()}
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(1.0 if taken_over else 0.05):
            await owned.answered.wait()
            assert b"s" in known.stored
            owned.ahead.clear()
            owned.answered.clear()
            await owned.answered.wait()
    await asyncio.sleep(0)  # what it does with the answer
    sweeping.cancel()
    await asyncio.gather(sweeping, return_exceptions=True)
    known.commit()
    assert (b"s" in known.stored) != taken_over


async def test_what_went_on_is_not_removed(known: Bench, record: MakeRecord) -> None:
    """A session that sends again after the word is kept as any other, and no longer looked for."""
    known.apply([word(record), record(tool_call("s", 5), timestamp=WORD_MS + 1)])
    known.commit()
    await sweep(known)
    assert calls_of(known) == 1
    assert not known.partition.sessions.forgotten


def test_a_task_forgets_what_a_session_did(bench: Bench, record: MakeRecord) -> None:
    """Its attempts and counts go, those of others stay; a word for the task itself leaves nothing."""
    bench.apply(record(attempt(name, number, "T")) for name in ("s", "other") for number in range(2))
    events = [out for out in bench.commit().outgoing if out.key == b"T"]
    bench.apply(record(decode_task(out.value or b"", TaskEvent)) for out in events)
    bench.commit()
    assert len(_task(bench).attempts) == 4
    bench.apply([record(task_event(9, "T", word="forget", session_id="s"))])
    bench.commit()
    state = _task(bench)
    assert (len(state.attempts), state.tried) == (2, 2)
    assert 0 <= state.failed <= 2
    bench.apply([record(task_event(10, "T", word="forget", session_id="T"))])
    bench.commit()
    assert bench.stored_tasks == {}
    assert bench.partition.tasks.loaded(b"T") is None


def _task(bench: Bench) -> TaskState:
    return decode_task(decode_stored(bench.stored_tasks[b"T"]).state, TaskState)
