"""What came of a backtest, as one object, as lines for people and as a picture. Plays nothing and knows no option."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from streams.backtest import calibration_plot, fold_words, plot, words
from streams.backtest.folds import BOTH, RULES
from streams.backtest.picture import draw
from streams.cli.output import json_text
from streams.cli.recordings import EXIT_UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streams.backtest import Cases, Change, Gate, Score
    from streams.backtest.folds import Folds

EXIT_GATE = 3


@dataclass(frozen=True, slots=True)
class Result:
    """All that came of a backtest.

    Attributes:
        scores: one for each configuration.
        cases: the sessions, and those that are not scored.
        changes: how the second configuration, or both together, differs from the first by session.
        gates: held against the score that is judged.
        unreadable: files and lines that could not be read.
        folds: what came of leaving out each source in turn; None when that was not asked for.
    """

    scores: list[Score]
    cases: Cases
    changes: list[Change]
    gates: list[Gate]
    unreadable: int
    folds: Folds | None

    @property
    def exit_code(self) -> int:
        """What the command ends with: a score of less than everything is worse than a bad score."""
        if self.unreadable or self.cases.incomplete:
            return EXIT_UNREADABLE
        return 0 if all(gate.passed for gate in self.gates) else EXIT_GATE

    def as_json(self) -> bytes:
        """Give everything as one object."""
        rest = {name: getattr(self.cases, name) for name in ("ambiguous", "missing", "repeated")}
        rest["misplaced"] = [case.session_id for case in self.cases.misplaced]
        whole = {
            "sessions": len(self.cases.cases),
            "scores": self.scores,
            "changes": self.changes,
            "gates": self.gates,
            "unreadable": self.unreadable,
            "folds": self.folds,
        }
        return json_text(whole | rest, indent=2)

    def lines(self, *, unlabelled: bool) -> Iterator[str]:
        """Give what people read: the sessions first, the totals last, where a terminal stops.

        Args:
            unlabelled: whether sessions without a label are listed, too.
        """
        if self.folds is None:
            yield from words.entry_lines(self.scores[0], unlabelled=unlabelled)
            yield from words.change_lines(self.changes, unlabelled=unlabelled)
            tables = [words.detector_lines(self.scores), words.source_lines(self.scores)]
        else:
            yield from words.entry_lines(self.scores[BOTH], unlabelled=unlabelled)
            yield from words.change_lines(self.changes, ("rules", "both"), unlabelled=unlabelled)
            yield from fold_words.extreme_lines(self.folds)
            tables = [
                [fold_words.DETECTORS, *words.detector_lines([self.scores[RULES], self.scores[BOTH]])],
                list(fold_words.source_lines(self.scores, self.folds)),
                list(calibration_plot.bar_lines(self.folds.calibration)),
            ]
        for table in (*tables, plot.bar_lines(self.scores)):
            yield ""
            yield from table
        yield ""
        yield from words.total_lines(self.scores, self.cases)

    def svg(self) -> str:
        """Draw how soon loops are found, and below it how well the score of calls left out is calibrated."""
        pictures = [plot.picture(self.scores)]
        if self.folds is not None:
            pictures.append(calibration_plot.picture(self.folds.calibration))
        return draw(pictures)
