"""The neutral form: every field, sessions that are interleaved, and lines that do not keep to the form."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from msgspec import UNSET


def call(session, seq, **more):
    """Give a line of the neutral form."""
    return {"session_id": session, "seq": seq, "tool": "t", "args": {"n": seq}, "result": "r", "error": False, **more}


def test_every_field(sessions, calls, kinds):
    """Status, cut results, times of all forms and events of the session itself come through."""
    alpha, _ = sessions("neutral.jsonl")
    first, second, cut, _ = calls(alpha)
    assert (first.tool, first.arguments, first.result, first.status) == ("bash", {"command": "ls"}, "a\nb", "ok")
    assert (second.status, second.call_id, second.duration_ms) == ("error", "c-1", 12.5)
    assert (cut.result, cut.result_length, cut.result_digest) == ("begin", 90000, "ab12")
    assert [event.occurred_at.second for event in alpha.events] == [0, 1, 2, 3, 4, 5]
    assert kinds(alpha) == ["user_message", "ended"]


def test_empty_and_unrecorded_results(sessions, calls):
    """An empty result without a flag is unrecorded where success is told elsewhere, and empty where it never is."""
    alpha, beta = sessions("neutral.jsonl")
    assert calls(alpha)[3].result is UNSET
    assert calls(beta)[0].result == ""
    assert calls(beta)[1].result is UNSET
    assert calls(beta)[1].arguments is UNSET


def test_a_session_comes_when_its_last_line_does(lines, read_all):
    """Interleaved sessions stay whole, and one that has ended is given before the file has."""
    rows = [call("a", 0), call("b", 0), call("a", 1), call("c", 0), call("b", 1)]
    found = read_all(lines(*rows))
    assert [(session.session_id, session.calls) for session in found] == [("a", 2), ("c", 1), ("b", 2)]


def test_positions_follow_seq(lines, read_all, calls):
    """Calls are put in the order of `seq`, and the same one given twice counts once."""
    (session,) = read_all(lines(call("a", 2), call("a", 0), call("a", 1), call("a", 1)))
    assert [found.arguments["n"] for found in calls(session)] == [0, 1, 2]
    assert [found.event_id for found in calls(session)] == ["a#0", "a#1", "a#2"]


def test_repeats_are_counted(lines, read_all):
    """What is left out since its `seq` was there is counted, and apart what is not equal to what was there."""
    first, second = read_all(
        lines(call("a", 0), call("a", 0), call("b", 0), call("a", 1), call("a", 0, result="s"), call("b", 1))
    )
    assert (first.calls, first.repeats, first.differing) == (2, 2, 1)
    assert (second.calls, second.repeats, second.differing) == (2, 0, 0)


def test_without_times_a_synthetic_clock_runs(lines, read_all):
    """A recording without times begins in 2000 and goes on by the second."""
    (session,) = read_all(lines(call("a", 0), call("a", 1)))
    assert not session.timed
    start = datetime(2000, 1, 1, tzinfo=UTC)
    assert [event.occurred_at for event in session.events] == [start, start + timedelta(seconds=1)]


def test_missing_times_take_their_neighbours(lines, read_all):
    """Where some calls have a time, the others take the one before, and the first ones the first there is."""
    (session,) = read_all(lines(call("a", 0), call("a", 1, ts="2026-01-01T00:00:05Z"), call("a", 2)))
    assert [event.occurred_at.second for event in session.events] == [5, 5, 5]
    assert session.timed


def test_the_first_second_is_a_time(lines, read_all):
    """Clocks of simulations begin at 0."""
    (session,) = read_all(lines(call("a", 0, ts=0), call("a", 1, ts=1.5)))
    start = datetime(1970, 1, 1, tzinfo=UTC)
    assert [event.occurred_at for event in session.events] == [start, start + timedelta(seconds=1.5)]
    assert session.timed


def test_milliseconds_are_refused(lines, found_in):
    """A number that is too great for seconds is told with the remedy."""
    found = found_in(lines(call("a", 0, ts=1767225600), call("a", 1, ts=1767225600000), call("a", 2, ts=10**11)))
    assert [fault.line for fault in found.unreadable] == [2, 3]
    assert "`ts` is in milliseconds (write seconds since 1970)" in found.unreadable[0].reason


def test_lines_that_do_not_keep_to_the_form_are_named(lines, found_in):
    """Each faulty line is an error with number, field and reason; the good ones count."""
    found = found_in(
        lines(
            call("a", 0),
            {"session_id": "a", "seq": 1, "args": {}},
            call("a", 2, error="no"),
            call("a", 3, ts="yesterday"),
            "{broken",
            call("a", -1),
            call("a", 4),
        )
    )
    assert [fault.line for fault in found.unreadable] == [2, 3, 4, 5, 6]
    assert "`tool` is missing" in found.unreadable[0].reason
    assert "$.error" in found.unreadable[1].reason
    assert "`ts` is no time" in found.unreadable[2].reason
    assert [session.calls for session in found.sessions] == [2]


def test_the_end_of_a_broken_session_is_still_its_end(lines, found_in):
    """A session whose last line is broken is not lost and not held back for ever."""
    found = found_in(lines(call("a", 0), call("a", 1, error="no"), call("b", 0)))
    assert [(session.session_id, session.calls) for session in found.sessions] == [("a", 1), ("b", 1)]
