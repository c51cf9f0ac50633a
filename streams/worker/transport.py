"""Takes whole batches past Faust's streams, and lets our transactions do what Faust's offset commits would.

Overrides of faust-streaming 0.15.3 (aiokafka 0.14, mode 0.7.1; pinned, since these are inner parts), and the tests that
would notice if a release of these broke them:

* `BatchConsumer.getmany` hands batches of inputs to lanes where Faust would queue records for its streams, some 200
  microseconds each, and for every partition behind those of the others. What was read of a changelog is applied here:
  Faust drops what it has queued of the copies of others' partitions when a recovery ends, and goes on after an error.
  The message it gets instead only says how far was read, markers at the end included.
  tests/integration/test_poison.py::test_a_flood_from_one_session
  tests/integration/test_fencing.py::test_recovery_is_a_fold_of_the_changelog
  tests/integration/test_state_store.py::test_a_standby_takes_over
* `BatchConsumer.resume_flow` fetches nothing while partitions are taken over: until Faust hears of them, a recovery
  that the rebalance broke off goes on, and has them fetched from wherever they are.
  tests/streams/worker/test_transport.py::test_a_recovery_that_was_broken_off_has_nothing_fetched
  tests/integration/test_fencing.py::test_rebalances_in_the_middle_of_recovery
* `BatchConsumer._getmany` leaves out partitions that have enough waiting. Faust counts messages, and ours are batches.
  It leaves out inputs until Faust has sought what is committed of them, and `FetchThread.getmany` ends with what was
  assigned when it began: a takeover is done sooner than an empty fetch, which would go on with partitions of before.
  tests/streams/worker/test_transport.py::test_inputs_are_fetched_once_their_committed_offsets_are_sought
  tests/streams/worker/test_transport.py::test_a_fetch_ends_with_the_assignment_it_began_under
  tests/integration/test_positions.py::test_nothing_is_lost_while_committed_offsets_are_sought
* `BatchConsumer.on_partitions_assigned` takes partitions over (fence, heartbeat, committed offsets) and opens what is
  stored of them before Faust's recovery starts; `on_partitions_revoked` gives them up before Faust tells the tables.
  tests/integration/test_fencing.py::test_the_former_owner_is_fenced_before_positions_are_read
  tests/integration/test_workers.py::test_partitions_move_back_and_forth
* `BatchConsumer.verify_event_path` does nothing, nor does that of recovery. Faust's check compares times of two clocks,
  so that it never sees a fetch that has stopped, and takes the start of the process for that of the assignment: right
  after a rebalance, as when a frozen process goes on, it says of each partition that it was never fetched. What hangs
  is for `streams.worker.watch` to tell, and for the health.
  tests/streams/worker/test_transport.py::test_a_partition_that_was_just_assigned_is_no_error
  tests/integration/test_health.py::test_a_rebalance
* `FetchThread.getmany` notes under which ownership and from which position to which each fetch went. It waits
  for records by itself, so that position and records are taken in one go.
  It lets the partitions take turns, where aiokafka hands over all that it fetched of one before the next.
  tests/integration/test_positions.py::test_a_lost_batch_ends_the_worker
  tests/integration/test_poison.py::test_a_flood_from_one_session
* `FetchThread._create_worker_consumer` reads committed records only; Faust does so only inside its own transactions.
  It also shortens the time that a broker may hold an empty fetch back.
  tests/integration/test_positions.py::test_input_written_in_transactions
* `FetchThread.on_thread_stop` keeps from the log what aiokafka lets escape when it is stopped while brokers are away.
  tests/integration/test_brokers_away.py::test_a_broker_that_restarts

That nothing is lost or written twice by all of them together is for tests/torture/test_torture.py to notice.

Input topics are declared with `acks=False`, so Faust keeps no account of their offsets and commits none. No offset is
ever sought here: Faust seeks the committed ones when recovery is done.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import ConsumerStoppedError
from faust.transport.drivers import aiokafka as driver
from faust.types.tuples import ConsumerMessage

from streams.fetching import UnreadableBatch
from streams.kafka import stop_client
from streams.worker.changelogs import Read
from streams.worker.engine import Fetched
from streams.worker.store import FAUST_LOGGER

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection

    from faust.tables.manager import TableManager
    from faust.types import TP, AppT

    from streams.worker.engine import Engine
    from streams.worker.lanes import Lanes

FULL_PAUSE = 0.02
"""Seconds until a look whether there is room again, when all partitions have enough waiting."""

FETCH_WAIT_MS = 200
"""Milliseconds that a broker may hold an empty fetch back. What else is asked of that broker waits behind it: with
Faust's 1,500 each step of a recovery took as long, and a partition that has room again waited for it too."""

