"""What kind of tool a call uses: whether it executes, edits or polls, and which of its arguments are mere labels.

The kinds are settings with defaults for common agents; names compare without case and without a server's prefix
(``mcp__github__get_issue`` is ``get_issue``). Nothing here reads results.
"""

import re
from typing import Any

import msgspec

_READ_CHARS = 4_000
_SLEEPS = re.compile(r"(?:^|[;&|]\s*|\bdo\s+)sleep\s+[\d.$]")
_CHANGES = re.compile(
    r"""(?x)
      (?<![-\w/])(?:
          sed\s+(?:-\w+\s+)*-\w*i | perl\s+-\w*i | apply_patch | patch\s | tee\s
        | git\s+(?:apply|checkout|restore|stash|reset|revert|commit|merge|rebase)
        | (?:mv|cp|rm|touch|mkdir|ln|chmod|install|unzip|tar)\s
        | (?:pip|pip3|npm|yarn|pnpm|cargo|go|apt|apt-get|gem|poetry|uv|brew)
          \s+(?:install|add|get|ci|uninstall|remove|upgrade)
      )
    | (?<![0-9&<>|=-])>{1,2}(?!\s*(?:/dev/null|&))\s*["']?[\w./~${-]
    | \bopen\([^)\n]*,\s*["'][wax] | \.write(?:_text|_bytes|lines)?\(
    """
)
_LEADING = re.compile(
    r"^(?:\s*(?:cd\s+\S+|export\s+\S+|set\s+\S+|source\s+\S+)\s*(?:&&|;)|\s*[A-Za-z_]\w*=\S*\s+|\s*(?:sudo|time|env)\s+)+"
)

_LABELS = {
    "*": (
        "task_progress",
        "toolAction",
        "toolSummary",
        "toolCallId",
        "tool_call_id",
        "call_id",
        "thought",
        "explanation",
        "display_name",
    ),
    "bash": ("description",),
    "execute_bash": ("security_risk", "summary"),
    "run_shell_command": ("description",),
    "run_terminal_cmd": ("description",),
    "shell": ("justification",),
}


class Tools(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Names of tools by kind, lower case and without prefix.

    ``labels`` lists, per tool name or ``*`` for all, top-level arguments that only describe the call to people.
    """

    execute: frozenset[str] = frozenset(
        {
            "bash", "shell", "exec", "exec_command", "execute", "execute_bash", "execute_code", "execute_command",
            "execute_ipython_cell", "computer_terminal", "local_shell", "python", "run", "run_code", "run_command",
            "run_in_terminal", "run_shell_command", "run_terminal_cmd", "run_tests", "shell_command", "terminal",
        }
    )  # fmt: skip
    edit: frozenset[str] = frozenset(
        {
            "apply_patch", "create", "create_file", "edit", "edit_file", "insert", "multiedit", "notebookedit", "patch",
            "replace", "replace_in_file", "search_replace", "str_replace", "str_replace_based_edit_tool",
            "str_replace_editor", "write", "write_file", "write_to_file",
        }
    )  # fmt: skip
    poll: frozenset[str] = frozenset(
        {
            "bashoutput", "check_status", "command_status", "get_status", "get_terminal_output", "poll", "read_output",
            "taskoutput", "wait", "wait_for", "write_stdin", "sleep",
        }
    )  # fmt: skip
    labels: dict[str, tuple[str, ...]] = msgspec.field(default_factory=lambda: dict(_LABELS))

    def executes(self, name: str) -> bool:
        """Tell whether the tool of this plain name runs something whose outcome is its answer."""
        return name in self.execute

    def label_arguments(self, name: str) -> tuple[str, ...]:
        """Return the top-level arguments of the tool of this plain name that do not count for equality."""
        return self.labels.get("*", ()) + self.labels.get(name, ())


def plain_name(tool: str) -> str:
    """Return the tool's name in lower case without the prefix of its server or namespace."""
    return re.split(r"__|[./:]", tool.rstrip("./:_"))[-1].lower() or tool.lower()


def command_of(arguments: Any) -> str:
    """Return the command line or program text among a call's arguments; empty when there is none."""
    if isinstance(arguments, str):
        return arguments
    if isinstance(arguments, dict):
        for key in ("command", "cmd", "code", "script", "input"):
            value = arguments.get(key)
            if isinstance(value, str):
                return value
            if isinstance(value, list) and value:
                return str(value[-1]) if str(value[0]) in {"bash", "sh", "zsh"} else " ".join(map(str, value))
    return ""


def program_of(command: str) -> str:
    """Return the program that a command line runs, past directory changes, assignments and wrappers."""
    rest = _LEADING.sub("", command[:_READ_CHARS]).strip()
    return rest.split(None, 1)[0].rsplit("/", 1)[-1] if rest else ""


def asks_to_poll(arguments: Any) -> bool:
    """Tell whether the arguments say that the call only asks how something is getting on."""
    return isinstance(arguments, dict) and str(arguments.get("action")) in {"poll", "wait", "status", "check_status"}


def changes_files(command: str) -> bool:
    """Tell whether a command line, by what it says, changes files or installs something: edits, redirects, moves."""
    return _CHANGES.search(command[:_READ_CHARS]) is not None


def waits(command: str) -> bool:
    """Tell whether a command line sleeps, as those that poll do."""
    return _SLEEPS.search(command[:_READ_CHARS]) is not None
