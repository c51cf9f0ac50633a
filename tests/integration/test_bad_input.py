"""Bad input never stops a partition: it is set aside with its reason, as it came, and the next event is applied."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from detectors import Step, step
from schemas import topics
from schemas.encode import encode
from streams.worker.judge import Detection
from tests.kit import WorkerInside, tool_call

if TYPE_CHECKING:
    from collections.abc import Callable

    from detectors import Limits, SessionState
    from schemas.events import SessionInput
    from tests.kit import Wire, WorkerProcess

GOOD = encode(tool_call("s", 0))


def changed(**fields: Any) -> bytes:
    """Give a call with other fields."""
    return json.dumps(json.loads(GOOD) | fields).encode()


NESTED = b'{"event_id":"1","session_id":"s","occurred_at":"2026-01-01T00:00:00Z","tool":"t","arguments":%s}'

BAD: dict[str, tuple[bytes | None, bytes | None, str]] = {
    "nothing": (None, b"s", "decode:empty"),
    "an empty value": (b"", b"s", "decode:empty"),
    "no JSON": (b"\x00\x01 not json", b"s", "decode:not_json"),
    "half of it": (GOOD[:-5], b"s", "decode:not_json"),
    "NaN": (NESTED % b"NaN", b"s", "decode:not_json"),
    "another shape": (b"[1, 2]", b"s", "validate:wrong_type"),
    "bad UTF-8": (GOOD.replace(b"contents", b"cont\xffents"), b"s", "decode:not_utf8"),
    "deep nesting": (NESTED % (b"[" * 100_000 + b"]" * 100_000), b"s", "decode:too_deep"),
    "10 MB": (changed(result="x" * 10_000_000), b"s", "decode:too_large"),
    "no session": (json.dumps({"event_id": "1", "tool": "t"}).encode(), b"s", "validate:missing_field"),
    "a wrong type": (changed(tool=7), b"s", "validate:wrong_type"),
    "a time without a zone": (changed(occurred_at="2026-01-01T00:00:00"), b"s", "validate:invalid_value"),
    "another major version": (changed(schema_version="2.0"), b"s", "validate:unsupported_version"),
    "no key": (GOOD, None, "route:key_missing"),
    "another key": (GOOD, b"other", "route:key_mismatch"),
}


async def test_bad_input_becomes_dead_letters(wire: Wire, start: Callable[..., WorkerProcess]) -> None:
    """Each kind of bad input is in the dead letters once, as it came, with its reason; good events go on between."""
    worker = start()
    await worker.ready(4)
    sent = {}
    headers = [("traceparent", b"00-1"), ("odd", b"\xff")]
    for number, (name, (value, key, reason)) in enumerate(BAD.items()):
        written = await wire.raw(topics.TOOL_CALLS, value, key=key, partition=1, headers=headers)
        sent[written.offset] = name, value, key, reason
        await wire.raw(topics.TOOL_CALLS, encode(tool_call("s", number)), partition=1)
    await wire.until_applied()
    assert (await wire.states())["s"].calls == len(BAD)
    found = {}
    for record in await wire.dead_letters():
        told = {name: value.decode() for name, value in record.headers if name.startswith("__traction.errors.")}
        assert told["__traction.errors.topic"] == wire.settings.topic(topics.TOOL_CALLS)
        assert told["__traction.errors.partition"] == "1"
        assert record.headers[:2] == tuple(headers)
        reason = f"{told['__traction.errors.stage']}:{told['__traction.errors.reason']}"
        offset = int(told["__traction.errors.offset"])
        assert offset not in found, "a dead letter was written twice"
        found[offset] = sent[offset][0], record.value, record.key, reason
    assert found == sent
    metrics = await worker.metrics()
    assert sum(value for name, value in metrics.items() if name[0] == "traction_dead_letters_total") == len(BAD)
    assert metrics["traction_events_total", "dead", wire.settings.topic(topics.TOOL_CALLS)] == len(BAD)
    assert "not json" not in worker.log


async def test_every_input_has_its_reader(wire: Wire, start: Callable[..., WorkerProcess]) -> None:
    """Each of the five inputs is read as its own kind of record: what belongs into another is refused."""
    await start().ready(4)
    for topic in topics.SESSION_INPUTS[1:]:
        await wire.raw(topic, GOOD)
    await wire.until_applied()
    letters = [dict(record.headers)["__traction.errors.topic"].decode() for record in await wire.dead_letters()]
    assert sorted(letters) == sorted(wire.settings.topic(topic) for topic in topics.SESSION_INPUTS[1:])


async def test_an_event_that_a_detector_fails_on(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    """It is set aside, tells where in the log once and nothing of itself, and the session is as it was before."""

    def fragile(state: SessionState, event: SessionInput, limits: Limits) -> Step:
        found = step(state, event, limits)
        if event.event_id.startswith("poison"):
            raise KeyError(event.event_id)  # after the state was changed
        return found

    calls = [tool_call("s", number, arguments={"path": "a"}, result="the same") for number in range(3)]
    async with WorkerInside(wire, detection=Detection(fragile)) as inside:
        await wire.send(calls[:2])
        await wire.send([tool_call("s", 9, event_id=f"poison{number}") for number in range(3)])
        await wire.send(calls[2:])
        await wire.until_applied()
        assert inside.value("traction_dead_letters_total", reason="detector_error") == 3
    (alert,) = await wire.alerts()  # the loop was not interrupted by what was set aside
    assert alert.count == 3
    assert (await wire.states())["s"].calls == 3
    letters = await wire.dead_letters()
    assert [json.loads(record.value)["event_id"] for record in letters] == ["poison0", "poison1", "poison2"]
    message = dict(letters[0].headers)["__traction.errors.message"].decode()
    assert "KeyError" in message
    told = [record.getMessage() for record in caplog.records if "a detector failed" in record.getMessage()]
    assert len(told) == 1
    assert "test_bad_input.py" in told[0]
    assert "poison0" not in told[0].replace("poison{number}", "")
    assert "poison0" not in message
