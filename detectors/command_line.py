"""Tells what a command line is used for: the most telling of its commands, what they change, show and look for.

Which program is of which kind is data (`catalogue.toml`); here is how a command is looked up, and what redirections,
pipes and chains make of it. The work is bounded by `shell.READ_CHARS` and by how deep shells call shells; no text makes
it fail.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain

from msgspec.structs import replace

from detectors.code import changes_by_code
from detectors.operands import DEVICES, edited, has_option, looked_for, operands_of, sends_or_saves, shown
from detectors.shell import Part, parts_of
from detectors.use import Kind, Use
from detectors.wrappers import Words, Wrappers, base_of, inner_line, program_of

_CACHED_LINES = 4_096
_CACHED_CHARS = 1_000  # longer ones hardly come again; bounds what is remembered to 4 MB
_DEPTH = 3  # of shells called by shells: people write one, generated commands two
_SUBCOMMANDS = 3
_NAME_CHARS = 60  # of a program or sub-command; what is longer is text
_KEPT_CHARS = 300  # of a target or query

# The most telling last: a test run tells more of a chain than the edit before it, an edit more than a look; who hands
# in is done, whatever else the line does.
_TELLING: dict[Kind, int] = {
    "other": 0, "plan": 1, "interact": 2, "read": 3, "search": 4, "poll": 5, "run": 6, "edit": 7, "check": 8, "talk": 9,
}  # fmt: skip

_NAME = re.compile(r"[\w.~$@%+\[:-]*[\w$\[\]+-]\Z|[.:]\Z")  # no label of a text, no number of a list
_VERSION = re.compile(r"(?<=[a-z+])-?\d[\d.]*\Z")
_VERB_NOUN = re.compile(r"([A-Za-z]+)-[A-Za-z-]+\Z")
_FILTERS = frozenset({"read", "search"})  # kinds of what is one look with the command that is piped into it
_VERBS = frozenset({"check", "edit", "poll", "read", "search"})  # that such names begin with: Get-Acl, update-grub
_WORDS = re.compile(r"[a-z0-9]+")
_RUNS_COMMANDS = frozenset({"-exec", "-execdir", "-ok"})
_TRANSFERS = frozenset({"curl", "invoke-restmethod", "invoke-webrequest", "wget"})
_WRITERS = frozenset({":", "cat", "echo", "printf"})
_SCRATCH = re.compile(r"/(?:private/)?(?:var/)?tmp/|\$\{?TMP|.*\.(?:err|log|out)\Z", re.DOTALL)
Found = tuple[bool, Use]


class CommandLines:
    """Judges command lines by one catalogue, and remembers those that may come again."""

    __slots__ = (
        "_actions", "_checks", "_commands", "_flags", "_names", "_nested", "_remembered", "_usual", "_words",
        "_wrappers",
    )  # fmt: skip

    def __init__(
        self,
        *,
        commands: Mapping[str, Kind],
        wrappers: Mapping[str, int],
        options: Mapping[str, Iterable[str]],
        names: Mapping[str, Kind],
        words: Mapping[str, Kind],
        actions: Mapping[str, Kind],
        checks: Iterable[str],
    ) -> None:
        self._commands = commands
        self._wrappers = Wrappers(wrappers, options, commands.keys())
        self._names = names
        self._words = words
        self._actions = actions
        self._checks = frozenset(checks)
        self._nested: set[str] = set()  # programs with sub-commands
        self._flags: dict[str, dict[str, Kind]] = {}  # options that make another kind of a command
        for command, kind in commands.items():
            program, _, rest = command.partition(" ")
            before, _, flag = command.rpartition(" -")
            if rest and rest[0] != "-":
                self._nested.add(program)
            if before:
                self._flags.setdefault(before, {})[f"-{flag}"] = kind
        known = commands.keys() | self._flags.keys()
        self._usual = frozenset(program for program in known if _is_name(program))
        self._remembered = lru_cache(maxsize=_CACHED_LINES)(self._judged)

    def use(self, line: str) -> Use:
        """Return what the command line is used for."""
        return self._remembered(line) if len(line) <= _CACHED_CHARS else self._judged(line)

    def knows(self, program: str) -> bool:
        """Tell whether this is a program of command lines."""
        return program in self._commands or program in self._wrappers or _VERSION.sub("", program) in self._commands

    def _judged(self, line: str) -> Use:
        return _together(_through_pipes(self._read(line, "", 0, [])))

    def _read(self, line: str, folder: str, depth: int, found: list[Found]) -> list[Found]:
        """Add what the commands of a line are used for, each with whether it reads what the one before puts out."""
        for part in parts_of(line):
            words = self._wrappers.unwrapped(part.words)
            if not words:
                if part.writes:
                    found.append((part.piped, _written(Use("other", ":", executes=True), part)))
                continue
            program = program_of(words)
            if program == "cd" and len(words) > 1:
                folder = _joined(folder, words[1].rstrip("/"))
            inner = inner_line(program, words, part.given) if depth < _DEPTH else ""
            if inner:
                self._read(inner, folder, depth + 1, found)
                continue
            use = self._part(program, words, part.given)
            if part.writes:
                use = _written(use, part)
            if use.target:
                use = _within(folder, use)
            found.append((part.piped, use))
        return found

    def _part(self, program: str, words: Words, given: str) -> Use:
        if program not in self._usual:
            if not _is_name(program):
                return Use("other", executes=True)
            program = self._listed(program)
        operands = operands_of(words, self._wrappers.valued(program))
        kind, named = self._kind(program, words, operands)
        changes = False
        if kind == "run":
            kind = self._kind_of_run(words[0], program, operands)
            changes = changes_by_code(given or " ".join(words[1:4]))
        elif program == "test" and not operands:
            kind = "check"  # a script of the project by this name: hatch run test
        elif program == "echo" and kind == "plan" and any("$" in word for word in operands):
            kind = "read"  # it shows what a variable or a command says
        if program in _TRANSFERS:
            changes = sends_or_saves(program, words)
            kind = "run" if changes else "read"
        elif program == "find" and self._finds_to_change(words):
            kind = "edit"
        elif program == "tee" and all(map(_is_scratch, operands)):
            kind = "read"
        target, start, end, query = _aim(kind, program, operands[named:], words, given)
        changes = changes or kind == "edit"
        return Use(kind, program, True, changes, target, start, end, query)  # noqa: FBT003 -- it executes

    def _listed(self, program: str) -> str:
        """Return the program as it is listed, if it is: without its version, in lower case."""
        plain = _VERSION.sub("", program.lower().removesuffix(".exe"))
        return plain if plain in self._commands else program

    def _kind(self, program: str, words: Words, operands: Sequence[str]) -> tuple[Kind, int]:
        """Return the kind of a command, and how many of its operands are sub-commands."""
        names = [program]
        if program in self._nested:
            for word in operands[:_SUBCOMMANDS]:
                names.append(f"{names[-1]} {word[:_NAME_CHARS]}")
        depth = len(names) - 1
        for named in range(depth, -1, -1):
            name = names[named]
            if name in self._flags:
                for flag, kind in self._flags[name].items():
                    if has_option(words, flag):
                        return kind, named
            if name in self._commands:
                return self._commands[name], named or min(depth, 1)
        if program in self._names:  # a tool that an agent offers as a command
            action = self._actions.get(operands[0]) if operands else None
            return action or self._names[program], 1 if action else 0
        verb = _VERB_NOUN.match(program)
        kind = self._words.get(verb[1].lower(), "run") if verb else "run"
        return kind if kind in _VERBS else "run", 0

    def _kind_of_run(self, word: str, program: str, operands: Sequence[str]) -> Kind:
        """Return what running a script or target is by its name: ``./run_tests.sh`` and ``npm run lint`` check.

        Of a program that is not known only its own name counts, since a text sent to a shell speaks of tests as well.
        """
        known = program in self._commands or "/" in word or "." in word
        names = [base_of(word) for word in operands[:2] if len(word) <= _NAME_CHARS * 2] if known else []
        script = self._commands.get(f"{names[0]} {operands[1]}") if names and len(operands) > 1 else None
        if script is not None:
            return script  # python manage.py migrate
        if any(self._commands.get(name) == "check" for name in names):
            return "check"  # yarn jest
        words = chain.from_iterable(_WORDS.findall(name.lower()) for name in (program, *names) if " " not in name)
        return "run" if self._checks.isdisjoint(words) else "check"

    def _finds_to_change(self, words: Words) -> bool:
        for at, word in enumerate(words):
            if word == "-delete":
                return True
            if word in _RUNS_COMMANDS:
                found = self._wrappers.unwrapped(words[at + 1 :])
                if not found or program_of(found) == "find":
                    return False
                inner = inner_line(program_of(found), found, "")
                return self._part(program_of(found), found, "").changes or bool(inner and self._changes(inner))
        return False

    def _changes(self, line: str) -> bool:
        return any(use.changes for _, use in self._read(line, "", _DEPTH, []))


def _is_name(program: str) -> bool:
    return len(program) <= _NAME_CHARS and _NAME.match(program) is not None


def _aim(kind: Kind, program: str, operands: Sequence[str], words: Words, given: str) -> tuple[str, int, int, str]:
    """Return target, first line, last line and query of a simple command."""
    if kind == "edit":
        return edited(program, operands, words, given), 0, 0, ""
    if kind == "search":
        query, target = looked_for(program, operands, words)
        return target, 0, 0, query
    if kind == "read":
        target, (start, end) = shown(program, operands, words)
        return target, start, end, ""
    return "", 0, 0, ""


def _is_scratch(file: str) -> bool:
    return _SCRATCH.match(file) is not None or DEVICES.match(file) is not None


def _written(use: Use, part: Part) -> Use:
    """Count redirections to files as changes: a look becomes an edit of the file that it is written to.

    What a check prints, and what others print into a log or a temporary file, is a way to look at it and no change.
    """
    if not part.writes:
        return use
    files = [file for file in part.writes if not DEVICES.match(file)]
    if not files or use.kind == "check" or (use.program not in _WRITERS and all(map(_is_scratch, files))):
        return use
    if use.kind in {"edit", "run"}:
        return replace(use, changes=True)
    return Use("edit", use.program, executes=True, changes=True, target=files[-1])


def _within(folder: str, use: Use) -> Use:
    """Put a relative target into the folder that the command line went to."""
    if not folder and use.target[:2] != "./":
        return use
    target = _joined(folder, use.target.removeprefix("./"))
    return use if target == use.target else replace(use, target=target)


def _joined(folder: str, path: str) -> str:
    relative = folder and path and path[0] not in "/~$\\" and ":" not in path
    return f"{folder}/{path}" if relative else path


def _piped(before: Use, use: Use) -> Use:
    """Return what a command and a filter behind it in a pipe are together."""
    if use.kind == "search":
        if before.kind == "search":
            return replace(before, query=f"{before.query} {use.query}")
        return replace(use, target=before.target) if before.kind == "read" else use
    if before.kind != "read" or not (use.start or use.end):
        return before
    if not before.start and not before.end:
        return replace(before, start=use.start, end=use.end)
    first = before.start + use.start - 1
    last = before.start + use.end - 1 if use.end else before.end
    return replace(before, start=first, end=min(last, before.end) if before.end else last)


def _is_kept(use: Use) -> bool:
    """Tell whether the use of a line's only command is the line's as it stands: short, and without lines of nothing."""
    return len(use.target) <= _KEPT_CHARS >= len(use.query) and (use.target != "" or use.start == use.end == 0)


def _through_pipes(found: Iterable[Found]) -> list[Use]:
    """Return the uses of a chain, those of looks through pipes as one each."""
    uses: list[Use] = []
    for piped, use in found:
        if piped and uses and use.kind in _FILTERS and not use.target:
            if _TELLING[uses[-1].kind] <= _TELLING[use.kind]:
                uses[-1] = _piped(uses[-1], use)
        else:
            uses.append(use)
    return uses


def _together(uses: Sequence[Use]) -> Use:
    """Return one use for a chain: the most telling command's, with the changes of all."""
    if not uses:
        return Use("other", executes=True)
    if len(uses) == 1 and _is_kept(uses[0]):
        return uses[0]
    best, changes = uses[0], False
    for use in uses:
        changes = changes or use.changes
        if _TELLING[use.kind] > _TELLING[best.kind]:
            best = use
    alike = [use for use in uses if use.kind == best.kind]
    aimed = [use for use in alike if use.target]
    target, start, end = "", 0, 0
    if len(aimed) == 1:
        target, start, end = aimed[0].target[:_KEPT_CHARS], aimed[0].start, aimed[0].end
    elif aimed and all(use.target == aimed[0].target for use in aimed):
        target = aimed[0].target[:_KEPT_CHARS]
    query = " ".join(dict.fromkeys([use.query for use in alike if use.query]))[:_KEPT_CHARS]
    return Use(best.kind, best.program, True, changes, target, start, end, query)  # noqa: FBT003 -- it executes
