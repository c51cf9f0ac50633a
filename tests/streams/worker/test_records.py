"""Changelog records are versioned: what this release does not know is refused, never guessed at."""

from __future__ import annotations

import msgspec
import pytest

from detectors import SessionState, TaskState, decode_state, decode_task, encode_state, encode_task
from detectors.state import STATE_VERSION
from detectors.tasks.state import TASK_VERSION
from streams.worker.records import (
    FORMAT,
    HEARTBEAT_KEY,
    MAX_STATE_BYTES,
    SESSION,
    TASK,
    UnsupportedRecord,
    check_stored,
    decode_stored,
    encode_stored,
    read_head,
)

APPLIED = {"tool-calls": (2**40, 1_700_000_000_000), "control": (0, -1)}
NOT_OVER = False
STATE = encode_state(SessionState(session_id="s" * 100))


def packed(*fields: object) -> bytes:
    """Give a record with any fields."""
    return msgspec.msgpack.encode(fields)


@pytest.mark.parametrize(("kind", "version"), [(SESSION, STATE_VERSION), (TASK, TASK_VERSION)])
@pytest.mark.parametrize("over", [True, False])
def test_what_is_written_is_read(kind: int, version: int, *, over: bool) -> None:
    """Offsets, times and the state's bytes come back as they were, with or without the state."""
    data = encode_stored(kind, APPLIED, STATE, over=over)
    check_stored(data)
    found, head = decode_stored(data), read_head(data)
    assert (found.format, found.kind, found.version, found.applied, found.state) == (
        FORMAT,
        kind,
        version,
        APPLIED,
        STATE,
    )
    assert (head.kind, head.version, head.over, head.applied) == (kind, version, over, APPLIED)
    assert found.over is over


def test_what_repeats_takes_little_room() -> None:
    """States are full of names and texts that come again and again."""
    assert len(encode_stored(SESSION, {}, b"the same text " * 500)) < 200


REFUSED = {
    "a newer form": (
        (FORMAT + 1, {"new": "form"}),
        f"has format {FORMAT + 1}.*run the release that wrote it, or a newer",
    ),
    "one of nothing else": ((FORMAT + 1,), f"has format {FORMAT + 1}"),
    "a newer session": (
        (FORMAT, SESSION, STATE_VERSION + 1, NOT_OVER, {}, b""),
        f"a session's state has version {STATE_VERSION + 1}, of a newer release; .*Run the release that wrote it",
    ),
    "a newer task": (
        (FORMAT, TASK, TASK_VERSION + 1, NOT_OVER, {}, b"", "and more"),
        f"a task's state has version {TASK_VERSION + 1}, of a newer release",
    ),
    "a version of many bytes": ((FORMAT, TASK, 2**40, NOT_OVER, {}, b""), f"version {2**40}, of a newer release"),
    "an old session": (
        (FORMAT, SESSION, 4, NOT_OVER, {}, b""),
        f"a session's state has version 4, of an older .*reads versions 5 to {STATE_VERSION}. Run a release first that",
    ),
    "an old session in an old form": (
        (1, {}, packed(4, "s", *range(40))),
        "a session's state has version 4, of an older",
    ),
    "an old task in an old form": ((1, {}, packed(1, [])), "a task's state has version 1, of an older release"),
    "a newer task in an old form": ((1, {}, packed(99, [])), "a task's state has version 99, of a newer release"),
}


@pytest.mark.parametrize(("fields", "told"), REFUSED.values(), ids=REFUSED)
def test_other_forms_and_versions_are_refused_by_their_number(fields: tuple[object, ...], told: str) -> None:
    """Whoever looks, however deep: with what was found, what is read, and what to do."""
    for look in (check_stored, read_head, decode_stored):
        with pytest.raises(UnsupportedRecord, match=told):
            look(packed(*fields))


NONE = [
    b"",
    b"\xc1",
    b"{}",
    packed(),
    packed(FORMAT, 3),
    packed(FORMAT, SESSION),
    packed(FORMAT, SESSION, STATE_VERSION),
    packed("2", SESSION, STATE_VERSION, NOT_OVER, {}, b""),
    packed(FORMAT, SESSION, STATE_VERSION, NOT_OVER, {}, b"", "and more"),
    packed(1),
    packed(1, {}),
    packed(1, {}, b""),
    packed(1, {}, b"\xc1"),
    packed(1, 7, packed(2, [])),
]


@pytest.mark.parametrize("data", NONE)
def test_what_is_no_record_is_refused(data: bytes) -> None:
    """Anything else in the changelog is no session."""
    for look in (check_stored, read_head, decode_stored):
        with pytest.raises(UnsupportedRecord, match="cannot be read"):
            look(data)


@pytest.mark.parametrize(
    "state", [b"", b"\x05", b"\x05\x00\x00\x00junk", (MAX_STATE_BYTES + 1).to_bytes(4, "little") + b"\x00", 7, None]
)
def test_a_damaged_state_is_refused(state: object) -> None:
    """Also one that says that it is larger than any state: no room is made for it."""
    data = packed(FORMAT, SESSION, STATE_VERSION, NOT_OVER, {}, state)
    check_stored(data)
    with pytest.raises(UnsupportedRecord, match="cannot be read"):
        decode_stored(data)


def test_records_of_the_first_form_are_read() -> None:
    """As they were written before kinds and versions stood in front; how each was over is not known then."""
    session = packed(1, APPLIED, packed(5, "s", *msgspec.structs.astuple(SessionState())[1:]))
    task = packed(1, APPLIED, packed(2, msgspec.structs.astuple(TaskState(task_id="t"))))
    for data, kind, version in ((session, SESSION, 5), (task, TASK, 2)):
        check_stored(data)
        found = decode_stored(data)
        assert (found.kind, found.version, found.over, found.applied) == (kind, version, False, APPLIED)
        assert read_head(data).applied == APPLIED
    assert decode_state(decode_stored(session).state) == SessionState(session_id="s")
    assert decode_task(decode_stored(task).state, TaskState) == TaskState(task_id="t")
    again = encode_stored(TASK, APPLIED, encode_task(TaskState(task_id="t")))
    assert decode_task(decode_stored(again).state, TaskState) == TaskState(task_id="t")


def test_no_session_has_the_heartbeat_s_key() -> None:
    """Session ids are text; the heartbeat's key is none."""
    with pytest.raises(UnicodeDecodeError):
        HEARTBEAT_KEY.decode("utf-8")
