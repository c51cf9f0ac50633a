"""What becomes of a request's spans and log records: events of the contract, and counts of the rest with the reason.

Only the shapes and how an event is put together; what a span or record means is for `spans` and `logs` to say.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from msgspec import UNSET

from schemas.common import MAX_ID_CHARS, Agent, ErrorInfo
from schemas.content import read_content
from schemas.events import SessionEvent, ToolCall
from streams.identity import identifier
from streams.importers.build import MAX_RESULT_CHARS
from streams.privacy import arguments_digest

if TYPE_CHECKING:
    from streams.otlp.memory import Memory

Passed = Literal["not_a_tool_call", "no_session_id", "no_tool_name", "server_side", "same_call"]
"""Why a span or log record gives no event: it is about something else; whose it is or which tool was called is not
known; it is the other end of a call that the agent's side tells; it is part of a call that another span, or a hook of
its session, tells."""

Lacking = Literal["arguments", "result", "session_id"]
"""What an event had to be made without. Without ``session_id`` its trace stands for the session."""

MAX_ARGUMENT_BYTES: Final = 131_072
"""Longest arguments that are sent, in JSON; longer ones as a digest. With the longest result, escapes included, the
record stays below the megabyte that a broker takes by default."""

MAX_MESSAGE_CHARS: Final = 4_096
"""Longest message of an error that is kept: what detectors compare is at its beginning."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_NS: Final = 946_684_800 * 10**9  # the year 2000: what is earlier was given in another unit, or by no clock
_LAST_NS: Final = 32_503_680_000 * 10**9  # the year 3000, where the contract ends
_NS_PER_MS: Final = 1_000_000


class Observed(msgspec.Struct, frozen=True):
    """An event, and the trace context to send along with it.

    Attributes:
        event: the event; `streams.privacy.reduce` has not been applied.
        traceparent: header of W3C Trace Context that names the span; None where there is none.
    """

    event: ToolCall | SessionEvent
    traceparent: str | None = None


class Mapped(msgspec.Struct):
    """What became of one request.

    Attributes:
        events: in the order of the request.
        passed: how many spans or records gave no event, by reason.
        lacking: how many events had to be made without something, by what.
    """

    events: list[Observed] = msgspec.field(default_factory=list)
    passed: Counter[Passed] = msgspec.field(default_factory=Counter)
    lacking: Counter[Lacking] = msgspec.field(default_factory=Counter)

    def add(self, observed: Observed, *, from_trace: bool = False) -> None:
        """Add an event, and count what it lacks; ``from_trace`` says that its session is but a trace."""
        self.events.append(observed)
        if isinstance(observed.event, ToolCall):
            self.lacking.update(_lacks(observed.event))
        self.lacking["session_id"] += from_trace

    def leave_to_hooks(self, memory: Memory) -> None:
        """Leave out the calls of sessions whose hooks tell them without ids: each of them is there already."""
        told = [each for each in self.events if _by_hooks(each, memory)]
        self.events = [each for each in self.events if not _by_hooks(each, memory)]
        self.passed["same_call"] += len(told)
        for observed in told:
            if isinstance(observed.event, ToolCall):
                self.lacking.subtract(_lacks(observed.event))


def _lacks(event: ToolCall) -> dict[Lacking, int]:
    without_arguments = event.arguments is UNSET and event.arguments_digest is None
    return {"arguments": int(without_arguments), "result": int(event.result is UNSET)}


def _by_hooks(observed: Observed, memory: Memory) -> bool:
    return isinstance(observed.event, ToolCall) and memory.has_hooks(observed.event.session_id)


class Happened(msgspec.Struct, kw_only=True):
    """A tool call as far as one record tells of it.

    Attributes:
        event_id: the record's.
        session_id: whose it is.
        parent_session_id: for a sub-agent, of which session.
        at: when.
        tool: which tool.
        call_id: the provider's id of the call, or what stands for it; empty if there is none.
        agent: who acted.
        arguments: any JSON; UNSET when not known.
        result: any JSON; UNSET when not known.
        status: how it ended; None when not known.
        error: why it failed.
        duration_ms: how long it took.
    """

    event_id: str
    session_id: str
    parent_session_id: str | None = None
    at: datetime
    tool: str
    call_id: str = ""
    agent: Agent | None = None
    arguments: Any = UNSET
    result: Any = UNSET
    status: Literal["ok", "error", "timeout", "denied"] | None = None
    error: ErrorInfo | None = None
    duration_ms: float | None = None

    def event(self) -> ToolCall:
        """Make the event, within the contract's bounds: long arguments as a digest, a long result cut."""
        arguments, digest = self.arguments, None
        if arguments is not UNSET and len(msgspec.json.encode(arguments)) > MAX_ARGUMENT_BYTES:
            arguments, digest = UNSET, arguments_digest(self.tool, arguments)
        value, failed = read_content(self.result)
        result, length, whole = _cut(value)
        return ToolCall(
            event_id=self.event_id,
            session_id=self.session_id,
            parent_session_id=self.parent_session_id,
            occurred_at=self.at,
            agent=self.agent,
            tool=identifier(self.tool),
            arguments=arguments,
            arguments_digest=digest,
            result=result,
            result_length=length,
            result_digest=whole,
            status=self.status or ("error" if failed else None),
            error=self.error,
            duration_ms=self.duration_ms,
            call_id=identifier(self.call_id) if self.call_id else None,
        )


def _cut(result: Any) -> tuple[Any, int | None, str | None]:
    if result is UNSET:
        return result, None, None
    text = result if isinstance(result, str) else msgspec.json.encode(result).decode()
    if len(text) <= MAX_RESULT_CHARS:
        return result, None, None
    return text[:MAX_RESULT_CHARS], len(text), f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def instant(received_at: datetime, *nanos: int) -> datetime:
    """Give the first of the times, in nanoseconds since 1970, that can be one; else when the request was received."""
    known = next((each for each in nanos if _FIRST_NS <= each < _LAST_NS), None)
    return received_at if known is None else _EPOCH + timedelta(microseconds=known // 1_000)


def milliseconds_between(start_ns: int, end_ns: int) -> float | None:
    """Give how long something took; None where one end is not known or lies before the other."""
    return (end_ns - start_ns) / _NS_PER_MS if 0 < start_ns <= end_ns else None


def failure(kind: str | None, message: str | None) -> ErrorInfo | None:
    """Say why a call failed; None where neither kind nor message is known."""
    if not kind and not message:
        return None
    return ErrorInfo(
        type=kind[:MAX_ID_CHARS] if kind else None, message=message[:MAX_MESSAGE_CHARS] if message else None
    )


def traceparent(trace_id: str, span_id: str) -> str | None:
    """Give the header that names a span, sampled since it was sent (W3C Trace Context)."""
    return f"00-{trace_id}-{span_id}-01" if trace_id and span_id else None
