"""A TCP proxy in front of a broker, whose connections a test can cut or stall while its own clients go direct.

It runs in a thread with a loop of its own, so that neither a busy test nor a stalled connection holds the other up. It
knows nothing of Kafka.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from typing import TYPE_CHECKING, Any, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")

CHUNK = 1 << 16

RESET = struct.pack("ii", 1, 0)
"""SO_LINGER on and zero: closing sends a reset and throws away what is not sent yet, as a firewall or a crash does."""


class Proxy:
    """Forwards connections to one address, from a port of its own.

    Args:
        host: where to listen.
        port: the port to listen on.
        target: the port on the same host to forward to.
    """

    def __init__(self, host: str, port: int, target: int) -> None:
        self._host, self.port, self._target = host, port, target
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"proxy-{port}", daemon=True)
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._flowing = asyncio.Event()
        self.connections = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self._call(self._open)
        return self

    def __exit__(self, *_: object) -> None:
        self._call(self._close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut(self) -> int:
        """Reset all connections, both ways, and give how many there were; new ones are let through."""
        return self._call(self._cut)

    def stall(self) -> int:
        """Let nothing through any more, on old connections and new ones, and give how many there are."""
        return self._call(self._stall)

    def strand(self) -> int:
        """Let nothing through any more on the connections there are, for good, and give how many; new ones flow."""
        return self._call(self._strand)

    def flow(self) -> None:
        """Let everything through again, what was held back first."""
        self._call(self._flow)

    def _call(self, function: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return asyncio.run_coroutine_threadsafe(function(), self._loop).result(30)

    async def _open(self) -> None:
        self._flowing.set()
        self._server = await asyncio.start_server(self._serve, self._host, self.port)

    async def _close(self) -> None:
        self._server.close()
        await self._cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _cut(self) -> int:
        cut = len(self._writers) // 2
        for writer in self._writers:
            raw: socket.socket | None = writer.get_extra_info("socket")
            if raw is not None and raw.fileno() >= 0:
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            writer.transport.abort()
        return cut

    async def _stall(self) -> int:
        self._flowing.clear()
        return len(self._writers) // 2

    async def _strand(self) -> int:
        self._flowing.clear()
        self._flowing = asyncio.Event()
        self._flowing.set()
        return len(self._writers) // 2

    async def _flow(self) -> None:
        self._flowing.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        flowing = self._flowing
        both: tuple[asyncio.StreamWriter, ...] = (writer,)
        try:
            await flowing.wait()
            far_reader, far_writer = await asyncio.open_connection(self._host, self._target)
            both = (writer, far_writer)
            self._writers.update(both)
            ways = ((reader, far_writer), (far_reader, writer))
            pumps = [asyncio.create_task(self._pump(*ends, flowing)) for ends in ways]
            try:
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for pump in pumps:
                    pump.cancel()
        except OSError:
            pass
        finally:
            self._tasks.discard(task)
            self._writers.difference_update(both)
            for each in both:
                each.close()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, flowing: asyncio.Event) -> None:
        try:
            while data := await reader.read(CHUNK):
                await flowing.wait()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
