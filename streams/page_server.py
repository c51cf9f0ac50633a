"""The server under the pages: bounds what a stranger can take of the process, encrypts, and sets each answer's headers.

It knows nothing of what the pages say. aiohttp parses and writes HTTP; connections are taken here, since aiohttp lets
any number of them lie open, and asyncio hides those whose handshake is not over.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from aiohttp import web

if TYPE_CHECKING:
    from aiohttp import StreamReader
    from aiohttp.abc import AbstractStreamWriter
    from aiohttp.http import RawRequestMessage

    from streams.certificate import Certificate

logger = logging.getLogger(__name__)

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}
"""On every answer, errors included: nothing of it is stored, run, framed or told to others."""

ENCRYPTED_ONLY = "max-age=31536000"
"""Strict-Transport-Security of encrypted pages: a year, as the HSTS preload list asks at least."""

MAX_LINE_BYTES = 2_048
"""Of the request line: our longest address is nine characters, and proxies add parameters."""

MAX_FIELD_BYTES = 4_096
MAX_FIELDS = 32
"""Headers of a request, and bytes of each: 128 KiB together, where Prometheus sends ten with 1 kB."""

BACKLOG = 128
"""Connections that the system holds for us until they are taken."""

REST_SECONDS = 1.0
"""Pause after the system refused us a connection, for example since there are no file descriptors left."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What all strangers together can take.

    Attributes:
        connections: open at a time; one more closes that which was at rest for longest. A probe is answered in
            milliseconds, so that it gets through however many others only hold theirs open.
        seconds: from the connection to the end of its answer, handshake included, and where it stays open from one
            answer to the next request, and from that to its answer. Prometheus waits 10 s by default.
        line_bytes: longest request line.
        linger_seconds: how long the rest of a body is still taken in, and thrown away, when the answer is there before
            it: many clients hear no answer before they have sent all.
    """

    connections: int = 64
    seconds: float = 10.0
    line_bytes: int = MAX_LINE_BYTES
    linger_seconds: float = 0.0


class _Request(web.BaseRequest):
    """A request whose answer has our headers, whoever made it: aiohttp refuses what is no HTTP by itself.

    The hook is aiohttp's own, and private; checked with 3.14. There is no public one that these refusals go through.
    """

    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        response.headers.update(HEADERS)
        response.headers.pop("Server", None)
        if self.secure:
            response.headers["Strict-Transport-Security"] = ENCRYPTED_ONLY


class _Connection(web.RequestHandler):
    """The life of one connection."""

    __slots__ = ("closed", "used")

    def __init__(self, manager: web.Server, **settings: Any) -> None:
        super().__init__(manager, **settings)
        self.closed = asyncio.Event()
        self.used: Callable[[], None] = _nothing
        """Is told that a request came, and that its answer is there."""

    def connection_lost(self, exc: BaseException | None) -> None:
        """Let go what waits for the end."""
        super().connection_lost(exc)
        self.closed.set()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = HTTPStatus.INTERNAL_SERVER_ERROR,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what could not be read, or where we failed, without a word of why; log only our own failures."""
        del request, message
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            logger.error("a page could not be written", exc_info=exc)
        return answer(HTTPStatus(status), f"{HTTPStatus(status).phrase.lower()}\n")


def _nothing() -> None:
    """Do nothing."""


class _Protocols(web.Server):
    """Makes the protocol of each connection."""

    def __init__(self, handler: Handler, bounds: Bounds) -> None:
        self._bounds = bounds

        async def used(request: web.BaseRequest) -> web.StreamResponse:
            connection = request.protocol
            if not isinstance(connection, _Connection):
                raise TypeError(type(connection))
            connection.used()
            try:
                return await handler(request)
            finally:
                connection.used()

        super().__init__(used, request_factory=self._request)

    def _request(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: web.RequestHandler,
        writer: AbstractStreamWriter,
        task: asyncio.Task[None],
    ) -> web.BaseRequest:
        return _Request(message, payload, protocol, writer, task, asyncio.get_running_loop())

    def __call__(self) -> _Connection:
        return _Connection(
            self,
            loop=asyncio.get_running_loop(),
            access_log=None,
            max_line_size=self._bounds.line_bytes,
            max_field_size=MAX_FIELD_BYTES,
            max_headers=MAX_FIELDS,
            lingering_time=self._bounds.linger_seconds,
            auto_decompress=False,  # how much comes of it is for whoever wants it to bound
        )


