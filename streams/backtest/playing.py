"""Plays sessions under one or several configurations, in several processes, and keeps what a score needs of them.

The sessions are read here, a tenth of the work, and handed out in portions; what comes back is in the order of the
reading however many processes there are. Nothing here knows a label.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections import deque
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import connection
from typing import TYPE_CHECKING

from streams.replay import play

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from detectors import Limits
    from schemas.outputs import Level
    from streams.importers import Session

PORTION_CALLS = 500
"""Calls handed to a process at once: enough that handing over costs nothing beside the playing, a tenth of a second."""

PORTIONS_PER_JOB = 4
"""Portions under way for each process, so that none waits while a long session holds up the first in line."""


class WorkersLost(RuntimeError):
    """A process that played sessions ended by itself, most likely for want of memory."""


@dataclass(frozen=True, slots=True)
class FirstAlert:
    """The first alert of one detector and level in a session.

    Attributes:
        level: how grave.
        detector: which detector raised it.
        seq: position, from 0, of the call that brought it about.
        reasoning: its sentence for people.
    """

    level: Level
    detector: str
    seq: int
    reasoning: str


@dataclass(frozen=True, slots=True)
class Heard:
    """What the detectors said of one session.

    Attributes:
        session_id: the session's id.
        file: the file it was read from, as it was named.
        calls: tool calls in it.
        alerts: for each configuration the first alerts of each detector and level, in the order in which they came.
    """

    session_id: str
    file: str
    calls: int
    alerts: tuple[tuple[FirstAlert, ...], ...]


def hear(session: Session, configurations: Sequence[Limits]) -> Heard:
    """Play one session under each configuration."""
    return Heard(
        session.session_id,
        session.source,
        session.calls,
        tuple(_first_alerts(session, limits) for limits in configurations),
    )


def _first_alerts(session: Session, limits: Limits) -> tuple[FirstAlert, ...]:
    first: dict[tuple[str, str], FirstAlert] = {}
    for alert in play(session, limits).alerts:
        first.setdefault(
            (alert.detector, alert.level), FirstAlert(alert.level, alert.detector, alert.seq, alert.reasoning)
        )
    return tuple(first.values())


def play_all(
    sessions: Iterable[Session], configurations: Sequence[Limits], jobs: int, tell: Callable[[Heard], None]
) -> list[Heard]:
    """Play sessions, and give what was heard in their order.

    Args:
        sessions: read as they are needed.
        configurations: each session is played under every one.
        jobs: how many processes play; with 1 it is this one.
        tell: called with what was heard of each session, in their order.

    Raises:
        WorkersLost: a process ended by itself.
    """
    heard: list[Heard] = []

    def take(portion: Iterable[Heard]) -> None:
        for each in portion:
            heard.append(each)
            tell(each)

    if jobs == 1:
        take(hear(session, configurations) for session in sessions)
        return heard
    with _processes(jobs) as pool:
        under_way: deque[Future[list[Heard]]] = deque()
        for portion in _portions(sessions):
            with _interrupts_held():
                under_way.append(pool.submit(_hear_each, portion, configurations))
            if len(under_way) == jobs * PORTIONS_PER_JOB:
                take(under_way.popleft().result())
        while under_way:
            take(under_way.popleft().result())
    return heard


def _portions(sessions: Iterable[Session]) -> Iterator[list[Session]]:
    portion: list[Session] = []
    calls = 0
    for session in sessions:
        portion.append(session)
        calls += session.calls
        if calls >= PORTION_CALLS:
            yield portion
            portion, calls = [], 0
    if portion:
        yield portion


def _hear_each(portion: list[Session], configurations: Sequence[Limits]) -> list[Heard]:
    return [hear(session, configurations) for session in portion]


@contextlib.contextmanager
def _processes(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Give processes that are gone afterwards: at once when this one is interrupted or fails."""
    # Not forked: what else runs in this process stays out of them.
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _end_with_parent)
    others = set(multiprocessing.active_children())
    try:
        yield pool
    except BrokenProcessPool:
        raise WorkersLost("a process that plays sessions was ended, as happens when memory runs out") from None
    except BaseException:
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back while processes may be started: they inherit that, and leave it to this one to end them."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent() -> None:
    """See to it that this process does not outlive the one that started it, however that ends."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_wait_for_end, args=(parent.sentinel,), daemon=True).start()


def _wait_for_end(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)
