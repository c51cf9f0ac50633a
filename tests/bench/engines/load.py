"""A load like what was recorded: calls of thousands of sessions at once, mixed, of which few loop.

Sizes follow those of recorded sessions, the texts are made up. The same seed gives the same events, and fewer of them
are the first of more. What detectors make of it is not known here.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

from schemas.common import Agent, ErrorInfo, Usage
from schemas.events import ToolCall
from schemas.testing import START
from tests.bench.engines.texts import Texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

P99_DEVIATIONS = 2.326
"""How many standard deviations above the mean the 99th percentile of a normal distribution is."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large something is, in bytes: log-normal, with another width below the median than above.

    Attributes:
        median: half are smaller.
        p99: 1 % are larger.
        below: width below the median, of the logarithm.
        most: none is larger.
    """

    median: int
    p99: int
    below: float
    most: int

    def draw(self, chance: random.Random) -> int:
        """Draw a size."""
        deviations = chance.gauss()
        width = math.log(self.p99 / self.median) / P99_DEVIATIONS if deviations > 0 else self.below
        return min(self.most, round(self.median * math.exp(deviations * width)))


ARGUMENTS = Sizes(median=90, p99=6_000, below=0.7, most=60_000)
"""Arguments as JSON. Of recorded sessions, 5 % are below 27 bytes."""

RESULTS = Sizes(median=230, p99=10_000, below=1.5, most=100_000)
"""Texts of results. Of recorded sessions, 5 % are below 20 bytes."""

CALLS = Sizes(median=23, p99=120, below=0.8, most=400)
"""Calls of a session."""

LOOPING = 0.01
"""Share of the sessions that loop."""

FEWEST_LOOPING = 1e-9
"""A smaller share than this is taken for it: no load has so many sessions."""

LONG_ARGUMENTS = 260
"""Bytes from which arguments are of an edit, a new file or a script; nobody searches for so long a text."""

MAX_LOOKS = 10
"""Calls of a healthy session without a change."""

Call = tuple[str, dict[str, Any], Any, str | None]
"""Tool, arguments, result, and the error's message where it failed."""


