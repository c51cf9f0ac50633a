"""Connects an agent to the gateway through its hooks: what is to be written where, shown before it is done.

A change is worked out first and applied by a second step, so that a person can look at it in between. Undoing takes out
exactly what was put in: when nobody has touched the file since, it gets back its bytes.
"""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from streams.connect.agents import AGENTS, Agent, Connected, Mode, Scope, hook_command
from streams.connect.edit import connected, events_in, value_at, without_ours
from streams.connect.files import Backups, CannotUse, delete, digest, read, write
from streams.connect.json_text import Damaged

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Change:
    """What is to be done to one settings file.

    Attributes:
        agent: whose it is.
        path: the file.
        was: what is in it; None where there is none.
        becomes: what it becomes; None: it is deleted, since it was not there before.
        before: what it was before hooks were put in; None where there was none.
        had: the hooks that it had then.
        undo: whether hooks are taken out.
        notes: what a person should know.
    """

    agent: Agent
    path: Path
    was: str | None
    becomes: str | None
    before: str | None = None
    had: list[str] = field(default_factory=list)
    undo: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def needed(self) -> bool:
        """Whether there is anything to do."""
        return self.was != self.becomes

    def diff(self) -> str:
        """Show the change as a unified diff."""
        old, new = ((text or "").splitlines() for text in (self.was, self.becomes))
        before, after = ("/dev/null" if text is None else str(self.path) for text in (self.was, self.becomes))
        return "\n".join(difflib.unified_diff(old, new, before, after, lineterm=""))


def plan_connect(path: Path, agent: Agent, *, mode: Mode, command: str, backups: Backups) -> Change:
    """Work out how hooks come into a settings file.

    Args:
        path: the file.
        agent: whose it is.
        mode: which hooks.
        command: what they start.
        backups: what files were before.

    Raises:
        CannotUse: the file cannot be read, or is damaged; the text says where and what to do.
    """
    was = read(path)
    try:
        text = was or ""
        before, had = _before(path, agent, was, backups)
        becomes = connected(text, agent, agent.events(mode), command, had)
        notes = _notes(path, text, agent)
    except Damaged as problem:
        raise _damaged(path, problem, agent) from None
    return Change(agent, path, was, becomes, before, had, notes=[*notes, agent.after])


def plan_undo(path: Path, agent: Agent, *, backups: Backups) -> Change:
    """Work out how hooks come out of a settings file again.

    Raises:
        CannotUse: the file cannot be read, or is damaged; the text says where and what to do.
    """
    was = read(path)
    if was is None:
        return Change(agent, path, None, None, undo=True)
    known = backups.find(path)
    if known is not None and known.after == digest(was):
        text = backups.text_before(path, known)
        if text is not None or not known.existed:
            return Change(agent, path, was, text, undo=True)
    try:
        becomes = without_ours(was, agent, known.had if known else ())
    except Damaged as problem:
        raise _damaged(path, problem, agent) from None
    return Change(agent, path, was, becomes, undo=True)


def apply(change: Change, backups: Backups) -> None:
    """Do what was worked out.

    Raises:
        CannotUse: a file cannot be written, or was changed in the meantime; then nothing is done.
    """
    if not change.undo and change.becomes is not None:
        backups.keep(change.path, change.before, change.had, change.becomes)
    if change.becomes is None:
        if change.was is not None:
            delete(change.path, was=change.was)
    elif change.needed:
        write(change.path, change.becomes, was=change.was)
    if change.undo:
        backups.forget(change.path)


def _before(path: Path, agent: Agent, was: str | None, backups: Backups) -> tuple[str | None, list[str]]:
    """Say what a file was before: as it is known, unless somebody has changed it since then."""
    if was is None:
        return None, []
    known = backups.find(path)
    if known is not None and known.after == digest(was):
        text = backups.text_before(path, known)
        if text is not None or not known.existed:
            return text, known.had
    text = without_ours(was, agent, known.had if known else ())
    return text, events_in(text, agent)


def _notes(path: Path, text: str, agent: Agent) -> list[str]:
    """Say when the agent's settings switch all hooks off, or send what hooks tell in another way as well."""
    return [*_switched_off(path, text, agent), *_told_twice(path, text, agent)]


def _told_twice(path: Path, text: str, agent: Agent) -> list[str]:
    """Say when telemetry is on of an agent whose hooks tell no ids of calls, by which they were known again in it."""
    telemetry = value_at(text, agent, ("telemetry",)) if agent.name == "gemini-cli" else None
    if not isinstance(telemetry, dict) or telemetry.get("enabled") is not True or telemetry.get("outfile"):
        return []
    note = (
        f"{path}: telemetry is on. Sent to the same gateway, it counts no call again; through a collector and traction "
        "bridge each call would count twice: leave it out there"
    )
    return [note]


def _switched_off(path: Path, text: str, agent: Agent) -> list[str]:
    keys, value = agent.off
    found = value_at(text, agent, keys)
    place = path
    if agent.name == "codex":
        place = path.parent / "config.toml"
        try:
            table = tomllib.loads(read(place) or "")
        except (CannotUse, tomllib.TOMLDecodeError):
            table = {}
        found = table.get("features", {})
        found = found.get("hooks") if isinstance(found, dict) else None
    if found is not value:
        return []
    return [f"{place}: {'.'.join(keys)} is {str(value).lower()}, so that {agent.title} starts no hooks; change it"]


def _damaged(path: Path, problem: Damaged, agent: Agent) -> CannotUse:
    return CannotUse(
        f"{path}:{problem.line}:{problem.column}: {problem}; mend it there, or let {agent.title} write it anew, and "
        "run the command again. Nothing was changed."
    )


__all__ = [
    "AGENTS",
    "Agent",
    "Backups",
    "CannotUse",
    "Change",
    "Connected",
    "Mode",
    "Scope",
    "apply",
    "hook_command",
    "plan_connect",
    "plan_undo",
]
