"""Denials of our own: calls that were not made because this very watch said so, and what of them counts.

What is done about a session must not be taken for what the session did. Whoever had a call denied tells of it with the
class of its error; no word of a result is taken for it, since tools and agents choose these.
"""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from detectors.facts import Call
from schemas.events import ToolCall

Denial = Literal["repeat", "other"]
"""Why a call was not made: it is the one before once more, or anything else (a pause, a stop, guidance to be read)."""

CLASSES: Final[dict[Denial, str]] = {"repeat": "denied_repeat_by_traction", "other": "denied_by_traction"}
"""The class of the error of a call that was not made, by why it was not."""

_OF_CLASS: Final = {name: denial for denial, name in CLASSES.items()}


def own_denial(call: ToolCall) -> Denial | None:
    """Tell why a call was not made on our word; None where it was made, or somebody else denied it."""
    error = call.error
    return None if error is None or error.type is None else _OF_CLASS.get(error.type)


def counted(event: ToolCall, call: Call, recent: Sequence[Call]) -> Call | None:
    """Return a call as it counts: as it is when it was made, None where it was not made and that says nothing.

    One that was denied since it repeats the one before counts as if it had been made and had brought the same: nobody
    knows, but the agent asked for it once more. It does not where no equal one is among ``recent``.
    """
    denial = own_denial(event)
    if denial is None:
        return call
    before = next((seen for seen in reversed(recent) if call.action and seen.action == call.action), None)
    if before is None or denial != "repeat":
        return None
    return msgspec.structs.replace(
        before,
        seq=call.seq,
        event_id=call.event_id,
        mark=call.mark,
        batch=call.batch,
        settled=False,
        stale=False,
        news=0,
        said=0,
        signs=0,
        before=0,
    )
