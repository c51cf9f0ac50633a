"""Sessions of OpenHands: evaluation output, exported trajectories, and the pairs of old versions."""

from __future__ import annotations

from schemas.common import Usage


def test_actions_find_their_observations(sessions, calls, kinds):
    """Results come by `cause`; commands, file tools and the rest tell their status as they can."""
    first, _ = sessions("openhands.output.jsonl")
    found = [(call.tool, call.arguments, call.result, call.status) for call in calls(first)[:-1]]
    assert found == [
        ("execute_bash", {"command": "make", "is_input": False}, "make: *** no targets", "error"),
        ("str_replace_editor", {"path": "/w/a.c", "start": 0, "end": -1}, "int main;", "ok"),
        (
            "str_replace_editor",
            {"path": "/w/a.c", "old_str": "x", "new_str": "y"},
            "ERROR:\nNo replacement was performed",
            "error",
        ),
        ("think", {}, "Your thought has been logged.", None),
        ("execute_bash", {"command": "sleep 99"}, "[still running]", None),
    ]
    assert calls(first)[0].error.code == 2
    assert kinds(first) == ["started", "user_message", "context_trimmed", "ended"]


def test_a_batch_shares_its_response(sessions, calls):
    """Calls of one response are a batch, whose usage counts once."""
    one, two, three, *_ = calls(sessions("openhands.output.jsonl")[0])
    assert one.batch_id == two.batch_id == "gen-1"
    assert (one.usage, two.usage) == (Usage(input_tokens=100, output_tokens=10), None)
    assert three.batch_id is None


def test_each_line_is_a_session_also_of_old_versions(sessions, calls):
    """Pairs of action and observation are read too; how the session ended is told."""
    _, second = sessions("openhands.output.jsonl")
    assert [(call.tool, call.result, call.status) for call in calls(second)] == [
        ("run", "a.txt", "ok"),
        ("browse", "no network", "error"),
    ]
    assert second.events[-1].reason == "AgentStuckInLoopError"
    assert not second.timed


def test_an_exported_trajectory_has_the_same_calls(sessions, calls):
    """A bare list of events over many lines is one session with the same calls."""
    (exported,) = sessions("openhands_trajectory.json")
    evaluated = sessions("openhands.output.jsonl")[0]
    assert [call.arguments for call in calls(exported)] == [call.arguments for call in calls(evaluated)]
