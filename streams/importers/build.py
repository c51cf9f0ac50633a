"""Turns what an importer found, call by call, into the events of one session.

Gives identifiers and times where the recording has none. Reads no format: importers fill drafts, and this module makes
the contract's records of them, all at the end or those that are settled so far.

Times: an event without one takes that of the event before it, and at a session's beginning that of the first event
that has one. A recording without any time runs on a synthetic clock: 2000-01-01T00:00:00Z, one second per event; one
that is followed while it grows, on the clock of who follows.

Calls that were not made on our own word are known by our text in the place of their result, as in live operation.

Identifiers: a call's `event_id` is `<session_id>/<call id>` where the model's call id is unique in the session, else
`<session_id>#<position>`; other events are `<session_id>#<kind>-<n>`. So the same recording gives the same ones each
time it is read, and a reader that has seen them drops them.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from msgspec import UNSET

from schemas.common import MAX_ID_CHARS, Agent, ErrorInfo, Task, Usage
from schemas.events import SessionEvent, ToolCall
from streams.identity import identifier
from streams.verdicts.refusal import recorded_denial

if TYPE_CHECKING:
    from schemas.events import SessionInput

SYNTHETIC_START = datetime(2000, 1, 1, tzinfo=UTC)
"""When sessions begin that recorded no time at all."""

MAX_RESULT_CHARS = 131_072
"""Longest result kept. Cut ones carry their whole length and a digest, and the record stays below the megabyte that a
broker takes by default, escapes included."""

_DIGEST_CHARS = 16

Status = Literal["ok", "error", "timeout", "denied"]
Kind = Literal["started", "user_message", "context_trimmed", "turn", "ended"]


@dataclass(frozen=True, slots=True)
class Session:
    """One recorded session.

    Attributes:
        source: the file it was read from, as it was named.
        session_id: its identifier.
        events: what happened, in the recorded order.
        format: name of the format it was recorded in.
        timed: whether the recording has times; else those of the events are made up.
        repeats: records that were left out, since the recording numbers them as calls that it had before.
        differing: those of the repeats that are not equal to the call whose number they have.
    """

    source: str
    session_id: str
    events: list[SessionInput]
    format: str = ""
    timed: bool = True
    repeats: int = 0
    differing: int = 0

    @property
    def calls(self) -> int:
        """How many tool calls there are."""
        return sum(isinstance(event, ToolCall) for event in self.events)


@dataclass(slots=True)
class Call:
    """A call as far as it has been read; the result may come later.

    Attributes:
        tool: name of the tool as the agent called it.
        arguments: any JSON; UNSET when not recorded.
        at: when it was made.
        call_id: the model's own id.
        batch_id: common to the calls that one response asked for.
        result: any JSON; UNSET when not recorded.
        result_length: characters of the whole result, when `result` is cut.
        result_digest: digest of the whole result, when `result` is cut.
        status: how it ended; None when that was not recorded.
        error: why it failed, as far as the recording says.
        duration_ms: how long it took, in milliseconds.
        usage: what the response that asked for it consumed; on the first call of a response only.
        settled: nothing more is to come: its result is there, or the agent went on without one.
        position: its place among the session's calls, from 0; the builder's.
        taken: it was made an event already, so that what comes now is too late; the builder's.
    """

    tool: str
    arguments: Any = UNSET
    at: datetime | None = None
    call_id: str | None = None
    batch_id: str | None = None
    result: Any = UNSET
    result_length: int | None = None
    result_digest: str | None = None
    status: Status | None = None
    error: ErrorInfo | None = None
    duration_ms: float | None = None
    usage: Usage | None = None
    settled: bool = False
    position: int = 0
    taken: bool = False


@dataclass(slots=True)
class Happening:
    """What the recording says of the session itself.

    Attributes:
        kind: what happened.
        at: when.
        reason: why, for an end.
        usage: what a turn consumed.
        settled: false while the same may yet be told better.
    """

    kind: Kind
    at: datetime | None = None
    reason: str | None = None
    usage: Usage | None = None
    settled: bool = True


@dataclass(slots=True)
class Builder:
    """Collects one session.

    Attributes:
        session_id: its identifier.
        agent: who acted.
        task: what the session works on.
        parent: session that started this one as its sub-agent.
        entries: what has been collected.
    """

    session_id: str
    agent: Agent | None = None
    task: Task | None = None
    parent: str | None = None
    entries: list[Call | Happening] = field(default_factory=list)
    _open: list[Call] = field(default_factory=list)
    _made: int = 0
    _given: set[str] = field(default_factory=set)
    _kinds: Counter[str] = field(default_factory=Counter)
    _last: datetime | None = None
    _latest: Call | Happening | None = None  # of what was taken

    def __post_init__(self) -> None:
        self.session_id = identifier(self.session_id)
        self.parent = identifier(self.parent) if self.parent else None

    @property
    def calls(self) -> list[Call]:
        """The calls collected so far."""
        return [entry for entry in self.entries if isinstance(entry, Call)]

    def call(self, call: Call) -> Call:
        """Add a call, and give it back to be completed when its result comes."""
        call.position = self._made
        self._made += 1
        self.entries.append(call)
        self._open.append(call)
        return call

    def happened(
        self, kind: Kind, at: datetime | None = None, reason: str | None = None, usage: Usage | None = None
    ) -> None:
        """Add an event of the session itself. Two accounts of one context trim in a row are one."""
        last = self.entries[-1] if self.entries else self._latest
        if kind == "context_trimmed" and isinstance(last, Happening) and last.kind == kind:
            return
        self.entries.append(Happening(kind, at, reason, usage))

    def settle(self) -> None:
        """Say that the agent went on: calls that have no result by now will be taken without."""
        for call in self._open:
            call.settled = True
        self._open.clear()

    def take(self, now: datetime) -> list[SessionInput]:
        """Make events of what is settled, and forget it.

        Calls come in their order, but for those that ran at the same time as one that still waits for its result; an
        event of the session comes after all calls before it.

        Args:
            now: the time of events before the first that has one.
        """
        self._latest = self.entries[-1] if self.entries else self._latest
        ready: list[Call | Happening] = []
        kept: list[Call | Happening] = []
        for index, entry in enumerate(self.entries):
            if isinstance(entry, Happening) and (kept or not entry.settled):
                kept += self.entries[index:]
                break
            (ready if entry.settled else kept).append(entry)
        self.entries = kept
        self._open = [call for call in self._open if not call.settled]
        events = self._events(ready, now)
        for entry in ready:
            if isinstance(entry, Call):  # importers still know it by its id, its payload is not needed any more
                entry.arguments = entry.result = UNSET
                entry.taken = True
        return events

    def build(self, source: str, format_name: str) -> Session:
        """Make the session's events.

        Args:
            source: the file it was read from.
            format_name: the format it was recorded in.
        """
        timed = any(entry.at is not None for entry in self.entries)
        return Session(source, self.session_id, self._events(self.entries, None), format_name, timed)

    def _events(self, entries: list[Call | Happening], now: datetime | None) -> list[SessionInput]:
        ids = Counter(entry.call_id for entry in entries if isinstance(entry, Call))
        events: list[SessionInput] = []
        for entry, at in zip(entries, self._times(entries, now), strict=True):
            if isinstance(entry, Call):
                if entry.call_id is not None and (ids[entry.call_id] > 1 or entry.call_id in self._given):
                    entry.call_id = None  # no identifier: calls that share one may be taken for one call
                if entry.call_id is not None:
                    self._given.add(entry.call_id)
                name = f"#{entry.position}" if entry.call_id is None else f"/{entry.call_id}"
                events.append(self._tool_call(entry, identifier(self.session_id + name), at))
            else:
                name = identifier(f"{self.session_id}#{entry.kind}-{self._kinds[entry.kind]}")
                self._kinds[entry.kind] += 1
                events.append(
                    SessionEvent(
                        event_id=name,
                        session_id=self.session_id,
                        occurred_at=at,
                        agent=self.agent,
                        task=self.task,
                        parent_session_id=self.parent,
                        kind=entry.kind,
                        usage=entry.usage,
                        reason=None if entry.reason is None else entry.reason[:MAX_ID_CHARS],
                    )
                )
        return events

    def _times(self, entries: list[Call | Happening], now: datetime | None) -> list[datetime]:
        """Give every entry a time, as the module's text says."""
        first = self._last or next((entry.at for entry in entries if entry.at is not None), now)
        if first is None:
            return [SYNTHETIC_START + timedelta(seconds=position) for position in range(len(entries))]
        times: list[datetime] = []
        last = first
        for entry in entries:
            last = entry.at or last
            times.append(last)
            self._last = last if entry.at is not None else self._last
        return times

    def _tool_call(self, call: Call, event_id: str, at: datetime) -> ToolCall:
        result, length, digest = call.result, call.result_length, call.result_digest
        ours = recorded_denial(call.status, result)
        if isinstance(result, str) and len(result) > MAX_RESULT_CHARS:
            length = length or len(result)
            digest = digest or f"sha256:{hashlib.sha256(result.encode('utf-8', 'replace')).hexdigest()}"
            result = result[:MAX_RESULT_CHARS]
        return ToolCall(
            event_id=event_id,
            session_id=self.session_id,
            occurred_at=at,
            agent=self.agent,
            task=self.task,
            parent_session_id=self.parent,
            tool=identifier(call.tool.strip() or "(unnamed)"),
            arguments=call.arguments,
            result=result,
            result_length=length,
            result_digest=digest,
            status=call.status if ours is None else "denied",
            error=ours or call.error,
            duration_ms=call.duration_ms,
            usage=call.usage,
            call_id=None if call.call_id is None else identifier(call.call_id),
            batch_id=None if call.batch_id is None else identifier(call.batch_id),
        )


def recording_id(name: str, content: bytes) -> str:
    """Name a session whose recording has no identifier that is its own.

    Runs of one task share the task's name, so the content's digest tells them apart; a copy of a recording is the same
    session.

    Args:
        name: the task's or the file's name.
        content: the recording.
    """
    return f"{name}@{hashlib.sha256(content).hexdigest()[:_DIGEST_CHARS]}"


def agent_of(name: str, model: object = None, agent_id: str | None = None) -> Agent:
    """Say who acted.

    Args:
        name: the product.
        model: the language model, where a text says so.
        agent_id: identifier of this agent among several.
    """
    return Agent(id=agent_id, name=name, model=model[:MAX_ID_CHARS] if isinstance(model, str) and model else None)
