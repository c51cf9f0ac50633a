"""What kind of tool a call uses: whether it executes, edits or polls, and which of its arguments are mere labels.

The kinds are settings with defaults for common agents; names compare by their words, without case and without a
server's prefix (``mcp__github__getIssue`` is ``get_issue``). Nothing here reads results.
"""

import re
from functools import lru_cache
from typing import Any

import msgspec

_READ_CHARS = 4_000
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
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
    r"^(?:\s*(?:cd|export|set|source)\s+\S+\s*(?:&&|;)|\s*[A-Za-z_]\w*=\S*\s+|\s*(?:sudo|time|env)\s+)+"
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
    """Kinds of tools, by whole names and by words in names, lower case and without prefix.

    A tool is of a kind when its plain name is listed or when one of the name's words is (``replace_string_in_file``
    and ``replaceString`` have the word ``replace``). A whole name in one list goes before words in others, and names
    with a word of ``plan`` neither execute nor edit. ``interact`` are tools that press, click and scroll: a short
    word that it worked is no result. ``labels`` lists, per tool name or ``*`` for all, top-level arguments that
    only describe the call to people.
    """

    execute: frozenset[str] = frozenset(
        {
            "bash", "build", "cmd", "command", "compile", "console", "diagnostics", "eval", "exec", "execute",
            "ipython", "jupyter", "lint", "powershell", "python", "repl", "run", "sh", "shell", "terminal", "test",
            "tests",
        }
    )  # fmt: skip
    edit: frozenset[str] = frozenset(
        {
            "append", "apply", "create", "delete", "edit", "insert", "modify", "move", "multiedit", "notebookedit",
            "overwrite", "patch", "remove", "rename", "replace", "rewrite", "save", "update", "write",
        }
    )  # fmt: skip
    poll: frozenset[str] = frozenset(
        {
            "bashoutput", "check_status", "command_status", "get_status", "get_terminal_output", "poll", "read_output",
            "sleep", "taskoutput", "wait", "write_stdin",
        }
    )  # fmt: skip
    plan: frozenset[str] = frozenset(
        {"memory", "message", "note", "notes", "plan", "think", "thought", "todo", "todos", "todowrite"}
    )
    interact: frozenset[str] = frozenset({"click", "hover", "key", "press", "scroll", "swipe", "tap", "type"})
    labels: dict[str, tuple[str, ...]] = msgspec.field(default_factory=lambda: dict(_LABELS))

    def executes(self, name: str) -> bool:
        """Tell whether the tool of this plain name runs something whose outcome is its answer."""
        return name in self.execute or (self._is_of(name, self.execute) and name not in self.edit | self.poll)

    def edits(self, name: str) -> bool:
        """Tell whether the tool of this plain name changes something, files above all."""
        return name in self.edit or (self._is_of(name, self.edit) and name not in self.execute | self.poll)

    def polls(self, name: str) -> bool:
        """Tell whether the tool of this plain name waits, or asks how something is getting on."""
        return name in self.poll or not self.poll.isdisjoint(words_of(name))

    def interacts(self, name: str) -> bool:
        """Tell whether the tool of this plain name operates a user interface."""
        return self._is_of(name, self.interact)

    def label_arguments(self, name: str) -> tuple[str, ...]:
        """Return the top-level arguments of the tool of this plain name that do not count for equality."""
        return self.labels.get("*", ()) + self.labels.get(name, ())

    def _is_of(self, name: str, kind: frozenset[str]) -> bool:
        words = words_of(name)
        return not kind.isdisjoint(words) and self.plan.isdisjoint(words)


@lru_cache(maxsize=1_024)
def words_of(name: str) -> frozenset[str]:
    """Return the words of a plain name, which `plain_name` has put apart by underscores."""
    return frozenset(name.split("_"))


@lru_cache(maxsize=1_024)
def plain_name(tool: str) -> str:
    """Return the tool's name in lower case, words apart by underscores, without the prefix of its server."""
    last = re.split(r"__|[./:]", tool.rstrip("./:_"))[-1] or tool
    return re.sub(r"[^a-z0-9]+", "_", _HUMP.sub("_", last).lower()).strip("_") or tool.lower()


def command_of(arguments: Any) -> str:
    """Return the command line or program text among a call's arguments; empty when there is none."""
    if isinstance(arguments, str):
        return arguments
    if isinstance(arguments, dict):
        for key in ("command", "cmd", "code", "script", "input", "function", "expression"):
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
