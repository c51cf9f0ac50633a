"""Takes calls and results out of texts, as Cline and Roo write them for models without tool calls of their own.

A call is a tag with the tool's name around tags with its arguments; its result is a text that begins with
`[tool for '…'] Result:`, without an id. Knows no messages: gives what one text holds.
"""

from __future__ import annotations

import re

_TOOLS = (
    "access_mcp_resource",
    "apply_diff",
    "apply_patch",
    "ask_followup_question",
    "attempt_completion",
    "browser_action",
    "codebase_search",
    "condense",
    "edit_file",
    "execute_command",
    "fetch_instructions",
    "generate_image",
    "insert_content",
    "list_code_definition_names",
    "list_files",
    "load_mcp_documentation",
    "new_rule",
    "new_task",
    "plan_mode_respond",
    "plan_mode_response",
    "read_file",
    "replace_in_file",
    "report_bug",
    "run_slash_command",
    "search_and_replace",
    "search_files",
    "skill",
    "switch_mode",
    "update_todo_list",
    "use_mcp_tool",
    "use_skill",
    "web_fetch",
    "web_search",
    "write_to_file",
)
"""What the two of them call their tools."""

_OPENS = re.compile(rf"<({'|'.join(_TOOLS)})>")
_ARGUMENT = re.compile(r"<([a-zA-Z_][a-zA-Z0-9_]{0,60})>")
_LONG = ("content", "diff", "args", "arguments", "operations", "patch")
"""Arguments that may hold tags of their own: they end where their closing tag stands last."""

_RESULT = re.compile(r"\[([a-z_]{2,60})[ \]]")
_CLOSES = "] Result:"
_DESCRIPTION_CHARS = 20_000
"""Longest description of a call, which is its command or path, looked through for the end of it."""


def calls_in(text: str) -> list[tuple[str, dict[str, str]]]:
    """Give the calls in a text, each with the tool's name and its arguments."""
    found: list[tuple[str, dict[str, str]]] = []
    end = 0
    while (opened := _OPENS.search(text, end)) is not None:
        closing = f"</{opened[1]}>"
        close = text.find(closing, opened.end())
        if close < 0:  # the answer broke off
            found.append((opened[1], _arguments(text[opened.end() :])))
            break
        found.append((opened[1], _arguments(text[opened.end() : close])))
        end = close + len(closing)
    return found


def _arguments(text: str) -> dict[str, str]:
    arguments: dict[str, str] = {}
    end = 0
    while (opened := _ARGUMENT.search(text, end)) is not None:
        name = opened[1]
        closing = f"</{name}>"
        close = text.rfind(closing, opened.end()) if name in _LONG else text.find(closing, opened.end())
        stop = len(text) if close < 0 else close
        arguments[name] = text[opened.end() : stop].strip("\n") if name in _LONG else text[opened.end() : stop].strip()
        end = stop + len(closing)
    return arguments


def result_in(text: str) -> tuple[str, str] | None:
    """Give the tool's name and the result of a text that is one; None when it is none."""
    found = _RESULT.match(text)
    close = text.find(_CLOSES, 0, _DESCRIPTION_CHARS) if found is not None else -1
    return None if found is None or close < 0 else (found[1], text[close + len(_CLOSES) :].removeprefix("\n"))
