"""The sinks with a broker and a gateway that are real: what a follower reads is on the topics, as who published it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from schemas import topics
from streams.emitter.settings import EmitterSettings
from streams.follow.sinks import GatewaySink, kafka_sink
from streams.gateway.process import serving
from streams.gateway.settings import GatewaySettings
from streams.page_settings import PageSettings
from tests.streams.follow.kit import asks, call, name
from tests.streams.outputs_kit import found, kafka

if TYPE_CHECKING:
    from streams.kafka import KafkaSettings
    from tests.streams.follow.kit import World

__all__ = ["kafka"]


async def test_on_the_topics(world: World, kafka: KafkaSettings) -> None:
    """Calls, and what a person said, come to their topics, from the follower itself and through a gateway."""
    said = json.loads(asks(1)) | {"type": "user", "message": {"role": "user", "content": "Go on"}}
    text = json.dumps(said).encode() + b"\n"
    await world.started()
    async with kafka_sink(kafka) as sink:
        world.follower._sink = sink
        world.write("a.jsonl", call(0) + text + call(2))
        await world.turns()
    async with serving(kafka, GatewaySettings(), PageSettings()) as gateway:
        world.follower._sink = posting = GatewaySink(EmitterSettings(url=gateway.pages.url))
        world.write("a.jsonl", text + call(3))
        await world.turns()
        posting.close()
    assert world.follower.sent == 5
    assert [each.event_id for each in await found(kafka, topics.TOOL_CALLS)] == [name(0), name(2), name(3)]
    assert [each.event_id for each in await found(kafka, topics.SESSIONS)] == [f"s1#user_message-{n}" for n in range(2)]
