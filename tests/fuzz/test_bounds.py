"""What one input may cost is bounded: time as its length, memory as its length, and the state not at all.

Monsters of every kind that a broker lets through, and texts that make careless readers slow, go through reading and
judging. Nothing is compared with a clock but one length of a text with another.
"""

from __future__ import annotations

import json
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from detectors import Limits, SessionState, TaskState, encode_state, encode_task, observe_task, step
from detectors.catalogue import Tools
from detectors.tasks.diffs import read_diff
from schemas import topics
from schemas.decode import MAX_VALUE_BYTES, decode
from schemas.encode import encode
from schemas.invalid import InvalidEvent
from schemas.testing import fix_attempt, session_event, tool_call
from streams.kafka import MAX_DEAD_LETTER_BYTES
from streams.received import MAX_KEPT_HEADER_BYTES, dead_letter
from tests.fuzz.wire import record

LIMITS = Limits()
SHORT, LONG = 16_000, 64_000
"""Characters: below what is read of any text, so that nothing is hidden by the cut."""

ROUGH = 3
"""How far from straight growth may stray; squares stray fourfold and grow on."""

FLOOR_SECONDS = 0.004
"""Shorter times say nothing."""

MOST_STATE_BYTES = 16 * 2**10
"""Of a session or task after events of any size: the aim for the largest."""

MOST_ALERT_BYTES = 64 * 2**10
"""Of one alert or event of a task, whatever it is about."""

MOST_TIMES = 150
"""Bytes of memory for each byte of a record, while it is read and judged: an empty list in a list takes three bytes and
becomes an object of 56 and a place of 8, in each form that is compared. Of one record at a time."""

ROOM_BYTES = 4 * 2**20
"""Memory that needs no reason."""

TEXTS = (
    "a", "_", " ", "\n", "1", '"\\"', "'", "`", "/* ", "<a ", "[", ":", "12:00:00 ", "error: x\n", "FAILED a::b - c\n",
    "Traceback (most recent call last)\n", "ValueError: x\n", "a.b.", "a/", "a/b.py:3: ", "12345678-1234-1234-",
    "\x1b[", "a=", '{"a":', "\u00e9", "\U0001f600", "$(", "<<E\n", "ls;", "a&&b|", "+\n-\n", "@@ -1 +1 @@\n-a\n+b\n",
    "diff --git a/x b/x\n", "--- a\n+++ b\n", "the quick ", "-", "# ", "token=", "\t", "\r\n", "\0", "page:", "uid=1_",
    "[ref=e", "clicked ", "*** Update File: a\n", "not ok 1 - a \n", "call_", "session: ", "at url: ", "```sh\n",
)  # fmt: skip
"""What a text repeats."""

DOORS: dict[str, Callable[[str], Any]] = {
    "a command's result": lambda text: tool_call(1, "bash", {"command": "pytest"}, text),
    "a failed command": lambda text: tool_call(1, "bash", {"command": "ls"}, text, error="E"),
    "a page": lambda text: tool_call(1, "browser_click", {"ref": "e1"}, text),
    "an unknown tool": lambda text: tool_call(1, "zzz", text, text, error="E"),
    "a command": lambda text: tool_call(1, "bash", {"command": text}),
    "an edit": lambda text: tool_call(1, "edit", {"path": "a.js", "new_string": text, "old_string": text}),
    "a search": lambda text: tool_call(1, "grep", {"pattern": text}, text),
    "a diff": lambda text: fix_attempt(1, "x", diff=text),
    "a failure": lambda text: fix_attempt(1, text[:8_000], error_message=text),
}
"""Where a text may stand."""


def judge(event: Any, times: int = 3) -> list[bytes]:
    """Have an event looked at some times, and give what is written for it."""
    state, task = SessionState(), TaskState()
    written = []
    for _ in range(times):
        alerts, told = step(state, event, LIMITS)
        if told is not None:
            written.append(encode_task(told))
            alerts += observe_task(task, told, LIMITS)
        written += map(encode, alerts)
    assert len(encode_state(state)) <= MOST_STATE_BYTES
    assert len(encode_task(task)) <= MOST_STATE_BYTES
    assert max(map(len, written), default=0) <= MOST_ALERT_BYTES
    return written


def cost(event: Any, times: int) -> float:
    """Measure the processor time that an event takes, in seconds: the least of some tries."""
    least = float("inf")
    for _ in range(times):
        begun = time.process_time()
        judge(event)
        least = min(least, time.process_time() - begun)
    return least


