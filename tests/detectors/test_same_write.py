"""Same write: one edit made again and again, accepted or failing, each limit from both sides."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from detectors import Limits, SessionState, limits_from, observe
from detectors.layers import InvalidLimits
from detectors.limits import MAX_EDITS
from schemas.common import ErrorInfo
from schemas.testing import at, session_event, tool_call
from tests.detectors.traces import numbered

NOT_FOUND = "The text to replace was not found in the file"


def append(n, **fields):
    """The same row appended to a table, which grows with each."""
    arguments = {"path": "data/wards.csv", "mode": "append", "content": "North,412,open\n"}
    return tool_call(n, "write_file", arguments, f"data/wards.csv now has {n + 40} rows", **fields)


def change(n, path="src/ward.py", new="beds = 12", old="beds = 10", **fields):
    """An edit of a file, accepted."""
    arguments = {"file_path": path, "old_string": old, "new_string": new}
    return tool_call(n, "Edit", arguments, **{"result": f"{path} is updated, revision {n}", **fields})


def refused(n, **fields):
    """The same edit of a file, refused."""
    return change(n, **{"result": NOT_FOUND, "error": ErrorInfo(message=NOT_FOUND), "status": "error", **fields})


def look(n, path="src/ward.py"):
    """A read that brings lines not seen before."""
    return tool_call(n, "Read", {"file_path": path, "offset": 10 * n + 1, "limit": 10}, f"{n}: def ward_{n}(): ...")


def found(alerts):
    """Level, limit and position of each of the detector's alerts."""
    return [(alert.level, alert.limits[0].name, alert.seq) for alert in alerts if alert.detector == "same_write"]


def at_positions(make, positions, other=look):
    """One call at these positions, the other ones between."""
    return [make(n) if n in positions else other(n) for n in range(max(positions) + 1)]


WARN = ("warn", "same_write.warn", 2)
END = ("terminate", "same_write.terminate", 5)
AGAIN = ("terminate", "same_write.terminate", 11)


@pytest.mark.parametrize(
    ("count", "expected"),
    [(2, []), (3, [WARN]), (5, [WARN]), (6, [WARN, END]), (11, [WARN, END]), (12, [WARN, END, AGAIN])],
)
def test_a_growing_file_warns_at_three_and_terminates_at_six(play, count, expected):
    """Each append is accepted and each result differs: only the write is equal."""
    alerts = play([append(n) for n in range(count)])
    assert found(alerts) == expected
    assert {alert.detector for alert in alerts} <= {"same_write"}


@pytest.mark.parametrize(
    ("count", "expected"),
    [(3, []), (4, ["warn"]), (7, ["warn"]), (8, ["warn", "warn"]), (9, ["warn", "warn", "terminate"])],
)
def test_set_limits_are_the_ones_that_count(play, count, expected):
    """Four and nine instead of three and six, from both sides."""
    limits = {"same_write": {"warn": 4, "terminate": 9}}
    assert [level for level, _, _ in found(play([append(n) for n in range(count)], limits))] == expected


@pytest.mark.parametrize("terminate", [MAX_EDITS, MAX_EDITS + 1, 30])
def test_a_limit_that_is_accepted_can_be_reached(play, terminate):
    """A limit beyond what is remembered is either refused when it is set, or reached when the time comes."""
    try:
        limits = limits_from([("test", {"same_write.terminate": terminate})])
    except InvalidLimits:
        return
    assert [level for level, _, _ in found(play([append(n) for n in range(terminate)], limits))][-1] == "terminate"


def test_without_flags_an_accepted_write_is_known_from_its_answer(play):
    """Harnesses that flag nothing still say that the file has grown."""
    assert found(play([append(n, status=None) for n in range(2)])) == []
    assert found(play([append(n, status=None) for n in range(3)])) == [WARN]


def test_the_alert_says_what_was_written_how_often_and_why_it_is_one(play):
    """A person can check it without the recording."""
    (alert,) = play([append(n) for n in range(3)])
    assert (alert.count, alert.first_seen, alert.evidence.weak) == (3, at(0), False)
    assert "the same edit 3 times" in alert.reasoning
    assert "same_write.warn = 3, set by default" in alert.reasoning
    assert "write_file(path=data/wards.csv" in alert.reasoning
    assert alert.evidence.event_ids == ("s1-0", "s1-1", "s1-2")


