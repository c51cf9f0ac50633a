"""What is to become of an agent's settings file: hooks put in, or exactly those taken out again. Text in, text out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streams.connect.agents import is_ours
from streams.connect.json_text import Damaged, Node, add, parse, remove

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from streams.connect.agents import Agent

HOOKS: Final = "hooks"
_NEW: Final = "{}\n"


def connected(text: str, agent: Agent, events: Sequence[str], command: str, had: Collection[str] = ()) -> str:
    """Put hooks in, in place of those that were put in before.

    Args:
        text: the settings; empty when there are none.
        agent: whose they are.
        events: the hooks.
        command: what they start.
        had: see `without_ours`.

    Raises:
        Damaged: the settings cannot be read, or have something else where hooks stand.
    """
    text = without_ours(text, agent, {HOOKS, *events, *had}) if text.strip() else _NEW
    for event in events:
        hooks = _hooks(text, agent)
        if hooks is None:
            text = add(text, parse(text, comments=agent.comments), {}, HOOKS)
            hooks = _hooks(text, agent)
        assert hooks is not None  # noqa: S101 - it was just added
        member = hooks.member(event)
        group = agent.group(command)
        text = add(text, hooks, [group], event) if member is None else add(text, member.node, group)
    return text


def without_ours(text: str, agent: Agent, had: Collection[str] = ()) -> str:
    """Take out the hooks that were put in, and what is left empty by that.

    Args:
        text: the settings.
        agent: whose they are.
        had: names of what was there before, of the hooks and `hooks` itself, as far as known: it stays though it is
            empty.

    Raises:
        Damaged: the settings cannot be read, or have something else where hooks stand.
    """
    while text.strip():
        hooks = _hooks(text, agent)
        if hooks is None:
            return text
        changed = _without_one(text, hooks)
        if changed is None:
            return text
        text, event = changed
        text = _without_empty(text, agent, event, had)
    return text  # a file with nothing in it counts as one without settings


def events_in(text: str, agent: Agent) -> list[str]:
    """Name what is there of hooks, and `hooks` itself if it is there.

    Raises:
        Damaged: the settings cannot be read, or have something else where hooks stand.
    """
    hooks = _hooks(text, agent) if text.strip() else None
    return [] if hooks is None else [HOOKS, *(part.key or "" for part in hooks.parts)]


def value_at(text: str, agent: Agent, path: Sequence[str]) -> Any:
    """Give what stands at a path of the settings; None where nothing does.

    Raises:
        Damaged: the settings cannot be read.
    """
    value = parse(text, comments=agent.comments).value if text.strip() else None
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _without_one(text: str, hooks: Node) -> tuple[str, str] | None:
    """Take out the first handler of ours, or its group when there is nothing else in it."""
    for event in hooks.parts:
        for group in event.node.parts:
            handlers = group.node.member(HOOKS)
            parts = handlers.node.parts if handlers is not None and isinstance(handlers.node.value, list) else []
            for handler in parts:
                if is_ours(handler.node.value):
                    alone = len(parts) == 1
                    where = event.node if alone else handlers.node if handlers is not None else event.node
                    return remove(text, where, group if alone else handler), event.key or ""
    return None


def _without_empty(text: str, agent: Agent, event: str, kept: Collection[str]) -> str:
    hooks = _hooks(text, agent)
    member = hooks.member(event) if hooks is not None else None
    if hooks is not None and member is not None and not member.node.parts and event not in kept:
        text = remove(text, hooks, member)
        hooks = _hooks(text, agent)
    if hooks is not None and not hooks.parts and HOOKS not in kept:
        root = parse(text, comments=agent.comments)
        own = root.member(HOOKS)
        text = remove(text, root, own) if own is not None else text
    return text


def _hooks(text: str, agent: Agent) -> Node | None:
    """Find the hooks in the settings."""
    root = parse(text, comments=agent.comments)
    if not isinstance(root.value, dict):
        raise Damaged(text, root.start, "the settings are no object")
    member = root.member(HOOKS)
    if member is None:
        return None
    if not isinstance(member.node.value, dict):
        raise Damaged(text, member.node.start, "`hooks` is no object")
    for event in member.node.parts:
        if event.key in agent.events("enforce") and not isinstance(event.node.value, list):
            raise Damaged(text, event.node.start, f"`hooks.{event.key}` is no array")
    return member.node
