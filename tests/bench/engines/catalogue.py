"""The engines that are compared: how each is started, where it keeps its states, what it does and what it promises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streams.topics import SESSIONS_TABLE, TASKS_TABLE, changelog_name

if TYPE_CHECKING:
    from tests.bench.engines.job import Plan


@dataclass(frozen=True)
class Engine:
    """One engine.

    Attributes:
        letter: how it is called for short.
        name: how people call it.
        module: what is run, in a process of its own.
        does: what it does, and what it promises, in a sentence or two.
        slow: whether it gets the shorter load.
    """

    letter: str
    name: str
    module: str
    does: str
    slow: bool = False

    def changelogs(self, plan: Plan) -> tuple[str, str]:
        """Name the topics that it writes the states of sessions and tasks to."""
        return changelog_name(plan.app_id, SESSIONS_TABLE), changelog_name(plan.app_id, TASKS_TABLE)

    def own(self, plan: Plan) -> tuple[str, ...]:
        """Name its changelogs that Traction has no use for."""
        del plan
        return ()

    def states(self, values: dict[bytes, bytes], *, tasks: bool) -> dict[bytes, bytes]:
        """Give the stored records by session, or by task, of what its changelog for these has by key."""
        del tasks
        return values


@dataclass(frozen=True)
class QuixEngine(Engine):
    """Quix Streams keeps both kinds of states of a key in one store."""

    def changelogs(self, plan: Plan) -> tuple[str, str]:
        """Name its one changelog, as Quix Streams does."""
        name = f"changelog__{plan.app_id}--{plan.input}--default"
        return name, name

    def own(self, plan: Plan) -> tuple[str, ...]:
        """Name that."""
        return self.changelogs(plan)[:1]

    def states(self, values: dict[bytes, bytes], *, tasks: bool) -> dict[bytes, bytes]:
        """Take the record's key, and the name of the state behind it, apart."""
        wanted, found = b'"task"' if tasks else b'"session"', dict[bytes, bytes]()
        for key, value in values.items():
            session, _, kind = key.rpartition(b"|")
            if kind == wanted:
                found[session] = value
        return found


ENGINES: Final[dict[str, Engine]] = {
    engine.letter: engine
    for engine in (
        Engine(
            "a",
            "Traction",
            "tests.bench.engines.traction_worker",
            "The worker as it is: reads all five topics of sessions, judges tasks by a topic of its own. States, "
            "alerts and offsets in one transaction for each partition and half second, at once with an alert; states "
            "in memory and in changelogs. Exactly once, also after a crash; a worker that was frozen is fenced.",
        ),
        Engine(
            "b",
            "bare loop",
            "tests.bench.engines.bare",
            "aiokafka, a dict, states that changed written to changelogs each half second, no transactions, no "
            "framework; tasks in line. Reads nothing back; after a crash events count twice or not at all.",
        ),
        Engine(
            "c",
            "Faust",
            "tests.bench.engines.faust_agent",
            "An ordinary agent of stock Faust: one event at a time, its tables set for each, tasks in line; tables in "
            "memory and in changelogs. At least once: after a crash events count twice.",
            slow=True,
        ),
        QuixEngine(
            "d",
            "Quix Streams",
            "tests.bench.engines.quix",
            "A stateful apply of Quix Streams: states in RocksDB and, as of each checkpoint, in a changelog; tasks in "
            "line. At least once: after a crash events count twice.",
            slow=True,
        ),
    )
}
