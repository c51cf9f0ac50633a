"""Both inputs of a partition are answered in the order in which they were written, without waiting for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from aiokafka import TopicPartition
from aiokafka.structs import ConsumerRecord
from hypothesis import given
from hypothesis import strategies as st

from streams.escalation.unit import WAIT_SECONDS, Feed, Unit

if TYPE_CHECKING:
    from collections.abc import Sequence


def unit(alerts: Sequence[int], events: Sequence[int]) -> Unit:
    """Give a unit with records of these times in its queues."""
    made = Unit(0, Feed(TopicPartition("alerts", 0)), Feed(TopicPartition("events", 0)), producer=cast("Any", None))
    for feed, times in zip(made.feeds, (alerts, events), strict=True):
        records = [
            ConsumerRecord(feed.tp.topic, 0, offset, time, 0, None, None, 0, 0, 0, ())
            for offset, time in enumerate(times)
        ]
        feed.fetched(records, len(records))
    return made


def taken(made: Unit, most: int = 100, *, drained: bool = True, now: float = 0.0) -> list[tuple[str, int]]:
    """Take records; give their topics and offsets."""
    return [(each.topic, each.offset) for each in made.take(most, lambda _: drained, now)]


def test_times_decide_between_the_inputs() -> None:
    """An answer that was written between two alerts is heard between them; of equal times the alert comes first."""
    assert taken(unit([1, 5, 7], [4, 5, 6])) == [
        *(("alerts", 0), ("events", 0), ("alerts", 1), ("events", 1), ("events", 2), ("alerts", 2)),
    ]


@given(alerts=st.lists(st.integers(0, 9)), events=st.lists(st.integers(0, 9)), most=st.integers(1, 5))
def test_each_record_is_taken_once_in_its_inputs_order(alerts: list[int], events: list[int], most: int) -> None:
    """Whatever the times and however few are taken at once, no input is put into another order."""
    made = unit(alerts, events)
    found = []
    while batch := taken(made, most):
        assert len(batch) <= most
        found += batch
        assert [feed.next for feed in made.feeds] == [
            sum(topic == feed.tp.topic for topic, _ in found) for feed in made.feeds
        ]
    for name, times in (("alerts", alerts), ("events", events)):
        assert [offset for topic, offset in found if topic == name] == list(range(len(times)))


def test_an_alert_waits_for_answers_that_may_still_come() -> None:
    """While the other input may have earlier records, one waits for it; after some seconds it goes on without."""
    made = unit([1, 9], [2])
    assert taken(made, drained=False) == [("alerts", 0), ("events", 0)]
    assert taken(made, drained=False, now=WAIT_SECONDS - 0.1) == []
    assert made.waiting is not None
    assert taken(made, drained=False, now=WAIT_SECONDS) == [("alerts", 1)]
    assert made.waiting is None


def test_those_behind_it_do_not_wait_as_long_again() -> None:
    """An input that is away does not hold the other one up once in each turn, however many records there are."""
    made = unit([1, 2, 3], [])
    assert taken(made, 1, drained=False) == []
    assert taken(made, 1, drained=False, now=WAIT_SECONDS) == [("alerts", 0)]
    assert taken(made, 1, drained=False, now=WAIT_SECONDS) == [("alerts", 1)]
    assert taken(made, 1, now=WAIT_SECONDS) == [("alerts", 2)]
    made.alerts.fetched(unit([4], []).alerts.queue, 4)
    assert taken(made, drained=False, now=WAIT_SECONDS) == [], "once it was there, it is waited for again"


def test_it_has_caught_up_when_both_inputs_have() -> None:
    """What was there when it was taken is answered, in both inputs."""
    made = unit([1], [])
    made.alerts.end = made.events.end = 1
    assert not made.caught_up
    taken(made)
    assert not made.caught_up, "the events' end is not reached"
    made.events.fetched([], 1)
    assert made.caught_up
