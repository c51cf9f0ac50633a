"""What counts as found, in time, a false alarm and a change: on what was heard, written by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.backtest import FirstAlert, Heard, Label, changes, gates, match, score
from streams.backtest.plot import bins, histogram
from streams.backtest.words import change_lines, detector_lines, entry_lines, source_lines, total_lines

ONSET = 20


def alert(level, seq, detector="identical"):
    """Give an alert."""
    return FirstAlert(level, detector, seq, f"{detector} says {level}")


def heard(session, *alerts, file="runs/one.jsonl"):
    """Give what was heard of a session, under each configuration if lists are given."""
    lists = alerts if alerts and isinstance(alerts[0], list) else (list(alerts),)
    return Heard(session, file, 100, tuple(tuple(each) for each in lists))


def loop(session, **fields):
    """Label a loop."""
    return Label(session, "loop", **{"first_loop_seq": ONSET} | fields)


def scored(all_heard, *labels, configuration=0):
    """Score what was heard."""
    cases = match(all_heard, {label.session_id: label for label in labels})
    return score(cases.cases, configuration, "defaults")


@pytest.mark.parametrize(
    ("alerts", "found", "in_time", "delay"),
    [
        ([alert("warn", ONSET + 5)], 1, 1, 5),
        ([alert("warn", ONSET + 6)], 1, 0, 6),
        ([alert("terminate", ONSET + 5)], 1, 1, 5),
        ([alert("warn", 0), alert("terminate", 90)], 1, 1, -ONSET),
        ([alert("warn", 99)], 1, 0, 79),
        ([alert("notice", ONSET)], 0, 0, None),
        ([alert("recovered", ONSET)], 0, 0, None),
        ([alert("notice", ONSET), alert("warn", ONSET + 6)], 1, 0, 6),
        ([], 0, 0, None),
    ],
)
def test_a_loop_is_found_by_a_warn_at_any_call_and_in_time_within_five(alerts, found, in_time, delay):
    """The first warn or terminate decides, five calls after the onset at the latest; notices do not count."""
    result = scored([heard("s", *alerts)], loop("s"))
    assert (result.groups["loop"].warned, result.in_time) == (found, in_time)
    assert [(entry.delay, entry.in_time) for entry in result.loops] == [(delay, bool(in_time))]


def test_groups_are_counted_apart():
    """Loops, easy and hard healthy sessions and those without a label are told apart; ambiguous ones are left out."""
    both = [alert("warn", 3), alert("terminate", 5)]
    sessions = [heard(name, *both) for name in ("l", "e", "h", "u", "a")]
    sessions += [heard("e2", alert("warn", 3)), heard("e3", alert("notice", 3)), heard("u2"), heard("no: hard")]
    labels = [
        loop("l"),
        Label("e", "healthy", why="it is hard: but not at the beginning"),
        Label("h", "healthy", why="hard: polls"),
        Label("a", "ambiguous"),
        Label("e2", "healthy"),
        Label("e3", "healthy"),
        Label("gone", "ambiguous"),
    ]
    cases = match([*sessions, heard("e"), heard("a")], {label.session_id: label for label in labels})
    result = score(cases.cases, 0, "defaults")
    found = {group: (t.sessions, t.noticed, t.warned, t.terminated) for group, t in result.groups.items()}
    assert found == {"loop": (1, 0, 1, 1), "easy": (3, 1, 2, 1), "hard": (1, 0, 1, 1), "unlabelled": (3, 0, 1, 1)}
    assert result.terminated == 2
    assert [entry.session_id for entry in result.false_alarms] == ["e", "h", "e2"]
    assert [entry.session_id for entry in result.unlabelled] == ["u"]
    assert (cases.ambiguous, cases.missing, cases.repeated) == (["a"], ["gone"], ["e", "a"])


def test_a_detector_is_credited_with_what_it_found_and_what_it_alone_found():
    """A row counts sessions in which the detector reached the level or a higher one; alone: no other one did."""
    sessions = [
        heard("both", alert("warn", ONSET, "a"), alert("terminate", ONSET + 8, "b")),
        heard("one", alert("notice", 1, "b"), alert("warn", ONSET + 2, "a"), alert("terminate", ONSET + 9, "a")),
        heard("quiet"),
        heard("easy", alert("terminate", 4, "b")),
        heard("hard", alert("warn", 4, "a")),
        heard("nobody", alert("warn", 4, "a")),
    ]
    labels = [loop("both"), loop("one"), loop("quiet"), Label("easy", "healthy"), Label("hard", "healthy", why="hard:")]
    rows = {
        (row.detector, row.level): (row.found, row.alone, row.easy, row.hard, row.unlabelled, row.delays.median)
        for row in scored(sessions, *labels).detectors
    }
    assert rows == {
        ("a", "warn"): (2, 1, 0, 1, 1, 1),
        ("a", "terminate"): (1, 1, 0, 0, 0, 9),
        ("b", "notice"): (2, 0, 1, 0, 0, -5.5),
        ("b", "terminate"): (1, 1, 1, 0, 0, 8),
    }


@pytest.mark.parametrize(("delays", "median", "p90"), [(range(10), 4.5, 8), (range(11), 5, 9), ([-7], -7, -7)])
def test_delays_are_summed_up(delays, median, p90):
    """The median is the middle one, or between two; nine tenths are no longer than the p90."""
    sessions = [heard(str(delay), alert("warn", ONSET + delay)) for delay in delays]
    result = scored(sessions, *(loop(str(delay)) for delay in delays)).delays
    assert (result.median, result.p90) == (median, p90)


def test_sources():
    """The label says where a session comes from, else the first part of its id, else its file's folder."""
    sessions = [
        heard("x/1", alert("warn", ONSET)),
        heard("x/2", alert("warn", ONSET, "a"), alert("warn", ONSET, "b")),
        heard("x/3"),
        heard("plain"),
        heard("/odd", file="runs/two.jsonl"),
    ]
    result = scored(sessions, loop("x/1", source="named"), loop("x/2"), loop("x/3"))
    rows = {
        row.source: (row.groups["loop"].warned, row.groups["loop"].sessions, row.found_by) for row in result.sources
    }
    assert rows == {
        "named": (1, 1, {"identical": 1}),
        "x": (1, 2, {"a": 1, "b": 1}),
        "runs": (0, 0, {}),
    }


