"""Reads what Antigravity's command line prints in print mode (`agy -p … --output-format stream-json`), since 1.1.8.

One event a line, its body under the event's own name. A step of a tool is told when it begins and again when it is
done, with one `step_index`, which is the only identifier of a call. Nothing has a time. A result ends a turn: it ends
the session only when no other turn comes after it. Labels and commands' answers are as in `antigravity`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from schemas.common import Usage
from streams.importers.antigravity import LABELS, ended
from streams.importers.build import Builder, Call, Session, agent_of
from streams.importers.lines import LineReader, read_lines
from streams.importers.shape import arguments_of, as_amount, as_count, as_dict, as_list, as_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streams.importers.files import Recording

NAME = "antigravity-stream"

_AGENT = "antigravity"
_EVENTS = ("init", "step_update", "result")
_DONE = ("DONE", "ERROR")
_DENIED = "denied permission"
"""What the error of a call says that was not allowed; its type is that of every failed call."""


def recognise(value: object) -> bool:
    """Tell whether a line is one of this format."""
    line = as_dict(value)
    event = line.get("event")
    return event in _EVENTS and isinstance(line.get(event), dict)


@dataclass(slots=True)
class _Scope:
    """A conversation that is being collected.

    Attributes:
        builder: its events.
        by_step: calls by the index of their step.
        batch: calls that one response asked for.
        owed: what the latest response consumed, for its first call.
        end: how the latest turn ended, while nothing came after it.
    """

    builder: Builder
    by_step: dict[object, Call] = field(default_factory=dict)
    batch: list[Call] = field(default_factory=list)
    owed: Usage | None = None
    end: str | None = None

    def close(self) -> None:
        """Say that nothing more comes."""
        self.builder.settle()
        if self.end is not None:
            self.builder.happened("ended", reason=self.end or None)
            self.end = None


class Reader(LineReader):
    """Reads the events of a run: of one conversation, and of those of its sub-agents as far as they are told."""

    NAME = NAME

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self._scopes: dict[str, _Scope] = {}
        self._parents: dict[str, str] = {}
        self._latest = PurePath(source).name.split(".")[0]  # the conversation that lines without one belong to
        self._model: str | None = None

    def feed(self, value: object) -> None:
        """Take the next event."""
        if not recognise(value):
            return
        line = as_dict(value)
        event = line["event"]
        body = line[event]
        name = as_text(body.get("conversation_id")) or as_text(line.get("conversation_id"))
        if event == "init":
            self._model = as_text(body.get("model"))
        scope = self._scope(name)
        scope.end = None
        if event == "result":
            scope.builder.settle()
            scope.end = as_text(body.get("status")) or ""
        elif event == "step_update":
            self._step(scope, body)

    def settle(self) -> None:
        """Say that nothing more is to come."""
        for scope in self._scopes.values():
            scope.close()

    def finish(self) -> Iterator[Session]:
        """Give the conversations."""
        self.settle()
        yield from super().finish()

    def _scope(self, name: str | None) -> _Scope:
        if name is None:
            name = self._latest
        elif name not in self._parents:
            self._latest = name
        scope = self._scopes.get(name)
        if scope is None:
            builder = Builder(name, agent_of(_AGENT, self._model), parent=self._parents.get(name))
            scope = self._scopes[name] = _Scope(builder)
            self.builders[name] = builder
        return scope

    def _step(self, scope: _Scope, body: dict[str, Any]) -> None:
        kind = body.get("step_type")
        if kind == "user_input":
            scope.builder.settle()
            scope.builder.happened("user_message")
        elif kind == "checkpoint":
            if body.get("state") in _DONE:
                scope.builder.happened("context_trimmed")
        elif kind == "agent_response":
            self._answered(scope, as_dict(body.get("usage")))
        elif kind == "tool" or isinstance(body.get("tool_info"), dict):
            _tool(scope, body)
        for told in map(as_dict, as_list(as_dict(body.get("subagent_info")).get("subagents"))):
            child = as_text(told.get("conversation_id"))
            if child is not None:
                self._parents.setdefault(child, scope.builder.session_id)

    @staticmethod
    def _answered(scope: _Scope, usage: dict[str, Any]) -> None:
        scope.builder.settle()
        scope.batch.clear()
        if usage:
            scope.owed = Usage(
                input_tokens=as_count(usage.get("input_tokens")), output_tokens=as_count(usage.get("output_tokens"))
            )


def read(recording: Recording, *, whole: bool) -> Iterator[Session]:
    """Read the conversations of a file.

    Args:
        recording: the file.
        whole: the file is one JSON document.
    """
    return read_lines(Reader(recording.source), recording, whole=whole)


def _tool(scope: _Scope, body: dict[str, Any]) -> None:
    """Take a step of a tool; what comes when the call was given already is too late."""
    told = as_dict(body.get("tool_info"))
    done = body.get("state") in _DONE
    index = body.get("step_index")
    index = index if isinstance(index, int) else None
    call = scope.by_step.get(index)
    if call is None or (call.result is not UNSET and not done) or (index is None and call.settled):
        tool = as_text(told.get("name")) or as_text(body.get("tool_name")) or ""
        call_id = as_text(told.get("id")) or (None if index is None else f"step-{index}")
        call = scope.builder.call(Call(tool, call_id=call_id, usage=scope.owed))
        scope.owed = None
        scope.by_step[index] = call
        scope.batch = [each for each in scope.batch if not each.settled]
        scope.batch.append(call)
        for each in scope.batch if len(scope.batch) > 1 else ():
            each.batch_id = f"{scope.builder.session_id}#batch-{scope.batch[0].position}"
    if call.taken:
        return
    if told.get("parameters") or ("parameters" in told and call.arguments is UNSET):  # the end may leave them empty
        arguments = arguments_of(told["parameters"])
        if isinstance(arguments, dict):
            arguments = {key: part for key, part in arguments.items() if key not in LABELS}
        call.arguments = arguments
    if done:
        _ended(call, body, told)


def _ended(call: Call, body: dict[str, Any], told: dict[str, Any]) -> None:
    call.settled = True
    message = as_text(as_dict(told.get("error")).get("message"))
    failed = body.get("state") == "ERROR" or bool(told.get("error"))
    ended(call, told.get("output") if message is None else message, None, failed=failed)
    if message is not None and _DENIED in message:
        call.status = "denied"
    seconds = as_amount(body.get("duration_seconds"))
    call.duration_ms = call.duration_ms if seconds is None else seconds * 1000
