"""Tokens from a token server, for a client's id and secret (OAuth 2.0 client credentials).

A module of its own, so that an HTTP client is imported only by those who need one. Tokens and secrets are never logged
and stand in no message.
"""

from __future__ import annotations

import asyncio
import base64
import os
import re
import ssl
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote_plus, urlsplit
from weakref import WeakKeyDictionary

import aiohttp
import msgspec

from streams.tokens import Tokens, TokenUnavailable, checked

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping
    from pathlib import Path

TIMEOUT_SECONDS = 10.0
"""How long the token server may take for one answer: a login waits for it, and is tried again."""

MOST_ANSWER_BYTES = 2**18
"""Longest answer of the token server that is read; a token that fits a login is far shorter."""

EARLY = 0.2
"""Part of a token's time before whose end a new one is fetched, as Kafka's own clients do
(`sasl.login.refresh.window.factor`, 0.8)."""

UNKNOWN_SECONDS = 60.0
"""For how long a token is used whose server does not say how long it is good."""

PAUSE_SECONDS = 2.0
"""For how long it is not asked again when it gave no token, or one that brokers refused: each client tries ten times a
second, and a server that is away keeps each waiting."""

_ERROR = re.compile(r"[A-Za-z0-9_.\-]{1,60}")
"""What an error code of a token server may look like to be shown (RFC 6749, section 5.2)."""


class Answer(msgspec.Struct, frozen=True):
    """A token server's answer (RFC 6749, sections 5.1 and 5.2).

    Attributes:
        access_token: the token.
        expires_in: seconds that it is good for.
        error: why there is none.
    """

    access_token: str | None = None
    expires_in: float | str | None = None
    error: str | None = None


class Kept(NamedTuple):
    """A token that is used for a while.

    Attributes:
        token: the token.
        asked: when it was asked for.
        until: when another one is asked for.
    """

    token: str
    asked: float
    until: float


class ClientCredentials(Tokens):
    """Tokens that a token server gives for a client's id and secret (RFC 6749, section 4.4); each is used for a while.

    Args:
        url: the token server's.
        client_id: the client.
        secret: its secret.
        scope: what is asked for; None for whatever the server gives.
        cafile: authorities beside the system's that may have signed the server's certificate, PEM.
        clock: gives seconds from any beginning on.
    """

    def __init__(
        self,
        url: str,
        client_id: str,
        secret: str,
        *,
        scope: str | None,
        cafile: Path | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = url
        self._client_id = client_id
        self._secret = secret
        self._scope = scope
        self._cafile = cafile
        self._clock = clock
        self._kept: Kept | None = None
        self._failed: tuple[str, float] | None = None
        # The worker's consumer has a thread and an event loop of its own.
        self._asking: MutableMapping[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    @property
    def whose(self) -> str:
        """Say who logs in, for messages."""
        return self._client_id

    @property
    def remedy(self) -> str:
        """Say what to look at when brokers refuse the token."""
        return f"Do they trust {self._server} (issuer, audience, scope, clock)?"

    def refused(self) -> None:
        """Take note that brokers refuse the token: another one is fetched soon, unless it is a new one itself."""
        kept = self._kept
        if kept is not None and self._clock() - kept.asked >= PAUSE_SECONDS:
            self._kept = None

    @property
    def _server(self) -> str:
        return f"the token server {urlsplit(self._url).netloc}"

    async def token(self) -> str:
        """Give a token that is good for a while.

        Raises:
            TokenUnavailable: the token server gives none.
        """
        async with self._asking.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            kept = self._kept  # another thread may forget it meanwhile
            if kept is None or kept.until <= self._clock():
                if self._failed is not None and self._clock() - self._failed[1] < PAUSE_SECONDS:
                    raise TokenUnavailable(self._failed[0])
                try:
                    kept = self._kept = await self._fetch()
                except TokenUnavailable as problem:
                    self._failed = str(problem.args[0]), self._clock()
                    raise
            return kept.token

    async def _fetch(self) -> Kept:
        asked = self._clock()
        try:
            status, body = await self._ask()
        except (aiohttp.ClientError, OSError, TimeoutError) as problem:
            raise TokenUnavailable(
                f"{self._server} cannot be used ({_said(problem)}): look at the URL of the tokens, whether it is "
                "reachable from here, and, if its certificate is your own authority's, whether --ssl-cafile has that"
            ) from problem
        try:
            answer = msgspec.json.decode(body, type=Answer)
        except (msgspec.MsgspecError, RecursionError):
            answer = Answer()
        if status != HTTPStatus.OK or answer.access_token is None:
            raise TokenUnavailable(self._refusal(status, answer))
        token = checked(answer.access_token, f"the answer of {self._server}")
        seconds = _seconds(answer.expires_in)
        return Kept(token, asked, asked + seconds * (1 - EARLY))

    async def _ask(self) -> tuple[int, bytes]:
        form = {"grant_type": "client_credentials"} | ({"scope": self._scope} if self._scope else {})
        # Encoded before they are put together (RFC 6749, section 2.3.1), else a colon in the id would split it.
        pair = f"{quote_plus(self._client_id)}:{quote_plus(self._secret)}".encode()
        head = {"Authorization": f"Basic {base64.b64encode(pair).decode()}", "Accept": "application/json"}
        async with (
            aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=TIMEOUT_SECONDS), cookie_jar=aiohttp.DummyCookieJar()
            ) as session,
            # No redirect is followed: the secret is for this server alone.
            session.post(self._url, data=form, headers=head, ssl=self._context(), allow_redirects=False) as answer,
        ):
            body = bytearray()
            async for part in answer.content.iter_chunked(2**14):
                body += part
                if len(body) > MOST_ANSWER_BYTES:
                    return answer.status, b""
            return answer.status, bytes(body)

    def _context(self) -> ssl.SSLContext | bool:
        if urlsplit(self._url).scheme == "http":
            return True
        context = ssl.create_default_context()
        if self._cafile is not None:
            context.load_verify_locations(self._cafile)
        return context

    def _refusal(self, status: int, answer: Answer) -> str:
        code = answer.error if answer.error and _ERROR.fullmatch(answer.error) else None
        said = f"{status} {code}" if code else str(status)
        if code == "invalid_scope":
            remedy = "look at the scope of the tokens"
        elif code in {"invalid_client", "unauthorized_client"} or status in {401, 403}:
            remedy = "look at the client id (the user name) and the secret, and whether it may have client credentials"
        else:
            remedy = "is this the URL of its token endpoint?"
        return f"{self._server} gives {self._client_id} no token ({said}): {remedy}"


def _said(problem: Exception) -> str:
    if isinstance(problem, TimeoutError):
        return f"no answer within {TIMEOUT_SECONDS:g} s"
    if isinstance(problem, aiohttp.ClientConnectorCertificateError):
        return str(problem.certificate_error)
    if isinstance(problem, aiohttp.ClientConnectorError):
        return os.strerror(problem.os_error.errno) if problem.os_error.errno else type(problem.os_error).__name__
    return type(problem).__name__


def _seconds(expires_in: float | str | None) -> float:
    """Read for how long a token is good; servers are known that write the number as text."""
    try:
        seconds = UNKNOWN_SECONDS if expires_in is None else float(expires_in)
    except ValueError:
        seconds = UNKNOWN_SECONDS
    return seconds if 0 < seconds < 10**9 else UNKNOWN_SECONDS
