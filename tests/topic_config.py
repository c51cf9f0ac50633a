"""Sets how topics are kept while they are in use, as somebody might."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.protocol.admin import AlterConfigsRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from aiokafka.admin import AIOKafkaAdminClient

    from tests.kit import Wire


async def configure(client: AIOKafkaAdminClient, config: Mapping[str, str], *names: str) -> None:
    """Set all of the topics' own configuration, and see that brokers took it."""
    accepted(
        await client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, dict(config)) for name in names])
    )


def accepted(answers: Iterable[Any]) -> None:
    """See that brokers took what they were asked to set."""
    assert {(code, said) for answer in answers for code, said, *_ in answer.resources} == {(0, None)}


async def compact_at_once(client: AIOKafkaAdminClient, wire: Wire) -> None:
    """Have the brokers compact both changelogs within moments of what is written, and drop tombstones with it."""
    topic = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.001"}
    topic["delete.retention.ms"] = "0"
    await configure(client, topic, wire.changelog, wire.tasks_changelog)
    # Of all brokers, while they run. The second is as it was: brokers refuse to have it left out.
    brokers = [("log.cleaner.backoff.ms", "300"), ("min.insync.replicas", "1")]
    accepted([await client._send_request(AlterConfigsRequest(resources=[(ConfigResourceType.BROKER, "", brokers)]))])
