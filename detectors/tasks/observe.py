"""One event of one task: take it into the state, let the detectors look, and decide.

As pure as `detectors.session.observe`, from whose `step` the events come.
"""

from collections.abc import Iterator
from itertools import chain
from math import inf

import msgspec

from detectors.forgetting import forget_in_task
from detectors.limits import Limits
from detectors.loops import dismiss, quiet_until
from detectors.tasks import (
    approach_churn,
    circular_fix,
    comment_velocity,
    diff_reversal,
    fix_break,
    flaky_tests,
    ping_pong,
    state_cycle,
    task_budget,
    too_many_attempts,
)
from detectors.tasks.attempt import session_digest
from detectors.tasks.decision import decide, let_go
from detectors.tasks.facts import Attempt, Round, Spent, TaskEvent
from detectors.tasks.findings import TaskFinding
from detectors.tasks.fitting import fit
from detectors.tasks.history import failed, got_further
from detectors.tasks.reversal import settled
from detectors.tasks.state import MAX_ATTEMPTS, MAX_FINDINGS, MAX_PULLS, Pull, TaskState
from detectors.tasks.words import each
from detectors.watch import DISMISSED, Loop
from schemas.outputs import Alert

OF_ATTEMPTS = (
    fix_break,
    flaky_tests,
    approach_churn,
    diff_reversal,
    state_cycle,
    circular_fix,
    too_many_attempts,
)
"""The detectors that look at attempts, the most telling of one loop first."""

OF_REVIEWS = (ping_pong, comment_velocity)
"""Those that look at reviews."""

ENDS = frozenset({"merged", "closed"})
"""What ends a pull request."""

TASK_DETECTORS = (*OF_ATTEMPTS, *OF_REVIEWS, task_budget)

_NAMES_OF_ATTEMPTS = frozenset(detector.NAME for detector in OF_ATTEMPTS)
_MAX_EVENTS = 12
_ONE_ROUND_MS = 120_000  # between reviews of one change by several agents; a change and its review take longer


def observe_task(state: TaskState, event: TaskEvent, limits: Limits) -> list[Alert]:
    """Apply one event to the state of its task and return the alerts it brings about.

    `TaskState()` is the state of a task not seen before. When the state is `empty` afterwards, it is such a one again
    and need not be remembered. A task of which nothing is heard any more is for its keeper to forget: the events' own
    times say nothing of when that is.
    """
    if event.word == "forget":
        forget_in_task(state, event)
        return []
    if state.empty and _is_for_others(event):
        return []
    _note(state, event)
    alerts = _judge(state, event, limits)
    if state.empty:
        state.forget()
    else:
        fit(state)
    return alerts


def _judge(state: TaskState, event: TaskEvent, limits: Limits) -> list[Alert]:
    if event.word is not None:
        _obey(state, event, limits)
        return []
    alerts = decide(state, event, _look(state, event, limits), limits)
    attempt, review = event.attempt, event.review
    if attempt is not None and attempt.outcome == "success":
        alerts += _succeeded(state, event, attempt, limits)
    if review is not None:
        alerts += _reviewed(state, event, review, limits)
    return alerts


def _look(state: TaskState, event: TaskEvent, limits: Limits) -> Iterator[TaskFinding]:
    """Take an event in and let each detector look at it; at what ends the task, nobody needs to."""
    attempt, review = event.attempt, event.review
    if attempt is not None and (taken := _take_attempt(state, attempt)) is not None and taken.outcome != "success":
        yield from chain.from_iterable(detector.observe(state, taken, limits) for detector in OF_ATTEMPTS)
    if review is not None and (pull := _take_review(state, review)) is not None:
        yield from chain.from_iterable(detector.observe(state, pull, review, limits) for detector in OF_REVIEWS)
    solved = attempt is not None and attempt.outcome == "success" and not attempt.derived
    if not solved and (review is None or review.verdict not in ENDS):
        yield from task_budget.observe(state, event.event_id, limits)


def _is_for_others(event: TaskEvent) -> bool:
    """Tell whether an event brings nothing to watch to a task of which nothing is known.

    So do words and costs where the task is the session's own, which keeps an account itself. That of a named task is
    kept here; and what was tried in other sessions may be read after the word that settled it.
    """
    return event.attempt is None and event.review is None and event.task_id == event.session_id


def _note(state: TaskState, event: TaskEvent) -> None:
    """Keep who acts for which task, and what was spent."""
    state.task_id = event.task_id
    state.agent = event.agent or state.agent
    state.task = event.task or state.task
    state.first_ms = state.first_ms or event.at_ms
    state.last_ms = max(state.last_ms, event.at_ms)
    state.spent = state.spent.plus(event.spent)


