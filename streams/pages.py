"""The HTTP pages of a process: `/metrics` for Prometheus, `/healthz` (restart me?) and `/readyz` (am I at work?).

They are served on the event loop that does the work, so that an answer proves that it turns; they must not block it
and have no page that changes anything. They listen on localhost unless told otherwise.
"""

from __future__ import annotations

import errno
import hmac
import ipaddress
import logging
import time
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING

from aiohttp import web
from prometheus_client.exposition import choose_encoder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from prometheus_client import CollectorRegistry

logger = logging.getLogger(__name__)

STALL_SECONDS = 120.0
"""How long work may lie waiting untouched before the process counts as stuck. Longer than a rebalance (60 s at most)
and than the election of a broker's leader: to restart a process for nothing costs a rebalance."""

STOP_SECONDS = 1.0
"""How long a page that is being written may hold up the end of the process."""


class PageError(Exception):
    """The pages cannot be served: the message says why and what to do."""


@dataclass(slots=True)
class _Progress:
    position: int
    end: int
    since: float  # when the position was first seen to be this one, with work waiting
    seen: float  # when it was last looked at


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a health page says.

    Attributes:
        ok: whether the answer is 200.
        checks: for each thing looked at, "ok" or what is wrong with it.
    """

    ok: bool
    checks: dict[str, str]


class Health:
    """Knows whether a process is ready, and whether it is alive: whether what it has to do makes progress.

    Alive is everything but this: for `stall_seconds` work was seen to be waiting (an end beyond a position), and the
    position did not move. Time in which nobody could look does not count: while the broker is away, or the process
    was frozen, nothing is known to be waiting. A long recovery is alive as long as its position moves.

    Args:
        conditions: what must hold for the process to be ready; none does at first.
        clock: seconds, monotonic.
        stall_seconds: see above.
    """

    def __init__(
        self,
        conditions: Iterable[str],
        *,
        clock: Callable[[], float] = time.monotonic,
        stall_seconds: float = STALL_SECONDS,
    ) -> None:
        self._clock = clock
        self._stall_seconds = stall_seconds
        self._conditions: dict[str, str] = dict.fromkeys(conditions, "not yet")
        self._progress: dict[str, _Progress] = {}

    def hold(self, condition: str) -> None:
        """Say that a condition of readiness holds now."""
        self._set(condition, "ok")

    def fail(self, condition: str, reason: str) -> None:
        """Say that a condition of readiness does not hold (any more), and why."""
        self._set(condition, reason)

    def _set(self, condition: str, state: str) -> None:
        if condition not in self._conditions:
            raise KeyError(condition)
        self._conditions[condition] = state

    def progress(self, name: str, position: int, end: int) -> None:
        """Tell how far some work is; to be called every few seconds, as long as the end can be learnt.

        Args:
            name: what is worked on, for example a partition.
            position: how far it is.
            end: how far it has to go, learnt from the broker just now.
        """
        now = self._clock()
        last = self._progress.get(name)
        if last is None or position != last.position or end <= position or self._blind(last, now):
            self._progress[name] = _Progress(position, end, now, now)
        else:
            last.end, last.seen = end, now

    def forget(self, name: str) -> None:
        """Say that something is no longer ours to work on."""
        self._progress.pop(name, None)

    def _blind(self, last: _Progress, now: float) -> bool:
        return now - last.seen > self._stall_seconds / 4

    def live(self) -> Verdict:
        """Say whether the process is alive."""
        checks = {"event loop": "ok"}  # whoever reads this on a page was answered by it
        for name, last in self._progress.items():
            waiting = last.end - last.position
            still = last.seen - last.since
            stuck = waiting > 0 and still >= self._stall_seconds
            checks[name] = f"stuck at {last.position} for {still:.0f} s with {waiting} waiting" if stuck else "ok"
        return _verdict(checks)

    def ready(self) -> Verdict:
        """Say whether the process is ready."""
        return _verdict(dict(self._conditions))


def _verdict(checks: dict[str, str]) -> Verdict:
    return Verdict(all(state == "ok" for state in checks.values()), checks)


@dataclass(frozen=True, slots=True)
class PageSettings:
    """Where the pages are.

    Attributes:
        host: address to listen on.
        port: 0 takes a free one.
        token: what `/metrics` asks for as a bearer token; None asks for nothing.
    """

    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = field(default=None, repr=False)

    @property
    def local(self) -> bool:
        """Whether only this machine can reach the pages."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


class Pages:
    """The pages of one process.

    Args:
        settings: where they are.
        registry: what `/metrics` shows.
        health: what `/healthz` and `/readyz` show.
    """

    def __init__(self, settings: PageSettings, registry: CollectorRegistry, health: Health) -> None:
        self._settings = settings
        self._registry = registry
        self._health = health
        self._runner: web.AppRunner | None = None
        self.url = ""
        """Where the pages are; empty before the start."""

    async def start(self) -> None:
        """Begin to serve.

        Raises:
            PageError: the address cannot be listened on.
        """
        host, port = self._settings.host, self._settings.port
        app = web.Application()
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=STOP_SECONDS, handle_signals=False)
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as problem:
            await runner.cleanup()
            if problem.errno == errno.EADDRINUSE:
                raise PageError(
                    f"port {port} of {host} is in use, perhaps by another process of ours: "
                    "give another --port, or --port 0 for a free one"
                ) from problem
            raise PageError(
                f"the pages cannot listen on {host}:{port} ({problem.strerror or problem}): "
                "give another --host or --port"
            ) from problem
        self._runner = runner
        name = f"[{host}]" if ":" in host else host
        self.url = f"http://{name}:{runner.addresses[0][1]}"
        if not self._settings.local and self._settings.token is None:
            logger.warning(
                "the pages at %s can be read by everyone who reaches this address: set TRACTION_METRICS_TOKEN or "
                "--metrics-token-file, or bind to 127.0.0.1",
                self.url,
            )

    async def stop(self) -> None:
        """Serve no longer."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _metrics(self, request: web.Request) -> web.Response:
        token = self._settings.token
        if token is not None:
            # The scheme's name may be written in any case (RFC 9110, section 11.1).
            scheme, _, sent = request.headers.get("Authorization", "").partition(" ")
            given = sent.strip().encode("utf-8", "surrogateescape")
            if scheme.lower() != "bearer" or not hmac.compare_digest(given, token.encode()):
                return web.Response(
                    status=HTTPStatus.UNAUTHORIZED,
                    headers={"WWW-Authenticate": 'Bearer realm="metrics"'},
                    text="this page asks for a bearer token\n",
                )
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encode(self._registry), headers={"Content-Type": content_type})

    async def _healthz(self, request: web.Request) -> web.Response:
        del request
        return _answer(self._health.live())

    async def _readyz(self, request: web.Request) -> web.Response:
        del request
        return _answer(self._health.ready())


def _answer(verdict: Verdict) -> web.Response:
    return web.json_response(
        {"ok": verdict.ok, "checks": verdict.checks},
        status=HTTPStatus.OK if verdict.ok else HTTPStatus.SERVICE_UNAVAILABLE,
    )
