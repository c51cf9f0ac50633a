"""What `codex exec --json` prints, of today and of before."""

from __future__ import annotations

from msgspec import UNSET

from schemas.common import Usage


def test_items_of_a_run(sessions, story, calls):
    """Commands, searches and calls of servers are calls; a change of files hides what it changed, and stays unequal."""
    (session,) = sessions("codex_exec.jsonl")
    assert session.session_id == "0199-exec"
    assert not session.timed
    assert story(session) == [
        "started",
        ("item_1", "shell", {"command": "bash -lc ls"}, "cart.go\n", "ok"),
        ("item_2", "shell", {"command": "go test"}, "FAIL\n", "error"),
        ("item_3", "shell", {"command": "rm -r ."}, "", "denied"),
        ("item_4", "apply_patch", UNSET, UNSET, "ok"),
        ("item_5", "web_search", {"query": "go rounding"}, UNSET, None),
        ("item_6", "mcp__db__query", {"sql": "select 1"}, "no such relation", "error"),
        ("item_8", "shell", {"command": "sleep 9"}, UNSET, None),
        "turn",
        "ended: failed",
    ]
    assert calls(session)[1].error.code == 1


def test_the_tokens_of_a_turn_are_on_the_turn(sessions):
    """The output tells tokens for all responses of a turn together: no single call gets them."""
    (turn,) = [event for event in sessions("codex_exec.jsonl")[0].events if getattr(event, "kind", "") == "turn"]
    assert turn.usage == Usage(input_tokens=900, output_tokens=50)


def test_events_before_there_were_items(sessions, story, calls):
    """Versions of most of 2025 told the beginning and the end of a call as messages of the protocol."""
    (session,) = sessions("codex_exec_old.jsonl")
    assert session.session_id == "0100-exec"
    assert story(session) == [
        "started",
        ("call_1", "shell", {"command": ["bash", "-lc", "ls"]}, "a.txt\nodd\n", "error"),
        ("call_2", "apply_patch", {"a.txt": {"add": {"content": "x"}}}, "Success", "ok"),
        ("call_3", "mcp__db__query", {"sql": "select 1"}, "1", "ok"),
        ("call_4", "web_search", {"query": "go rounding"}, UNSET, None),
    ]
    assert calls(session)[0].agent.model == "gpt-example"
    assert calls(session)[0].duration_ms == 1500
