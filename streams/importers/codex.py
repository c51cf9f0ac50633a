"""Reads rollouts of Codex (`~/.codex/sessions/**/rollout-*.jsonl`), of today and of before they had an envelope.

Codex packs what was not touched for a week (`.jsonl.zst`), and unpacks it beside that when somebody goes on with it.

One JSON object a line, `{timestamp, type, payload}`. A call is a `response_item`, its result another one with the same
`call_id`; for shell commands an `event_msg` of type `exec_command_end` tells output, exit code and duration better, and
is preferred. Without either, the exit code that some results carry in their text decides. A result without any is of
unknown status.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from schemas.common import ErrorInfo, Task, Usage
from streams.importers.build import Builder, Call, Happening, Session, agent_of
from streams.importers.lines import LineReader, read_lines
from streams.importers.shape import arguments_of, as_count, as_dict, as_list, as_text, as_time, result_of
from streams.importers.shell_result import codex_result

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from streams.importers.files import Recording

NAME = "codex"

PLAIN, PACKED = ".jsonl", ".jsonl.zst"
"""How the names of rollouts end, and of packed ones, which else are the same."""

_ENVELOPES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state")
_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "web_search_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_NOT_TYPED = ("<environment_context>", "<user_instructions>", "<permissions", "<turn_aborted>", "<skill", "# AGENTS.md")


def recognise(value: object) -> bool:
    """Tell whether a line is one of this format."""
    line = as_dict(value)
    if line.get("type") in _ENVELOPES:
        return isinstance(line.get("payload"), dict)
    return {"id", "timestamp", "instructions"} <= line.keys()  # first line of the rollouts without an envelope


@dataclass(slots=True)
class _Scope:
    """The session that is being collected."""

    builder: Builder
    by_id: dict[str, Call] = field(default_factory=dict)
    batch: list[Call] = field(default_factory=list)
    response: list[Call] = field(default_factory=list)
    exits: set[str] = field(default_factory=set)
    total_tokens: int = -1
    owed: Usage | None = None
    told_messages: bool = False
    item_messages: list[Happening] = field(default_factory=list)


class Reader(LineReader):
    """Reads the lines of a rollout."""

    NAME = NAME

    def __init__(self, source: str) -> None:
        super().__init__(source)
        builder = Builder(PurePath(source).name.split(".jsonl")[0], agent_of(NAME))
        self.builders[""] = builder
        self._scope = _Scope(builder)
        self._named = False

    def feed(self, value: object) -> None:
        """Take the next line."""
        line, scope = as_dict(value), self._scope
        at = as_time(line.get("timestamp"))
        payload = as_dict(line.get("payload"))
        kind = line.get("type")
        meta = payload if kind == "session_meta" else line if {"id", "instructions"} <= line.keys() else None
        if meta is not None:
            if not self._named:  # a fork repeats its origin's below its own
                self._named = True
                _begin(scope, meta, at)
        elif kind == "event_msg":
            _event(scope, payload, at)
        elif kind == "compacted":
            scope.builder.happened("context_trimmed", at)
        elif kind == "turn_context":
            if scope.builder.agent is not None and scope.builder.agent.model is None:
                scope.builder.agent = agent_of(NAME, payload.get("model"))
        else:
            _item(scope, payload or line, at)

    def finish(self) -> Iterator[Session]:
        """Give the session, if there is one."""
        if not self._named and not self._scope.builder.entries:
            return
        yield from super().finish()


def read(recording: Recording, *, whole: bool) -> Iterator[Session]:
    """Read the session of a file; in a directory, that of a packed one only where it is not there unpacked.

    Args:
        recording: the file.
        whole: the file is one JSON document.
    """
    path = recording.path
    if not recording.named and path.name.endswith(PACKED) and path.with_suffix("").exists():
        return iter(())
    return read_lines(Reader(recording.source), recording, whole=whole)


def _drop_told(scope: _Scope) -> None:
    """Leave out the messages among the items where the program itself tells what a person said."""
    if scope.item_messages:
        repeated = set(map(id, scope.item_messages))
        scope.builder.entries = [entry for entry in scope.builder.entries if id(entry) not in repeated]
        scope.item_messages.clear()


def _begin(scope: _Scope, meta: dict[str, Any], at: datetime | None) -> None:
    scope.builder.session_id = Builder(as_text(meta.get("id")) or scope.builder.session_id).session_id
    repo = as_text(as_dict(meta.get("git")).get("repository_url"))
    if repo:
        path = re.split(r"[:/]", repo.removesuffix(".git").removesuffix("/"))[-2:]
        scope.builder.task = Task(repo="/".join(path)[:256])
    scope.builder.happened("started", at or as_time(meta.get("timestamp")))


def _event(scope: _Scope, payload: dict[str, Any], at: datetime | None) -> None:
    kind = as_text(payload.get("type"))
    if kind == "user_message":
        scope.told_messages = True
        _drop_told(scope)
        scope.builder.settle()
        scope.builder.happened("user_message", at)
    elif kind == "context_compacted":
        scope.builder.happened("context_trimmed", at)
    elif kind == "token_count":
        _tokens(scope, as_dict(payload.get("info")))
    elif kind in {"exec_command_end", "mcp_tool_call_end", "patch_apply_end"}:
        call = scope.by_id.get(as_text(payload.get("call_id")) or "")
        if call is not None:
            scope.exits.add(call.call_id or "")
            _ended(call, payload)


def _ended(call: Call, payload: dict[str, Any]) -> None:
    """Take what the program itself says of a call's end."""
    duration = as_dict(payload.get("duration"))
    if duration:
        call.duration_ms = as_count(duration.get("secs")) * 1000 + as_count(duration.get("nanos")) / 1_000_000
    output = payload.get("aggregated_output")
    if isinstance(output, str):
        call.result = output
    exit_code, success, result = payload.get("exit_code"), payload.get("success"), as_dict(payload.get("result"))
    if isinstance(exit_code, int):
        _exited(call, exit_code)
    elif isinstance(success, bool):
        call.status = "ok" if success else "error"
    elif result:
        answer = as_dict(result.get("Ok"))
        call.status = "error" if "Err" in result or answer.get("isError") is True else "ok"


