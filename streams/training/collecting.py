"""Collects examples: measures the labelled ones among recorded sessions, in several processes, and matches the labels.

Labels are matched as a backtest does it. Sessions without a label are passed by. Learns nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from streams.backtest import Heard, match
from streams.pool import run_all
from streams.training.examples import Examples, measure_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from detectors import Limits
    from streams.backtest import Case, Cases, Label
    from streams.importers import Session
    from streams.training.examples import Measured


@dataclass(frozen=True, slots=True)
class Collected:
    """The examples that recordings and labels make.

    Attributes:
        examples: of each labelled session whose label fits, in the order of the reading.
        cases: how sessions and labels match; nothing was heard of any session.
    """

    examples: list[Examples]
    cases: Cases

    @property
    def scored(self) -> list[Examples]:
        """Those that have a scored call; the others are too short to teach anything."""
        return [each for each in self.examples if each.measured.calls]


def collect(
    sessions: Iterable[Session],
    labels: Mapping[str, Label],
    limits: Limits,
    jobs: int,
    tell: Callable[[Measured], None],
) -> Collected:
    """Measure the labelled sessions.

    Args:
        sessions: read as they are needed.
        labels: what a person said, by the session's id.
        limits: say what tools are for; the spin score must not be off.
        jobs: how many processes measure; with 1 it is this one.
        tell: called with each session's measured calls, in the order of the reading.

    Raises:
        WorkersLost: a process ended by itself.
    """
    heard: list[Heard] = []
    wanted: dict[str, None] = {}

    def labelled() -> Iterator[Session]:
        for session in sessions:
            name = session.session_id
            heard.append(Heard(name, session.source, session.calls, ()))
            label = labels.get(name)
            if label is not None and label.label != "ambiguous" and name not in wanted:
                wanted[name] = None
                yield session

    work = partial(measure_session, limits=limits)
    found = run_all(labelled(), lambda session: session.calls, work, jobs, tell)
    measured = dict(zip(wanted, found, strict=True))
    cases = match(heard, labels)
    return Collected([_example(case, measured) for case in cases.cases if case.session_id in measured], cases)


def _example(case: Case, measured: Mapping[str, Measured]) -> Examples:
    onset = case.label.first_loop_seq if case.label is not None and case.group == "loop" else None
    return Examples(case.session_id, case.source, case.group, onset, measured[case.session_id])
