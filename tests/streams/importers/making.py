"""Writes one made-up session in each of the formats, as the program that it is of writes it.

The same steps in every format, so that a property can be held for all of them at once.
"""

from __future__ import annotations

import json
import sqlite3
import zipfile
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import cramjam

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

MS = 1_772_438_400_000
"""When the sessions begin: 2026-03-02T08:00:00Z, in milliseconds."""


@dataclass(frozen=True)
class Step:
    """A call and its result."""

    tool: str
    arguments: dict[str, Any] = field(default_factory=dict)
    result: str = "done"


def iso(number: int) -> str:
    """Give the time of a step."""
    return f"2026-03-02T08:{number // 60 % 60:02}:{number % 60:02}.000Z"


def text(value: object) -> str:
    """Give a value as JSON."""
    return json.dumps(value)


def lined(path: Path, values: Sequence[object]) -> Path:
    """Write one value a line."""
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
    return path


def written(path: Path, value: object) -> Path:
    """Write a document."""
    path.write_text(json.dumps(value, indent=1))
    return path


def claude_code(folder: Path, steps: Sequence[Step]) -> Path:
    """Write a transcript of Claude Code."""
    base = {"sessionId": "s", "version": "2.1.30", "isSidechain": False}
    lines: list[Any] = [base | {"type": "user", "uuid": "u", "timestamp": iso(0), "message": {"content": "Mend it"}}]
    for n, step in enumerate(steps):
        use = {"type": "tool_use", "id": f"t{n}", "name": step.tool, "input": step.arguments}
        answer = {"type": "tool_result", "tool_use_id": f"t{n}", "content": step.result}
        said = {"id": f"m{n}", "content": [use]}
        lines.append(base | {"type": "assistant", "uuid": f"a{n}", "timestamp": iso(n), "message": said})
        lines.append(base | {"type": "user", "uuid": f"r{n}", "timestamp": iso(n), "message": {"content": [answer]}})
    return lined(folder / "s.jsonl", lines)


def codex(folder: Path, steps: Sequence[Step]) -> Path:
    """Write a rollout of Codex."""
    lines: list[Any] = [{"timestamp": iso(0), "type": "session_meta", "payload": {"id": "s", "cwd": "/srv"}}]
    for n, step in enumerate(steps):
        call = {"type": "function_call", "name": step.tool, "arguments": text(step.arguments), "call_id": f"t{n}"}
        answer = {"type": "function_call_output", "call_id": f"t{n}", "output": step.result}
        used = {"input_tokens": 10 + n, "output_tokens": 1, "total_tokens": 11 * n + 1}
        told = {"type": "token_count", "info": {"last_token_usage": used, "total_token_usage": used}}
        lines.append({"timestamp": iso(n), "type": "response_item", "payload": call})
        lines.append({"timestamp": iso(n), "type": "event_msg", "payload": told})
        lines.append({"timestamp": iso(n), "type": "response_item", "payload": answer})
    return lined(folder / "rollout-s.jsonl", lines)


def codex_exec(folder: Path, steps: Sequence[Step]) -> Path:
    """Write what `codex exec --json` prints; the server's name is before that of the tool."""
    lines: list[Any] = [{"type": "thread.started", "thread_id": "s"}, {"type": "turn.started"}]
    for n, step in enumerate(steps):
        named = {"id": f"item_{n}", "type": "mcp_tool_call", "server": "s", "tool": step.tool}
        item = named | {"arguments": step.arguments}
        done = {"result": {"content": [{"type": "text", "text": step.result}]}, "error": None, "status": "completed"}
        lines.append({"type": "item.started", "item": item | {"status": "in_progress"}})
        lines.append({"type": "item.completed", "item": item | done})
    usage = {"input_tokens": 900, "cached_input_tokens": 100, "output_tokens": 50}
    return lined(folder / "exec.jsonl", [*lines, {"type": "turn.completed", "usage": usage}])


def _gemini_messages(steps: Sequence[Step]) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = [{"id": "u", "timestamp": iso(0), "type": "user", "content": [{"text": "Mend it"}]}]
    for n, step in enumerate(steps):
        answer = {"functionResponse": {"id": f"t{n}", "name": step.tool, "response": {"output": step.result}}}
        call = {"id": f"t{n}", "name": step.tool, "args": step.arguments, "result": [answer], "status": "success"}
        call["timestamp"] = iso(n)
        told.append({"id": f"m{n}", "timestamp": iso(n), "type": "gemini", "content": "", "toolCalls": [call]})
    return told


