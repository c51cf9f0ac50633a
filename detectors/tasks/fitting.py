"""Keeps what is remembered of a task within its bytes, whatever comes: the bounds of its parts add up to more.

Large changes are thinned out from the oldest attempt on, as all large changes are (see `edits`), so that they still
compare; what is small stays as it is. Nothing here decides what is told.
"""

from collections.abc import Callable
from itertools import product
from typing import Final

from detectors.tasks.edits import MAX_FILES, thinned
from detectors.tasks.facts import PRINT_BYTES, Attempt, Change
from detectors.tasks.state import MAX_TASK_BYTES, TaskState, encode_task

_LATEST: Final = 4  # attempts that stay whole as long as others can be lessened: most is compared with these
_THIN_LINES: Final = (64, 16)  # of one change: of what is old first, and then of less
_THIN_PRINTS: Final = 16  # of words, files and checks


def fit(state: TaskState) -> None:
    """Make what is remembered fit after an event, with as little as possible taken away, from the oldest on."""
    if len(encode_task(state)) <= MAX_TASK_BYTES:
        return
    older, latest = state.attempts[:-_LATEST], state.attempts[-_LATEST:]
    for lessen, attempt in (*product(_WAYS, older), *product(_WAYS, latest)):
        lessen(attempt)
        if len(encode_task(state)) <= MAX_TASK_BYTES:
            return
    while len(encode_task(state)) > MAX_TASK_BYTES and (len(state.pulls) > 1 or len(state.attempts) > 1):
        del state.pulls[: len(state.pulls) // 2]
        del state.attempts[: len(state.attempts) // 2]


def _thin(lines: int) -> Callable[[Attempt], None]:
    def lessen(attempt: Attempt) -> None:
        attempt.change = thinned(attempt.change, lines, MAX_FILES)

    return lessen


def _without_names(attempt: Attempt) -> None:
    """Drop what only people read of an older attempt."""
    attempt.names, attempt.failing_names = attempt.names[:1], attempt.failing_names[:1]


def _without_lines(attempt: Attempt) -> None:
    attempt.change = Change(attempt.change.digest)


def _fewer_prints(attempt: Attempt) -> None:
    most = _THIN_PRINTS * PRINT_BYTES
    attempt.words, attempt.files = attempt.words[:most], attempt.files[:most]
    attempt.failing, attempt.concerned = attempt.failing[:most], attempt.concerned[:most]


_WAYS = (_thin(_THIN_LINES[0]), _without_names, _thin(_THIN_LINES[1]), _without_lines, _fewer_prints)
