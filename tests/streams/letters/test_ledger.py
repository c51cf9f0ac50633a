"""The ledger agrees with plain sets, and its memory is bounded by offsets and kinds."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from streams.letters.ledger import MOST_KINDS, Ledger

OFFSETS = st.dictionaries(st.integers(0, 60), st.sampled_from("abc"))


@given(
    noted=st.dictionaries(st.integers(0, 2), OFFSETS), settled=st.sets(st.tuples(st.integers(0, 3), st.integers(0, 70)))
)
def test_it_counts_as_sets_do(noted: dict[int, dict[int, str]], settled: set[tuple[int, int]]) -> None:
    """What is there, what was put back, and how many of each kind."""
    ledger = Ledger("other")
    for partition, kinds in noted.items():
        for offset in sorted(kinds):
            assert ledger.note(partition, offset, kinds[offset]) == kinds[offset]
    for place in settled:
        ledger.settle(*place)
    still, done = Counter[str](), Counter[str]()
    for partition in range(4):
        for offset in range(75):
            kind = noted.get(partition, {}).get(offset)
            assert ledger.noted(partition, offset) == (kind is not None)
            if kind is not None:
                assert ledger.settled(partition, offset) == ((partition, offset) in settled)
                (done if (partition, offset) in settled else still)[kind] += 1
    assert ledger.count() == (still, done)
    spans = {partition: (first, end) for partition, first, end in ledger.spans()}
    assert spans == {partition: (min(kinds), max(kinds) + 1) for partition, kinds in noted.items() if kinds}


def test_kinds_are_bounded() -> None:
    """Beyond so many kinds all further ones count as one."""
    ledger = Ledger("other")
    for offset in range(MOST_KINDS + 5):
        ledger.note(0, offset, str(offset))
    still, _ = ledger.count()
    assert still["other"] == 6
    assert len(still) == MOST_KINDS
    assert ledger.note(0, MOST_KINDS + 9, "5") == "5"
