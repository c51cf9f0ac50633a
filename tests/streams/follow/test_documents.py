"""What cannot be followed is told once, by name and with what to do; what is no recording is passed by in silence."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import cramjam
import pytest

from streams.follow import tail
from streams.importers.detect import MAX_LINES
from tests.streams.follow.kit import call, calls, name, names

if TYPE_CHECKING:
    from pathlib import Path

    from tests.streams.follow.kit import World

DOCUMENT = {"trajectory_format": "mini-swe-agent-1.1", "info": {"mini_version": "2.0"}, "messages": []}


def database(folder: Path) -> bytes:
    """Make a database of Crush."""
    path = folder / "made.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE sessions (id TEXT, parent_session_id TEXT, title TEXT)")
    connection.execute("CREATE TABLE messages (id TEXT, session_id TEXT, role TEXT, parts TEXT, created_at INTEGER)")
    connection.commit()
    connection.close()
    return path.read_bytes()


@pytest.mark.parametrize("kind", ["indented", "one line", "one line without an end", "packed", "database"])
async def test_told_once(world: World, kind: str, tmp_path: Path) -> None:
    """A recording that is written as a whole is told by format and remedy, once, however often it is written."""
    data = {
        "indented": json.dumps(DOCUMENT, indent=1).encode(),
        "one line": json.dumps(DOCUMENT).encode() + b"\n",
        "one line without an end": json.dumps(DOCUMENT).encode(),
        "packed": gzip.compress(calls([0, 1])),
        "database": database(tmp_path),
    }[kind]
    await world.started()
    for _ in range(3):
        world.write("document", data, "wb")
        await world.turns()
        world.write("new", data + b"\n", "wb").rename(world.folder / "document")
        await world.turns()
    (told,) = world.happened("not_followed")
    assert told.path == str(world.folder / "document")
    assert told.reason is not None
    assert "traction replay" in told.reason
    known = {"packed": "claude-code", "database": "crush"}.get(kind, "mini-swe-agent")
    assert known in told.reason
    assert world.sink.ids == []


def packed(data: bytes) -> bytes:
    """Pack a rollout."""
    return bytes(cramjam.zstd.compress(data))


async def test_a_transcript_that_its_agent_packs(world: World) -> None:
    """What was read and is packed then is told nowhere, and nothing of it is sent again when it is unpacked."""
    await world.started()
    world.write("a.jsonl", calls([0, 1]))
    await world.turns()
    world.write("a.jsonl.zst", packed(calls([0, 1])))
    (world.folder / "a.jsonl").unlink()
    await world.turns()
    await world.started()
    assert world.happened("not_followed") == []
    world.write("a.jsonl", calls([0, 1, 2]))
    (world.folder / "a.jsonl.zst").unlink()
    await world.turns()
    assert world.sink.ids == names([0, 1, 2])


async def test_a_transcript_that_was_packed_before(world: World) -> None:
    """Of one that is unpacked to go on with it, what was there when it was packed is no news."""
    path = world.write("a.jsonl.zst", packed(calls([0, 1])))
    at = datetime(2026, 3, 2, 0, 0, 1, 500_000, tzinfo=UTC).timestamp()
    os.utime(path, (at, at))
    await world.started()
    world.write("a.jsonl", calls([0, 1, 2]))
    path.unlink()
    await world.turns()
    assert world.sink.ids == names([2])
    assert world.happened("not_followed") == []


async def test_a_packed_transcript_that_was_not_read(world: World) -> None:
    """It is told with what to do, once, also when the process starts again."""
    await world.started()
    world.write("a.jsonl.zst", packed(calls([0, 1])))
    await world.turns()
    await world.started()
    (told,) = world.happened("not_followed")
    assert told.reason is not None
    assert "traction replay --to-kafka" in told.reason


async def test_a_document_that_is_named(world: World) -> None:
    """A document that is there at the start is told at once where it is named itself."""
    path = world.write("document.json", json.dumps(DOCUMENT, indent=1).encode())
    await world.started(roots=(str(path),))
    assert [told.path for told in world.happened("not_followed")] == [str(path)]


async def test_other_files(world: World) -> None:
    """Files in a folder that are no recordings are passed by in silence, and hold nothing up."""
    await world.started()
    world.write("notes.txt", b"Some words.\n" * (MAX_LINES + 10))
    world.write("settings.json", b'{\n  "colour": true\n}\n')
    world.write("picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\n")
    world.write("lines.jsonl", b'{"colour": 1}\n' * (MAX_LINES + 10))
    world.write("broken.gz", b"\x1f\x8b and nothing else")
    world.write("empty", b"")
    world.write("a.jsonl", call(0))
    await world.turns()
    assert world.sink.ids == names([0])
    assert world.happened("not_followed") == world.happened("fault") == []


@pytest.mark.parametrize(
    "data", [b"Words.\n" * MAX_LINES, b"\0\0\n", "{}\n".encode("utf-16"), b'{"colour": 1}\n' * MAX_LINES, b"{\n}\n"]
)
async def test_other_files_that_are_named(world: World, data: bytes) -> None:
    """A file that is named and is no recording is told, once."""
    path = world.folder / "named"
    await world.started(roots=(str(path),))
    world.write("named", data)
    await world.turns()
    world.write("named", data)
    await world.turns()
    assert len(world.happened("not_followed")) == 1


async def test_short_of_the_limit(world: World) -> None:
    """Lines of no format before the first one that has marks are passed by, as many as a replay passes by."""
    await world.started()
    world.write("a.jsonl", b'{"colour": 1}\n' * (MAX_LINES - 1) + call(0))
    world.write("b.jsonl", b"words\n" * (MAX_LINES - 1) + call(1, "s2"))
    await world.turns()
    assert sorted(world.sink.ids) == [name(0), name(1, "s2")]


async def test_a_first_line_that_is_damaged(world: World) -> None:
    """Lines of which the first was cut by a crash are no document."""
    await world.started()
    world.write("a.jsonl", b'{"type": "assis\n' + call(0))
    await world.turns()
    assert world.sink.ids == names([0])


async def test_byte_order_mark(world: World) -> None:
    """A byte order mark is no part of the first line."""
    await world.started()
    world.write("a.jsonl", b"\xef\xbb\xbf" + call(0))
    await world.turns()
    assert world.sink.ids == names([0])
    assert world.happened("fault") == []


@pytest.mark.parametrize("over", [0, 1])
async def test_long_lines(world: World, over: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of the longest length is read; a longer one is told and passed by, also first, and in pieces."""
    line = json.dumps({"session_id": "s1", "tool": "t", "args": {"text": "x" * 3_000}, "call_id": "call1"}).encode()
    monkeypatch.setattr(tail, "MAX_LINE_BYTES", len(line) - over)
    monkeypatch.setattr(tail, "CHUNK_BYTES", 256)
    await world.started()
    rest = json.dumps({"session_id": "s1", "tool": "t", "args": {}, "call_id": "call2"}).encode() + b"\n"
    world.write("a.jsonl", line[:2_999])
    await world.turns()
    world.write("a.jsonl", line[2_999:-1])
    await world.turns()
    world.write("a.jsonl", line[-1:] + b"\n" + rest)
    await world.turns()
    assert world.sink.ids == (names([2]) if over else names([1, 2]))
    assert [told.line for told in world.happened("fault")] == ([1] if over else [])
