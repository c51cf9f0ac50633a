"""For whom a rule holds: globs over the repository, the role, the kind of task and its paths.

Pure. It knows nothing of what a rule sets, and goes by nothing that the state of a session does not remember, so that
a rule which holds for one event of a session holds for the next one too.
"""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from detectors.excerpt import cut
from detectors.who import MAX_TASK_PATHS, NAME_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from schemas.common import Agent, Task

Field = Literal["repo", "role", "task_type", "paths"]

FIELDS: tuple[Field, ...] = get_args(Field)
"""What a rule may ask for."""

_ANY = "**"
_MAGIC = re.compile(r"[*?\[]")
_SET = re.compile(r"\[!?+\]?+[^\]]*\]")
_MAX_GLOB_CHARS = 4_096  # as long as a path can be on most machines
_NEVER = "(?!)"  # what `fnmatch` makes of a set of characters without any


class InvalidGlob(ValueError):
    """A glob that can never match: the message says why and what to write instead."""


@dataclass(frozen=True, slots=True)
class Glob:
    """A pattern for names and paths.

    `*`, `?` and `[abc]` match within one part between slashes, `**` as a part of its own any number of parts; a slash
    at the end stands for everything below. Upper and lower case differ.

    Attributes:
        text: the pattern as it was written.
        parts: what matches each part; None for `**`.
    """

    text: str
    parts: tuple[re.Pattern[str] | None, ...]

    @property
    def literal(self) -> bool:
        """Whether it matches but one name."""
        return None not in self.parts and not _MAGIC.search(self.text)

    def matches(self, name: str) -> bool:
        """Tell whether a name or path matches as a whole."""
        names = _split(name)
        reached = {0}  # how many of the name's parts may be matched so far
        for part in self.parts:
            if part is None:
                reached = set(range(min(reached), len(names) + 1))
            else:
                reached = {at + 1 for at in reached if at < len(names) and part.match(names[at])}
            if not reached:
                return False
        return len(names) in reached


def read_glob(text: str) -> Glob:
    """Read a pattern.

    Raises:
        InvalidGlob: it can never match.
    """
    if len(text) > _MAX_GLOB_CHARS:
        raise InvalidGlob(f"has more than {_MAX_GLOB_CHARS:,} characters: no name or path does")
    if text != text.strip() or not text.isprintable():
        raise InvalidGlob("begins or ends with a blank, or has control characters in it: take them out")
    names = _split(text)
    if not names:
        raise InvalidGlob("is empty and matches nothing: name something, or leave it out")
    shortest = "/".join(name.replace("*", "") for name in names if name != _ANY)
    if "[" not in text and len(shortest.encode("utf-8", "replace")) > NAME_BYTES:
        raise InvalidGlob(f"is longer than the {NAME_BYTES} bytes that are remembered of a name: shorten it with a *")
    if text.endswith("/"):
        names.append(_ANY)
    return Glob(text, tuple(_part(name) for name in names))


def _split(name: str) -> list[str]:
    return [part for part in name.split("/") if part not in {"", "."}]


def _part(name: str) -> re.Pattern[str] | None:
    if name == _ANY:
        return None
    if _ANY in name:
        raise InvalidGlob(f"has {_ANY} beside other characters: write * within a part, or {_ANY} between slashes")
    pattern = fnmatch.translate(name)
    if _NEVER in pattern:
        raise InvalidGlob("has a set of characters in [ ] that none is in: write the lower end of a range first")
    if "[" in _SET.sub("", name):
        raise InvalidGlob("has a [ that is not closed: close it, or write [[] for the character itself")
    return re.compile(pattern)


class Facts(NamedTuple):
    """What rules may ask of a session or task; None or empty where nobody said it."""

    repo: str | None = None
    role: str | None = None
    task_type: str | None = None
    paths: tuple[str, ...] = ()


def facts_of(agent: Agent | None, task: Task | None, *, paths: bool = True) -> Facts:
    """Give what is known of a session, as far as its state remembers it: names are cut, and the first paths kept.

    Paths of Windows are put with slashes, so that a rule holds for them, too.

    Args:
        agent: who acts, as far as known.
        task: for which task, likewise.
        paths: whether the paths are wanted.
    """
    kept = task.paths[:MAX_TASK_PATHS] if task and paths else ()
    return Facts(
        _kept(task.repo) if task else None,
        _kept(agent.role) if agent else None,
        _kept(task.type) if task else None,
        tuple(cut(path.replace("\\", "/"), NAME_BYTES) for path in kept),
    )


def _kept(name: str | None) -> str | None:
    return cut(name, NAME_BYTES) if name else None


@dataclass(frozen=True, slots=True)
class When:
    """The condition of a rule: each field that is asked for must match one of its globs.

    Attributes:
        repo: globs for the repository.
        role: for the agent's role.
        task_type: for the kind of task.
        paths: for the task's paths, one of which must match.
    """

    repo: tuple[Glob, ...] = ()
    role: tuple[Glob, ...] = ()
    task_type: tuple[Glob, ...] = ()
    paths: tuple[Glob, ...] = ()

    @property
    def asks(self) -> frozenset[Field]:
        """The fields that it asks for."""
        return frozenset(field for field in FIELDS if getattr(self, field))

    def holds(self, facts: Facts) -> bool:
        """Tell whether the rule holds for a session or task."""
        return (
            _matches(self.repo, facts.repo)
            and _matches(self.role, facts.role)
            and _matches(self.task_type, facts.task_type)
            and (not self.paths or any(glob.matches(path) for glob in self.paths for path in facts.paths))
        )

    def excludes(self, other: When) -> bool:
        """Tell whether it is plain that this condition and another never hold at once.

        Plain is where one of them names all that a field may be, and the other matches none of it; a task has many
        paths, so that these exclude nothing.
        """
        return any(
            _disjoint(ours, theirs) or _disjoint(theirs, ours)
            for ours, theirs in (
                (self.repo, other.repo),
                (self.role, other.role),
                (self.task_type, other.task_type),
            )
        )


def _matches(globs: Iterable[Glob], name: str | None) -> bool:
    return not globs or (name is not None and any(glob.matches(name) for glob in globs))


def _disjoint(literals: tuple[Glob, ...], globs: tuple[Glob, ...]) -> bool:
    if not literals or not globs or not all(glob.literal for glob in literals):
        return False
    names = {"/".join(_split(glob.text)) for glob in literals}
    patterns = []
    for glob in globs:
        if not glob.literal:
            patterns.append(glob)
        elif "/".join(_split(glob.text)) in names:
            return False
    return not any(glob.matches(name) for glob in patterns for name in names)
