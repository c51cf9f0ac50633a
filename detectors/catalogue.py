"""Which tool is of which kind, and what a call of it is used for: settings, with the defaults of `catalogue.toml`.

The file is part of the program: it is read once, when this module is imported, and nothing is read at run time. Names
compare in their plain form (`tools.plain_name`). Nothing here reads results.
"""

import re
import tomllib
from functools import cached_property, lru_cache
from importlib.resources import files
from typing import Any

import msgspec

from detectors.code import changes_by_code
from detectors.command_line import CommandLines
from detectors.glance import signs_of, zeroed, zeroed_pattern
from detectors.masks import MASK
from detectors.shell import READ_CHARS
from detectors.target import Arguments, Given
from detectors.tools import PROGRAMS, command_of, likely_command, names_command, wrapped
from detectors.use import Kind, Use

__all__ = ["Kind", "Tools", "Use"]

_CACHED_NAMES = 1_024
_DEFAULTS: dict[str, Any] = tomllib.loads(files("detectors").joinpath("catalogue.toml").read_text("utf-8"))

# Of two words in a name the first counts, since names begin with what is done; but for these: who runs tests checks and
# who runs a query searches, who gets a status polls, who adds a note plans, and who sends a message talks.
_GIVES_WAY: dict[Kind, frozenset[Kind]] = {
    "edit": frozenset({"plan", "talk"}),
    "read": frozenset({"poll"}),
    "run": frozenset({"check", "plan", "search"}),
}
_SQL_CHANGE = re.compile(
    r"(?i)\s*(?:insert\s+into|update\s+\S+\s+set|delete\s+from|create\s+(?:table|view|index|or)|alter\s+table|drop\s+\w+)\s"
)
_ONE_ACTION_CHARS = 80  # of a text that is nothing but an action: "go to shelf 1"
_MAY_COMMAND = frozenset({"run", "other"})
_FIXED = frozenset({"plan", "talk"})  # whatever their arguments say
_FENCE = re.compile(r"```(\w*)\s*\n(.*?)(?:\n```|\Z)", re.DOTALL)
_FENCED_SHELLS = frozenset({"", "bash", "console", "sh", "shell", "zsh"})
_CELL_COMMAND = re.compile(r"\s*(?:%%(?:bash|sh|shell)\b|[!%](?=\w))")
_ONE_CALL = re.compile(r"\s*([a-z]+_[a-z_]+)\((?:[^\n]*\)\s*\Z|\s*\n)")  # of a tool, and not of `open`
_WORDS = re.compile(r"\s*(?:-|[\w./~-]+\.\w+(?:\s|\Z))[^\n]*\Z")
_ACTION_CHARS = 80
_ACTION = re.compile(r"\s*(?:[a-z]+\.)?([a-z]+(?:[ _-][a-z]+){0,3})\d*(?=[\s(\[:]|\Z)", re.IGNORECASE)

Signed = tuple[tuple[str, ...], re.Pattern[str] | None, re.Pattern[str]]
"""Texts of which one is in every text that a pattern matches, what then matches in the zeroed text, and the pattern."""


def _default(key: str) -> Any:
    value = _DEFAULTS[key]
    if isinstance(value, list):
        return msgspec.field(default=tuple(value))
    return msgspec.field(
        default_factory=lambda: {name: tuple(item) if isinstance(item, list) else item for name, item in value.items()}
    )


