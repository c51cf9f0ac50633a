"""Requests are read alike in both encodings, item by item and within bounds, whatever is sent."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.otlp import InvalidRequest, decode_logs, decode_traces, items, map_logs, map_traces
from streams.otlp.items import MAX_ATTRIBUTES, MAX_NESTING, MAX_SPAN_EVENTS, MAX_TEXT_CHARS
from streams.otlp.memory import Memory
from tests.streams.otlp.otlp_kit import (
    ENCODINGS,
    RECEIVED,
    TRACE,
    log,
    logs_json,
    logs_protobuf,
    span,
    traces_json,
    traces_protobuf,
)

TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | TEXTS | st.binary(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
ATTRIBUTES = st.dictionaries(TEXTS, VALUES, max_size=4)
ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | TEXTS
    | st.sampled_from(["9" * 30, "-1", "1.5", "0" * 32]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(ATTRIBUTES, ATTRIBUTES, TEXTS, st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 2**64 - 1)))
def test_both_encodings_of_a_trace_request_are_read_alike(own, resource, name, numbers):
    """What a span says does not depend on how it was written."""
    kind, status, end = numbers
    spans = [
        span(0, name, own, kind=kind, status=status, end=end, message=name),
        span(1, name, {}, parent=0, events=[(name, own)], start=end),
    ]
    decoded = decode_traces(traces_json(*spans, resource=resource, scope=name), "json")
    assert decoded == decode_traces(traces_protobuf(*spans, resource=resource, scope=name), "protobuf")
    assert (len(decoded.spans), decoded.refused) == (2, [])


@settings(max_examples=60, deadline=None)
@given(ATTRIBUTES, ATTRIBUTES, TEXTS, VALUES)
def test_both_encodings_of_a_log_request_are_read_alike(own, resource, name, body):
    """What a log record says does not depend on how it was written."""
    records = [log(0, own, body=body, event_name=name), log(1, {}, trace=TRACE, time=0)]
    decoded = decode_logs(logs_json(*records, resource=resource, scope=name), "json")
    assert decoded == decode_logs(logs_protobuf(*records, resource=resource, scope=name), "protobuf")
    assert (len(decoded.records), decoded.refused) == (2, [])


def test_enums_may_be_names_and_unknown_fields_are_passed_by():
    """Numbers and names mean the same; what a later version adds or nobody knows does no harm."""
    request = json.loads(traces_json(span(0, "a", kind=3, status=2)))
    plain = decode_traces(json.dumps(request).encode(), "json")
    each = request["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    each.update(kind="SPAN_KIND_CLIENT", flags=257, links=[{"traceId": 7}], attributes=None, newField={"a": [1]})
    each["status"]["code"] = "STATUS_CODE_ERROR"
    request["newField"] = 1
    assert decode_traces(json.dumps(request).encode(), "json") == plain
    each.update(kind="SPAN_KIND_OTHER", status={"code": 77})
    (other,) = decode_traces(json.dumps(request).encode(), "json").spans
    assert (other.kind, other.status) == (0, 0)


def test_an_empty_request_has_no_items():
    """Nothing to tell is no fault."""
    assert decode_traces(b"{}", "json").spans == decode_traces(b"", "protobuf").spans == []
    assert decode_logs(b'{"resourceLogs": null}', "json").records == decode_logs(b"", "protobuf").records == []


@pytest.mark.parametrize(
    ("change", "reason", "field"),
    [
        ({"traceId": "W45f9G0KWHh2Cw=="}, "bad_id", "traceId"),
        ({"traceId": "0" * 32}, "bad_id", "traceId"),
        ({"spanId": ""}, "bad_id", "spanId"),
        ({"parentSpanId": "xyz"}, "bad_id", "parentSpanId"),
        ({"endTimeUnixNano": "tomorrow"}, "malformed", "endTimeUnixNano"),
        ({"startTimeUnixNano": str(2**64)}, "malformed", "startTimeUnixNano"),
        ({"startTimeUnixNano": -1}, "malformed", "startTimeUnixNano"),
        ({"name": 7}, "malformed", "name"),
        ({"attributes": [{"key": "a", "value": {"intValue": "1e3"}}]}, "malformed", "attributes"),
        ({"attributes": [{"key": "a", "value": {"doubleValue": "many"}}]}, "malformed", "attributes"),
        ({"attributes": [{"key": "a", "value": {"boolValue": "true"}}]}, "malformed", "attributes[0].value.boolValue"),
        ([], "malformed", ""),
        (None, "malformed", ""),
    ],
)
def test_a_bad_span_is_refused_with_the_reason_and_takes_no_other_along(change, reason, field):
    """The refusal names the field, quotes nothing, and the spans around are taken."""
    request = json.loads(traces_json(*(span(n, "secret-name") for n in range(3))))
    spans = request["resourceSpans"][0]["scopeSpans"][0]["spans"]
    spans[1] = {**spans[1], **change} if isinstance(change, dict) else change
    decoded = decode_traces(json.dumps(request).encode(), "json")
    assert len(decoded.spans) == 2
    (refusal,) = decoded.refused
    assert (refusal.position, refusal.reason, refusal.count) == (1, reason, 1)
    assert refusal.text.startswith(f"{field}: " if field else "not what")
    assert "secret" not in refusal.text


def nested(levels: int) -> Any:
    """A text within so many arrays."""
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("within", "beyond", "reason"),
    [
        ({"attributes": {"a": "x" * MAX_TEXT_CHARS}}, {"attributes": {"a": "x" * (MAX_TEXT_CHARS + 1)}}, "too_long"),
        ({"attributes": {"a": nested(MAX_NESTING)}}, {"attributes": {"a": nested(MAX_NESTING + 1)}}, "too_deep"),
        (
            {"attributes": {f"a{n}": n for n in range(MAX_ATTRIBUTES)}},
            {"attributes": {f"a{n}": n for n in range(MAX_ATTRIBUTES + 1)}},
            "too_many_attributes",
        ),
        (
            {"events": [("e", {})] * MAX_SPAN_EVENTS},
            {"events": [("e", {})] * (MAX_SPAN_EVENTS + 1)},
            "too_many_attributes",
        ),
    ],
    ids=["text", "nesting", "attributes", "events"],
)
def test_the_bounds_of_an_item_are_the_same_in_both_encodings(within, beyond, reason):
    """An item at the bound is taken, one beyond is refused, and the rest of the request stays."""
    for write, encoding in zip((traces_json, traces_protobuf), ENCODINGS, strict=True):
        taken, refused = span(0, "a") | within, span(1, "b") | beyond
        decoded = decode_traces(write(taken, refused, span(2, "c")), encoding)
        assert [each.name for each in decoded.spans] == ["a", "c"]
        assert [(each.position, each.reason) for each in decoded.refused] == [(1, reason)]


def test_a_bad_resource_refuses_its_own_items_only():
    """Items of another process in the same request are taken."""
    for write, encoding in zip((traces_json, traces_protobuf), ENCODINGS, strict=True):
        bad = write(span(0, "a"), span(1, "b"), resource={"r": nested(MAX_NESTING + 1)})
        good = write(span(2, "c"))
        both = bad + good  # messages of protobuf that are joined are merged
        if encoding == "json":
            both = json.dumps(
                {"resourceSpans": [json.loads(each)["resourceSpans"][0] for each in (bad, good)]}
            ).encode()
        decoded = decode_traces(both, encoding)
        assert [each.name for each in decoded.spans] == ["c"]
        assert [(each.position, each.reason) for each in decoded.refused] == [(0, "too_deep"), (1, "too_deep")]


def test_items_beyond_the_most_are_refused_together(monkeypatch):
    """As many as allowed are taken; the rest is one refusal that says how many."""
    monkeypatch.setattr("streams.otlp.checks.MAX_ITEMS", 3)
    for write, encoding in zip((logs_json, logs_protobuf), ENCODINGS, strict=True):
        assert decode_logs(write(*(log(n, {}) for n in range(3))), encoding).refused == []
        decoded = decode_logs(write(*(log(n, {}) for n in range(5))), encoding)
        assert len(decoded.records) == 3
        assert [(each.position, each.reason, each.count) for each in decoded.refused] == [(3, "too_many_items", 2)]


def test_a_request_beyond_the_size_is_refused(monkeypatch):
    """A request of the largest size is read, one byte more is not."""
    body = traces_json(span(0, "a"))
    monkeypatch.setattr("streams.otlp.decode.MAX_REQUEST_BYTES", len(body))
    assert decode_traces(body, "json").spans
    with pytest.raises(InvalidRequest) as refused:
        decode_traces(body + b" ", "json")
    assert refused.value.reason == "too_large"
    assert items.MAX_REQUEST_BYTES == 16 * 1024 * 1024


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"no",
        b'{"resourceSpans": {}}',
        b'{"resourceSpans": [{"scopeSpans": 1}]}',
        b'{"a": "\xff"}',
        b"[" * 90_000,
    ],
)
def test_what_is_no_request_is_refused_whole(body):
    """Something else than a request is an error of its own, and never anything but that."""
    with pytest.raises(InvalidRequest) as refused:
        decode_traces(body, "json")
    assert refused.value.reason == "malformed"


def test_protobuf_without_its_library_says_what_to_install(monkeypatch):
    """Who has not installed the extra is told so; JSON goes on."""
    monkeypatch.delitem(sys.modules, "streams.otlp.protobuf_form", raising=False)
    monkeypatch.delattr("streams.otlp.protobuf_form", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.proto.logs.v1.logs_pb2", None)
    with pytest.raises(InvalidRequest, match=r"traction\[otlp\]") as refused:
        decode_logs(b"", "protobuf")
    assert refused.value.reason == "unsupported"
    assert decode_logs(b"{}", "json").records == []


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(body):
    """No bytes do anything else, in either encoding."""
    for read in (decode_traces, decode_logs):
        for encoding in ENCODINGS:
            try:
                read(body, encoding)
            except InvalidRequest:
                continue


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_json_in_the_place_of_any_part_is_read_or_refused_and_mapped(data):
    """Whatever stands where an attribute, an item or a block should be, the rest of the request comes through."""
    tool = span(0, "execute_tool x", {"gen_ai.tool.call.arguments": "{}", "session.id": "s"})
    call = log(0, {"event.name": "codex.tool_result", "tool_name": "t", "arguments": "{}", "conversation.id": "c"})
    for text, read, change in (
        (traces_json(tool, span(1, "a")), decode_traces, lambda read: map_traces(read, RECEIVED, Memory())),
        (logs_json(call, log(1, {})), decode_logs, lambda read: map_logs(read, RECEIVED)),
    ):
        request = json.loads(text)
        place: Any = request
        while isinstance(place, dict | list) and place:
            key = data.draw(st.sampled_from(range(len(place)) if isinstance(place, list) else sorted(place)))
            if not isinstance(place[key], dict | list) or data.draw(st.booleans()):
                place[key] = data.draw(ANY_JSON)
                break
            place = place[key]
        try:
            decoded = read(json.dumps(request).encode(), "json")
        except InvalidRequest:
            continue
        change(decoded)
