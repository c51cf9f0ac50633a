"""Says which spans are tool calls, and of which session; and which are responses of a model, with what they consumed.

A call that several spans tell, as one of a framework around one of MCP, is one event, which has what any of them knows.
Times out of spans only; what must be known of earlier requests is in `Memory`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from msgspec import UNSET

from schemas.events import SessionEvent
from streams.identity import record_id, sub_session
from streams.otlp import attributes as names
from streams.otlp.attributes import agent_of, first, first_text, text_of, usage_of
from streams.otlp.mapped import (
    Happened,
    Mapped,
    Observed,
    Passed,
    failure,
    instant,
    milliseconds_between,
    traceparent,
)
from streams.otlp.values import read_arguments, result_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from schemas.common import ErrorInfo
    from streams.otlp.items import Span, Traces
    from streams.otlp.memory import Memory

_TOOL: Final = "execute_tool"
_RESPONSES: Final = frozenset({"chat", "generate_content", "text_completion"})
_AGENTS: Final = frozenset({"invoke_agent", "create_agent", "invoke_workflow", "agent", "workflow"})
_MCP: Final = "mcp.method.name"
_MCP_CALL: Final = "tools/call"
_CLAUDE_CODE: Final = "claude_code."
_CLAUDE_CODE_TOOL: Final = "claude_code.tool"
_SERVER: Final = 2
_OK, _ERROR = 1, 2
_TIMEOUTS: Final = frozenset({"timeout", "timeouterror", "deadline_exceeded"})
_MAX_LEVELS: Final = 64  # of parents that are looked at

_Kind = Literal["tool", "response", "agent", "other"]


def map_traces(traces: Traces, received_at: datetime, memory: Memory) -> Mapped:
    """Make events of spans.

    Args:
        traces: the request.
        received_at: when it came; for spans without times.
        memory: what is known of earlier requests; it learns from this one.

    Returns:
        Events of tool calls and of responses, and counts of the other spans.
    """
    return _Request(traces.spans, received_at, memory).mapped()


class _Request:
    """The spans of one request, by what connects them."""

    def __init__(self, spans: Sequence[Span], received_at: datetime, memory: Memory) -> None:
        self._received_at = received_at
        self._memory = memory
        self._kinds = [(span, _kind_of(span)) for span in spans]
        self._by_id = {(span.trace_id, span.span_id): (span, kind) for span, kind in self._kinds}
        self._calls: dict[tuple[str, str], Happened] = {}
        for span in spans:
            session = first_text(span.attributes, names.SESSION)
            if session is not None:
                memory.learn(span.trace_id, session)

    def mapped(self) -> Mapped:
        """Make the events, in the order of the spans."""
        mapped = Mapped()
        passed = mapped.passed
        found: list[tuple[Span, Happened | SessionEvent, bool]] = []
        for span, kind in self._kinds:
            if kind == "response" and not span.name.startswith(_CLAUDE_CODE) and not self._within(span, "response"):
                found.append((span, *self._turn(span)))
            elif kind != "tool":
                passed["not_a_tool_call"] += 1
            elif span.kind == _SERVER and _MCP in span.attributes:
                passed["server_side"] += 1
            else:
                call = self._call(span)
                if isinstance(call, str):
                    passed[call] += 1
                else:
                    found.append((span, *call))
        for span, event, from_trace in found:
            made = event.event() if isinstance(event, Happened) else event
            mapped.add(Observed(made, traceparent(span.trace_id, span.span_id)), from_trace=from_trace)
        return mapped

    def _call(self, span: Span) -> tuple[Happened, bool] | Passed:
        """Make a call of a span, or add what it knows to the one that another span of this request told."""
        key = span.trace_id, self._stands_for(span)
        told = self._calls.get(key)
        happened, from_trace = self._read(span, key[1])
        if told is None:
            if not happened.tool:
                return "no_tool_name"
            self._calls[key] = happened
            return happened, from_trace
        _complete(told, happened)
        return "same_call"

    def _stands_for(self, span: Span) -> str:
        """Give what the call of a span is recognised by: the provider's id, else the span's, of the outermost one."""
        outer = self._outermost(span)
        call_id = first_text(outer.attributes, names.CALL) or first_text(span.attributes, names.CALL)
        if self._memory.was_told(outer.trace_id, outer.span_id):
            return outer.span_id  # as the inner span did that came before
        if call_id is None and outer.parent_id and _MCP in outer.attributes and not self._parent(outer):
            self._memory.tell(outer.trace_id, outer.parent_id)
            return outer.parent_id
        return call_id or outer.span_id

    def _outermost(self, span: Span) -> Span:
        """Give the outermost span that tells the same call: of the same tool, and no agent between."""
        outer = span
        for parent, kind in self._parents(span):
            if kind == "agent" or (kind == "tool" and not _same_call(outer, parent)):
                break
            if kind == "tool":
                outer = parent
        return outer

    def _read(self, span: Span, call_id: str) -> tuple[Happened, bool]:
        session_id, parent_id, from_trace = self._session_of(span)
        result = result_in(span.attributes)
        status, error = _outcome(span)
        return (
            Happened(
                event_id=record_id("span", session_id, span.trace_id, span.span_id),
                session_id=session_id,
                parent_session_id=parent_id,
                at=instant(self._received_at, span.end_ns, span.start_ns),
                tool=_tool_of(span),
                call_id=call_id,
                agent=agent_of(span.attributes, span.resource, _product(span)),
                arguments=read_arguments(first(span.attributes, names.ARGUMENTS)),
                result=result.value,
                status="error" if result.failed and status != "timeout" else status,
                error=error,
                duration_ms=milliseconds_between(span.start_ns, span.end_ns),
            ),
            from_trace,
        )

    def _turn(self, span: Span) -> tuple[SessionEvent, bool]:
        """Make a turn of a response. The same one, told by two instrumentations, has the provider's id in common."""
        session_id, parent_id, from_trace = self._session_of(span)
        response = text_of(span.attributes.get("gen_ai.response.id"))
        turn = SessionEvent(
            event_id=record_id("turn", session_id, response or f"{span.trace_id}/{span.span_id}"),
            session_id=session_id,
            parent_session_id=parent_id,
            occurred_at=instant(self._received_at, span.end_ns, span.start_ns),
            agent=agent_of(span.attributes, span.resource),
            kind="turn",
            usage=usage_of(span.attributes),
        )
        return turn, from_trace

    def _session_of(self, span: Span) -> tuple[str, str | None, bool]:
        """Give session, its parent, and whether only the trace stands for it.

        In this order: the span's own word, that of the spans around it, that of the trace, the process's, MCP's.
        """
        found = first_text(span.attributes, names.SESSION)
        if found is None:
            around = (first_text(parent.attributes, names.SESSION) for parent, _ in self._parents(span))
            found = next((session for session in around if session), None)
        found = found or self._memory.session_of(span.trace_id) or first_text(span.resource, names.SESSION)
        found = found or text_of(span.attributes.get("mcp.session.id"))
        agent = text_of(span.attributes.get("agent_id")) if span.name.startswith(_CLAUDE_CODE) else None
        return (*sub_session(found or span.trace_id, agent), found is None)

    def _within(self, span: Span, kind: _Kind) -> bool:
        return any(found == kind for _, found in self._parents(span))

    def _parent(self, span: Span) -> tuple[Span, _Kind] | None:
        return self._by_id.get((span.trace_id, span.parent_id))

    def _parents(self, span: Span) -> Iterator[tuple[Span, _Kind]]:
        """Give the spans around one, from the inside out, as far as they are in this request."""
        for _ in range(_MAX_LEVELS):
            parent = self._parent(span)
            if parent is None:
                return
            yield parent
            span = parent[0]


