"""What is not to leave the machine does not, and what is left can still be compared."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from detectors import Limits, SessionState, observe
from detectors.canonical import canonical_arguments, opened
from detectors.masks import mask_result
from schemas.common import ErrorInfo, Usage
from schemas.decode import decode
from schemas.encode import encode
from schemas.events import ToolCall
from schemas.testing import tool_call
from schemas.topics import TOPICS
from streams.privacy import EXCERPT_CHARS, Level, arguments_digest, reduce, result_digest

TOPIC = next(topic for topic in TOPICS if topic.record is ToolCall)
LEVELS: tuple[Level, ...] = ("digests", "excerpts", "full")
WORDS = st.text("abcXYZ ÄÖ€\n", min_size=1, max_size=300)
ARGUMENTS = st.recursive(
    WORDS | st.integers(0, 3) | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=5,
)
SECRET = "hunter2-correct-horse"  # noqa: S105 - what must not survive


def call(arguments: Any = UNSET, result: Any = UNSET, **fields: Any) -> ToolCall:
    """A call without the defaults of a test's call."""
    return tool_call(0, "Write", {"x": 1} if arguments is UNSET else arguments, result, **fields)


@settings(deadline=None)
@given(st.text("abcdef0123456789", min_size=12, max_size=12), st.sampled_from(["text", "key", "deep", "json"]))
def test_nothing_of_any_text_survives_in_digests(secret, shape):
    """Wherever a text stands, in arguments, results or errors, it is not in the record."""
    inner = {"text": {"a": secret}, "key": {secret: 1}, "deep": [[{"a": [f"x{secret}"]}]], "json": json.dumps([secret])}
    error = ErrorInfo(type=f"Error: {secret}", code=f"no {secret}", message=secret)
    event = call(inner[shape], inner[shape], error=error, status="error", usage=Usage(output_tokens=3))
    reduced = reduce(event, "digests")
    assert secret.encode() in encode(event)
    assert secret.encode() not in encode(reduced)
    assert (reduced.arguments, reduced.result) == (UNSET, UNSET)
    assert reduced.error is not None
    assert (reduced.error.type, reduced.error.code, reduced.error.message) == (None, None, None)
    assert (reduced.usage, reduced.status, reduced.event_id) == (event.usage, "error", event.event_id)


@settings(deadline=None)
@given(ARGUMENTS, ARGUMENTS)
def test_arguments_are_equal_after_reducing_if_they_are_before(one, other):
    """At every level, what detectors take for the same is the same, and nothing else is."""
    assume(canonical_arguments(one) != canonical_arguments(other))
    for level in LEVELS:
        first, respelt, second = (compared(reduce(call(each), level)) for each in (one, spelt_otherwise(one), other))
        assert first == respelt != second
        if isinstance(one, dict | list):
            assert compared(reduce(call(json.dumps(one)), level)) == first


def spelt_otherwise(value: Any) -> Any:
    """The same arguments with white space around texts, and integers as fractions."""
    if isinstance(value, dict):
        return {key: spelt_otherwise(item) for key, item in value.items()}
    if isinstance(value, list):
        return [spelt_otherwise(item) for item in value]
    if isinstance(value, str):
        return f" {value}\n"
    return value if isinstance(value, bool) else float(value)


def compared(event: ToolCall) -> Any:
    """What of a call's arguments detectors compare."""
    return event.arguments_digest if event.arguments is UNSET else canonical_arguments(opened(event.arguments))


@settings(deadline=None)
@given(WORDS, WORDS)
def test_results_are_equal_after_reducing_if_they_are_before(one, other):
    """Digests of results differ where detectors see a difference, beyond the excerpt as well."""
    assume(mask_result(one) != mask_result(other))
    for level in LEVELS:
        first, again, second = (reduce(call(result=each), level) for each in (one, one, other))
        assert first == again
        assert (first.result, first.result_digest) != (second.result, second.result_digest)


def test_what_changes_at_every_call_is_not_in_a_digest():
    """Times and durations do not make a result another; what only labels a call does not make it another call."""
    assert result_digest("Write", "done in 3.21s at 2026-11-30T09:14:07Z") == result_digest(
        "Write", "done in 4.5s at 2026-11-30T10:00:00Z"
    )
    assert result_digest("Write", "done in 3.21s: 5 files") != result_digest("Write", "done in 3.21s: 6 files")
    labelled = [{"command": "ls", "description": text} for text in ("List files", "Show what is here")]
    assert arguments_digest("Bash", labelled[0]) == arguments_digest("Bash", labelled[1])


