"""What a batch's start means is decided by the log's bounds, and a lost batch is never taken for anything else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.worker.positions import Meaning, meaning

offsets = st.integers(0, 50)


@pytest.mark.parametrize(
    ("expected", "start", "earliest", "end", "found"),
    [
        (10, 10, 0, 20, Meaning.FOLLOWS),
        (10, 10, 10, 10, Meaning.FOLLOWS),
        (10, 12, 12, 20, Meaning.DELETED),
        (10, 12, 15, 20, Meaning.DELETED),  # retention went on meanwhile
        (10, 12, 0, 20, Meaning.LOST),
        (10, 12, 11, 20, Meaning.LOST),  # 11 was there
        (10, 4, 0, 20, Meaning.OVERLAPS),
        (10, 4, 0, 10, Meaning.OVERLAPS),
        (10, 0, 0, 3, Meaning.ANEW),
    ],
)
def test_meanings(expected: int, start: int, earliest: int, end: int, found: Meaning) -> None:
    """Each meaning has its case, and the ones next to it."""
    assert meaning(expected, start, earliest, end) is found


@given(expected=offsets, start=offsets, earliest=offsets, end=offsets)
def test_only_what_is_gone_may_be_passed_over(expected: int, start: int, earliest: int, end: int) -> None:
    """Going on behind a gap is right only when no record of the gap is in the log any more."""
    if meaning(expected, start, earliest, end) is Meaning.DELETED:
        assert not [offset for offset in range(expected, start) if offset >= earliest]