@pytest.mark.parametrize(
    ("positions", "expected"),
    [
        ({0, 2, 4, 6}, []),
        ({0, 2, 4, 6, 8}, [("warn", "same_write.window_warn", 8)]),
        ({0, 3, 6, 9, 11}, [("warn", "same_write.window_warn", 11)]),
        ({0, 3, 6, 9, 12}, []),
    ],
    ids=["four", "five", "five within twelve", "five within thirteen"],
)
def test_other_calls_between_do_not_excuse_five_of_twelve(play, positions, expected):
    """Reading something new after each append blinds a row, not the window."""
    assert found(play(at_positions(append, positions))) == expected


@pytest.mark.parametrize(("window", "count"), [(8, 0), (9, 1)])
def test_the_window_is_a_setting(play, window, count):
    """Five writes that span nine calls are seen by a window of nine, not of eight."""
    events = at_positions(append, {0, 2, 4, 6, 8})
    assert len(found(play(events, {"same_write.window": window}))) == count


@pytest.mark.parametrize(("positions", "count"), [({0, 3, 6}, 0), ({0, 3, 6, 9}, 1)])
def test_how_many_within_the_window_is_a_setting(play, positions, count):
    """Four instead of five, from both sides."""
    assert len(found(play(at_positions(append, positions), {"same_write.window_warn": 4}))) == count


def test_the_window_never_terminates(play):
    """Twelve appends, each with another look between, are warned about only."""
    events = at_positions(append, set(range(0, 24, 2)))
    assert {level for level, _, _ in found(play(events))} == {"warn"}


def test_a_refusal_between_ends_the_row(play):
    """Accepted, refused, accepted: the file was another one in between."""
    assert found(play([change(0), refused(1), change(2)])) == []
    assert found(play([change(0), change(1), change(2)])) == [WARN]


def test_another_edit_between_ends_the_row(play):
    """Two equal appends, another edit, two more: each pair may be meant."""
    events = [append(0), append(1), change(2), append(3), append(4)]
    assert found(play(events)) == []
    assert found(play([*events, append(5)])) == [("warn", "same_write.warn", 5)]


@pytest.mark.parametrize(
    "between",
    [
        tool_call(2, "think", {"thought": "the row may be missing"}, "noted"),
        tool_call(2, "todo_write", {"todos": ["append the row"]}, "ok"),
        tool_call(2, "write_file", {"path": "data/wards.csv", "content": "x"}, UNSET, status=None),
        tool_call(2, "wait", {"seconds": 2}, "waited"),
    ],
    ids=["thought", "plan", "unknown outcome", "poll"],
)
def test_what_neither_writes_nor_looks_does_not_excuse_a_row(play, between):
    """Talk, plans, waiting and an edit whose outcome nobody knows neither add nor clear."""
    events = [append(0), append(1), between]
    assert found(play(events)) == []
    assert found(play([*events, append(3)])) == [("warn", "same_write.warn", 3)]


@pytest.mark.parametrize(
    ("path", "texts"),
    [
        ("ward.py", ["beds = 12  # fixes the count", "beds = 12  # now, see the plan", "beds  =  12\n\n# try again"]),
        ("ward.ts", ["let beds = 12; // first", "let beds = 12; // second", "/* third */ let beds = 12;"]),
        ("ward.sql", ["SELECT beds -- as asked", "SELECT beds -- once more", "SELECT  beds"]),
        ("ward.html", ["<p>12</p><!-- one -->", "<!-- two --><p>12</p>", "<p>12</p>\n"]),
        ("ward", ["beds = 12; // first", "beds = 12; // second", "/* third */ beds = 12;"]),
    ],
    ids=["hash", "slashes", "dashes", "markup", "unknown"],
)
def test_reworded_comments_and_blanks_do_not_make_another_patch(play, path, texts):
    """Agents resubmit one fix with a reworded comment for hours; the code put down is the same."""
    events = [change(n, path, text) for n, text in enumerate(texts)]
    assert found(play(events[:2])) == []
    assert found(play(events)) == [WARN]


@pytest.mark.parametrize(
    ("path", "texts"),
    [
        ("ward.py", ["beds = 12", "beds = 13", "beds = 14"]),
        ("ward.js", ["url = 'https://a.example/1'", "url = 'https://a.example/2'", "url = 'https://a.example/3'"]),
        ("ward.css", ["color: #aaa", "color: #bbb", "color: #ccc"]),
        ("run.sh", ["#!/bin/sh", "#!/bin/bash", "#!/bin/zsh"]),
        ("ward.md", ["# North", "# South", "# East"]),
        ("ward.py", ["part = total // 2", "part = total // 3", "part = total // 4"]),
    ],
    ids=["numbers", "addresses", "colours", "interpreters", "headings", "divisions"],
)
def test_what_only_looks_like_a_comment_is_part_of_the_patch(play, path, texts):
    """Three values put down in one place are three edits."""
    assert play([change(n, path, text) for n, text in enumerate(texts)]) == []