def _kind_of(span: Span) -> _Kind:
    """Say what a span is about: GenAI's operation decides where there is one, then the other conventions' kinds."""
    own = span.attributes
    operation = text_of(own.get("gen_ai.operation.name"))
    kind = (first_text(own, ("openinference.span.kind", "traceloop.span.kind")) or "").lower()
    method = text_of(own.get(_MCP))
    if operation == _TOOL or (operation is None and _is_tool(span, kind, method)):
        return "tool"
    if operation in _AGENTS or (operation is None and kind in _AGENTS):
        return "agent"
    model = kind == "llm" or text_of(own.get("llm.request.type")) in {"chat", "completion"}
    return "response" if operation in _RESPONSES or (operation is None and model) else "other"


def _is_tool(span: Span, kind: str, method: str | None) -> bool:
    if method is not None:
        return method == _MCP_CALL
    return kind == "tool" or span.name == _CLAUDE_CODE_TOOL or span.name.startswith(f"{_TOOL} ")


def _tool_of(span: Span) -> str:
    """Give the name of the tool, empty where none is to be found."""
    named = first_text(span.attributes, names.TOOL)
    if named is not None:
        return named.strip()
    for before in (f"{_TOOL} ", f"{_MCP_CALL} "):
        if span.name.startswith(before):
            return span.name.removeprefix(before).strip()
    return span.name.strip() if "openinference.span.kind" in span.attributes else ""


def _same_call(inner: Span, outer: Span) -> bool:
    """Tell whether a tool's span within another is the same call: the protocol's side of it, or of one id or name."""
    ids = first_text(inner.attributes, names.CALL), first_text(outer.attributes, names.CALL)
    if None not in ids:
        return ids[0] == ids[1]
    return _MCP in inner.attributes or _tool_of(inner) == _tool_of(outer)


def _complete(told: Happened, other: Happened) -> None:
    """Add to a call what another span of it knows. Once it failed it failed."""
    told.tool = told.tool or other.tool
    if told.arguments is UNSET:
        told.arguments = other.arguments
    if told.result is UNSET:
        told.result = other.result
    if told.status in {None, "ok"} and other.status is not None:
        told.status = other.status
    told.error = told.error or other.error
    told.agent = told.agent or other.agent
    told.duration_ms = max(filter(None, (told.duration_ms, other.duration_ms)), default=None)


def _outcome(span: Span) -> tuple[Literal["ok", "error", "timeout"] | None, ErrorInfo | None]:
    """Say how a call ended. A status that nobody set says nothing: many instrumentations never set one."""
    kind = first_text(span.attributes, names.ERROR)
    message = text_of(span.attributes.get("error.message")) or span.status_text or None
    thrown = next((event.attributes for event in span.events if event.name == "exception"), None)
    if thrown is not None:
        kind = kind or text_of(thrown.get("exception.type"))
        message = message or text_of(thrown.get("exception.message"))
    if span.status == _ERROR or kind is not None:
        status: Literal["error", "timeout"] = "timeout" if kind and kind.lower() in _TIMEOUTS else "error"
        return status, failure(kind, message)
    return ("ok" if span.status == _OK else None), None


def _product(span: Span) -> str | None:
    return "claude-code" if span.name.startswith(_CLAUDE_CODE) else None
