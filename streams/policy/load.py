"""Reads a policy file: TOML, checked completely, and all of its faults told at once, each with its key and the remedy.

What one rule sets is tried on what holds for everything, and each two rules that may hold together are tried together,
so that nothing is left to be refused when it is too late. It reads no secret, so that a policy can be checked anywhere.
"""

from __future__ import annotations

import itertools
import tomllib
from typing import TYPE_CHECKING, Any

from detectors import Limits, limits_from
from streams.config import suggest
from streams.policy.conditions import FIELDS, Glob, InvalidGlob, When, read_glob
from streams.policy.ladder import Problem, contradictions, read_ladder
from streams.policy.limits import beside, read_limits
from streams.policy.policy import Policy, Rule
from streams.sinks.errors import InvalidSinks
from streams.sinks.settings import read_sinks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

MAX_BYTES = 2**20
"""Largest file that is read: a policy is written by people."""

MAX_RULES = 100
"""Each two are tried together; more rules are better told by globs."""

MAX_PROBLEMS = 50
"""Problems told at once; a file with more is not the file that was meant."""

MAX_NAME_CHARS = 100

TABLES = ("ladder", "limits", "rule", "sinks")
RULE_KEYS = ("name", "when", "ladder", "limits")

GLOBAL = frozenset({"sessions.ended_hours", "sessions.idle_days", "tasks.retention_days"})
"""Limits that no rule can set: what is old is removed by one look at all sessions and tasks."""


class UnreadablePolicy(Exception):
    """A policy file cannot be read at all: the message names the file and the remedy."""


class InvalidPolicy(ValueError):
    """A policy file says what it cannot say.

    Args:
        path: the file.
        problems: what is wrong, each with its key and the remedy.
    """

    def __init__(self, path: Path, problems: Sequence[str]) -> None:
        super().__init__(path, problems)
        self.path = path
        self.problems = tuple(problems)

    def __str__(self) -> str:
        return "\n".join(f"{self.path}: {problem}" for problem in self.problems)


def read_policy(path: Path, base: Limits) -> Policy:
    """Read a policy file.

    Args:
        path: the file.
        base: the limits that it lies over.

    Raises:
        UnreadablePolicy: there is no such file, or it cannot be read.
        InvalidPolicy: it is no policy.
    """
    return parse_policy(path, read_bytes(path), base)


def read_bytes(path: Path) -> bytes:
    """Read a file that may be a policy.

    Raises:
        UnreadablePolicy: there is no such file, or it cannot be read.
    """
    try:
        # It is read again and again; a pipe would be waited for.
        if path.exists() and not path.is_file():
            raise UnreadablePolicy(f"{path}: is no regular file; name a TOML file")
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as problem:
        raise UnreadablePolicy(f"{path}: cannot be read ({problem.strerror}); name a TOML file") from problem
    if len(content) > MAX_BYTES:
        raise UnreadablePolicy(f"{path}: has more than {MAX_BYTES:,} bytes; name a policy")
    return content


def parse_policy(path: Path, content: bytes, base: Limits) -> Policy:
    """Make a policy of a file's content.

    Args:
        path: the file, for messages and for the names of layers.
        content: what is in it.
        base: the limits that it lies over.

    Raises:
        InvalidPolicy: it is no policy.
    """
    if not content:
        # What is being written is empty for a moment, and would be a policy that takes all limits back.
        raise InvalidPolicy(path, ["is empty; write a comment into it if it is to set nothing"])
    try:
        tables = tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError as problem:
        raise InvalidPolicy(
            path, [f"is not UTF-8 ({problem.reason} at byte {problem.start}); save it as such"]
        ) from None
    except (ValueError, RecursionError) as problem:  # a number of thousands of digits is no TOMLDecodeError
        raise InvalidPolicy(path, [f"is not TOML: {problem}; mend it there"]) from None
    reading = _Reading(path, base)
    try:
        policy = reading.read(tables)
    except RecursionError:
        raise InvalidPolicy(
            path, ["has keys of too many parts, or tables too deep in each other; make them fewer"]
        ) from None
    if reading.problems:
        more = len(reading.problems) - MAX_PROBLEMS
        told = reading.problems[:MAX_PROBLEMS] + (
            [f"has {more:,} more problems at least; mend these first"] * (more > 0)
        )
        raise InvalidPolicy(path, told)
    return policy


