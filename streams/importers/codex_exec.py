"""Reads what `codex exec --json` prints: one event a line, of today (`item.completed`) and of most of 2025 (`msg`).

A command, a call of an MCP server and a search are calls; their item tells output and exit code when it is completed.
A change of files names the files and not what was changed, so that two of them are never equal: its arguments count as
not recorded. The output has no times; the tokens of a turn are on the event of the turn.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from schemas.common import ErrorInfo, Usage
from streams.importers.build import Builder, Call, Session, Status, agent_of
from streams.importers.lines import LineReader, read_lines
from streams.importers.shape import arguments_of, as_count, as_dict, as_text, result_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streams.importers.files import Recording

NAME = "codex-exec"

_EVENTS = ("thread.started", "turn.started", "turn.completed", "turn.failed")
_ITEM_EVENTS = ("item.started", "item.updated", "item.completed")
_BEGINS = ("exec_command_begin", "mcp_tool_call_begin", "patch_apply_begin", "web_search_begin")
_ENDS = ("exec_command_end", "mcp_tool_call_end", "patch_apply_end", "web_search_end")
_OLD_EVENTS = (*_BEGINS, *_ENDS, "session_configured", "task_started", "task_complete", "token_count", "agent_message")
_STATUS: dict[str, Status] = {"completed": "ok", "failed": "error", "declined": "denied"}


def recognise(value: object) -> bool:
    """Tell whether a line is one of this format."""
    line = as_dict(value)
    kind = line.get("type")
    if kind in _EVENTS:
        return kind != "thread.started" or isinstance(line.get("thread_id"), str)
    if kind in _ITEM_EVENTS:
        return isinstance(as_dict(line.get("item")).get("type") or as_dict(line.get("item")).get("item_type"), str)
    return "id" in line and as_dict(line.get("msg")).get("type") in _OLD_EVENTS


class Reader(LineReader):
    """Reads the events of one run."""

    NAME = NAME

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self._builder = Builder(PurePath(source).name.split(".jsonl")[0], agent_of(NAME))
        self.builders[""] = self._builder
        self._by_id: dict[str, Call] = {}
        self._named = False

    def feed(self, value: object) -> None:
        """Take the next event."""
        line = as_dict(value)
        kind = line.get("type")
        message = as_dict(line.get("msg"))
        if message:
            self._old(message)
        elif kind == "thread.started":
            self._begin(line.get("thread_id"))
        elif kind in _ITEM_EVENTS:
            self._item(as_dict(line.get("item")), done=kind == "item.completed")
        elif kind == "turn.completed":
            self._builder.settle()
            self._builder.happened("turn", usage=_usage(as_dict(line.get("usage"))))
        elif kind == "turn.failed":
            self._builder.settle()
            self._builder.happened("ended", reason="failed")

    def finish(self) -> Iterator[Session]:
        """Give the run, if there is anything in it."""
        if self._named or self._builder.entries:
            yield from super().finish()

    def _begin(self, name: object, model: object = None) -> None:
        if not self._named:  # a resumed run says it again
            self._named = True
            self._builder.session_id = Builder(as_text(name) or self._builder.session_id).session_id
            self._builder.agent = agent_of(NAME, model)
            self._builder.happened("started")

    def _item(self, item: dict[str, Any], *, done: bool) -> None:
        name = as_text(item.get("id")) or ""
        call = self._by_id.get(name)
        if call is None:
            call = _call(item)
            if call is None:
                return
            self._by_id[name] = self._builder.call(call)
        if done and not call.settled:
            call.settled = True
            _completed(call, item)

    def _old(self, message: dict[str, Any]) -> None:
        kind, name = message.get("type"), as_text(message.get("call_id")) or ""
        if kind == "session_configured":
            self._begin(message.get("session_id"), message.get("model"))
        elif kind == "task_started":
            self._builder.settle()
        elif kind in _BEGINS and name not in self._by_id:
            self._by_id[name] = self._builder.call(_old_call(str(kind), message))
        elif kind in _ENDS and name in self._by_id and not self._by_id[name].settled:
            self._by_id[name].settled = True
            _old_end(self._by_id[name], message)


def read(recording: Recording, *, whole: bool) -> Iterator[Session]:
    """Read the run of a file.

    Args:
        recording: the file.
        whole: the file is one JSON document.
    """
    return read_lines(Reader(recording.source), recording, whole=whole)


def _usage(usage: dict[str, Any]) -> Usage | None:
    if not usage:
        return None
    return Usage(input_tokens=as_count(usage.get("input_tokens")), output_tokens=as_count(usage.get("output_tokens")))


def _call(item: dict[str, Any]) -> Call | None:
    """Give the call that an item is about; None for what is none, such as a message or a plan."""
    kind, name = item.get("type") or item.get("item_type"), as_text(item.get("id"))
    if kind == "command_execution":
        return Call("shell", arguments_of({"command": item.get("command")}), call_id=name)
    if kind == "file_change":
        return Call("apply_patch", call_id=name)
    if kind == "mcp_tool_call":
        tool = f"mcp__{as_text(item.get('server'))}__{as_text(item.get('tool'))}"
        return Call(tool, arguments_of(item.get("arguments", UNSET)), call_id=name)
    if kind == "web_search":
        return Call("web_search", {"query": item.get("query")}, call_id=name)
    if kind == "collab_tool_call":
        return Call(as_text(item.get("tool")) or "", {"prompt": item.get("prompt")}, call_id=name)
    return None


def _completed(call: Call, item: dict[str, Any]) -> None:
    kind = item.get("type") or item.get("item_type")
    call.status = _STATUS.get(as_text(item.get("status")) or "")
    if kind == "command_execution":
        output, code = item.get("aggregated_output"), item.get("exit_code")
        call.result = output if isinstance(output, str) else UNSET
        if isinstance(code, int):
            call.status = "ok" if code == 0 else "error"
            call.error = ErrorInfo(code=code) if code else None
    elif kind == "mcp_tool_call":
        error, result = as_dict(item.get("error")), item.get("result")
        call.result = result_of(error.get("message")) if error else _mcp_result(result)
    elif kind == "web_search":
        call.arguments = {"query": item.get("query")}  # it is not known yet when the search begins


def _mcp_result(result: object) -> Any:
    return result_of(as_dict(result).get("content", result)) if result is not None else UNSET


def _old_call(kind: str, message: dict[str, Any]) -> Call:
    name = as_text(message.get("call_id"))
    if kind == "mcp_tool_call_begin":
        asked = as_dict(message.get("invocation"))
        tool = f"mcp__{as_text(asked.get('server'))}__{as_text(asked.get('tool'))}"
        return Call(tool, arguments_of(asked.get("arguments", UNSET)), call_id=name)
    if kind == "patch_apply_begin":
        return Call("apply_patch", arguments_of(message.get("changes")), call_id=name)
    if kind == "web_search_begin":
        return Call("web_search", call_id=name)
    return Call("shell", arguments_of({"command": message.get("command")}), call_id=name)


def _old_end(call: Call, message: dict[str, Any]) -> None:
    duration = as_dict(message.get("duration"))
    if duration:
        call.duration_ms = as_count(duration.get("secs")) * 1000 + as_count(duration.get("nanos")) / 1_000_000
    code, success, result = message.get("exit_code"), message.get("success"), as_dict(message.get("result"))
    whole = message.get("aggregated_output")  # of standard output and error, where it is told
    texts = [message.get(name) for name in ("stdout", "stderr")] if whole is None else [whole]
    told = [text for text in texts if isinstance(text, str)]
    call.result = "".join(told) if told else UNSET
    if isinstance(code, int):
        call.status = "ok" if code == 0 else "error"
        call.error = ErrorInfo(code=code) if code else None
    elif isinstance(success, bool):
        call.status = "ok" if success else "error"
    elif result:
        answer = as_dict(result.get("Ok"))
        call.status = "error" if "Err" in result or answer.get("isError") is True else "ok"
        call.result = result_of(answer.get("content")) if answer else result_of(result.get("Err"))
    query = as_text(message.get("query"))
    if query:
        call.arguments = {"query": query}
