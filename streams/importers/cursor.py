"""Reads runs of Cursor's command line (`--output-format stream-json`) and transcripts of its agents.

In the stream a call is a `tool_call` line when it starts and another when it is completed, by `call_id`; the tool is
the key of its object (`readToolCall`), and the result says by its key how it ended. The transcripts
(`~/.cursor/projects/<directory>/agent-transcripts/**/<id>.jsonl`) have the calls, mostly without results and always
without ids and times: what was not recorded is not taken for empty.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from schemas.common import ErrorInfo
from streams.importers.build import Builder, Call, Session, Status, agent_of
from streams.importers.lines import LineReader, read_lines
from streams.importers.shape import arguments_of, as_amount, as_dict, as_list, as_text, as_time, result_of, typed_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from streams.importers.files import Recording

NAME = "cursor"

_SUFFIX = "ToolCall"
_LABELS = {"toolCallId"}
"""Arguments that are another each time and say nothing of what is done."""

_ENDS: dict[str, Status] = {
    "success": "ok",
    "failure": "error",
    "error": "error",
    "rejected": "denied",
    "permissionDenied": "denied",
    "timeout": "timeout",
}
_TEXTS = ("interleavedOutput", "content", "errorMessage", "message", "reason")
_MS_DIGITS = 15
"""Digits of milliseconds since 1970, up to the year 9999."""

_TIMES = {"executionTime", "localExecutionTimeMs", "executionTimeMs"}


def recognise(value: object) -> bool:
    """Tell whether a line is one of this format."""
    line = as_dict(value)
    if "type" not in line:
        said = as_dict(line.get("message")).get("content")
        return line.get("role") in ("user", "assistant") and isinstance(said, list)
    if line.get("type") == "tool_call":
        return isinstance(line.get("tool_call"), dict) and "subtype" in line
    is_start = line.get("type") == "system" and line.get("subtype") == "init" and "session_id" in line
    return is_start and "apiKeySource" in line and "tools" not in line and "uuid" not in line


class Reader(LineReader):
    """Reads the lines of a run or of a transcript."""

    NAME = NAME

    def __init__(self, source: str) -> None:
        super().__init__(source)
        path = PurePath(source)
        parent = path.parent.parent.name if path.parent.name == "subagents" else None
        self._builder = Builder(path.name.split(".")[0], agent_of(NAME), parent=parent)
        self.builders[""] = self._builder
        self._by_id: dict[str, Call] = {}
        self._waiting: list[Call] = []
        self._named = False

    def feed(self, value: object) -> None:
        """Take the next line."""
        line = as_dict(value)
        at = as_time(line.get("timestamp_ms")) or _started(as_dict(line.get("tool_call")))
        name = as_text(line.get("session_id"))
        if name is not None and not self._named:
            self._named = True
            self._builder.session_id = Builder(name).session_id
        kind = line.get("type", line.get("role"))
        if kind == "system" and self._builder.agent is not None and self._builder.agent.model is None:
            self._builder.agent = agent_of(NAME, line.get("model"))
        elif kind == "tool_call":
            self._tool_call(line, at)
        elif kind == "user":
            self._user(as_dict(line.get("message")).get("content"), at)
        elif kind == "assistant" and "type" not in line:
            self._said(as_list(as_dict(line.get("message")).get("content")))
        elif kind == "result":
            self._builder.settle()
            self._builder.happened("ended", at, as_text(line.get("subtype")))

    def finish(self) -> Iterator[Session]:
        """Give the session, if there is anything in it."""
        if self._named or self._builder.entries:
            yield from super().finish()

    def _user(self, content: object, at: datetime | None) -> None:
        results = [block for block in map(as_dict, as_list(content)) if block.get("type") == "tool_result"]
        for block in results:
            if self._waiting:  # without ids they come in the order of the calls
                call = self._waiting.pop(0)
                call.result = result_of(block.get("content"))
                call.settled = True
        if not results and typed_text(content):
            self._builder.settle()
            self._builder.happened("user_message", at)

    def _said(self, blocks: list[Any]) -> None:
        """Take an answer of a transcript."""
        self._builder.settle()
        self._waiting.clear()
        for block in map(as_dict, blocks):
            if block.get("type") == "tool_use":
                call = Call(as_text(block.get("name")) or "", arguments_of(block.get("input")))
                self._waiting.append(self._builder.call(call))
            elif block.get("type") == "tool_result" and self._waiting:
                self._waiting[0].settled = True
                self._waiting.pop(0).result = result_of(block.get("content"))

    def _tool_call(self, line: dict[str, Any], at: datetime | None) -> None:
        name = as_text(line.get("call_id")) or as_text(as_dict(line.get("tool_call")).get("toolCallId"))
        tool, body = _tool(as_dict(line.get("tool_call")))
        done = line.get("subtype") == "completed"
        call = self._by_id.get(name) if name is not None else self._unnamed(tool) if done else None
        if call is None or (call.settled and not done):
            arguments = arguments_of(body.get("args", body.get("arguments", UNSET)))
            if isinstance(arguments, dict):
                arguments = {key: part for key, part in arguments.items() if key not in _LABELS}
            call = self._builder.call(Call(tool, arguments, at, name))
            if name is not None:
                self._by_id[name] = call
            elif not done:
                self._waiting.append(call)
        if done and not call.settled:
            call.settled = True
            if at is not None and call.at is not None and at > call.at:
                call.duration_ms = (at - call.at).total_seconds() * 1000
            _ended(call, body.get("result"))

    def _unnamed(self, tool: str) -> Call | None:
        """Find the call that a line without an id is about."""
        call = next((call for call in self._waiting if call.tool == tool), None)
        if call is not None:
            self._waiting.remove(call)
        return call


def read(recording: Recording, *, whole: bool) -> Iterator[Session]:
    """Read the session of a file.

    Args:
        recording: the file.
        whole: the file is one JSON document.
    """
    return read_lines(Reader(recording.source), recording, whole=whole)


def _started(told: dict[str, Any]) -> datetime | None:
    """Give when a call began or ended, where the line itself has no time: milliseconds as a text."""
    text = as_text(told.get("completedAtMs")) or as_text(told.get("startedAtMs")) or ""
    return as_time(int(text)) if text.isascii() and text.isdigit() and len(text) <= _MS_DIGITS else None


def _tool(told: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Give the name of a tool and what is told of its call."""
    function = as_dict(told.get("function"))
    if function:
        return as_text(function.get("name")) or "", function
    key = next((key for key in told if key.endswith(_SUFFIX) and isinstance(told[key], dict)), None)
    return ("", {}) if key is None else (key.removesuffix(_SUFFIX), as_dict(told[key]))


