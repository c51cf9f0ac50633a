"""Progress of one run against those before it: fewer checks fail, or more pass before another one fails.

The second is what runs show that end at their first failure (``pytest -x``, ``jest --bail``), where one thing
after the other is mended. What a run says that is no check, nobody can measure so: see `detectors.error_streak`.
"""

from collections.abc import Sequence

from detectors.canonical import digest
from detectors.facts import Call
from detectors.failure import Failure
from detectors.state import Area, FailingCall, SessionState


def note(state: SessionState, call: Call) -> None:
    """Note on a call that failed whether it got further than all that its program, or that very call, did before."""
    failure = call.failure
    call.further = call.runs and failure is not None and _gets_further(state, call, failure)


def note_counts(seen: Area | FailingCall, failure: Failure) -> None:
    """Remember the fewest checks that failed, and the most that passed."""
    if failure.failing is not None:
        seen.failing = failure.failing if seen.failing is None else min(seen.failing, failure.failing)
    if failure.passing is not None:
        seen.passing = failure.passing if seen.passing is None else max(seen.passing, failure.passing)


def area_digest(call: Call) -> int:
    """Return what the failures of a call's program are counted by."""
    return digest("area", call.tool, call.program)


def _gets_further(state: SessionState, call: Call, failure: Failure) -> bool:
    if failure.failing is None and failure.passing is None:
        return False
    wanted = area_digest(call)
    return any(_is_further(area, failure, area.abouts) for area in state.areas if area.area == wanted) or any(
        _is_further(seen, failure, (seen.about,)) for seen in state.failing_calls if seen.action == call.action
    )


def _is_further(seen: Area | FailingCall, failure: Failure, abouts: Sequence[int]) -> bool:
    """Compare with what was seen; more that pass beside the same failure are no progress with it."""
    failing, passing = failure.failing, failure.passing
    if failing is not None and seen.failing is not None and failing != seen.failing:
        return failing < seen.failing
    more = passing is not None and seen.passing is not None and passing > seen.passing
    return more and failure.about not in abouts