GEMINI_HEAD = {"sessionId": "s", "projectHash": "abc", "startTime": iso(0), "lastUpdated": iso(0)}


def gemini_chat(folder: Path, steps: Sequence[Step]) -> Path:
    """Write a saved chat of Gemini CLI, as one document."""
    return written(folder / "session-s.json", GEMINI_HEAD | {"messages": _gemini_messages(steps)})


def gemini_lines(folder: Path, steps: Sequence[Step]) -> Path:
    """Write a saved chat of Gemini CLI as lines: each message first without its calls, then with them."""
    lines: list[Any] = [GEMINI_HEAD]
    for message in _gemini_messages(steps):
        bare = {key: part for key, part in message.items() if key != "toolCalls"}
        lines += [bare, {"$set": {"lastUpdated": message["timestamp"]}}]
        lines += [message] if "toolCalls" in message else []
    return lined(folder / "session-s.jsonl", lines)


def gemini_stream(folder: Path, steps: Sequence[Step]) -> Path:
    """Write what Gemini CLI prints as `stream-json`."""
    lines: list[Any] = [{"type": "init", "timestamp": iso(0), "session_id": "s", "model": "gemini-example"}]
    lines.append({"type": "message", "timestamp": iso(0), "role": "user", "content": "Mend it"})
    for n, step in enumerate(steps):
        call = {"type": "tool_use", "timestamp": iso(n), "tool_name": step.tool, "tool_id": f"t{n}"}
        lines.append(call | {"parameters": step.arguments})
        answer = {"type": "tool_result", "timestamp": iso(n), "tool_id": f"t{n}", "status": "success"}
        lines.append(answer | {"output": step.result})
    return lined(folder / "gemini.jsonl", [*lines, {"type": "result", "timestamp": iso(99), "status": "success"}])


def pi(folder: Path, steps: Sequence[Step]) -> Path:
    """Write a session of pi."""
    lines: list[Any] = [{"type": "session", "version": 3, "id": "s", "timestamp": iso(0), "cwd": "/srv/shop"}]
    for n, step in enumerate(steps):
        call = {"type": "toolCall", "id": f"t{n}", "name": step.tool, "arguments": step.arguments}
        said = {"role": "assistant", "content": [call], "model": "example", "stopReason": "toolUse"}
        told = {"role": "toolResult", "toolCallId": f"t{n}", "toolName": step.tool, "isError": False}
        answer = told | {"content": [{"type": "text", "text": step.result}]}
        for kind, message in (("a", said), ("r", answer)):
            entry = {"type": "message", "id": f"{kind}{n}", "parentId": None, "timestamp": iso(n)}
            lines.append(entry | {"message": message})
    return lined(folder / "2026_s.jsonl", lines)


def cursor_stream(folder: Path, steps: Sequence[Step]) -> Path:
    """Write what Cursor's command line prints as `stream-json`."""
    start = {"type": "system", "subtype": "init", "apiKeySource": "login", "cwd": "/srv", "model": "example"}
    lines: list[Any] = [start | {"session_id": "s", "permissionMode": "default"}]
    for n, step in enumerate(steps):
        line = {"type": "tool_call", "call_id": f"t{n}", "session_id": "s"}
        told = {"args": step.arguments | {"toolCallId": f"x{n * 7}"}}
        done = told | {"result": {"success": {"content": step.result, "executionTime": n * 13}}}
        key = f"{step.tool}ToolCall"
        lines.append(line | {"subtype": "started", "tool_call": {key: told}, "timestamp_ms": MS + n * 1000})
        lines.append(line | {"subtype": "completed", "tool_call": {key: done}, "timestamp_ms": MS + n * 1000 + 5})
    return lined(folder / "cursor.jsonl", [*lines, {"type": "result", "subtype": "success", "session_id": "s"}])


