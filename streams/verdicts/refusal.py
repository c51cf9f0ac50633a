"""What an agent reads in the place of the result of a call that is not made: our mark, why, until when, and the text.

By the mark a call that was denied is told from one that failed where an agent hands its text over as that of a failure.
"""

from __future__ import annotations

import re
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

from detectors.denial import CLASSES
from schemas.common import ErrorInfo

if TYPE_CHECKING:
    from detectors.denial import Denial
    from streams.verdicts.model import Verdict

NOT_MADE: Final = "[Traction] This call was not made: "
"""What the text begins with; harnesses put words of theirs before it."""

REPEATS: Final = "it repeats the one before"

_SAID: Final = re.compile(rf"[^\n]{{0,200}}?{re.escape(NOT_MADE)}({REPEATS})?")


def denial_in(text: str) -> Denial | None:
    """Tell why a call was not made whose failure has this text; None where it is no text of ours.

    Args:
        text: what an agent says of a call that failed: ours at its beginning, or behind words on the same line.
    """
    said = _SAID.match(text)
    if said is None:
        return None
    return "repeat" if said[1] else "other"


def recorded_denial(status: str | None, result: Any) -> ErrorInfo | None:
    """Give the error of a call that was not made on our word, by what was recorded of it; None for any other.

    What succeeded is never taken for such a call, since tools choose what they print. Where it was not recorded how a
    call ended, our text has to be at the very beginning.

    Args:
        status: how the call ended, as the agent told or recorded it.
        result: what it brought.
    """
    if status not in {"error", "denied", None} or not isinstance(result, str):
        return None
    if status is None and not result.startswith(NOT_MADE):
        return None
    denial = denial_in(result)
    return None if denial is None else ErrorInfo(type=CLASSES[denial])


def not_made(verdict: Verdict) -> ErrorInfo:
    """Give the error with which a call is told of that was not made because of a verdict; its status is `denied`.

    Who denied a call tells of it, so that an agent which goes on asking for it is seen to: one that repeats the call
    before counts as one more repetition, any other counts for nothing (`detectors.denial`).
    """
    return ErrorInfo(type=CLASSES[denial_of(verdict)])


def denial_of(verdict: Verdict) -> Denial:
    """Tell why a verdict keeps a call from being made: only one that names the call is about its repetition."""
    return "repeat" if verdict.action == "deny" and verdict.calls else "other"


def refusal(verdict: Verdict) -> str:
    """Give what stands in the place of a result.

    Args:
        verdict: any but the one to go on. Guidance may be what keeps a call from being made where an agent takes it in
            no other way.
    """
    return f"{NOT_MADE}{_why(verdict)}.\n{verdict.text}"


def _why(verdict: Verdict) -> str:
    if verdict.action == "stop":
        return "the session is stopped"
    if verdict.action == "ask":
        return "the session waits for a person"
    if verdict.action == "guide":
        return "read this first"
    if verdict.calls:
        return REPEATS
    if verdict.expires_at is None:
        return "the session is paused"
    until = verdict.expires_at.astimezone(UTC).isoformat(sep=" ", timespec="seconds").replace("+00:00", " UTC")
    return f"the session is paused until {until}, and no call is made before"
