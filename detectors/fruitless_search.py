"""Fruitless search: searches and look-ups that bring nothing, each for another invented name.

A few misses are how one explores; nearly all of the latest ten are not. Test runs that print nothing count as well: a
run without an answer is a question without one. Never terminates alone.
"""

import re
from collections.abc import Iterable, Sequence

from detectors.about import About
from detectors.canonical import digest
from detectors.facts import WORD_BYTES, Call
from detectors.findings import Finding
from detectors.limits import MAX_SEARCHES, Limits
from detectors.state import Search, SessionState

NAME = "fruitless_search"
ABOUT = About(
    rule=(
        "Searches and look-ups that bring nothing; fewer are enough when they ask for the same in other "
        "words. Never terminates alone."
    ),
    source="recorded sessions",
    cleared_by="hits, by the window; an accepted edit",
)

_SHARED_WORDS = 3
_LOOKS = frozenset({"search", "read", "check"})

_TESTS = re.compile(r"(?i)(?:^|[^a-z])(?:\w*tests?|specs?|tox|nox|jest|mocha|rspec|phpunit)(?:$|[^a-z])")


def observe(state: SessionState, call: Call, limits: Limits) -> Sequence[Finding]:
    """Count the call when it is a search, and say when most of the latest brought nothing."""
    fruitless = _fruitless(call)
    if state.searches and call.applied:
        state.searches = []  # whoever makes what was not there has looked for good reason
    if fruitless is None:
        return ()
    group = limits.fruitless_search
    state.searches = [*state.searches[1 - MAX_SEARCHES :], Search(call.action, fruitless, call.words, call.mark)]
    if not fruitless:
        return ()
    misses = _distinct(search for search in state.searches[-group.window :] if search.fruitless)
    limit, how = f"{NAME}.warn", "brought nothing"
    if len(misses) < group.warn:
        misses = [search for search in misses if _reworded(search.words, call.words)]
        limit, how = f"{NAME}.reworded_warn", "asked for the same in other words and brought nothing"
    if len(misses) < limits.value(limit):
        return ()
    failure = call.failure
    found = Finding(
        detector=NAME,
        level="warn",
        fingerprint=digest(NAME),
        members=tuple({search.action for search in misses}),
        count=len(misses),
        limit=limit,
        value=limits.value(limit),
        mark=misses[0].mark,
        what=f"{len(misses)} of the last {min(len(state.searches), group.window)} searches {how}",
        calls=(call.text,),
        failure=failure,
        weak=True,
    )
    return (found,)


def _distinct(searches: Iterable[Search]) -> list[Search]:
    """Return the searches, each once: to ask the same again is an identical call, or an alternation."""
    return list({search.action: search for search in searches}.values())


def _reworded(words: bytes, others: bytes) -> bool:
    """Tell whether two queries share half the words of the shorter one, or three of a longer one."""
    first, second = _words(words), _words(others)
    shared = len(first & second)
    return shared >= _SHARED_WORDS or (bool(shared) and 2 * shared >= min(len(first), len(second)))


def _words(prints: bytes) -> set[bytes]:
    return {prints[at : at + WORD_BYTES] for at in range(0, len(prints), WORD_BYTES)}


def _fruitless(call: Call) -> bool | None:
    """Tell whether a search or look-up brought nothing; None for calls that are none, or whose result is not known."""
    kind, failure = call.kind, call.failure
    if kind not in _LOOKS:
        return None
    if failure is not None and (failure.transient or failure.denied or failure.unknown_tool):
        return None
    failing = failure is not None
    if not (call.recorded or failing) or call.outage:
        return None
    if kind == "search":
        return failing or call.empty
    if kind == "read":
        return failing or (call.empty and not (call.executes and call.answer == 0))  # a silent `git diff` is an answer
    return True if call.empty and _TESTS.search(call.text) else None
