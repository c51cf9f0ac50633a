"""Keeps account of what is in flight, in requests and bytes, and refuses what would be too much at once.

It holds nothing itself, and nobody waits: whoever is refused is told when to try again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from streams.gateway.refused import busy

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from streams.gateway.settings import GatewaySettings


class Admission:
    """What is in flight in one process.

    Args:
        settings: how much may be.
        unacknowledged: tells the bytes that brokers were sent and have not acknowledged.
    """

    def __init__(self, settings: GatewaySettings, unacknowledged: Callable[[], int]) -> None:
        self._settings = settings
        self._unacknowledged = unacknowledged
        self._held = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self.requests = 0

    @property
    def bytes(self) -> int:
        """How many bytes are in flight."""
        return self._held + self._unacknowledged()

    async def idle(self) -> None:
        """Wait until there are no requests."""
        await self._idle.wait()

    def begin(self) -> None:
        """Count a request."""
        self.requests += 1
        self._idle.clear()

    def end(self, held: int) -> None:
        """Count a request no more, nor its bytes."""
        self.requests -= 1
        self._held -= held
        if not self.requests:
            self._idle.set()

    def take(self, count: int) -> None:
        """Take so many bytes more.

        Raises:
            Refused: they would be too many.
        """
        if self.bytes + count > self._settings.max_bytes:
            raise busy(f"more than {self._settings.max_bytes} bytes in flight; try again, or start more gateways")
        self._held += count

    def enter(self) -> Ticket:
        """Let a request in, for as long as its ticket is held.

        Raises:
            Refused: there are too many.
        """
        if self.requests >= self._settings.max_requests:
            raise busy(f"more than {self._settings.max_requests} requests at once; try again, or start more gateways")
        return Ticket(self)


class Ticket:
    """The share of one request; `with` gives it back."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._bytes = 0

    def __enter__(self) -> Self:
        self._admission.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._admission.end(self._bytes)

    def take(self, count: int) -> None:
        """Take so many bytes more.

        Raises:
            Refused: they would be too many.
        """
        self._admission.take(count)
        self._bytes += count
