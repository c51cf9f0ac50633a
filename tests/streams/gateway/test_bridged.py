"""What a record of a collector's topic comes to: events, dead letters, counts."""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka.structs import ConsumerRecord
from prometheus_client import CollectorRegistry

from schemas import topics
from schemas.decode import check_key, decode
from streams.gateway.bridged import Mapping, Turn
from streams.gateway.metrics import BridgeMetrics
from streams.kafka import KafkaSettings
from streams.otlp import InvalidRequest, Memory
from streams.otlp import decode as otlp_decode
from tests.streams.gateway.test_otlp import codex, tool
from tests.streams.otlp.otlp_kit import logs_json, span, traces_json, traces_protobuf

KAFKA = KafkaSettings()
SPANS = Mapping("traces", "json", "full", "bridge")


def record(value: bytes | None, **fields: Any) -> ConsumerRecord:
    """Build a record as the collector writes it."""
    defaults: dict[str, Any] = {
        "topic": "otlp_spans", "partition": 3, "offset": 17, "timestamp": 1_000_000, "timestamp_type": 0, "key": None,
        "checksum": None, "serialized_key_size": -1, "serialized_value_size": 1, "headers": (),
    }  # fmt: skip
    return ConsumerRecord(value=value, **{**defaults, **fields})


def turn(*records: ConsumerRecord, mapping: Mapping = SPANS) -> Turn:
    """Read records."""
    made = Turn()
    for each in records:
        made.take(each, mapping, Memory(), KAFKA)
    return made


def reasons(made: Turn) -> list[tuple[bytes, bytes]]:
    """Give why there are dead letters: stage and reason of each."""
    letters = [dict(out.headers) for out in made.outputs if out.topic == KAFKA.topic(topics.DEAD_LETTERS)]
    return [(head["__traction.errors.stage"] or b"", head["__traction.errors.reason"] or b"") for head in letters]


def test_events_of_many_sessions() -> None:
    """Each call of a record becomes an event under its own session's key, also those of log records and in protobuf."""
    spans = [tool(1, "s1"), tool(2, "s2"), span(3, "GET /")]
    logs = Mapping("logs", "json", "full", "bridge")
    made = [
        turn(record(traces_json(*spans))),
        turn(record(traces_protobuf(*spans)), mapping=Mapping("traces", "protobuf", "full", "bridge")),
        turn(record(logs_json(codex(1)), topic="otlp_logs"), mapping=logs),
    ]
    for each in made:
        for out in each.outputs:
            event = decode(topics.TOOL_CALLS, out.value, out.headers)
            check_key(topics.TOOL_CALLS, event, out.key)
    assert [[out.key for out in each.outputs] for each in made] == [[b"s1", b"s2"], [b"s1", b"s2"], [b"s2"]]
    assert made[0].outputs == made[1].outputs
    assert b"traceparent" in {name.encode() for name, _ in made[0].outputs[0].headers}


def test_privacy() -> None:
    """Only digests go on where that was said."""
    body = traces_json(tool(1, **{"gen_ai.tool.call.arguments": '{"path": "secret.txt"}'}))
    (out,) = turn(record(body), mapping=Mapping("traces", "json", "digests", "bridge")).outputs
    assert b"secret" not in (out.value or b"")
    assert b"arguments_digest" in (out.value or b"")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, b"empty"),
        (b"", b"empty"),
        (b"{", b"not_otlp"),
        (traces_protobuf(tool(1)), b"not_otlp"),
        (bytes(17 * 2**20), b"too_large"),
    ],
)
def test_dead_letters(value: bytes | None, reason: bytes) -> None:
    """What cannot be read becomes a dead letter with the reason, as it came, and stops nothing."""
    made = turn(record(value), record(traces_json(tool(1))))
    assert [found for _, found in reasons(made)] == [reason]
    assert [out.topic for out in made.outputs] == [KAFKA.topic(topics.DEAD_LETTERS), KAFKA.topic(topics.TOOL_CALLS)]
    assert made.outputs[0].value == (value or b"")


def test_names_of_headers_that_are_no_text() -> None:
    """A record with such a header becomes a dead letter like any other."""
    assert reasons(turn(record(traces_json(tool(1)), headers=(("\udcff", b"x"),)))) == [(b"decode", b"not_utf8")]


def test_a_part_that_cannot_be_read() -> None:
    """Of a record with a bad span the others count, and a dead letter tells how many did not, and why."""
    made = turn(record(traces_json({**tool(1), "trace": "no hex"}, tool(2))))
    assert (len(made.outputs), reasons(made)) == (2, [(b"validate", b"invalid_value")])
    letter = dict(made.outputs[1].headers)
    assert b"1 of its traces" in (letter["__traction.errors.message"] or b"")


def test_counts() -> None:
    """Events, dead letters and what gave no event are counted once they are written, not before."""
    registry = CollectorRegistry()
    metrics = BridgeMetrics(registry, KAFKA)
    made = turn(record(traces_json(tool(1, None), span(2, "GET /"))), record(b"{"))

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(name, labels)

    topic = KAFKA.topic(topics.TOOL_CALLS)
    assert value("traction_gateway_events_total", topic=topic, result="accepted") == 0
    made.measure(metrics)
    for result in ("applied", "dead"):
        assert value("traction_events_total", topic="otlp_spans", result=result) == 1
    assert value("traction_gateway_events_total", topic=topic, result="accepted") == 1
    assert value("traction_dead_letters_total", reason="not_otlp") == 1
    assert value("traction_otlp_lacking_total", signal="traces", what="session_id") == 1
    assert value("traction_otlp_passed_total", signal="traces", reason="not_a_tool_call") == 1


def test_protobuf_without_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where protobuf cannot be read at all the bridge ends with what to install: these are no bad records."""

    def missing(*_: object) -> None:
        raise InvalidRequest("unsupported", "install traction[otlp]")

    monkeypatch.setattr(otlp_decode, "_form", missing)
    with pytest.raises(InvalidRequest, match="otlp"):
        turn(record(traces_protobuf(tool(1))), mapping=Mapping("traces", "protobuf", "full", "bridge"))