def test_what_describes_the_edit_to_people_does_not_make_another_patch(play):
    """Label arguments are left out as everywhere."""
    events = [
        tool_call(n, "replace", {"path": "a.go", "new": "x := 1", "explanation": f"reason {n}"}, f"revision {n}")
        for n in range(3)
    ]
    assert found(play(events)) == [WARN]


def test_the_place_is_part_of_the_patch(play):
    """One licence line put into many files is work."""
    assert play([change(n, path=f"src/module{n}.py", old="", new="LICENCE = 'own'") for n in range(30)]) == []


# The same edit failing each time; that equal calls fail is the error streak's matter as well

NO_SAME_CALL = {"error_streak.same_call_warn": 90, "error_streak.same_call_terminate": 90}


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (2, []),
        (3, [("warn", "same_write.warn", 4)]),
        (5, [("warn", "same_write.warn", 4)]),
        (6, [("warn", "same_write.warn", 4), ("terminate", "same_write.terminate", 10)]),
    ],
)
def test_the_same_refused_edit_counts_whatever_was_read_between(play, count, expected):
    """A refusal does not go away by reading on: three warn, six end it."""
    assert found(play(at_positions(refused, set(range(0, 2 * count, 2))), NO_SAME_CALL)) == expected


def test_a_refused_edit_with_a_reworded_comment_is_the_same(play):
    """Equal-call rules do not see it: the arguments differ."""
    events = [refused(n, new=f"beds = 12  # attempt {n}") for n in range(6)]
    assert [level for level, _, _ in found(play(events))] == ["warn", "terminate"]


@pytest.mark.parametrize(("path", "count"), [("src/ward.py", 0), ("src/clinic.py", 1)])
def test_only_an_accepted_edit_of_the_same_target_refutes_the_refusals(play, path, count):
    """What was refused may fit after the file has changed; that another file has does not matter."""
    events = [refused(0), look(1), refused(2), change(3, path=path, new="rooms = 4", old="rooms = 3"), refused(4)]
    assert len(found(play(events))) == count


def test_an_edit_whose_check_fails_each_time_counts_though_it_was_flagged_as_a_success(play):
    """The tool ran, and said that the result does not compile: the flag says no more than that."""
    result = "Edit saved. Check of the file: 1 error\nsrc/ward.py: error: unexpected indent"
    events = at_positions(lambda n: change(n, result=result, status="ok"), {0, 2, 4, 6, 8, 10})
    alerts = play(events, NO_SAME_CALL)
    assert found(alerts)[0] == ("warn", "same_write.warn", 4)
    assert all(alert.evidence.weak for alert in alerts if alert.detector == "same_write")
    assert "terminate" not in {level for level, _, _ in found(alerts)}


def test_refusals_read_from_text_alone_are_weak_and_do_not_terminate(play):
    """Without flags the answer tells, as weaker evidence."""
    events = [refused(n, new=f"beds = 12  # attempt {n}", status=None, error=None) for n in range(12)]
    alerts = play(events)
    assert found(alerts)[0] == WARN
    assert {alert.level for alert in alerts} == {"warn"}
    assert all(alert.evidence.weak for alert in alerts)


@pytest.mark.parametrize("status", ["ok", None])
def test_edits_of_unknown_outcome_do_not_count(play, status):
    """Without a flag and a result nobody knows whether the edit was accepted; with the flag it was."""
    events = [change(n, result=UNSET, status=status) for n in range(3)]
    assert len(found(play(events))) == (1 if status else 0)


def test_a_message_of_the_user_clears(play):
    """A person may have asked for one more."""
    events = [append(0), append(1), session_event(2, "user_message"), append(3), append(4)]
    assert found(play(events)) == []
    assert found(play([*events, append(5)])) == [("warn", "same_write.warn", 4)]


# Agents whose only tool is a shell


def shell(n, command, result, status=None):
    """A call of an agent whose only tool is a shell."""
    return tool_call(n, "bash", {"command": command}, result, status=status)


