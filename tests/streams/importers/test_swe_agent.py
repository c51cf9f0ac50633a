"""Trajectories of SWE-agent, before and after 1.0."""

from __future__ import annotations


def test_commands_become_tools_with_arguments(sessions, calls, kinds):
    """The first word is the tool; a step without an action is no call; nothing tells success."""
    (session,) = sessions("swe_agent.traj")
    assert [(call.tool, call.arguments, call.result, call.status) for call in calls(session)] == [
        ("open", {"action": "src/a.py 10"}, "[File: src/a.py (20 lines total)]", None),
        ("edit", {"file": "/repo/src/a.py", "range": "2:3", "new_str": "x = 1\n\ny = 2"}, "File updated.", None),
        ("python", {"action": "src/a.py --fast"}, "", None),
        ("submit", {"action": ""}, "diff", None),
    ]
    assert kinds(session) == ["started", "user_message", "ended"]
    assert session.events[-1].reason == "submitted"


def test_an_edit_is_of_the_file_that_was_open(sessions, calls):
    """From 1.0 on the state is taken after an action, so that the step before says which file is open."""
    (session,) = sessions("swe_agent_1.traj")
    opened, edited = calls(session)
    assert edited.arguments["file"] == "/repo/src/a.py"
    assert opened.duration_ms == 250


def test_runs_of_one_instance_are_different_sessions(lines, read_all, data):
    """Two trajectories of one name and different content have different ids; a copy has the same one."""
    text = (data / "swe_agent.traj").read_text("utf-8")
    ours = read_all(lines(text, name="run-1/shop-1.traj"))[0].session_id
    copy = read_all(lines(text, name="run-2/shop-1.traj"))[0].session_id
    other = read_all(lines(text.replace("--fast", "--slow"), name="run-3/shop-1.traj"))[0].session_id
    assert ours == copy
    assert ours != other
    assert ours.startswith("shop-1@")
