"""Handing events to brokers: what they will never take, and a client that has given up."""

from __future__ import annotations

from aiokafka.errors import KafkaError

from schemas import topics
from streams.kafka import KafkaSettings, admin, running
from tests.streams.gateway.conftest import Client, Opening, Since, published
from tests.streams.gateway.test_events import CALLS, call
from tests.streams.outputs_kit import put, soon, termination
from tests.topic_config import configure
from tests.waiting import until


async def test_larger_than_brokers_take(client: Client, kafka: KafkaSettings, wire: Since) -> None:
    """An event that brokers will never take is refused by itself, and what comes after it is taken as before."""
    topic = kafka.topic(topics.FIX_ATTEMPTS)
    attempt = {**call(0), "attempt_id": "a", "outcome": "failed"}
    async with running(admin(kafka), kafka) as brokers:
        await configure(brokers, {"max.message.bytes": "20000"}, topic)
    large = {**attempt, "event_id": "large", "approach": "x" * 60_000}
    path = "/v1/events/fix-attempts"
    for number in range(3):
        small = {**attempt, "event_id": f"small-{number}"}
        answer = await client.post(path, [small, large])
        while answer.status == 503:  # the client is being replaced
            answer = await client.post(path, [small, large])
        assert (answer.status, answer.json["accepted"]) == (200, 1)
        assert [each["index"] for each in answer.json["refused"]] == [1]
    assert {each.event_id for each in await published(wire, topics.FIX_ATTEMPTS)} == {f"small-{n}" for n in range(3)}
    assert (client.measured("traction_gateway_producer_renewals_total") or 0) >= 3
    assert client.measured("traction_gateway_events_total", topic=topic, result="refused") == 3


async def test_a_client_that_gave_up(opening: Opening, wire: Since) -> None:
    """When the Kafka client fails for good another one takes its place, and posts that were refused are taken again."""
    async with opening() as client:
        assert (await client.post(CALLS, call(0))).status == 200
        sender = client.serving.gateway._otlp._publisher._sender
        broken = sender._client
        assert broken is not None
        broken._sender._fail_all = lambda _: None  # the task below tells nobody
        broken._message_accumulator.fail_all(KafkaError("given up"))
        answer = await client.post(CALLS, call(1))
        assert (answer.status, "retry-after" in answer.headers) == (503, True)
        await until(lambda: sender._client is not None)
        assert sender._client is not broken
        assert (await client.post(CALLS, call(1))).status == 200
        await until(lambda: client.measured("traction_gateway_in_flight_bytes") == 0)
    assert [each.event_id for each in await published(wire, topics.TOOL_CALLS)] == ["s1-0", "s1-1"]


async def test_an_answer_with_a_client_that_gave_up(opening: Opening, kafka: KafkaSettings, wire: Since) -> None:
    """An answer goes through the same client: it is refused until there is another one, and then written."""
    await put(kafka, termination("x-gap", session_id="g1", expires_at=soon(minutes=5)))
    said = {"session_id": "g1", "answers": "x-gap", "action": "obeyed"}
    async with opening() as client:
        sender = client.serving.gateway._otlp._publisher._sender
        broken = sender._client
        assert broken is not None
        broken._sender._fail_all = lambda _: None  # as above
        broken._message_accumulator.fail_all(KafkaError("given up"))
        refused = await client.post("/v1/answers", said)
        assert (refused.status, "retry-after" in refused.headers) == (503, True)
        await until(lambda: sender._client not in {None, broken})
        assert (await client.post("/v1/answers", said)).status == 200
    assert [each.event_id for each in await published(wire, topics.CONTROL)] == ["x-gap-1-obeyed"]


async def test_what_is_open_with_a_client_that_gave_up(opening: Opening) -> None:
    """What was handed to a client that is replaced is given up, and neither waited for nor counted any more."""
    async with opening(ack_seconds=0.5) as client:
        sender = client.serving.gateway._otlp._publisher._sender
        broken = sender._client
        assert broken is not None
        broken._message_accumulator.drain_by_nodes = lambda **_: ({}, False)  # nothing is sent any more
        assert (await client.post(CALLS, call(0))).status == 503
        assert sender.bytes > 0
        await sender._retire(broken)
        await until(lambda: sender.bytes == 0)
        assert not sender._open