@pytest.mark.parametrize("door", DOORS)
def test_the_work_grows_as_the_text(door):
    """Four times the text takes four times the work, of whatever text, wherever it stands."""
    for text in TEXTS:
        short, long = (DOORS[door](text * (length // len(text))) for length in (SHORT, LONG))
        quick = max(FLOOR_SECONDS, cost(short, 1))
        if cost(long, 1) > ROUGH * (LONG / SHORT) * quick:  # the machine may have done something else
            quick = max(FLOOR_SECONDS, cost(short, 3))
            assert cost(long, 3) <= ROUGH * (LONG / SHORT) * quick, repr(text)


CALL = json.dumps(json.loads(encode(tool_call(1))) | {"arguments": 0}).encode()


def call(arguments: str | bytes) -> bytes:
    """Give a call with these arguments, in JSON."""
    value = arguments.encode() if isinstance(arguments, str) else arguments
    return CALL.replace(b'"arguments": 0', b'"arguments": ' + value)


def nested(opening: str, closing: str, depth: int) -> bytes:
    """Give a call whose arguments are nested so deep."""
    return call(opening * depth + "1" + closing * depth)


REFUSED: dict[str, tuple[bytes, str]] = {
    "100,000 lists in lists": (nested("[", "]", 100_000), "too_deep"),
    "100,000 objects in objects": (nested('{"a":', "}", 100_000), "too_deep"),
    "one list too deep": (nested("[", "]", 65), "too_deep"),
    "10 MB": (call('"' + "x" * 10_000_000 + '"'), "too_large"),
    "one byte too many": (CALL + b" " * (MAX_VALUE_BYTES + 1 - len(CALL)), "too_large"),
    "a million keys": (call("{" + ",".join(f'"{n}":1' for n in range(1_000_000)) + "}"), "too_large"),
    "a million items": (call("[" + "0," * 999_999 + "0]"), "too_large"),
    "1e999": (call("1e999"), "invalid_value"),
    "NaN": (call("NaN"), "not_json"),
    "Infinity": (call("-Infinity"), "not_json"),
    "half a surrogate pair": (call(r'"\ud83d"'), "not_json"),
    "no UTF-8": (call(b'"\xff"'), "not_utf8"),
    "surrogates in UTF-8": (call(b'"\xed\xa0\xbd"'), "not_utf8"),
}

TAKEN: dict[str, bytes] = {
    "as deep as may be": nested("[", "]", 64),
    "as large as may be": CALL + b" " * (MAX_VALUE_BYTES - len(CALL)),
    "80,000 keys": call("{" + ",".join(f'"{n}":1' for n in range(80_000)) + "}"),
    "keys that are one": call("{" + '"a":1,' * 140_000 + '"a":2}'),
    "500,000 items": call("[" + "0," * 499_999 + "0]"),
    "300,000 lists": call("[" + "[]," * 299_999 + "[]]"),
    "lists that branch": call("[" + "[[[[[[0],0],0],0],0],0]," * 40_000 + "0]"),
    "JSON in a text": call(json.dumps("[" + "0," * 400_000 + "0]")),
    "10**4000": call("1" + "0" * 4_000),
    "NULs": call('"' + "\\u0000" * 170_000 + '"'),
    "a diff of many lines": encode(fix_attempt(1, "x", diff="+\n" * 340_000)),
    "a wide failure": encode(fix_attempt(1, "x", error_message="E: " * 300_000)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_monsters_that_are_refused(name):
    """Each is refused for its own reason, in words that do not repeat it."""
    value, reason = REFUSED[name]
    with pytest.raises(InvalidEvent) as refused:
        decode(topics.TOOL_CALLS, value)
    assert refused.value.reason == reason
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("name", TAKEN)
def test_monsters_that_are_taken(name):
    """Each is judged; memory stays a multiple of its length, and what is kept and written of it is small."""
    value = TAKEN[name]
    topic = topics.FIX_ATTEMPTS if b"attempt_id" in value else topics.TOOL_CALLS
    tracemalloc.start()
    try:
        judge(decode(topic, value), 1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= MOST_TIMES * len(value) + ROOM_BYTES, f"{peak / len(value):.0f} bytes for each"


def test_a_number_that_no_python_reads():
    """An integer of more digits than Python turns into text is refused, or read without them; it ends nothing."""
    for digits in (sys.get_int_max_str_digits(), sys.get_int_max_str_digits() + 1, 100_000):
        reason = ""
        try:
            judge(decode(topics.TOOL_CALLS, call("9" * digits)))
        except InvalidEvent as refused:
            reason = refused.reason
        assert reason in {"", "not_json", "invalid_value"}


def test_texts_that_no_broker_takes():
    """A diff of a million lines and a command of 5 MB, as in a recording, are read as quickly as they are long."""
    change, _ = read_diff("--- a/x\n+++ b/x\n@@ -1,500000 +1,500000 @@\n" + "-a\n+b\n" * 500_000)
    assert change.digest
    _, paths = read_diff("diff --git a/" + " b/" * 300_000 + "\t\n")  # where the second name begins nobody can tell
    assert len(paths) == 1
    assert len(encode_task(TaskState())) < MOST_STATE_BYTES
    assert Tools().use("bash", {"command": "x" * 5_000_000}).executes


def test_a_hundred_thousand_headers():
    """They are read, and what is too much of them is left out of the dead letter."""
    many = [(f"h{number}", b"x" * 100) for number in range(100_000)]
    value = encode(session_event(1, "started"))
    assert decode(topics.SESSIONS, value, many) == decode(topics.SESSIONS, value)
    letter = dead_letter(record("in", value, b"s", many), InvalidEvent("empty", "no", "do"), "g")
    size = sum(len(name) + len(content or b"") for name, content in letter.headers)
    assert size <= MAX_KEPT_HEADER_BYTES
    assert size + len(value) <= MAX_DEAD_LETTER_BYTES
