"""Reads a collector's topics and writes events, in one transaction per partition and turn with the offsets read.

So each record counts exactly once for readers of committed records, whatever crashes or freezes: a former owner of a
partition is fenced and ends with `Fenced`. What a record comes to is for `bridged` to say.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from aiokafka.errors import NoOffsetForPartitionError, OffsetOutOfRangeError

from streams.access.roles import DEFAULT_LOGS_TOPIC, DEFAULT_SPANS_TOPIC
from streams.gateway.bridged import Mapping as RecordMapping
from streams.gateway.bridged import Turn
from streams.gateway.owned import Collected, CollectedPartitions
from streams.kafka import KafkaSettings, consumer, running
from streams.lag import Applied, LagWatch
from streams.topics import DEFAULT_APP_ID, bridge_group
from streams.transaction import PositionMoved, write

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aiokafka import AIOKafkaConsumer, TopicPartition
    from aiokafka.structs import ConsumerRecord

    from streams.gateway.metrics import BridgeMetrics, Signal
    from streams.health import Health
    from streams.otlp import Encoding
    from streams.privacy import Level

POLL_MS: Final = 250
"""How long a poll waits for records, hence how late the end of the process may come."""

BATCH_RECORDS: Final = 50
"""Most records of one turn: each holds a batch of the collector's, a megabyte at most by its default."""

MAX_OUTPUTS: Final = 2_000
"""Records written from which on a transaction is committed, which keeps it, and the end of the process, within a second
or so; what one record comes to is always written in one."""

TAKE_PAUSE: Final = 0.02
HEARTBEAT_MS: Final = 1_000


@dataclass(frozen=True, slots=True)
class BridgeSettings:
    """What the bridge leaves to whoever runs it.

    Attributes:
        group: the consumer group; its name begins the transactional ids.
        spans_topic: where the collector writes traces; None for nowhere.
        logs_topic: where it writes log records; None for nowhere.
        encoding: how it writes both.
        privacy: how much of tool calls' content goes on.
        session_timeout_ms: without a heartbeat for that long, a process loses its partitions.
        transaction_timeout_ms: after this the brokers abort a transaction that its owner left open.
    """

    group: str = bridge_group(DEFAULT_APP_ID)
    spans_topic: str | None = DEFAULT_SPANS_TOPIC
    logs_topic: str | None = DEFAULT_LOGS_TOPIC
    encoding: Encoding = "protobuf"
    privacy: Level = "full"
    session_timeout_ms: int = 30_000
    transaction_timeout_ms: int = 30_000

    @property
    def topics(self) -> dict[str, Signal]:
        """What is on which topic."""
        named: tuple[tuple[str | None, Signal], ...] = ((self.spans_topic, "traces"), (self.logs_topic, "logs"))
        return {name: signal for name, signal in named if name is not None}