def _obey(state: TaskState, event: TaskEvent, limits: Limits) -> None:
    """A person's or orchestrator's word: what was tried before it is settled, or an alert was wrong.

    It comes on another topic than the attempts, and may be read before or after them. Whether a session is to be
    stopped, and what became of that, is not detection's matter.
    """
    if event.word == "false_alarm":
        dismiss(state.loops, state.told, event.answers, quiet_until(event.at_ms, event.until_ms, limits))
    elif event.word == "user_message":
        _drop_derived(state, session_digest(event.session_id), event.at_ms)
    elif event.word in {"resume", "reset", "clear"}:
        _settle(state, event)


def _settle(state: TaskState, event: TaskEvent) -> None:
    """Forget what was tried before a person's word, and unless it only says to go on, what was spent.

    A task that may be tried again with its budget still spent would be ended at the first attempt.
    """
    kept = [seen for seen in state.attempts if seen.at_ms >= event.at_ms]
    state.forget_attempts()
    state.attempts, state.tried = kept, len(kept)
    state.failed = sum(not seen.derived for seen in failed(kept))
    state.failed_derived = _failed_derived(kept)
    state.pulls = [pull for pull in state.pulls if pull.since_ms >= event.at_ms]
    state.loops = [loop for loop in state.loops if loop.level == DISMISSED or loop.alerted_ms >= event.at_ms]
    state.settled_ms, state.outdated = max(state.settled_ms, event.at_ms), 0
    if event.word != "resume":
        state.spent = Spent()


def _take_attempt(state: TaskState, attempt: Attempt) -> Attempt | None:
    """Put an attempt among the latest, and return it as it is there; None when there is nothing to look at.

    There is nothing in one that was there before, was settled, was given up untried or met an outage. Attempts that a
    session sends are worth more than what was read from its tool calls, which goes when they come.
    """
    if any((seen.session, seen.attempt_id) == (attempt.session, attempt.attempt_id) for seen in state.attempts):
        return None
    if _is_settled(state, attempt):
        return None
    if not attempt.derived:
        _drop_derived(state, attempt.session)
    state.tried, state.place = state.tried + 1, state.place + 1
    if attempt.transient or attempt.outcome == "skipped":
        return None
    state.steps, state.numbered = state.steps + 1, state.numbered + 1
    whole = {file.source for file in attempt.change.files if file.whole}
    before = (seen.change for seen in reversed(state.attempts) if any(file.path in whole for file in seen.change.files))
    change = settled(attempt.change, next(before, None)) if whole else attempt.change
    attempt = msgspec.structs.replace(attempt, number=state.numbered, spent=state.spent, change=change)
    if attempt.outcome == "failed" and not got_further(state.attempts, attempt):
        state.failed += not attempt.derived
        state.failed_derived += attempt.derived
    state.attempts.append(attempt)
    del state.attempts[:-MAX_ATTEMPTS]
    return attempt


def _is_settled(state: TaskState, attempt: Attempt) -> bool:
    """Tell whether an attempt was made before a person's word that settled what was tried.

    One word dated far ahead must not blind the watch for good: after so many such attempts in a row as are remembered,
    its time is not believed any more.
    """
    if attempt.at_ms >= state.settled_ms:
        state.outdated = 0
        return False
    state.outdated += 1
    if state.outdated > MAX_ATTEMPTS:
        state.settled_ms = state.outdated = 0
    return state.outdated > 0


def _drop_derived(state: TaskState, session: int, before_ms: float = inf) -> None:
    """Drop the attempts that were read from a session's tool calls; with the last attempt goes what was made of it.

    A user's message comes on another topic than the calls: what they tried after it stays.
    """
    kept = [seen for seen in state.attempts if not seen.derived or seen.session != session or seen.at_ms >= before_ms]
    if len(kept) == len(state.attempts):
        return
    state.tried -= len(state.attempts) - len(kept)
    state.attempts = kept
    state.failed_derived = _failed_derived(kept)
    if not kept:
        state.loops = [
            loop for loop in state.loops if loop.level == DISMISSED or loop.detector not in _NAMES_OF_ATTEMPTS
        ]


def _failed_derived(attempts: list[Attempt]) -> int:
    return sum(seen.derived for seen in failed(attempts))


