"""Has tasks and sessions forgotten while others are at work and processes die, and says what is left of them at last.

Only of tasks that nobody works for any more, once all that is known of them was read by whom it concerns: in which
order a word and what came before it are read is then no matter of chance, and the oracle can tell what comes of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from schemas import topics
from schemas.encode import encode
from streams.forget.erasing import traces, words
from tests.torture.load import Item

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from streams.forget.erasing import Kind
    from tests.torture.ledger import Ledger

WORD = b'"action":"forget"'


@dataclass(frozen=True)
class Asked:
    """What was to be forgotten.

    Attributes:
        kind: session or task.
        name: its id.
        tasks: what a session worked for.
        words: how many records say so.
    """

    kind: Kind
    name: str
    tasks: tuple[str, ...]
    words: int


@dataclass
class Forgetter:
    """Chooses, and makes the words that `traction forget` writes.

    Attributes:
        ledger: what is on the topics.
        works: the sessions of each task.
        chance: chooses.
        asked: what was to be forgotten so far.
    """

    ledger: Ledger
    works: dict[str, list[str]]
    chance: random.Random
    asked: list[Asked] = field(default_factory=list)

    def words(self, tasks: int) -> Iterator[Iterator[Item]]:
        """Choose tasks, and give the words that have each forgotten with its sessions, or one of these alone."""
        for task in self.chance.sample(sorted(self.works), tasks):
            yield iter([*self._words(task)])

    @property
    def sessions(self) -> set[str]:
        """The sessions that were to be forgotten."""
        return {each.name for each in self.asked if each.kind == "session"}

    def _words(self, task: str) -> Iterator[Item]:
        sessions = self.works[task]
        whole = self.chance.random() < 0.5
        if whole:
            yield from self._ask("task", task)
        for session in sessions if whole else [self.chance.choice(sessions)]:
            yield from self._ask("session", session, task)

    def _ask(self, kind: Kind, name: str, *tasks: str) -> Iterator[Item]:
        records = words(kind, name, tasks=tasks, actor="maria")
        self.asked.append(Asked(kind, name, tasks, len(records)))
        for record in records:
            yield Item(topics.CONTROL.name, record.session_id.encode(), encode(record))

    def left(self) -> Iterator[str]:
        """Say what is still kept of what was to be forgotten, but where a word is lost or the last event came later."""
        place, said, newest = self.ledger.place, dict[bytes, list[int]](), dict[bytes, int]()
        for name in place.inputs:
            for record in self.ledger.records[name]:
                if name == place.kafka.topic(topics.CONTROL) and WORD in (record.value or b""):
                    said.setdefault(record.key, []).append(record.timestamp)
                else:
                    newest[record.key] = max(record.timestamp, newest.get(record.key, 0))
        kept = {
            name: {key: record.value for (_, key), record in latest.items()}
            for name, latest in self.ledger.latest.items()
        }
        for each in self.asked:
            key = each.name.encode()
            if len(said.get(key, ())) < each.words or newest.get(key, 0) > max(said[key]):
                continue
            for trace in traces(place.kafka, place.app_id, place.group, each.kind, each.name, tasks=each.tasks):
                if not trace.gone(kept.get(trace.topic, {}).get(trace.key.encode())):
                    yield f"something of {each.kind} {each.name} is left in {trace.topic} under {trace.key}"