class Tools(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Kinds of tools and commands, and where in arguments the words for target, lines and query are.

    ``names`` are plain names of tools, ``words`` words of names that are not listed, ``actions`` what a tool with
    several (``selectors`` say by which argument) does. ``shells`` are tools and words of names that take a command
    line, which is judged by ``commands``, behind ``wrappers``, past ``options`` that take a value; ``codes`` are words
    of names that take program text, ``drives`` what in it operates a user interface, ``checks`` words in what runs
    that make it a check. ``inputs`` to ``queries`` are names of arguments, the first first, but for ``besides``: last
    words of names of what a shell tool takes beside its command line. ``labels`` lists, per tool name or ``*`` for all,
    top-level arguments that only describe the call to people; ``volatile`` regular expressions that are masked in
    results.

    Raises ValueError, naming the key, for a regular expression that is none or would mask everything, and for a
    command that could never match.
    """

    names: dict[str, Kind] = _default("names")
    words: dict[str, Kind] = _default("words")
    actions: dict[str, Kind] = _default("actions")
    selectors: tuple[str, ...] = _default("selectors")
    shells: tuple[str, ...] = _default("shells")
    codes: tuple[str, ...] = _default("codes")
    commands: dict[str, Kind] = _default("commands")
    wrappers: dict[str, int] = _default("wrappers")
    options: dict[str, tuple[str, ...]] = _default("options")
    checks: tuple[str, ...] = _default("checks")
    drives: tuple[str, ...] = _default("drives")
    inputs: tuple[str, ...] = _default("inputs")
    besides: tuple[str, ...] = _default("besides")
    paths: tuple[str, ...] = _default("paths")
    objects: tuple[str, ...] = _default("objects")
    starts: tuple[str, ...] = _default("starts")
    ends: tuple[str, ...] = _default("ends")
    ranges: tuple[str, ...] = _default("ranges")
    counts: tuple[str, ...] = _default("counts")
    queries: tuple[str, ...] = _default("queries")
    labels: dict[str, tuple[str, ...]] = _default("labels")
    volatile: dict[str, tuple[str, ...]] = _default("volatile")

    def __post_init__(self) -> None:
        for tool, patterns in self.volatile.items():
            for pattern in patterns:
                _check_pattern(f"volatile.{tool}", pattern)
        for table in ("commands", "wrappers"):
            for command in getattr(self, table):
                if command != " ".join(command.split()) or command[-1:] in {"", "-"}:
                    raise ValueError(f"{table}: {command!r} never matches; write words with single spaces between")

    def use(self, name: str, arguments: Any) -> Use:
        """Return what a call of the tool of this plain name, with these arguments (any JSON value), is used for."""
        return self._reader.use(name, arguments)

    def label_arguments(self, name: str) -> tuple[str, ...]:
        """Return the top-level arguments of the tool of this plain name that do not count for equality."""
        return self.labels.get("*", ()) + self.labels.get(name, ())

    def masks(self, name: str) -> tuple[re.Pattern[str], ...]:
        """Return what is masked in results of the tool of this plain name, beside what is masked in all."""
        return self._reader.masks(name)

    def masked(self, name: str, result: str) -> str:
        """Return a result of the tool of this plain name with what its `masks` match masked."""
        zeros = ""  # as long as nobody asked
        for signs, in_zeros, pattern in self._reader.signed(name):
            for sign in signs:
                if sign in result:
                    break
            else:
                if signs:
                    continue
            if in_zeros is not None:
                zeros = zeros or zeroed(result)
                if in_zeros.search(zeros) is None:
                    continue
            masked = pattern.sub(MASK, result)
            if masked != result:
                result, zeros = masked, ""
        return result

    @cached_property
    def _reader(self) -> "_Reader":
        return _Reader(self)


def _check_pattern(key: str, pattern: str) -> None:
    try:
        empty = re.compile(pattern).search("")
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{key}: {pattern!r} is no regular expression: {error}") from None
    if empty:
        raise ValueError(f"{key}: {pattern!r} matches where there is nothing, and would mask everything")


class _Reader:
    """What is made of one catalogue to read calls by, once."""

    __slots__ = (
        "_arguments",
        "_besides",
        "_codes",
        "_lines",
        "_shell_words",
        "_shells",
        "_tools",
        "kind",
        "masks",
        "signed",
    )

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._shells = frozenset(tools.shells)
        self._shell_words = self._shells - tools.words.keys()  # not `run`, which runs tests and experiments too
        self._codes = frozenset(tools.codes)
        self._besides = frozenset(tools.besides)
        self._lines = CommandLines(
            commands=tools.commands,
            wrappers=tools.wrappers,
            options=tools.options,
            names=tools.names,
            words=tools.words,
            actions=tools.actions,
            checks=tools.checks,
        )
        self._arguments = Arguments(
            paths=tools.paths, objects=tools.objects, starts=tools.starts, ends=tools.ends, ranges=tools.ranges,
            counts=tools.counts, queries=tools.queries, inputs=tools.inputs, selectors=tools.selectors,
        )  # fmt: skip
        self.kind = lru_cache(maxsize=_CACHED_NAMES)(self._named)
        self.masks = lru_cache(maxsize=_CACHED_NAMES)(self._masks)
        self.signed = lru_cache(maxsize=_CACHED_NAMES)(self._signed)

    def use(self, name: str, arguments: Any) -> Use:
        """Return the use of a call, as `Tools.use` says."""
        kind, shell, program = self.kind(name)
        if shell:
            return self._commanded(name, arguments)
        given = self._arguments.given(arguments)
        if kind in _MAY_COMMAND and self._takes_line(name, arguments, given):
            return self._commanded(name, arguments)
        if program and (name not in self._tools.names or _is_words(kind, arguments)):
            text = command_of(arguments) or given.first("inputs")
            if isinstance(text, str):
                return self._lines.use(f"{name} {text[:READ_CHARS]}")
        if kind == "run":
            return self._coded(name, arguments)
        if kind not in _FIXED:
            kind = self._action(given.first("selectors")) or kind
        worded = given.first("inputs") if isinstance(arguments, dict) and len(arguments) == 1 else arguments
        if not isinstance(worded, str):
            worded = arguments  # else they are nothing but the words of a command
        elif kind == "other" and len(worded) <= _ONE_ACTION_CHARS:
            kind = self._action(worded) or kind
        target, start, end, query = self._arguments.aim(kind, name, worded, given)
        if kind in {"read", "search"} and _SQL_CHANGE.match(query or target):
            kind, query = "edit", ""
        return Use(
            kind=kind,
            program=name,
            executes=kind in {"run", "check"},
            changes=kind == "edit",
            target=target,
            start=start,
            end=end,
            query=query,
        )

    def _named(self, name: str) -> tuple[Kind, bool, bool]:
        """Return a tool's kind by its name, whether it takes a command line, and whether it is a program itself."""
        program = self._lines.knows(name)
        listed = self._tools.names.get(name)
        if listed is not None:
            return listed, False, program
        if name in self._shells:
            return "run", True, program
        words = name.split("_")
        known = [self._tools.words[word] for word in words if word in self._tools.words]
        kind: Kind = known[0] if known else "other"
        if kind in {"run", "other"} and not self._shell_words.isdisjoint(words):
            return "run", True, program
        ways = _GIVES_WAY.get(kind, frozenset())
        return next((other for other in known if other in ways), kind), False, program

    def _takes_line(self, name: str, arguments: Any, given: Given) -> bool:
        """Tell whether a tool that is not known to takes a command line all the same."""
        if not isinstance(arguments, dict) or not self._codes.isdisjoint(name.split("_")):
            return False
        line = arguments.get("command", arguments.get("cmd"))
        return bool(line) and isinstance(line, str | list) and self._action(given.first("selectors")) is None

    def _commanded(self, name: str, arguments: Any) -> Use:
        """Return the use of a tool that takes a command line: what the line says, and without one a wait."""
        arguments = wrapped(arguments)
        line = command_of(arguments)[:READ_CHARS]
        if isinstance(arguments, dict):
            if not line:
                given = self._arguments.given(arguments)
                action = self._action(given.first("selectors"))
                if action:
                    return Use(action, name, executes=True, changes=action == "edit")
                line = self._unnamed(arguments, given.first("inputs"))[:READ_CHARS]
            elif "code" in arguments and not arguments.keys() & {"command", "cmd"}:
                return self._coded(name, arguments)
        elif isinstance(arguments, list):
            line = likely_command(arguments, self._besides)[:READ_CHARS]
        fence = _FENCE.search(line) if "```" in line else None
        if fence and fence[1].lower() not in _FENCED_SHELLS:
            return Use("run", fence[1].lower(), executes=True, changes=changes_by_code(fence[2]))
        line = fence[2] if fence else line
        if not line.strip():
            return Use("run" if arguments is None else "poll", name, executes=True)
        return self._lines.use(line)

    def _unnamed(self, arguments: dict[str, Any], given: Any) -> str:
        """Return the command line of a shell tool that does not call it a command.

        Where a usual name has nothing to say the agent looks at what the terminal shows; where there is no usual name
        the command goes by another, and is no look.
        """
        if isinstance(given, str) and (not given or arguments.keys().isdisjoint(PROGRAMS)):
            return given
        return "" if names_command(arguments) else likely_command(arguments, self._besides)

    def _coded(self, name: str, arguments: Any) -> Use:
        code = command_of(arguments)[:READ_CHARS]
        cell = _CELL_COMMAND.match(code)
        if cell:
            return self._lines.use(code[cell.end() :])
        call = _ONE_CALL.match(code)
        if call and call[1] in self._tools.names:
            kind = self._tools.names[call[1]]
            target, start, end, query = self._arguments.aim(kind, call[1], code)
            return Use(kind, call[1], changes=kind == "edit", target=target, start=start, end=end, query=query)
        if any(drive in code for drive in self._tools.drives):
            return Use("interact", name, executes=True)
        return Use("run", name, executes=True, changes=changes_by_code(code))

    def _action(self, value: Any) -> Kind | None:
        """Return the kind of the action that a tool with several is asked for, by the argument that selects it."""
        if isinstance(value, dict):
            value = value.get("type") or value.get("action") or value.get("name")
        if not isinstance(value, str):
            return None
        action = _ACTION.match(value[:_ACTION_CHARS])
        if action is None:
            return None
        words = action[1].lower().replace(" ", "_").replace("-", "_")
        while words:
            if words in self._tools.actions:
                return self._tools.actions[words]
            words = words.rpartition("_")[0]
        return None

    def _masks(self, name: str) -> tuple[re.Pattern[str], ...]:
        volatile = self._tools.volatile
        return tuple(re.compile(pattern) for pattern in (*volatile.get("*", ()), *volatile.get(name, ())))

    def _signed(self, name: str) -> tuple[Signed, ...]:
        return tuple((signs_of(pattern), zeroed_pattern(pattern), pattern) for pattern in self.masks(name))


def _is_words(kind: Kind, arguments: Any) -> bool:
    """Tell whether the arguments of a tool that is named like a program are a program's words, not a program's text."""
    if isinstance(arguments, dict):
        return not command_of(arguments) and bool(arguments.keys() & {"action", "args", "argv", "arguments"})
    return kind == "run" and isinstance(arguments, str) and _WORDS.match(arguments[:READ_CHARS]) is not None
