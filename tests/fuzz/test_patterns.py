"""No regular expression of the code backtracks badly, whatever text it is given: the work grows as the text does."""

from __future__ import annotations

import contextlib
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detectors.masks import MAX_READ_CHARS
from streams.policy.conditions import InvalidGlob, read_glob
from tests.fuzz.patterns import Pattern, Repeated, patterns, texts

SHORT, MIDDLE, LONG = 20, 400, 3_200
"""Characters: 20 show work that doubles with each one, the other two work that grows as the square or worse."""

ROUGH = 3
"""How far from straight growth may stray: caches, and a machine that does other things. Squares stray 8-fold."""

FLOOR = 2e-5
"""Seconds below which a measurement says nothing."""

SLOWEST = 4
"""Kinds of text of each pattern that are looked at closely."""

LOOKS = 80
"""What a pattern that only sees short texts may cost at most, in plain looks over `MAX_READ_CHARS` characters."""

SEES = {
    "detectors.excerpt._SECRET": (700, "a failure's line of 300, or an excerpt of 200 and as many ahead"),
    "detectors.fruitless_search._TESTS": (300, "an excerpt"),
    "detectors.interface._WORKED": (300, "an acknowledgement, which is no longer"),
    "detectors.masks._DETAIL": (450, "a failure's line of 300, masks put into it"),
    "detectors.nothing._SYNTAX": (1_000, "the first 1,000 of an answer"),
    "detectors.session._UNIQUE_ID": (256, "an identifier of the contract"),
    "detectors.target._ARGUMENT": (1_200, "the first 1,200 of a call that was written out"),
    "detectors.target._CALL": (1_200, "likewise"),
    "detectors.verdict._NAMES": (300, "the first 300 of an answer"),
    "detectors.verdict._NAMES_AND_TITLES": (300, "the first 300 of an answer"),
    "streams.fixes.config._AT": (1_000, "what msgspec says of a file that people write"),
    "streams.policy.conditions._SET": (4_096, "a glob of a policy"),
    "streams.sinks.settings._AT": (1_000, "what msgspec says of known keys"),
}
"""Patterns whose work grows faster than the text, the longest text that they are given, and why it is no longer."""

PATTERNS = {f"{each.key} {number}": each for number, each in enumerate(patterns())}


def cost(pattern: Pattern, text: str, times: int = 1) -> float:
    """Measure the processor time that a pattern takes for a text, in seconds: the least of some tries."""
    least = float("inf")
    for _ in range(times):
        begun = time.process_time()
        pattern.run(text)
        least = min(least, time.process_time() - begun)
    return least


def slowest(pattern: Pattern, length: int) -> list[Repeated]:
    """Find the kinds of text that a pattern is worst at."""
    kinds = sorted(texts(pattern.regex), key=repr)
    for kind in kinds:
        taken = cost(pattern, kind.of(SHORT))
        assert taken < 1_000 * FLOOR or cost(pattern, kind.of(SHORT), 3) < 1_000 * FLOOR, f"doubles: {kind}"
    return sorted(kinds, key=lambda kind: cost(pattern, kind.of(length)), reverse=True)[:SLOWEST]


def growth(pattern: Pattern) -> tuple[float, Repeated]:
    """Tell how much more work a pattern does than the length of the text says, at the worst."""
    found: tuple[float, Repeated] = (0.0, Repeated("", "", ""))
    for kind in slowest(pattern, MIDDLE):
        short = max(FLOOR, cost(pattern, kind.of(MIDDLE), 3))
        for length in (2 * MIDDLE, LONG):  # cubes show at once, and would take minutes later
            times = cost(pattern, kind.of(length), 3) / short / (length / MIDDLE)
            found = max(found, (times, kind), key=lambda each: each[0])
            if times > ROUGH:
                return found
    return found


@pytest.fixture(scope="module")
def look() -> float:
    """Measure a plain look over the longest text that is read."""
    return max(cost(Pattern("", "", re.compile("[^a]"), frozenset({"search"})), "a" * MAX_READ_CHARS, 5), FLOOR)


@pytest.mark.parametrize("name", PATTERNS)
def test_the_work_grows_as_the_text(name, look):
    """Eight times the text takes eight times the work; or the pattern only ever sees texts that are short."""
    pattern = PATTERNS[name]
    if pattern.key in SEES:
        most, _ = SEES[pattern.key]
        for kind in slowest(pattern, min(MIDDLE, most)):
            assert cost(pattern, kind.of(most), 3) <= LOOKS * look, f"{kind} of {most} characters"
        return
    times, kind = growth(pattern)
    for _ in range(2):  # what backtracks does so again; what a busy machine held up does not
        if times > ROUGH:
            times, kind = min((times, kind), growth(pattern), key=lambda each: each[0])
    assert times <= ROUGH, f"{kind} takes {times:.1f} times as much as its length says"


def test_what_backtracks_is_found():
    """The texts find patterns that backtrack: nested repeats, alike neighbours, and starts that all run to the end."""
    for expression in (r"(?:\w+)*\.", r"\s*\n.*?x", r"[\w.]+=", r"a*?b?a*c", r'"(?:\\.|[^"\\])*"'):
        pattern = Pattern("", "", re.compile(expression), frozenset({"search"}))
        try:
            times, _ = growth(pattern)
        except AssertionError:
            continue  # it doubles
        assert times > ROUGH, expression


def test_every_pattern_is_looked_at():
    """Those of all modules and kinds are found, and what is said of the short ones is said of patterns that exist."""
    keys = {each.key for each in PATTERNS.values()}
    assert len(PATTERNS) > 200
    assert set(SEES) <= keys
    wanted = {"detectors.shell._TOKEN", "schemas.refusals._PATH", "streams.received._TRACEPARENT"}
    assert wanted <= keys
    assert any("toml" in key for key in keys)


@given(st.text(st.sampled_from("*?[]!a-/"), max_size=60))
@settings(max_examples=50, deadline=None)
def test_globs_are_quick(text):
    """What a policy's globs become does not backtrack either, on any name."""
    with contextlib.suppress(InvalidGlob):
        for part in read_glob(text).parts:
            if part is not None:
                assert growth(Pattern("", "", part, frozenset({"match"})))[0] <= ROUGH