class _Reading:
    """Reads the tables of one file, and collects what is wrong."""

    def __init__(self, path: Path, base: Limits) -> None:
        self.problems: list[str] = []
        self._path = path
        self._base = base
        self._sinks: frozenset[str] = frozenset()

    def read(self, tables: Mapping[str, Any]) -> Policy:
        """Read all of it. What comes back is of use only when there are no problems."""
        for key in tables:
            if key not in TABLES:
                self._fault("", Problem(key, f"there is no such table; {suggest(key, TABLES)}"))
        sinks = self._sink_tables(tables.get("sinks", {}))
        ladder = self._ladder("", tables.get("ladder", {}))
        limits = self._limits("", tables.get("limits", {}), self._base)
        common = limits_from([("", limits)], self._base)
        given = tables.get("rule", [])
        if not isinstance(given, list) or not all(isinstance(rule, dict) for rule in given):
            self._fault("", Problem("rule", "is no list of tables; begin each rule with [[rule]]"))
            given = []
        if len(given) > MAX_RULES:
            self._fault("", Problem("rule", f"there are more than {MAX_RULES}; join some by globs"))
            given = []
        rules = [
            self._rule(number, table, given[: number - 1], common, ladder) for number, table in enumerate(given, 1)
        ]
        if self.problems:  # whatever else is said then is likely to follow from these
            return Policy()
        self._together(rules, common, ladder)
        return Policy(self._base, path=self._path, ladder=ladder, limits=limits, rules=rules, sinks=sinks)

    def _rule(
        self,
        number: int,
        table: dict[str, Any],
        before: Iterable[dict[str, Any]],
        common: Limits,
        ladder: Mapping[str, Any],
    ) -> Rule:
        name = table.get("name")
        place = f'rule "{name}"' if _is_name(name) else f"rule {number}"
        if name is None:
            self._fault(place, Problem("name", 'is missing; write name = "..."'))
        elif not _is_name(name):
            told = f"is no text of 1 to {MAX_NAME_CHARS} printable characters; choose another"
            self._fault(place, Problem("name", told))
        elif any(name == other.get("name") for other in before):
            self._fault(place, Problem("name", "another rule has this name; choose another"))
        for key in table:
            if key in FIELDS:
                self._fault(place, Problem(key, f"stands outside of the condition; write when.{key}"))
            elif key not in RULE_KEYS:
                self._fault(place, Problem(key, f"there is no such key; {suggest(key, RULE_KEYS)}"))
        known = len(self.problems)
        when = self._when(place, table.get("when", {}))
        own_ladder = self._ladder(place, table.get("ladder", {}), ladder)
        own_limits = self._limits(place, table.get("limits", {}), common)
        for key in sorted(GLOBAL & own_limits.keys()):
            self._fault(place, Problem(f"limits.{key}", "holds for all tasks alike; set it in the table [limits]"))
        if not own_ladder and not own_limits and known == len(self.problems):
            self._fault(place, Problem("", "sets nothing; give it a key of `ladder` or of `limits`, or take it out"))
        return Rule(str(name), when, own_ladder, own_limits)

    def _when(self, place: str, table: object) -> When:
        if not isinstance(table, dict):
            self._fault(place, Problem("when", 'is no table; write for example when.repo = "acme/*"'))
            return When()
        if not table:
            told = f"asks for nothing; ask for one of {', '.join(FIELDS)}, or set what holds for all outside of rules"
            self._fault(place, Problem("when", told))
        found: dict[str, tuple[Glob, ...]] = {}
        for key, value in table.items():
            if key not in FIELDS:
                self._fault(place, Problem(f"when.{key}", f"there is no such field; {suggest(key, FIELDS)}"))
            else:
                found[key] = self._globs(place, f"when.{key}", value)
        return When(**found)

    def _globs(self, place: str, key: str, value: object) -> tuple[Glob, ...]:
        globs = value if isinstance(value, list) else [value]
        if not globs:
            self._fault(place, Problem(key, "is an empty list and matches nothing; name something, or take it out"))
        found = []
        for number, glob in enumerate(globs):
            at = f"{key}[{number}]" if isinstance(value, list) else key
            if not isinstance(glob, str):
                self._fault(place, Problem(at, f'is no text; write {key} = "..." or a list of texts'))
                continue
            try:
                found.append(read_glob(glob))
            except InvalidGlob as problem:
                self._fault(place, Problem(at, str(problem)))
        return tuple(found)

    def _ladder(self, place: str, table: object, common: Mapping[str, Any] | None = None) -> dict[str, Any]:
        if not isinstance(table, dict):
            self._fault(place, Problem("ladder", "is no table; write for example ladder.cooldown_seconds = 60"))
            return {}
        values, problems = read_ladder(table)
        for number, sink in enumerate(values.get("notify") or ()):
            if sink not in self._sinks:
                told = f"there is no table [sinks.{sink}] in this file; {suggest(sink, self._sinks)}"
                problems.append(Problem(f"notify[{number}]", told))
        # What nobody set cannot contradict: it gives way.
        problems += contradictions([("", common or {}), ("", values)]) if values else []
        for key, told in problems:
            self._fault(place, Problem(f"ladder.{key}", told))
        return values

    def _limits(self, place: str, table: object, on: Limits) -> dict[str, Any]:
        if not isinstance(table, dict):
            self._fault(place, Problem("limits", "is no table; write for example limits.identical.warn = 3"))
            return {}
        values, problems = read_limits(table, on)
        for problem in problems:
            self._fault(place, problem)
        return values

    def _together(self, rules: Sequence[Rule], common: Limits, ladder: Mapping[str, Any]) -> None:
        """Try each two rules that may hold at once; more than two bring nothing new, as limits contradict in pairs."""
        for first, second in itertools.combinations(rules, 2):
            if first.when.excludes(second.when):
                continue
            place = f'rule "{second.name}"'
            both = f'where rule "{first.name}" holds too, '
            if told := beside(first.limits, second.limits, common):
                self._fault(place, Problem("limits", f"{both}{told}, or set both here"))
            if first.ladder and second.ladder:
                for key, told in contradictions([("", ladder), ("", first.ladder), ("", second.ladder)]):
                    self._fault(place, Problem(f"ladder.{key}", f"{both}{told}, or set both here"))

    def _sink_tables(self, table: object) -> dict[str, dict[str, Any]]:
        if not isinstance(table, dict) or not all(isinstance(sink, dict) for sink in table.values()):
            self._fault("", Problem("sinks", "is no table of tables; begin each with [sinks.NAME]"))
            return {}
        self._sinks = frozenset(table)
        for name, sink in table.items():
            try:
                read_sinks({name: sink}, str(self._path))
            except InvalidSinks as problem:
                self._fault("", Problem("", str(problem).removeprefix(f"{self._path}: ")))
        return table

    def _fault(self, place: str, problem: Problem) -> None:
        key = f"{problem.key}: " if problem.key else ""
        where = f"{place}: " if place else ""
        told = f"{where}{key}{problem.told}"  # a key in quotes may have anything in it, and each problem is one line
        self.problems.append("".join(each if each.isprintable() else ascii(each)[1:-1] for each in told))


def _is_name(name: object) -> bool:
    return isinstance(name, str) and 0 < len(name.strip()) <= MAX_NAME_CHARS and name.isprintable()