class Bridge:
    """The bridge of one process.

    Args:
        kafka: where and how to connect.
        settings: see `BridgeSettings`.
        metrics: takes what is measured.
        health: takes `streams.ownership.CONDITIONS` and progress.
        on_ready: is told the partitions when they are all taken: at first, and after every rebalance.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        settings: BridgeSettings,
        *,
        metrics: BridgeMetrics,
        health: Health,
        on_ready: Callable[[list[str]], None],
    ) -> None:
        self._kafka = kafka
        self._settings = settings
        self._metrics = metrics
        self._health = health
        self._on_ready = on_ready
        self._steps = 0
        self._mappings = {
            name: RecordMapping(signal, settings.encoding, settings.privacy, settings.group)
            for name, signal in settings.topics.items()
        }
        self._owned = CollectedPartitions(
            kafka,
            metrics,
            health,
            names={name: f"{settings.group}-{_id_of(signal)}" for name, signal in settings.topics.items()},
            transaction_timeout_ms=settings.transaction_timeout_ms,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Read and write until told to stop.

        Args:
            stop: when set, the transactions under way are finished and the partitions given up.

        Raises:
            Fenced: another process has taken over a partition of ours.
            PositionMoved: the consumer's position changed without us.
            InvalidRequest: records are in protobuf, and the library for it is missing.
            KafkaUnavailable: the brokers cannot be reached at the start, or give what cannot be read.
            KafkaError: they refuse something later; what can be retried is retried without an end.
        """
        client = consumer(
            self._kafka,
            group_id=self._settings.group,
            auto_offset_reset="none",  # where reading goes on is decided when a partition is taken
            session_timeout_ms=self._settings.session_timeout_ms,
            heartbeat_interval_ms=min(HEARTBEAT_MS, self._settings.session_timeout_ms // 4),
            rebalance_timeout_ms=2 * self._settings.session_timeout_ms,
        )
        watch = LagWatch(self._kafka, self._metrics, self._health, self._applied, taking=self._under_way)
        offsets = consumer(self._kafka, isolation_level="read_uncommitted")
        async with contextlib.AsyncExitStack() as stack:
            for each in (client, offsets):
                await stack.enter_async_context(running(each, self._kafka))
            self._owned.use(client, offsets)
            watching = asyncio.create_task(watch.run(), name="lag watch")
            client.subscribe(list(self._mappings), listener=self._owned)
            try:
                while not stop.is_set():
                    if watching.done():
                        watching.result()
                    self._owned.check()
                    self._tell()
                    await self._turn(client)
                    self._steps += 1
            finally:
                watching.cancel()
                await asyncio.wait({watching})
                await self._owned.release_all()

    async def _turn(self, client: AIOKafkaConsumer) -> None:
        """Poll once, and write what comes of it, the partitions side by side.

        Nothing awaits between aiokafka's handing over of records and their being bound to the unit under which they
        were fetched; where there is none they are dropped, and read again by whoever takes the partition.
        """
        if self._owned.taking():
            await asyncio.sleep(TAKE_PAUSE)
            return
        fetched = await self._fetch(client)
        units = self._owned.ready()
        for unit in units:
            # Known, hence no waiting. Markers of transactions move it as well.
            unit.next = await client.position(unit.tp)
            records = fetched.get(unit.tp, [])
            if unit.next < unit.position or (records and records[0].offset < unit.position):
                raise PositionMoved(
                    f"{unit.name} is no longer read at {unit.position} but at {unit.next}: "
                    "start this process again, it will find out what was committed"
                )
        await asyncio.gather(*(self._act(unit, fetched.get(unit.tp, [])) for unit in units))

    async def _fetch(self, client: AIOKafkaConsumer) -> Mapping[TopicPartition, list[ConsumerRecord]]:
        try:
            found: Mapping[TopicPartition, list[ConsumerRecord]] = await client.getmany(
                timeout_ms=POLL_MS, max_records=BATCH_RECORDS
            )
        except NoOffsetForPartitionError:  # found before that partition was taken
            await asyncio.sleep(TAKE_PAUSE)
            return {}
        except OffsetOutOfRangeError as problem:
            for tp, offset in problem.args[0].items():
                await self._owned.pass_over_deleted(tp, offset)
            return {}
        return found

    async def _act(self, unit: Collected, records: list[ConsumerRecord]) -> None:
        async with unit.lock:
            if not unit.owned:
                return
            turn, end = Turn(), unit.next
            for record, after in zip_longest(records, records[1:]):
                turn.take(record, self._mappings[unit.tp.topic], unit.memory, self._kafka)
                self._steps += 1
                await asyncio.sleep(0)  # heartbeats and pages are served in between
                if after is None or len(turn.outputs) >= MAX_OUTPUTS:
                    await self._commit(unit, turn, end if after is None else after.offset)
                    unit.timestamp = record.timestamp / 1000
                    turn = Turn()
            if records:
                self._metrics.batch_records.observe(len(records))
            elif unit.deleted:
                await self._commit(unit, turn, end)
            unit.position = end

    async def _commit(self, unit: Collected, turn: Turn, position: int) -> None:
        await write(
            unit.producer,
            turn.outputs,
            {unit.tp: position},
            group=self._settings.group,
            what=unit.name,
            metrics=self._metrics,
        )
        turn.measure(self._metrics)
        self._metrics.deleted_unread.inc(unit.deleted)
        unit.position, unit.deleted = position, 0

    def _applied(self) -> Mapping[TopicPartition, Applied]:
        return {unit.tp: Applied(unit.position, unit.timestamp) for unit in self._owned.ready()}

    def _under_way(self) -> Mapping[str, int]:
        return {**self._owned.under_way(), **({"reading": self._steps} if self._owned.assigned else {})}

    def _tell(self) -> None:
        """Keep the metric of what is owned, and announce a new assignment once it is taken."""
        self._metrics.assigned_partitions.set(len(self._owned.current()))
        if self._owned.news():
            self._on_ready(sorted(unit.name for unit in self._owned.ready()))


def _id_of(signal: Signal) -> str:
    """Name a signal as the role `bridge` names the transactional ids."""
    return "spans" if signal == "traces" else "logs"
