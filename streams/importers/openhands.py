"""Reads sessions of OpenHands: `output.jsonl` of its evaluations (one session a line) and exported trajectories.

A session's `history` is a list of events; actions of the agent are calls, and the observation whose `cause` is an
action's `id` is its result. Old versions kept pairs `[action, observation]` instead. The exit code of commands, and the
refusals of the file tools, tell the status; other tools have none.
"""

from __future__ import annotations

from itertools import chain
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from schemas.common import ErrorInfo, Task, Usage
from streams.importers.build import Builder, Call, Session, Status, agent_of, recording_id
from streams.importers.shape import arguments_of, as_count, as_dict, as_list, as_text, as_time, result_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streams.importers.files import Recording

NAME = "openhands"

_NO_CALLS = {"message", "system", "recall", "change_agent_state", "condensation", "condensation_request", "null", ""}
_LABELS = {"thought", "hidden", "confirmation_state", "security_risk"}
"""Arguments that say nothing of what is done."""

_UNFILLED: tuple[object, ...] = (None, "", [], {})
"""What stands in arguments that were not given: the recording has every field of an action."""

_FILE_TOOLS = {"read", "edit", "write"}
_RUNNING = -1
"""Exit code of a command that still runs."""


def recognise(value: object) -> bool:
    """Tell whether a line or document is one of this format."""
    return bool(_history(value))


def _history(value: object) -> list[Any]:
    history = as_list(value) or as_list(as_dict(value).get("history")) or as_list(as_dict(value).get("trajectory"))
    return history if any(_is_event(event) for event in history[:3]) else []


def _is_event(event: object) -> bool:
    if isinstance(event, list):
        return bool(event) and _is_event(event[0])
    keys = as_dict(event).keys()
    return "source" in keys and ("action" in keys or "observation" in keys)


def read(recording: Recording, *, whole: bool) -> Iterator[Session]:
    """Read the sessions of a file.

    Args:
        recording: the file.
        whole: the file is one JSON document.
    """
    stem = PurePath(recording.source).name.split(".")[0]
    for _, value, text in recording.values(whole=whole):
        history = _history(value)
        if not history:
            continue
        document = as_dict(value)
        instance = as_text(document.get("instance_id"))
        model = as_dict(as_dict(document.get("metadata")).get("llm_config")).get("model")
        repo = as_text(as_dict(document.get("instance")).get("repo"))
        builder = Builder(
            recording_id(instance or stem, text),
            agent_of(NAME, model),
            Task(repo=repo[:256]) if repo else None,
        )
        builder.happened("started")
        _events(builder, history)
        error = as_text(document.get("error"))
        if error or any(call.tool == "finish" for call in builder.calls[-1:]):
            builder.happened("ended", reason=error or "finished")
        yield builder.build(recording.source, NAME)


def _events(builder: Builder, history: list[Any]) -> None:
    by_action: dict[str, Call] = {}
    batches: dict[str, list[Call]] = {}
    last: Call | None = None
    for event in map(as_dict, chain.from_iterable(item if isinstance(item, list) else [item] for item in history)):
        action = event.get("action")
        if isinstance(action, str) and "observation" not in event:
            call = _action(builder, action, event)
            last = call or last
            if call is not None:
                by_action[repr(event.get("id"))] = call
                response = as_text(as_dict(as_dict(event.get("tool_call_metadata")).get("model_response")).get("id"))
                if response:
                    batches.setdefault(response, []).append(call)
        elif event.get("observation"):
            cause = event.get("cause")
            answered = by_action.get(repr(cause)) if cause is not None else last
            if answered is not None and answered.result is not None:
                _observation(answered, event)
    for response, calls in batches.items():
        for call in calls if len(calls) > 1 else []:
            call.batch_id = response
        for call in calls[1:]:
            call.usage = None


def _action(builder: Builder, action: str, event: dict[str, Any]) -> Call | None:
    at = as_time(event.get("timestamp"))
    if action == "condensation":
        builder.happened("context_trimmed", at)
    elif action == "message" and event.get("source") == "user":
        builder.happened("user_message", at)
    if action in _NO_CALLS or event.get("source") != "agent":
        return None
    metadata = as_dict(event.get("tool_call_metadata"))
    given = as_dict(event.get("args"))
    usage = as_dict(as_dict(metadata.get("model_response")).get("usage"))
    return builder.call(
        Call(
            as_text(metadata.get("function_name")) or action,
            arguments_of({name: part for name, part in given.items() if name not in _LABELS and part not in _UNFILLED}),
            at,
            as_text(metadata.get("tool_call_id")),
            usage=Usage(
                input_tokens=as_count(usage.get("prompt_tokens")),
                output_tokens=as_count(usage.get("completion_tokens")),
            )
            if usage
            else None,
        )
    )


def _observation(call: Call, event: dict[str, Any]) -> None:
    kind, extras = as_text(event.get("observation")), as_dict(event.get("extras"))
    if call.status is not None:
        return
    call.result = result_of(event.get("content"))
    text = call.result if isinstance(call.result, str) else ""
    call.status = _status(kind, extras, text)
    code = _exit_code(extras)
    if call.status == "error" and code:
        call.error = ErrorInfo(code=code)


def _exit_code(extras: dict[str, Any]) -> int | None:
    code = as_dict(extras.get("metadata")).get("exit_code", extras.get("exit_code"))
    return code if isinstance(code, int) else None


def _status(kind: str | None, extras: dict[str, Any], text: str) -> Status | None:
    code = _exit_code(extras)
    if kind == "user_rejected":
        return "denied"
    if kind == "error" or extras.get("error") is True:
        return "error"
    if code is not None:
        return None if code == _RUNNING else "ok" if code == 0 else "error"
    if kind in _FILE_TOOLS:
        return "error" if text.startswith("ERROR") else "ok"
    return "ok" if extras.get("error") is False else None
