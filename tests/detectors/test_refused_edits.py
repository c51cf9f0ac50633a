"""Refused edits: edits of one target refused for one reason, the text new each time, each limit from both sides."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from detectors import Limits, SessionState, observe
from detectors.call import read_call
from detectors.facts import Mark
from schemas.common import ErrorInfo
from schemas.testing import at, session_event, tool_call

NO_MATCH = "old_string was not found in the file"
SYNTAX = "the edited file would not parse: unexpected indent"
READ_ONLY = "this region is protected by the code owners"
TOO_MANY = "old_string is ambiguous, several places contain it"


def patch(n, path="lib/tariff.rb", **fields):
    """An edit with a text of its own, accepted."""
    arguments = {"file_path": path, "old_string": f"rate_{n} = 0", "new_string": f"rate_{n} = {n}"}
    return tool_call(n, "Edit", arguments, **{"result": f"{path}: revision {n}", **fields})


def refusal(n, reason=NO_MATCH, path="lib/tariff.rb", **fields):
    """An edit with a text of its own, refused for this reason."""
    return patch(n, path, **{"result": reason, "error": ErrorInfo(message=reason), "status": "error", **fields})


def look(n, path="lib/tariff.rb"):
    """A read that brings lines not seen before."""
    return tool_call(n, "Read", {"file_path": path, "offset": 20 * n + 1, "limit": 20}, f"{n}: def rate_{n}; end")


def reread(makes, look=look):
    """Calls of these makers, each after a look at lines not seen before; the n-th is call 2n + 1."""
    return [event for n, make in enumerate(makes) for event in (look(2 * n), make(2 * n + 1))]


def refusals(count, reasons=(NO_MATCH,), **fields):
    """So many refused edits with a look before each, for these reasons in turn."""
    return reread([lambda n, k=k: refusal(n, reasons[k % len(reasons)], **fields) for k in range(count)])


def found(alerts):
    """Level, limit and position of each of the detector's alerts."""
    return [(alert.level, alert.limits[0].name, alert.seq) for alert in alerts if alert.detector == "refused_edits"]


WARN = ("warn", "refused_edits.warn", 9)
END = ("terminate", "refused_edits.terminate", 19)


@pytest.mark.parametrize(
    ("count", "expected"), [(4, []), (5, [WARN]), (9, [WARN]), (10, [WARN, END]), (14, [WARN, END])]
)
def test_warns_at_five_and_terminates_at_ten(play, count, expected):
    """Reading between refusals does not excuse them; the default limits are reached exactly."""
    alerts = play(refusals(count))
    assert found(alerts) == expected
    assert {alert.detector for alert in alerts if alert.level != "notice"} <= {"refused_edits"}


@pytest.mark.parametrize(
    ("count", "levels"),
    [(2, []), (3, ["warn"]), (5, ["warn"]), (6, ["warn", "warn"]), (7, ["warn", "warn", "terminate"])],
)
def test_set_limits_are_the_ones_that_count(play, count, levels):
    """Three and seven instead of five and ten, from both sides."""
    limits = {"refused_edits": {"warn": 3, "terminate": 7}}
    assert [level for level, _, _ in found(play(refusals(count), limits))] == levels


@pytest.mark.parametrize(("window", "count"), [(10, 1), (9, 0)])
def test_the_window_is_of_edits_and_a_setting(play, window, count):
    """Five refusals among ten edits are seen in a window of ten edits, not of nine."""
    makes = []
    for _ in range(5):
        makes += [refusal, lambda n: patch(n, f"lib/other{n}.rb")]
    limits = {"refused_edits": {"window": window, "terminate": 9}}
    assert len(found(play(reread(makes[:-1]), limits))) == 1
    last = [refusal, *[lambda n: patch(n, f"lib/other{n}.rb")] * 5, refusal, refusal, refusal, refusal]
    assert len(found(play(reread(last), limits))) == count


def test_the_alert_says_how_many_of_what_and_why(play):
    """A person can check it without the recording."""
    (alert,) = [alert for alert in play(refusals(5)) if alert.detector == "refused_edits"]
    assert (alert.count, alert.first_seen, alert.evidence.weak) == (5, at(1), False)
    assert alert.evidence.error == NO_MATCH
    assert "Edit(file_path=lib/tariff.rb" in alert.reasoning
    assert "refused_edits.warn = 5, set by default" in alert.reasoning


@pytest.mark.parametrize(("path", "count"), [("lib/tariff.rb", 0), ("lib/invoice.rb", 1)])
def test_an_accepted_edit_clears_its_own_target_only(play, path, count):
    """Four refusals, an accepted edit, a fifth refusal: what was accepted elsewhere does not help here."""
    makes = [refusal, refusal, refusal, refusal, lambda n: patch(n, path), refusal]
    assert len(found(play(reread(makes)))) == count


