"""Puts the records of dead letters back onto their topics, each at most once, whatever dies meanwhile.

A record and the receipt for its letter, on the topic of dead letters itself, are written in one transaction. All runs
share one transactional id: a run fences its predecessor first, whose transaction then is either whole or undone, and
reads the receipts afterwards. A receipt comes after its letter in the same partition: retention never takes it first.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError, TopicAuthorizationFailedError

from schemas import topics
from streams.fencing import lost, reason
from streams.kafka import consumer, producer, running
from streams.letters.ledger import Ledger
from streams.letters.letter import read_letter, read_receipt, receipt_headers, returned_headers
from streams.letters.returns import BACK, hindrance, only_for
from streams.reading import reading
from streams.topics import partition_counts

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from aiokafka import AIOKafkaProducer
    from aiokafka.structs import ConsumerRecord, RecordMetadata

    from streams.kafka import KafkaSettings
    from streams.letters.letter import Choice, Letter
    from streams.letters.returns import Hindrance
    from streams.reading import Positions, Reader

BATCH_RECORDS: Final = 200
"""Records of one transaction: readers of their topics see none of them before the last one is written."""

BATCH_BYTES: Final = 4 * 2**20
"""Bytes likewise."""

TRANSACTION_TIMEOUT_MS: Final = 15_000
"""After this the brokers undo what a run left open that was killed; until then readers of the topics wait."""

ABORT_SECONDS: Final = 5.0
"""How long undoing may take for a run that ends; the brokers do it themselves later."""

GO_ON: Final = "run it again: it goes on with what was not put back"

Kind = tuple[str, str, "Hindrance | None"]
"""Topic and reason of letters, and what keeps them from being put back."""

What = Literal["replayed", "would_replay", "already", "refused"]


class ReplayStopped(Exception):
    """A run had to end before its work was done: the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be put back.

    Attributes:
        choice: which letters.
        by: who decides, for the receipts.
        again: also those that were put back before, and however often.
        limit: at most so many; None for all.
        ends: only what is before these positions; None for the end as it is.
    """

    choice: Choice
    by: str
    again: bool = False
    limit: int | None = None
    ends: Positions | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a letter.

    Attributes:
        letter: the letter.
        what: what became of it.
        why: what kept it from being put back, where it was refused.
        offset: where its record is now, in the partition that it came from.
    """

    letter: Letter
    what: What
    why: Hindrance | None = None
    offset: int | None = None


@dataclass(slots=True)
class Survey:
    """What is there.

    Attributes:
        ledger: the letters that are meant, and which of them were put back.
        ends: where the topic of dead letters ended.
        partitions: how many each topic has that is there.
    """

    ledger: Ledger[Kind]
    ends: Positions
    partitions: Mapping[str, int]

    def counts(self, *, again: bool) -> tuple[Counter[Kind], int]:
        """Count by kind what is to be put back or refused, and give how many letters were put back before."""
        still, done = self.ledger.count()
        return (still + done, 0) if again else (still, done.total())

    def missing(self, choice: Choice) -> list[str]:
        """Name the letters that were named and are not there."""
        return [f"{number}@{at}" for number, at in sorted(choice.names or ()) if not self.ledger.noted(number, at)]