def _ended(call: Call, result: object) -> None:
    """Take a result: an object whose key says how the call ended."""
    told = as_dict(result)
    end = next((key for key in _ENDS if key in told), None)
    if end is None:
        call.result = UNSET if result is None else result_of([result] if isinstance(result, dict) else result)
        return
    body = told[end]
    call.status = _ENDS[end]
    call.result = _text(body)
    code = as_dict(body).get("exitCode")
    if call.tool == "shell" and end == "success":
        call.status = None  # unless the exit code says it
    if isinstance(code, int) and not isinstance(code, bool) and told.get("isBackground") is not True:
        call.status = "ok" if code == 0 else "error"
        call.error = ErrorInfo(code=code) if code else None
    duration = as_amount(as_dict(body).get("executionTime"))
    call.duration_ms = call.duration_ms if duration is None else duration


def _text(body: object) -> Any:
    """Give the text of a result, or all of it but for times where it has none."""
    if not isinstance(body, dict):
        return result_of(body)
    text = next((body[key] for key in _TEXTS if isinstance(body.get(key), str) and body[key]), None)
    if text is not None:
        return text
    outputs = [body[key] for key in ("stdout", "stderr") if isinstance(body.get(key), str)]
    if outputs:
        return "".join(outputs)
    return result_of([{key: part for key, part in body.items() if key not in _TIMES}])
