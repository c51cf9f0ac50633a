"""Reads sessions of OpenCode: exports, the lines of `run --format json`, its database, and its folders of small files.

Wherever it is, a call is a part of the type `tool` that holds its input, its output and how it ended; a message has the
parts of one response. A command's exit code stands in the metadata. Sessions of sub-agents name their parent.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from schemas.common import ErrorInfo, Usage
from streams.importers import opencode_store
from streams.importers.build import Builder, Call, Session, Status, agent_of
from streams.importers.containers import Tables
from streams.importers.files import CannotRead
from streams.importers.lines import LineReader
from streams.importers.shape import arguments_of, as_amount, as_count, as_dict, as_list, as_text, as_time, result_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from streams.importers.files import Recording
    from streams.importers.opencode_store import Stored

NAME = "opencode"

_EVENTS = ("step_start", "step_finish", "tool_use", "text", "reasoning", "error", "done")
_STATUS: dict[str, Status] = {"completed": "ok", "error": "error"}
_SHELLS = ("bash", "shell")
_REFUSALS = ("The user rejected permission", "The user has specified a rule which prevents")


def recognise(value: object) -> bool:
    """Tell whether a line, a document or a database is one of this format."""
    if isinstance(value, Tables):
        return opencode_store.is_database(value)
    line = as_dict(value)
    if line.get("type") in _EVENTS:
        return isinstance(line.get("sessionID"), str)
    return opencode_store.is_file(line) or _is_export(line)


def _is_export(document: dict[str, Any]) -> bool:
    messages = as_list(document.get("messages"))
    told = [{"info", "parts"} <= as_dict(message).keys() for message in messages[:3]]
    has_both = isinstance(document.get("info"), dict) and isinstance(document.get("messages"), list)
    return has_both and all(told)


class Reader(LineReader):
    """Reads the lines of `run --format json`; each call comes with its result."""

    NAME = NAME

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self._fallback = PurePath(source).name.split(".")[0]
        self._parts: dict[str, _Parts] = {}

    def feed(self, value: object) -> None:
        """Take the next line."""
        line = as_dict(value)
        name = as_text(line.get("sessionID")) or self._fallback
        if line.get("type") not in _EVENTS:
            return
        parts = self._parts.get(name)
        if parts is None:
            parts = self._parts[name] = _Parts(Builder(name, agent_of(NAME)))
            self.builders[name] = parts.builder
        part, at = as_dict(line.get("part")), as_time(line.get("timestamp"))
        if part:
            parts.take(part, at)


def read(recording: Recording, *, whole: bool) -> Iterator[Session]:
    """Read the sessions of a file.

    Args:
        recording: the file: a database, an export, lines, or a session's own file among those of its messages.
        whole: the file is one JSON document.
    """
    if isinstance(recording.contents, Tables):
        yield from _stored(opencode_store.rows(recording), recording)
        return
    reader = Reader(recording.source)
    for _, value, _ in recording.values(whole=whole):
        document = as_dict(value)
        if _is_export(document):
            told = map(as_dict, as_list(document.get("messages")))
            messages = ((as_dict(each.get("info")), as_list(each.get("parts"))) for each in told)
            yield _session(recording, as_dict(document.get("info")), messages)
        elif opencode_store.is_file(document):
            yield from _stored(opencode_store.files_of(recording, document), recording)
        else:
            reader.feed(value)
    yield from reader.finish()


def _stored(sessions: Iterator[Stored], recording: Recording) -> Iterator[Session]:
    try:
        for stored in sessions:
            yield _session(recording, stored.info, stored.messages)
    except CannotRead as problem:
        recording.fault(None, str(problem))


def _session(
    recording: Recording, info: dict[str, Any], messages: Iterable[tuple[dict[str, Any], list[Any]]]
) -> Session:
    name = as_text(info.get("id")) or PurePath(recording.source).name.split(".")[0]
    builder = Builder(name, agent_of(NAME), parent=as_text(info.get("parentID")))
    builder.happened("started", as_time(as_dict(info.get("time")).get("created")))
    parts = _Parts(builder)
    for message, told in messages:
        at = as_time(as_dict(message.get("time")).get("created"))
        if message.get("role") == "user":
            if any(_typed(as_dict(part)) for part in told):
                builder.happened("user_message", at)
        elif builder.agent is not None and builder.agent.model is None:
            builder.agent = agent_of(NAME, message.get("modelID"))
        for part in told:
            parts.take(as_dict(part), at)
        parts.end_step()
    return builder.build(recording.source, NAME)


def _typed(part: dict[str, Any]) -> bool:
    """Tell whether a part of a user's message was written by a person."""
    return part.get("type") == "text" and part.get("synthetic") is not True and bool(as_text(part.get("text")))


class _Parts:
    """Takes the parts of one session's messages."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self._by_id: dict[str, Call] = {}
        self._step: list[Call] = []

    def take(self, part: dict[str, Any], at: datetime | None) -> None:
        """Take a part; `at` is when its message began, for those that have no time of their own."""
        kind = part.get("type")
        if kind == "tool":
            self._tool(part, at)
        elif kind == "step-start":
            self.end_step()
        elif kind == "step-finish":
            self._account(part)
            self.end_step()
        elif kind == "compaction":
            self.builder.happened("context_trimmed", at)

    def end_step(self) -> None:
        """Close a response of the model."""
        for call in self._step if len(self._step) > 1 else ():
            call.batch_id = self._step[0].call_id
        self._step = []

    def _tool(self, part: dict[str, Any], at: datetime | None) -> None:
        name, state = as_text(part.get("callID")), as_dict(part.get("state"))
        time = as_dict(state.get("time"))
        call = self._by_id.get(name or "")
        if call is not None and call.settled:
            return
        if call is None:
            call = Call(as_text(part.get("tool")) or "", UNSET, as_time(time.get("start")) or at, name)
            self._step.append(self.builder.call(call))
            if name is not None:
                self._by_id[name] = call
        call.arguments = arguments_of(state.get("input"))
        if as_text(state.get("status")) in _STATUS:
            call.settled = True
            _ended(call, state, time)

    def _account(self, part: dict[str, Any]) -> None:
        tokens = as_dict(part.get("tokens"))
        if self._step and tokens:
            cache = as_dict(tokens.get("cache"))
            read_tokens = (tokens.get("input"), cache.get("read"), cache.get("write"))
            self._step[0].usage = Usage(
                input_tokens=sum(map(as_count, read_tokens)),
                output_tokens=as_count(tokens.get("output")) + as_count(tokens.get("reasoning")),
                cost_usd=as_amount(part.get("cost")),
            )


def _ended(call: Call, state: dict[str, Any], time: dict[str, Any]) -> None:
    call.status = _STATUS[state["status"]]
    call.result = result_of(state.get("output") if call.status == "ok" else state.get("error"))
    begun, ended = as_amount(time.get("start")), as_amount(time.get("end"))
    if begun is not None and ended is not None and ended >= begun:
        call.duration_ms = ended - begun
    metadata = as_dict(state.get("metadata"))
    code = metadata.get("exit", metadata.get("exitCode"))
    if call.status == "error":
        if isinstance(call.result, str) and call.result.startswith(_REFUSALS):
            call.status = "denied"
    elif isinstance(code, int) and not isinstance(code, bool):
        call.status = "ok" if code == 0 else "error"
        call.error = ErrorInfo(code=code) if code else None
    elif call.tool in _SHELLS:
        call.status = None  # the tool did its work; how the command ended was not recorded