REJOIN_PAUSE = 0.05
"""Seconds until the next fetch while partitions are being assigned."""

Moves = dict[TopicPartition, "Fetched | Read"]
"""What a fetch brought: of inputs a batch, of changelogs what is to be applied to what is stored."""


class FetchThread(driver.AIOKafkaConsumerThread):
    """The thread that holds aiokafka's consumer."""

    logger = FAUST_LOGGER
    consumer: BatchConsumer

    def _create_worker_consumer(self, transport: driver.Transport) -> AIOKafkaConsumer:
        self.consumer.in_transaction = True
        try:
            consumer = super()._create_worker_consumer(transport)
        finally:
            self.consumer.in_transaction = False
        consumer._fetch_max_wait_ms = FETCH_WAIT_MS  # noqa: SLF001 - Faust has no setting for it
        return consumer

    async def on_thread_stop(self) -> None:
        """Stop the queue of calls to this thread, then the consumer, also while a broker is away."""
        await super(driver.AIOKafkaConsumerThread, self).on_thread_stop()
        if self._consumer is not None:
            await stop_client(self._consumer)

    async def getmany(self, active_partitions: set[TP] | None, timeout: float) -> Any:  # noqa: ASYNC109
        """Fetch of some partitions, for as long as nothing is assigned anew: what may be fetched is another then."""
        consumer, holds = self._ensure_consumer(), self.consumer.holds
        return await self.call_thread(self._fetch, consumer, active_partitions, timeout, holds)

    async def _fetch(
        self, consumer: AIOKafkaConsumer, active_partitions: set[TP] | None, seconds: float, holds: int
    ) -> Moves:
        """Take what was fetched, with the positions before and after it; wait for some when there is none."""
        fetcher, loop = consumer._fetcher, asyncio.get_running_loop()  # noqa: SLF001
        max_records = consumer._max_poll_records  # noqa: SLF001
        deadline = loop.time() + seconds
        with fetcher._subscriptions.fetch_context():  # noqa: SLF001 - tells aiokafka that we are not idle
            while self.consumer.flow_active and self.consumer.holds == holds:
                if consumer._closed or fetcher._closed:  # noqa: SLF001
                    raise ConsumerStoppedError
                if fetcher._subscriptions.reassignment_in_progress:  # noqa: SLF001 - `fetched_records` would wait in there
                    await asyncio.sleep(REJOIN_PAUSE)
                    break
                # Nothing awaits from here to the second look at the positions.
                owned = self.consumer.engine.ownerships.current
                before = self._positions(consumer)
                records = await fetcher.fetched_records(active_partitions, timeout=0, max_records=max_records)
                self._let_others_go_first(fetcher, records)
                inputs, moves = self.consumer.engine.inputs, Moves()
                for tp, end in self._positions(consumer).items():
                    start, found = before.get(tp), records.get(tp, [])
                    if start is None or start == end:
                        continue
                    if tp.topic in inputs:
                        size = sum(record.serialized_value_size for record in found)
                        moves[tp] = Fetched(owned.get(tp.partition), tp, start, end, found, size)
                    else:
                        moves[tp] = Read(owned, tp, start, end, found)
                if moves or loop.time() >= deadline:
                    return moves
                waiter = fetcher._create_fetch_waiter()  # noqa: SLF001
                done, _ = await asyncio.wait([waiter], timeout=deadline - loop.time())
                if not done:
                    waiter.cancel()
                    break
                waiter.result()  # raises what the coordinator could not mend, for example a missing right
        return Moves()

    @staticmethod
    def _let_others_go_first(fetcher: Any, served: Collection[TopicPartition]) -> None:
        """Put what was served behind the others: aiokafka begins with the same partition until it is drained."""
        for tp in served:
            if (left := fetcher._records.pop(tp, None)) is not None:  # noqa: SLF001
                fetcher._records[tp] = left  # noqa: SLF001

    def _positions(self, consumer: AIOKafkaConsumer) -> dict[TopicPartition, int]:
        subscription = consumer._fetcher._subscriptions.subscription  # noqa: SLF001
        assignment = subscription.assignment if subscription is not None else None
        if assignment is None:
            return {}
        states = {tp: assignment.state_value(tp) for tp in assignment.tps}
        return {tp: state.position for tp, state in states.items() if state is not None and state.has_valid_position}

    async def committed(self, tps: Collection[TopicPartition]) -> dict[TopicPartition, int | None]:
        """Give the committed offset of each partition, None where there is none."""
        return dict(await self.call_thread(self._committed, self._ensure_consumer(), list(tps)))

    async def _committed(
        self, consumer: AIOKafkaConsumer, tps: list[TopicPartition]
    ) -> dict[TopicPartition, int | None]:
        return dict(zip(tps, await asyncio.gather(*map(consumer.committed, tps)), strict=True))