@pytest.mark.parametrize(
    ("label", "before", "after", "what"),
    [
        (loop("s"), [], [alert("warn", 90)], "newly found"),
        (loop("s"), [alert("warn", ONSET)], [], "newly missed"),
        (loop("s"), [alert("warn", ONSET + 6)], [alert("warn", ONSET + 5)], "newly within 5"),
        (loop("s"), [alert("warn", ONSET + 5)], [alert("warn", ONSET + 6)], "no longer within 5"),
        (loop("s"), [alert("warn", ONSET + 5)], [alert("warn", ONSET + 4)], None),
        (Label("s", "healthy"), [], [alert("terminate", 1)], "new false alarm"),
        (Label("s", "healthy", why="hard:"), [alert("warn", 1)], [alert("notice", 1)], "false alarm gone"),
        (Label("s", "healthy"), [alert("warn", 1)], [alert("terminate", 1)], "newly terminated"),
        (Label("s", "healthy"), [alert("terminate", 1)], [alert("warn", 1)], "no longer terminated"),
        (None, [], [alert("warn", 1)], "newly warned"),
        (None, [alert("warn", 1)], [], "no longer warned"),
        (Label("s", "ambiguous"), [], [alert("warn", 1)], None),
    ],
)
def test_changes_between_two_configurations(label, before, after, what):
    """Each session that the second configuration changes is named once, by the gravest difference."""
    cases = match([heard("s", before, after)], {} if label is None else {"s": label}).cases
    found = changes(cases)
    assert [change.what for change in found] == ([] if what is None else [what])
    assert [line.split("  ")[1] for line in change_lines(found, unlabelled=True) if "first" not in line][:1] == (
        [] if what is None else ["s"]
    )
    assert bool(list(change_lines(found, unlabelled=False))) == (what is not None and label is not None)


@pytest.mark.parametrize(
    ("name", "figure"),
    [("min_found", 3), ("min_prompt", 2), ("max_warned_easy", 2), ("max_warned_hard", 1), ("max_terminated", 2)],
)
def test_each_gate_opens_at_its_bound_and_not_beyond(name, figure):
    """A figure that is as large as its bound passes; one worse does not, and what was not asked for is not judged."""
    sessions = [heard(f"l{n}", alert("warn", ONSET + 4 + n)) for n in range(3)]
    sessions += [heard("l3"), heard("e0", alert("terminate", 1)), heard("e1", alert("warn", 1)), heard("e2")]
    sessions += [heard("h0", alert("terminate", 1)), heard("u0", alert("terminate", 1))]
    labels = [loop(f"l{n}") for n in range(4)] + [Label(f"e{n}", "healthy") for n in range(3)]
    result = scored(sessions, *labels, Label("h0", "healthy", why="hard: x"))
    worse = figure + 1 if name.startswith("min_") else figure - 1
    (at,) = gates(result, {name: figure})
    (beyond,) = gates(result, {name: worse})
    assert (at.name, at.figure, at.passed, beyond.passed) == (name, figure, True, False)
    assert gates(result, {name: None}) == []