@pytest.mark.parametrize("level", LEVELS)
def test_reducing_again_changes_nothing_and_the_contract_holds(level):
    """A record that was reduced before it came is the same afterwards, and can be read."""
    for event in (
        call({"a": ["x" * 500, 1], "y" * 200: None}, "z" * 500, error=ErrorInfo(type="OSError", message="m" * 900)),
        call("x" * 500, {"a": "z" * 500}),
        call(' {"command": "make test"}\n', "done"),
        call({"command": f"sed -i s/a/b/ {'f' * 500}"}, "done"),
        call(None, None),
        call(arguments_digest="d", result_digest="r", result_length=9),
    ):
        once = reduce(event, level)
        assert reduce(once, level) == once
        assert decode(TOPIC, encode(once)) == decode(TOPIC, encode(once))
    assert reduce(call(None, None), "digests").arguments_digest is None


def test_two_steps_tell_as_much_as_one():
    """What was sent as excerpts before it is reduced to digests says what it is for, and by which program."""
    long = msgspec.structs.replace(call({"command": f"sed -i s/a/b/ {'f' * 500}"}), tool="Bash")
    once, twice = reduce(long, "digests"), reduce(reduce(long, "excerpts"), "digests")
    assert once.use == twice.use
    assert once.use is not None
    assert (once.use.kind, once.use.changes) == ("edit", True)
    assert once.use.program_digest is not None


def test_full_is_everything():
    """Nothing is changed."""
    event = call({"a": SECRET * 99}, SECRET * 99)
    assert reduce(event, "full") is event


@pytest.mark.parametrize(("chars", "cut"), [(EXCERPT_CHARS, False), (EXCERPT_CHARS + 1, True)])
def test_excerpts_keep_the_beginning(chars, cut):
    """Short texts stay, longer ones are cut: in arguments with a digest, in results as the contract has it."""
    text = "t" * chars
    event: Any = reduce(call({"a": {"b": [text]}}, text, error=ErrorInfo(message=text)), "excerpts")
    (kept,) = event.arguments["a"]["b"]
    assert (kept != text, kept[:EXCERPT_CHARS], event.error.message == kept) == (cut, text[:EXCERPT_CHARS], True)
    assert event.result == text[:EXCERPT_CHARS]
    assert (event.result_length, event.result_digest is not None) == ((chars, True) if cut else (None, False))


def test_a_key_makes_guesses_useless():
    """The same text has another digest under another key, and the same under the same."""
    event = call({"a": SECRET}, SECRET)
    first, again, other = (reduce(event, "digests", key) for key in (b"k1", b"k1", b"k2"))
    assert first == again
    assert not {first.arguments_digest, first.result_digest} & {other.arguments_digest, other.result_digest}


def test_the_kind_of_an_error_stays_and_messages_are_told_apart():
    """A class and a number say nothing secret; two messages are two failures, one message is one."""
    errors = [
        ErrorInfo(type="OSError", code=2, message=text) for text in ("no file of it", "no file of it", "no room left")
    ]
    reduced = [reduce(call(result="x", error=error), "digests") for error in errors]
    first, again, other = (each.error for each in reduced)
    assert first is not None
    assert other is not None
    assert (first.type, first.code, first.message) == ("OSError", 2, None)
    assert first == again
    assert first.digest != other.digest
    assert reduced[0].result_digest == reduced[1].result_digest != reduced[2].result_digest


@pytest.mark.parametrize("level", LEVELS)
def test_a_loop_is_found_at_every_level(level):
    """Equal calls with equal results alert, different ones do not, however little is sent."""
    for same in (True, False):
        state = SessionState()
        events = [
            tool_call(n, "Bash", {"command": f"make -C {'lib' if same else n} {'x' * 300}"}, f"err {'y' * 300}")
            for n in range(5)
        ]
        alerts = [alert for each in events for alert in observe(state, reduce(each, level), Limits())]
        assert ("identical" in {alert.detector for alert in alerts}) == same
