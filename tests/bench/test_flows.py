"""What is told of an event's consequences is what the fold brings about."""

from __future__ import annotations

from tests.bench.engines.load import Load
from tests.bench.flows import measure

EVENTS = 1_000


def test_each_event_writes_a_state_and_what_follows() -> None:
    """Each writes one session's state; escalation reads alerts and what is forwarded; loops bring more about."""
    looping, healthy = (measure(Load(sessions=20, looping=share).events(EVENTS)) for share in (1.0, 0.0))
    for found in (looping, healthy):
        assert found["events"] == EVENTS
        assert found["sessions-changelog_records_in_1000_events"] == 1_000
        assert found["all_bytes_written_to_one_that_came"] >= found["sessions-changelog_bytes_to_one_that_came"] > 0
    assert looping["alerts_records_in_1000_events"] > 0
    assert looping["ladder_p99"] >= looping["ladder_median"] > 0
    read = looping["alerts_records_in_1000_events"] + looping["task-events_records_in_1000_events"]
    assert abs(looping["escalation_reads_in_1000_events"] - read) < 0.2
    assert looping["alerts_records_in_1000_events"] > 2 * healthy.get("alerts_records_in_1000_events", 0)
