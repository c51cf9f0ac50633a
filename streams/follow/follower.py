"""Follows files and folders: finds what is new, reads what grew, and notes what was acknowledged.

In memory are the latest files that grew, one batch of events, and a few numbers of each file; the work of a turn is
bounded, so that many files hold nothing up. Events of a session are sent in the order of its file, and never noted
before they are acknowledged. Knows neither brokers nor formats.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from streams.follow.batch import MOST_EVENTS, Batch
from streams.follow.files import Files
from streams.follow.notes import Known
from streams.follow.sinks import Away
from streams.follow.tail import HEAD_BYTES, Gone, NoRecording, Tail
from streams.follow.told import Told
from streams.importers import NotFollowed
from streams.importers.codex import PACKED

if TYPE_CHECKING:
    from collections.abc import Callable

    from schemas.events import SessionInput
    from streams.follow.notes import Notes
    from streams.follow.sinks import Sink
    from streams.privacy import Level

logger = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS: Final = 1.0
"""Until events are sent again that were not taken; doubled each time, up to `LONGEST_PAUSE_SECONDS`."""

LONGEST_PAUSE_SECONDS: Final = 30.0

MOST_FAULTS: Final = 5
"""Lines of one file that are named as unreadable while it is being read; the rest is only counted."""

MOST_TOLD: Final = 10_000
"""Paths that are remembered as told; of more, some are told again."""


@dataclass(frozen=True, slots=True)
class FollowSettings:
    """How files are followed.

    Attributes:
        roots: files and folders.
        since: of files that are there at the start, send events since then too; None: only what comes.
        privacy: what is sent of arguments, results and errors.
        interval: seconds between two looks, where nothing is left to be read.
        tails: most files that are kept open, with what is known of their sessions.
        entries: entries of folders that are looked at in one turn.
        turn_bytes: how much is read in one turn.
        idle_seconds: after which a file that did not grow is closed; it is read again from its beginning if it does.
    """

    roots: tuple[str, ...]
    since: datetime | None = None
    privacy: Level = "full"
    interval: float = 1.0
    tails: int = 128
    entries: int = 5_000
    turn_bytes: int = 16 * 2**20
    idle_seconds: float = 600.0


class _Ended(Exception):
    """Told to stop, while events are not taken."""


class Follower:
    """Follows files, turn by turn.

    Args:
        settings: see there.
        notes: what was sent before.
        sink: takes the events.
        tell: is told what happens.
        stop: once it is set, nothing more is read.
    """

    def __init__(
        self, settings: FollowSettings, notes: Notes, sink: Sink, tell: Callable[[Told], None], stop: asyncio.Event
    ) -> None:
        self._settings = settings
        self._sink = sink
        self._tell = tell
        self._stop = stop
        self._files = Files(settings.roots, notes, settings.since)
        self._due: OrderedDict[str, str | None] = OrderedDict()  # to be read; behind which other
        self._tails: OrderedDict[str, Tail] = OrderedDict()
        self._grew: dict[str, float] = {}
        self._faults: dict[str, int] = {}
        self._passed: dict[str, bool] = {}  # paths that were told of, and whether they are passed by
        self._batch = Batch(settings.privacy, notes)
        self.sent = 0
        """Events that were acknowledged."""
        self.refused = 0
        """Events that are never taken."""

    async def run(self) -> None:
        """Follow until told to stop; what was read by then is sent.

        Raises:
            NotesUnusable: what was sent cannot be noted.
        """
        try:
            while not self._stop.is_set():
                await self.turn()
                await asyncio.sleep(0)  # signals are heard here
                if not self._due and self._files.passes:
                    await self._wait(self._settings.interval)
            await self._flush()
        except _Ended:
            logger.warning("%d events were read and not taken: they are sent at the next start", len(self._batch))
        finally:
            self.close()
        self._tell(Told("ended", sent=self.sent, files=len(self._files)))

    def close(self) -> None:
        """Close all files."""
        for tail in self._tails.values():
            tail.close()
        self._tails.clear()

    async def turn(self) -> None:
        """Look at some folders and read some of what grew."""
        passes, sent = self._files.passes, self.sent
        self._look()
        if self._files.passes > passes:
            await self._end_pass()
        await self._read()
        await self._flush()
        self._close_idle()
        if self.sent > sent:
            self._tell(Told("progress", sent=self.sent, files=len(self._files), reading=len(self._tails)))

    def _look(self) -> None:
        for name, tail in self._tails.items():  # under whatever name, or none
            if tail.has_grown():
                self._due.setdefault(name, None)
        for name, after in self._files.look(self._settings.entries):
            if name not in self._tails:
                self._due.setdefault(name, after)
        for name, known in self._files.renamed.items():
            if name in self._tails:
                self._tails[name].known = known
        self._files.renamed.clear()

    async def _end_pass(self) -> None:
        for name, path in self._files.gone(self._due.__contains__):
            await self._end_of(name, path)
        await self._flush()
        if self._files.passes == 1:
            self._files.tidy()
            self._tell(Told("ready", files=len(self._files)))

    async def _end_of(self, name: str, path: str) -> None:
        self._faults.pop(name, None)
        tail = self._tails.pop(name, None)
        self._grew.pop(name, None)
        replaced = self._files.at(path)
        if tail is not None:
            copied = replaced is not None and replaced.identity != name and tail.begins_as(replaced)
            if not copied:  # else its calls go on in the one in its place
                await self._finish(tail)
            tail.close()
        self._tell(Told("removed", path=path))

    async def _finish(self, tail: Tail) -> None:
        """Send the calls that wait for a result that does not come any more."""
        now = datetime.now(UTC)
        for event in tail.finish(now):
            await self._give(tail.known, event, now)

    async def _read(self) -> None:
        left = self._settings.turn_bytes
        for name in sorted(self._due, key=self._left):  # what grew a little is not to wait for what is read again
            if left <= 0 or self._stop.is_set():
                return
            after = self._due[name]
            if after in self._due:
                continue
            tail = self._tail(name)
            if tail is None:
                del self._due[name]
                continue
            before = tail.position
            try:
                done = await self._read_one(tail, left)
            except (NotFollowed, NoRecording) as problem:
                self._pass_by(tail, problem)
                done = True
            left -= max(1, tail.position - before)
            if done:
                del self._due[name]

    def _left(self, name: str) -> int:
        tail = self._tails.get(name)
        return self._files.size(name) if tail is None else tail.stat().st_size - tail.position

    async def _read_one(self, tail: Tail, most: int) -> bool:
        """Read some of a file, and tell whether nothing is left for now."""
        name = tail.known.identity
        if not tail.is_same():
            await self._begin_anew(tail)
        self._grew[name] = time.monotonic()
        for read in tail.read(most, lambda: datetime.now(UTC)):
            known = tail.known
            if read.end > max(tail.floor, known.start):
                self._tell_faults(known, read.faults)
                for event in read.events:
                    if known.since is None or event.occurred_at.timestamp() >= known.since:
                        await self._give(known, event, read.at)
            if read.following > known.offset:
                self._keep(replace(known, offset=read.following))
                self._keep_head(tail)
            if self._stop.is_set():
                return False
        if tail.at_end:
            self._keep(replace(tail.known, modified_ns=tail.looked[1]))
        return tail.at_end

    async def _begin_anew(self, tail: Tail) -> None:
        """Read a file from its beginning that was cut, or written anew."""
        known = tail.known
        size = tail.stat().st_size
        cut = size >= known.head_bytes and tail.begins_as(known)
        if not cut:
            await self._finish(tail)
        start = min(known.start, size) if cut else 0
        since = known.since if cut else None
        anew = Known(known.identity, known.path, known.source, start=start, since=since)
        tail.restart(anew)
        self._keep(anew)
        self._tell(Told("rewritten", path=known.path))

    def _tail(self, name: str) -> Tail | None:
        """Give a file's reader; None where there is nothing to read."""
        tail = self._tails.get(name)
        if tail is not None:
            self._tails.move_to_end(name)
            return tail
        known = self._files.find(name)
        if known is None or self._passed.get(known.path):
            return None
        try:
            tail = Tail(known, named=known.path in self._files.named)
        except Gone:
            return None  # it is seen under another name, or missed
        self._tails[name] = tail
        while len(self._tails) > self._settings.tails:
            silent = (each for each in self._tails if each not in self._due)
            self._close(next(silent, next(iter(self._tails))))
        return tail

    def _pass_by(self, tail: Tail, problem: NotFollowed | NoRecording) -> None:
        known = tail.known
        final = isinstance(problem, NotFollowed) or problem.final
        told = known.path in self._passed
        if len(self._passed) >= MOST_TOLD:
            self._passed.clear()
        if known.path.endswith(PACKED):  # it does not change any more, so that it is done with for later starts too
            found = tail.stat()
            self._keep(replace(known, offset=found.st_size, modified_ns=found.st_mtime_ns))
        if self._files.is_packed(known.path):
            self._passed[known.path] = True
        elif not told and (isinstance(problem, NotFollowed) or known.path in self._files.named):
            self._tell(Told("not_followed", path=known.path, reason=str(problem)))
            self._passed[known.path] = final
        elif final:
            self._passed[known.path] = True
        self._close(known.identity)

    def _close(self, name: str) -> None:
        self._tails.pop(name).close()
        self._grew.pop(name, None)
        self._faults.pop(name, None)

    def _close_idle(self) -> None:
        before = time.monotonic() - self._settings.idle_seconds
        for name in [each for each, grew in self._grew.items() if grew < before and each not in self._due]:
            self._close(name)

    def _tell_faults(self, known: Known, faults: list[tuple[int, str]]) -> None:
        for line, reason in faults:
            told = self._faults[known.identity] = self._faults.get(known.identity, 0) + 1
            if told <= MOST_FAULTS:
                self._tell(Told("fault", path=known.path, line=line, reason=reason))

    async def _give(self, known: Known, event: SessionInput, now: datetime) -> None:
        refused = self._batch.add(known.source, event, now)
        if refused is not None:
            self._refuse(event.event_id, refused)
        if len(self._batch) >= MOST_EVENTS:
            await self._flush()

    async def _flush(self) -> None:
        """Send what was read, and note it; where it is not taken, again until it is, or until the end."""
        pause = 0.0
        while self._batch.outgoing:
            try:
                refused = await self._sink.send(self._batch.outgoing)
            except Away as problem:
                if not pause:
                    self._tell(Told("away", reason=str(problem)))
                if self._stop.is_set():
                    raise _Ended from problem
                pause = min(max(2 * pause, FIRST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)
                await self._wait(max(pause, problem.wait))
                continue
            if pause:
                self._tell(Told("back"))
            for event_id, reason in refused:
                self._refuse(event_id, reason)
            self.sent += len(self._batch.outgoing) - len(refused)
            break
        self._files.save(self._batch.given)
        self._batch.clear()

    def _refuse(self, event_id: str, reason: str) -> None:
        self.refused += 1
        self._tell(Told("refused", event_id=event_id, reason=reason))

    def _keep(self, known: Known) -> None:
        self._files.keep(known)
        tail = self._tails.get(known.identity)
        if tail is not None:
            tail.known = known

    def _keep_head(self, tail: Tail) -> None:
        known = tail.known
        count = min(HEAD_BYTES, known.offset)
        if count > known.head_bytes:
            self._keep(replace(known, head_bytes=count, head=tail.head(count)))

    async def _wait(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stop.wait()
