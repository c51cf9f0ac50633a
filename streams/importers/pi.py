"""Reads sessions of pi (`~/.pi/agent/sessions/<directory>/<time>_<id>.jsonl`) and what `pi --mode json` prints.

One JSON object a line. An assistant's message holds calls (`toolCall`), a message of the role `toolResult` the result
of one. Entries form a tree by `parentId`; where the user went back to try again, the calls of both branches were made,
and both count, in the order of the lines. What the user ran in the shell is nobody's call.
"""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from schemas.common import ErrorInfo, Usage
from streams.importers.build import Builder, Call, Session, agent_of
from streams.importers.lines import LineReader, read_lines
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

NAME = "pi"

_ROLES = ("user", "assistant", "toolResult", "bashExecution", "custom", "hookMessage")
_HOLD = ("message", "message_end")
_EXIT_CODE = re.compile(r"Command exited with code (-?\d+)\s*$")
_TIMED_OUT = re.compile(r"Command timed out after [\d.]+ seconds?\s*$")


def recognise(value: object) -> bool:
    """Tell whether a line is one of this format."""
    line = as_dict(value)
    kind = line.get("type")
    if kind == "session":
        return isinstance(line.get("id"), str) and isinstance(line.get("cwd"), str) and "timestamp" in line
    return kind in _HOLD and as_dict(line.get("message")).get("role") in _ROLES


class Reader(LineReader):
    """Reads the entries of one session."""

    NAME = NAME

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self._builder = Builder(PurePath(source).name.split(".jsonl")[0], agent_of(NAME))
        self.builders[""] = self._builder
        self._by_id: dict[str, Call] = {}
        self._named = False

    def feed(self, value: object) -> None:
        """Take the next entry."""
        line = as_dict(value)
        at = as_time(line.get("timestamp"))
        kind = line.get("type")
        if kind == "session" and not self._named:
            self._named = True
            self._builder.session_id = Builder(as_text(line.get("id")) or self._builder.session_id).session_id
            self._builder.happened("started", at)
        elif kind == "compaction":
            self._builder.happened("context_trimmed", at)
        elif kind in _HOLD:
            message = as_dict(line.get("message"))
            self._message(message, at or as_time(message.get("timestamp")))

    def finish(self) -> Iterator[Session]:
        """Give the session, if there is one."""
        if self._named or self._builder.entries:
            yield from super().finish()

    def _message(self, message: dict[str, Any], at: datetime | None) -> None:
        role = message.get("role")
        if role == "user":
            self._builder.settle()
            if typed_text(message.get("content")):
                self._builder.happened("user_message", at)
        elif role == "assistant":
            self._builder.settle()
            self._answer(message, at)
        elif role == "toolResult":
            call = self._by_id.get(as_text(message.get("toolCallId")) or "")
            if call is not None and not call.settled:
                call.settled = True
                _result(call, message)

    def _answer(self, message: dict[str, Any], at: datetime | None) -> None:
        if self._builder.agent is not None and self._builder.agent.model is None:
            self._builder.agent = agent_of(NAME, message.get("model"))
        calls: list[Call] = []
        for block in map(as_dict, as_list(message.get("content"))):
            name = as_text(block.get("id"))
            if block.get("type") != "toolCall" or (name is not None and name in self._by_id):
                continue
            call = Call(as_text(block.get("name")) or "", arguments_of(block.get("arguments")), at, name)
            calls.append(self._builder.call(call))
            if name is not None:
                self._by_id[name] = call
        for call in calls if len(calls) > 1 else ():
            call.batch_id = calls[0].call_id
        usage = as_dict(message.get("usage"))
        if calls and usage:
            read_tokens = sum(as_count(usage.get(name)) for name in ("input", "cacheRead", "cacheWrite"))
            calls[0].usage = Usage(
                input_tokens=read_tokens,
                output_tokens=as_count(usage.get("output")),
                cost_usd=as_amount(as_dict(usage.get("cost")).get("total")),
            )


def read(recording: Recording, *, whole: bool) -> Iterator[Session]:
    """Read the session of a file.

    Args:
        recording: the file.
        whole: the file is one JSON document.
    """
    return read_lines(Reader(recording.source), recording, whole=whole)


def _result(call: Call, message: dict[str, Any]) -> None:
    call.result = result_of(message.get("content"))
    text = call.result if isinstance(call.result, str) else ""
    failed = message.get("isError")
    if not isinstance(failed, bool):
        return
    call.status = "error" if failed else "ok"
    code = _EXIT_CODE.search(text[-100:])
    if failed and _TIMED_OUT.search(text[-100:]):
        call.status = "timeout"
    elif failed and code:
        call.error = ErrorInfo(code=int(code[1]))
