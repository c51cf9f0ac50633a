"""The format is found by content: whatever the file is called, however it is laid out or packed."""

from __future__ import annotations

import json

import pytest

from streams.importers import Session, Skipped, Unreadable, read_path

FORMATS = {
    "claude_code.jsonl": "claude-code",
    "codex.jsonl": "codex",
    "codex_old.jsonl": "codex",
    "mini_text.traj.json": "mini-swe-agent",
    "mini_tools.traj.json": "mini-swe-agent",
    "neutral.jsonl": "neutral",
    "openai_messages.json": "openai-messages",
    "openai_conversation.json": "openai-messages",
    "openai_lines.jsonl": "openai-messages",
    "openhands.output.jsonl": "openhands",
    "openhands_trajectory.json": "openhands",
    "swe_agent.traj": "swe-agent",
    "swe_agent_1.traj": "swe-agent",
    "antigravity.jsonl": "antigravity",
    "atif.json": "atif",
    "cline_tags.json": "cline",
    "cline_tools.json": "cline",
    "codex_exec.jsonl": "codex-exec",
    "codex_exec_old.jsonl": "codex-exec",
    "cursor_stream.jsonl": "cursor",
    "cursor_transcript.jsonl": "cursor",
    "gemini_chat.json": "gemini-cli",
    "gemini_chat.jsonl": "gemini-cli",
    "gemini_stream.jsonl": "gemini-cli",
    "inspect.json": "inspect-ai",
    "mini_tools_2.traj.json": "mini-swe-agent",
    "opencode_export.json": "opencode",
    "opencode_run.jsonl": "opencode",
    "pi.jsonl": "pi",
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_by_content_not_by_name(name, packed, data, lines, read_all):
    """A meaningless name and gzip change nothing."""
    content = (data / name).read_bytes().rstrip(b"\n")
    found = read_all(lines(content, name="file.bin", packed=packed))
    assert {session.format for session in found} == {FORMATS[name]}


@pytest.mark.parametrize("name", [name for name in FORMATS if not name.endswith("l")])
def test_documents_on_one_line_and_on_many(name, data, lines, read_all):
    """A document reads the same on one line as over many."""
    value = json.loads((data / name).read_bytes())
    one = read_all(lines(json.dumps(value), name="a/x.json"))
    many = read_all(lines(json.dumps(value, indent=2), name="b/x.json"))
    assert [session.calls for session in one] == [session.calls for session in many]
    assert {session.format for session in one} == {FORMATS[name]}


def test_windows_line_ends_and_a_byte_order_mark(data, lines, read_all):
    """What editors of other systems put into a file does not matter."""
    content = b"\xef\xbb\xbf" + (data / "neutral.jsonl").read_bytes().replace(b"\n", b"\r\n")
    assert sum(session.calls for session in read_all(lines(content))) == 7


def test_a_broken_first_line_does_not_hide_the_format(data, lines, found_in):
    """The format is found by the next good line, and the broken one is told once."""
    found = found_in(lines("{broken", (data / "neutral.jsonl").read_bytes()))
    assert [fault.line for fault in found.unreadable] == [1]
    assert len(found.sessions) == 2


@pytest.mark.parametrize(
    "content",
    [
        '{"session_id": "s", "label": "loop", "first_loop_seq": 3}',
        '{"name": "package", "version": "1.0"}',
        '{"type": "user", "name": "somebody"}',
        "[1, 2, 3]",
    ],
)
def test_other_json_is_no_recording(content, lines):
    """JSON of other kinds is skipped in a directory, and an error where it is named."""
    path = lines(content)
    assert [type(found) for found in read_path(path.parent)] == [Skipped]
    (found,) = read_path(path)
    assert isinstance(found, Unreadable)
    assert "no known format" in found.reason


@pytest.mark.parametrize("more", [{}, {"result": "r"}])
def test_what_is_always_there_makes_a_line_neutral(more, lines, read_all):
    """A session and a tool are enough, as the docs say."""
    (session,) = read_all(lines({"session_id": "s", "tool": "t", **more}))
    assert (session.format, session.calls) == ("neutral", 1)


def test_a_bare_neutral_line_yields_to_other_formats(lines, read_all):
    """A message with fields of the platform that wrote it stays a message."""
    message = {"session_id": "s", "tool": "t", "role": "user", "content": "look"}
    answer = {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "ls", "arguments": "{}"}}]}
    (session,) = read_all(lines(message, answer))
    assert session.format == "openai-messages"


def test_a_document_broken_in_the_middle_is_told_by_its_line(data, lines):
    """A document that ends too early is an error with the line, in a directory as well."""
    content = (data / "swe_agent.traj").read_bytes()
    path = lines(content[: len(content) // 2], name="cut.traj")
    for where in (path, path.parent):
        (found,) = read_path(where)
        assert isinstance(found, Unreadable)
        assert found.line is not None
        assert found.line > 1


def test_reading_again_after_detection_starts_at_the_beginning(data):
    """Looking for the format costs no session."""
    assert len([found for found in read_path(data / "neutral.jsonl") if isinstance(found, Session)]) == 2