def antigravity(folder: Path, steps: Sequence[Step]) -> Path:
    """Write a transcript of Antigravity."""
    asked = {"step_index": 0, "source": "USER_EXPLICIT", "type": "USER_INPUT", "status": "DONE", "created_at": iso(0)}
    lines: list[Any] = [asked | {"content": "<USER_REQUEST>\nMend it\n</USER_REQUEST>"}]
    for n, step in enumerate(steps):
        arguments = {key: text(part) for key, part in step.arguments.items()} | {"toolSummary": text(f"Look {n}")}
        line = {"source": "MODEL", "status": "DONE", "created_at": iso(n)}
        call = {"step_index": 2 * n + 1, "type": "PLANNER_RESPONSE"}
        lines.append(line | call | {"tool_calls": [{"name": step.tool, "args": arguments}]})
        shown = f"Created At: {iso(n)}\nCompleted At: {iso(n + 1)}\n{step.result}"
        lines.append(line | {"step_index": 2 * n + 2, "type": step.tool.upper(), "content": shown})
    place = folder / "brain" / "s" / ".system_generated" / "logs"
    place.mkdir(parents=True, exist_ok=True)
    return lined(place / "transcript.jsonl", lines)


def antigravity_stream(folder: Path, steps: Sequence[Step]) -> Path:
    """Write what Antigravity's command line prints."""
    lines: list[Any] = [{"event": "init", "conversation_id": "s", "init": {"model": "example"}}]
    for n, step in enumerate(steps):
        told = {"name": step.tool, "parameters": step.arguments | {"toolSummary": f"Look {n}"}}
        base = {"conversation_id": "s", "step_index": n, "step_type": "tool", "tool_name": step.tool}
        lines.append({"event": "step_update", "step_update": base | {"state": "ACTIVE", "tool_info": told}})
        told = told | {"output": step.result}
        lines.append({"event": "step_update", "step_update": base | {"state": "DONE", "tool_info": told}})
    return lined(folder / "stream.jsonl", lines)


def _opencode_part(n: int, step: Step) -> dict[str, Any]:
    state = {"status": "completed", "input": step.arguments, "output": step.result, "title": "", "metadata": {}}
    state["time"] = {"start": MS + n * 1000, "end": MS + n * 1000 + 40}
    part = {"id": f"prt_{n:03}", "sessionID": "ses_s", "messageID": f"msg_{n:03}"}
    return part | {"type": "tool", "callID": f"t{n}", "tool": step.tool, "state": state}


def _opencode_message(n: int, role: str = "assistant") -> dict[str, Any]:
    return {"id": f"msg_{n:03}", "sessionID": "ses_s", "role": role, "time": {"created": MS + n * 1000}}


OPENCODE_SESSION = {"id": "ses_s", "projectID": "p", "title": "Mend it", "time": {"created": MS, "updated": MS}}


def opencode_export(folder: Path, steps: Sequence[Step]) -> Path:
    """Write an export of OpenCode."""
    messages = [{"info": _opencode_message(n), "parts": [_opencode_part(n, step)]} for n, step in enumerate(steps)]
    return written(folder / "export.json", {"info": OPENCODE_SESSION, "messages": messages})


def opencode_run(folder: Path, steps: Sequence[Step]) -> Path:
    """Write what `opencode run --format json` prints."""
    told = [
        {"type": "tool_use", "timestamp": MS + n * 1000, "sessionID": "ses_s", "part": _opencode_part(n, step)}
        for n, step in enumerate(steps)
    ]
    return lined(folder / "run.jsonl", told)


def opencode_storage(folder: Path, steps: Sequence[Step]) -> Path:
    """Write the folders of OpenCode."""
    top = folder / "storage"
    for place in ("session/p", "message/ses_s", *(f"part/msg_{n:03}" for n in range(len(steps)))):
        (top / place).mkdir(parents=True, exist_ok=True)
    written(top / "session" / "p" / "ses_s.json", OPENCODE_SESSION)
    for n, step in enumerate(steps):
        written(top / "message" / "ses_s" / f"msg_{n:03}.json", _opencode_message(n))
        written(top / "part" / f"msg_{n:03}" / f"prt_{n:03}.json", _opencode_part(n, step))
    return top


def opencode_database(folder: Path, steps: Sequence[Step]) -> Path:
    """Write the database of OpenCode."""
    path = folder / "opencode.db"
    with sqlite3.connect(path) as db:
        db.executescript(
            "CREATE TABLE session (id TEXT, parent_id TEXT, title TEXT, time_created INTEGER);"
            "CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT);"
            "CREATE TABLE part (id TEXT, message_id TEXT, session_id TEXT, data TEXT);"
        )
        db.execute("INSERT INTO session VALUES ('ses_s', NULL, 'Mend it', ?)", (MS,))
        for n, step in enumerate(steps):
            message, part = _opencode_message(n), _opencode_part(n, step)
            row = (message.pop("id"), message.pop("sessionID"), MS + n, text(message))
            db.execute("INSERT INTO message VALUES (?, ?, ?, ?)", row)
            owners = (part.pop("id"), part.pop("messageID"), part.pop("sessionID"))
            db.execute("INSERT INTO part VALUES (?, ?, ?, ?)", (*owners, text(part)))
    db.close()
    return path


