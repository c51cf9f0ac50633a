"""The HTTP pages of a process: `/metrics` for Prometheus, `/healthz` (restart me?) and `/readyz` (am I at work?).

They are served on the event loop that does the work, so that an answer proves that it turns; they must not block it
and have no page that changes anything. They listen on localhost unless told otherwise, and tell strangers nothing but
whether all is well.
"""

from __future__ import annotations

import errno
import hmac
import json
import logging
import math
from http import HTTPStatus
from typing import TYPE_CHECKING

from prometheus_client.exposition import choose_encoder

from streams.certificate import Certificate, InvalidCertificate
from streams.page_server import Bounds, PageServer, answer
from streams.page_settings import PageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from aiohttp import web
    from prometheus_client import CollectorRegistry

    from streams.health import Health, Verdict
    from streams.page_server import Handler
    from streams.page_settings import PageSettings

logger = logging.getLogger(__name__)

STOP_SECONDS = 1.0
"""How long a page that is being written may hold up the end of the process."""


METHODS = ("GET", "HEAD")
"""What the pages answer to."""


def bears(request: web.BaseRequest, tokens: Iterable[str]) -> bool:
    """Tell whether a request has one of these tokens; how long that takes tells nothing of them."""
    # The scheme's name may be written in any case (RFC 9110, section 11.1).
    scheme, _, sent = request.headers.get("Authorization", "").partition(" ")
    given = sent.strip().encode("utf-8", "surrogateescape")
    same = [hmac.compare_digest(given, token.encode()) for token in tokens]
    return scheme.lower() == "bearer" and any(same)


LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
"""What every machine calls itself."""

NO_SUCH_NAME = (
    "this gateway has no such name; call it localhost or 127.0.0.1, or give traction ingest the name with --host-name"
)


def host_named(request: web.BaseRequest) -> str:
    """Give the name by which the host was asked for, without a port; browsers always tell it."""
    name = request.headers.get("Host", LOCAL_NAMES[0]).strip().lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.partition(":")[0].removesuffix(".")


class Pages:
    """The pages of one process.

    Args:
        settings: where they are.
        registry: what `/metrics` shows.
        health: what `/healthz` and `/readyz` show.
        bounds: what strangers can take of the process.
        others: answers what is for none of the pages, in processes that serve more than these.
        names: by which requests may name this host, in small letters; None for any.
    """

    def __init__(
        self,
        settings: PageSettings,
        registry: CollectorRegistry,
        health: Health,
        *,
        bounds: Bounds | None = None,
        others: Handler | None = None,
        names: frozenset[str] | None = None,
    ) -> None:
        self._settings = settings
        self._names = names
        self._registry = registry
        self._health = health
        self._bounds = bounds or Bounds()
        self._others = others
        self._server: PageServer | None = None
        self._certificate: Certificate | None = None
        self._pages: dict[str, Callable[[web.BaseRequest], web.Response]] = {
            "/metrics": self._metrics,
            "/healthz": lambda request: self._verdict(request, self._health.live()),
            "/readyz": lambda request: self._verdict(request, self._health.ready()),
        }
        self.url = ""
        """Where the pages are; empty before the start."""

    @property
    def encrypted(self) -> bool:
        """Whether they are to be encrypted."""
        return self._settings.certfile is not None

    def expiry(self) -> float:
        """Give when their certificate runs out, in seconds since 1970; NaN before the start, and without one."""
        return self._certificate.expiry if self._certificate is not None else math.nan

    async def start(self) -> None:
        """Begin to serve.

        Raises:
            PageError: the address cannot be listened on, or the certificate cannot be used.
        """
        settings = self._settings
        host, port = settings.host, settings.port
        certificate = None
        if settings.certfile is not None and settings.keyfile is not None:
            try:
                certificate = Certificate(settings.certfile, settings.keyfile)
            except InvalidCertificate as problem:
                raise PageError(str(problem)) from None
        server = PageServer(self._answer, certificate, self._bounds)
        try:
            port = await server.start(host, port)
        except OSError as problem:
            if problem.errno == errno.EADDRINUSE:
                raise PageError(
                    f"port {port} of {host} is in use, perhaps by another process of ours: "
                    "give another --port, or --port 0 for a free one"
                ) from problem
            raise PageError(
                f"the pages cannot listen on {host}:{port} ({problem.strerror or problem}): "
                "give another --host or --port"
            ) from problem
        self._server, self._certificate = server, certificate
        name = f"[{host}]" if ":" in host else host
        self.url = f"http{'s' if certificate is not None else ''}://{name}:{port}"
        if not settings.local and settings.token is None:
            logger.warning(
                "the metrics at %s can be read by everyone who reaches this address, and details of health by nobody: "
                "set TRACTION_PAGE_TOKEN or --page-token-file, or bind to 127.0.0.1",
                self.url,
            )

    async def stop(self) -> None:
        """Serve no longer."""
        if self._server is not None:
            await self._server.stop(STOP_SECONDS)
            self._server = None

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if self._others is not None and request.path not in self._pages:
            return await self._others(request)
        if self._names is not None and host_named(request) not in self._names:
            return answer(HTTPStatus.MISDIRECTED_REQUEST, f"{NO_SUCH_NAME}\n")
        if request.method not in METHODS:
            return answer(
                HTTPStatus.METHOD_NOT_ALLOWED, "the pages can only be read\n", headers={"Allow": ", ".join(METHODS)}
            )
        page = self._pages.get(request.path)
        return answer(HTTPStatus.NOT_FOUND, "there is no such page\n") if page is None else page(request)

    def _knows_token(self, request: web.BaseRequest) -> bool:
        return self._settings.token is not None and bears(request, (self._settings.token,))

    def _metrics(self, request: web.BaseRequest) -> web.Response:
        if self._settings.token is not None and not self._knows_token(request):
            return answer(
                HTTPStatus.UNAUTHORIZED,
                "this page asks for a bearer token\n",
                headers={"WWW-Authenticate": 'Bearer realm="traction"'},
            )
        try:
            encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        except TypeError:  # prometheus_client 0.26 compares versions that are no numbers
            encode, content_type = choose_encoder("")
        return answer(HTTPStatus.OK, encode(self._registry), content_type=content_type)

    def _verdict(self, request: web.BaseRequest, verdict: Verdict) -> web.Response:
        """Tell a probe, which has no token, whether all is well, and who may know also what is not."""
        told: dict[str, object] = {"ok": verdict.ok}
        if self._knows_token(request) or (self._settings.token is None and self._settings.local):
            told["checks"] = verdict.checks
        status = HTTPStatus.OK if verdict.ok else HTTPStatus.SERVICE_UNAVAILABLE
        return answer(status, json.dumps(told), content_type="application/json; charset=utf-8")
