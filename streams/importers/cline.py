"""Reads tasks of Cline and Roo Code (`tasks/<id>/api_conversation_history.json`), and lists of Anthropic messages.

A call is a block of the type `tool_use`, or a tag in the text (see `cline_tags`); results of tags have no ids and come
in the order of the calls. `task_progress` is a label for people. An answer that holds no call, which the program then
asks for, counts as a call of `(format_error)`, as a run of them is a way to spin.
"""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from schemas.common import ErrorInfo, Usage
from streams.importers.build import Builder, Call, Session, agent_of, recording_id
from streams.importers.cline_tags import calls_in, result_in
from streams.importers.mend import NotJson, parse
from streams.importers.shape import arguments_of, as_amount, as_count, as_dict, as_list, as_text, as_time, result_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from streams.importers.files import Recording

NAME = "cline"
FORMAT_ERROR = "(format_error)"

MAX_RESPONSE_CHARS = 4_000
"""How much is kept of an answer that held no call."""

_HISTORY = "api_conversation_history"
_LOOKED_AT = 50
_LABELS = {"task_progress"}
_BLOCKS = ("tool_use", "tool_result")
_FRAMES = ("<task>", "<user_message>", "<environment_details>")
_NO_TOOL = "[ERROR] You did not use a tool in your previous response"
_TRIMMED = "[NOTE] Some previous conversation history with the user has been removed"
_NOT_TYPED = ("[", "<environment_details>", "The user denied", "<file_content", "<final_file_content", "(tool did not")
_NOTHING = "(tool did not return anything)"
_DENIED = "The user denied this operation"
_FAILED = "The tool execution failed with the following error"
_ASKS = ("ask_followup_question", "attempt_completion", "plan_mode_respond", "plan_mode_response")
_WORDS = ("<answer>", "<feedback>", "<user_message>")
"""Tools whose result may be a person's, and the tags around what the person says."""

_EXIT_CODE = re.compile(r"^Command executed in terminal[^\n]*?Exit code: (-?\d+)", re.MULTILINE)
_HEAD_CHARS = 600


def recognise(value: object) -> bool:
    """Tell whether a document is one of this format."""
    messages = _messages(value)
    return bool(messages) and any(_is_own(as_dict(message)) for message in messages[:_LOOKED_AT])


def _messages(value: object) -> list[Any]:
    """Give the messages of a document: a list, or of a later form of Roo's an object that has one."""
    document = as_dict(value)
    messages = as_list(document.get("messages")) if "version" in document else as_list(value)
    roles = {as_text(as_dict(message).get("role")) for message in messages[:_LOOKED_AT]}
    return messages if roles and roles <= {"user", "assistant", None} and roles != {None} else []


def _is_own(message: dict[str, Any]) -> bool:
    blocks = _blocks(message)
    if any(block.get("type") in _BLOCKS for block in blocks):
        return True
    texts = [as_text(block.get("text")) or "" for block in blocks if isinstance(message.get("content"), list)]
    return message.get("role") == "user" and any(text.lstrip().startswith(_FRAMES) for text in texts)


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(map(as_dict, as_list(content)))


def read(recording: Recording, *, whole: bool) -> Iterator[Session]:
    """Read the task of a file.

    Args:
        recording: the file.
        whole: the file is one JSON document.
    """
    path = PurePath(recording.source)
    stem = path.name.split(".")[0]
    name = path.parent.name if stem == _HISTORY and path.parent.name else stem
    for _, value, text in recording.values(whole=whole):
        if recognise(value):
            builder = Builder(recording_id(name, text), agent_of(NAME))
            task = _Task(builder)
            for message in map(as_dict, _messages(value)):
                task.take(message)
            yield builder.build(recording.source, NAME)


