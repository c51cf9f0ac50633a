"""A table of verdicts that follows the topics: directives, terminations, and what is said about them on control.

Joins no group and commits nothing: each process reads all of them, and is ready when it has read what was there at its
start. While the brokers are away it tells what it knows. It must not decide what a verdict is: that is the table's.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, cast

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from schemas.decode import InvalidEvent, decode
from schemas.outputs import Termination
from schemas.topics import CONTROL, DIRECTIVES, TERMINATIONS
from streams.client.answers import Answer, answer_record
from streams.kafka import in_words
from streams.reading import DEFAULT_SECONDS, Positions, Reader, reading
from streams.verdicts.asked import HOLDS
from streams.verdicts.table import MAX_SESSIONS, Verdicts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Self

    from aiokafka.structs import ConsumerRecord

    from schemas.events import Control, SessionEvent, ToolCall
    from schemas.outputs import Directive
    from streams.kafka import KafkaSettings
    from streams.verdicts.asked import Asked
    from streams.verdicts.model import CallKey, Verdict

    Write = Callable[[Control], Awaitable[None]]

logger = logging.getLogger(__name__)

RETRY_SECONDS: Final = 1.0
"""Until the topics are read again after the brokers have refused it."""

REFUSED_SECONDS: Final = 3 * RETRY_SECONDS
"""For so long after brokers refused it the topics count as not read: a further try may take most of that to fail."""

_FOLLOWED: Final = (CONTROL, TERMINATIONS, DIRECTIVES)  # in this order, so that what was taken back never shows


class LiveVerdicts:
    """Verdicts as they stand on the topics, to be used with `async with`, in one event loop.

    Denying a repeated call needs more than the topics tell: hand every call and every word of a user to `note`, or ask
    `verdict` about each call before it is made. A session whose events are spread over several processes is denied
    nothing but during a cooldown, or once too often: send those of one session to one process.

    Args:
        kafka: where and how to connect.
        write: writes an answer; returns when the brokers have it, and raises whatever it likes when they may not.
        actor: who answers, for people.
        seconds: how long reading one topic may bring nothing before the start is given up.
        sessions: how many sessions are remembered.

    Attributes:
        unreadable: records that were left out since this version cannot read them.
        failures: how often the brokers refused to let the topics be read on, which is tried again; see `refused`.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        write: Write,
        *,
        actor: str = "traction",
        seconds: float = DEFAULT_SECONDS,
        sessions: int = MAX_SESSIONS,
    ) -> None:
        self.unreadable = 0
        self.failures = 0
        self._kafka = kafka
        self._write = write
        self._actor = actor
        self._seconds = seconds
        self._table = Verdicts(sessions=sessions)
        self._topics = {kafka.topic(topic): topic for topic in _FOLLOWED}
        self._positions: Positions = {}
        self._reader: Reader
        self._refusal = ""
        self._refused_at = -REFUSED_SECONDS
        self._stack = AsyncExitStack()
        self._following: asyncio.Task[None]
        self._settling: set[str] = set()
        self._work: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        """Connect, and read the topics to their end as it is now.

        Raises:
            KafkaUnavailable: the brokers cannot be reached.
            TopicsError: a topic is missing, or hidden from us.
            TooSlow: a topic could not be read.
        """
        async with AsyncExitStack() as stack:
            reader = await stack.enter_async_context(reading(self._kafka, list(self._topics), seconds=self._seconds))
            since = datetime.now(UTC) - HOLDS
            for name in self._topics:
                ends = await reader.ends(name)
                async for record in reader.read(name, since=since, until=ends, long=True):
                    self._take(record)
                self._positions |= ends
            self._reader = reader
            self._following = asyncio.create_task(self._follow(reader))
            stack.push_async_callback(self._stop)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *problem: object) -> None:
        """Leave."""
        await self._stack.aclose()

    @property
    def turns(self) -> int:
        """How often the topics were asked for more; rises as long as they are followed, refused or not."""
        return self._reader.turns + self.failures

    @property
    def refused(self) -> str:
        """Why the brokers do not let the topics be read on; empty where they do. What was known goes on to hold."""
        return self._refusal if time.monotonic() - self._refused_at < REFUSED_SECONDS else ""

    async def positions(self) -> Positions:
        """Give what is read next of each partition; markers of transactions count as read.

        Raises:
            KafkaError: it is not known.
        """
        return await self._reader.positions()

    def verdict(self, session_id: str, call: CallKey | None = None, *, now: datetime | None = None) -> Verdict:
        """Tell what a session is told; see `Verdicts.verdict`.

        Args:
            session_id: the session.
            call: the call that is about to be made, if one is.
            now: the time; this machine's when not given.
        """
        return self._table.verdict(session_id, now or datetime.now(UTC), call)

    def note(self, event: ToolCall | SessionEvent, *, waits: bool = False) -> None:
        """Take in what a session did; see `Verdicts.note`."""
        self._table.note(event, waits=waits)

    async def handed_out(self, verdict: Verdict) -> None:
        """Note that the session was given a verdict, and answer it with `obeyed`, unless that was said before.

        That it was given is noted before anything is waited for, so that no guidance is given twice meanwhile. An
        answer to a stop that could not be written is due until it is, see `settle`.

        Raises:
            Exception: the answer could not be written, as `write` says.
        """
        if not self._table.handed_out(verdict) or verdict.answers is None:
            return
        if verdict.action == "stop":
            await self.settle(verdict.session_id)
        else:
            await self.answer_to(verdict.session_id, verdict.answers, "obeyed")

    async def settle(self, session_id: str) -> None:
        """Answer the terminations of a session that is over: `obeyed` when it was told so here, `ended` when it ended.

        To be called when a session has ended. Does so by itself when a termination comes, or comes again.

        Raises:
            Exception: an answer could not be written, as `write` says.
        """
        while due := self._due(session_id):  # looked at anew each time: others may answer meanwhile
            asked, action = due
            self._settling.add(asked.id)
            try:
                await self._answer(asked, action)
            finally:
                self._settling.discard(asked.id)

    def _due(self, session_id: str) -> tuple[Asked, Answer] | None:
        """Give a termination that is to be answered, and that nobody is answering."""
        found = self._table.unanswered(session_id, datetime.now(UTC))
        return next((each for each in found if each[0].id not in self._settling), None)

    async def answer_to(self, session_id: str, answers: str, action: Answer, *, reason: str | None = None) -> None:
        """Answer a directive or termination; the same answer again is recognised as such.

        Args:
            session_id: the session.
            answers: its id.
            action: `obeyed` when it was done, `refused` when it will not be, `ended` when the session had ended before.
            reason: why, for people.

        Raises:
            LookupError: nothing such was asked of this session, as far as is remembered.
            Exception: the answer could not be written, as `write` says.
        """
        asked = self._table.asked(session_id, answers)
        if asked is None:
            raise LookupError(f"answers: nothing of this id was asked of the session in the last {HOLDS.days} days")
        await self._answer(asked, action, reason)

    async def _answer(self, asked: Asked, action: Answer, reason: str | None = None) -> None:
        control = answer_record(
            asked.id,
            asked.attempt,
            action,
            session_id=asked.session_id,
            task_id=asked.task_id,
            actor=self._actor,
            reason=reason,
            now=datetime.now(UTC),
        )
        await self._write(control)
        self._table.note(control)  # it will be read, too; until then nothing is answered twice

    async def _follow(self, reader: Reader) -> None:
        while True:
            try:
                async for record in reader.follow(self._positions):
                    self._take(record)
                    self._positions[TopicPartition(record.topic, record.partition)] = record.offset + 1
            except KafkaError as problem:
                self.failures += 1
                self._refusal, self._refused_at = in_words(self._kafka, problem), time.monotonic()
                logger.warning("verdicts stay as they are, since the topics cannot be read: %s", self._refusal)
            await asyncio.sleep(RETRY_SECONDS)

    async def _stop(self) -> None:
        for task in (work := [self._following, *self._work]):
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)

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
        if isinstance(found, Termination) and self._table.unanswered(found.session_id, datetime.now(UTC)):
            task = asyncio.create_task(self._settle(found.session_id))
            self._work.add(task)
            task.add_done_callback(self._work.discard)

    async def _settle(self, session_id: str) -> None:
        try:
            await self.settle(session_id)
        except Exception as problem:  # noqa: BLE001 - whatever it is: the termination comes again
            logger.warning("a termination is not answered yet: %s", type(problem).__name__)
