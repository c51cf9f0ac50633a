"""What ownership decides without a broker: which ids are remembered, and where reading goes on."""

from __future__ import annotations

from collections import OrderedDict

import pytest
from aiokafka import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from streams.escalation.ownership import RecentIds, start

TP = TopicPartition("agent.alerts", 0)


@given(ids=st.lists(st.sampled_from("abcdefgh")), most=st.integers(0, 6))
def test_recent_ids_are_those_seen_last(ids: list[str], most: int) -> None:
    """An id is new exactly if it is not among the last ones seen, and never more are remembered than allowed."""
    recent, model = RecentIds(most), OrderedDict[str, None]()
    for each in ids:
        assert recent.add(each) == (each not in model)
        model[each] = None
        model.move_to_end(each)
        while len(model) > most:
            model.popitem(last=False)
        assert len(recent) == len(model)


@pytest.mark.parametrize(
    ("committed", "beginning", "end", "expected", "complains"),
    [
        (None, 5, 90, 5, False),
        (30, 5, 90, 30, False),
        (90, 5, 90, 90, False),
        (3, 5, 90, 5, True),
        (91, 0, 90, 0, True),
    ],
    ids=["first start", "goes on", "at the end", "retention was quicker", "topic made anew"],
)
def test_where_reading_goes_on(
    *,
    caplog: pytest.LogCaptureFixture,
    committed: int | None,
    beginning: int,
    end: int,
    expected: int,
    complains: bool,
) -> None:
    """At the committed offset; where that cannot be, at the earliest, and what was lost is logged as an error."""
    assert start(TP, committed, beginning, end) == expected
    assert [record.levelname for record in caplog.records] == (["ERROR"] if complains else [])
