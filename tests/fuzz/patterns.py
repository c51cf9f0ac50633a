"""Finds every regular expression of the code, and makes the texts that each is worst at.

Patterns are found in the source, so that a new one cannot be forgotten: one that is made from what is only known at run
time has to be named in `MADE`. The texts come from the pattern's own parse tree: what its repeats accept, many times
over, and then something that it does not accept. Nothing in here decides what is too slow.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import pkgutil
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from random import Random
from re import _constants as codes  # type: ignore[attr-defined]  # the parse tree is Python's own
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import detectors
import schemas
import streams
from detectors.catalogue import Tools
from detectors.limits import Limits

METHODS = frozenset({"findall", "finditer", "fullmatch", "match", "search", "split", "sub", "subn"})
FIRST = frozenset({*METHODS, "compile"})
"""Functions of `re` whose first argument is a pattern."""

MADE = {
    "detectors.catalogue": "of `tools.volatile`, which a file sets: the ones that come with us are tried below",
    "streams.masking": "of the names of variables and settings, in `tests/fuzz/test_patterns.py`",
    "streams.policy.conditions": "of a policy's globs: `tests/fuzz/test_patterns.py` tries them by themselves",
}
"""Modules that make patterns from what is known at run time, and who tries those."""

_POOL = "a0 \n-/.\"'_A[é"
"""What stands for a set of characters: the first of these that is in it, beginning at another one each time."""

_NEVER = "\0"
"""What hardly any pattern accepts; makes an attempt at a match fail at its end."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression of the code.

    Attributes:
        place: module and line, or what it is of.
        name: of the variable that holds it; empty when none does.
        regex: the expression.
        methods: how it is used.
    """

    place: str
    name: str
    regex: re.Pattern[Any]
    methods: frozenset[str]

    @property
    def key(self) -> str:
        """The name of the variable with its module, or the place where there is none."""
        return f"{self.place.partition(':')[0]}.{self.name}" if self.name else self.place

    def run(self, text: str) -> None:
        """Use it on a text in each way that the code uses it."""
        subject = text.encode("utf-8") if isinstance(self.regex.pattern, bytes) else text
        for method in self.methods:
            if method in {"sub", "subn"}:
                self.regex.sub(lambda found: found[0][:0], subject)
            elif method == "finditer":
                deque(self.regex.finditer(subject), 0)
            else:
                getattr(self.regex, method)(subject)


def patterns() -> Iterator[Pattern]:
    """Give every pattern of the three packages.

    Raises:
        LookupError: a module makes a pattern from what is only known at run time, and is not in `MADE`.
    """
    modules = {name: importlib.import_module(name) for name in _names() if not _of_framework(name)}
    trees = {name: ast.parse(_source(module)) for name, module in modules.items()}
    uses = {name: _uses(tree) for name, tree in trees.items()}
    imported = _imported(trees)
    for name, tree in trees.items():
        held = _held(tree)
        for node in ast.walk(tree):
            found = _expression(node)
            if found is None:
                continue
            argument, flags, method = found
            try:
                regex = re.compile(*(_value(each, modules[name]) for each in (argument, flags) if each is not None))
            except NameError:
                if name not in MADE:
                    problem = f"{name}:{argument.lineno} makes a pattern at run time: add it to MADE, and try it"
                    raise LookupError(problem) from None
                continue
            variable = held.get(id(node), "")
            methods = {method}
            for module in (name, *imported.get((name, variable), ())) if method == "compile" and variable else ():
                methods |= uses[module].get(variable, set())
            yield Pattern(f"{name}:{argument.lineno}", variable, regex, frozenset(methods & METHODS or {"search"}))
    tools = Tools()
    for tool in ("", *Limits().tools.volatile):
        for number, regex in enumerate(tools.masks(tool)):
            yield Pattern(f"detectors/catalogue.toml [volatile] {tool} {number}", "", regex, frozenset({"sub"}))


@dataclass(frozen=True, slots=True)
class Repeated:
    """A kind of text: one part, another one many times over, and an end."""

    before: str
    body: str
    end: str

    def of(self, length: int) -> str:
        """Give a text of about this length."""
        return self.before + self.body * max(1, length // len(self.body)) + self.end


def texts(regex: re.Pattern[Any]) -> set[Repeated]:
    """Give the kinds of text that a pattern may be slow at."""
    tree = parser.parse(regex.pattern, regex.flags)
    found: set[Repeated] = set()
    for first in range(len(_POOL)):
        for before, body in _repeats(tree, "", _POOL[first:] + _POOL[:first]):
            for end in (_NEVER, ""):
                found |= {
                    Repeated(before, body, end),
                    Repeated("", before + body, end),
                    Repeated("", f"{before}\n", end),
                }
    return found


def matching(regex: re.Pattern[Any], chance: Random) -> str:
    """Give a text that a pattern most likely matches: one of its ways, with what its lookarounds ask for."""
    return _chosen(_tree(regex.pattern, regex.flags), chance)


@cache
def _tree(pattern: str, flags: int) -> Any:
    return parser.parse(pattern, flags)


def _names() -> Iterator[str]:
    for package in (schemas, detectors, streams):
        yield package.__name__
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith("__main__"):
                yield found.name


def _of_framework(name: str) -> bool:
    """Tell whether a module is for an agents' framework, which is installed elsewhere: it makes no patterns.

    Raises:
        LookupError: it makes some all the same.
    """
    if not name.startswith("streams.adapters."):
        return False
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None or "import re\n" in Path(spec.origin).read_text("utf-8"):
        raise LookupError(f"{name} makes patterns of its own: have them made where they can be tested")
    return True


def _source(module: Any) -> str:
    with open(module.__file__, encoding="utf-8") as file:  # noqa: PTH123 - a name, and not more
        return file.read()


def _expression(node: ast.AST) -> tuple[ast.expr, ast.expr | None, str] | None:
    """Give pattern, flags and method of a call that has a pattern, as `re.compile` and `Meta(pattern=…)` do."""
    if not isinstance(node, ast.Call):
        return None
    function = node.func
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "re":
        if function.attr not in FIRST or not node.args:
            return None
        place = {"compile": 1, "sub": 4, "subn": 4, "split": 3}.get(function.attr, 2)
        flags = [each.value for each in node.keywords if each.arg == "flags"] + node.args[place : place + 1]
        return node.args[0], flags[0] if flags else None, function.attr
    if isinstance(function, ast.Name) and function.id == "Meta":
        return next(((each.value, None, "search") for each in node.keywords if each.arg == "pattern"), None)
    return None


def _value(node: ast.expr, module: Any) -> Any:
    return eval(compile(ast.Expression(node), module.__file__, "eval"), vars(module))  # noqa: S307 - our own source


def _held(tree: ast.Module) -> dict[int, str]:
    """Give for each call that makes a pattern the variable that it is assigned to."""
    return {
        id(node.value): target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and node.value is not None
    }


def _uses(tree: ast.Module) -> dict[str, set[str]]:
    """Give for each name the attributes that are taken of it, and `search` where it is handed on by itself."""
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    found: dict[str, set[str]] = {}
    owners = set()
    for node in attributes:
        owner = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
        owners.add(id(node.value))
        found.setdefault(owner, set()).add(node.attr)
    for bare in ast.walk(tree):
        if isinstance(bare, ast.Name) and isinstance(bare.ctx, ast.Load) and id(bare) not in owners:
            found.setdefault(bare.id, set()).add("search")
    return found


def _imported(trees: dict[str, ast.Module]) -> dict[tuple[str, str], list[str]]:
    """Give for each variable of a module the modules that import it."""
    found: dict[tuple[str, str], list[str]] = {}
    for name, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    found.setdefault((node.module, alias.name), []).append(name)
    return found


def _repeats(tree: Any, before: str, pool: str) -> Iterator[tuple[str, str]]:
    """Give for each repeat what a text begins with that reaches it, and what it repeats."""
    for code, value in tree:
        for inner, _ in _inner(code, value):
            yield from _repeats(inner, before, pool)
        if code in {codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT} and value[1] > 1:
            body = _sample(value[2], pool)
            if body:
                yield before, body
        before += _sample([(code, value)], pool)


def _chosen(tree: Any, chance: Random) -> str:
    text = ""
    for code, value in tree:
        if code is codes.BRANCH:
            text += _chosen(chance.choice(value[1]), chance)
        elif code is codes.SUBPATTERN:
            text += _chosen(value[3], chance)
        elif code is codes.ATOMIC_GROUP:
            text += _chosen(value, chance)
        elif code in {codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT}:
            times = chance.randint(int(value[0]), int(min(value[0] + 2, value[1])))
            text += "".join(_chosen(value[2], chance) for _ in range(times))
        elif code is codes.ASSERT:
            asked = _chosen(value[1], chance)
            if value[0] < 0 and not text.endswith(asked):
                text = asked[: len(asked) - len(text)] + text if len(text) < len(asked) else text[: -len(asked)] + asked
            elif value[0] > 0:
                text += asked
        else:
            first = chance.randrange(len(_POOL))
            text += _sample_of(code, value, _POOL[first:] + _POOL[:first])
    return text


def _inner(code: Any, value: Any) -> Iterator[tuple[Any, int]]:
    """Give the parts of a part."""
    if code in {codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT}:
        yield value[2], 0
    elif code is codes.SUBPATTERN:
        yield value[3], 0
    elif code is codes.ATOMIC_GROUP:
        yield value, 0
    elif code is codes.BRANCH:
        yield from ((each, 0) for each in value[1])
    elif code in {codes.ASSERT, codes.ASSERT_NOT}:
        yield value[1], 0
    elif code is codes.GROUPREF_EXISTS:
        yield from ((each, 0) for each in value[1:] if each is not None)


def _sample(tree: Any, pool: str) -> str:
    """Give a short text that a part of a pattern accepts, its lookarounds aside."""
    return "".join(_sample_of(code, value, pool) for code, value in tree)


def _sample_of(code: Any, value: Any, pool: str) -> str:  # noqa: PLR0911 - a case for each kind of part
    if code is codes.LITERAL:
        return chr(value)
    if code is codes.NOT_LITERAL:
        return next(char for char in pool if ord(char) != value)
    if code is codes.ANY:
        return pool[0] if pool[0] != "\n" else pool[1]
    if code is codes.IN:
        return next(filter(lambda char: _accepts(value, char), chain(pool, map(chr, range(0x3000)))), "")
    if code in {codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT}:
        return _sample(value[2], pool) * int(min(max(value[0], 1), value[1], 700))
    if code is codes.BRANCH:
        return _sample(value[1][ord(pool[0]) % len(value[1])], pool)
    if code is codes.SUBPATTERN:
        return _sample(value[3], pool)
    if code is codes.ATOMIC_GROUP:
        return _sample(value, pool)
    return ""


def _accepts(parts: Any, char: str) -> bool:
    """Tell whether a set of characters has this one."""
    found = any(
        (code is codes.LITERAL and ord(char) == value)
        or (code is codes.RANGE and value[0] <= ord(char) <= value[1])
        or (code is codes.CATEGORY and re.match(_CATEGORIES[value], char) is not None)
        for code, value in parts
    )
    return found is not any(code is codes.NEGATE for code, _ in parts)


_CATEGORIES = {
    codes.CATEGORY_DIGIT: r"\d",
    codes.CATEGORY_NOT_DIGIT: r"\D",
    codes.CATEGORY_SPACE: r"\s",
    codes.CATEGORY_NOT_SPACE: r"\S",
    codes.CATEGORY_WORD: r"\w",
    codes.CATEGORY_NOT_WORD: r"\W",
}