@dataclass(frozen=True)
class Load:
    """Makes the events.

    Attributes:
        seed: gives the choice.
        sessions: how many are at work at the same time; one that ends is followed by a new one.
        looping: share of the sessions that loop, 0 to 1; 0 for none.
    """

    seed: int = 1
    sessions: int = 5_000
    looping: float = LOOPING

    def events(self, count: int) -> Iterator[ToolCall]:
        """Give the first events."""
        return islice(self._events(), count)

    def _events(self) -> Iterator[ToolCall]:
        chance = random.Random(self.seed)  # noqa: S311 - no secret
        stories = Stories(chance)
        number = self.sessions
        at_work = [self._session(each, chance, stories) for each in range(number)]
        while True:
            place = chance.randrange(self.sessions)
            event = next(at_work[place], None)
            if event is None:
                at_work[place] = self._session(number, chance, stories)
                number += 1
            else:
                yield event

    def _session(self, number: int, chance: random.Random, stories: Stories) -> Iterator[ToolCall]:
        every = round(1 / max(self.looping, FEWEST_LOOPING))
        loops = self.looping > 0 and number % every == every // 2
        name, agent = f"session-{number:07}", Agent(name="coder", model=f"model-{number % 3}", role="code")
        calls, at = max(3, CALLS.draw(chance)), START + timedelta(seconds=number % 1_000)
        for order, (tool, arguments, result, error) in enumerate(stories.told(number // every if loops else None)):
            if order >= calls + 12 * loops:
                return
            at += timedelta(milliseconds=1_000 + round(chance.expovariate(1 / 6_000)))
            yield ToolCall(
                event_id=f"{name}:{order}",
                session_id=name,
                occurred_at=at,
                sequence=order,
                agent=agent,
                tool=tool,
                arguments=arguments,
                result=result,
                status="ok" if error is None else "error",
                error=None if error is None else ErrorInfo(message=error),
                duration_ms=float(chance.randrange(20, 4_000)),
                usage=Usage(input_tokens=chance.randrange(500, 9_000), output_tokens=chance.randrange(20, 900)),
                call_id=f"call_{chance.getrandbits(64):016x}",
            )


class Stories:
    """Makes up what sessions do.

    Args:
        chance: the source of all choices.
    """

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._texts = Texts(chance)
        self._loops: tuple[Callable[[], Iterator[Call]], ...] = (
            self._identical,
            self._alternating,
            self._failing,
            self._refused,
            self._fruitless,
        )

    def told(self, loop: int | None) -> Iterator[Call]:
        """Give the calls of a session without an end.

        Args:
            loop: which loop it ends up in; None for none.
        """
        healthy = self._healthy()
        if loop is not None:
            yield from islice(healthy, self._chance.randrange(2, 6))
            yield from self._loops[loop % len(self._loops)]()
        yield from healthy

    def _healthy(self) -> Iterator[Call]:
        """Read, search, run and change things; something is changed every dozen calls at least, as who works does."""
        looked = 0
        while True:
            size, answer = ARGUMENTS.draw(self._chance), RESULTS.draw(self._chance)
            looked += 1
            if looked < MAX_LOOKS and size < LONG_ARGUMENTS:
                yield self._short(size, answer)
            elif looked < MAX_LOOKS and self._chance.random() < 0.4:
                yield "Bash", {"command": self._texts.command(size - 40)}, self._texts.log(answer), None
            else:
                path, looked = self._texts.path(), 0
                result = f"The file {path} was updated:\n{self._texts.hits(answer - 40)}"
                yield "Edit", self._edit(path, size), result, None

    def _short(self, size: int, answer: int) -> Call:
        texts, kind = self._texts, self._chance.random()
        if kind < 0.55:
            return "Bash", {"command": texts.command(size - 14)}, texts.log(answer), None
        if kind < 0.75:
            return "Read", self._read(size), texts.code(answer), None
        if kind < 0.85:
            return "Grep", _filled({"pattern": texts.name(), "path": "src"}, size), texts.hits(answer), None
        if kind < 0.92:
            return self._check(size, answer)
        query = _filled({"query": texts.name(), "page": self._chance.randrange(99)}, size)
        return "list_orders", query, texts.answer(answer), None

    def _check(self, size: int, answer: int) -> Call:
        call = {"command": self._texts.check(size - 14)}
        if self._chance.random() < 0.5:
            return "Bash", call, self._texts.failed(answer, self._texts.name()), "exit status 1"
        return "Bash", call, self._texts.passed(answer), None

    def _read(self, size: int) -> dict[str, Any]:
        place = {"file_path": self._texts.path(), "offset": self._chance.randrange(1, 900), "limit": 200}
        return _filled(place, size)

    def _edit(self, path: str, size: int) -> dict[str, Any]:
        old = self._texts.code((size - 80) // 3)
        return {"file_path": path, "old_string": old, "new_string": self._texts.code(2 * (size - 80) // 3)}

    def _identical(self) -> Iterator[Call]:
        call = {"command": self._texts.command(ARGUMENTS.draw(self._chance))}
        result = self._texts.log(RESULTS.draw(self._chance))
        while True:
            yield "Bash", call, result, None

    def _alternating(self) -> Iterator[Call]:
        files = [(self._texts.path(), self._texts.code(RESULTS.draw(self._chance))) for _ in range(2)]
        while True:
            for path, text in files:
                yield "Read", {"file_path": path}, text, None

    def _failing(self) -> Iterator[Call]:
        name, path = self._texts.name(), self._texts.path()
        while True:
            yield "Edit", self._edit(path, 120 + ARGUMENTS.draw(self._chance)), f"{path} was changed", None
            output = self._texts.failed(RESULTS.draw(self._chance), name)
            yield "Bash", {"command": f"pytest -q tests/test_{name}.py"}, output, "exit status 1"

    def _refused(self) -> Iterator[Call]:
        reason = f"{self._texts.name()} must name a currency"
        while True:
            yield "book_entry", {"entry": self._texts.name(), "text": self._texts.log(60)}, reason, reason

    def _fruitless(self) -> Iterator[Call]:
        while True:
            yield "Grep", {"pattern": self._texts.name(), "path": "src"}, "No files found", None


def _filled(arguments: dict[str, Any], size: int) -> dict[str, Any]:
    """Add a field with as much as is missing."""
    missing = size - sum(len(name) + len(str(value)) + 6 for name, value in arguments.items()) - 12
    if missing > 4:
        arguments["note"] = ("to see where the totals of the month come from and who changed them last " * 8)[:missing]
    return arguments
