"""Payloads of agents' hooks, written by hand from the types and schemas that the agents publish.

`test_published_types.py` compares them with these; the other tests read them.
"""

from __future__ import annotations

from typing import Any

_CLAUDE = {
    "session_id": "5f0c2a4e-6a0e-4a7f-9a53-2f1d0a3b7c11",
    "transcript_path": "/home/ada/.claude/projects/-home-ada-shop/5f0c2a4e.jsonl",
    "cwd": "/home/ada/shop",
    "permission_mode": "default",
}
_TESTS = {"command": "make test", "description": "Run the tests"}
_BASH = {"tool_name": "Bash", "tool_input": _TESTS, "tool_use_id": "toolu_01"}

CLAUDE_CODE: dict[str, dict[str, Any]] = {
    "PreToolUse": {**_CLAUDE, "hook_event_name": "PreToolUse", **_BASH, "effort": {"level": "high"}},
    "PostToolUse": {
        **_CLAUDE,
        "hook_event_name": "PostToolUse",
        **_BASH,
        "tool_response": {"stdout": "2 passed", "stderr": "warning: slow", "interrupted": False},
        "duration_ms": 812,
    },
    "PostToolUseFailure": {
        **_CLAUDE,
        "hook_event_name": "PostToolUseFailure",
        **_BASH,
        "error": "Exit code 1\n2 failed",
        "is_interrupt": False,
        "duration_ms": 640,
    },
    "PermissionDenied": {
        **_CLAUDE,
        "hook_event_name": "PermissionDenied",
        **_BASH,
        "reason": "The command is not allowed here",
    },
    "UserPromptSubmit": {
        **_CLAUDE,
        "hook_event_name": "UserPromptSubmit",
        "prompt_id": "0b0f8c1e-3b0c-4d4f-8f50-8a1b6d1c0a77",
        "prompt": "Please mend the tests",
        "source": "user",
    },
    "SessionStart": {**_CLAUDE, "hook_event_name": "SessionStart", "source": "startup", "model": "claude-opus"},
    "SessionEnd": {**_CLAUDE, "hook_event_name": "SessionEnd", "reason": "prompt_input_exit"},
    "SubagentStart": {
        **_CLAUDE,
        "hook_event_name": "SubagentStart",
        "agent_id": "a81f",
        "agent_type": "general-purpose",
    },
    "SubagentStop": {
        **_CLAUDE,
        "hook_event_name": "SubagentStop",
        "stop_hook_active": False,
        "agent_id": "a81f",
        "agent_type": "general-purpose",
        "agent_transcript_path": "/home/ada/.claude/projects/-home-ada-shop/5f0c2a4e/subagents/a81f.jsonl",
    },
    "Stop": {**_CLAUDE, "hook_event_name": "Stop", "stop_hook_active": False, "last_assistant_message": "Done."},
}
"""By the name of the hook."""

CLAUDE_CODE_SUB = {**CLAUDE_CODE["PreToolUse"], "agent_id": "a81f", "agent_type": "general-purpose"}

_CODEX = {
    "session_id": "019a2f6e-8d3b-7b11-a3a5-0c5c2d1e9f00",
    "transcript_path": None,
    "cwd": "/home/ada/shop",
    "model": "gpt-codex",
    "permission_mode": "default",
}
_SHELL = {"turn_id": "turn-3", "tool_name": "Bash", "tool_input": {"command": "make test"}, "tool_use_id": "call_7"}