def _tokens(scope: _Scope, info: dict[str, Any]) -> None:
    """Give a response's usage to its first call; the same count is often told twice."""
    last, total = as_dict(info.get("last_token_usage")), as_dict(info.get("total_token_usage"))
    tokens = as_count(total.get("total_tokens"))
    if not last or tokens == scope.total_tokens:
        return
    scope.total_tokens = tokens
    usage = Usage(input_tokens=as_count(last.get("input_tokens")), output_tokens=as_count(last.get("output_tokens")))
    first = next(iter(scope.response), None)
    if first is not None and first.taken:  # of a rollout that grows: told too late, so that the next call has it
        scope.owed = _sum(scope.owed, usage)
    elif first is not None:
        first.usage = _sum(first.usage, usage)
    scope.response.clear()


def _sum(one: Usage | None, other: Usage) -> Usage:
    return Usage(
        input_tokens=(one.input_tokens or 0 if one else 0) + (other.input_tokens or 0),
        output_tokens=(one.output_tokens or 0 if one else 0) + (other.output_tokens or 0),
    )


def _item(scope: _Scope, item: dict[str, Any], at: datetime | None) -> None:
    kind = item.get("type")
    if kind in _CALLS:
        _call(scope, item, at)
    elif kind in _OUTPUTS:
        scope.batch.clear()
        call = scope.by_id.get(as_text(item.get("call_id")) or "")
        if call is not None:
            _output(call, item.get("output"), told=(call.call_id or "") in scope.exits)
            call.settled = True
    elif kind == "message" and item.get("role") == "user":
        texts = [as_dict(part).get("text") for part in as_list(item.get("content"))]
        first = next((text for text in texts if isinstance(text, str)), "")
        if first.strip() and not first.lstrip().startswith(_NOT_TYPED):
            scope.builder.settle()
            if not scope.told_messages:
                message = Happening("user_message", at, settled=False)
                scope.builder.entries.append(message)
                scope.item_messages.append(message)


def _call(scope: _Scope, item: dict[str, Any], at: datetime | None) -> None:
    call_id = as_text(item.get("call_id"))
    if call_id is not None and call_id in scope.by_id:
        return
    kind = item.get("type")
    if kind == "function_call":
        tool, arguments = as_text(item.get("name")) or "", arguments_of(item.get("arguments"))
    elif kind == "custom_tool_call":  # free text: a patch or a script, never JSON
        tool, arguments = as_text(item.get("name")) or "", item.get("input", UNSET)
    elif kind == "local_shell_call":
        action = as_dict(item.get("action"))
        tool = "local_shell"
        arguments = {key: part for key, part in action.items() if key != "type" and part is not None}
    else:
        tool, arguments = "web_search", arguments_of(item.get("action"))
    if not scope.batch:  # results came since: another response asks for this one
        scope.builder.settle()
    for message in scope.item_messages:
        message.settled = True
    call = scope.builder.call(Call(tool, arguments, at, call_id, usage=scope.owed, settled=call_id is None))
    scope.owed = None
    scope.response.append(call)
    if call_id is not None:
        scope.by_id[call_id] = call
        scope.batch.append(call)
        if len(scope.batch) > 1:  # called one after the other, with no result between: one response asked for them
            for member in scope.batch:
                member.batch_id = scope.batch[0].call_id


def _output(call: Call, output: object, *, told: bool) -> None:
    """Take a result as it was given to the model, unless the program has told it better."""
    if call.result is not UNSET:
        return
    success = as_dict(output).get("success")
    if isinstance(output, dict):
        output = output.get("content")
    exit_code: int | None = None
    if isinstance(output, str):
        output, exit_code, seconds = codex_result(output)
        call.duration_ms = seconds * 1000 if seconds is not None and call.duration_ms is None else call.duration_ms
    call.result = result_of(output)
    if told:
        return
    if exit_code is not None:
        _exited(call, exit_code)
    elif isinstance(success, bool):
        call.status = "ok" if success else "error"


def _exited(call: Call, code: int) -> None:
    call.status = "ok" if code == 0 else "error"
    call.error = ErrorInfo(code=code) if code else None
