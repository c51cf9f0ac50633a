"""Logs of Inspect, as a document and as an archive."""

from __future__ import annotations

import json
import zipfile

import pytest
from msgspec import UNSET

from schemas.common import Usage
from streams.importers import Session, Skipped, Unreadable, files, read_path
from streams.importers.inspect_ai import MAX_DEPTH
from tests.streams.importers import making
from tests.streams.importers.making import Step

STEPS = [Step("read", {"path": "a"}, "A" * 400), Step("read", {"path": "b"}, "B")]


def test_samples_and_sub_agents(sessions, story, calls):
    """Events tell the calls, attachments are put back, and an agent that a tool started is a session of its own."""
    cart, helper, till = sessions("inspect.json")
    assert story(cart) == [
        "started",
        "user_message",
        ("c1", "bash", {"cmd": "cat a long text"}, "a long text", None),
        ("c2", "text_editor", {"path": "a"}, "A", "ok"),
        ("c3", "text_editor", {"path": "/no"}, "no such file", "error"),
        ("c4", "bash", {"cmd": "sleep 9"}, "Command timed out", "timeout"),
        "context_trimmed",
        ("c6", "bash", {"cmd": "true"}, UNSET, None),
        "ended: limit: message",
    ]
    assert cart.session_id == "u-1"
    first, second, third, *_ = calls(cart)
    assert first.batch_id == second.batch_id == "msg-1"
    assert (first.usage, second.usage) == (Usage(input_tokens=100, output_tokens=20), None)
    assert (first.duration_ms, third.error.type) == (1000, "file_not_found")
    assert first.agent.model == "example/one"
    assert story(helper) == [("h1", "web_search", {"query": "tax"}, "none", "ok")]
    assert (helper.session_id, calls(helper)[0].parent_session_id) == ("u-1:agent-5", "u-1")
    assert till.session_id == "run-1/till/1"


def test_a_sample_without_events(sessions, story):
    """Where there are no events the messages count."""
    till = sessions("inspect.json")[-1]
    assert story(till) == [
        "started",
        "user_message",
        ("d1", "python", {"code": "1"}, "1", None),
        ("d2", "submit", {"answer": "x"}, "not now", "denied"),
        "ended: error",
    ]


def test_events_within_those_of_tools(lines, read_all, calls):
    """Before there were spans, what an agent did lay within the event of the tool that started it."""
    inner = {"event": "tool", "id": "i", "function": "ls", "arguments": {}, "result": "a", "completed": making.iso(1)}
    outer = inner | {"id": "o", "function": "helper", "events": [inner]}
    sample = {"id": "x", "epoch": 1, "uuid": "u", "events": [outer]}
    main, child = read_all(lines({"version": 2, "eval": making.INSPECT, "plan": {}, "samples": [sample]}))
    assert [call.call_id for call in calls(main)] == ["o"]
    assert child.session_id == "u:o"
    assert [call.call_id for call in calls(child)] == ["i"]


def test_attachments_are_put_back_as_deep_as_is_sensible(lines, read_all, calls):
    """A reference within the limit of nesting is resolved, one beyond it stays, and nothing breaks."""
    key = "0" * 32

    def nested(depth):
        value: object = f"attachment://{key}"
        for _ in range(depth):
            value = [value]
        return value

    tools = [
        {
            "event": "tool",
            "id": str(depth),
            "function": "t",
            "arguments": {"a": nested(depth)},
            "completed": making.iso(1),
        }
        for depth in (MAX_DEPTH - 2, MAX_DEPTH + 2)
    ]
    sample = {"id": "x", "epoch": 1, "uuid": "u", "events": tools, "attachments": {key: "whole"}}
    (session,) = read_all(lines({"version": 2, "eval": making.INSPECT, "plan": {}, "samples": [sample]}))
    near, far = (json.dumps(call.arguments) for call in calls(session))
    assert "whole" in near
    assert key in far


def test_an_archive_that_is_still_written(tmp_path, calls):
    """Before an evaluation ends its head stands in the journal."""
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(making.inspect_eval(tmp_path / "", STEPS)) as packed:
        sample = packed.read("samples/one_epoch_1.json")
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("_journal/start.json", json.dumps({"version": 2, "eval": making.INSPECT}))
        packed.writestr("samples/one_epoch_1.json", sample)
    (session,) = read_path(path)
    assert len(calls(session)) == 2


def test_a_damaged_sample_costs_itself(tmp_path):
    """A member that is no JSON is told by its name, and the others are read."""
    path = making.inspect_eval(tmp_path, STEPS)
    with zipfile.ZipFile(path, "a") as packed:
        packed.writestr("samples/two_epoch_1.json", "{cut")
    session, fault = read_path(path)
    assert isinstance(session, Session)
    assert isinstance(fault, Unreadable)
    assert "samples/two_epoch_1.json" in fault.reason


@pytest.mark.parametrize("write", [making.inspect_eval, making.inspect_zstd])
def test_a_member_that_is_damaged_or_too_large(write, tmp_path, monkeypatch):
    """Damage within what is packed, and a member beyond the limit, are told and stop nothing."""
    path = write(tmp_path, STEPS)
    monkeypatch.setattr(files, "MAX_TEXT_BYTES", 300)
    (found,) = read_path(path)
    assert isinstance(found, Unreadable)
    assert "larger than" in found.reason
    monkeypatch.undo()
    content = bytearray(path.read_bytes())
    at = content.index(b"samples/") + 60
    content[at : at + 20] = b"\x00" * 20
    path.write_bytes(content)
    (found,) = read_path(path)
    assert isinstance(found, Unreadable)


def test_other_archives_are_no_recordings(tmp_path):
    """An archive of something else is passed by in a folder, also a damaged one, and told where it is named."""
    path = tmp_path / "other.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("header.json", "{}")
    assert [type(found) for found in read_path(tmp_path)] == [Skipped]
    (found,) = read_path(path)
    assert isinstance(found, Unreadable)
    assert found.reason.startswith("a zip archive, but of no known format")
    path.write_bytes(path.read_bytes()[:30])
    assert [type(found) for found in read_path(tmp_path)] == [Skipped]
    path.rename(tmp_path / "other.eval")
    (found,) = read_path(tmp_path)
    assert isinstance(found, Unreadable)
    assert "archive is damaged" in found.reason
