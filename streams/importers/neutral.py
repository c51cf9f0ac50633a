"""Reads the neutral form: one tool call a line, `{session_id, seq, ts, tool, args, result, error}`.

`error` is true, false or null (not recorded); `ts`, ISO 8601 or seconds since 1970, may be missing; a cut `result` has
`result_len` (characters) and `result_sha256` of the whole. A line with `kind` (`started`, `user_message`,
`context_trimmed`, `ended`) and no `tool` tells of the session itself; `call_id`, `batch_id` and `duration_ms` may be
given. `repo`, `role`, `task_type` and `paths` hold for the whole session, whichever line says them first. A file may
hold many sessions, also interleaved; only those whose end has not come yet stand in memory. This form is ours, so that
a line which does not keep to it is an error.

An empty result with `error` null is one that was not recorded where the session records success elsewhere
(`error: false`), and an empty one where it never does.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta

from schemas.common import Agent, Amount, Count, Name, Task
from streams.importers.build import Builder, Call, Session
from streams.importers.files import CannotRead
from streams.importers.lines import LineReader
from streams.importers.mend import CUT, NotJson, parse
from streams.importers.shape import MILLISECONDS_FROM, as_dict, as_time

if TYPE_CHECKING:
    from collections.abc import Iterator

    from schemas.events import SessionInput
    from streams.importers.files import Recording

NAME = "neutral"

KINDS = ("started", "user_message", "context_trimmed", "ended")
"""What a line may tell of the session itself."""


Paths = Annotated[tuple[Annotated[str, Meta(max_length=1024)], ...], Meta(max_length=1000)]
"""As the contract has them."""


class Line(msgspec.Struct, frozen=True):
    """One line, as it must be."""

    session_id: Annotated[str, Meta(min_length=1)]
    tool: Annotated[str, Meta(min_length=1)] | None = None
    seq: Count | None = None
    ts: str | float | None = None
    args: Any = UNSET
    result: Any = UNSET
    error: bool | None = None
    result_len: Count | None = None
    result_sha256: Annotated[str, Meta(min_length=1, max_length=128)] | None = None
    kind: Literal["tool_call", "started", "user_message", "context_trimmed", "ended"] = "tool_call"
    call_id: str | None = None
    batch_id: str | None = None
    duration_ms: Amount | None = None
    reason: str | None = None
    repo: Name | None = None
    role: Name | None = None
    task_type: Name | None = None
    paths: Paths = ()


class _Head(msgspec.Struct):
    session_id: str


_head = msgspec.json.Decoder(_Head)


@dataclass(slots=True)
class _Open:
    """A session whose end has not come yet.

    Attributes:
        builder: makes its events.
        entries: what was read, with its place.
        seen: the calls by their `seq`.
        position: the latest `seq`.
        repeats: calls that were left out, since their `seq` was there already.
        differing: those of them that are not equal to the call that was there.
        tells_success: whether a line said so.
    """

    builder: Builder
    entries: list[tuple[int, int, Line]] = field(default_factory=list)
    seen: dict[int, Line] = field(default_factory=dict)
    position: int = 0
    repeats: int = 0
    differing: int = 0
    tells_success: bool = False

    def take(self, line: Line) -> None:
        """Add a line; a call whose `seq` is there already counts as the same call again."""
        if line.seq is not None and line.tool is not None:
            same = self.seen.setdefault(line.seq, line)
            if same is not line:
                self.repeats += 1
                self.differing += same != line
                return
            self.position = line.seq
        self.tells_success = self.tells_success or line.error is False
        self.entries.append((self.position, len(self.entries), line))

    def order(self) -> Builder:
        """Hand what was read to the builder, in the order of the calls."""
        lines = [line for _, _, line in sorted(self.entries, key=lambda entry: entry[:2])]
        self.entries.clear()
        builder = self.builder
        agent, task = _facts(lines)
        builder.agent = builder.agent or agent
        builder.task = builder.task or task
        for line in lines:
            at = _time(line.ts)
            if line.kind == "tool_call":
                builder.call(_call(line, tells_success=self.tells_success)).at = at
            else:
                builder.happened(line.kind, at, line.reason)
        return builder


def recognise(value: object) -> bool:
    """Tell whether a line is one of this form."""
    line = as_dict(value)
    is_call = "tool" in line and ("args" in line or "seq" in line)
    return "session_id" in line and (is_call or ("tool" not in line and line.get("kind") in KINDS))


def may_be(value: object) -> bool:
    """Tell whether a line has what is always there, and so is one of this form if it is of no other."""
    line = as_dict(value)
    return isinstance(line.get("session_id"), str) and isinstance(line.get("tool"), str)


class Reader(LineReader):
    """Reads lines of any number of sessions.

    Of a recording that grows, the order by `seq` and what tells of success reach as far as what was not taken yet.
    """

    NAME = NAME

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self._opened: dict[str, _Open] = {}

    def feed(self, value: object) -> None:
        """Take the next line, or note what is wrong with it."""
        try:
            line = _line(value)
        except ValueError as problem:
            self.faults.append(f"not a line of the neutral form: {problem}")
            return
        opened = self._opened.get(line.session_id)
        if opened is None:
            opened = self._opened[line.session_id] = _Open(Builder(line.session_id))
        opened.take(line)

    def take(self, now: datetime) -> list[SessionInput]:
        """Give all events that were not given yet: a line has its result with it."""
        return [event for opened in self._opened.values() for event in opened.order().take(now)]

    def close(self, name: str) -> Iterator[Session]:
        """Give one session, all of whose lines have been read, and forget it."""
        opened = self._opened.pop(name, None)
        if opened is not None:
            built = opened.order().build(self.source, NAME)
            yield replace(built, repeats=opened.repeats, differing=opened.differing)

    def finish(self) -> Iterator[Session]:
        """Give the sessions that were not closed."""
        for name in list(self._opened):
            yield from self.close(name)


def read(recording: Recording, *, whole: bool) -> Iterator[Session]:
    """Read the sessions of a file, each when its last line has been read.

    Args:
        recording: the file.
        whole: the file is one JSON document.
    """
    last = _last_lines(recording)
    reader = Reader(recording.source)
    for number, value, _ in recording.values(whole=whole):
        reader.feed(value)
        for fault in reader.faults:
            recording.fault(number, fault)
        reader.faults.clear()
        name = as_dict(value).get("session_id")
        if isinstance(name, str) and last.get(name) == number:
            yield from reader.close(name)
    yield from reader.finish()


def _last_lines(recording: Recording) -> dict[str, int]:
    """Find on which line each session ends."""
    last: dict[str, int] = {}
    try:
        for number, text in recording.texts():
            try:
                name: object = _head.decode(text).session_id
            except (msgspec.DecodeError, ValueError, RecursionError):
                name = _slowly(text)
            if isinstance(name, str):
                last[name] = number
    except CannotRead:
        pass  # told when the lines themselves are read
    recording.unreadable.clear()
    return last


def _slowly(text: bytes) -> object:
    try:
        return as_dict(parse(text).value).get("session_id")
    except NotJson:
        return None


def _line(value: object) -> Line:
    """Check a line.

    Raises:
        ValueError: it does not keep to the form; the message says in what.
    """
    line = msgspec.convert(value, Line)
    if line.kind == "tool_call" and line.tool is None:
        raise ValueError("field `tool` is missing")
    if isinstance(line.ts, float) and line.ts >= MILLISECONDS_FROM:
        raise ValueError("`ts` is in milliseconds (write seconds since 1970)")
    if line.ts is not None and _time(line.ts) is None:
        raise ValueError("`ts` is no time (write 2026-01-31T12:00:00Z)")
    return line


def _time(ts: str | float | None) -> datetime | None:
    """Read a time; unlike in the formats of others, where 0 stands for none, it is one here."""
    return datetime.fromtimestamp(0, UTC) if ts == 0 else as_time(ts)


def _facts(lines: list[Line]) -> tuple[Agent | None, Task | None]:
    """Give who acts, for which task, as far as a line says so."""
    role = next((line.role for line in lines if line.role), None)
    repo = next((line.repo for line in lines if line.repo), None)
    kind = next((line.task_type for line in lines if line.task_type), None)
    paths = next((line.paths for line in lines if line.paths), ())
    task = Task(repo=repo, type=kind, paths=paths) if repo or kind or paths else None
    return Agent(role=role) if role else None, task


def _call(line: Line, *, tells_success: bool) -> Call:
    lost = line.result is None or (line.result == "" and line.error is None and tells_success)
    return Call(
        line.tool or "",
        UNSET if line.args is None or CUT in as_dict(line.args) else line.args,
        call_id=line.call_id,
        batch_id=line.batch_id,
        result=UNSET if lost else line.result,
        result_length=line.result_len,
        result_digest=line.result_sha256,
        status=None if line.error is None else "error" if line.error else "ok",
        duration_ms=line.duration_ms,
        settled=True,
    )
