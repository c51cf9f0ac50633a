"""What a group's consumer is told of committed offsets, and how a producer finds its coordinator."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.conn import CloseReason
from aiokafka.errors import CommitFailedError, CorrelationIdError, KafkaError
from aiokafka.protocol.coordination import FindCoordinatorRequest

from schemas.topics import ALERTS
from streams.connections import Connection
from streams.coordinator import Coordinator
from streams.kafka import KafkaSettings, consumer, producer, running
from tests.waiting import SOON_SECONDS, until

SETTLED, PENDING = 3, 5


async def test_offsets_that_a_transaction_commits_are_waited_for(kafka: KafkaSettings) -> None:
    """Never the ones before it, from which a new owner of the partition would read again."""
    tp, group = TopicPartition(kafka.topic(ALERTS), 0), f"{kafka.prefix}stable"
    async with (
        running(consumer(kafka, group_id=group), kafka) as client,
        running(producer(kafka, transactional_id=f"{group}-0"), kafka) as sender,
    ):
        assert await client.committed(tp) is None
        async with sender.transaction():
            await sender.send_offsets_to_transaction({tp: SETTLED}, group)
        assert await client.committed(tp) == SETTLED
        async with sender.transaction():
            await sender.send_offsets_to_transaction({tp: PENDING}, group)
            asking = asyncio.create_task(client.committed(tp))
            await asyncio.wait([asking], timeout=0.5)
            assert not asking.done()
        assert await asking == PENDING


@pytest.mark.parametrize("moved", [False, True])
async def test_a_commit_of_an_earlier_generation(
    kafka: KafkaSettings, monkeypatch: pytest.MonkeyPatch, *, moved: bool
) -> None:
    """One that waited for the coordinator while partitions were shared anew is refused, else it is done."""
    tp, group = TopicPartition(kafka.topic(ALERTS), 0), f"{kafka.prefix}generation"
    known, free, held = Coordinator.ensure_coordinator_known, asyncio.Event(), asyncio.Event()

    async def later(self: Any) -> None:
        if asyncio.current_task() is committing:
            held.set()
            await free.wait()
        await known(self)

    async def joined_anew() -> bool:
        return client._coordinator.generation not in {generation, -1}

    client = consumer(kafka, group_id=group)
    client.subscribe([tp.topic])
    async with running(client, kafka), running(consumer(kafka, group_id=group), kafka) as other:
        await client.getmany(timeout_ms=0)
        assert tp in client.assignment()
        monkeypatch.setattr(Coordinator, "ensure_coordinator_known", later)
        committing = asyncio.create_task(client.commit({tp: SETTLED}))
        await held.wait()
        generation = client._coordinator.generation
        if moved:
            client._coordinator.request_rejoin()
            await until(joined_anew)
        free.set()
        if moved:
            with pytest.raises(CommitFailedError):
                await committing
        else:
            await committing
        assert await other.committed(tp) == (None if moved else SETTLED)


@pytest.mark.parametrize("cut", [True, False])
async def test_a_connection_that_closes_while_a_coordinator_is_looked_up(
    kafka: KafkaSettings, monkeypatch: pytest.MonkeyPatch, *, cut: bool
) -> None:
    """The question is asked again; any other error ends the producer, as aiokafka has it."""
    send, asked = Connection.send, 0

    def disturbed(self: Connection, request: Any, expect_response: bool = True) -> Any:  # noqa: FBT001, FBT002 - aiokafka's
        nonlocal asked
        answer = send(self, request, expect_response)
        if not isinstance(request, FindCoordinatorRequest):
            return answer
        asked += 1
        if asked == 1 and cut:
            self.close(reason=CloseReason.CONNECTION_BROKEN)
        elif asked == 1:
            answer.close()
            answer = asyncio.get_running_loop().create_future()
            answer.set_exception(CorrelationIdError())
        return answer

    monkeypatch.setattr(Connection, "send", disturbed)
    client = producer(kafka, transactional_id=f"{kafka.prefix}cut")
    try:
        async with asyncio.timeout(SOON_SECONDS):
            if cut:
                await client.start()
            else:
                with pytest.raises(KafkaError, match="CorrelationIdError"):
                    await client.start()
        assert asked > 1 if cut else asked == 1  # a fresh broker has to be asked until it has a coordinator
    finally:
        await client.stop()
