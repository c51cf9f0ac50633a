"""Reads trajectories in ATIF, the Agent Trajectory Interchange Format of Harbor, of the versions 1.0 to 1.8.

One JSON document; a step of the agent has `tool_calls` and an `observation` with their results, by `source_call_id`. A
batch of keystrokes has one observation for all of them: it is the result of the last, and the others have none. Steps
that were copied from another context were made there and are passed by. The format has no error flag, but some who
write it put one into `extra`. Terminus can keep the model's answer as it came, without calls: then its commands are the
calls, and an answer that it could not read is one of `(format_error)` that failed, as a run of them is a way to spin.
"""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from schemas.common import ErrorInfo, Usage
from streams.importers.build import Builder, Call, Session, agent_of, recording_id
from streams.importers.mend import NotJson, parse
from streams.importers.shape import (
    arguments_of,
    as_amount,
    as_count,
    as_dict,
    as_list,
    as_text,
    as_time,
    result_of,
    typed_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from streams.importers.files import Recording

NAME = "atif"

FORMAT_ERROR = "(format_error)"
TOOL = "bash_command"
"""What Terminus calls its one tool."""

MAX_RESPONSE_CHARS = 4_000
"""How much is kept of an answer that could not be read."""

_VERSION = "ATIF-v"
_UNREADABLE = "Previous response had parsing errors"


def recognise(value: object) -> bool:
    """Tell whether a document is one of this format."""
    document = as_dict(value)
    return (as_text(document.get("schema_version")) or "").startswith(_VERSION) and "steps" in document


def read(recording: Recording, *, whole: bool) -> Iterator[Session]:
    """Read the trajectory of a file, and those of sub-agents that stand in it.

    Args:
        recording: the file.
        whole: the file is one JSON document.
    """
    stem = re.sub(r"\.json(?:l)?(?:\.gz)?$", "", PurePath(recording.source).name)
    for _, value, text in recording.values(whole=whole):
        document = as_dict(value)
        if recognise(document):
            name = as_text(document.get("session_id")) or as_text(document.get("trajectory_id"))
            yield from _sessions(recording, document, name or recording_id(stem, text), None)


def _sessions(recording: Recording, document: dict[str, Any], name: str, parent: str | None) -> Iterator[Session]:
    waiting = [(document, name, parent)]
    while waiting:  # of any depth
        document, name, parent = waiting.pop(0)
        agent = as_dict(document.get("agent"))
        builder = Builder(name, agent_of(as_text(agent.get("name")) or NAME, agent.get("model_name")), parent=parent)
        builder.happened("started")
        for step in map(as_dict, as_list(document.get("steps"))):
            _step(builder, step)
        yield builder.build(recording.source, NAME)
        for number, child in enumerate(map(as_dict, as_list(document.get("subagent_trajectories")))):
            own = as_text(child.get("trajectory_id")) or as_text(child.get("session_id")) or str(number)
            waiting.append((child, f"{name}:{own}", name))


def _step(builder: Builder, step: dict[str, Any]) -> None:
    at = as_time(step.get("timestamp"))
    if step.get("is_copied_context") is True:
        return
    if step.get("source") == "user":
        if typed_text(step.get("message")):
            builder.happened("user_message", at)
        return
    managed = as_dict(as_dict(step.get("extra")).get("context_management"))
    if managed.get("type") == "compaction":
        builder.happened("context_trimmed", at)
    if step.get("source") != "agent":
        return
    calls: list[Call] = []
    results = as_list(as_dict(step.get("observation")).get("results"))
    for told in map(as_dict, as_list(step.get("tool_calls"))):
        tool, arguments = as_text(told.get("function_name")) or "", arguments_of(told.get("arguments"))
        calls.append(builder.call(Call(tool, arguments, at, as_text(told.get("tool_call_id")))))
    if not calls and results:
        calls = [builder.call(call) for call in _unparsed(step, results, at)]
    for call in calls if len(calls) > 1 else ():
        call.batch_id = f"{builder.session_id}#batch-{calls[0].position}"
    metrics = as_dict(step.get("metrics"))
    if calls and metrics:
        calls[0].usage = Usage(
            input_tokens=as_count(metrics.get("prompt_tokens")),
            output_tokens=as_count(metrics.get("completion_tokens")),
            cost_usd=as_amount(metrics.get("cost_usd")),
        )
    _results(calls, results)


def _unparsed(step: dict[str, Any], results: list[Any], at: datetime | None) -> list[Call]:
    """Give the calls of an answer that was kept as it came."""
    said = typed_text(step.get("message"))
    if (as_text(as_dict(results[0]).get("content")) or "").startswith(_UNREADABLE):
        error = ErrorInfo(type="format_error")
        return [Call(FORMAT_ERROR, {"response": said[:MAX_RESPONSE_CHARS]}, at, status="error", error=error)]
    try:
        answer = as_dict(parse(said.encode("utf-8", "replace")).value)
    except NotJson:
        return []
    return [Call(TOOL, command, at) for command in as_list(answer.get("commands")) if as_dict(command)]


def _results(calls: list[Call], results: list[Any]) -> None:
    """Give results to their calls: by id, else in order where there are as many, else all to the last call."""
    told = [as_dict(result) for result in results]
    waiting: list[Call] = []
    for call in calls:
        own = [result for result in told if call.call_id and result.get("source_call_id") == call.call_id]
        if own:
            _result(call, own)
        else:
            waiting.append(call)
    loose = [result for result in told if as_text(result.get("source_call_id")) is None and "content" in result]
    if len(loose) == len(waiting):
        for call, result in zip(waiting, loose, strict=True):
            _result(call, [result])
    elif waiting and loose:
        _result(waiting[-1], loose)


def _result(call: Call, results: list[dict[str, Any]]) -> None:
    contents = [result_of(result.get("content")) for result in results]
    texts = [text for text in contents if isinstance(text, str)]
    call.result = "\n".join(texts) if texts else contents[0]
    flags = [result.get("is_error", as_dict(result.get("extra")).get("is_error")) for result in results]
    told = [flag for flag in flags if isinstance(flag, bool)]
    if told:
        call.status = "error" if any(told) else "ok"