@pytest.mark.parametrize("status", ["ok", None])
@pytest.mark.parametrize(
    "command",
    [
        "cat >> data/wards.csv <<'EOF'\nNorth,412,open\nEOF\nwc -l data/wards.csv",
        "echo 'North,412,open' >> data/wards.csv && tail -n 3 data/wards.csv | nl",
        "printf 'North,412,open\\n' | tee -a data/wards.csv >/dev/null; wc -l < data/wards.csv",
    ],
)
def test_a_file_that_a_shell_grows_is_seen(play, command, status):
    """The same append from a shell, whose answer shows the growth, is warned about within a dozen calls."""
    alerts = play([shell(n, command, f"{n + 41} data/wards.csv", status) for n in range(12)])
    assert "warn" in {alert.level for alert in alerts}


# Healthy practice


@pytest.mark.parametrize("command", ["git commit -am 'fix cart'", "kubectl apply -f deploy.yaml"])
def test_a_command_that_is_refused_for_another_reason_after_each_edit_is_healthy(play, command):
    """Eight refusals, each mended somewhere else; eight with nothing edited between are a loop."""
    refused = [shell(0, command, f"error: hook {name} found a fault", "error") for name in "abcdefgh"]
    mended = [
        call
        for n, refusal in enumerate(refused)
        for call in (refusal, tool_call(0, "Edit", {"file_path": f"part{n}.py", "old": "a", "new": f"b{n}"}, "ok"))
    ]
    assert [alert for alert in play(numbered(mended)) if alert.detector == "same_write"] == []
    assert "terminate" in {alert.level for alert in play(numbered(refused))}


def test_scaffolding_many_different_files_is_healthy(play):
    """Seventy-five files written one after the other, equal acknowledgements and all."""
    events = [
        tool_call(n, "Write", {"file_path": f"app/part{n}.ts", "content": f"export const n = {n}"}, "File written")
        for n in range(75)
    ]
    assert {alert.level for alert in play(events)} <= {"notice"}


@pytest.mark.parametrize("laps", [1, 2])
def test_create_exists_remove_create_is_healthy(play, laps):
    """Creating a thing, finding that it is there already, removing it and creating it anew."""
    events = []
    for n in range(0, 4 * laps, 4):
        there = "bucket reports-eu already exists"
        create = {"name": "reports-eu", "region": "eu"}
        events += [
            tool_call(n, "create_bucket", create, there, error=ErrorInfo(code=409, message=there)),
            tool_call(n + 1, "list_buckets", {"prefix": "reports"}, f"reports-eu, {n} objects"),
            tool_call(n + 2, "delete_bucket", {"name": "reports-eu"}, f"deleted, revision {n}"),
            tool_call(n + 3, "create_bucket", create, f"created, revision {n}"),
        ]
    assert play(events) == []


def test_checkout_test_restore_test_is_healthy(play):
    """Whether a failure was there before is found out by going back, testing, and coming forward again."""
    events = []
    for n in range(0, 12, 4):
        events += [
            shell(n, "git stash", "Saved working directory and index state", "ok"),
            shell(n + 1, f"pytest tests/test_ward{n}.py", "3 passed in 0.1s", "ok"),
            shell(n + 2, "git stash pop", "Dropped refs/stash@{0}", "ok"),
            shell(n + 3, f"pytest tests/test_ward{n}.py", f"1 failed, {n} passed: test_beds", "ok"),
        ]
    assert play(events) == []


def test_an_edit_that_is_taken_back_and_made_again_once_or_twice_is_healthy(play):
    """Trying a value, going back and trying it again with other changes around it."""
    events = []
    for n in range(0, 15, 5):
        events += [
            change(n, new="beds = 12", old="beds = 10"),
            shell(n + 1, "make test", f"{n} of 40 wards differ", "ok"),
            change(n + 2, new="beds = 10", old="beds = 12"),
            change(n + 3, path="src/plan.py", old="", new=f"step_{n}()"),
            shell(n + 4, "make test", f"{n + 1} of 40 wards differ", "ok"),
        ]
    assert play(events) == []


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(["ward", "clinic", "plan", "roster"]), max_size=30))
def test_three_in_a_row_and_five_of_twelve_are_all_there_is(paths):
    """Accepted edits are a loop exactly when there are three equal ones in a row, or five within twelve calls."""
    loops = any(
        paths[n - 2 : n + 1].count(path) == 3 or paths[max(0, n - 11) : n + 1].count(path) == 5
        for n, path in enumerate(paths)
    )
    state = SessionState()
    events = [change(n, path=f"src/{path}.py") for n, path in enumerate(paths)]
    assert bool(found(alert for event in events for alert in observe(state, event, Limits()))) is loops
