"""Asks the brokers which topics there are under some names, by the ids that a topic gets when it is made.

A topic that was deleted and made anew under its name has another id. aiokafka 0.14 speaks versions of the request that
tell no ids, so the one that does is written down here. It creates nothing, also where brokers create what is asked for.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from aiokafka.errors import for_code
from aiokafka.protocol.abstract import AbstractType
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    Boolean,
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Schema,
    TaggedFields,
)

from streams.kafka import admin, running

if TYPE_CHECKING:
    from collections.abc import Collection
    from io import BytesIO

    from streams.kafka import KafkaSettings

METADATA_KEY = 3
"""Number of the Metadata request in the Kafka protocol."""

METADATA_VERSION = 10
"""The first version that tells topic ids; Kafka 2.8 and newer."""

_UUID_BYTES = 16
_NO_ID = bytes(_UUID_BYTES)  # no id is given: the topic is asked for by its name


class _Uuid(AbstractType[bytes]):  # type: ignore[misc]  # published without types
    @classmethod
    def encode(cls, value: bytes) -> bytes:
        return value

    @classmethod
    def decode(cls, data: BytesIO) -> bytes:
        return data.read(_UUID_BYTES)


class _Metadata(Response):  # type: ignore[misc]  # published without types
    API_KEY = METADATA_KEY
    API_VERSION = METADATA_VERSION
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "brokers",
            CompactArray(
                ("node_id", Int32),
                ("host", CompactString()),
                ("port", Int32),
                ("rack", CompactString()),
                ("tags", TaggedFields),
            ),
        ),
        ("cluster_id", CompactString()),
        ("controller_id", Int32),
        (
            "topics",
            CompactArray(
                ("error_code", Int16),
                ("name", CompactString()),
                ("topic_id", _Uuid),
                ("is_internal", Boolean),
                (
                    "partitions",
                    CompactArray(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader", Int32),
                        ("leader_epoch", Int32),
                        ("replicas", CompactArray(Int32)),
                        ("isr", CompactArray(Int32)),
                        ("offline", CompactArray(Int32)),
                        ("tags", TaggedFields),
                    ),
                ),
                ("authorized_operations", Int32),
                ("tags", TaggedFields),
            ),
        ),
        ("authorized_operations", Int32),
        ("tags", TaggedFields),
    )


class _MetadataStruct(RequestStruct):  # type: ignore[misc]  # published without types
    FLEXIBLE_VERSION = True
    API_KEY = METADATA_KEY
    API_VERSION = METADATA_VERSION
    RESPONSE_TYPE = _Metadata
    SCHEMA = Schema(
        (
            "topics",
            CompactArray(("topic_id", _Uuid), ("name", CompactString()), ("tags", TaggedFields)),
        ),
        ("allow_auto_topic_creation", Boolean),
        ("include_cluster_authorized_operations", Boolean),
        ("include_topic_authorized_operations", Boolean),
        ("tags", TaggedFields),
    )


class _MetadataRequest(Request[_MetadataStruct]):  # type: ignore[misc]  # published without types
    API_KEY = METADATA_KEY

    def __init__(self, names: Collection[str]) -> None:
        self._names = names

    def build(self, request_struct_class: type[_MetadataStruct]) -> Any:
        topics: list[tuple[bytes, str, dict[int, bytes]]] = [(_NO_ID, name, {}) for name in self._names]
        return request_struct_class(topics, False, False, False, {})  # noqa: FBT003 - fields by position


async def topic_ids(settings: KafkaSettings, names: Collection[str]) -> dict[str, str]:
    """Give the ids of topics.

    Args:
        settings: where and how to connect.
        names: their names on the brokers.

    Raises:
        KafkaUnavailable: the brokers cannot be reached.
        KafkaError: one of them is not there, or not shown to us.
    """
    async with running(admin(settings), settings) as client:
        response = await client._send_request(_MetadataRequest(names))  # noqa: SLF001 - it has no public way to send
    found = {}
    for code, name, topic_id, *_ in response.topics:
        if code:
            raise for_code(code)(name)
        found[name] = str(uuid.UUID(bytes=topic_id))
    return found
