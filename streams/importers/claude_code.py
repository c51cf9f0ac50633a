"""Reads transcripts of Claude Code (`~/.claude/projects/<directory>/<session>.jsonl`) and its `stream-json` output.

One JSON object a line; lines of other types than `user`, `assistant` and `system` are bookkeeping and passed by. One
model response may be split over several lines with the same message id: their calls are one batch, their usage counts
once. Sub-agents (a file of their own, or `isSidechain` lines) become sessions `<session>:<agent>`. A call or result
that is there twice, as after a compaction or in a resumed session, counts once. The format is internal to the product
and changes without notice, so that nothing unknown is an error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from schemas.common import ErrorInfo, Usage
from streams.importers.build import Builder, Call, Session, agent_of
from streams.importers.lines import LineReader, read_lines
from streams.importers.mend import CUT
from streams.importers.shape import arguments_of, as_amount, as_count, as_dict, as_list, as_text, as_time, result_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from streams.importers.files import Recording

NAME = "claude-code"

_OWN_TYPES = {"file-history-snapshot": "messageId", "summary": "leafUuid", "queue-operation": "operation"}
_TALK = ("user", "assistant", "system")

_REFUSALS = ("The user doesn't want to", "Permission to use ", "The user rejected")
"""How the answer begins when a person or a rule did not let a call run."""

_NOT_TYPED = (
    "<local-command-",
    "<bash-stdout>",
    "<bash-stderr>",
    "<task-notification>",
    "<system-reminder>",
    "[Request interrupted",
    "Caveat: ",
)
"""How texts begin that stand where the user's do and were written by the program."""


_STREAM_MARKS = ("uuid", "parent_tool_use_id", "tools")
"""What lines of `stream-json` have here and in no other agent's; of old versions, the response's id."""


def recognise(value: object) -> bool:
    """Tell whether a line is one of this format."""
    line = as_dict(value)
    kind = as_text(line.get("type")) or ""
    if kind in _OWN_TYPES:
        return _OWN_TYPES[kind] in line
    if kind not in _TALK:
        return False
    if isinstance(line.get("sessionId"), str):
        return "message" in line or "uuid" in line or "subtype" in line
    message = as_dict(line.get("message"))
    marked = any(mark in line for mark in _STREAM_MARKS) or "id" in message or _has_result(message)
    return isinstance(line.get("session_id"), str) and marked


def _has_result(message: dict[str, Any]) -> bool:
    return any(as_dict(block).get("type") == "tool_result" for block in as_list(message.get("content")))


@dataclass(slots=True)
class _Scope:
    """A session that is being collected, with what later lines of it refer to."""

    builder: Builder
    by_id: dict[str, Call] = field(default_factory=dict)
    responses: dict[str, list[Call]] = field(default_factory=dict)
    usage: dict[str, Usage] = field(default_factory=dict)
    latest: str = ""
    side: bool = False


class Reader(LineReader):
    """Reads the lines of a transcript, or of a headless run's output."""

    NAME = NAME

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self._scopes: dict[str, _Scope] = {}
        self._branches: dict[str, str] = {}
        self._fallback = PurePath(source).name.split(".")[0]

    def feed(self, value: object) -> None:
        """Take the next line; bookkeeping is passed by."""
        line = as_dict(value)
        if line.get("type") not in _TALK:
            return
        session = as_text(line.get("sessionId")) or as_text(line.get("session_id")) or self._fallback
        agent = _agent(line, self._branches)
        name = f"{session}:{agent}" if agent else session
        scope = self._scopes.get(name)
        if scope is None:
            builder = Builder(name, agent_of(NAME, agent_id=agent), parent=session if agent else None)
            scope = self._scopes[name] = _Scope(builder, side=agent is not None)
            self.builders[name] = builder
        _take(scope, line)


def read(recording: Recording, *, whole: bool) -> Iterator[Session]:
    """Read the sessions of a file.

    Args:
        recording: the file.
        whole: the file is one JSON document.
    """
    return read_lines(Reader(recording.source), recording, whole=whole)