def test_refusals_of_different_targets_do_not_add_up(play):
    """Four refusals of each of three files, one after the other."""
    makes = [lambda n, k=k: refusal(n, path=f"lib/part{k % 3}.rb") for k in range(12)]
    assert found(play(reread(makes[:10]))) == []


@pytest.mark.parametrize(
    ("reasons", "count"),
    [
        ((NO_MATCH, SYNTAX, NO_MATCH, SYNTAX, NO_MATCH), 1),
        ((NO_MATCH, NO_MATCH, NO_MATCH, NO_MATCH, SYNTAX), 1),
        ((NO_MATCH, SYNTAX, READ_ONLY, NO_MATCH, SYNTAX), 0),
        ((NO_MATCH, SYNTAX, READ_ONLY, NO_MATCH, SYNTAX, NO_MATCH), 1),
        ((NO_MATCH, SYNTAX, READ_ONLY, TOO_MANY, NO_MATCH, SYNTAX), 0),
    ],
    ids=["ABABA", "AAAAB", "ABCAB", "ABCABA", "ABCDAB"],
)
def test_two_reasons_in_turn_are_one(play, reasons, count):
    """The latest reason and the most frequent other one count together, a third and a fourth do not."""
    assert len(found(play(refusals(len(reasons), reasons)))) == count


def test_what_the_refusal_quotes_does_not_make_another_reason(play):
    """The answer repeats the edit's own text, another one each time."""
    makes = [
        lambda n: refusal(n, f"Could not find 'rate_{n} = 0' (looked at {n + 3} lines of lib/tariff.rb)")
        for _ in range(5)
    ]
    assert found(play(reread(makes))) == [WARN]


@pytest.mark.parametrize(
    "between",
    [
        lambda n: refusal(n, "Service Unavailable", error=ErrorInfo(code=503, message="Service Unavailable")),
        lambda n: tool_call(n, "think", {"thought": "perhaps tabs"}, "noted"),
        lambda n: tool_call(n, "todo_write", {"todos": ["mend the tariff"]}, "ok"),
        lambda n: tool_call(n, "wait", {"seconds": 5}, "waited"),
        lambda n: patch(n, result=UNSET, status=None),
        lambda n: tool_call(n, "bash", {"command": "rake test"}, "14 runs, 0 failures"),
    ],
    ids=["outage", "thought", "plan", "poll", "unknown outcome", "green check"],
)
def test_what_neither_is_refused_nor_accepted_neither_adds_nor_clears(play, between):
    """Only an accepted edit of the target says that the text now fits."""
    makes = [refusal, refusal, refusal, refusal, between, between, between, between]
    assert found(play(reread(makes))) == []
    assert found(play(reread([*makes, refusal]))) == [("warn", "refused_edits.warn", 17)]


def test_outages_of_the_store_that_is_edited_are_no_refusals(play):
    """Ten records that could not be saved for want of a server: nothing is wrong with the edits."""
    error = ErrorInfo(code=503, message="Service Unavailable")
    makes = [lambda n: refusal(n, "Service Unavailable", path="rec/7", error=error) for _ in range(10)]
    assert found(play(reread(makes))) == []


def test_an_edit_that_is_saved_but_fails_its_check_counts(play):
    """The flag says that the tool ran; the linter behind it found the same fault each time."""
    makes = [
        lambda n: patch(
            n, result=f"Saved revision {n}.\nlib/tariff.rb:{n}: error: unexpected end-of-input", status="ok"
        )
        for _ in range(10)
    ]
    alerts = [alert for alert in play(reread(makes)) if alert.detector == "refused_edits"]
    assert found(alerts)[0] == WARN
    assert all(alert.evidence.weak for alert in alerts)
    assert {alert.level for alert in alerts} == {"warn"}


@pytest.mark.parametrize(
    "reason",
    [
        "No replacement was performed, old_str did not appear verbatim in lib/tariff.rb.",
        "Error: String to replace not found in file.",
        "Failed to apply the patch: hunk #1 does not match",
        '{"success": false, "message": "context lines do not match"}',
        "Invalid edit: SEARCH block must match exactly",
    ],
)
def test_refusals_are_read_from_texts_of_any_harness(play, reason):
    """Without flags the answer tells, as weaker evidence that terminates nothing alone."""
    makes = [lambda n: refusal(n, reason, error=None, status=None) for _ in range(14)]
    alerts = [alert for alert in play(reread(makes)) if alert.detector == "refused_edits"]
    assert found(alerts)[0] == WARN
    assert all(alert.evidence.weak for alert in alerts)
    assert {alert.level for alert in alerts} == {"warn"}


