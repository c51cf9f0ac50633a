"""Says which log records are tool calls: the events that Claude Code, Codex and Gemini CLI send as logs.

Also what they say of the session: a person's word, and what a response of the model consumed. Other records give
nothing. Each record is judged by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import UNSET

from schemas.common import ErrorInfo
from schemas.events import SessionEvent, ToolCall
from streams.identity import record_id, sub_session
from streams.importers.shape import as_time
from streams.importers.shell_result import codex_result
from streams.otlp import attributes as names
from streams.otlp.attributes import agent_of, first, first_text, number_of, text_of, truth_of, usage_of
from streams.otlp.mapped import Happened, Mapped, Observed, Passed, failure, instant, traceparent
from streams.otlp.values import read_arguments, result_in

if TYPE_CHECKING:
    from datetime import datetime

    from streams.otlp.items import LogRecord, Logs

_CLAUDE_CODE: Final = "claude_code."
_PRODUCTS: Final = {_CLAUDE_CODE: "claude-code", "codex.": "codex", "gemini_cli.": "gemini-cli"}
_CALLS: Final = frozenset({"claude_code.tool_result", "codex.tool_result", "gemini_cli.tool_call"})
_PROMPTS: Final = frozenset({"claude_code.user_prompt", "codex.user_prompt", "gemini_cli.user_prompt"})
_RESPONSES: Final = frozenset({"claude_code.api_request", "codex.sse_event", "gemini_cli.api_response"})
_COMPLETED: Final = "response.completed"  # of Codex's events of one response, that with the usage
_SCOPE: Final = "com.anthropic.claude_code"  # whose attribute event.name lacks the prefix that the body has
_SERVICE: Final = "claude-code"

_Status = Literal["ok", "error", "timeout", "denied"]


def map_logs(logs: Logs, received_at: datetime) -> Mapped:
    """Make events of log records.

    Args:
        logs: the request.
        received_at: when it came; for records without times.

    Returns:
        Events of tool calls, people's messages and responses, and counts of the other records.
    """
    mapped = Mapped()
    for record in logs.records:
        made = _event(record, received_at)
        if isinstance(made, str):
            mapped.passed[made] += 1
        else:
            event, from_trace = made
            mapped.add(Observed(event, traceparent(record.trace_id, record.span_id)), from_trace=from_trace)
    return mapped


def _event(record: LogRecord, received_at: datetime) -> tuple[ToolCall | SessionEvent, bool] | Passed:
    own, name = record.attributes, _name_of(record)
    is_response = name in _RESPONSES and (name != "codex.sse_event" or own.get("event.kind") == _COMPLETED)
    if not (name in _CALLS or name in _PROMPTS or is_response):
        return "not_a_tool_call"
    session = first_text(own, names.SESSION) or first_text(record.resource, names.SESSION)
    if not (session or record.trace_id):
        return "no_session_id"
    session_id, parent_id = sub_session(session or record.trace_id, text_of(own.get("agent_id")))
    number = own.get("event.sequence")
    call_id = first_text(own, names.CALL) or ""
    what = (name, call_id, str(record.time_ns or record.observed_ns) if number is None else str(number))
    happened = Happened(
        event_id=record_id("log", session_id, *what),
        session_id=session_id,
        parent_session_id=parent_id,
        at=instant(received_at, record.time_ns, _nanos_of(own.get("event.timestamp")), record.observed_ns),
        tool=(first_text(own, names.TOOL) or "").strip(),
        call_id=call_id,
        agent=agent_of(own, record.resource, _PRODUCTS[name.partition(".")[0] + "."]),
    )
    if name not in _CALLS:
        return _session_event(happened, own, is_response=is_response), session is None
    return (_tool_call(happened, name, own), session is None) if happened.tool else "no_tool_name"


def _session_event(happened: Happened, own: dict[str, Any], *, is_response: bool) -> SessionEvent:
    """Make an event of the session of a person's word or of a response, which has the provider's id if it is told."""
    response = first_text(own, ("gen_ai.response.id", "request_id", "response_id")) if is_response else None
    return SessionEvent(
        event_id=record_id("turn", happened.session_id, response) if response else happened.event_id,
        session_id=happened.session_id,
        parent_session_id=happened.parent_session_id,
        occurred_at=happened.at,
        agent=happened.agent,
        kind="turn" if is_response else "user_message",
        usage=usage_of(own) if is_response else None,
    )


def _tool_call(happened: Happened, name: str, own: dict[str, Any]) -> ToolCall:
    result = result_in(own)
    happened.arguments = UNSET if _is_cut(own) else read_arguments(first(own, names.ARGUMENTS))
    happened.result = result.value
    happened.error = failure(first_text(own, names.ERROR), text_of(own.get("error")))
    if name == "codex.tool_result" and isinstance(result.value, str):
        happened.result, code, _ = codex_result(result.value)
        happened.error = happened.error or (ErrorInfo(code=code) if code else None)
    happened.status = _status(own, failed=result.failed or happened.error is not None)
    happened.duration_ms = number_of(own.get("duration_ms"))
    return happened.event()


def _name_of(record: LogRecord) -> str:
    """Give the event's name with its prefix, from wherever it stands."""
    for value in (record.event_name, record.attributes.get("event.name"), record.body):
        name = value if isinstance(value, str) else ""
        if name.startswith(tuple(_PRODUCTS)):
            return name
    name = text_of(record.attributes.get("event.name")) or record.event_name
    of_claude_code = record.scope.startswith(_SCOPE) or record.resource.get("service.name") == _SERVICE
    return f"{_CLAUDE_CODE}{name}" if of_claude_code else name


def _nanos_of(value: Any) -> int:
    """Give the time of an attribute, ISO 8601 or a number since 1970, in nanoseconds; 0 where there is none."""
    at = as_time(value)
    return 0 if at is None else int(at.timestamp() * 1_000_000) * 1_000


def _is_cut(own: dict[str, Any]) -> bool:
    """Tell whether Claude Code cut the arguments, which it does value by value: then it says their whole size."""
    text, size = own.get("tool_input"), number_of(own.get("tool_input_size_bytes"))
    return isinstance(text, str) and size is not None and len(text.encode("utf-8", "replace")) < size


def _status(own: dict[str, Any], *, failed: bool) -> _Status | None:
    if "reject" in {own.get("decision"), own.get("decision_type")}:
        return "denied"
    success = truth_of(own.get("success"))
    if success is False or failed:
        return "error"
    return "ok" if success else None
