"""Trajectories in ATIF."""

from __future__ import annotations

import json

from msgspec import UNSET

from schemas.common import Usage


def test_steps_and_sub_agents(sessions, story, calls):
    """A batch's one observation is that of its last call; what was copied is left out; a sub-agent is a session."""
    main, child = sessions("atif.json")
    first = {"keystrokes": "ls\n", "duration": 0.1}
    last = {"keystrokes": "pytest\n", "duration": 5}
    assert story(main) == [
        "started",
        "user_message",
        ("c1", "bash_command", first, UNSET, None),
        ("c2", "bash_command", last, "New Terminal Output:\n1 failed", None),
        ("c3", "read", {"path": "a"}, "A", "ok"),
        ("c4", "read", {"path": "b"}, "B", "error"),
        ("c5", "task", {"prompt": "look"}, UNSET, None),
    ]
    one, two, three, *_ = calls(main)
    assert one.batch_id == two.batch_id != three.batch_id
    assert one.usage == Usage(input_tokens=100, output_tokens=20, cost_usd=0.01)
    assert (one.agent.name, one.agent.model) == ("terminus-2", "example-1")
    assert child.session_id == "a-1:sub"
    assert story(child) == ["started", ("s1", "ls", {}, "cart.py", None)]
    assert calls(child)[0].parent_session_id == "a-1"


def test_answers_that_are_kept_as_they_came(lines, read_all, story):
    """The commands in an answer are its calls; one that could not be read is a format error; a compaction is a trim."""
    command = {"keystrokes": "ls\n", "duration": 0.1}
    steps = [
        {"source": "agent", "message": json.dumps({"analysis": "", "commands": [command]})}
        | {"observation": {"results": [{"content": "cart.py"}]}},
        {"source": "agent", "message": "no JSON"}
        | {"observation": {"results": [{"content": "Previous response had parsing errors:\nERROR: none"}]}},
        {"source": "system", "message": "", "extra": {"context_management": {"type": "compaction"}}},
        {"source": "agent", "message": "a word", "observation": {"results": [{"content": "x"}]}},
    ]
    (session,) = read_all(lines({"schema_version": "ATIF-v1.6", "session_id": "s", "agent": {}, "steps": steps}))
    assert story(session) == [
        "started",
        (None, "bash_command", command, "cart.py", None),
        (
            None,
            "(format_error)",
            {"response": "no JSON"},
            "Previous response had parsing errors:\nERROR: none",
            "error",
        ),
        "context_trimmed",
    ]


def test_the_first_version_and_loose_results(lines, read_all, story):
    """Without ids, as many results as calls are theirs in order; without a session, the file names it."""
    asked = [{"tool_call_id": name, "function_name": "ls", "arguments": {"path": name}} for name in "ab"]
    told = {"results": [{"source_call_id": None, "content": "A"}, {"content": None}]}
    step = {"step_id": 1, "source": "agent", "message": "", "tool_calls": asked, "observation": told}
    (session,) = read_all(lines({"schema_version": "ATIF-v1.0", "agent": {}, "steps": [step]}, name="trajectory.json"))
    assert session.session_id.startswith("trajectory@")
    assert story(session) == ["started", ("a", "ls", {"path": "a"}, "A", None), ("b", "ls", {"path": "b"}, UNSET, None)]
