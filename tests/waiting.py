"""Waiting for what must come about: one patience for all, long enough for a machine that others keep busy."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

SOON_SECONDS = 60.0
"""How long is waited for what takes a moment on an idle machine."""


async def until(
    condition: Callable[[], object], seconds: float = SOON_SECONDS, *, told: Callable[[], object] | None = None
) -> None:
    """Wait until a condition holds, which may be awaitable, or fail.

    Args:
        condition: is asked again and again.
        seconds: how long to wait.
        told: gives what a failure tells.
    """
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        pause = 0.02
        if isinstance(found, Awaitable):
            found, pause = await found, 0.2
        if found:
            return
        assert time.monotonic() < deadline, told() if told else "the condition did not come about in time"
        await asyncio.sleep(pause)


def wait_until(condition: Callable[[], object], seconds: float = SOON_SECONDS) -> None:
    """Wait until a condition holds, where nothing else is to be done, or fail."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come about in time"
        time.sleep(0.01)