def _succeeded(state: TaskState, event: TaskEvent, attempt: Attempt, limits: Limits) -> list[Alert]:
    """Clear what a success settles: for one that was read from tool calls, what that check had found.

    What was spent stays as long as the change is under review. With a success that was sent, what a person said of a
    loop is over too; a check that passes only ends a stretch of work.
    """
    if attempt.derived:
        state.attempts = [seen for seen in state.attempts if not seen.derived or seen.check != attempt.check]
        state.failed_derived = _failed_derived(state.attempts)
        if state.attempts:
            return []
        state.forget_attempts()
        if event.task_id == event.session_id:
            state.spent = Spent()  # the session keeps an account of its own
    else:
        state.forget_attempts()
        if not state.pulls:
            state.spent, state.first_ms, state.settled_ms = Spent(), 0, 0
    alerts = let_go(state, event, lambda loop: _is_over(state, loop), "the task succeeded", limits)
    if not attempt.derived:
        state.loops = [loop for loop in state.loops if not _is_over(state, loop)]
    return alerts


def _is_over(state: TaskState, loop: Loop) -> bool:
    """Tell whether a loop is over with the attempts, as that of a spent budget or of a review that goes on is not."""
    if loop.detector == task_budget.NAME:
        return state.spent == Spent()
    return loop.detector in _NAMES_OF_ATTEMPTS or not state.pulls


def _take_review(state: TaskState, review: Round) -> Pull | None:
    """Take a round of review in; None when it ends the pull request, or nothing is left to look at."""
    state.steps, state.place = state.steps + 1, state.place + 1
    pull = state.pull(review.pull_request)
    if review.verdict in ENDS:
        return None
    if pull is None:
        pull = Pull(review.pull_request, review.name, since_ms=review.at_ms, spent=state.spent)
        state.pulls = [*state.pulls, pull][-MAX_PULLS:]
    pull.comments = max(pull.comments, review.comments or 0)
    if ping_pong.settles(review):
        pull.rounds, pull.open, pull.fixed, pull.returned = 0, [], [], []
    elif ping_pong.asks_again(review):
        if not pull.rounds:
            pull.since_ms, pull.spent = review.at_ms, state.spent
        if not _is_known(state, pull, review):
            pull.rounds, pull.number = pull.rounds + 1, review.number
            pull.open_before, pull.fixed_before, pull.open = pull.open, pull.fixed, []
        _compare(pull, review)
    pull.step, pull.round_ms = state.steps, review.at_ms
    pull.events = [*pull.events, review.event_id][-_MAX_EVENTS:]
    return pull


def _compare(pull: Pull, review: Round) -> None:
    """Note which remarks are made again, which are settled, and which come back.

    A round that names no remarks, or more than are known of it, does not say which are settled.
    """
    made = list(dict.fromkeys([*(mark for mark, _ in pull.open), *each(review.findings)]))
    before = dict(pull.open_before)
    pull.returned = [mark for mark in made if mark in pull.fixed_before]
    if not made:
        pull.open = pull.open_before
        return
    gone = [mark for mark in before if mark not in made] if len(made) < MAX_FINDINGS else []
    pull.fixed = [*(mark for mark in pull.fixed_before if mark not in made), *gone][-MAX_FINDINGS:]
    pull.open = [(mark, before.get(mark, 0) + 1) for mark in made][:MAX_FINDINGS]


def _is_known(state: TaskState, pull: Pull, review: Round) -> bool:
    """Tell whether a review is one more of the latest round, as of another agent.

    Where rounds have no numbers, that is one that comes at once, with nothing tried in between.
    """
    if not pull.rounds:
        return False
    if review.number is not None and pull.number is not None:
        return review.number == pull.number
    return state.steps == pull.step + 1 and abs(review.at_ms - pull.round_ms) <= _ONE_ROUND_MS


def _reviewed(state: TaskState, event: TaskEvent, review: Round, limits: Limits) -> list[Alert]:
    """Let go of what a decision settles: a merge ends the task's history, unless another pull request is open."""
    about = review.pull_request
    if ping_pong.settles(review):
        return let_go(state, event, lambda loop: about in loop.members, "a review settled it", limits)
    if review.verdict not in ENDS:
        return []
    marks = {mark for pull in state.pulls if pull.pull_request == about for mark in pull.marks}
    state.pulls = [pull for pull in state.pulls if pull.pull_request != about]
    solved = review.verdict == "merged" and not state.pulls
    why = f"the pull request was {review.verdict}"
    alerts = let_go(state, event, lambda loop: solved or not marks.isdisjoint(loop.members), why, limits)
    if solved:
        state.forget()
    return alerts
