"""What the JSON Schemas of Codex's hooks demand, restated: which fields there are, and which must be there.

After `codex-rs/hooks/schema/generated` and the checks of `output_parser.rs` in openai/codex, read on 2026-12-02. No
package publishes them. Unknown fields are refused in both directions.
"""

from __future__ import annotations

from typing import Any, Final

_TEXT: Final = {"type": "string"}
_NULLABLE: Final = {"type": ["string", "null"]}
_MODES: Final = {"enum": ["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"]}
_BASE: Final = {"session_id": _TEXT, "transcript_path": _NULLABLE, "cwd": _TEXT, "model": _TEXT}
_MODE: Final = {"permission_mode": _MODES}
_TURN: Final = {"turn_id": _TEXT}
_TOOL: Final = {"tool_name": _TEXT, "tool_input": True, "tool_use_id": _TEXT}
_AGENT: Final = {"agent_id": _TEXT, "agent_type": _TEXT}
_SOURCE: Final = {"source": {"enum": ["startup", "resume", "clear", "compact"]}}
_STOP: Final = {"stop_hook_active": {"type": "boolean"}, "last_assistant_message": _NULLABLE}


def _closed(required: dict[str, Any], optional: dict[str, Any]) -> dict[str, Any]:
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {**required, **optional},
        "required": list(required),
        "additionalProperties": False,
    }


def _input(name: str, required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    return _closed({"hook_event_name": {"const": name}, **_BASE, **_MODE, **required}, optional or {})


INPUT: Final[dict[str, dict[str, Any]]] = {
    "PreToolUse": _input("PreToolUse", {**_TURN, **_TOOL}, _AGENT),
    "PostToolUse": _input("PostToolUse", {**_TURN, **_TOOL, "tool_response": True}, _AGENT),
    "UserPromptSubmit": _input("UserPromptSubmit", {**_TURN, "prompt": _TEXT}, _AGENT),
    "SessionStart": _input("SessionStart", _SOURCE),
    "SubagentStart": _input("SubagentStart", {**_TURN, **_AGENT}),
    "SubagentStop": _input("SubagentStop", {**_TURN, **_AGENT, **_STOP, "agent_transcript_path": _NULLABLE}),
    "Stop": _input("Stop", {**_TURN, **_STOP}),
}
"""Of what is handed to a hook, by its name."""

_FILLED: Final = {"type": "string", "pattern": r"\S"}
_STOPPING: Final = {"continue": {"type": "boolean"}, "stopReason": _TEXT, "systemMessage": _TEXT}


def _specific(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {"hookSpecificOutput": _closed({"hookEventName": {"const": name}}, fields)}


OUTPUT: Final[dict[str, dict[str, Any]]] = {
    "PreToolUse": _closed(
        {},
        {
            "systemMessage": _TEXT,
            **_specific(
                "PreToolUse",
                {
                    "permissionDecision": {"const": "deny"},
                    "permissionDecisionReason": _FILLED,
                    "additionalContext": _TEXT,
                },
            ),
        },
    ),
    "PostToolUse": _closed({}, {**_STOPPING, **_specific("PostToolUse", {"additionalContext": _TEXT})}),
    "UserPromptSubmit": _closed({}, {**_STOPPING, **_specific("UserPromptSubmit", {"additionalContext": _TEXT})}),
    "SessionStart": _closed({}, {**_STOPPING, **_specific("SessionStart", {"additionalContext": _TEXT})}),
    "SubagentStart": _closed({}, {**_STOPPING, **_specific("SubagentStart", {"additionalContext": _TEXT})}),
    "SubagentStop": _closed({}, _STOPPING),
    "Stop": _closed({}, _STOPPING),
}
"""Of what a hook answers, by its name: what is taken, which is less than the schemas allow."""
