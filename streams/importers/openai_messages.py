"""Reads conversations in the form of OpenAI's Chat Completions: messages with `tool_calls`, answered by role `tool`.

A file is one conversation (a list of messages, or an object with `messages`), a list of such, or one a line; the list
is also found under `traj` or `conversation`, as benchmarks keep it. The form has no error flag and no times. Some
servers give one id to several calls: an id answers the latest call that has it and no answer yet.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from streams.importers.build import Builder, Call, Session, agent_of, recording_id
from streams.importers.shape import arguments_of, as_dict, as_list, as_text, result_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streams.importers.files import Recording

NAME = "openai-messages"

_PLACES = ("messages", "traj", "conversation", "conversations")
_ROLES = {"system", "developer", "user", "assistant", "tool", "function"}


def recognise(value: object) -> bool:
    """Tell whether a line or document is one of this format."""
    if _is_message(value):
        return True
    return any(_messages(conversation) for conversation in _conversations(value)[:10])


def _is_message(value: object) -> bool:
    message = as_dict(value)
    return as_text(message.get("role")) in _ROLES and ("content" in message or "tool_calls" in message)


def _conversations(value: object) -> list[object]:
    """Give the conversations of a value, each a list of messages or an object that has one."""
    if isinstance(value, list) and not _messages(value):
        return value
    return [value]


def _messages(conversation: object) -> list[dict[str, Any]]:
    """Give a conversation's messages; none when it is no conversation."""
    listed = conversation if isinstance(conversation, list) else None
    for place in _PLACES if listed is None else ():
        listed = listed or as_list(as_dict(conversation).get(place))
    messages = [as_dict(message) for message in listed or []]
    is_talk = all(as_text(message.get("role")) in _ROLES for message in messages[:3])
    return messages if is_talk else []


def read(recording: Recording, *, whole: bool) -> Iterator[Session]:
    """Read the sessions of a file.

    Args:
        recording: the file.
        whole: the file is one JSON document.
    """
    stem = PurePath(recording.source).name.split(".")[0]
    loose: list[dict[str, Any]] = []
    for number, value, text in recording.values(whole=whole):
        conversations = _conversations(value)
        base = recording_id(stem if whole else f"{stem}-{number}", text)
        if _is_message(value):  # one message a line
            loose.append(as_dict(value))
            continue
        for index, conversation in enumerate(conversations):
            messages = _messages(conversation)
            if messages:
                name = f"{base}/{_name(conversation, index)}" if len(conversations) > 1 else base
                yield _session(recording, name, as_dict(conversation), messages)
    if loose:
        first = repr(loose[:3]).encode("utf-8", "replace")
        yield _session(recording, recording_id(stem, first), {}, loose)


def _name(conversation: object, index: int) -> str:
    """Name one of a file's conversations: by its own identifier, else by task and trial, else by its position."""
    record = as_dict(conversation)
    own = as_text(record.get("id")) or as_text(record.get("session_id"))
    if own:
        return own
    parts = [f"{key.removesuffix('_id')}{record[key]}" for key in ("task_id", "trial") if key in record]
    return "/".join([*parts, *([] if len(parts) > 1 else [str(index)])])


def _session(recording: Recording, name: str, record: dict[str, Any], messages: list[dict[str, Any]]) -> Session:
    builder = Builder(name, agent_of(NAME, record.get("model")))
    waiting: list[Call] = []
    for message in messages:
        role = as_text(message.get("role"))
        if role == "user":
            builder.happened("user_message")
        elif role == "assistant":
            waiting += _calls(builder, message)
        elif role in {"tool", "function"}:
            answered = _answered(waiting, message)
            if answered is not None:
                answered.result = result_of(message.get("content"))
                waiting.remove(answered)
    return builder.build(recording.source, NAME)


def _calls(builder: Builder, message: dict[str, Any]) -> list[Call]:
    calls: list[Call] = []
    for asked in map(as_dict, as_list(message.get("tool_calls"))):
        custom = as_dict(asked.get("custom"))  # a tool that takes free text
        function = custom or as_dict(asked.get("function"))
        arguments = custom.get("input", UNSET) if custom else arguments_of(function.get("arguments"))
        calls.append(Call(as_text(function.get("name")) or "", arguments, call_id=as_text(asked.get("id"))))
    legacy = as_dict(message.get("function_call"))
    if legacy and not calls:
        calls.append(Call(as_text(legacy.get("name")) or "", arguments_of(legacy.get("arguments"))))
    if len(calls) > 1:
        for call in calls:
            call.batch_id = f"{builder.session_id}#batch-{len(builder.entries)}"
    return [builder.call(call) for call in calls]


def _answered(waiting: list[Call], message: dict[str, Any]) -> Call | None:
    call_id, name = as_text(message.get("tool_call_id")), as_text(message.get("name"))
    if call_id is not None:
        return next((call for call in reversed(waiting) if call.call_id == call_id), None)
    return next((call for call in waiting if name is None or call.tool == name), None)