class BatchConsumer(driver.Consumer):
    """The group's consumer."""

    logger = FAUST_LOGGER
    transport: BatchTransport
    _thread: FetchThread
    _held = False
    _resumed = False
    _sought = False
    _open = False
    holds = 0
    """How often fetching was held, to give partitions up or to take them over."""
    moving = ""
    """What is being done with partitions; empty for nothing, and while others are waited for."""
    turns = 0
    """How often was fetched."""

    @property
    def engine(self) -> Engine:
        """What applies the batches."""
        return self.transport.engine

    @property
    def assigned(self) -> bool:
        """Whether the group has told us what is ours, perhaps nothing, and that is taken over."""
        return self.holds > 0 and not self._held

    def _new_consumer_thread(self) -> FetchThread:
        return FetchThread(self, loop=self.loop, beacon=self.beacon)

    async def _getmany(self, active_partitions: set[TP] | None, timeout: float) -> Any:  # noqa: ASYNC109
        if active_partitions:
            active_partitions = {tp for tp in active_partitions if self._wanted(TopicPartition(*tp))}
            if not active_partitions:  # to aiokafka, none means all
                await asyncio.sleep(FULL_PAUSE)
                return {}
        return await super()._getmany(active_partitions, timeout)

    def _wanted(self, tp: TopicPartition) -> bool:
        """Tell whether more of a partition is to be fetched.

        Faust has inputs fetched while it still seeks what is committed of them, from wherever they are until then: what
        would be passed over is noticed by the next batch, and ends the process.
        """
        return (self._open or tp.topic not in self.engine.inputs) and not self.engine.full(tp)

    async def getmany(self, timeout: float) -> AsyncIterator[tuple[TP, ConsumerMessage]]:  # noqa: ASYNC109
        """Fetch, have inputs applied, apply what was read of changelogs, and yield a message for each batch of them."""
        self.turns += 1
        moves: Any
        try:
            moves, _ = await self._wait_next_records(timeout)
        except UnreadableBatch as problem:
            await self.engine.give_up(problem)
        generation = self.app.consumer_generation_id
        if not moves or self.should_stop:
            return
        read = {tp: move for tp, move in moves.items() if isinstance(move, Read) and self._applied(move)}
        if self._stale(generation):
            return  # another ownership begins; what was fetched under this one is read again
        for move in moves.values():
            if isinstance(move, Fetched):
                self.engine.queue(move)
                self.transport.lanes.put(move)
        for tp, move in read.items():
            if self._stale(generation):
                return
            self._read_offset.pop(tp, None)  # else Faust drops what comes from a topic that was made anew
            yield tp, self._message(tp, move)

    def _stale(self, generation: int) -> bool:
        return not self.flow_active or self.app.consumer_generation_id != generation

    def _applied(self, move: Read) -> bool:
        """Apply what was read of a changelog; tell whether Faust may know. What was not applied counts as not read."""
        if not self.engine.ownerships.changelogs.apply(move):
            return False
        recovery = cast("TableManager", self.app.tables).recovery
        for offsets in (recovery.active_offsets, recovery.standby_offsets):
            last = offsets.get(move.tp)
            if last is not None and last < move.end - 1:
                offsets[move.tp] = move.end - 1
        return True

    def _message(self, tp: TP, move: Read) -> ConsumerMessage:
        message: ConsumerMessage = ConsumerMessage(
            topic=tp.topic,
            partition=tp.partition,
            offset=move.end - 1,
            timestamp=move.records[-1].timestamp / 1_000 if move.records else 0.0,
            timestamp_type=0,
            headers=None,
            key=None,
            value=None,
            checksum=None,
            tp=tp,
            generation_id=self.app.consumer_generation_id,
        )
        return message

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Give up what we own, then let Faust do its part."""
        self._hold_flow()
        self.moving = "letting go of partitions"
        await self.engine.ownerships.release()
        await super().on_partitions_revoked(revoked)
        self.moving = ""  # from here on others are waited for

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        """Take over what was assigned, then let Faust recover the table."""
        self._hold_flow()
        self.moving = "taking partitions"
        if not self.app.should_stop:
            ownerships, tps = self.engine.ownerships, [TopicPartition(*tp) for tp in assigned]
            await ownerships.take(tps, self)
            await ownerships.changelogs.take(tps, ownerships.current, self)
            self.engine.reconcile()
        await super().on_partitions_assigned(assigned, generation_id)
        self._held, self.moving = False, ""
        if self._resumed:
            self.resume_flow()

    def _hold_flow(self) -> None:
        self.holds += 1
        self._held, self._resumed = True, False
        self._sought = self._open = False
        self.stop_flow()

    def verify_event_path(self, now: float, tp: TP) -> None:
        """Say nothing of a partition that has not been fetched: health does."""

    def verify_recovery_event_path(self, now: float, tp: TP) -> None:
        """Likewise while state is read back."""

    async def perform_seek(self) -> None:
        """Seek what is committed; after that, and when the flow is resumed, inputs may be fetched."""
        await super().perform_seek()
        self._sought = True

    def resume_flow(self) -> None:
        """Have records fetched, once partitions are taken over and Faust's recovery knows of them.

        Before that it is the recovery of what was assigned before that asks for it; and where nothing was, Faust stops
        nothing. What would be fetched then has no place: not sought yet, nor paused.
        """
        self._resumed = True
        if not self._held:
            self._open = self._sought
            super().resume_flow()

    async def committed(self, tps: Collection[TopicPartition]) -> dict[TopicPartition, int | None]:
        """Give the committed offset of each partition, None where there is none."""
        return await self._thread.committed(tps)

    async def beginnings(self, tps: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Give the first offset of each partition's log."""
        return dict(await self.earliest_offsets(*tps))

    async def ends(self, tps: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Give the offset after the last committed record of each partition."""
        return dict(await self.highwaters(*tps))

    async def bounds(self, tp: TopicPartition) -> tuple[int, int]:
        """Give the first offset of a partition's log, and the one after its last committed record."""
        return (await self.beginnings([tp]))[tp], (await self.ends([tp]))[tp]


class BatchTransport(driver.Transport):
    """Faust's transport for aiokafka, with our consumer.

    Args:
        app: the Faust app.
        engine: what applies the batches.
        lanes: has it apply them.
    """

    Consumer = BatchConsumer

    def __init__(self, app: AppT, engine: Engine, lanes: Lanes) -> None:
        super().__init__(app.conf.broker_consumer, app, app.loop)
        self.engine = engine
        self.lanes = lanes
