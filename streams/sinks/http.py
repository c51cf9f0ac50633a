"""Sends one HTTP request and says what became of it: taken, not now, or never. It never tries twice.

Redirects are not followed, cookies not kept, the environment's proxies not used, answers read as far as is needed.
Addresses are checked when the connection is made. No error has more of the address in it than the host.
"""

from __future__ import annotations

import ssl
import time
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from importlib.metadata import version
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

import aiohttp

from streams.escalation.text import line
from streams.sinks.addresses import ForbiddenAddress, Guard, is_loopback_name
from streams.sinks.errors import Gone, Refused, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from streams.sinks.secrets import Secret
    from streams.sinks.settings import HttpSettings

USER_AGENT = f"traction/{version('traction')}"

SHOWN_BYTES = 2_000
"""Bytes of an answer that are read where only a person may want to see it."""

SHOWN_CHARS = 300

LATER = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})
"""Client errors that another try may mend (RFC 9110, section 15.5; RFC 8470; RFC 6585)."""

REDIRECTS = range(300, 400)
CLIENT_ERRORS = range(400, 500)
SUCCESSES = range(200, 300)


@dataclass(frozen=True, slots=True)
class Request:
    """A request to make.

    Attributes:
        url: where to.
        body: what to send, JSON; None for a GET.
        headers: beside those that every request has.
        need: bytes of a good answer that are needed; one that is longer is refused. 0: its status is enough.
    """

    url: str = field(repr=False)
    body: bytes | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    need: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """A good answer: its status, and as much of its body as was asked for."""

    status: int
    body: bytes = b""


