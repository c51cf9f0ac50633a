"""Sends events from a thread of its own, in batches and in order, and keeps on disk what the gateway does not take.

Whoever hands events over is never held up and never met with an error. What is kept goes first when the gateway is
back. A batch that is sent again, since its answer was lost, has the same identifiers and counts once.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from schemas.topics import FIX_ATTEMPTS, REVIEWS, SESSIONS, TOOL_CALLS
from streams.emitter.gateway import Answer, GatewayClient
from streams.spool import Spool

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from streams.emitter.settings import EmitterSettings
    from streams.spool import Sent
    from streams.verdicts.model import Verdict

logger = logging.getLogger(__name__)

MOST_EVENTS: Final = 40
"""Of a batch: less than the 64 identifiers that the state of a session remembers, so that one that comes twice counts
once, whatever became of the first."""

MOST_BYTES: Final = 2**20
"""Of a batch, apart from its last event; below what the gateway takes by far."""

SEGMENT_BYTES: Final = 6 * 2**10
"""Of a file on disk, which is sent as one batch: of the shortest events some 50, for the same reason."""

FIRST_PAUSE_SECONDS: Final = 1.0
"""Until the gateway is tried again; doubled each time, up to `LONGEST_PAUSE_SECONDS`."""

LONGEST_PAUSE_SECONDS: Final = 30.0

DRAIN_BYTES: Final = 256 * 2**10
"""How much of what is on disk is sent before what comes newly is looked at again."""

LOOK_SECONDS: Final = 60.0
"""How often to look for what other processes have left on disk."""

ANSWERS: Final = "answers"
"""In the place of a topic: an answer to a verdict, which is sent by itself and waits in memory, not on disk."""

MOST_ANSWERS: Final = 1_000
"""Answers that wait for the gateway; the oldest go first. There are a few for a session that loops."""

_TOPICS: Final = tuple(topic.name for topic in (SESSIONS, FIX_ATTEMPTS, REVIEWS, TOOL_CALLS))
_NDJSON: Final = "application/x-ndjson"
_LOG_SECONDS: Final = 60.0


class Item(NamedTuple):
    """One event on its way: where to, of which session, and its JSON."""

    topic: str
    session_id: str
    data: bytes


@dataclass(slots=True)
class Counts:
    """What became of events, since the emitter was made.

    Attributes:
        sent: the gateway has them, on the brokers.
        kept: are, or were, kept on disk.
        refused: the gateway never takes them.
        invalid: were no events or answers, as they were handed over.
        dropped: there was no room for them, in memory or on disk, as far as this process knows.
    """

    sent: int = 0
    kept: int = 0
    refused: int = 0
    invalid: int = 0
    dropped: int = 0


class Sending:
    """The queue, the thread, and what is on disk.

    Args:
        settings: see there.
        told: is given the sessions of each batch and their verdicts.
    """

    def __init__(self, settings: EmitterSettings, told: Callable[[Collection[str], Collection[Verdict]], None]) -> None:
        self.counts = Counts()
        self._settings = settings
        self._told = told
        self._client = GatewayClient(settings)
        self._spools = {} if settings.spool is None else {name: _spool(settings, name) for name in _TOPICS}
        self._logged: dict[str, float] = {}
        self._queue: deque[Item] = deque()
        self._under_way: list[Item] = []
        self._bytes = 0
        self._thread: threading.Thread | None = None
        self._start_over()

    def put(self, item: Item) -> None:
        """Hand an event over; of too many the oldest is dropped."""
        with self._changed:
            late = self._closing
            if not late:
                self._queue.append(item)
                self._bytes += len(item.data)
                self._bound()
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="traction-emitter", daemon=True)
                    self._thread.start()
                self._changed.notify_all()
        if late:
            self._keep([item])

    def flush(self, seconds: float) -> bool:
        """Wait until everything was sent or is kept on disk, and tell whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: not (self._queue or self._under_way or self._due), seconds)

    def close(self, seconds: float) -> None:
        """Send what is left, for so long, and keep on disk what was not sent by then, and what comes afterwards."""
        ends = time.monotonic() + seconds
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(max(0.0, ends - time.monotonic()))
        with self._changed:
            left = [*self._under_way, *self._queue]
            self._queue.clear()
            self._bytes = 0
            self.counts.dropped += len(self._due)
            self._due.clear()
        self._keep(left)

    def forked(self) -> None:
        """Begin anew in a child process: what is under way is its parent's."""
        self._client.forget()
        self._start_over()

    def say(self, kind: str, text: str, *values: object) -> None:
        """Log a warning, once a minute for each kind."""
        now = time.monotonic()
        if now - self._logged.get(kind, -_LOG_SECONDS) >= _LOG_SECONDS:
            self._logged[kind] = now
            logger.warning(text, *values)

    def _start_over(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._queue, self._under_way, self._bytes = deque(), [], 0
        self._due: deque[bytes] = deque(maxlen=MOST_ANSWERS)
        self._thread = None
        self._closing = False
        self._away_until = 0.0
        self._pause = 0.0
        self._behind = False  # whether there are events of ours on disk, before which no others are sent
        self._look_at = 0.0  # when to see what is on disk, by whatever process it was kept there

    def _bound(self) -> None:
        while len(self._queue) > self._settings.queue or self._bytes > self._settings.queue_bytes:
            self._bytes -= len(self._queue.popleft().data)
            self.counts.dropped += 1

    def _run(self) -> None:
        try:
            while self._turn():
                pass
        finally:
            self._client.close()

    def _turn(self) -> bool:
        """Do what is to be done next; False when nothing ever will be."""
        with self._changed:
            self._changed.wait_for(self._has_work, self._waiting())
            batch = self._take()
            closing = self._closing
        if self._spools and not closing and time.monotonic() >= self._look_at:
            self._drain()
        if batch:
            self._deliver(batch)
        self._answer()
        with self._changed:
            self._under_way = []
            self._changed.notify_all()
            return bool(self._queue) or not self._closing

    @property
    def _is_away(self) -> bool:
        return time.monotonic() < self._away_until

    def _has_work(self) -> bool:
        if self._queue and (self._spools or not self._is_away):
            return True
        return self._closing or bool(self._spools and time.monotonic() >= self._look_at)

    def _waiting(self) -> float | None:
        """Tell for how long there may be nothing to do."""
        until = self._look_at if self._spools else self._away_until
        if self._due:
            until = min(until, self._away_until)
        return max(0.0, until - time.monotonic()) if self._spools or self._queue or self._due else None

    def _take(self) -> list[Item]:
        """Take a batch of one topic from the front."""
        if not self._spools and self._is_away and not self._closing:
            return []
        batch: list[Item] = []
        size = 0
        while self._queue and len(batch) < MOST_EVENTS and size < MOST_BYTES:
            if batch and (self._queue[0].topic != batch[0].topic or batch[0].topic == ANSWERS):
                break
            item = self._queue.popleft()
            size += len(item.data)
            batch.append(item)
        self._bytes -= size
        self._under_way = batch
        return batch

    def _deliver(self, batch: list[Item]) -> None:
        """Send a batch, or keep it where the gateway is away or has not got what is kept from before."""
        topic = batch[0].topic
        if topic == ANSWERS:
            self.counts.dropped += max(0, len(self._due) + len(batch) - MOST_ANSWERS)
            self._due += [item.data for item in batch]
        elif self._is_away or self._behind:
            self._keep(batch)
        else:
            whole = b"\n".join(item.data for item in batch)
            what = self._post(topic, whole, len(batch), {item.session_id for item in batch})
            if what == "away":
                self._keep(batch)
            elif what == "refused":
                self._one_by_one(batch)

    def _answer(self) -> None:
        """Send the answers that are due, as long as the gateway takes any."""
        while self._due and not self._is_away:
            answer = self._client.post("/v1/answers", self._due[0], media_type="application/json")
            self._note(answer, ())
            if answer.what != "away":
                self._due.popleft()

    def _one_by_one(self, batch: list[Item]) -> None:
        """Send what was refused together each by itself: there may be one among them that nobody takes."""
        for place, item in enumerate(batch):
            what = "refused" if len(batch) == 1 else self._post(item.topic, item.data, 1, {item.session_id})
            self.counts.refused += what == "refused"
            if what == "away":
                self._keep(batch[place:])
                return

    def _post(self, topic: str, body: bytes, count: int, sessions: Collection[str]) -> Sent:
        answer = self._client.post(f"/v1/events/{topic}", body, media_type=_NDJSON)
        self._note(answer, sessions)
        if answer.what == "sent":
            self.counts.sent += count - answer.refused
            self.counts.refused += answer.refused
        return answer.what

    def _note(self, answer: Answer, sessions: Collection[str]) -> None:
        if answer.what == "away":
            self._pause = min(max(2 * self._pause, FIRST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)
            self._away_until = time.monotonic() + max(self._pause, answer.wait)
            self.say("away", "the gateway does not take events (%s); they are kept until it does", answer.reason)
            return
        self._pause = self._away_until = 0.0
        if answer.reason:
            self.say("refused", "the gateway refuses events: %s", answer.reason)
        if answer.what == "sent":
            self._told(sessions, answer.verdicts)

    def _keep(self, batch: list[Item]) -> None:
        """Keep events on disk, else in memory as long as there is a thread to send them."""
        events = [item for item in batch if item.topic != ANSWERS]
        if not self._spools:
            with self._changed:
                if self._closing:
                    self.counts.dropped += len(events)
                else:
                    self._queue.extendleft(reversed(events))
                    self._bytes += sum(len(item.data) for item in events)
                    self._bound()
            return
        for done, item in enumerate(events):
            try:
                self._spools[item.topic].append(item.data)
            except OSError as problem:
                self.counts.dropped += len(events) - done
                self.say("lost", "events are lost, %s cannot be written: %s", self._settings.spool, problem)
                return
            self.counts.kept += 1
            self._behind = True
        self._look_at = self._away_until

    def _drain(self) -> None:
        """Send some of what is on disk, oldest first, unless another process is at it."""
        left = False
        for topic, spool in self._spools.items():
            try:
                drained = spool.drain(partial(self._again, topic), most_bytes=DRAIN_BYTES)
                left = left or (not drained.busy and spool.size() > 0)
            except OSError as problem:
                self.say("spool", "what is kept in %s cannot be sent: %s", self._settings.spool, problem)
            if self._is_away:
                break
        self._behind = left
        self._look_at = self._away_until if left else time.monotonic() + LOOK_SECONDS

    def _again(self, topic: str, lines: bytes) -> Sent:
        if self._closing:
            return "away"
        count = lines.count(b"\n")
        what = self._post(topic, lines, count, ())
        self.counts.refused += what == "refused" and count == 1
        return what


def _spool(settings: EmitterSettings, topic: str) -> Spool:
    directory = os.path.join(settings.spool or "", topic)  # noqa: PTH118 - as the spool takes it
    return Spool(directory, max_bytes=settings.spool_bytes, segment_bytes=SEGMENT_BYTES)
