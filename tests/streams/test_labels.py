"""Labels whose values come from outside take a limited number of them, fit for a page, and lose no count."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from streams.labels import MAX_LABEL_BYTES, OTHER, UNKNOWN, Bounded, label_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

NAMES = ("repo", "role")
WORD = st.text(max_size=5) | st.text(min_size=60, max_size=70)


def counted(rows: Iterable[tuple[str, ...]], limit: int, most: int) -> Mapping[tuple[str, ...], float]:
    """Count in a bounded counter, and read the page: values by labels."""
    registry = CollectorRegistry()
    counter = Bounded(Counter("traction_x", "X.", NAMES, registry=registry), limit, most)
    for row in rows:
        counter.labels(*row).inc()
    (family,) = text_string_to_metric_families(generate_latest(registry).decode())
    return {tuple(each.labels[name] for name in NAMES): each.value for each in family.samples if "total" in each.name}


@given(rows=st.lists(st.tuples(WORD, WORD), max_size=60), limit=st.integers(0, 5), most=st.integers(1, 8))
def test_whatever_is_sent_the_page_is_short_and_the_sum_is_right(
    rows: list[tuple[str, str]], limit: int, most: int
) -> None:
    """All children together count what was counted, in so many series; each label takes so many values."""
    found = counted(rows, limit, most)
    assert sum(found.values()) == len(rows)
    assert len(found) <= most + 1
    for place in range(len(NAMES)):
        values = {labels[place] for labels in found}
        assert len(values - {OTHER}) <= limit
        assert all(value and len(value.encode()) <= MAX_LABEL_BYTES and value.isprintable() for value in values)


@given(values=st.lists(st.text("abcdefgh", min_size=1, max_size=2), max_size=60), limit=st.integers(0, 5))
def test_the_first_that_come_are_told_apart(values: list[str], limit: int) -> None:
    """Their counts are theirs alone, and what comes later is one more series."""
    found = counted(((value, "code") for value in values), limit=max(1, limit), most=99)
    for value in list(dict.fromkeys(values))[:limit]:
        assert found[value, "code"] == values.count(value)


@pytest.mark.parametrize("over", [0, 1])
def test_bounds_of_a_label(over: int) -> None:
    """As many values as the limit have series of their own, and one more none."""
    found = counted(((f"r{number}", "code") for number in range(3 + over)), limit=3, most=99)
    assert found == {("r0", "code"): 1, ("r1", "code"): 1, ("r2", "code"): 1} | ({(OTHER, "code"): 1} if over else {})


@pytest.mark.parametrize("over", [0, 1])
def test_bounds_of_combinations(over: int) -> None:
    """As many combinations as the limit have series of their own, and one more is counted with all others."""
    rows = [("r0", "a"), ("r1", "a"), ("r0", "b"), ("r1", "b")][: 3 + over]
    assert counted(rows, limit=9, most=3) == dict.fromkeys(rows[:3], 1) | ({(OTHER, OTHER): 1} if over else {})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("acme/shop", "acme/shop"),
        ("", UNKNOWN),
        (" \n\t", UNKNOWN),
        ("two\nlines", "two lines"),
        ("\u202eright to left", "right to left"),
        ("x" * MAX_LABEL_BYTES, "x" * MAX_LABEL_BYTES),
        ("\udcff", UNKNOWN),
    ],
)
def test_values_are_fit_for_a_page(text: str, value: str) -> None:
    """One line without what cannot be seen or written; an empty one is named, since to Prometheus it is no label."""
    assert label_value(text) == value


@pytest.mark.parametrize("letter", ["x", "ä", "\U0001f600"])
def test_long_values_are_cut(letter: str) -> None:
    """A value takes no more bytes than the limit, and is cut between letters."""
    value = label_value(letter * 100)
    assert MAX_LABEL_BYTES - 4 <= len(value.encode()) <= MAX_LABEL_BYTES
    assert set(value) <= {letter, "…"}
