"""Reads transcripts of Antigravity (`~/.gemini/antigravity*/brain/<id>/.system_generated/logs/transcript.jsonl`).

One step a line: the model's (`PLANNER_RESPONSE`) holds calls without ids, and a step of a tool (`RUN_COMMAND`,
`VIEW_FILE`, …) is the result of the first call of that kind that waits for one. Values of arguments are JSON texts. A
result begins with the times of its beginning and end, which are taken out, since else no two results were equal.
Some versions write the whole texts into `transcript_full.jsonl` beside it, which is then the one that is read.
"""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from schemas.common import ErrorInfo, Usage
from streams.importers.build import Builder, Call, Session, agent_of
from streams.importers.lines import LineReader, read_lines
from streams.importers.mend import NotJson, parse
from streams.importers.shape import as_count, as_dict, as_list, as_text, as_time, result_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from streams.importers.files import Recording

NAME = "antigravity"

_SOURCES = ("USER_EXPLICIT", "USER_IMPLICIT", "MODEL", "SYSTEM", "USER")
_ANSWER = "PLANNER_RESPONSE"
LABELS = {"toolAction", "toolSummary"}
"""Arguments that tell people what is done, in other words each time."""

_STEPS = {
    "list_dir": "LIST_DIRECTORY",
    "find_by_name": "FIND",
    "write_to_file": "CODE_ACTION",
    "replace_file_content": "CODE_ACTION",
    "multi_replace_file_content": "CODE_ACTION",
}
"""The steps that answer tools where they are not named as the tool is."""

_FAULT = "ERROR_MESSAGE"
_SHORT, _FULL = "transcript.jsonl", "transcript_full.jsonl"

_TIMES = re.compile(r"\s*Created At: (?P<begun>\S+)\s*\n(?:Completed At: (?P<ended>\S+)\s*\n?)?")
_COMMAND_ENDED = re.compile(
    r"The command (?:(?P<ok>completed successfully)|(?:failed|exited|finished) with (?:exit )?code:? (?P<code>-?\d+))"
)
_MODEL = re.compile(r"changed setting `Model Selection` from .{0,80}? to (?P<name>[^\n]{1,80}?)\.(?:\s|$)")
_HEAD_CHARS = 400


def recognise(value: object) -> bool:
    """Tell whether a line is one of this format."""
    line = as_dict(value)
    kind = line.get("type")
    is_step = isinstance(kind, str) and kind.isupper() and ("step_index" in line or "created_at" in line)
    return is_step and line.get("source") in _SOURCES


class Reader(LineReader):
    """Reads the steps of one conversation."""

    NAME = NAME

    def __init__(self, source: str) -> None:
        super().__init__(source)
        parts = PurePath(source).parts
        place = parts.index(".system_generated") if ".system_generated" in parts else 0
        name = parts[place - 1] if place else PurePath(source).name.split(".")[0]
        self._builder = Builder(name, agent_of(NAME))
        self.builders[""] = self._builder
        self._waiting: list[Call] = []
        self._by_step: dict[object, Call] = {}

    def feed(self, value: object) -> None:
        """Take the next step."""
        line = as_dict(value)
        kind, at = as_text(line.get("type")) or "", as_time(line.get("created_at"))
        if kind == "USER_INPUT":
            self._model(line.get("content"))
            self._builder.settle()
            self._builder.happened("user_message", at)
        elif kind == "CHECKPOINT":
            self._builder.happened("context_trimmed", at)
        elif kind == _ANSWER:
            self._answer(line, at)
        elif line.get("source") == "MODEL" or kind == _FAULT:
            self._result(kind, line)

    def finish(self) -> Iterator[Session]:
        """Give the conversation, if there is anything in it."""
        if self._builder.entries:
            yield from super().finish()

    def _model(self, content: object) -> None:
        found = _MODEL.search(content) if isinstance(content, str) else None
        if found and self._builder.agent is not None and self._builder.agent.model is None:
            self._builder.agent = agent_of(NAME, found["name"])

    def _answer(self, line: dict[str, Any], at: datetime | None) -> None:
        self._builder.settle()
        self._waiting = []
        for told in map(as_dict, as_list(line.get("tool_calls"))):
            call = Call(as_text(told.get("name")) or "", _arguments(told.get("args")), at)
            self._waiting.append(self._builder.call(call))
        for call in self._waiting if len(self._waiting) > 1 else ():
            call.batch_id = f"{self._builder.session_id}#batch-{self._waiting[0].position}"
        usage = as_dict(line.get("usage")) or line
        if self._waiting and "input_tokens" in usage:
            self._waiting[0].usage = Usage(
                input_tokens=as_count(usage.get("input_tokens")), output_tokens=as_count(usage.get("output_tokens"))
            )

    def _result(self, kind: str, line: dict[str, Any]) -> None:
        """Take a step of a tool; one that ran on in the background is told twice, with one index."""
        index = line.get("step_index")
        index = index if isinstance(index, int) else None
        call = self._by_step.get(index)
        if call is None:
            if not self._waiting:
                return
            named = (each for each in self._waiting if _STEPS.get(each.tool, each.tool.upper()) == kind)
            call = next(named, self._waiting[0])
            self._waiting.remove(call)
            if index is not None:
                self._by_step = {index: call}  # only the latest is told again
        call.settled = True
        failed = line.get("status") == "ERROR" or kind == _FAULT
        ended(call, line.get("content"), line.get("exit_code"), failed=failed)


def read(recording: Recording, *, whole: bool) -> Iterator[Session]:
    """Read the conversation of a file.

    Args:
        recording: the file.
        whole: the file is one JSON document.
    """
    fuller = recording.path.with_name(_FULL)
    if not recording.named and recording.path.name == _SHORT and fuller.exists():
        return iter(())
    return read_lines(Reader(recording.source), recording, whole=whole)


def _arguments(told: object) -> Any:
    """Give a call's arguments, the values of which are JSON texts."""
    if not isinstance(told, dict):
        return UNSET
    return {key: _value(part) for key, part in told.items() if key not in LABELS}


def _value(text: object) -> object:
    if not isinstance(text, str):
        return text
    try:
        return parse(text.encode("utf-8", "replace")).value
    except NotJson:
        return text


def ended(call: Call, content: object, code: object, *, failed: bool) -> None:
    """Take a result, without the times at its head, and how the call ended where that is told.

    Args:
        call: the call.
        content: what the tool answered.
        code: an exit code, where one is told apart; else that of a command is read from its answer.
        failed: the program says that the call failed.
    """
    content = result_of(content)
    times = _TIMES.match(content) if isinstance(content, str) else None
    if times and isinstance(content, str):
        content = content[times.end() :]
        begun, done = as_time(times["begun"]), as_time(times["ended"])
        if begun is not None and done is not None and done >= begun:
            call.duration_ms = (done - begun).total_seconds() * 1000
    call.result = content
    head = content[:_HEAD_CHARS] if isinstance(content, str) else ""
    said = _COMMAND_ENDED.search(head) if call.tool == "run_command" else None
    if not isinstance(code, int) or isinstance(code, bool):
        code = None if said is None else int(said["code"] or 0)
    if failed:
        call.status = "error"
    elif code is not None:
        call.status = "error" if code else "ok"
        call.error = ErrorInfo(code=code) if code else None