@st.composite
def recordings(draw):
    """Give sessions with alerts under two configurations, and labels of some of them."""
    alerts = st.lists(
        st.builds(
            alert,
            st.sampled_from(["notice", "warn", "terminate", "recovered"]),
            st.integers(0, 99),
            st.sampled_from("ab"),
        ),
        max_size=3,
    ).map(lambda each: sorted(each, key=lambda alert: alert.seq))
    names = draw(st.lists(st.sampled_from(["x/1", "x/2", "y/1", "y/2", "z"]), max_size=8))
    sessions = [heard(name, draw(alerts), draw(alerts)) for name in names]
    labels = {}
    for name in draw(st.sets(st.sampled_from(["x/1", "y/1", "y/2", "gone"]))):
        onset = draw(st.integers(0, 99))
        labels[name] = draw(
            st.sampled_from([loop(name, first_loop_seq=onset), Label(name, "healthy"), Label(name, "ambiguous")])
        )
    return sessions, labels


@pytest.mark.parametrize(("onset", "scored_loops", "misplaced"), [(99, ["s"], []), (100, [], ["s"])])
def test_a_loop_begins_at_a_call_that_there_is(onset, scored_loops, misplaced):
    """The last of a hundred calls is one, the next is none: such a label is kept out of the score."""
    cases = match([heard("s", alert("warn", 3)), heard("e")], {"s": loop("s", first_loop_seq=onset)})
    assert [case.session_id for case in cases.cases if case.group == "loop"] == scored_loops
    assert [case.session_id for case in cases.misplaced] == misplaced
    assert cases.incomplete == bool(misplaced)
    assert cases.missing == []


@given(recordings())
def test_nothing_is_lost_and_nothing_counts_twice(given_recordings):
    """Every session and label is accounted for once, sources sum to the totals, and the bins hold every loop."""
    sessions, labels = given_recordings
    cases = match(sessions, labels)
    assert len(cases.cases) + len(cases.ambiguous) + len(cases.repeated) == len(sessions)
    assert set(cases.missing) == labels.keys() - {each.session_id for each in sessions}
    scores = [score(cases.cases, place, str(place)) for place in range(2)]
    for each in scores:
        loops = each.groups["loop"]
        assert sum(tally.sessions for tally in each.groups.values()) == len(cases.cases)
        assert loops.terminated <= loops.warned <= loops.sessions == len(each.loops) == sum(histogram(each))
        assert each.in_time <= loops.warned
        assert all(row.alone <= row.found <= loops.sessions for row in each.detectors)
        for group, tally in each.groups.items():
            assert sum(row.groups[group].warned for row in each.sources) == tally.warned
        assert sum(row.in_time for row in each.sources) == each.in_time
    for of in (scores[:1], scores):
        text = "\n".join((*detector_lines(of), *source_lines(of), *total_lines(of, cases)))
        assert f"{of[0].groups['loop'].warned} of {of[0].groups['loop'].sessions}" in text


def test_what_to_read():
    """Misses come with the label's reason, late ones and false alarms with the first alerts' calls and reasonings."""
    sessions = [
        heard("m", alert("notice", 7)),
        heard("l", alert("warn", ONSET + 9), alert("terminate", ONSET + 12)),
        heard("e", alert("warn", 4)),
        heard("u", alert("warn", 4)),
        heard("in time", alert("warn", ONSET)),
    ]
    labels = [loop("m", pattern="cycle", why="goes round\x1b"), loop("l"), Label("e", "healthy"), loop("in time")]
    result = scored(sessions, *labels)
    text = "\n".join(entry_lines(result, unlabelled=False))
    assert "MISSED" in text
    assert "m  (loop from #20, cycle)" in text
    assert "call #7" in text
    assert "goes round\n" in text
    assert "l  (loop from #20, found 9 calls later)" in text
    assert "call #29" in text
    assert "call #32" in text
    assert "e  (healthy, easy)" in text
    assert "identical says warn" in text
    assert "UNLABELLED" not in text
    assert "in time" not in text
    assert "u  (unlabelled)" in "\n".join(entry_lines(result, unlabelled=True))


def test_bins_end_where_in_time_ends():
    """No bin mixes loops found in time with late ones, and the ends take what lies beyond."""
    delays = [-20, -21, -19, -4, 0, 1, 5, 6, 46, 50, 51, 79]
    sessions = [heard(str(delay), alert("warn", 30 + delay)) for delay in delays] + [heard("missed")]
    labels = [loop(each.session_id, first_loop_seq=30) for each in sessions]
    filled = {name: count for name, count in zip(bins(), histogram(scored(sessions, *labels)), strict=True) if count}
    assert filled == {
        "up to -20": 2, "-19 to -15": 1, "-4 to 0": 2, "1 to 5": 2, "6 to 10": 1, "46 to 50": 2, "over 50": 2,
        "missed": 1,
    }  # fmt: skip
