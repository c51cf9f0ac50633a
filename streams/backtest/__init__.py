"""Scores the detectors on recorded sessions that a person has labelled: loops found and missed, and false alarms.

`labels` reads what the person said, `playing` hears the detectors, `cases` puts both together, `scoring` counts,
`changes` tells two configurations apart, `gates` judges; `words` and `plot` show it. Prints
nothing.
"""

from streams.backtest.cases import PROMPT_CALLS, Case, Cases, match
from streams.backtest.changes import Change, changes
from streams.backtest.gates import Gate, gates
from streams.backtest.labels import InvalidLabels, Label, read_labels
from streams.backtest.playing import FirstAlert, Heard, WorkersLost, play_all
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
    "WorkersLost",
    "changes",
    "gates",
    "match",
    "play_all",
    "read_labels",
    "score",
]