def test_a_message_of_the_user_clears(play):
    """What a person says may change everything."""
    events = [*refusals(4), session_event(8, "user_message"), look(9), refusal(10)]
    assert found(play(events)) == []


@pytest.mark.parametrize("tool", ["update_record", "str_replace_editor", "apply_diff", "mcp__wiki__editPage"])
def test_whatever_the_tools_are_called(play, tool):
    """Editors of other agents and records behind an API."""
    makes = [
        lambda n: tool_call(n, tool, {"path": "page/7", "text": f"draft {n}"}, READ_ONLY, error="LOCKED")
        for _ in range(5)
    ]
    assert found(play(reread(makes))) == [WARN]


# Agents whose only tool is a shell


def shell(n, command, result, status=None):
    """A call of an agent whose only tool is a shell."""
    return tool_call(n, "bash", {"command": command}, result, status=status)


PATCH = """apply_patch <<'EOF'
*** Begin Patch
*** Update File: lib/tariff.rb
-  rate_{n} = 0
+  rate_{n} = {n}
*** End Patch
EOF"""
DIFF = """cat > fix.diff <<'EOF'
--- a/lib/tariff.rb
+++ b/lib/tariff.rb
-  rate_{n} = 0
+  rate_{n} = {n}
EOF
git apply fix.diff"""
SCRIPT = """python3 - <<'EOF'
text = open('lib/tariff.rb').read()
assert 'rate_{n} = 0' in text, 'old text not found'
open('lib/tariff.rb', 'w').write(text.replace('rate_{n} = 0', 'rate_{n} = {n}'))
EOF"""


@pytest.mark.parametrize(
    ("command", "result", "count"),
    [
        (PATCH, "Error: failed to find the expected lines in lib/tariff.rb", 10),
        ("patch -p1 < fix{n}.diff", "error: hunk FAILED -- saving rejects to file lib/tariff.rb.rej", 10),
        (DIFF, "error: patch failed: lib/tariff.rb:{n}\nerror: lib/tariff.rb: patch does not apply", 10),
        (SCRIPT, "Traceback (most recent call last):\nAssertionError: old text not found", 15),
    ],
    ids=["apply_patch", "patch", "git apply", "script"],
)
@pytest.mark.parametrize("status", ["error", None])
def test_patches_refused_in_a_shell_are_found(play, command, result, count, status):
    """Ten patches refused for one reason, the lines read before each, are warned about; of own scripts fifteen."""

    def view(n):
        return shell(n, f"sed -n {n}1,{n}9p lib/tariff.rb", f"rate_{n} = {n}", status and "ok")

    makes = [lambda n: shell(n, command.format(n=n), result.format(n=n), status) for _ in range(count)]
    alerts = play(reread(makes, view))
    assert "warn" in {alert.level for alert in alerts}
    if status is None:
        assert "terminate" not in {alert.level for alert in alerts}
        assert all(alert.evidence.weak for alert in alerts if alert.detector != "analysis")


# Healthy practice


def test_four_refused_patches_for_different_causes_each_read_again_and_applied_are_healthy(play):
    """Refused, looked at, applied: four times over, and once more for a cause seen before."""
    makes = []
    for reason in (NO_MATCH, SYNTAX, READ_ONLY, TOO_MANY, NO_MATCH):
        makes += [lambda n, r=reason: refusal(n, r), patch]
    assert {alert.level for alert in play(reread(makes))} <= {"notice"}


def test_one_refusal_for_each_of_many_files_is_healthy(play):
    """A sweep over the tree in which every file needs a second try."""
    makes = []
    for k in range(12):
        makes += [lambda n, k=k: refusal(n, path=f"lib/p{k}.rb"), lambda n, k=k: patch(n, f"lib/p{k}.rb")]
    assert {alert.level for alert in play(reread(makes))} <= {"notice"}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.booleans(), max_size=30))
def test_fewer_than_five_refusals_since_the_last_accepted_edit_are_silent(accepted):
    """Whatever the order, a target's refusals since its last accepted edit are what counts, and nothing else."""
    since, most = 0, 0
    for yes in accepted:
        since = 0 if yes else since + 1
        most = max(most, since)
    state = SessionState()
    events = reread([patch if yes else refusal for yes in accepted])
    alerts = [alert for event in events for alert in observe(state, event, Limits())]
    assert bool(found(alerts)) is (most >= 5)


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_the_edit_that_an_answer_quotes_is_no_part_of_the_reason(one, other):
    """Two refusals that differ only in the text they quote are of one kind."""
    kinds = set()
    for n in (one, other):
        call = refusal(n, f"No match for «rate_{n} = 0» in lib/tariff.rb")
        failure = read_call(call, Mark(calls=1), Limits()).failure
        assert failure is not None
        kinds.add(failure.kind)
    assert len(kinds) == 1
