"""Tells two configurations apart by session: loops newly found and missed, false alarms that are new and gone. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from streams.backtest.cases import PROMPT_CALLS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from streams.backtest.cases import Case, Group
    from streams.backtest.playing import FirstAlert

_HEALTHY = (("new false alarm", "false alarm gone"), ("newly terminated", "no longer terminated"))
_WORDS: dict[Group, tuple[tuple[str, str], ...]] = {
    "loop": (
        ("newly found", "newly missed"),
        (f"newly within {PROMPT_CALLS}", f"no longer within {PROMPT_CALLS}"),
    ),
    "easy": _HEALTHY,
    "hard": _HEALTHY,
    "unlabelled": (("newly warned", "no longer warned"), ("newly terminated", "no longer terminated")),
}
"""What it is called when each fact of `_facts` comes to hold and when it ceases to."""


@dataclass(frozen=True, slots=True)
class Change:
    """A session of which the second configuration says something else than the first.

    Attributes:
        what: what is different, in words.
        session_id: the session's id.
        source: where it comes from.
        group: what it is.
        first: the first warn or terminate under the first configuration.
        second: the same under the second.
    """

    what: str
    session_id: str
    source: str
    group: Group
    first: FirstAlert | None
    second: FirstAlert | None


def changes(cases: Iterable[Case], first: int = 0, second: int = 1) -> list[Change]:
    """List the sessions that the second configuration changes, kind by kind.

    Args:
        cases: the sessions.
        first: the first configuration's place among those that they were played under.
        second: the second one's.
    """
    found = [
        Change(what, case.session_id, case.source, case.group, case.first(first), case.first(second))
        for case in cases
        for what in _differences(case, first, second)
    ]
    order = list(dict.fromkeys(word for pairs in _WORDS.values() for pair in pairs for word in pair))
    return sorted(found, key=lambda change: order.index(change.what))


def _differences(case: Case, first: int, second: int) -> Iterator[str]:
    """Give the gravest difference, if there is one."""
    for before, after, words in zip(_facts(case, first), _facts(case, second), _WORDS[case.group], strict=True):
        if before != after:
            yield words[before]
            return


def _facts(case: Case, configuration: int) -> tuple[bool, bool]:
    """Tell whether it is warned, and: in time for a loop, to be terminated for others."""
    warned = case.first(configuration) is not None
    if case.group == "loop":
        return warned, case.in_time(configuration)
    return warned, case.first(configuration, "terminate") is not None
