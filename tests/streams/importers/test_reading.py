"""Files and directories: what is read, what is skipped, what is told."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import cramjam
import pytest

from streams.importers import Session, Skipped, Unreadable, files, read_path


def call(session, seq):
    """Give a line of the neutral form."""
    return {"session_id": session, "seq": seq, "tool": "t", "args": {}, "result": "r", "error": False}


def test_a_directory_is_read_in_order_of_names(lines, tmp_path):
    """Files below a directory come sorted, and say where they were found."""
    for name in ("b/2.jsonl", "b/1.jsonl", "a/9.jsonl"):
        lines(call(name, 0), name=name)
    found = [(each.session_id, each.source) for each in read_path(tmp_path) if isinstance(each, Session)]
    assert found == [(name, str(tmp_path / name)) for name in ("a/9.jsonl", "b/1.jsonl", "b/2.jsonl")]


def test_other_files_are_skipped_and_broken_recordings_are_not(lines, tmp_path):
    """In a directory, other kinds of files are no fault; a recording with nothing readable in it is one."""
    lines("# read me", name="README.md")
    lines(b"\x89PNG\r\n\x1a\n\x00", name="picture.png")
    lines(name="empty.jsonl")
    lines("no JSON at all", name="ruined.jsonl")
    lines("{never closed", name="torn.jsonl")
    lines(call("s", 0), name="good.jsonl")
    found = list(read_path(tmp_path))
    assert [each.session_id for each in found if isinstance(each, Session)] == ["s"]
    skipped = {Path(each.source).name for each in found if isinstance(each, Skipped)}
    assert skipped == {"README.md", "picture.png", "empty.jsonl"}
    broken = {Path(each.source).name: each.line for each in found if isinstance(each, Unreadable)}
    assert broken == {"ruined.jsonl": None, "torn.jsonl": 1}


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", "empty"), (b"words", "no JSON"), (b"\x28\xb5\x2f\xfd....", "damaged"), ("{}\n".encode("utf-16"), "iconv")],
)
def test_a_file_that_is_named_must_be_a_recording(content, reason, tmp_path):
    """A file on the command line that is none is an error that says what it is."""
    path = tmp_path / "file"
    path.write_bytes(content)
    (found,) = read_path(path)
    assert isinstance(found, Unreadable)
    assert reason in found.reason


def test_a_missing_file(tmp_path):
    """A path that leads nowhere is told as such."""
    (found,) = read_path(tmp_path / "nowhere")
    assert isinstance(found, Unreadable)
    assert "no such file" in found.reason


def test_a_pipe_does_not_hold_it_up(tmp_path):
    """A named pipe is told where it is named and passed by in a directory, and never waited for."""
    os.mkfifo(tmp_path / "pipe.jsonl")
    assert [type(found) for found in read_path(tmp_path / "pipe.jsonl")] == [Unreadable]
    assert [type(found) for found in read_path(tmp_path)] == [Skipped]


PACKERS = {"gz": gzip.compress, "zst": lambda data: bytes(cramjam.zstd.compress(data))}


@pytest.mark.parametrize("packer", PACKERS)
def test_a_packed_file_that_breaks_off_gives_what_stands_before(packer, tmp_path):
    """Sessions before the break are read, and the break is told with the line it follows."""
    text = "".join(
        json.dumps(call(f"s{number}", 0) | {"result": os.urandom(600).hex()}) + "\n" for number in range(800)
    )
    path = tmp_path / f"cut.jsonl.{packer}"
    path.write_bytes(PACKERS[packer](text.encode())[:-40_000])
    found = list(read_path(path))
    whole = [each for each in found if isinstance(each, Session)]
    (fault,) = [each for each in found if isinstance(each, Unreadable)]
    assert 500 < len(whole) < 800
    assert fault.line == len(whole) + 1
    assert "breaks off" in fault.reason


@pytest.mark.parametrize("packer", PACKERS)
def test_a_packed_file_that_is_damaged(packer, tmp_path, lines):
    """Damage inside a packed file is an error, not a crash."""
    content = bytearray(PACKERS[packer](lines(call("s", 0)).read_bytes()))
    content[12:20] = b"\xff" * 8
    path = tmp_path / f"bad.jsonl.{packer}"
    path.write_bytes(bytes(content))
    found = list(read_path(path))
    assert any(isinstance(each, Unreadable) for each in found)


@pytest.mark.parametrize("packer", PACKERS)
@pytest.mark.parametrize("over", [0, 1])
def test_a_packed_file_gives_no_more_than_so_many_times_its_size(packer, over, tmp_path, monkeypatch):
    """A small file that unpacks to a disk full of lines is read up to the limit, and told with what to do."""
    content = b"".join(json.dumps(call("s", number)).encode() + b"\n" for number in range(500))
    path = tmp_path / f"large.jsonl.{packer}"
    path.write_bytes(PACKERS[packer](content))
    monkeypatch.setattr(files, "MAX_RATIO", 0)
    monkeypatch.setattr(files, "MAX_TEXT_BYTES", len(content) - over)
    found = list(read_path(path))
    (session,) = [each for each in found if isinstance(each, Session)]
    faults = [each.reason for each in found if isinstance(each, Unreadable)]
    assert session.calls == 500 - over
    assert len(faults) == over
    assert all("unpack it first" in fault for fault in faults)


def test_a_packed_file_asks_for_no_more_memory_than_is_usual(tmp_path):
    """One whose header asks for a window of gigabytes is an error before anything is set aside for it."""
    path = tmp_path / "wide.jsonl.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd\x00" + bytes([21 << 3]) + b"\x01\x00\x00")  # a window of 2**31 bytes
    (fault,) = read_path(path)
    assert isinstance(fault, Unreadable)
    assert "damaged" in fault.reason
    path.write_bytes(b"\x28\xb5\x2f\xfd\x00" + bytes([17 << 3]) + b"\x01\x00\x00")  # of 2**27
    (fault,) = read_path(path)
    assert isinstance(fault, Unreadable)
    assert "no JSON" in fault.reason


def test_a_line_beyond_the_limit_is_passed_by(lines, monkeypatch, found_in):
    """A line that is too long costs itself only, and is never in memory as a whole."""
    monkeypatch.setattr(files, "MAX_TEXT_BYTES", 300)
    found = found_in(lines(call("a", 0), call("a", 1) | {"result": "x" * 5_000_000}, call("a", 2)))
    assert [fault.line for fault in found.unreadable] == [2]
    assert [session.calls for session in found.sessions] == [2]


def test_a_file_under_two_names_is_read_once(tmp_path, lines):
    """Links to a recording, of either kind, are no second session, and one that leads round is not followed."""
    path = lines(call("s", 0), name="a/b.jsonl")
    (tmp_path / "a" / "soft.jsonl").symlink_to(path)
    os.link(path, tmp_path / "hard.jsonl")
    (tmp_path / "a" / "round").symlink_to(tmp_path)
    (found,) = read_path(tmp_path)
    assert isinstance(found, Session)


def test_names_that_are_no_text(tmp_path, lines):
    """A file name that is not UTF-8 can still be told."""
    path = os.fsencode(tmp_path) + b"/\xff.jsonl"
    with open(path, "wb") as file:  # noqa: PTH123 - a name of bytes
        file.write(lines(call("s", 0), name="x/y.jsonl").read_bytes())
    found = [each for each in read_path(tmp_path) if isinstance(each, Session)]
    assert len(found) == 2
    assert all(session.source.encode() for session in found)
