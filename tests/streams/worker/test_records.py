"""Changelog records are versioned: what this release does not know is refused, never guessed at."""

from __future__ import annotations

import msgspec
import pytest

from streams.worker.records import FORMAT, HEARTBEAT_KEY, UnsupportedRecord, decode_stored, encode_stored


def test_what_is_written_is_read() -> None:
    """Offsets, times and the state's bytes come back as they were."""
    applied = {"tool-calls": (2**40, 1_700_000_000_000), "control": (0, -1)}
    found = decode_stored(encode_stored(applied, b"\x00state"))
    assert (found.format, found.applied, found.state) == (FORMAT, applied, b"\x00state")


@pytest.mark.parametrize("later", [[FORMAT + 1, {"new": "form"}], [FORMAT + 1]])
def test_a_newer_format_is_named(later: list[object]) -> None:
    """A record of a newer release is refused with what to do, whatever is in it."""
    with pytest.raises(UnsupportedRecord, match=f"has format {FORMAT + 1}.*run the release that wrote it"):
        decode_stored(msgspec.msgpack.encode(later))


@pytest.mark.parametrize("data", [b"", b"\xc1", b"{}", msgspec.msgpack.encode([]), msgspec.msgpack.encode([FORMAT, 3])])
def test_what_is_no_record_is_refused(data: bytes) -> None:
    """Anything else in the changelog is no session."""
    with pytest.raises(UnsupportedRecord, match="cannot be read"):
        decode_stored(data)


def test_no_session_has_the_heartbeat_s_key() -> None:
    """Session ids are text; the heartbeat's key is none."""
    with pytest.raises(UnicodeDecodeError):
        HEARTBEAT_KEY.decode("utf-8")
