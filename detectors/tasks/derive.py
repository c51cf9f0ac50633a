"""Attempts of agents that send none: edits that were accepted, and then a check that fails, in one session.

Only what is plain is read as an attempt: the run has to be a check, the edits have to come before it, and outages and
refusals say nothing. Once such a check passes, what it had found is settled. A session that sends attempts of its own
is left alone.
"""

from typing import Final

from msgspec import UNSET

from detectors.canonical import digest, opened, plain_text
from detectors.checks import failing_checks
from detectors.facts import Call
from detectors.limits import Limits
from detectors.shell import bare, parts_of
from detectors.state import Tries
from detectors.tasks.attempt import cut_id, note_failing, note_failure, note_files, session_digest
from detectors.tasks.diffs import change_of_call
from detectors.tasks.edits import join, plain_path
from detectors.tasks.facts import Attempt, Change, Outcome
from detectors.tools import plain_name
from schemas.events import ToolCall

MAX_PATHS: Final = 8
MAX_RED: Final = 8
MAX_EDITS: Final = 24  # between two checks
_PATH_BYTES = 64


def derive(tries: Tries, event: ToolCall, call: Call, limits: Limits) -> Attempt | None:
    """Note an edit, or return the attempt that a check completes; None when there is none."""
    if call.kind != "check":
        if call.applied:
            _note_edit(tries, event, call, limits)
        return None
    failure = call.failure
    if not (call.succeeded or failure) or call.met_outage:
        return None
    if failure is None:
        return _passed(tries, event, call)
    if not tries.edits or failure.denied or failure.unknown_tool:
        return None
    attempt = _attempt(event, call, _check(event, call), "failed")
    if any(file.regions or file.content for file in tries.change.files):
        attempt.change = tries.change  # else it was all taken back, as a print that is put elsewhere
    note_files(attempt, tries.paths, limits)
    text = "" if event.result is UNSET else plain_text(event.result)
    message = (event.error.message if event.error else None) or text
    note_failing(attempt, failing_checks(text or message), tries.paths, limits)
    note_failure(attempt, failure, message, limits)
    tries.forget_edits()
    tries.red = [*(check for check in tries.red if check != attempt.check), attempt.check][-MAX_RED:]
    return attempt


def _note_edit(tries: Tries, event: ToolCall, call: Call, limits: Limits) -> None:
    tries.edits += 1
    if tries.edits > MAX_EDITS:
        tries.change = Change()  # of so many edits nobody says that they are one try
        return
    arguments = None if event.arguments is UNSET else opened(event.arguments)
    target = limits.tools.use(plain_name(event.tool), arguments).target if call.target else ""
    tries.change = join([tries.change, change_of_call(arguments, target)])
    path = plain_path(target)
    path = path if len(path.encode()) <= _PATH_BYTES else f"…{digest(path):016x}"
    if path and path not in tries.paths:
        tries.paths = [*tries.paths, path][-MAX_PATHS:]


def _passed(tries: Tries, event: ToolCall, call: Call) -> Attempt | None:
    """Return the success of a check that had failed after edits. What another one finds right, this may find wrong."""
    check = _check(event, call)
    if check not in tries.red:
        return None
    tries.forget_edits()
    tries.red.remove(check)
    return _attempt(event, call, check, "success")


def _check(event: ToolCall, call: Call) -> int:
    """Return what makes a run the same check: what is run, and on what, but for options and what becomes of its output.

    Agents look at one and the same failure now with ``-x``, now with ``-v``, now at its last lines only.
    """
    arguments = None if event.arguments is UNSET else opened(event.arguments)
    texts = arguments.values() if isinstance(arguments, dict) else (arguments,)
    for text in texts:
        for part in parts_of(text) if isinstance(text, str) else ():
            at = next((at for at, word in enumerate(part.words) if bare(word) == call.program), None)
            if at is not None:
                return digest("check", call.program, *(word for word in part.words[at + 1 :] if word[:1] != "-"))
    return digest("check", call.action)


def _attempt(event: ToolCall, call: Call, check: int, outcome: Outcome) -> Attempt:
    return Attempt(
        attempt_id=cut_id(f"call:{event.event_id}"),
        session=session_digest(event.session_id),
        event_id=cut_id(event.event_id),
        at_ms=call.mark.at_ms,
        outcome=outcome,
        derived=True,
        check=check,
    )
