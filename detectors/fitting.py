"""Keeps what is remembered of a session within its bytes, whatever comes: the bounds of its parts add up to more.

What healthy sessions, and nearly all others, remember is far below, and is left as it is. Sizes are measured only when
they may have grown beyond, at every third event or so. Nothing here decides what is told.
"""

from typing import Final

import msgspec

from detectors.excerpt import cut
from detectors.state import MAX_SEEN, MAX_STATE_BYTES, SessionState, encode_state
from detectors.tasks.edits import MAX_FILES, thinned
from detectors.tasks.facts import Change

_ROOM_BYTES: Final = 400  # for what repeated and late events add without being measured: clocks, sequences, counts
_SEEN_BYTES: Final = 9  # of one event id; repeated events fill their ring as well
_GROWTH_BYTES: Final = 1_300  # at most of one call without new loops and edits, beside its text and its id
_EDIT_BYTES: Final = 100  # at most of one edit beside what it changes: its path, a check
_LETTER_BYTES: Final = 4  # in UTF-8, at most
_TEXT_BYTES: Final = 64  # of a call kept for people, where room is short
_THIN_LINES: Final = 64  # of the edits since the latest check, likewise
_HALVINGS: Final = 8
_ENCODER = msgspec.msgpack.Encoder()


def note_growth(state: SessionState, change: Change) -> None:
    """Note that the edits since the latest check are this change now; before, they may have taken next to nothing."""
    state.room -= _EDIT_BYTES + len(_ENCODER.encode(change))


def fit(state: SessionState) -> None:
    """Make what is remembered fit after an event: first what people read is cut, then edits are thinned out.

    Only where that is not enough the older half of all that comes in numbers goes.
    """
    state.room -= _GROWTH_BYTES
    if state.recent:  # words and thoughts are not among the latest calls, and grow what is remembered as well
        latest = state.recent[-1]
        state.room -= _LETTER_BYTES * (len(latest.text) + len(latest.event_id))
    if state.room > 0:
        return
    for shorten in (None, _cut_texts, _thin_edits, _drop_edits, *[_halve] * _HALVINGS):
        if shorten is not None:
            shorten(state)
        spare = _ROOM_BYTES + _SEEN_BYTES * (MAX_SEEN - len(state.seen))
        state.room = MAX_STATE_BYTES - spare - len(encode_state(state))
        if state.room >= 0:
            return


def _cut_texts(state: SessionState) -> None:
    for call in state.recent[:-1]:
        call.text = cut(call.text, _TEXT_BYTES)


def _thin_edits(state: SessionState) -> None:
    state.tries.change = thinned(state.tries.change, _THIN_LINES, MAX_FILES)


def _drop_edits(state: SessionState) -> None:
    state.tries.change = Change(state.tries.change.digest)


def _halve(state: SessionState) -> None:
    for ring in (
        state.recent, state.areas, state.failing_calls, state.edits, state.searches, state.checks, state.reads,
        state.loops, state.told, state.seen, state.seen_calls, state.tries.paths,
    ):  # fmt: skip
        del ring[: len(ring) // 2]  # the latest one stays