def answer(
    status: HTTPStatus,
    content: str | bytes,
    *,
    content_type: str = "text/plain; charset=utf-8",
    headers: Mapping[str, str] | None = None,
    close: bool = True,
) -> web.Response:
    """Give an answer.

    Args:
        status: its status.
        content: what it says.
        content_type: of what it says.
        headers: further headers.
        close: whether the connection ends after it.
    """
    body = content.encode() if isinstance(content, str) else content
    made = web.Response(status=status, body=body, headers={**(headers or {}), "Content-Type": content_type})
    if close:
        made.force_close()
    return made


class PageServer:
    """Takes connections and has each answered, within bounds.

    Args:
        handler: answers a request.
        certificate: encrypts; None for plain HTTP.
        bounds: what all strangers together can take.
    """

    def __init__(self, handler: Handler, certificate: Certificate | None, bounds: Bounds) -> None:
        self._protocols = _Protocols(handler, bounds)
        self._certificate = certificate
        self._bounds = bounds
        self._listening: list[socket.socket] = []
        self._accepting: list[asyncio.Task[None]] = []
        self._open: dict[asyncio.Task[None], None] = {}  # those at rest for longest first

    async def start(self, host: str, port: int) -> int:
        """Begin to listen, on all addresses of the host.

        Args:
            host: name or address.
            port: 0 takes a free one.

        Returns:
            The port.

        Raises:
            OSError: it cannot be listened on.
        """
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        try:
            for family, kind, protocol, _, address in dict.fromkeys(found):
                listener = socket.socket(family, kind, protocol)
                self._listening.append(listener)
                if os.name == "posix":  # elsewhere it would let two processes share a port
                    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                listener.settimeout(0)
                listener.bind((address[0], port, *address[2:]))
                listener.listen(BACKLOG)
                port = listener.getsockname()[1]
        except OSError:
            await self.stop(0)
            raise
        self._accepting = [loop.create_task(self._accept(each), name="pages") for each in self._listening]
        return port

    async def stop(self, seconds: float) -> None:
        """Listen no longer.

        Args:
            seconds: how long answers under way may take.
        """
        for task in self._accepting:
            task.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        for listener in self._listening:
            listener.close()
        self._protocols.pre_shutdown()
        under_way = set(self._open)
        if under_way:
            await asyncio.wait(under_way, timeout=seconds)
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        self._accepting, self._listening = [], []

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        refused = False
        while True:
            try:
                connection, _ = await loop.sock_accept(listener)
            except OSError as problem:
                if not refused:
                    logger.warning("the pages cannot take a connection (%s); trying on", problem.strerror or problem)
                refused = True
                await asyncio.sleep(REST_SECONDS)
                continue
            refused = False
            while len(self._open) >= self._bounds.connections:
                oldest = next(iter(self._open))
                del self._open[oldest]
                oldest.cancel()
            task = loop.create_task(self._serve(connection), name="page")
            self._open[task] = None
            task.add_done_callback(functools.partial(self._end, connection))
            # A connection that lies ready is taken without a turn of the loop: many of them would keep it from its
            # work, and the first would have to go before they are looked at.
            await asyncio.sleep(0)

    def _end(self, connection: socket.socket, task: asyncio.Task[None]) -> None:
        self._open.pop(task, None)
        connection.close()  # a task that was cancelled before it ran has given it to no transport
        if not task.cancelled() and task.exception() is not None:
            logger.error("a connection to the pages failed", exc_info=task.exception())

    def _used(self, task: asyncio.Task[None] | None, limit: asyncio.Timeout) -> None:
        """Begin to count a connection's time anew."""
        if task in self._open and not limit.expired():
            self._open[task] = self._open.pop(task)
            limit.reschedule(asyncio.get_running_loop().time() + self._bounds.seconds)

    async def _serve(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        transport: asyncio.Transport | None = None
        try:
            # OSError: it went away, or what came was no handshake. Both are a stranger's, and told to nobody.
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(self._bounds.seconds) as limit:
                    context = self._certificate.context() if self._certificate is not None else None
                    connection.settimeout(0)
                    protocol = self._protocols()
                    protocol.used = functools.partial(self._used, asyncio.current_task(), limit)
                    transport, _ = await loop.connect_accepted_socket(lambda: protocol, connection, ssl=context)
                    await protocol.closed.wait()
        finally:
            if transport is not None:
                transport.abort()
