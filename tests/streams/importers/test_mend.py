"""Damaged JSON: what is kept, what is marked, and what is refused."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.importers.mend import CUT, NotJson, parse

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_sound_json_is_untouched(value):
    """What is JSON is read as it is, and nothing is said to be damaged."""
    parsed = parse(json.dumps(value).encode())
    assert (parsed.value, parsed.damage) == (value, "none")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (rb'{"a": "x\user@example.org"}', {"a": "x\\user@example.org"}),
        (b'{"a": "line\nbreak\ttab"}', {"a": "line\nbreak\ttab"}),
        (rb'{"a": "\d\\d"}', {"a": "\\d\\d"}),
        (b'{"a": "\xff"}', {"a": "\ufffd"}),
        (rb'{"a": "half \ud83d pair"}', {"a": "half \ufffd pair"}),
    ],
)
def test_spoilt_texts_are_kept_literally(text, value):
    """Escapes, control characters and bytes that JSON does not allow stay as text; nothing is lost."""
    parsed = parse(text)
    assert (parsed.value, parsed.damage) == (value, "escapes")


def test_whole_surrogate_pairs_survive_beside_a_bad_escape():
    """Mending one escape does not break its neighbours."""
    assert parse(rb'{"a": "\ud83d\ude00 \q"}').value == {"a": "\U0001f600 \\q"}


def test_nan_is_a_number_to_those_who_write_it():
    """Python's own writers emit NaN; the rest of the line is not lost for it."""
    assert parse(b'{"a": NaN, "b": 1}').value["b"] == 1


def test_a_cut_is_marked_on_every_open_object():
    """Behind a redaction, what was whole is kept, and each object that was open says that it is not."""
    parsed = parse(b'{"a": 1, "b": {"c": [1, {"d": "x"}, {"e": "To: [REDACTED_NAME]')
    assert parsed.damage == "cut"
    assert parsed.value == {"a": 1, "b": {"c": [1, {"d": "x"}, {CUT: True}], CUT: True}, CUT: True}


def test_a_cut_inside_a_number():
    """A number that a scrubber took for a telephone's ends the line there, with all before it kept."""
    parsed = parse(b'{"message": {"x": [1]}, "seconds": 23[REDACTED_PHONE]48, "more": 2}')
    assert parsed.value == {"message": {"x": [1]}, CUT: True}


@given(JSON, st.integers(0, 60))
def test_any_cut_gives_a_part_or_an_error(value, at):
    """Wherever a scrubber cuts, the result is a value or a refusal, never a crash."""
    text = json.dumps({"k": value, "l": [value]})[:at] + '"[REDACTED]'
    with contextlib.suppress(NotJson):
        assert parse(text.encode()).damage != "escapes"


@pytest.mark.parametrize(
    "text",
    [b'{"a": 1, "b": "to be cont', b"plain words", b"", b'{"a": 1}}', b"[" * 100_000, b"9" * 5_000],
    ids=["torn", "words", "nothing", "too much", "deep", "long number"],
)
def test_the_rest_is_refused_with_a_reason(text):
    """Without a redaction nothing is made of a broken text, and the reason says where."""
    with pytest.raises(NotJson) as caught:
        parse(text)
    assert caught.value.reason
    assert caught.value.line == 1


def test_the_line_of_a_fault_in_a_document():
    """In a document over several lines the fault is told by its line."""
    with pytest.raises(NotJson) as caught:
        parse(b'{\n "a": 1,\n "b": oops\n}')
    assert caught.value.line == 3
