"""Runs one sink: reads the notifications in order, has each delivered or set aside, and commits its offset after that.

So a crash repeats at most the one that was on its way, with the same idempotency key. Whatever goes wrong, in Kafka or
in the sink, ends neither the process nor another sink: this one begins anew after a pause.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import TYPE_CHECKING

from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.errors import (
    CommitFailedError,
    IllegalStateError,
    KafkaError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
)

from schemas import topics
from schemas.decode import decode
from schemas.invalid import InvalidEvent
from schemas.outputs import Notification
from streams.escalation.text import line
from streams.kafka import KafkaUnavailable, consumer, in_words, running
from streams.received import check_header_names, dead_letter, meant_for
from streams.sinks.choice import Choice
from streams.sinks.delivery import FIRST_PAUSE_SECONDS, MOST_PAUSE_SECONDS, Abandoned, Bucket, Timing, deliver
from streams.sinks.errors import Gone, Unavailable, Undelivered
from streams.sinks.letters import Letters
from streams.sinks.settings import HttpSettings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

    from streams.kafka import KafkaSettings
    from streams.sinks.base import AnySink
    from streams.sinks.metrics import SinkMetrics

logger = logging.getLogger(__name__)

POLL_MS = 250
HEARTBEAT_MS = 1_000
"""Between two signs of life to Kafka; also how soon a process learns that it has to share the partitions."""

MARGIN_SECONDS = 60.0
"""By how much a poll may come later than the longest delivery takes, before Kafka takes the process for stuck."""

NEW_SINK_MS = 3_600_000
"""How old the first notifications are that a sink tells which the policy did not have before: not a whole week's, but
those of the hour in which somebody set it up."""

MOST_LOGGED = 120


class Runner(ConsumerRebalanceListener):  # type: ignore[misc]  # published without types
    """One sink at work.

    Args:
        sink: the sink.
        kafka: where and how to connect.
        group: the consumer group of this sink.
        metrics: takes what is measured.
        timing: where time and chance come from.
        session_timeout_ms: without a heartbeat for that long, its partitions go to another process.
    """

    def __init__(
        self,
        sink: AnySink,
        kafka: KafkaSettings,
        *,
        group: str,
        metrics: SinkMetrics,
        timing: Timing,
        session_timeout_ms: int,
    ) -> None:
        self.sink = sink
        self.disabled = False
        self._kafka = kafka
        self._group = group
        self._metrics = metrics
        self._session_timeout_ms = session_timeout_ms
        self._name = sink.settings.name
        self._timing = Timing(timing.clock, self._pause, timing.chance)
        self._sleep = timing.sleep
        self._bucket = Bucket(sink.settings.per_second, self._timing)
        self._stop = asyncio.Event()
        self._moved = asyncio.Event()
        self._standing: object = None
        self._begun: set[TopicPartition] = set()
        self._unreachable: dict[TopicPartition, int] = {}
        self._working = False
        self._current: TopicPartition | None = None
        self._client: AIOKafkaConsumer | None = None
        self._choice = Choice(sink.settings)

    def enable(self) -> None:
        """Let it be tried again after the receiver said that it is gone."""
        self.disabled = False
        self._metrics.disabled.labels(self._name).set(0)

    def stop(self) -> None:
        """Have it end: a try under way may finish, no further one is made."""
        self._stop.set()
        self._moved.set()

    async def run(self) -> None:
        """Deliver until told to stop; never raises but when it is cancelled."""
        bound = FIRST_PAUSE_SECONDS
        while not self._stop.is_set():
            self._working = False
            try:
                await self._consume()
            except (KafkaError, KafkaUnavailable) as problem:
                logger.warning("sink %s: %s; beginning anew", self._name, in_words(self._kafka, problem))
            except Exception as problem:  # noqa: BLE001 - a sink must not end the process, whatever is wrong with it
                # Only where it happened: the text of an error of a client may have an address in it that is a secret.
                logger.error("sink %s: %s; beginning anew", self._name, _where(problem))  # noqa: TRY400
            else:
                continue
            self._metrics.restarts.labels(self._name).inc()
            bound = FIRST_PAUSE_SECONDS if self._working else min(2 * bound, MOST_PAUSE_SECONDS)
            self._current = None
            await self._pause(self._timing.chance(bound))

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        """Take note that positions are to be looked up anew: aiokafka goes back to what is committed now already.

        The notification under way would come once more otherwise, should its partition stay here.
        """
        del revoked
        self._begun.clear()

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        """Look whether the notification under way is still ours."""
        del assigned
        self._moved.set()

    async def _consume(self) -> None:
        settings = self.sink.settings
        longest = settings.give_up_minutes * 60 + 1 / settings.per_second + MARGIN_SECONDS
        longest += settings.timeout_seconds if isinstance(settings, HttpSettings) else 0
        client = consumer(
            self._kafka,
            group_id=self._group,
            auto_offset_reset="none",  # where reading begins is decided in `_begin` alone
            max_poll_interval_ms=round(longest * 1000),
            session_timeout_ms=self._session_timeout_ms,
            heartbeat_interval_ms=min(HEARTBEAT_MS, self._session_timeout_ms // 4),
        )
        self._standing = None
        self._begun.clear()
        async with self.sink, running(client, self._kafka), contextlib.AsyncExitStack() as clients:
            letters = Letters(self._kafka, clients)
            self._client = client
            client.subscribe([self._kafka.topic(topics.NOTIFICATIONS)], listener=self)
            while not self._stop.is_set():
                await self._step(client, letters)

    async def _step(self, client: AIOKafkaConsumer, letters: Letters) -> None:
        """Settle where reading begins, fetch, and handle what was fetched from there under the same assignment."""
        standing = _assignment(client)
        if standing is not self._standing:
            self._standing = standing
            self._begun.clear()
        for tp in client.assignment() - self._begun if standing is not None else ():
            await self._begin(client, standing, tp)
        try:
            fetched = await client.getmany(timeout_ms=POLL_MS, max_records=1)
        except NoOffsetForPartitionError:
            return  # of a partition that is not begun yet
        except OffsetOutOfRangeError as problem:
            (out,) = problem.args
            for tp, offset in out.items():
                logger.warning("sink %s: %s-%d has no offset %d any more", self._name, tp.topic, tp.partition, offset)
            self._begun -= out.keys()
            self._unreachable |= out
            return
        self._working = True
        for tp, records in fetched.items():
            if tp in self._begun and standing is _assignment(client):
                await self._handle(client, letters, tp, records[0])

    async def _begin(self, client: AIOKafkaConsumer, standing: object, tp: TopicPartition) -> None:
        """Read on where the group stands; where it never stood, from what is an hour old.

        Nothing is begun, and all is asked again, when partitions were shared anew since: another process may have gone
        on from where the group stood when the answer was given.
        """
        known = offset = await client.committed(tp)
        if known is None or self._unreachable.get(tp) == known:
            offset = await self._start(client, tp, known)
            if await client.committed(tp) != known or standing is not _assignment(client):
                return
            try:
                await client.commit({tp: offset})
            except (CommitFailedError, IllegalStateError):
                return
            if known is not None and offset > known:
                self._metrics.deleted_untold.labels(self._name).inc(offset - known)
                logger.error(
                    "sink %s: %s-%d: records %d to %d were deleted by the topic's retention before they were told",
                    *(self._name, tp.topic, tp.partition, known, offset - 1),
                )
        if standing is _assignment(client):
            client.seek(tp, offset)
            self._begun.add(tp)

    @staticmethod
    async def _start(client: AIOKafkaConsumer, tp: TopicPartition, known: int | None) -> int:
        """Give where to begin when that cannot be where the group stands: the oldest after it, or what is young."""
        first: int = (await client.beginning_offsets([tp]))[tp]
        if known is not None and known < first:
            return first
        end: int = (await client.end_offsets([tp]))[tp]  # first: what comes before the next answer is not passed over
        young = (await client.offsets_for_times({tp: int(time.time() * 1000) - NEW_SINK_MS})).get(tp)
        return end if young is None else int(young.offset)

    async def _handle(
        self, client: AIOKafkaConsumer, letters: Letters, tp: TopicPartition, record: ConsumerRecord
    ) -> None:
        """Deliver a record or set it aside, then commit."""
        age = self._metrics.queue_age_seconds.labels(self._name)
        age.set_function(lambda: max(0.0, time.time() - record.timestamp / 1000))
        self._current = tp
        standing = self._standing
        try:
            try:
                outcome = await self._settle(record)
            except InvalidEvent as problem:
                await self._set_aside(letters, record, problem)
                outcome = "dead"
            self._metrics.deliveries.labels(self._name, outcome).inc()
            # Shared anew meanwhile, another process may have had the partition and gone on: that is not taken back.
            if standing is _assignment(client) or (await client.committed(tp) or 0) <= record.offset:
                await client.commit({tp: record.offset + 1})
        except (Abandoned, CommitFailedError, IllegalStateError):
            pass  # whoever has the partition now goes on with this record
        finally:
            self._current = None
            age.set_function(lambda: 0.0)

    async def _settle(self, record: ConsumerRecord) -> str:
        """Deliver a record, and give the outcome.

        Raises:
            InvalidEvent: it cannot be read, or not be delivered.
            Abandoned: it is no longer ours to deliver.
        """
        if not meant_for(record.headers, self._group):  # whatever it holds: else each sink refused it once more
            return "skipped"
        check_header_names(record.headers)
        notification = decode(topics.NOTIFICATIONS, record.value, record.headers)
        if not isinstance(notification, Notification):
            raise TypeError(f"the topic of notifications decodes to {type(notification).__name__}")
        if not self._choice.wanted(notification):
            return "skipped"
        name = f"sink {self._name}"
        if self.disabled:
            raise InvalidEvent(
                "delivery_refused", f"{name}: the receiver is gone", "see where it is, and mend and reload the policy"
            )
        try:
            outcome = await self._deliver(notification)
        except Unavailable as problem:
            minutes = f"{self.sink.settings.give_up_minutes:g}"
            raise InvalidEvent(
                "delivery_failed",
                f"{name}: given up after {minutes} minutes: {problem}",
                "see that it is up, then replay the dead letter",
            ) from None
        except Undelivered as problem:
            if isinstance(problem, Gone):
                self.disabled = True
                self._metrics.disabled.labels(self._name).set(1)
            raise InvalidEvent(
                "delivery_refused", f"{name}: {problem}", "mend the settings, then replay the dead letter"
            ) from problem.__cause__
        if outcome == "delivered":
            self._choice.delivered(notification)
            self._metrics.delivery_seconds.labels(self._name).observe(max(0.0, time.time() - record.timestamp / 1000))
        return outcome

    async def _deliver(self, notification: Notification) -> str:
        """Try until it is taken, and give the outcome."""
        outcome = ""

        async def attempt() -> None:
            nonlocal outcome
            sent = await self.sink.send(notification)
            outcome = sent.outcome
            logger.info(
                "sink %s: notification %s (%s): %s, %s",
                *(self._name, line(notification.notification_id, MOST_LOGGED), notification.kind),
                *(outcome, sent.told),
            )

        def retried(problem: Unavailable, seconds: float) -> None:
            self._metrics.deliveries.labels(self._name, "retried").inc()
            logger.warning("sink %s: %s; trying again in %.1f s", self._name, problem, seconds)

        await deliver(
            attempt,
            give_up_seconds=self.sink.settings.give_up_minutes * 60,
            bucket=self._bucket,
            timing=self._timing,
            retried=retried,
            ours=self._ours,
        )
        return outcome

    async def _set_aside(self, letters: Letters, record: ConsumerRecord, problem: InvalidEvent) -> None:
        """Write a record to the dead letters."""
        logger.error("dead letter (%s): %s", problem.reason, problem)
        if problem.__cause__ is not None:
            logger.error("sink %s: %s", self._name, _where(problem.__cause__))
        letter = dead_letter(record, problem, self._group)
        await letters.write(letter)
        self._metrics.dead_letters.labels(problem.reason).inc()

    def _ours(self) -> bool:
        """Tell whether the notification under way is ours to deliver."""
        if self._stop.is_set():
            return False
        return self._current is None or (self._client is not None and self._current in set(self._client.assignment()))

    async def _pause(self, seconds: float) -> None:
        """Wait, but not longer than what is waited for is ours."""
        sleeping = asyncio.ensure_future(self._sleep(seconds))
        try:
            while self._ours() and not sleeping.done():
                self._moved.clear()
                moved = asyncio.create_task(self._moved.wait())
                await asyncio.wait({sleeping, moved}, return_when=asyncio.FIRST_COMPLETED)
                moved.cancel()
        finally:
            sleeping.cancel()


def _assignment(client: AIOKafkaConsumer) -> object:
    """Give what tells one sharing of the partitions from the next, though it be of the same; None during one."""
    subscription = client._subscription  # noqa: SLF001 - aiokafka does not tell it otherwise
    return None if subscription.reassignment_in_progress else subscription.subscription.assignment


def _where(problem: BaseException) -> str:
    """Say of a defect what it is and where it was raised, and nothing of what it says."""
    trace = problem.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "" if trace is None else f" at {trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
    return f"{type(problem).__name__}{place}"
