"""Puts what the detectors said of a session together with what a person said of it. Pure; counts nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal

from streams.replay import reaching

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from streams.backtest.labels import Label
    from streams.backtest.playing import FirstAlert, Heard
    from streams.replay import Verdict

PROMPT_CALLS = 5
"""A loop is found in time when the first warn or terminate comes no later than so many calls after its onset."""

Group = Literal["loop", "easy", "hard", "unlabelled"]
"""What a session is: a loop, a healthy one, a healthy one that repeats a lot, or one of which nobody said anything."""


def source_of(session_id: str, file: str, label: Label | None) -> str:
    """Tell where a session comes from: as its label says, else the first part of its id, else its file's folder.

    Not the file: agents write one for each session.
    """
    if label is not None and label.source:
        return label.source
    first, slash, _ = session_id.partition("/")
    return first if slash and first else str(PurePath(file).parent)


@dataclass(frozen=True, slots=True)
class Case:
    """A session, what is known of it and what was heard of it.

    Attributes:
        heard: what the detectors said.
        group: what it is.
        label: what a person said; None when nobody did.
    """

    heard: Heard
    group: Group
    label: Label | None = None

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self.heard.session_id

    @property
    def source(self) -> str:
        """Where it comes from."""
        return source_of(self.session_id, self.heard.file, self.label)

    def first(self, configuration: int, level: Verdict = "warn", detector: str | None = None) -> FirstAlert | None:
        """Give the first alert that reaches a level, of one detector or of any."""
        levels = reaching(level)
        alerts = self.heard.alerts[configuration]
        return next((a for a in alerts if a.level in levels and detector in {None, a.detector}), None)

    def delay(self, configuration: int, level: Verdict = "warn", detector: str | None = None) -> int | None:
        """Give the calls from a loop's onset to that alert, negative when it comes before; None without either."""
        alert = self.first(configuration, level, detector)
        if alert is None or self.group != "loop" or self.label is None or self.label.first_loop_seq is None:
            return None
        return alert.seq - self.label.first_loop_seq

    def in_time(self, configuration: int) -> bool:
        """Tell whether it is a loop that is found in time."""
        delay = self.delay(configuration)
        return delay is not None and delay <= PROMPT_CALLS

    def detectors(self, configuration: int, level: Verdict) -> set[str]:
        """Name the detectors that reached a level."""
        return {alert.detector for alert in self.heard.alerts[configuration] if alert.level in reaching(level)}


@dataclass(frozen=True, slots=True)
class Cases:
    """All sessions, put together with their labels.

    Attributes:
        cases: those that are scored, in the order of the reading.
        ambiguous: ids of the sessions that are left out since people would differ on them.
        missing: ids of labelled sessions that are not among the recordings.
        repeated: ids of sessions that came again; the first recording of each is scored.
        misplaced: loops whose label names a call beyond their last one; they are not scored.
    """

    cases: list[Case]
    ambiguous: list[str]
    missing: list[str]
    repeated: list[str]
    misplaced: list[Case]

    @property
    def incomplete(self) -> bool:
        """Whether something that is labelled is not scored."""
        return bool(self.missing or self.misplaced)


def match(heard: Iterable[Heard], labels: Mapping[str, Label]) -> Cases:
    """Put sessions together with their labels."""
    cases: dict[str, Case] = {}
    ambiguous: dict[str, None] = {}
    repeated: list[str] = []
    for each in heard:
        name, label = each.session_id, labels.get(each.session_id)
        if name in cases or name in ambiguous:
            repeated.append(name)
        elif label is not None and label.label == "ambiguous":
            ambiguous[name] = None
        else:
            cases[name] = Case(each, _group(label), label)
    missing = [name for name in labels if name not in cases and name not in ambiguous]
    scored = [case for case in cases.values() if not _misplaced(case)]
    return Cases(scored, list(ambiguous), missing, repeated, [case for case in cases.values() if _misplaced(case)])


def _misplaced(case: Case) -> bool:
    """Tell whether a loop would begin where the recording has no call, so that any alert would be in time."""
    onset = None if case.label is None or case.group != "loop" else case.label.first_loop_seq
    return onset is not None and onset >= case.heard.calls


def _group(label: Label | None) -> Group:
    if label is None:
        return "unlabelled"
    if label.label == "loop":
        return "loop"
    return "hard" if label.hard else "easy"