CODEX: dict[str, dict[str, Any]] = {
    "PreToolUse": {**_CODEX, "hook_event_name": "PreToolUse", **_SHELL},
    "PostToolUse": {
        **_CODEX,
        "hook_event_name": "PostToolUse",
        **_SHELL,
        "tool_response": "Exit code: 1\nWall time: 0.6 seconds\nOutput:\n2 failed",
    },
    "UserPromptSubmit": {
        **_CODEX,
        "hook_event_name": "UserPromptSubmit",
        "turn_id": "turn-3",
        "prompt": "Please mend the tests",
    },
    "SessionStart": {**_CODEX, "hook_event_name": "SessionStart", "source": "startup"},
    "SubagentStart": {
        **_CODEX,
        "hook_event_name": "SubagentStart",
        "turn_id": "turn-3",
        "agent_id": "019a2f70",
        "agent_type": "explorer",
    },
    "SubagentStop": {
        **_CODEX,
        "hook_event_name": "SubagentStop",
        "turn_id": "turn-3",
        "agent_id": "019a2f70",
        "agent_type": "explorer",
        "agent_transcript_path": None,
        "stop_hook_active": False,
        "last_assistant_message": None,
    },
    "Stop": {
        **_CODEX,
        "hook_event_name": "Stop",
        "turn_id": "turn-3",
        "stop_hook_active": False,
        "last_assistant_message": "Done.",
    },
}

_GEMINI = {
    "session_id": "c2b8d7f2-1d0b-4c86-8b8a-b5a9f8f8d111",
    "transcript_path": "/home/ada/.gemini/tmp/shop/chats/session.json",
    "cwd": "/home/ada/shop",
    "timestamp": "2026-11-30T10:00:00.125Z",
}
_RUN = {"tool_name": "run_shell_command", "tool_input": {"command": "make test"}}

GEMINI_CLI: dict[str, dict[str, Any]] = {
    "BeforeTool": {**_GEMINI, "hook_event_name": "BeforeTool", **_RUN},
    "AfterTool": {
        **_GEMINI,
        "hook_event_name": "AfterTool",
        **_RUN,
        "tool_response": {"llmContent": "Output: 2 failed\nExit Code: 1", "returnDisplay": "2 failed"},
    },
    "BeforeAgent": {**_GEMINI, "hook_event_name": "BeforeAgent", "prompt": "Please mend the tests"},
    "AfterAgent": {
        **_GEMINI,
        "hook_event_name": "AfterAgent",
        "prompt": "Please mend the tests",
        "prompt_response": "Done.",
        "stop_hook_active": False,
    },
    "SessionStart": {**_GEMINI, "hook_event_name": "SessionStart", "source": "startup"},
    "SessionEnd": {**_GEMINI, "hook_event_name": "SessionEnd", "reason": "exit"},
    "PreCompress": {**_GEMINI, "hook_event_name": "PreCompress", "trigger": "auto"},
}

_OPENHANDS = {"session_id": "8a4c1d", "working_dir": "/home/ada/shop", "metadata": {}}
_TERMINAL = {
    "tool_name": "terminal",
    "tool_input": {"command": "make test", "is_input": False, "timeout": None, "kind": "TerminalAction"},
}

OPENHANDS: dict[str, dict[str, Any]] = {
    "PreToolUse": {**_OPENHANDS, "event_type": "PreToolUse", **_TERMINAL, "tool_response": None, "message": None},
    "PostToolUse": {
        **_OPENHANDS,
        "event_type": "PostToolUse",
        **_TERMINAL,
        "tool_response": {
            "content": [{"cache_prompt": False, "type": "text", "text": "2 failed"}],
            "is_error": False,
            "command": "make test",
            "exit_code": 2,
            "timeout": False,
            "kind": "TerminalObservation",
        },
    },
    "UserPromptSubmit": {**_OPENHANDS, "event_type": "UserPromptSubmit", "message": "Please mend the tests"},
    "SessionStart": {**_OPENHANDS, "event_type": "SessionStart"},
    "SessionEnd": {**_OPENHANDS, "event_type": "SessionEnd"},
    "Stop": {**_OPENHANDS, "event_type": "Stop", "metadata": {"reason": "finished"}},
}

ALL = {"claude-code": CLAUDE_CODE, "codex": CODEX, "gemini-cli": GEMINI_CLI, "openhands": OPENHANDS}
"""By agent, then by hook."""