CRUSH = (
    "CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT, created_at INTEGER);"
    "CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT, role TEXT, parts TEXT, model TEXT, "
    "created_at INTEGER, updated_at INTEGER);"
)


def crush(folder: Path, steps: Sequence[Step]) -> Path:
    """Write a database of Crush."""
    path = folder / "crush.db"
    db = sqlite3.connect(path)
    db.executescript(CRUSH)
    db.execute("INSERT INTO sessions VALUES ('s', NULL, 'Mend it', 1772438400)")
    for n, step in enumerate(steps):
        call = {"id": f"t{n}", "name": step.tool, "input": text(step.arguments), "finished": True}
        answer = {"tool_call_id": f"t{n}", "name": step.tool, "content": step.result, "is_error": False}
        rows = (("a", "assistant", "tool_call", call), ("r", "tool", "tool_result", answer))
        for kind, role, part, data in rows:
            parts = text([{"type": part, "data": data}])
            row = (f"{kind}{n}", "s", role, parts, "example", 1772438400 + n, 0)
            db.execute("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    db.commit()
    db.close()
    return path


def cline_tools(folder: Path, steps: Sequence[Step]) -> Path:
    """Write the history of a task of Cline, with calls of tools."""
    messages: list[Any] = [{"role": "user", "content": [{"type": "text", "text": "<task>\nMend it\n</task>"}]}]
    for n, step in enumerate(steps):
        use = {"type": "tool_use", "id": f"t{n}", "name": step.tool, "input": step.arguments}
        answer = {"type": "tool_result", "tool_use_id": f"t{n}", "content": step.result}
        messages.append({"role": "assistant", "content": [use], "ts": MS + n * 1000})
        messages.append({"role": "user", "content": [answer]})
    place = folder / "1772438400"
    place.mkdir(exist_ok=True)
    return written(place / "api_conversation_history.json", messages)


def cline_tags(folder: Path, steps: Sequence[Step]) -> Path:
    """Write the history of a task of Cline, with calls as tags."""
    messages: list[Any] = [{"role": "user", "content": [{"type": "text", "text": "<task>\nMend it\n</task>"}]}]
    for n, step in enumerate(steps):
        inner = "".join(f"<{key}>{part}</{key}>\n" for key, part in step.arguments.items())
        said = f"I will look.\n\n<{step.tool}>\n{inner}</{step.tool}>"
        messages.append({"role": "assistant", "content": [{"type": "text", "text": said}], "ts": MS + n * 1000})
        parts = [f"[{step.tool} for 'it'] Result:", step.result, "<environment_details>\nat 8\n</environment_details>"]
        messages.append({"role": "user", "content": [{"type": "text", "text": part} for part in parts]})
    place = folder / "1772438401"
    place.mkdir(exist_ok=True)
    return written(place / "api_conversation_history.json", messages)


def atif(folder: Path, steps: Sequence[Step]) -> Path:
    """Write a trajectory in ATIF."""
    told: list[Any] = [{"step_id": 1, "timestamp": iso(0), "source": "user", "message": "Mend it"}]
    for n, step in enumerate(steps):
        call = {"tool_call_id": f"t{n}", "function_name": step.tool, "arguments": step.arguments}
        answer = {"source_call_id": f"t{n}", "content": step.result}
        line = {"step_id": n + 2, "timestamp": iso(n), "source": "agent", "message": ""}
        told.append(line | {"tool_calls": [call], "observation": {"results": [answer]}})
    agent = {"name": "example-agent", "version": "1", "model_name": "example"}
    return written(
        folder / "trajectory.json", {"schema_version": "ATIF-v1.6", "session_id": "s", "agent": agent, "steps": told}
    )


INSPECT = {"run_id": "run", "task": "shop", "model": "example/model", "created": iso(0)}


def _inspect_sample(steps: Sequence[Step]) -> dict[str, Any]:
    events = [
        {"event": "tool", "type": "function", "id": f"t{n}", "function": step.tool, "arguments": step.arguments}
        | {"result": step.result, "timestamp": iso(n), "completed": iso(n), "span_id": "main"}
        for n, step in enumerate(steps)
    ]
    return {"id": "one", "epoch": 1, "input": "Mend it", "messages": [], "events": events, "attachments": {}}


def inspect_json(folder: Path, steps: Sequence[Step]) -> Path:
    """Write a log of Inspect as one document."""
    log = {"version": 2, "status": "success", "eval": INSPECT, "plan": {}, "samples": [_inspect_sample(steps)]}
    return written(folder / "log.json", log)


def inspect_eval(folder: Path, steps: Sequence[Step]) -> Path:
    """Write a log of Inspect as an archive, deflated."""
    path = folder / "log.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("header.json", text({"version": 2, "status": "success", "eval": INSPECT, "plan": {}}))
        packed.writestr("samples/one_epoch_1.json", text(_inspect_sample(steps)))
    return path


def inspect_zstd(folder: Path, steps: Sequence[Step]) -> Path:
    """Write a log of Inspect as an archive packed with Zstandard, as its writer of 2026 does."""
    path = inspect_eval(folder, steps)
    with zipfile.ZipFile(path) as packed:
        members = {name: packed.read(name) for name in packed.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as packed:
        for name, content in members.items():
            packed.writestr(name, bytes(cramjam.zstd.compress(content)))
    data = bytearray(path.read_bytes())
    for signature, at in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):  # the same archive with what was packed named
        start = -1
        for content in members.values():
            start = data.index(signature, start + 1)
            data[start + at : start + at + 2] = (93).to_bytes(2, "little")
            check = zlib.crc32(content).to_bytes(4, "little")
            data[start + at + 6 : start + at + 10] = check
            data[start + at + 14 : start + at + 18] = len(content).to_bytes(4, "little")
    path.write_bytes(data)
    return path


def mini_swe_agent(folder: Path, steps: Sequence[Step]) -> Path:
    """Write a trajectory of mini-swe-agent with calls of tools; its one tool is `bash`."""
    messages: list[Any] = [{"role": "user", "content": "Mend it"}]
    for n, step in enumerate(steps):
        action = {"command": text({"tool": step.tool} | step.arguments), "tool_call_id": f"t{n}"}
        messages.append({"role": "assistant", "content": None, "extra": {"actions": [action]}})
        extra = {"raw_output": step.result, "returncode": 0}
        messages.append({"role": "tool", "tool_call_id": f"t{n}", "content": step.result, "extra": extra})
    document = {"trajectory_format": "mini-swe-agent-1.1", "info": {"mini_version": "2.1"}, "messages": messages}
    return written(folder / "s.traj.json", document)


def neutral(folder: Path, steps: Sequence[Step]) -> Path:
    """Write lines of the neutral form."""
    told = [
        {"session_id": "s", "seq": n, "ts": iso(n), "tool": step.tool, "args": step.arguments, "result": step.result}
        | {"error": False, "call_id": f"t{n}"}
        for n, step in enumerate(steps)
    ]
    return lined(folder / "calls.jsonl", told)


LINED: dict[str, tuple[str, Callable[[Path, Sequence[Step]], Path]]] = {
    "claude-code": ("claude-code", claude_code),
    "codex": ("codex", codex),
    "codex-exec": ("codex-exec", codex_exec),
    "gemini-lines": ("gemini-cli", gemini_lines),
    "gemini-stream": ("gemini-cli", gemini_stream),
    "pi": ("pi", pi),
    "cursor": ("cursor", cursor_stream),
    "antigravity": ("antigravity", antigravity),
    "antigravity-stream": ("antigravity-stream", antigravity_stream),
    "opencode-run": ("opencode", opencode_run),
    "neutral": ("neutral", neutral),
}
"""Those that are written line by line, each with the name of the format."""

WHOLE: dict[str, tuple[str, Callable[[Path, Sequence[Step]], Path]]] = {
    "gemini-chat": ("gemini-cli", gemini_chat),
    "opencode-export": ("opencode", opencode_export),
    "opencode-storage": ("opencode", opencode_storage),
    "opencode-database": ("opencode", opencode_database),
    "crush": ("crush", crush),
    "cline-tools": ("cline", cline_tools),
    "cline-tags": ("cline", cline_tags),
    "atif": ("atif", atif),
    "inspect-json": ("inspect-ai", inspect_json),
    "inspect-eval": ("inspect-ai", inspect_eval),
    "inspect-zstd": ("inspect-ai", inspect_zstd),
    "mini-swe-agent": ("mini-swe-agent", mini_swe_agent),
}
"""Those that are written as a whole."""

ALL = LINED | WHOLE