@dataclass(slots=True)
class Replay:
    """Looks what is to be put back, and does it.

    Args:
        kafka: where and how to connect.
        order: what is to be put back.
        seconds: how long the brokers may let wait.
        progress: is told of every record that is read.
        tell: is told what became of a letter, once that is certain.
    """

    kafka: KafkaSettings
    order: Order
    seconds: float
    progress: Callable[[ConsumerRecord], None]
    tell: Callable[[Outcome], None]
    _batch: list[Letter] = field(default_factory=list)
    _bytes: int = 0
    _taken: int = 0

    @property
    def name(self) -> str:
        """Name of the topic of dead letters."""
        return self.kafka.topic(topics.DEAD_LETTERS)

    @property
    def transactional_id(self) -> str:
        """What the transactions of all runs are called, so that each fences those before it."""
        return f"{self.name}-replay"

    async def survey(self) -> Survey:
        """Look what is there, and change nothing.

        Raises:
            KafkaUnavailable: the brokers cannot be reached.
            TooSlow: they do not answer in time, or a transaction is open for longer.
            TopicsError: there is no topic of dead letters.
        """
        async with reading(self.kafka, [self.name], seconds=self.seconds) as reader:
            return await self._survey(reader)

    async def pretend(self) -> Survey:
        """Tell of each letter what would become of it, and change nothing; raises what `survey` raises."""
        async with reading(self.kafka, [self.name], seconds=self.seconds) as reader:
            survey = await self._survey(reader)
            async for letter in self._chosen(reader, survey):
                self.tell(Outcome(letter, "would_replay"))
            return survey

    async def perform(self) -> Survey:
        """Put back what is ordered.

        Raises:
            ReplayStopped: another run began, or the brokers failed; what was told is done.
            KafkaUnavailable: the brokers cannot be reached.
            TooSlow: they do not answer in time, or a transaction is open for longer.
            TopicsError: there is no topic of dead letters.
            TopicAuthorizationFailedError: we may not write to a topic.
        """
        client = producer(
            self.kafka,
            transactional_id=self.transactional_id,
            transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
            compression_type="gzip",  # what came compressed fits its topic again
            max_batch_size=2**18,
        )
        # Once it has started all earlier runs are fenced, and their transactions over: only then receipts are complete.
        async with running(client, self.kafka), reading(self.kafka, [self.name], seconds=self.seconds) as reader:
            survey = await self._survey(reader)
            async for letter in self._chosen(reader, survey):
                self._batch.append(letter)
                self._bytes += letter.bytes
                if len(self._batch) >= BATCH_RECORDS or self._bytes >= BATCH_BYTES:
                    await self._put(client)
            if self._batch:
                await self._put(client)
        return survey

    async def _survey(self, reader: Reader) -> Survey:
        wanted = self.order.choice.names
        partitions = await partition_counts(self.kafka, {self.name, *map(self.kafka.topic, BACK)})
        ends = await self._ends(partitions[self.name])
        first = _first(self.name, wanted, ends)
        survey = Survey(Ledger(("", "other", None)), ends, partitions)
        records = reader.read(
            self.name,
            start=first,
            since=self.order.choice.since,
            until=ends if first is None else {tp: ends[tp] for tp in first},
            long=True,
        )
        limits = ends if self.order.ends is None else self.order.ends
        async for record in records:
            self.progress(record)
            put_back, letter = read_receipt(record), read_letter(record)
            if put_back is not None:
                survey.ledger.settle(record.partition, put_back)
            elif (
                letter is not None
                and letter.offset < limits.get(TopicPartition(self.name, letter.partition), 0)
                and self.order.choice.fits(letter)
            ):
                why = hindrance(self.kafka, partitions, letter, again=self.order.again)
                survey.ledger.note(letter.partition, letter.offset, (letter.topic, letter.reason, why))
        return survey

    async def _ends(self, partitions: int) -> Positions:
        """Give where the topic ends, with what is not committed yet.

        Behind a worker's open transaction there may be receipts: reading to the end of what is committed would miss
        them.
        """
        tps = [TopicPartition(self.name, number) for number in range(partitions)]
        async with running(consumer(self.kafka, isolation_level="read_uncommitted"), self.kafka) as client:
            async with asyncio.timeout(self.seconds):
                ends: Positions = await client.end_offsets(tps)
        return ends

    async def _chosen(self, reader: Reader, survey: Survey) -> AsyncIterator[Letter]:
        """Read the letters once more, tell of those that stay, and give those that are to be put back."""
        order, ledger = self.order, survey.ledger
        spans = {TopicPartition(self.name, number): (begin, end) for number, begin, end in ledger.spans()}
        records = reader.read(
            self.name,
            start={tp: begin for tp, (begin, _) in spans.items()},
            until={tp: end for tp, (_, end) in spans.items()},
            long=True,
        )
        async for record in records:
            if order.limit is not None and self._taken >= order.limit:
                return
            letter = read_letter(record) if ledger.noted(record.partition, record.offset) else None
            if letter is None:
                continue
            why = hindrance(self.kafka, survey.partitions, letter, again=order.again)
            if ledger.settled(letter.partition, letter.offset) and not order.again:
                self.tell(Outcome(letter, "already"))
            elif why is not None:
                self.tell(Outcome(letter, "refused", why))
            else:
                self._taken += 1
                yield letter

    async def _put(self, client: AIOKafkaProducer) -> None:
        """Put a batch back in one transaction, and tell of it."""
        batch, self._batch, self._bytes = self._batch, [], 0
        sent: list[asyncio.Future[Any]] = []
        try:
            async with asyncio.timeout(self.seconds):
                await client.begin_transaction()
                for letter in batch:
                    await self._send(client, letter, sent)
                written: Sequence[RecordMetadata] = await asyncio.gather(*sent)
                await client.commit_transaction()
        except BaseException as problem:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(ABORT_SECONDS):
                    await client.abort_transaction()
            if lost(client, problem, sent):
                raise ReplayStopped(
                    f"another run began meanwhile, or the brokers undid what took longer than "
                    f"{TRANSACTION_TIMEOUT_MS // 1_000} s; {GO_ON}"
                ) from problem
            why = reason(client, problem, sent)
            if why is not problem:
                raise why from None
            if isinstance(problem, (KafkaError, TimeoutError)) and not isinstance(
                problem, TopicAuthorizationFailedError
            ):
                told = str(problem) or type(problem).__name__
                raise ReplayStopped(
                    f"the brokers failed ({told}): what was told is put back, of the next {len(batch)} all or none; "
                    f"{GO_ON}"
                ) from problem
            raise
        for letter, record in zip(batch, written[::2], strict=True):
            self.tell(Outcome(letter, "replayed", offset=record.offset))

    async def _send(self, client: AIOKafkaProducer, letter: Letter, sent: list[asyncio.Future[Any]]) -> None:
        """Send a record to where it came from, and the receipt to where its letter is."""
        head = returned_headers(letter, group=only_for(self.kafka, letter))
        # Not where its key belongs: a producer with another partitioner has all of its session there.
        place = {"topic": letter.topic, "partition": letter.from_partition}
        sent.append(await client.send(**place, key=letter.key, value=letter.value, headers=head))
        receipt = receipt_headers(letter, self.order.by)
        sent.append(await client.send(self.name, value=b"", partition=letter.partition, headers=receipt))


def _first(name: str, wanted: Any, ends: Positions) -> Positions | None:
    """Give where to begin when letters are named: the first of each partition; None when none is."""
    if wanted is None:
        return None
    first: Positions = {}
    for number, offset in wanted:
        tp = TopicPartition(name, number)
        if offset < ends.get(tp, 0):
            first[tp] = min(offset, first.get(tp, offset))
    return first
