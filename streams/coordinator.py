"""How coordinators are found, and a group's offsets asked for, read and set, where aiokafka 0.14 can be given old ones.

It asks by version 3 of that request. A coordinator may answer that by what it holds as settled at the moment, and so
leave out what a transaction commits that is under way, or, when it has just taken the group over, even more. Since
version 7 (KIP-447) one can ask for stable offsets: the answer waits for what is pending. Since version 2 what concerns
the group as a whole stands once, beside an empty list of partitions: that the coordinator still loads the group, or is
another broker. aiokafka reads the list only, so that a group is read from its very start while a broker comes back.

What is to be committed it sends as a member of whatever generation the group is in by then, also after a wait for
a coordinator; so it can set back whoever has the partition now. A producer that looks for one just when a broker goes
down ends for good, see `ProducerClient`. This module must not decide where reading begins.

Importing it puts its classes in place of aiokafka's, for every consumer and producer of the process, Faust's included.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, TypeAlias

from aiokafka.client import AIOKafkaClient
from aiokafka.consumer import consumer, group_coordinator
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.errors import (
    GroupLoadInProgressError,
    IllegalGenerationError,
    KafkaConnectionError,
    NodeNotReadyError,
    NoError,
    NotCoordinatorForGroupError,
    for_code,
)
from aiokafka.producer import producer
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.commit import OffsetFetchRequest_v3, OffsetFetchResponse_v3
from aiokafka.protocol.types import Boolean, CompactArray, CompactString, Int16, Int32, Int64, Schema, TaggedFields

UNSTABLE_OFFSET_COMMIT = 88
"""In the error codes of the Kafka protocol: a transaction that commits this offset is under way."""


class OffsetFetchResponse_v7(Response):  # type: ignore[misc]  # noqa: N801 - published without types; named as all are
    """The answer (Kafka protocol guide, "OffsetFetch API")."""

    API_KEY = 9
    API_VERSION = 7
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "topics",
            CompactArray(
                ("topic", CompactString("utf-8")),
                (
                    "partitions",
                    CompactArray(
                        ("partition", Int32),
                        ("offset", Int64),
                        ("leader_epoch", Int32),
                        ("metadata", CompactString("utf-8")),
                        ("error_code", Int16),
                        ("tags", TaggedFields),
                    ),
                ),
                ("tags", TaggedFields),
            ),
        ),
        ("error_code", Int16),
        ("tags", TaggedFields),
    )


class OffsetFetchRequest_v7(RequestStruct):  # type: ignore[misc]  # noqa: N801 - likewise
    """The question."""

    FLEXIBLE_VERSION = True
    API_KEY = 9
    API_VERSION = 7
    RESPONSE_TYPE = OffsetFetchResponse_v7
    SCHEMA = Schema(
        ("consumer_group", CompactString("utf-8")),
        (
            "topics",
            CompactArray(
                ("topic", CompactString("utf-8")), ("partitions", CompactArray(Int32)), ("tags", TaggedFields)
            ),
        ),
        ("require_stable", Boolean),
        ("tags", TaggedFields),
    )


_Structs: TypeAlias = OffsetFetchRequest_v3 | OffsetFetchRequest_v7


class StableOffsetFetch(Request[_Structs]):  # type: ignore[misc]  # published without types
    """Asks for stable offsets, of brokers that know what that is (Apache Kafka 2.5).

    Args:
        group: the group.
        partitions: numbers by topic.
    """

    API_KEY = 9

    def __init__(self, group: str, partitions: list[tuple[str, list[int]]]) -> None:
        self._group = group
        self._partitions = partitions

    def build(self, request_struct_class: type[Any]) -> Any:
        """Build the request of one version."""
        if request_struct_class is OffsetFetchRequest_v3:
            return OffsetFetchRequest_v3(self._group, self._partitions)
        topics: list[Any] = [(topic, numbers, {}) for topic, numbers in self._partitions]
        return OffsetFetchRequest_v7(self._group, topics, True, {})  # noqa: FBT003 - fields go by position


_asked_in: ContextVar[int] = ContextVar("generation in which a commit was asked for")


class Coordinator(GroupCoordinator):  # type: ignore[misc]  # published without types
    """The group's coordinator as a consumer sees it; what it refuses is raised, and aiokafka asks again."""

    async def commit_offsets(self, assignment: Any, offsets: Any) -> None:
        """Commit offsets, as a member of the generation that the group is in now.

        Raises:
            CommitFailedError: it is in another one when they could be sent, or when they came.
        """
        token = _asked_in.set(self.generation)
        try:
            await super().commit_offsets(assignment, offsets)
        finally:
            _asked_in.reset(token)

    async def _do_commit_offsets(self, assignment: Any, offsets: Any) -> None:
        if self.generation != _asked_in.get(self.generation):
            raise IllegalGenerationError(self.group_id)  # which aiokafka takes for a refusal of the brokers
        await super()._do_commit_offsets(assignment, offsets)

    async def _send_req(self, request: Any) -> Any:
        response = await super()._send_req(request)
        if not isinstance(request, StableOffsetFetch):
            return response
        problem = for_code(response.error_code)
        if problem is not NoError:
            if problem is NotCoordinatorForGroupError:
                self.coordinator_dead()
            raise problem(self.group_id)
        return response if isinstance(response, OffsetFetchResponse_v3) else self._as_v3(response)

    def _as_v3(self, response: Any) -> OffsetFetchResponse_v3:
        topics: list[Any] = []
        for topic, partitions, _ in response.topics:
            if any(error == UNSTABLE_OFFSET_COMMIT for *_, error, _ in partitions):
                raise GroupLoadInProgressError(self.group_id)  # to aiokafka, the one that is asked again without ado
            topics.append((topic, [(number, offset, text, error) for number, offset, _, text, error, _ in partitions]))
        return OffsetFetchResponse_v3(response.throttle_time_ms, topics, response.error_code)


class ProducerClient(AIOKafkaClient):  # type: ignore[misc]  # published without types
    """The client of a producer, for which a connection that closes under a search is a broker that is not ready.

    The sender of aiokafka 0.14.0 (`Sender._find_coordinator`) asks again after `NodeNotReadyError`, which it gets of a
    broker that is down already, and takes `KafkaConnectionError`, of one that is just going down, for the producer's
    end. The sooner it asks again, the more often it meets the latter. All other errors stay what they are.

    Noticed by: `tests/streams/test_coordinator.py::test_a_connection_that_closes_while_a_coordinator_is_looked_up` and
    `tests/integration/test_brokers_away.py::test_a_broker_that_restarts`.
    """

    async def coordinator_lookup(self, coordinator_type: Any, coordinator_key: Any) -> Any:
        """Ask any broker which one coordinates a transactional id or a group.

        Raises:
            NodeNotReadyError: that broker is not reached, or no longer.
        """
        try:
            return await super().coordinator_lookup(coordinator_type, coordinator_key)
        except KafkaConnectionError as problem:
            raise NodeNotReadyError(str(problem)) from problem


group_coordinator.OffsetFetchRequest = StableOffsetFetch
consumer.GroupCoordinator = Coordinator
producer.AIOKafkaClient = ProducerClient
