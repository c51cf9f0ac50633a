"""Rollouts of Codex: calls of all kinds, the better account of a result, and what forks and compactions repeat."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import cramjam
from msgspec import UNSET

from schemas.common import Usage
from schemas.events import ToolCall
from streams.importers import Growing


def test_calls_results_and_status(sessions, calls):
    """Every kind of call has its arguments, its result and its status, or none where none is told."""
    (session,) = sessions("codex.jsonl")
    assert session.session_id == "0199-codex"
    found = [(call.call_id, call.tool, call.result, call.status) for call in calls(session)]
    assert found == [
        ("call_1", "shell", "cart.go\ngo.mod\n", "ok"),
        ("call_2", "shell", "cat: go.mod: denied\n", "error"),
        ("call_3", "apply_patch", "Success.", "ok"),
        ("call_4", "exec_command", "--- FAIL: TestTotal\n", "error"),
        ("call_5", "shell_command", "", "ok"),
        (None, "web_search", UNSET, None),
        ("call_6", "local_shell", "/srv/shop", "ok"),
        ("call_7", "update_plan", "Plan updated", None),
        ("call_8", "mcp__db__query", "relation does not exist", "error"),
        ("call_9", "shell", UNSET, None),
    ]


def test_arguments_are_read_where_they_are_json(sessions, calls):
    """JSON texts become values, free text stays text, and what is no JSON is kept as it is."""
    found = {call.call_id: call.arguments for call in calls(sessions("codex.jsonl")[0])}
    assert found["call_1"] == {"command": ["bash", "-lc", "ls"]}
    assert found["call_3"] == "*** Begin Patch\n*** End Patch"
    assert found["call_6"] == {"command": ["pwd"]}
    assert found["call_7"] == "{not json"
    assert found[None] == {"type": "search", "query": "go rounding"}


def test_the_end_of_a_command_is_preferred_to_its_mirror(sessions, calls):
    """`exec_command_end` gives output, exit code and duration; the text for the model does not replace them."""
    found = {call.call_id: call for call in calls(sessions("codex.jsonl")[0])}
    assert found["call_4"].duration_ms == 1500
    assert found["call_4"].error.code == 1
    assert "Chunk ID" not in found["call_4"].result
    assert found["call_1"].duration_ms == 200


def test_calls_without_a_result_between_are_one_batch(sessions, calls):
    """Parallel calls share a batch; their response's usage, told twice, is on the first alone."""
    first, second, third, *_ = calls(sessions("codex.jsonl")[0])
    assert first.batch_id == second.batch_id == "call_1"
    assert third.batch_id is None
    assert (first.usage, second.usage) == (Usage(input_tokens=90, output_tokens=10), None)


def test_a_persons_words_and_a_compaction_count_once(sessions, kinds):
    """The two accounts of a message, and of a compaction, are one event; the environment is nobody's word."""
    assert kinds(sessions("codex.jsonl")[0]) == ["started", "user_message", "context_trimmed"]


def test_a_fork_keeps_its_own_name(sessions, calls):
    """The origin's head, repeated below the fork's own, does not rename it."""
    (session,) = sessions("codex.jsonl")
    assert {event.session_id for event in session.events} == {"0199-codex"}
    assert calls(session)[0].task.repo == "shop/cart"
    assert calls(session)[0].agent.model == "gpt-example"


def test_a_growing_rollout_loses_no_tokens():
    """Where they are told when their call was taken already, the next call has them, beside its own."""
    now = datetime(2026, 3, 2, tzinfo=UTC)
    growing = Growing("rollout-s.jsonl")
    taken = []
    for n in range(3):
        call = {"type": "function_call", "name": "ls", "arguments": "{}", "call_id": f"c{n}"}
        answer = {"type": "function_call_output", "call_id": f"c{n}", "output": "a"}
        used = {"input_tokens": 9, "output_tokens": 2, "total_tokens": 11 * (n + 1)}
        told = {"type": "token_count", "info": {"last_token_usage": used, "total_token_usage": used}}
        behind = [("response_item", call), ("response_item", answer), ("event_msg", told)]
        for kind, payload in behind if n < 2 else [behind[0], behind[2], behind[1]]:
            growing.feed(json.dumps({"type": kind, "payload": payload}).encode())
            taken += growing.take(now)
    usages = [event.usage for event in taken if isinstance(event, ToolCall)]
    assert usages == [None, Usage(input_tokens=9, output_tokens=2), Usage(input_tokens=18, output_tokens=4)]


def test_rollouts_without_an_envelope(sessions, calls, kinds):
    """The first versions wrote the items bare; they are read all the same."""
    (session,) = sessions("codex_old.jsonl")
    assert session.session_id == "old-codex"
    assert [(call.tool, call.result, call.status) for call in calls(session)] == [("shell", "a.txt\n", "ok")]
    assert kinds(session) == ["started", "user_message"]


def test_a_packed_rollout(tmp_path, data, found_in):
    """It gives the session of the rollout that was packed, under the same name, and only where that is not there."""
    content = (data / "codex.jsonl").read_bytes()
    plain, packed = tmp_path / "rollout-1.jsonl", tmp_path / "rollout-1.jsonl.zst"
    plain.write_bytes(content)
    (first,) = found_in(tmp_path).sessions
    packed.write_bytes(bytes(cramjam.zstd.compress(content)))
    assert [each.source for each in found_in(tmp_path).sessions] == [str(plain)]
    (named,) = found_in(packed).sessions
    plain.unlink()
    (alone,) = found_in(tmp_path).sessions
    assert named.events == alone.events == first.events
    assert alone.source == str(packed)
