"""Sessions of pi."""

from __future__ import annotations

from msgspec import UNSET

from schemas.common import Usage


def test_a_session(sessions, story, calls):
    """Both branches of the tree count, a compaction is a trim, and what the user ran is nobody's call."""
    (session,) = sessions("pi.jsonl")
    assert session.session_id == "pi-1"
    assert story(session) == [
        "started",
        "user_message",
        ("call_1|fc_1", "read", {"path": "cart.py"}, "def total(): ...", "ok"),
        ("call_2", "bash", {"command": "pytest"}, "1 failed\n\nCommand exited with code 1", "error"),
        "context_trimmed",
        ("call_3", "bash", {"command": "sleep 99"}, "Command timed out after 2 seconds", "timeout"),
        ("call_4", "edit", {"path": "cart.py"}, UNSET, None),
    ]
    read, run, *_ = calls(session)
    assert read.batch_id == run.batch_id == "call_1|fc_1"
    assert read.usage == Usage(input_tokens=155, output_tokens=20, cost_usd=0.03)
    assert run.error.code == 1


def test_the_first_form_and_what_it_prints(lines, read_all, story):
    """Entries without ids (version 1) and the events of `--mode json` hold the same messages."""
    head = {"type": "session", "id": "s", "timestamp": "2026-03-02T08:00:00Z", "cwd": "/srv"}
    call = {"type": "toolCall", "id": "c", "name": "ls", "arguments": {}}
    said = {"role": "assistant", "content": [call], "timestamp": 1772438401000}
    told = {"role": "toolResult", "toolCallId": "c", "content": [{"type": "text", "text": "a"}], "isError": False}
    old = [head, *({"type": "message", "timestamp": "2026-03-02T08:00:01Z", "message": m} for m in (said, told))]
    events = [{"type": "message_end", "message": message} for message in (said, told)]
    printed = [head, {"type": "agent_start"}, {"type": "message_start", "message": said}, *events]
    for number, recorded in enumerate((old, printed)):
        (session,) = read_all(lines(*recorded, name=f"{number}.jsonl"))
        assert story(session) == ["started", ("c", "ls", {}, "a", "ok")]
