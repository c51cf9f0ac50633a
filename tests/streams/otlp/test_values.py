"""Arguments and results are read for what they are, and what is hidden or cut is not known."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from schemas.events import ToolCall
from streams.otlp import Memory, decode_traces, map_traces
from streams.otlp.attributes import RESULT
from streams.otlp.values import read_arguments, read_result, result_in
from tests.streams.otlp.otlp_kit import RECEIVED, span, traces_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(st.characters(codec="utf-8"), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=3), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize(
    "value",
    [
        *(None, "", "  ", "__REDACTED__", "[REDACTED]", "<redacted>", " *** hidden ***"),
        *('{"path": "src/very/lon', '[{"a": 1}, {"b', '{"a": 1}...', {"command": "[REDACTED]", "cwd": "<masked>"}),
    ],
)
def test_what_is_missing_hidden_or_cut_is_not_known(value):
    """Nothing is left to compare: equal remains are no equal calls."""
    assert read_arguments(value) is UNSET


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("{}", {}),
        ({}, {}),
        (' {"a": 1}\n', {"a": 1}),
        ("ls -la", "ls -la"),
        ("{'a': 1}", "{'a': 1}"),
        ("show the redacted file", "show the redacted file"),
        (f"{'-' * 40}redacted", f"{'-' * 40}redacted"),
        ({"command": "[REDACTED]", "cwd": "/a"}, {"command": "[REDACTED]", "cwd": "/a"}),
        ({"input_str": "{'a': 1}", "tags": [3], "inputs": {"a": 1}}, {"a": 1}),
        ({"input_str": '{"a": 1}', "tags": [3], "inputs": None}, {"a": 1}),
        ({"args": [], "kwargs": {"a": 1}}, {"a": 1}),
        ({"args": [2], "kwargs": {"a": 1}}, {"args": [2], "kwargs": {"a": 1}}),
    ],
)
def test_arguments_are_taken_out_of_what_is_around_them(value, wanted):
    """As a value or as its text, the same arguments are the same."""
    assert read_arguments(value) == wanted
    if not isinstance(value, str):
        assert read_arguments(json.dumps(value)) == wanted


@pytest.mark.parametrize(
    ("value", "wanted", "failed"),
    [
        (None, UNSET, False),
        ("", "", False),
        ("__REDACTED__", UNSET, False),
        ("plain", "plain", False),
        ('{"content": "of a file"}', '{"content": "of a file"}', False),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "isError": True}, "a\nb", True),
        ({"content": "x", "tool_call_id": "volatile-1", "status": "error"}, "x", True),
        ({"output": {"content": "x", "tool_call_id": "volatile-2"}, "kwargs": {"run": 1}}, "x", False),
        ({"output": 5}, 5, False),
        ([1, 2], [1, 2], False),
    ],
)
def test_a_result_is_what_the_model_saw(value, wanted, failed):
    """Wrappers and the ids in them go; what says itself that it failed did."""
    assert read_result(value) == (wanted, failed)
    if isinstance(value, dict):
        assert read_result(json.dumps(value)) == (wanted, failed)


BLOCKS = [{"type": "text", "text": "1 failed"}, {"type": "text", "text": "in 2 s"}]
ROWS = [{"type": "user", "text": "an object of the tool's own"}]
GENAI, OPENINFERENCE, OPENLLMETRY, CODEX = RESULT
AS_JSON = {"output.mime_type": "application/json"}


@pytest.mark.parametrize(
    "attributes",
    [
        {GENAI: json.dumps(BLOCKS)},
        {GENAI: BLOCKS},
        {GENAI: json.dumps({"content": BLOCKS})},
        {OPENLLMETRY: json.dumps(BLOCKS)},
        {OPENLLMETRY: json.dumps({"output": BLOCKS})},
        {OPENLLMETRY: json.dumps("1 failed\nin 2 s")},
        {OPENINFERENCE: json.dumps(BLOCKS), **AS_JSON},
        {OPENINFERENCE: json.dumps({"content": BLOCKS, "isError": False}), **AS_JSON},
    ],
)
def test_content_that_came_as_a_string_is_the_text_that_it_is_as_a_value(attributes):
    """Where the conventions have a value's JSON in the attribute, the same result is the same whichever way it came."""
    spans = traces_json(span(0, "execute_tool t", {"gen_ai.operation.name": "execute_tool", **attributes}))
    [made] = map_traces(decode_traces(spans, "json"), RECEIVED, Memory()).events
    assert isinstance(made.event, ToolCall)
    assert made.event.result == "1 failed\nin 2 s"


@pytest.mark.parametrize(
    "attributes",
    [
        {CODEX: json.dumps(BLOCKS)},
        {OPENINFERENCE: json.dumps(BLOCKS)},
        {OPENINFERENCE: json.dumps(BLOCKS), "output.mime_type": "text/plain"},
        {GENAI: json.dumps(ROWS)},
        {GENAI: json.dumps({"content": ROWS})},
        {GENAI: json.dumps({"content": BLOCKS, "rows": 2})},
        {GENAI: '"quoted by the tool"'},
        {OPENLLMETRY: '"begun and "never ended"'},
        {GENAI: "[not JSON]"},
    ],
)
def test_output_that_happens_to_be_json_stays_the_text_that_it_is(attributes):
    """What a tool printed is nobody's to read as something else, nor are objects of its own."""
    assert result_in(attributes) == (next(iter(attributes.values())), False)


@settings(deadline=None)
@given(JSON)
def test_any_value_and_its_text_are_the_same_arguments(value):
    """Structured attributes and texts of JSON do not make one call two."""
    if isinstance(value, dict | list):
        assert read_arguments(json.dumps(value)) == read_arguments(value)
    read_result(value)
