"""How attempts of one task compare: in words, in what they change, in how they fail, and whether there is progress.

Where one of two attempts does not say something, they do not agree in it.
"""

from collections.abc import Iterable, Sequence
from math import inf
from typing import NamedTuple

from detectors.canonical import digest
from detectors.facts import Mark
from detectors.failure import Failure
from detectors.tasks.facts import Attempt
from detectors.tasks.lines import numbers
from detectors.tasks.reversal import agreement
from detectors.tasks.words import MAX_PRINTS, overlap

SAME_CHANGE = 0.9
"""Share of changed lines in common from which two changes are trivially different."""

NO_LINE_IN_COMMON = 0.1

MAX_SHOWN = 6
"""Attempts that an alert shows: more do not tell more."""


def identity(attempt: Attempt) -> int:
    """Return what an attempt is known by: what it changes, else its words, else where it led; 0 for nothing."""
    if attempt.change.digest or attempt.wording:
        return attempt.change.digest or attempt.wording
    if not (attempt.files or attempt.failing or attempt.error or attempt.state):
        return 0
    return digest("attempt", attempt.files, attempt.error, attempt.failing, attempt.state)


def members(attempts: Iterable[Attempt]) -> tuple[int, ...]:
    """Return what a loop of these attempts is made of."""
    return tuple(dict.fromkeys(found for attempt in attempts if (found := identity(attempt))))


def word_similarity(one: Attempt, other: Attempt) -> float | None:
    """Return how alike two attempts are in words; None when one has none."""
    return overlap(one.words, other.words) if one.words and other.words else None


def diff_similarity(one: Attempt, other: Attempt) -> float | None:
    """Return how alike two attempts are in what they change; None when that is not known of one."""
    if not (one.change.digest and other.change.digest):
        return None
    return agreement(one.change, other.change)


def same_change(one: Attempt, other: Attempt) -> bool:
    """Tell whether two attempts change the same, but for trifles."""
    return (diff_similarity(one, other) or 0.0) >= SAME_CHANGE


def same_files(one: Attempt, other: Attempt) -> bool:
    """Tell whether two attempts touch the same files."""
    return bool(one.files) and one.files == other.files


def same_failure(one: Attempt, other: Attempt) -> bool:
    """Tell whether two attempts fail alike: the same checks where these have names, else the same kind of error."""
    if one.check != other.check or _other_error(one, other):
        return False
    if one.failing or other.failing:
        return one.failing == other.failing and one.failing_count == other.failing_count
    return one.error != 0 and one.error == other.error


def other_failure(one: Attempt, other: Attempt) -> bool:
    """Tell whether two attempts are known to fail in different ways."""
    if _other_error(one, other):
        return True
    first, second = checks_of(one, other)
    return bool(first and second) and first.isdisjoint(second)


def _other_error(one: Attempt, other: Attempt) -> bool:
    """Tell whether two attempts fail by errors of different kinds, or about different things."""
    return one.specific and other.specific and one.error != other.error


def checks_of(*attempts: Attempt) -> list[set[int]]:
    """Return the prints of the checks that fail after each attempt, as far as they are known of all.

    Of very many only the lowest prints are kept: beyond the highest of those nobody knows what fails.
    """
    rows = [numbers(attempt.failing) for attempt in attempts]
    known = min((row[-1] for row in rows if len(row) >= MAX_PRINTS), default=inf)
    return [{number for number in row if number <= known} for row in rows]


