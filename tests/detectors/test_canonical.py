"""Canonical arguments and digests: what compares equal, what does not, and that nothing breaks them."""

import json

import pytest
from hypothesis import given

from detectors.canonical import canonical_arguments, digest, opened
from schemas.values import MAX_DEPTH
from tests.detectors.reading import json_values, reversed_keys


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"n": 1}, {"n": 1.0}),
        ({"a": 1}, {"a": 1, "b": None}),
        ({"a": {"b": None}}, {"a": {}}),
        ({"path": "src/"}, {"path": "src"}),
        ({"paths": ["src/", "docs//"]}, {"paths": ["src", "docs"]}),
        ({"n": -0.0}, {"n": 0}),
        ({"path": "  src  "}, {"path": "src"}),
        ({"deep": [{"x": 2.0}]}, {"deep": [{"x": 2}]}),
        ({"n": 2**70}, {"n": str(2**70)}),  # as the contract's reader gives it
        ("ls ", "ls"),
    ],
)
def test_spellings_of_one_meaning_are_equal(one, other):
    """Each rule of the canonical form."""
    assert canonical_arguments(one) == canonical_arguments(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1}, {"a": 2}),
        ({"a": 1}, {"a": "1"}),
        ({"a": True}, {"a": 1}),
        ({"a": [1, None]}, {"a": [1]}),
        ({"a": 0.1}, {"a": 0.2}),
        ({"a": 2**70}, {"a": 2**70 + 1}),
        ({"a": "Src"}, {"a": "src"}),
        ({"path": "/"}, {"path": ""}),
        ({"text": "one of src/"}, {"text": "one of src"}),
        ({"a": [1, 2]}, {"a": [2, 1]}),
        ({"a": 1}, {"A": 1}),
        ({"a": 1.5}, {"a": 1}),
        ([], {}),
        ({}, None),
    ],
)
def test_different_meanings_stay_apart(one, other):
    """Comparing too little would make honest work look like a loop."""
    assert canonical_arguments(one) != canonical_arguments(other)


def test_label_arguments_are_left_out_at_the_top_only():
    """A label deeper inside is part of what the call does."""
    labels = ("reason",)
    assert canonical_arguments({"a": 1, "reason": "x"}, labels) == canonical_arguments({"a": 1}, labels)
    assert canonical_arguments({"a": {"reason": "x"}}, labels) != canonical_arguments({"a": {}}, labels)


def test_labels_are_the_content_where_they_are_all_there_is():
    """A tool to think with has nothing but its thought: another thought is another call."""
    labels = ("thought", "reason")
    assert canonical_arguments({"thought": "one"}, labels) != canonical_arguments({"thought": "two"}, labels)
    assert canonical_arguments("thought", labels) == canonical_arguments("thought")


@pytest.mark.parametrize("depth", [64, 65, 254, 255, 1_000, 1_100, 5_000])
def test_json_in_texts_is_opened_as_deep_as_is_safe(depth):
    """Arguments on OpenAI's wire are JSON in a text; what is nested deeper than the contract allows stays a text."""
    text = "[" * depth + "]" * depth
    assert (opened(text) is text) is (depth > MAX_DEPTH)
    assert opened('{"a": 1}') == {"a": 1}
    assert opened("{not json}") == "{not json}"


@given(json_values)
def test_any_json_has_a_canonical_form_that_json_can_read(value):
    """Whatever an agent sends, it has one form, and the form of the form is itself."""
    form = canonical_arguments(value)
    assert canonical_arguments(json.loads(form)) == form


@given(json_values)
def test_order_of_keys_never_matters(value):
    """Reversing every object changes nothing."""
    assert canonical_arguments(reversed_keys(value)) == canonical_arguments(value)


def test_digests_keep_their_parts_apart_and_fit_64_bits():
    """Moving a character from one part to the next is another digest; the value is the published one."""
    assert digest("ab", "c") != digest("a", "bc")
    assert 0 <= digest("x") < 2**64
    assert digest("x") == digest(b"x")
