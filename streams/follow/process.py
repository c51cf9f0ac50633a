"""Runs a follower as a process: where events go, signals, an end within seconds.

Everything that can be expected to go wrong ends in one of the errors named here, worded for whoever runs it.
"""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

from streams.follow.follower import Follower
from streams.worker.faults import end_now

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from streams.follow.follower import FollowSettings
    from streams.follow.notes import Notes
    from streams.follow.sinks import Sink
    from streams.follow.told import Told

STOP_SECONDS = 8.0
"""How long what was read may take at the end to be acknowledged. What is not by then is read again at the next start.
Below the 10 s that container runtimes wait before they kill."""


async def serve(
    settings: FollowSettings,
    notes: Notes,
    connect: AbstractAsyncContextManager[Sink],
    tell: Callable[[Told], None],
) -> int:
    """Run until SIGTERM or SIGINT.

    Args:
        settings: what is followed, and how.
        notes: what was sent before.
        connect: gives where events go, and ends it.
        tell: is told what happens.

    Returns:
        How many events were refused for good.

    Raises:
        KafkaUnavailable: the brokers cannot be reached at the start.
        TopicsError: a topic is missing.
        NotesUnusable: what was sent cannot be noted.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)

    async def follow() -> int:
        async with connect as sink:
            follower = Follower(settings, notes, sink, tell, stop)
            await follower.run()
            return follower.refused

    work = asyncio.create_task(follow(), name="follow")
    stopping = asyncio.create_task(stop.wait(), name="stop")
    await asyncio.wait({work, stopping}, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.wait({work}, timeout=STOP_SECONDS)
    if not work.done():
        end_now(0, "events are not acknowledged; leaving without: they are sent at the next start")
    stopping.cancel()
    return work.result()
