"""Transcripts of Claude Code: what is a call, what a person said, and what is there twice."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import UNSET

from schemas.common import Usage

SESSION = "5a1c7d7e-0000-4000-8000-00000000c0de"


def test_calls_results_and_status(sessions, calls):
    """Each call has its own result and how it ended, whatever the order of the answers."""
    main, _ = sessions("claude_code.jsonl")
    assert main.session_id == SESSION
    assert main.format == "claude-code"
    found = {call.call_id: call for call in calls(main)}
    assert [(call.tool, call.status) for call in found.values()] == [
        ("Grep", "ok"),
        ("Read", "ok"),
        ("Bash", "error"),
        ("Bash", "denied"),
        ("Bash", "timeout"),
        ("Task", "ok"),
        ("Bash", None),
    ]
    assert found["toolu_a"].arguments == {"pattern": "pay", "path": "."}
    assert found["toolu_a"].result == "pay.py"
    assert found["toolu_a"].duration_ms == 120
    assert found["toolu_b"].result == "def pay():\n    ...\n[image]"
    assert found["toolu_c"].result == "Exit code 2\nmake: *** [test] Error 2"
    assert found["toolu_c"].occurred_at == datetime(2026, 3, 2, 8, 0, 5, tzinfo=UTC)


def test_an_interrupted_call_stays_without_a_result(sessions, calls):
    """A call that was never answered is kept, and its result is absent, not empty."""
    last = calls(sessions("claude_code.jsonl")[0])[-1]
    assert last.call_id == "toolu_g"
    assert last.result is UNSET
    assert last.status is None


def test_one_response_over_several_lines_is_one_batch_and_counts_once(sessions, calls):
    """Lines with one message id share a batch id, and the response's last usage is on its first call alone."""
    first, second, third, *_ = calls(sessions("claude_code.jsonl")[0])
    assert first.batch_id == second.batch_id == "msg_1"
    assert third.batch_id is None
    assert first.usage == Usage(input_tokens=240, output_tokens=55)
    assert second.usage is None


def test_what_a_person_typed_and_what_the_program_wrote(sessions, kinds):
    """Only a person's words are user messages; boundary and summary of one compaction are one trim."""
    assert kinds(sessions("claude_code.jsonl")[0]) == ["user_message", "user_message", "context_trimmed"]


def test_copies_after_a_compaction_do_not_count_again(sessions, calls):
    """A call that the transcript repeats with the same id yields one event."""
    ids = [call.event_id for call in calls(sessions("claude_code.jsonl")[0])]
    assert len(ids) == len(set(ids)) == 7


def test_a_sub_agent_is_a_session_of_its_own(sessions, calls, kinds):
    """Sidechain lines form `session:agent`, know their parent, and hold no person's words."""
    main, side = sessions("claude_code.jsonl")
    assert side.session_id == f"{SESSION}:a77"
    assert [call.call_id for call in calls(side)] == ["toolu_s"]
    assert calls(side)[0].parent_session_id == SESSION
    assert calls(side)[0].agent.id == "a77"
    assert kinds(side) == []
    assert "toolu_s" not in {call.call_id for call in calls(main)}


def test_old_sidechains_are_told_apart_by_their_root(sessions, calls):
    """Without an agent id, lines that descend from one root are one sub-agent."""
    main, side = sessions("claude_code_old_sidechain.jsonl")
    assert (main.session_id, main.calls) == ("old", 0)
    assert (side.session_id, side.calls) == ("old:s1", 1)
    assert calls(side)[0].parent_session_id == "old"


def test_the_stream_of_a_headless_run(lines, read_all, calls):
    """`--output-format stream-json` has the same lines with `session_id` and names sub-agents by their call."""
    path = lines(
        {"type": "system", "subtype": "init", "session_id": "s", "tools": []},
        {
            "type": "assistant",
            "session_id": "s",
            "message": {"id": "m", "content": [{"type": "tool_use", "id": "t1", "name": "Task", "input": {}}]},
        },
        {
            "type": "assistant",
            "session_id": "s",
            "parent_tool_use_id": "t1",
            "message": {"id": "n", "content": [{"type": "tool_use", "id": "t2", "name": "LS", "input": {}}]},
        },
    )
    main, side = read_all(path)
    assert (main.session_id, side.session_id) == ("s", "s:t1")
    assert [call.tool for call in calls(main) + calls(side)] == ["Task", "LS"]


def test_a_result_cut_by_a_scrubber_is_not_recorded(lines, found_in, calls):
    """Behind a redaction that cut a line off, a result or arguments are unknown; the line is told, and no error."""
    whole = (
        '{"type":"assistant","sessionId":"s","uuid":"1","message":{"id":"m1","content":'
        '[{"type":"tool_use","id":"t1","name":"Read","input":{"file_path":"a"}}]}}'
    )
    cut_result = (
        '{"type":"user","sessionId":"s","uuid":"2","message":{"role":"user","content":'
        '[{"tool_use_id":"t1","type":"tool_result","content":"From: [REDACTED_SENDER]'
    )
    cut_call = (
        '{"type":"assistant","sessionId":"s","uuid":"3","message":{"id":"m2","content":'
        '[{"type":"tool_use","id":"t2","name":"Write","input":{"file_path":"b","content":"To: [REDACTED_RECIPIENT]'
    )
    found = found_in(lines(whole, cut_result, cut_call))
    assert found.unreadable == []
    assert [damaged.lines for damaged in found.damaged] == [(2, 3)]
    first, second = calls(found.sessions[0])
    assert first.arguments == {"file_path": "a"}
    assert (first.result, first.status) == (UNSET, None)
    assert (second.tool, second.arguments) == ("Write", UNSET)


def test_a_line_broken_off_is_named_and_the_rest_goes_on(lines, found_in, calls):
    """Without a scrubber's mark a broken line is an error with its number, and later lines still count."""
    call = {
        "type": "assistant",
        "sessionId": "s",
        "uuid": "1",
        "message": {"id": "m1", "content": [{"type": "tool_use", "id": "t1", "name": "LS", "input": {}}]},
    }
    answer = {
        "type": "user",
        "sessionId": "s",
        "uuid": "2",
        "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "content": "a"}]},
    }
    found = found_in(lines(call, '{"type":"user","sessionId":"s","message":{"con', answer))
    assert [(fault.line, "not JSON" in fault.reason) for fault in found.unreadable] == [(2, True)]
    assert calls(found.sessions[0])[0].result == "a"


def test_nothing_unexpected_makes_it_fail(lines, found_in):
    """Lines whose parts have other types than they should are taken as far as they make sense."""
    odd = [
        {"type": "assistant", "sessionId": "s", "uuid": "1", "message": "text"},
        {"type": "assistant", "sessionId": "s", "uuid": "2", "message": {"content": ["x", None, {"type": "tool_use"}]}},
        {"type": "user", "sessionId": "s", "uuid": "3", "message": {"content": {"a": 1}}, "toolUseResult": []},
        {"type": "user", "sessionId": 7, "uuid": None, "message": {"content": [{"type": "tool_result"}]}},
        {
            "type": "assistant",
            "sessionId": "s",
            "uuid": "4",
            "timestamp": "soon",
            "message": {"usage": {"input_tokens": "x"}},
        },
        [1],
        7,
    ]
    found = found_in(lines(*odd))
    assert found.unreadable == []
    assert sum(session.calls for session in found.sessions) == 1