def in_line(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Return the attempts that are in one line with the latest: those of its session, and what the session could know.

    A session that came to the task again works beside those that came in between when they touch none of its files:
    what one of them mends and the other breaks is not one thing going to and fro. For example, of s1 in a.py, s2 in
    b.py, s1 in a.py, s2 in b.py the second and fourth are in line; with s2 in a.py and b.py all are.
    """
    if not attempts:
        return []
    session = attempts[-1].session
    if {seen.session for seen in attempts} == {session}:
        return list(attempts)
    first = next(at for at, seen in enumerate(attempts) if seen.session == session)
    own = set(numbers(b"".join([seen.files for seen in attempts if seen.session == session])))

    def meets(seen: Attempt) -> bool:
        return not (own and seen.files) or not own.isdisjoint(numbers(seen.files))

    beside = {seen.session for seen in attempts[first:]} - {seen.session for seen in attempts[first:] if meets(seen)}
    return [seen for at, seen in enumerate(attempts) if at < first or seen.session not in beside]


def failed(attempts: Iterable[Attempt]) -> list[Attempt]:
    """Return the attempts that failed for a reason that does not pass by itself."""
    return [attempt for attempt in attempts if attempt.outcome == "failed" and not attempt.transient]


def has_failed(attempt: Attempt) -> bool:
    """Tell whether an attempt failed for a reason that does not pass by itself."""
    return attempt.outcome == "failed" and not attempt.transient


class _Furthest(NamedTuple):
    """How far the attempts at one check got: the fewest that failed, the most that passed, and the latest attempt."""

    fewest: int
    most: int | None
    latest: Attempt


def since_progress(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Return the attempts from the last one on that got further than any before it.

    That is one whose outcome is partial, or `got_further`. What an outage stopped, or was given up untried, got
    nowhere.
    """
    known: dict[int, _Furthest] = {}  # by the check
    begin = 0
    for at, attempt in enumerate(attempts):
        before = known.get(attempt.check)
        further = before is not None and _is_further(attempt, before)
        if at and (further or attempt.outcome == "partial"):
            begin = at
        if attempt.failing_count is not None and has_failed(attempt):
            known[attempt.check] = _furthest(attempt, attempt.failing_count, before)
    return list(attempts[begin:])


def got_further(before: Sequence[Attempt], attempt: Attempt) -> bool:
    """Tell whether an attempt got further than any before it at the same check.

    It did when fewer checks fail, and only such as failed last time where they have names; or when more pass than ever,
    no more fail and these are others, as where each run ends at its first failure.
    """
    known: _Furthest | None = None
    for seen in before:
        if seen.failing_count is not None and seen.check == attempt.check and has_failed(seen):
            known = _furthest(seen, seen.failing_count, known)
    return known is not None and _is_further(attempt, known)


def _furthest(attempt: Attempt, failing: int, before: _Furthest | None) -> _Furthest:
    passing = attempt.passing_count
    if before is None:
        return _Furthest(failing, passing, attempt)
    most = before.most if passing is None else max(passing, before.most or 0)
    return _Furthest(min(failing, before.fewest), most, attempt)


def _is_further(attempt: Attempt, before: _Furthest) -> bool:
    failing, passing = attempt.failing_count, attempt.passing_count
    if failing is None or failing > before.fewest or not has_failed(attempt):
        return False
    more = passing is not None and before.most is not None and passing > before.most
    now, then = checks_of(attempt, before.latest)
    others = now.isdisjoint(then) if now and then else 0 != attempt.error != before.latest.error != 0
    if more and others:
        return True
    return failing < before.fewest and (not before.latest.failing or now <= then)


def mark_of(attempt: Attempt) -> Mark:
    """Return when an attempt was made and what the task had spent up to it."""
    return Mark(attempt.at_ms, attempt.spent.calls, attempt.spent.tokens, attempt.spent.cost)


def shown(attempts: Iterable[Attempt]) -> tuple[str, ...]:
    """Return the latest of these attempts in readable form: their words, else what they touched and what failed."""
    return tuple(map(_shown, list(attempts)[-MAX_SHOWN:]))


def _shown(attempt: Attempt) -> str:
    if attempt.approach:
        return attempt.approach
    touched = f"a change of {' and '.join(attempt.names)}" if attempt.names else f"attempt {attempt.number}"
    return f"{touched}, then {' and '.join(attempt.failing_names)} failing" if attempt.failing_names else touched


def common_failure(attempts: Sequence[Attempt]) -> Failure | None:
    """Return the failure that attempts have in common; None when they have none."""
    latest = attempts[-1]
    if not latest.error_text or not all(same_failure(latest, attempt) for attempt in attempts):
        return None
    return Failure(kind=latest.error, template=latest.error_text, from_text=latest.derived)


def percent(share: float) -> str:
    """Return a share in words."""
    return f"{100 * share:.0f} %"