class _Task:
    """Collects the session of one task."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._by_id: dict[str, Call] = {}
        self._waiting: list[Call] = []
        self._said = ""

    def take(self, message: dict[str, Any]) -> None:
        """Take the next message."""
        at = as_time(message.get("ts"))
        if message.get("isSummary") is True or message.get("isTruncationMarker") is True:
            self._builder.happened("context_trimmed", at)
        elif message.get("role") == "assistant":
            self._answer(message, at)
        elif message.get("role") == "user":
            self._reply(_blocks(message), at)

    def _answer(self, message: dict[str, Any], at: datetime | None) -> None:
        info = as_dict(message.get("modelInfo"))
        if info and self._builder.agent is not None and self._builder.agent.model is None:
            self._builder.agent = agent_of(NAME, info.get("modelId"))
        self._waiting = []
        texts: list[str] = []
        calls: list[Call] = []
        for block in _blocks(message):
            text = as_text(block.get("text"))
            if block.get("type") == "tool_use":
                name = as_text(block.get("id"))
                call = Call(as_text(block.get("name")) or "", _arguments(block.get("input")), at, name)
                calls.append(self._builder.call(call))
                self._by_id[name or ""] = call
            elif block.get("type") == "text" and text is not None:
                texts.append(text)
        self._said = "\n".join(texts)
        if not calls:
            for tool, arguments in calls_in(self._said):
                call = self._builder.call(Call(tool, _arguments(arguments), at))
                calls.append(call)
                self._waiting.append(call)
        for call in calls if len(calls) > 1 else ():
            call.batch_id = f"{self._builder.session_id}#batch-{calls[0].position}"
        tokens = as_dict(as_dict(message.get("metrics")).get("tokens"))
        if calls and tokens:
            calls[0].usage = Usage(
                input_tokens=as_count(tokens.get("prompt")),
                output_tokens=as_count(tokens.get("completion")),
                cost_usd=as_amount(as_dict(message.get("metrics")).get("cost")),
            )
        if any(text.startswith(_TRIMMED) for text in texts):
            self._builder.happened("context_trimmed", at)

    def _reply(self, blocks: list[dict[str, Any]], at: datetime | None) -> None:
        """Take what stands in the user's place: results, the program's words, and a person's."""
        open_result: list[str] | None = None
        answered: Call | None = None
        typed = False
        for block in blocks:
            if block.get("type") == "tool_result":
                call = self._by_id.get(as_text(block.get("tool_use_id")) or "")
                if call is not None and not call.settled:
                    _result(call, block.get("content"), is_error=block.get("is_error"))
                    typed = typed or _said_by_person(call)
                continue
            text = as_text(block.get("text")) or ""
            found = result_in(text)
            if found is not None:
                typed = _close(answered, open_result) or typed
                tool, rest = found
                answered, open_result = self._next(tool), [rest] if rest.strip() else []
            elif text.lstrip().startswith(_NO_TOOL):
                self._unreadable(text, at)
            elif answered is not None and open_result is not None and not text.lstrip().startswith(_FRAMES):
                open_result.append(text)
            else:
                typed = typed or (bool(text.strip()) and not text.lstrip().startswith(_NOT_TYPED))
        typed = _close(answered, open_result) or typed
        if typed:
            self._builder.happened("user_message", at)

    def _next(self, tool: str) -> Call | None:
        """Find the call that a result without an id is of."""
        call = next((call for call in self._waiting if call.tool == tool), None)
        if call is not None:
            self._waiting.remove(call)
        return call

    def _unreadable(self, text: str, at: datetime | None) -> None:
        said = {"response": self._said[:MAX_RESPONSE_CHARS]}
        error = ErrorInfo(type="format_error")
        self._builder.call(Call(FORMAT_ERROR, said, at, result=text, status="error", error=error))


def _arguments(given: object) -> Any:
    arguments = arguments_of(given)
    if isinstance(arguments, dict):
        return {key: part for key, part in arguments.items() if key not in _LABELS}
    return arguments


def _close(call: Call | None, texts: list[str] | None) -> bool:
    """Give a call the texts of its result; tell whether a person wrote them."""
    if call is None or texts is None:
        return False
    _result(call, "\n".join(texts), is_error=None)
    return _said_by_person(call)


def _said_by_person(call: Call) -> bool:
    return call.tool in _ASKS and isinstance(call.result, str) and any(word in call.result for word in _WORDS)


def _result(call: Call, content: object, *, is_error: object) -> None:
    call.settled = True
    found = result_of(content)
    text = found if isinstance(found, str) else ""
    call.result = "" if text.strip() == _NOTHING else found
    said = _status_in(text)
    code = _EXIT_CODE.search(text[:_HEAD_CHARS])
    if said == "denied" or text.startswith(_DENIED):
        call.status = "denied"
    elif is_error is True or said == "error" or text.startswith(_FAILED):
        call.status = "error"
    elif code is not None:
        call.status = "ok" if int(code[1]) == 0 else "error"
        call.error = ErrorInfo(code=int(code[1])) if int(code[1]) else None


def _status_in(text: str) -> str | None:
    """Give what a result says of its own end where it is an object, as Roo writes errors and refusals."""
    if not text.startswith("{") or len(text) > MAX_RESPONSE_CHARS:
        return None
    try:
        return as_text(as_dict(parse(text.encode("utf-8", "replace")).value).get("status"))
    except NotJson:
        return None
