"""Does one piece of work on many items in several processes, and gives what comes of them in the items' order.

Items are read as they are needed and handed out in portions. No process outlives the one that started it, nor an
interruption. Knows nothing of what the work is.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Item = TypeVar("Item")
Result = TypeVar("Result")

PORTION_CALLS = 500
"""Calls handed to a process at once: enough that handing over costs nothing beside the playing, a tenth of a second."""

PORTIONS_PER_JOB = 4
"""Portions under way for each process, so that none waits while a long session holds up the first in line."""


PIPE_BYTES = 65_536
"""What a pipe holds on Linux."""


class WorkersLost(RuntimeError):
    """A process ended by itself, most likely for want of memory."""


def run_all(
    items: Iterable[Item],
    size: Callable[[Item], int],
    work: Callable[[Item], Result],
    jobs: int,
    tell: Callable[[Result], None],
) -> list[Result]:
    """Do the work on each item, and give what came of them in their order.

    Args:
        items: read as they are needed; they are handed to other processes.
        size: tells how many tool calls an item has.
        work: what is done with an item; handed to other processes too.
        jobs: how many processes work; with 1 it is this one.
        tell: called with what came of each item, in their order.

    Raises:
        WorkersLost: a process ended by itself.
    """
    results: list[Result] = []

    def take(portion: Iterable[Result]) -> None:
        for each in portion:
            results.append(each)
            tell(each)

    if jobs == 1:
        take(map(work, items))
        return results
    with _processes(jobs) as pool:
        under_way: deque[Future[list[Result]]] = deque()
        for portion in _portions(items, size):
            with _interrupts_held():
                under_way.append(pool.submit(_work_each, portion, work))
            if len(under_way) == jobs * PORTIONS_PER_JOB:
                take(under_way.popleft().result())
        while under_way:
            take(under_way.popleft().result())
    return results


def _portions(items: Iterable[Item], size: Callable[[Item], int]) -> Iterator[list[Item]]:
    portion: list[Item] = []
    calls = 0
    for item in items:
        portion.append(item)
        calls += size(item)
        if calls >= PORTION_CALLS:
            yield portion
            portion, calls = [], 0
    if portion:
        yield portion


def _work_each(portion: list[Item], work: Callable[[Item], Result]) -> list[Result]:
    return [work(item) for item in portion]


@contextlib.contextmanager
def _processes(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Give processes that are gone afterwards: at once when this one is interrupted or fails."""
    # Not forked: what else runs in this process stays out of them.
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _end_with_parent)
    others = set(multiprocessing.active_children())
    try:
        yield pool
    except BrokenProcessPool:
        _let_go(pool)
        raise WorkersLost("a process that works on sessions was ended, as happens when memory runs out") from None
    except BaseException:
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        _let_go(pool)
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _let_go(pool: ProcessPoolExecutor) -> None:
    """Have the thread that hands work over end, though nobody takes it any more."""
    if sys.version_info < (3, 11, 5):  # where it waits for ever to write what fills the pipe: CPython's issue 94777
        with contextlib.suppress(OSError):  # it has ended already
            pipe = os.dup(pool._call_queue._reader.fileno())  # type: ignore[attr-defined]  # noqa: SLF001
            threading.Thread(target=_drain, args=(pipe,), daemon=True).start()


def _drain(pipe: int) -> None:
    with open(pipe, "rb", buffering=0) as file:
        while file.read(PIPE_BYTES):
            pass


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
