"""Reads trajectories of mini-swe-agent (`<instance>.traj.json`), in text form and in tool-call form.

One JSON document with `messages`. An action is the only `bash` block of an answer, or stands in `extra.actions`; the
message behind it is its result. An answer from which the harness could not take an action counts as a call of the tool
`(format_error)` that failed, as a run of them is a way to spin; from version 2 on such an answer is not kept, and only
the harness's reply to it shows that there was one.
"""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from schemas.common import ErrorInfo, Usage
from streams.importers.build import Builder, Call, Session, Status, agent_of, recording_id
from streams.importers.shape import as_amount, as_count, as_dict, as_list, as_text, as_time, result_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streams.importers.files import Recording

NAME = "mini-swe-agent"
TOOL = "bash"
FORMAT_ERROR = "(format_error)"
FORMAT_INTERRUPT = "FormatError"

MAX_RESPONSE_CHARS = 4_000
"""How much is kept of an answer that could not be read."""

_OPENS = re.compile(r"```(?:bash|sh|mswea_bash_command)[^\S\n]*\n")
_CLOSES = "\n```"
_RETURN_CODE = re.compile(r"\s*<returncode>(-?\d+)</returncode>\n?")
_TIMED_OUT = re.compile(r"The last command .{0,20}<command>.*?timed out", re.DOTALL)


def recognise(value: object) -> bool:
    """Tell whether a document is one of this format."""
    document = as_dict(value)
    info = as_dict(document.get("info"))
    if not isinstance(document.get("messages"), list):
        return False
    return (as_text(document.get("trajectory_format")) or "").startswith(NAME) or "mini_version" in info


def read(recording: Recording, *, whole: bool) -> Iterator[Session]:
    """Read the session of a file.

    Args:
        recording: the file.
        whole: the file is one JSON document.
    """
    stem = re.sub(r"\.traj(?:\.json)?(?:\.gz)?$", "", PurePath(recording.source).name)
    for _, value, text in recording.values(whole=whole):
        document = as_dict(value)
        if not recognise(document):
            continue
        info = as_dict(document.get("info"))
        model = as_dict(as_dict(info.get("config")).get("model")).get("model_name")
        name = as_text(document.get("instance_id")) or stem
        builder = Builder(recording_id(name, text), agent_of(NAME, model))
        builder.happened("started")
        waiting: list[Call] = []
        for message in map(as_dict, as_list(document.get("messages"))):
            waiting = _message(builder, message, waiting)
        exit_status = as_text(info.get("exit_status"))
        if exit_status:
            builder.happened("ended", reason=exit_status)
        yield builder.build(recording.source, NAME)


def _message(builder: Builder, message: dict[str, Any], waiting: list[Call]) -> list[Call]:
    """Take one message; give the calls that still wait for their results."""
    role = as_text(message.get("role"))
    extra = as_dict(message.get("extra"))
    if role == "assistant" or (role is None and isinstance(extra.get("actions"), list)):  # of the Responses API
        return _answer(builder, message, extra)
    kept = any(call.tool == FORMAT_ERROR for call in waiting)
    if extra.get("interrupt_type") == FORMAT_INTERRUPT and not kept:
        builder.call(_unreadable(message, extra))
        return []
    is_output = message.get("type") == "function_call_output"
    if role not in {"user", "tool"} and not is_output:
        return waiting
    if not waiting:
        if role == "user":
            builder.happened("user_message", as_time(extra.get("timestamp")))
        return waiting
    own_id = as_text(message.get("tool_call_id")) or as_text(message.get("call_id"))
    call = next((call for call in waiting if own_id and call.call_id == own_id), waiting[0])
    _result(call, message.get("output" if is_output else "content"), extra)
    return [other for other in waiting if other is not call]


def _unreadable(message: dict[str, Any], extra: dict[str, Any]) -> Call:
    """Make a call of the harness's reply to an answer that it could not read."""
    said = as_text(extra.get("model_response"))
    arguments: Any = UNSET if said is None else {"response": said[:MAX_RESPONSE_CHARS]}
    return Call(
        FORMAT_ERROR,
        arguments,
        as_time(extra.get("timestamp")),
        result=result_of(message.get("content")),
        status="error",
        error=ErrorInfo(type="format_error"),
    )


def _answer(builder: Builder, message: dict[str, Any], extra: dict[str, Any]) -> list[Call]:
    response = as_dict(extra.get("response"))
    at = as_time(extra.get("timestamp")) or as_time(response.get("created"))
    content = result_of(message.get("content"))
    text = content if isinstance(content, str) else ""
    actions = _actions(extra, text)
    if actions is None:
        arguments = {"response": text[:MAX_RESPONSE_CHARS]}
        calls = [Call(FORMAT_ERROR, arguments, at, status="error", error=ErrorInfo(type="format_error"))]
    else:
        calls = [Call(TOOL, {"command": command}, at, call_id) for command, call_id in actions]
    if len(calls) > 1:
        batch = as_text(response.get("id")) or f"{builder.session_id}#batch-{len(builder.entries)}"
        for call in calls:
            call.batch_id = batch
    if calls:
        calls[0].usage = _usage(response, extra)
    return [builder.call(call) for call in calls]


def _actions(extra: dict[str, Any], text: str) -> list[tuple[str, str | None]] | None:
    """Give an answer's commands with the model's ids; None when the harness could not read it."""
    told = extra.get("actions")
    if isinstance(told, list):
        pairs = [(as_text(as_dict(action).get("command")), as_dict(action).get("tool_call_id")) for action in told]
        return [(command, as_text(call_id)) for command, call_id in pairs if command is not None] or None
    found = list(_blocks(text))
    return [(found[0], None)] if len(found) == 1 else None


def _blocks(text: str) -> Iterator[str]:
    """Give the blocks of commands in a text; one that does not end is none, and nothing behind it is looked at."""
    end = 0
    while (opened := _OPENS.search(text, end)) and (end := text.find(_CLOSES, opened.end())) >= 0:
        yield text[opened.end() : end].strip()
        end += len(_CLOSES)


def _usage(response: dict[str, Any], extra: dict[str, Any]) -> Usage | None:
    usage = as_dict(response.get("usage"))
    cost = as_amount(extra.get("cost")) or as_amount(usage.get("cost"))
    if not usage and cost is None:
        return None
    return Usage(
        input_tokens=as_count(usage.get("prompt_tokens")) if usage else None,
        output_tokens=as_count(usage.get("completion_tokens")) if usage else None,
        cost_usd=cost,
    )


def _result(call: Call, content: object, extra: dict[str, Any]) -> None:
    shown = result_of(content)
    text = shown if isinstance(shown, str) else ""
    if call.tool == FORMAT_ERROR:
        call.result = shown
        return
    code: object = extra.get("returncode")
    marked = _RETURN_CODE.match(text)
    if marked:
        text = text[marked.end() :]
        code = int(marked[1]) if code is None else code
    raw = extra.get("raw_output")
    call.result = raw if isinstance(raw, str) else UNSET if shown is UNSET else text
    call.status = _status(code, text, extra)
    if call.status == "error" and isinstance(code, int):
        call.error = ErrorInfo(code=code)


def _status(code: object, text: str, extra: dict[str, Any]) -> Status | None:
    exception = as_text(extra.get("exception_info")) or ""
    if "Timeout" in exception or "timed out" in exception or _TIMED_OUT.match(text):
        return "timeout"
    if isinstance(code, int):
        return "ok" if code == 0 else "error"
    return "error" if exception else None