def _agent(line: dict[str, Any], branches: dict[str, str]) -> str | None:
    """Name the sub-agent that a line belongs to; None for the session's own.

    Old versions did not name it: there, lines that descend from one root are one sub-agent's.
    """
    named = as_text(line.get("agentId")) or as_text(line.get("parent_tool_use_id"))
    if named or line.get("isSidechain") is not True:
        return named
    own = as_text(line.get("uuid")) or ""
    branch = branches.get(as_text(line.get("parentUuid")) or "", own)
    branches[own] = branch
    return branch or "sidechain"


def _take(scope: _Scope, line: dict[str, Any]) -> None:
    at = as_time(line.get("timestamp"))
    message = as_dict(line.get("message"))
    content = message.get("content")
    if line.get("type") == "assistant":
        _response(scope, message, at)
    elif line.get("type") == "system":
        if as_text(line.get("subtype")) in {"compact_boundary", "microcompact_boundary"}:
            scope.builder.happened("context_trimmed", at)
    elif line.get("isCompactSummary") is True:
        scope.builder.happened("context_trimmed", at)
    else:
        results = [block for block in map(as_dict, as_list(content)) if block.get("type") == "tool_result"]
        for block in results:
            _result(scope, block, line)
        if not results and not scope.side and line.get("isMeta") is not True and _typed(content):
            scope.builder.settle()
            scope.builder.happened("user_message", at)


def _response(scope: _Scope, message: dict[str, Any], at: datetime | None) -> None:
    response = as_text(message.get("id")) or f"response-{len(scope.responses)}"
    if response != scope.latest:
        scope.latest = response
        scope.builder.settle()
    calls = scope.responses.setdefault(response, [])
    for block in map(as_dict, as_list(message.get("content"))):
        call_id = as_text(block.get("id"))
        if block.get("type") != "tool_use" or (call_id is not None and call_id in scope.by_id):
            continue
        arguments = arguments_of(block.get("input"))
        call = scope.builder.call(Call(as_text(block.get("name")) or "", arguments, at, call_id))
        calls.append(call)
        if call_id is not None:
            scope.by_id[call_id] = call
        model = as_text(message.get("model"))
        if scope.builder.agent is not None and scope.builder.agent.model is None and model:
            scope.builder.agent = agent_of(NAME, model, scope.builder.agent.id)
    _account(scope, response, as_dict(message.get("usage")))


def _account(scope: _Scope, response: str, usage: dict[str, Any]) -> None:
    """Give a response's calls what its latest line says of all of them."""
    if usage:
        read_tokens = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        scope.usage[response] = Usage(
            input_tokens=sum(as_count(usage.get(name)) for name in read_tokens),
            output_tokens=as_count(usage.get("output_tokens")),
        )
    calls = scope.responses[response]
    if calls:
        calls[0].usage = scope.usage.get(response)
    for call in calls if len(calls) > 1 else ():
        call.batch_id = response


def _result(scope: _Scope, block: dict[str, Any], line: dict[str, Any]) -> None:
    call = scope.by_id.get(as_text(block.get("tool_use_id")) or "")
    if call is None or call.status is not None:
        return
    call.settled = True
    detail = as_dict(line.get("toolUseResult"))
    duration = as_amount(detail.get("durationMs")) or as_amount(detail.get("totalDurationMs"))
    seconds = as_amount(detail.get("durationSeconds"))
    call.duration_ms = duration if duration is not None or seconds is None else seconds * 1000
    if CUT in block:
        return  # the result, or whether it is an error, is lost
    content = block.get("content")
    call.result = "" if content is None else result_of(content)
    call.status = "ok"
    if block.get("is_error") is True:
        text = call.result if isinstance(call.result, str) else ""
        if text.startswith(_REFUSALS):
            call.status = "denied"
        elif "Command timed out after" in text[:500]:
            call.status = "timeout"
        else:
            call.status = "error"
            call.error = ErrorInfo(type="tool_use_error") if text.startswith("<tool_use_error>") else None


def _typed(content: object) -> bool:
    """Tell whether a user's line was written by a person."""
    texts = [content] if isinstance(content, str) else [as_dict(block).get("text") for block in as_list(content)]
    first = next((text for text in texts if isinstance(text, str)), None)
    if first is None:
        return bool(texts)  # a picture alone
    return bool(first.strip()) and not first.lstrip().startswith(_NOT_TYPED)
