"""Reads chats of Gemini CLI, saved (`~/.gemini/tmp/<project>/chats/session-*.json`, `.jsonl`) or as `stream-json`.

A saved chat has messages; one of the type `gemini` holds the calls of a response, each with its result, and the file
of lines repeats a message when something is added to it. Rewinding takes messages from the history, not the calls that
were made. `stream-json` tells each call and each result on a line of its own. A shell command that fails is a success
of the tool; its exit code stands in the text.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from schemas.common import ErrorInfo, Usage
from streams.importers.build import Builder, Call, Session, Status, agent_of
from streams.importers.lines import LineReader, read_lines
from streams.importers.shape import arguments_of, as_count, as_dict, as_list, as_text, as_time, result_of, typed_text
from streams.importers.shell_result import GEMINI_SHELLS, gemini_result

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streams.importers.files import Recording

NAME = "gemini-cli"

_MESSAGES = ("user", "gemini", "info", "error", "warning")
_SAID = ("user", "assistant")
_STATUS: dict[str, Status] = {"success": "ok", "error": "error", "cancelled": "denied"}
_SUBAGENT = "subagent"


def recognise(value: object) -> bool:
    """Tell whether a line or document is one of this format."""
    line = as_dict(value)
    if isinstance(line.get("sessionId"), str) and isinstance(line.get("projectHash"), str):
        return True
    return "$rewindTo" in line or isinstance(line.get("$set"), dict) or ("timestamp" in line and _is_said(line))


def _is_said(line: dict[str, Any]) -> bool:
    kind = line.get("type")
    if kind == "init":
        return isinstance(line.get("session_id"), str)
    if kind in ("tool_use", "tool_result"):
        return isinstance(line.get("tool_id"), str)
    if kind == "message":
        return line.get("role") in _SAID and isinstance(line.get("content"), str)
    return kind == "gemini" and isinstance(line.get("id"), str)


class Reader(LineReader):
    """Reads the lines of a chat, or a whole one as a single line."""

    NAME = NAME

    def __init__(self, source: str) -> None:
        super().__init__(source)
        path = PurePath(source)
        self._folder = path.parent.name
        self._builder = Builder(path.name.split(".json")[0], agent_of(NAME))
        self.builders[""] = self._builder
        self._by_id: dict[str, Call] = {}
        self._messages: set[str] = set()
        self._latest = ""
        self._named = False

    def feed(self, value: object) -> None:
        """Take the next line."""
        line = as_dict(value)
        kind = line.get("type")
        update = as_dict(line.get("$set"))
        if isinstance(line.get("projectHash"), str):
            self._begin(line)
            for message in as_list(line.get("messages")):
                self.feed(message)
        elif "messages" in update:  # older results were masked, or all before was made a summary
            self._builder.happened("context_trimmed", as_time(update.get("lastUpdated")))
        elif kind in _MESSAGES and "tool_id" not in line:
            self._message(line)
        else:
            self._event(line)

    def finish(self) -> Iterator[Session]:
        """Give the chat, if there is anything in it."""
        if self._named or self._builder.entries:
            yield from super().finish()

    def _begin(self, head: dict[str, Any]) -> None:
        if self._named:
            return
        self._named = True
        self._builder.session_id = Builder(as_text(head.get("sessionId")) or self._builder.session_id).session_id
        if head.get("kind") == _SUBAGENT and self._folder not in {"", "chats"}:  # it is named after its parent
            self._builder.parent = Builder(self._folder).session_id
        self._builder.happened("started", as_time(head.get("startTime")))

    def _message(self, message: dict[str, Any]) -> None:
        name, at = as_text(message.get("id")) or "", as_time(message.get("timestamp"))
        if name != self._latest:
            self._latest = name
            self._builder.settle()
        if message.get("type") == "user":
            if name not in self._messages and typed_text(message.get("content")):
                self._builder.happened("user_message", at)
        elif message.get("type") == "gemini":
            self._model(message.get("model"))
            calls = [self._told(as_dict(told), message) for told in as_list(message.get("toolCalls"))]
            for call in calls if len(calls) > 1 else ():
                call.batch_id = name or calls[0].call_id
            tokens = as_dict(message.get("tokens"))
            if calls and tokens:
                output = as_count(tokens.get("output")) + as_count(tokens.get("thoughts"))
                calls[0].usage = Usage(input_tokens=as_count(tokens.get("input")), output_tokens=output)
        self._messages.add(name)

    def _told(self, told: dict[str, Any], message: dict[str, Any]) -> Call:
        """Give the call of a message, completed by what this telling of it adds."""
        name = as_text(told.get("id"))
        call = self._by_id.get(name or "")
        if call is None:
            at = as_time(told.get("timestamp")) or as_time(message.get("timestamp"))
            call = self._builder.call(
                Call(as_text(told.get("name")) or "", arguments_of(told.get("args")), at, name),
            )
            if name is not None:
                self._by_id[name] = call
        status = _STATUS.get(as_text(told.get("status")) or "")
        if status is not None and not call.settled:
            call.settled = True
            call.status = status
            _shell(call, _response(told.get("result")))
        return call

    def _event(self, line: dict[str, Any]) -> None:
        kind, at, name = line.get("type"), as_time(line.get("timestamp")), as_text(line.get("tool_id"))
        if kind == "init" and not self._named:
            self._named = True
            self._builder.session_id = Builder(as_text(line.get("session_id")) or self._builder.session_id).session_id
            self._model(line.get("model"))
            self._builder.happened("started", at)
        elif kind == "message" and line.get("role") == "user":
            self._builder.settle()
            self._builder.happened("user_message", at)
        elif kind == "message":
            self._builder.settle()
        elif kind == "tool_use" and name is not None and name not in self._by_id:
            tool, arguments = as_text(line.get("tool_name")) or "", arguments_of(line.get("parameters"))
            self._by_id[name] = self._builder.call(Call(tool, arguments, at, name))
        elif kind == "tool_result" and name in self._by_id and not self._by_id[name].settled:
            call = self._by_id[name]
            call.settled = True
            call.status = _STATUS.get(as_text(line.get("status")) or "")
            error = as_dict(line.get("error"))
            output = line.get("output")
            _shell(call, result_of(output) if output is not None else result_of(error.get("message")))
            if call.status == "error" and call.error is None and as_text(error.get("type")):
                call.error = ErrorInfo(type=as_text(error.get("type")))
        elif kind == "result":
            self._builder.settle()
            self._builder.happened("ended", at, as_text(line.get("status")))

    def _model(self, model: object) -> None:
        if self._builder.agent is not None and self._builder.agent.model is None:
            self._builder.agent = agent_of(NAME, model)


def read(recording: Recording, *, whole: bool) -> Iterator[Session]:
    """Read the chat of a file.

    Args:
        recording: the file.
        whole: the file is one JSON document.
    """
    return read_lines(Reader(recording.source), recording, whole=whole)


def _response(result: object) -> Any:
    """Give the text of a result that is given to the model as parts."""
    if result is None:
        return UNSET
    texts: list[str] = []
    for part in result if isinstance(result, list) else [result]:
        answered = as_dict(as_dict(part).get("functionResponse")).get("response")
        answer = as_dict(answered)
        text = answer.get("output", answer.get("error", answered)) if answered is not None else part
        shown = result_of([text] if isinstance(text, dict) else text)
        texts += [shown] if isinstance(shown, str) else []
    return "\n".join(texts)


def _shell(call: Call, result: Any) -> None:
    """Take the result; of a shell command its output, and how it ended."""
    call.result = result
    if call.tool not in GEMINI_SHELLS or not isinstance(result, str):
        return
    call.result, code, _ = gemini_result(result)
    if code and call.status == "ok":
        call.status = "error"
        call.error = ErrorInfo(code=code)
