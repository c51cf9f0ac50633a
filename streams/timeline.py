"""Puts what a replay found into words for a terminal: a timeline per session, and a summary.

Readable without colour: colours only repeat what the words say. Takes control characters out of whatever comes from a
recording, as it could steer the terminal. Prints nothing itself.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from streams.escalation.text import ELLIPSIS, line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from schemas.outputs import Alert, Mode
    from streams.importers import Damaged, Unreadable
    from streams.replay import Played, Totals, Verdict

COLOURS = {"terminate": "red", "warn": "yellow", "notice": "cyan", "recovered": "green"}
"""Colours of the levels, by the terminal's names."""

VERDICTS: dict[Verdict | None, str] = {
    "terminate": "to be terminated", "warn": "warned", "notice": "noticed", None: "quiet",
}  # fmt: skip
"""What became of a session, in words, where everything is done that the levels say."""

NOT_DONE: dict[Mode, dict[Verdict | None, str]] = {
    "enforce": {},
    "warn": {"terminate": "would be terminated"},
    "observe": {"terminate": "would be terminated", "warn": "would be warned"},
}
"""For each mode, what is not done about a session, in words."""

MODES: dict[Mode, str] = {
    "warn": "mode is warn: guidance is given, and no termination is asked for",
    "observe": "mode is observe: nothing is asked of anyone, neither guidance nor a termination is given",
}
"""What a mode holds back, in words."""

_MAX_LINE_CHARS = 400
_INDENT = " " * 8


def plain(text: str, most: int = _MAX_LINE_CHARS) -> str:
    """Make a text from elsewhere fit for a line of a terminal: no control characters, cut to so many characters."""
    return line(text, most)


def ending(path: str, most: int) -> str:
    """Make a path fit for a line as `plain` does, but cut at its beginning: what tells paths apart is the end."""
    clean = plain(path)
    return clean if len(clean) <= most else f"{ELLIPSIS}{clean[1 - most :]}"


def counted(number: int, word: str) -> str:
    """Give a number with its word, in the plural where it needs one."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def became(verdict: Verdict | None, mode: Mode) -> str:
    """Say what became of a session in a mode, or would in the mode `enforce`."""
    return NOT_DONE[mode].get(verdict, VERDICTS[verdict])


def session_lines(played: Played) -> Iterator[str]:
    """Write a session's timeline: at which call it was noticed, what repeats, and where that was called."""
    session, verdict = played.session, played.verdict
    head = click.style(became(verdict, played.mode).upper(), fg=COLOURS.get(verdict or "", "green"), bold=True)
    repeats = f", {counted(session.repeats, 'record')} left out as repeats" if session.repeats else ""
    yield f"{head}  {plain(session.session_id)}  ({counted(session.calls, 'call')}{repeats}, {plain(session.source)})"
    positions = played.positions()
    for alert in played.alerts:
        yield from _alert_lines(alert, played.call_of(alert), positions, timed=session.timed)


def _alert_lines(alert: Alert, position: int, positions: dict[str, int], *, timed: bool) -> Iterator[str]:
    level = click.style(f"{alert.level:<9}", fg=COLOURS[alert.level])
    at = f"  {alert.occurred_at:%Y-%m-%d %H:%M:%S}" if timed else ""
    yield f"  call #{position:<5}{at}  {level}  {alert.detector}: {plain(alert.reasoning)}"
    for call in alert.evidence.calls:
        if call not in alert.reasoning:
            yield f"{_INDENT}repeats   {plain(call)}"
    if alert.evidence.error and alert.evidence.error not in alert.reasoning:
        yield f"{_INDENT}fails by  {plain(alert.evidence.error)}"
    where = [positions[event_id] for event_id in alert.evidence.event_ids if event_id in positions]
    if where:
        yield f"{_INDENT}called at {' '.join(f'#{place}' for place in where)}{_score(alert)}"


def _score(alert: Alert) -> str:
    """Name the spin score where there is one that the reasoning does not tell already."""
    told = alert.spin_score is None or "spin score" in alert.reasoning
    return "" if told else f" (spin score {alert.spin_score:.2f})"


def summary_lines(totals: Totals) -> Iterator[str]:
    """Write what came of all sessions."""
    shown = [verdict for verdict in VERDICTS if verdict != "notice" or totals.verdicts["notice"]]
    modes = {mode: sum(totals.outcomes[verdict, mode] for verdict in VERDICTS) for mode in NOT_DONE}
    modes = {mode: number for mode, number in modes.items() if number} or {totals.mode: 0}
    outcomes: Counter[str] = Counter()
    for verdict in shown:
        for mode in modes:
            outcomes[became(verdict, mode)] += totals.outcomes[verdict, mode]
    found = ", ".join(f"{number:,} {words}" for words, number in outcomes.items())
    yield f"{counted(totals.sessions, 'session')}, {counted(totals.calls, 'tool call')}: {found}"
    for mode, number in modes.items():
        if mode in MODES:
            whom = f"of {counted(number, 'session')} the " if len(modes) > 1 else ""
            yield f"  {whom}{MODES[mode]}"
    for detector in sorted({detector for detector, _ in totals.alerts}):
        levels = {level: number for (name, level), number in totals.alerts.items() if name == detector}
        parts = [
            f"{levels[level]:,} {level}" for level in ("notice", "warn", "terminate", "recovered") if level in levels
        ]
        yield f"  {detector:<16} {', '.join(parts)}"


def unreadable_line(found: Unreadable) -> str:
    """Say what could not be read, as compilers do: file, line, reason."""
    place = plain(found.source) if found.line is None else f"{plain(found.source)}:{found.line}"
    return f"{place}: {plain(found.reason)}"


def damaged_line(found: Damaged) -> str:
    """Say which lines were damaged and read all the same."""
    word = "line" if len(found.lines) == 1 else "lines"
    place = (
        f"{plain(found.source)}: {word} {_ranges(found.lines)}" if found.lines else f"{plain(found.source)}: in places"
    )
    if found.lost:
        return f"{place} cut by a scrubber of secrets; what stands before the cut counts"
    return f"{place} with characters that JSON does not allow; kept as they stand"


def _ranges(numbers: Iterable[int]) -> str:
    """Write numbers in rising order with runs as ranges."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
