"""The load: thousands of sessions, healthy and looping, as a seed has it, with all that producers do wrong.

What a detector makes of it is not known here. Escalation reads alerts and words of a task from two topics, in an order
that nobody can tell afterwards; so tasks that words are said of bring no alerts while these are said, and where
something is judged over a task that stops its sessions, the task has one session.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from schemas.common import Agent, Task
from schemas.encode import encode
from schemas.events import SessionInput
from schemas.testing import START, control, fix_attempt, review, session_event
from streams.reading import partition_of
from tests.detectors.tasks.attempt_kit import UNLIKE
from tests.kit import TOPIC_OF
from tests.torture.stories import LOOPS, healthy, solved

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

AT_ONCE = 48
"""Sessions at work at the same time."""

FEW, MANY, TRIES = 6, 12, 4
"""Sessions that share a task: of those that work, those that loop, and those that try."""

SHARED = frozenset(
    ("identical", "alternation", "error_streak", "same_failure", "same_write", "same_answer", "rereads", "analysis")
)
"""Loops of sessions that share tasks: nothing in them is judged over the task."""

NOISE = {"again": 0.03, "another id": 0.02, "late": 0.02, "junk": 0.015}
"""How often an event is followed by what a producer should not send."""


@dataclass(frozen=True)
class Item:
    """A record to be sent.

    Attributes:
        topic: short name of the topic.
        key: its key.
        value: its value.
        partition: where a producer with another partitioner puts it; None where the key decides.
    """

    topic: str
    key: bytes | None
    value: bytes | None
    partition: int | None = None


@dataclass
class Load:
    """Makes records without an end.

    Attributes:
        seed: gives the choice.
        partitions: of the inputs.
        made: how many sessions of each kind there are.
        works: the sessions of each task, but for tasks of which more is said than on one topic, or whose sessions are
            split over partitions.
    """

    seed: int
    partitions: int
    made: dict[str, int] = field(default_factory=dict)
    works: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)  # noqa: S311 - no secret
        self._number, self._shared, self._loops = 0, 0, list[str]()

    def items(self, ended: Callable[[], bool]) -> Iterator[Item]:
        """Give records of many sessions, mixed; begins no session any more once it is told to end.

        Called again it goes on, with other tasks than before.
        """
        for several in (FEW, MANY, TRIES):
            assert AT_ONCE % several == 0
        self._number += -self._number % AT_ONCE
        self._shared += -self._shared % TRIES
        slots = [self._session() for _ in range(AT_ONCE)]
        while slots:
            at = self._chance.randrange(len(slots))
            item = next(slots[at], None)
            if item is not None:
                yield item
            elif ended():
                del slots[at]
            else:
                slots[at] = self._session()

    def _session(self) -> Iterator[Item]:
        number, self._number = self._number, self._number + 1
        kind, task, records = self._begun(number)
        if kind not in {"mixed", "stopped", "split"}:
            self.works.setdefault(task, []).append(f"s{number}")
        return records

    def _begun(self, number: int) -> tuple[str, str, Iterator[Item]]:
        """Give the kind of a session, its task and its records."""
        kinds = {"healthy": 38, "loop": 40, "mixed": 6, "solved": 3, "stopped": 3, "shared": 5, "split": 5}
        kind = self._chance.choices(list(kinds), list(kinds.values()))[0]
        self.made[kind] = self.made.get(kind, 0) + 1
        session, own = f"s{number}", f"task of s{number}"
        events: Iterable[Any]
        if kind == "mixed":
            return kind, own, self._plain(session, own, self._mixed(session))
        if kind == "stopped":
            events = [*[*healthy(number)][:6], control(20, "terminate", actor="maria", reason="enough")]
            return kind, own, self._plain(session, own, events)
        if kind == "shared":
            common, place = divmod(self._shared, TRIES)
            self._shared += 1
            task, events = f"tries {common}", [fix_attempt(n, UNLIKE[n]) for n in (2 * place, 2 * place + 1)]
        elif kind == "solved":
            task, events = own, solved(number)
        elif kind == "healthy":
            task, events = f"work {number // FEW}", healthy(number)
        else:
            name = self._loop()
            task = f"loops {number // MANY}" if name in SHARED and kind == "loop" else own
            events = LOOPS[name](number)
        return kind, task, self._noisy(session, task, events, split=kind == "split")

    def _loop(self) -> str:
        if not self._loops:
            self._loops = list(LOOPS)
            self._chance.shuffle(self._loops)
        return self._loops.pop()

    def _mixed(self, session: str) -> list[Any]:
        """All five topics: begun, worked, spoken with, reviewed, tried, ended."""
        events: list[Any] = [session_event(0, "started"), *healthy(len(session))]
        others: list[Any] = [
            session_event(3, "turn"),
            session_event(4, "user_message"),
            review(0, "commented", occurred_at=START + timedelta(seconds=5)),
            control(6, "mode", mode="explore"),
            fix_attempt(0, "Cache totals in the service of the cart", outcome="partial"),
        ]
        for event in others:
            events.insert(self._chance.randrange(1, len(events)), event)
        return [*events, session_event(60, "ended")]

    def _plain(self, session: str, task: str, events: Iterable[Any]) -> Iterator[Item]:
        for number, event in enumerate(events):
            yield _item(self._placed(event, session, task, number))

    def _noisy(self, session: str, task: str, events: Iterable[Any], *, split: bool = False) -> Iterator[Item]:
        """Give the records of a session of one topic, and what its producer does wrong."""
        chance = self._chance
        counts = chance.random() < 0.4
        home = partition_of(session.encode(), self.partitions)
        for number, event in enumerate(events):
            placed = self._placed(event, session, task, number)
            if counts:
                placed = msgspec.structs.replace(placed, sequence=number)
            item = _item(placed)
            if split and chance.random() < 0.5:
                item = replace(item, partition=(home + 1) % self.partitions)
            yield item
            for kind, share in NOISE.items():
                if chance.random() < share:
                    yield from self._wrong(kind, placed, item)

    def _wrong(self, kind: str, event: Any, item: Item) -> Iterator[Item]:
        if kind == "again":
            yield item
        elif kind == "another id" and event.sequence is not None:
            yield replace(item, value=encode(msgspec.structs.replace(event, event_id=f"{event.event_id} again")))
        elif kind == "late" and event.sequence is None:
            before = event.occurred_at - timedelta(days=1)
            late = msgspec.structs.replace(event, event_id=f"{event.event_id} late", occurred_at=before)
            yield replace(item, value=encode(late))
        elif kind == "junk":
            value = item.value or b""
            ways = {
                "cut": replace(item, value=value[: len(value) // 2]),
                "bytes": replace(item, value=b"\xff\xfe" + value),
                "list": replace(item, value=b"[1, 2]"),
                "empty": replace(item, value=b""),
                "nothing": replace(item, value=None),
                "no id": replace(item, value=value.replace(b'"event_id"', b'"event"')),
                "other key": replace(item, key=b"somebody else"),
                "no key": replace(item, key=None),
                "future": replace(item, value=value.replace(b'"schema_version":"', b'"schema_version":"9')),
                "no time": replace(item, value=value.replace(b'"occurred_at":"', b'"occurred_at":"x')),
                "deep": replace(item, value=b'{"arguments":' + b"[" * 3_000),
            }
            yield ways[self._chance.choice(list(ways))]

    @staticmethod
    def _placed(event: Any, session: str, task: str, number: int) -> SessionInput:
        whose = sum(task.encode()) % 3
        agent = Agent(name="torture", model=f"m{whose}", role="code")
        fields: dict[str, Any] = {"session_id": session, "event_id": f"{session}:{number}", "agent": agent}
        placed: SessionInput = msgspec.structs.replace(event, task=Task(id=task), **fields)
        return placed


def _item(event: SessionInput) -> Item:
    return Item(TOPIC_OF[type(event)].name, event.session_id.encode(), encode(event))