class Http:
    """The HTTP client of one sink; to be used as an asynchronous context manager, for one request at a time.

    Args:
        settings: how long one request may take, and where it may go.
        url: where the sink sends to, by which its own machine is told from others.
        secrets: what is masked in what is shown of answers.
    """

    def __init__(self, settings: HttpSettings, url: str, secrets: Iterable[Secret] = ()) -> None:
        self._timeout = aiohttp.ClientTimeout(total=settings.timeout_seconds)
        self._seconds = settings.timeout_seconds
        self._guard = Guard(settings.allow_private, own=is_loopback_name(urlsplit(url).hostname or ""))
        self._secrets = tuple(secrets)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            # A connection is made for each request: there are few, and one that idled may be dead.
            connector=aiohttp.TCPConnector(
                ssl=ssl.create_default_context(),
                socket_factory=self._guard,
                use_dns_cache=False,
                force_close=True,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=self._timeout,
            auto_decompress=False,  # what is asked for comes as it is, and a packed answer cannot swell
            headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity"},
        )
        return self

    async def __aexit__(self, *problem: object) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def send(self, request: Request) -> Answer:
        """Make a request, a POST where it has a body.

        Raises:
            Unavailable: no answer, or one that says that another try may be taken.
            Gone: the receiver is gone for good.
            Refused: any other answer, or an address that is not allowed.
        """
        if self._session is None:
            raise RuntimeError("the client is not started")
        parts = urlsplit(request.url)
        host = f"{parts.scheme}://{line(parts.netloc, 100)}"
        self._guard.refused = self._guard.opened = 0
        headers = dict(request.headers)
        if request.body is not None:
            headers["Content-Type"] = "application/json"
        method = "GET" if request.body is None else "POST"
        try:
            async with self._session.request(
                method, request.url, data=request.body, headers=headers, allow_redirects=False
            ) as response:
                if response.status in SUCCESSES:
                    return Answer(response.status, await _read(response, request.need, host))
                await self._fail(response, host)
        except TimeoutError:
            raise Unavailable(f"{host} did not answer within {self._seconds:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as problem:
            if self._guard.refused and not self._guard.opened:
                raise Refused(
                    f"{host} is no public address; set allow_private = true if it is meant to be inside"
                ) from None
            raise Unavailable(f"{host}: {_why(problem)}") from None
        raise AssertionError("unreachable")

    async def _fail(self, response: aiohttp.ClientResponse, host: str) -> None:
        """Raise what a status means that is no success."""
        status = response.status
        told = f"{host} answered {status}"
        if status in REDIRECTS:
            raise Refused(f"{told}, a redirect, which is not followed; put the new address into the settings")
        shown = await self._shown(response)
        wait = retry_after(response.headers, time.time())
        if status in LATER or status not in CLIENT_ERRORS or _limited(response):
            raise Unavailable(told, status=status, shown=shown, retry_after=wait)
        if status == HTTPStatus.GONE:
            raise Gone(f"{told}: it is gone", status=status, shown=shown)
        raise Refused(told, status=status, shown=shown)

    async def _shown(self, response: aiohttp.ClientResponse) -> str:
        """Give the beginning of an answer's body for a person, as far as it comes."""
        try:
            body = await _some(response, SHOWN_BYTES)
        except (aiohttp.ClientError, OSError):
            return ""
        text = body.decode("utf-8", "replace")
        for secret in self._secrets:
            text = secret.mask(text)
        return line(text, SHOWN_CHARS)


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Give for how many seconds a receiver wants to be left alone, never below 0; None when it does not say.

    Args:
        headers: of its answer: ``Retry-After`` as seconds or a date (RFC 9110, section 10.2.3), or else
            ``x-ratelimit-reset`` where ``x-ratelimit-remaining`` is 0 ("Rate limits for the REST API", GitHub).
        now: seconds since 1970.
    """
    told = headers.get("Retry-After", "").strip()
    if told.isascii() and told.isdigit():
        return float(told[:9])
    if told:
        try:
            return max(0.0, parsedate_to_datetime(told).timestamp() - now)
        except (ValueError, OverflowError):
            return None
    reset = headers.get("x-ratelimit-reset", "").strip()
    if headers.get("x-ratelimit-remaining", "").strip() == "0" and reset.isascii() and reset.isdigit():
        return max(0.0, float(reset[:12]) - now)
    return None


def _limited(response: aiohttp.ClientResponse) -> bool:
    """Tell whether a 403 means a limit on requests, as GitHub's does ("Rate limits for the REST API")."""
    return response.status == HTTPStatus.FORBIDDEN and (
        "Retry-After" in response.headers or response.headers.get("x-ratelimit-remaining", "").strip() == "0"
    )


async def _read(response: aiohttp.ClientResponse, need: int, host: str) -> bytes:
    if not need:
        return b""
    body = await _some(response, need + 1)
    if len(body) > need:
        raise Refused(f"{host} answered more than {need} bytes")
    return body


async def _some(response: aiohttp.ClientResponse, most: int) -> bytes:
    """Read an answer's body up to a number of bytes; what is left is thrown away with the connection."""
    body = bytearray()
    while len(body) < most and (part := await response.content.read(most - len(body))):
        body += part
    return bytes(body)


def _why(problem: Exception) -> str:
    """Say why there is no answer, without the address: the client's own messages have it in them."""
    if isinstance(problem, aiohttp.ClientConnectorCertificateError):
        found = problem.certificate_error
        reason = found.verify_message if isinstance(found, ssl.SSLCertVerificationError) else "it is not valid"
        return f"its certificate is refused: {line(reason, 200)}"
    if isinstance(problem, aiohttp.ClientConnectorDNSError):
        return "its name cannot be resolved"
    if isinstance(problem, aiohttp.ClientConnectorError):
        return f"cannot be connected to ({problem.os_error.strerror or type(problem.os_error).__name__})"
    if isinstance(problem, aiohttp.ServerDisconnectedError | ConnectionResetError):
        return "closed the connection without an answer"
    if isinstance(problem, ForbiddenAddress):
        return "is no public address"
    return f"the connection failed ({type(problem).__name__})"
