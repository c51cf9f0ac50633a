"""Has a process look at the start whether it may do with topics, groups and transactional ids what its role needs.

Else a right that is missing would be noticed at the first loop, hours later, or by a process that waits for its group
without an end. What the principal may do is asked of the brokers, for which it needs no right.
"""

from __future__ import annotations

import logging
import shlex
from typing import TYPE_CHECKING, Any

from aiokafka.errors import (
    GroupAuthorizationFailedError,
    IncompatibleBrokerVersion,
    KafkaError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
)
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Boolean, Int16, Int32, Schema, String

from streams.access.roles import DEFAULT_ORCHESTRATOR_GROUP, Names, roles, topic_rights
from streams.access.rules import IMPLIED, Operation
from streams.kafka import admin, running
from streams.topics import DEFAULT_APP_ID, TopicsError, default_group

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from aiokafka.admin import AIOKafkaAdminClient

    from streams.access.roles import Role
    from streams.kafka import KafkaSettings

logger = logging.getLogger(__name__)

GROUP, TRANSACTIONS = 0, 1
"""Kafka's numbers of what is coordinated."""

UNTOLD = -(2**31)
"""Where brokers do not say what is allowed."""


class MissingRights(TopicsError):
    """Rights are missing that a role needs: the message says which, and how to grant them."""


class MetadataResponse_v8(Response):  # type: ignore[misc]  # noqa: N801 - named as aiokafka's
    """What topics there are and what may be done with them. Layout: Kafka protocol guide, Metadata, version 8."""

    API_KEY = 3
    API_VERSION = 8
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("brokers", Array(("node_id", Int32), ("host", String("utf-8")), ("port", Int32), ("rack", String("utf-8")))),
        ("cluster_id", String("utf-8")),
        ("controller_id", Int32),
        (
            "topics",
            Array(
                ("error_code", Int16),
                ("topic", String("utf-8")),
                ("is_internal", Boolean),
                (
                    "partitions",
                    Array(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader", Int32),
                        ("leader_epoch", Int32),
                        ("replicas", Array(Int32)),
                        ("isr", Array(Int32)),
                        ("offline_replicas", Array(Int32)),
                    ),
                ),
                ("authorized_operations", Int32),
            ),
        ),
        ("cluster_authorized_operations", Int32),
    )


class MetadataRequest_v8(RequestStruct):  # type: ignore[misc]  # noqa: N801 - named as aiokafka's
    """The question for it."""

    API_KEY = 3
    API_VERSION = 8
    RESPONSE_TYPE = MetadataResponse_v8
    SCHEMA = Schema(
        ("topics", Array(String("utf-8"))),
        ("allow_auto_topic_creation", Boolean),
        ("include_cluster_authorized_operations", Boolean),
        ("include_topic_authorized_operations", Boolean),
    )


class RightsRequest(Request[MetadataRequest_v8]):  # type: ignore[misc]  # published without types
    """Asks what we may do with topics."""

    API_KEY = 3

    def __init__(self, topics: Iterable[str]) -> None:
        self._topics = list(topics)

    def build(self, request_struct_class: Any) -> Any:
        """Build the one version that there is."""
        return request_struct_class(self._topics, False, False, True)  # noqa: FBT003 - Kafka's fields in their order


async def check_rights(
    settings: KafkaSettings,
    role: str,
    *,
    app_id: str = DEFAULT_APP_ID,
    group: str | None = None,
    orchestrator_group: str = DEFAULT_ORCHESTRATOR_GROUP,
    **others: str,
) -> None:
    """Check that we may do what a role needs; of topics, brokers older than Kafka 2.3 cannot say.

    Args:
        settings: where and how to connect.
        role: its name in `roles.toml`.
        app_id: the workers'.
        group: the escalation consumer's; None for `default_group`.
        orchestrator_group: the orchestrator's.
        others: further names of `Names`, where they are not the defaults.

    Raises:
        KafkaUnavailable: the brokers cannot be reached.
        MissingRights: something is not allowed.
    """
    names = Names(settings.prefix, app_id, group or default_group(app_id), orchestrator_group, **others)
    needed = roles()[role]
    async with running(admin(settings), settings) as client:
        lacking = [*await _topics(client, topic_rights(needed, names)), *await _others(client, needed, names)]
    if lacking:
        command = ["traction", "acl", "apply", "--bootstrap", settings.bootstrap, "--prefix", settings.prefix]
        command += ["--app-id", app_id, "--group", names.group, "--orchestrator-group", names.orchestrator_group]
        for name, value in others.items():
            command += [f"--{name.replace('_', '-')}", value]
        problem = (
            f"{settings.who} lacks rights that the role {role} needs: {', '.join(lacking)}. Have an administrator "
            f"grant them: {shlex.join(command)} --principal {role}=User:NAME"
        )
        raise MissingRights([problem])


async def _topics(client: AIOKafkaAdminClient, needed: Mapping[str, Collection[Operation]]) -> list[str]:
    allowed = await _allowed(client, needed)
    return [
        f"{operation.word} {topic}"
        for topic, operations in needed.items()
        for operation in sorted(operations)
        if topic in allowed and not allowed[topic] & {operation, *IMPLIED.get(operation, ())}
    ]


async def _others(client: AIOKafkaAdminClient, needed: Role, names: Names) -> list[str]:
    """Ask who coordinates a group or the transactions of an id: only who may use them is told."""
    lacking = []
    asked = [(GROUP, names.own(name), f"Read the group {names.own(name)}") for name in needed.groups]
    ids = map(names.own, needed.transactions)
    asked += [(TRANSACTIONS, f"{name}-0", f"Write the transactional ids {name}-0 and so on") for name in ids]
    for kind, name, words in asked:
        try:
            await client.find_coordinator(name.replace("*", "0"), kind)
        except (GroupAuthorizationFailedError, TransactionalIdAuthorizationFailed):
            lacking.append(words)
        except KafkaError:
            logger.debug("who coordinates %s is not known yet", name)  # as with the first group of all
    return lacking


async def _allowed(client: AIOKafkaAdminClient, topics: Iterable[str]) -> dict[str, set[Operation]]:
    """Say what we may do with topics; those that are hidden from us we may do nothing with."""
    try:
        answer = await client._send_request(RightsRequest(topics))  # noqa: SLF001 - it has no method for it
    except (IncompatibleBrokerVersion, NotImplementedError):
        return {}
    return {
        name: {operation for operation in Operation if bits & 1 << operation} if bits != UNTOLD else set()
        for code, name, _, _, bits in answer.topics
        if bits != UNTOLD or code == TopicAuthorizationFailedError.errno
    }
