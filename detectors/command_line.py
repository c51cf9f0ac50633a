"""Tells what a command line is used for: the most telling of its commands, what they change, show and look for.

Programs, wrappers and options are data (`catalogue.toml`); here is how a command is looked up among them. The work is
bounded by `shell.READ_CHARS` and by how deep shells call shells; no text makes it fail.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec.structs import replace

from detectors.operands import edited, has_option, looked_for, operands_of, option_value, shown
from detectors.shell import Part, parts_of
from detectors.use import Kind, Use

_CACHED_LINES = 4_096
_CACHED_CHARS = 1_000  # longer ones hardly come again; bounds what is remembered to 4 MB
_DEPTH = 3  # of shells called by shells: people write one, generated commands two
_SUBCOMMANDS = 3
_NAME_CHARS = 60  # of a program or sub-command; what is longer is text
_KEPT_CHARS = 300  # of a target or query

# The most telling last: a test run tells more of a chain than the edit before it, an edit more than a look.
_TELLING: dict[Kind, int] = {
    "other": 0, "plan": 1, "interact": 2, "read": 3, "search": 4, "poll": 5, "talk": 6, "run": 7, "edit": 8, "check": 9,
}  # fmt: skip

_SHELLS = frozenset({"bash", "cmd", "dash", "eval", "fish", "ksh", "powershell", "pwsh", "sh", "su", "zsh"})
_KEYWORDS = frozenset({"!", "{", "}", "do", "done", "elif", "else", "esac", "fi", "if", "then", "until", "while"})
_CLAUSES = frozenset({"for", "case", "function", "select"})  # the words behind them are no command
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_NAME = re.compile(r"[\w.~$@%+\[-]*[\w$\[\]+-]\Z|[.:]\Z")  # no label of a text, no number of a list
_VERB_NOUN = re.compile(r"([A-Za-z]+)-[A-Za-z-]+\Z")
_VERSION = re.compile(r"(?<=[a-z+])-?\d[\d.]*\Z")
_WORDS = re.compile(r"[a-z0-9]+")
_VERBS = frozenset({"check", "edit", "poll", "read", "search"})  # that names of commands begin with: Get-Acl
_RUNS_COMMANDS = frozenset({"-exec", "-execdir", "-ok"})
_TRANSFERS = frozenset({"curl", "invoke-restmethod", "invoke-webrequest", "wget"})
_METHODS = frozenset({"-Method", "-X", "--method", "--request"})
_SENDS = (
    "-d", "--data", "--data-binary", "--data-raw", "--data-urlencode", "-F", "--form", "--json", "-T", "--upload-file",
    "--post-data", "-Body",
)  # fmt: skip
_SAVES = ("-o", "--output", "--output-document", "-OutFile")
_WRITERS = frozenset({"", "cat", "echo", "printf"})
_DEVICES = re.compile(r"/dev/(?!shm)|&|\$null\Z|nul\Z|-\Z", re.IGNORECASE)
_SCRATCH = re.compile(r"/(?:var/)?tmp/|\$TMP|.*\.(?:err|log|out)\Z")
_CODE_CHANGES = re.compile(
    r"""(?x)
      \bopen\([^)\n]{0,200},\s*(?:mode\s*=\s*)?["'][rb]?[awx+] | \.write(?:_text|_bytes|lines)\(
    | \bwriteFile(?:Sync)?\( | \bos\.(?:remove|rename|replace|unlink|makedirs|mkdir)\(
    | \bshutil\.(?:copy\w*|move|rmtree)\( | \.(?:unlink|mkdir)\( | \bfs\.(?:unlink|rm|mkdir|rename|append)\w*\(
    | (?i:\b(?:insert\s+into|update\s+\w+\s+set|delete\s+from|(?:create|drop|alter)\s+table)\b)
    """
)


def changes_by_code(code: str) -> bool:
    """Tell whether program text, by what it says, changes files or tables."""
    return _CODE_CHANGES.search(code) is not None


class CommandLines:
    """Judges command lines by one catalogue, and remembers those that may come again."""

    __slots__ = (
        "_actions",
        "_checks",
        "_commands",
        "_flags",
        "_names",
        "_nested",
        "_options",
        "_remembered",
        "_words",
        "_wrappers",
    )

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
        self._names = names
        self._words = words
        self._actions = actions
        self._checks = frozenset(checks)
        self._options = {program: frozenset(valued) for program, valued in options.items()}
        self._wrappers: dict[str, dict[tuple[str, ...], int]] = {}
        for wrapper, own in wrappers.items():
            words_of_wrapper = tuple(wrapper.split())
            self._wrappers.setdefault(words_of_wrapper[0], {})[words_of_wrapper[1:]] = own
        self._nested: set[str] = set()
        self._flags: dict[str, dict[str, Kind]] = {}
        for command, kind in commands.items():
            first, space, rest = command.partition(" ")
            if space and rest[0] != "-":
                self._nested.add(first)
            before, dash, flag = command.rpartition(" -")
            if dash:
                self._flags.setdefault(before, {})[f"-{flag}"] = kind
        self._remembered = lru_cache(maxsize=_CACHED_LINES)(self._judged)

    def use(self, line: str) -> Use:
        """Return what the command line is used for."""
        return self._remembered(line) if len(line) <= _CACHED_CHARS else self._judged(line)

    def knows(self, program: str) -> bool:
        """Tell whether this is a program of command lines."""
        return program in self._commands or program in self._wrappers or _VERSION.sub("", program) in self._commands

    def _judged(self, line: str) -> Use:
        return _together(self._read(line, 0))

    def _read(self, line: str, depth: int) -> Iterator[tuple[Part, Use]]:
        folder = ""
        for part in parts_of(line):
            words = self._unwrapped(_command(part.words))
            if not words:
                if part.writes:
                    yield part, _written(Use("other", executes=True), part)
                continue
            program = _program(words)
            if program == "cd" and len(words) > 1:
                folder = words[1].rstrip("/")
            inner = _inner(program, words, part.given) if depth < _DEPTH else ""
            if inner:
                yield from self._read(inner, depth + 1)
            else:
                yield part, _within(folder, _written(self._part(program, words, part.given), part))

    def _unwrapped(self, words: tuple[str, ...]) -> tuple[str, ...]:
        """Return the command behind wrappers with their own options and words, and behind ``python -m``."""
        while words:
            program = _program(words)
            if program.startswith("python") and "-m" in words[1:4]:
                behind = words[words.index("-m") + 1 :]
                if not behind or not self.knows(behind[0].partition(".")[0]):
                    return words
                words = (behind[0].partition(".")[0], *behind[1:])
                continue
            known = self._wrappers.get(program)
            behind = self._behind(program, words, known) if known else ()
            if not behind:
                return words
            words = _command(behind)
        return words

    def _behind(self, program: str, words: tuple[str, ...], known: Mapping[tuple[str, ...], int]) -> tuple[str, ...]:
        valued = self._options.get(program, frozenset())
        sub: tuple[str, ...] = ()
        own = known.get(sub)
        skip = False
        for at, word in enumerate(words[1:], start=1):
            if skip or (word[:1] == "-" and len(word) > 1):
                skip = not skip and word in valued
            elif own is None or (*sub, word) in known:
                sub = (*sub, word)
                own = known.get(sub)
                if len(sub) > _SUBCOMMANDS:
                    return ()
            elif own > 0:
                own -= 1
            elif not _ASSIGNMENT.match(word):
                return words[at:]
        return ()

    def _part(self, program: str, words: tuple[str, ...], given: str) -> Use:
        if len(program) > _NAME_CHARS or not _NAME.match(program):
            return Use("other", executes=True)
        operands = operands_of(words, self._options.get(program, frozenset()))
        program, kind, named = self._kind(program, words, operands)
        changes = kind == "edit"
        if kind == "run":
            kind = "check" if self._checks_work(words[0], program, operands) else "run"
            changes = changes_by_code(given or " ".join(words[1:4]))
        if program in _TRANSFERS:
            kind, changes = _transfer(program, words)
        elif program == "find" and self._finds_to_change(words):
            kind, changes = "edit", True
        elif program == "echo" and kind == "plan" and any("$" in word for word in operands):
            kind = "read"  # it shows what a variable or a command says
        use = Use(kind, program, executes=True, changes=changes)
        return _aimed(use, operands[named:], words, given)

    def _kind(self, program: str, words: tuple[str, ...], operands: Sequence[str]) -> tuple[str, Kind, int]:
        """Return the program as it is listed, its kind, and how many of the operands are its sub-commands."""
        commands = self._commands
        if program not in commands and program not in self._flags:
            plain = _VERSION.sub("", program.lower().removesuffix(".exe"))
            program = plain if plain in commands else program
        depth = min(_SUBCOMMANDS, len(operands)) if program in self._nested else 0
        for named in range(depth, -1, -1):
            listed = " ".join((program, *(word[:_NAME_CHARS] for word in operands[:named])))
            for flag, kind in self._flags.get(listed, {}).items():
                if has_option(words, flag):
                    return program, kind, named
            if listed in commands:
                return program, commands[listed], named or min(depth, 1)
        if program in self._names:
            action = self._actions.get(operands[0]) if operands else None
            return program, action or self._names[program], 1 if action else 0
        verb = _VERB_NOUN.match(program)
        kind = self._words.get(verb[1].lower(), "run") if verb else "run"
        return program, kind if kind in _VERBS else "run", 0

    def _checks_work(self, word: str, program: str, operands: Sequence[str]) -> bool:
        """Tell whether the names of what runs say that it judges the work: ``./run_tests.sh``, ``npm run lint``.

        Of a program that is not known only its own name counts, since a text sent to a shell speaks of tests as well.
        """
        if len(operands) > 1 and self._commands.get(f"{_base(operands[0])} {operands[1]}") == "check":
            return True  # python manage.py test
        known = program in self._commands or "/" in word or "." in word
        for name in (program, *(_base(word) for word in operands[:2] if known and " " not in word)):
            if len(name) <= _NAME_CHARS and (
                self._commands.get(name) == "check" or not self._checks.isdisjoint(_WORDS.findall(name.lower()))
            ):
                return True
        return False

    def _finds_to_change(self, words: tuple[str, ...]) -> bool:
        for at, word in enumerate(words):
            if word == "-delete":
                return True
            if word in _RUNS_COMMANDS:
                found = words[at + 1 :]
                return bool(found) and self._part(_program(found), found, "").changes
        return False


def _command(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return a simple command from its program on: past keywords of the shell and assignments."""
    for at, word in enumerate(words):
        if word in _CLAUSES:
            return ()
        if word in _KEYWORDS or _ASSIGNMENT.match(word):
            continue
        assigns = word[:1] == "$" and words[at + 1 : at + 2] == ("=",)  # of PowerShell
        return words[at + 2 :] if assigns else words[at:]
    return ()


def _base(word: str) -> str:
    return word.rstrip("/").rpartition("/")[2] if "/" in word else word


def _program(words: tuple[str, ...]) -> str:
    word = words[0]
    return _base(word.replace("\\", "/")) if "/" in word or "\\" in word else word


def _inner(program: str, words: tuple[str, ...], given: str) -> str:
    """Return the command line that a shell is given to run; empty when there is none."""
    if len(words) == 1 and " " in words[0]:
        return words[0]  # what `ssh` was given in quotes
    if program.removesuffix(".exe") not in _SHELLS:
        return ""
    if program == "eval":
        return " ".join(words[1:])
    for at, word in enumerate(words[1:], start=1):
        if word.lower() in {"/c", "-command"}:
            return " ".join(words[at + 1 :])
        if word[:1] == "-" and word[-1:] == "c" and word[:2] != "--":
            return next((line for line in words[at + 1 :] if line[:1] != "-"), "")
    return given


def _transfer(program: str, words: tuple[str, ...]) -> tuple[Kind, bool]:
    """Return the kind of a web request: one for a page reads, one that sends or saves runs and changes something."""
    method = option_value(words, _METHODS) or next((word[2:] for word in words if word[:2] == "-X"), "")
    saved = option_value(words, _SAVES)
    saves = saved and not _DEVICES.match(saved)
    if program == "wget":
        to = option_value(words, ("-O", "--output-document", "-qO"))
        saves = "--spider" not in words and to != "-" and not any(word.endswith("O-") for word in words)
    elif program == "curl":
        saves = saves or has_option(words, "-O")
    sends = method.upper() not in {"", "GET", "HEAD", "OPTIONS"} or any(has_option(words, option) for option in _SENDS)
    return ("run", True) if sends or saves else ("read", False)


def _aimed(use: Use, operands: Sequence[str], words: tuple[str, ...], given: str) -> Use:
    """Add target, lines and query."""
    if use.kind == "edit":
        return replace(use, target=edited(use.program, operands, words, given))
    if use.kind == "search":
        query, target = looked_for(use.program, operands, words)
        return replace(use, query=query, target=target)
    if use.kind == "read":
        target, (start, end) = shown(use.program, operands, words)
        return replace(use, target=target, start=start, end=end)
    return use


def _written(use: Use, part: Part) -> Use:
    """Count redirections to files as changes: a look becomes an edit of the file that it is written to.

    What a program prints into a log or a temporary file is a way to look at it, no change; texts are written to keep.
    """
    files = [file for file in part.writes if not _DEVICES.match(file)]
    if not files or (use.program not in _WRITERS and all(map(_SCRATCH.match, files))):
        return use
    if use.kind in {"check", "edit", "run"}:
        return replace(use, changes=True)
    return Use("edit", use.program, executes=True, changes=True, target=files[-1])


def _within(folder: str, use: Use) -> Use:
    """Put a relative target into the folder that the command line went to."""
    target = use.target.removeprefix("./")
    if folder and target and target[0] not in "/~$\\" and ":" not in target:
        target = f"{folder}/{target}"
    return use if target == use.target else replace(use, target=target)


def _piped(before: Use, use: Use) -> Use:
    """Return what a command of a pipe and the filter behind it are together."""
    if use.kind == "search":
        return replace(use, target=before.target) if before.kind == "read" else use
    if before.kind != "read" or not (use.start or use.end):
        return before
    if not before.start and not before.end:
        return replace(before, start=use.start, end=use.end)
    if not use.end:
        return before
    first = before.start + use.start - 1
    last = before.start + use.end - 1
    return replace(before, start=first, end=min(last, before.end) if before.end else last)


def _together(read: Iterable[tuple[Part, Use]]) -> Use:
    """Return one use for a chain: the most telling command's, with the changes of all."""
    uses: list[Use] = []
    for part, use in read:
        if part.piped and uses and use.kind in {"read", "search"} and not use.target:
            uses[-1:] = [_piped(uses[-1], use)] if _TELLING[uses[-1].kind] <= _TELLING[use.kind] else [uses[-1]]
        else:
            uses.append(use)
    if not uses:
        return Use("other", executes=True)
    best = max(uses, key=lambda use: _TELLING[use.kind])
    alike = [use for use in uses if use.kind == best.kind]
    targets = {use.target for use in alike if use.target}
    query = " ".join(dict.fromkeys(use.query for use in alike if use.query))
    changes = any(use.changes for use in uses)
    if len(targets) != 1:
        return replace(best, changes=changes, target="", start=0, end=0, query=query[:_KEPT_CHARS])
    aimed = next(use for use in alike if use.target)
    target = aimed.target[:_KEPT_CHARS]
    several = sum(1 for use in alike if use.target) > 1
    start, end = (0, 0) if several else (aimed.start, aimed.end)
    return replace(best, changes=changes, target=target, start=start, end=end, query=query[:_KEPT_CHARS])
