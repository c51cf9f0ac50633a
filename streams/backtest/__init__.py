"""Scores the detectors on recorded sessions that a person has labelled: loops found and missed, and false alarms.

`labels` reads what the person said, `playing` hears the detectors, `cases` puts both together, `scoring` counts,
`changes` tells two configurations apart, `gates` judges; `words` and `plot` show it. `folds` leaves out each source in
turn, with `calibration`, `calibration_plot`, `extremes` and `fold_words`; it learns, and is imported by itself. Prints
nothing.
"""

from streams.backtest.cases import PROMPT_CALLS, Case, Cases, match, source_of
from streams.backtest.changes import Change, changes
from streams.backtest.gates import Gate, gates
from streams.backtest.labels import InvalidLabels, Label, read_labels, read_labels_and_digest
from streams.backtest.playing import FirstAlert, Heard, play_all
from streams.backtest.scoring import Score, score

__all__ = [
    "PROMPT_CALLS",
    "Case",
    "Cases",
    "Change",
    "FirstAlert",
    "Gate",
    "Heard",
    "InvalidLabels",
    "Label",
    "Score",
    "changes",
    "gates",
    "match",
    "play_all",
    "read_labels",
    "read_labels_and_digest",
    "score",
    "source_of",
]
