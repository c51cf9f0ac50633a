"""A table of verdicts that follows the topics: directives, terminations, and what is said about them on control.

Joins no group and commits nothing: each process reads all of them, and is ready when it has read what was there at its
start. While the brokers are away it tells what it knows. It must not decide what a verdict is: that is the table's.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, cast

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from schemas.decode import InvalidEvent, decode
from schemas.encode import encode, headers, record_key
from schemas.topics import CONTROL, DIRECTIVES, TERMINATIONS
from streams.client.answers import Answer, answer_record
from streams.kafka import KafkaSettings, in_words, producer, running
from streams.reading import DEFAULT_SECONDS, Positions, Reader, reading
from streams.verdicts.asked import HOLDS
from streams.verdicts.table import MAX_SESSIONS, Verdicts

if TYPE_CHECKING:
    from typing import Self

    from aiokafka import AIOKafkaProducer
    from aiokafka.structs import ConsumerRecord

    from schemas.events import Control, SessionEvent, ToolCall
    from schemas.outputs import Directive, Termination
    from streams.verdicts.model import CallKey, Verdict

logger = logging.getLogger(__name__)

SOURCE: Final = "/traction/verdicts"
"""Who publishes answers, in the CloudEvents attribute `source`."""

RETRY_SECONDS: Final = 1.0
"""Until the topics are read again after the brokers have refused it."""

_FOLLOWED: Final = (CONTROL, TERMINATIONS, DIRECTIVES)  # in this order, so that what was taken back never shows


class LiveVerdicts:
    """Verdicts as they stand on the topics, to be used with `async with`, in one event loop.

    Denying a repeated call needs more than the topics tell: hand every call and every word of a user to `note`, or ask
    `verdict` about each call before it is made. A session whose events are spread over several processes is denied
    nothing but during a cooldown, or once too often: send those of one session to one process.

    Args:
        kafka: where and how to connect.
        actor: who answers, for people.
        seconds: how long reading one topic may bring nothing before the start is given up.
        sessions: how many sessions are remembered.

    Attributes:
        unreadable: records that were left out since this version cannot read them.
        failures: how often the brokers refused to let the topics be read on, which is tried again.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        *,
        actor: str = "traction",
        seconds: float = DEFAULT_SECONDS,
        sessions: int = MAX_SESSIONS,
    ) -> None:
        self.unreadable = 0
        self.failures = 0
        self._kafka = kafka
        self._actor = actor
        self._seconds = seconds
        self._table = Verdicts(sessions=sessions)
        self._topics = {kafka.topic(topic): topic for topic in _FOLLOWED}
        self._positions: Positions = {}
        self._stack = AsyncExitStack()
        self._producer: AIOKafkaProducer
        self._following: asyncio.Task[None]

    async def __aenter__(self) -> Self:
        """Connect, and read the topics to their end as it is now.

        Raises:
            KafkaUnavailable: the brokers cannot be reached.
            TopicsError: a topic is missing, or hidden from us.
            TooSlow: a topic could not be read.
        """
        async with AsyncExitStack() as stack:
            self._producer = await stack.enter_async_context(running(producer(self._kafka), self._kafka))
            reader = await stack.enter_async_context(reading(self._kafka, list(self._topics), seconds=self._seconds))
            since = datetime.now(UTC) - HOLDS
            for name in self._topics:
                ends = await reader.ends(name)
                async for record in reader.read(name, since=since, until=ends, long=True):
                    self._take(record)
                self._positions |= ends
            self._following = asyncio.create_task(self._follow(reader))
            stack.push_async_callback(self._stop)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *problem: object) -> None:
        """Leave."""
        await self._stack.aclose()

    def verdict(self, session_id: str, call: CallKey | None = None, *, now: datetime | None = None) -> Verdict:
        """Tell what a session is told; see `Verdicts.verdict`.

        Args:
            session_id: the session.
            call: the call that is about to be made, if one is.
            now: the time; this machine's when not given.
        """
        return self._table.verdict(session_id, now or datetime.now(UTC), call)

    def note(self, event: ToolCall | SessionEvent) -> None:
        """Take in what a session did; see `Verdicts.note`."""
        self._table.note(event)

    async def handed_out(self, verdict: Verdict) -> None:
        """Note that the session was given a verdict, and answer its directive with `obeyed` the first time.

        A stop is not answered: whether the session has ended is for whoever runs it to say. That it was given is noted
        before anything is waited for, so that nothing is given twice meanwhile.

        Raises:
            KafkaError: the answer could not be written.
        """
        if self._table.handed_out(verdict):
            await self.answer(verdict, "obeyed")

    async def answer(self, verdict: Verdict, action: Answer, *, reason: str | None = None) -> None:
        """Answer what a verdict comes from: returns when the brokers have the answer; see `answer_to`."""
        if verdict.answers is not None:
            await self.answer_to(verdict.session_id, verdict.answers, action, reason=reason)

    async def answer_to(self, session_id: str, answers: str, action: Answer, *, reason: str | None = None) -> None:
        """Answer a directive or termination; the same answer again is recognised as such.

        Args:
            session_id: the session.
            answers: its id.
            action: `obeyed` when it was done, `refused` when it will not be, `ended` when the session had ended before.
            reason: why, for people.

        Raises:
            LookupError: nothing such was asked of this session, as far as is remembered.
            KafkaError: the answer could not be written.
        """
        asked = self._table.asked(session_id, answers)
        if asked is None:
            raise LookupError(f"answers: nothing of this id was asked of the session in the last {HOLDS.days} days")
        control = answer_record(
            answers,
            asked.attempt,
            action,
            session_id=session_id,
            task_id=asked.task_id,
            actor=self._actor,
            reason=reason,
            now=datetime.now(UTC),
        )
        await self._producer.send_and_wait(
            self._kafka.topic(CONTROL),
            encode(control),
            key=record_key(control),
            headers=headers(control, source=SOURCE),
        )

    async def _follow(self, reader: Reader) -> None:
        while True:
            try:
                async for record in reader.follow(self._positions):
                    self._take(record)
                    self._positions[TopicPartition(record.topic, record.partition)] = record.offset + 1
            except KafkaError as problem:
                self.failures += 1
                what = in_words(self._kafka, problem)
                logger.warning("verdicts stay as they are, since the topics cannot be read: %s", what)
            await asyncio.sleep(RETRY_SECONDS)

    async def _stop(self) -> None:
        self._following.cancel()
        await asyncio.gather(self._following, return_exceptions=True)

    def _take(self, record: ConsumerRecord) -> None:
        if record.value is None:
            return
        try:
            found = decode(self._topics[record.topic], record.value, record.headers)
        except InvalidEvent as problem:
            self.unreadable += 1
            place = f"{record.topic}-{record.partition}@{record.offset}"
            logger.warning("%s is left out of the verdicts: %s", place, problem)
            return
        self._table.note(cast("Control | Directive | Termination", found))
