"""Gives every input partition a lane of its own: its batches are applied in their order, those of others meanwhile.

Without lanes a busy session would hold up all partitions of its topic until the last of its batches is applied. How
long a lane may work before the next has its turn is the engine's business; nothing is applied or committed here.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aiokafka import TopicPartition

    from streams.worker.engine import Fetched


class Lanes:
    """Has batches applied.

    Args:
        handle: applies one batch, and comes back when that is done; see `Engine.handle`.
    """

    def __init__(self, handle: Callable[[Fetched], Awaitable[None]]) -> None:
        self._handle = handle
        self._waiting: dict[TopicPartition, deque[Fetched]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def put(self, fetched: Fetched) -> None:
        """Have a batch applied, after those of its input partition that came before."""
        lane = self._waiting.get(fetched.tp)
        if lane is not None:
            lane.append(fetched)
            return
        self._waiting[fetched.tp] = deque([fetched])
        task = asyncio.create_task(self._work(fetched.tp), name=f"apply {fetched.tp.topic}-{fetched.tp.partition}")
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def run(self) -> None:
        """Watch over the lanes until one fails; when this is cancelled, they end too.

        Raises:
            Exception: what a batch could not be applied for; the lane it happened in goes no further.
        """
        try:
            await self._failure
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _work(self, tp: TopicPartition) -> None:
        lane = self._waiting[tp]
        while lane:
            await self._handle(lane[0])
            lane.popleft()
        del self._waiting[tp]

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        # A lane that nobody goes on with would go unnoticed: what it waited for may be given up by somebody else.
        problem = RuntimeError(f"{task.get_name()}: given up") if task.cancelled() else task.exception()
        if problem is not None and not self._failure.done():
            self._failure.set_exception(problem)
