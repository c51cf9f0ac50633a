"""Routes requests, lets them in, and writes their answers; whatever comes is answered with what is wrong with it.

Who may send and how much is looked at before a body is read. What is taken of a body, and what it means, is for the
routes' own modules.
"""

from __future__ import annotations

import asyncio
import logging
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import msgspec

from schemas.common import Identifier, Note
from streams.client.answers import Answer
from streams.gateway.admission import Admission
from streams.gateway.body import read
from streams.gateway.events import Events, Publisher
from streams.gateway.hooks import Hooks
from streams.gateway.otlp import Otlp
from streams.gateway.otlp_answer import ENCODINGS, PROTOBUF, status_answer
from streams.gateway.refused import JSON, Refused, away, told
from streams.otlp import Memory
from streams.page_server import answer
from streams.pages import NO_SUCH_NAME, bears, host_named

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiohttp import web

    from streams.gateway.admission import Ticket
    from streams.gateway.events import Posted
    from streams.gateway.metrics import GatewayMetrics, Signal
    from streams.gateway.sender import Sender
    from streams.gateway.settings import GatewaySettings
    from streams.kafka import KafkaSettings
    from streams.verdicts.live import LiveVerdicts
    from streams.verdicts.model import Verdict

logger = logging.getLogger(__name__)

_SIGNALS: Final[dict[str, Signal]] = {"/v1/traces": "traces", "/v1/logs": "logs"}
_EVENTS: Final = "/v1/events"
_HOOKS: Final = "/v1/hooks"
_ANSWERS: Final = "/v1/answers"
_SESSIONS: Final = "/v1/sessions/"
_VERDICT: Final = "/verdict"
_MAX_SESSION_CHARS: Final = 256


class Said(msgspec.Struct, frozen=True):
    """What an agent answers to a verdict."""

    session_id: Identifier
    answers: Identifier
    action: Answer
    reason: Note | None = None


_SAID = msgspec.json.Decoder(Said)


class Gateway:
    """All routes of one process.

    Args:
        kafka: gives the topics' names.
        settings: what is taken.
        sender: sends.
        live: tells what holds for sessions.
        metrics: takes what is measured.
        names: by which requests may name this host, in small letters; None for any.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        settings: GatewaySettings,
        sender: Sender,
        live: LiveVerdicts,
        metrics: GatewayMetrics,
        *,
        names: frozenset[str] | None = None,
    ) -> None:
        self._settings = settings
        self._names = names
        self._live = live
        self._metrics = metrics
        self._admission = Admission(settings, lambda: sender.bytes)
        publisher = Publisher(kafka, sender, metrics)
        self._events = Events(settings, publisher)
        memory = Memory()
        self._otlp = Otlp(settings, publisher, metrics.otlp, memory)
        self._hooks = Hooks(settings, publisher, live, metrics, memory)
        self._ending = False
        metrics.watch(lambda: self._admission.requests, lambda: self._admission.bytes)

    async def end(self, seconds: float) -> None:
        """Refuse what comes from now on, and wait for what is in flight, so many seconds at most."""
        self._ending = True
        try:
            async with asyncio.timeout(seconds):
                await self._admission.idle()
        except TimeoutError:
            logger.warning("%d requests end without an answer", self._admission.requests)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request."""
        route, path = _route(request)
        try:
            if self._ending:
                raise away("this gateway ends; another one, or the next, takes it", close=True)
            self._check_sender(request)
            _check_address(route, request.method)
            with self._admission.enter() as ticket:
                given = await self._handle(route, path, request, ticket)
        except Refused as problem:
            given = _refusal(route, request, problem)
        self._metrics.requests.labels(route, str(given.status)).inc()
        return given

    def _check_sender(self, request: web.BaseRequest) -> None:
        if self._names is not None and host_named(request) not in self._names:  # a page's own name that leads to us
            raise Refused(HTTPStatus.MISDIRECTED_REQUEST, NO_SUCH_NAME)
        if self._settings.tokens:
            if not bears(request, self._settings.tokens):
                raise Refused(
                    HTTPStatus.UNAUTHORIZED,
                    "send the gateway's token: Authorization: Bearer TOKEN",
                    headers={"WWW-Authenticate": 'Bearer realm="traction"'},
                )
        elif "Origin" in request.headers:  # a page that somebody looks at must not reach what is on their machine
            raise Refused(HTTPStatus.FORBIDDEN, "a gateway without a token takes nothing from web pages")

    async def _handle(self, route: str, path: str, request: web.BaseRequest, ticket: Ticket) -> web.Response:
        if route == "verdict":
            return self._verdict(path)
        media_type = _media_type(request)
        body = await read(request, ticket, self._settings.max_body_bytes)
        if route == "events":
            topic = self._events.topic(path) if path else None
            return await self._posted(await self._events.post(request, body, media_type, topic))
        if route == "hooks" and path:
            return told(HTTPStatus.OK, await self._hooks.post(path, body, media_type, request.query))
        if route == "hooks":
            return _posted(await self._hooks.spooled(body, media_type), {})
        if route == "answers":
            return await self._answered(body, media_type)
        given = await self._otlp.post(_SIGNALS[path], body, media_type)
        return answer(HTTPStatus.OK, given, content_type=media_type, close=False)

    async def _posted(self, posted: Posted) -> web.Response:
        await self._hooks.note(posted.events)
        return _posted(posted, self._verdicts(posted.sessions))

    def _verdicts(self, sessions: Iterable[str]) -> dict[str, Verdict]:
        found = {session: self._live.verdict(session) for session in sessions}
        asking = {session: verdict for session, verdict in found.items() if verdict.action != "go_on"}
        for verdict in asking.values():
            self._metrics.verdicts.labels(verdict.action, "events").inc()
        return asking

    def _verdict(self, session_id: str) -> web.Response:
        if not 0 < len(session_id) <= _MAX_SESSION_CHARS:
            raise Refused(HTTPStatus.NOT_FOUND, f"a session's id has 1 to {_MAX_SESSION_CHARS} characters")
        verdict = self._live.verdict(session_id)
        if verdict.action != "go_on":
            self._metrics.verdicts.labels(verdict.action, "verdict").inc()
        return told(HTTPStatus.OK, verdict)

    async def _answered(self, body: bytes, media_type: str) -> web.Response:
        if media_type != JSON:
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"send the answer as {JSON}")
        try:
            said = _SAID.decode(body)
        except msgspec.ValidationError:
            text = "not an answer: session_id, answers, and action, one of obeyed, refused, ended"
            raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, text) from None
        except (msgspec.DecodeError, RecursionError):
            raise Refused(HTTPStatus.BAD_REQUEST, "the body is no JSON, or cut short") from None
        try:
            await self._live.answer_to(said.session_id, said.answers, said.action, reason=said.reason)
        except LookupError:
            text = "answers: nothing of this id was asked of the session"
            raise Refused(HTTPStatus.NOT_FOUND, text) from None
        return told(HTTPStatus.OK, {})


def _route(request: web.BaseRequest) -> tuple[str, str]:
    """Give the route's name and what of the address the route reads; `other` where there is none."""
    path = request.rel_url.raw_path
    for route, beginning in (("events", _EVENTS), ("hooks", _HOOKS)):
        if path == beginning or path.startswith(f"{beginning}/"):
            return route, path.removeprefix(beginning).removeprefix("/")
    if path in _SIGNALS:
        return _SIGNALS[path], path
    if path == _ANSWERS:
        return "answers", path
    if path.startswith(_SESSIONS) and path.endswith(_VERDICT):
        return "verdict", unquote(path.removeprefix(_SESSIONS).removesuffix(_VERDICT))
    return "other", path


def _check_address(route: str, method: str) -> None:
    if route == "other":
        raise Refused(HTTPStatus.NOT_FOUND, "there is no such address; docs/gateway.md names those that are")
    wanted = "GET" if route == "verdict" else "POST"
    if method != wanted:
        raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, f"send it with {wanted}", headers={"Allow": wanted})


def _media_type(request: web.BaseRequest) -> str:
    """Give the content type without parameters; empty for none."""
    return request.headers.get("Content-Type", "").partition(";")[0].strip().lower()


def _posted(posted: Posted, verdicts: dict[str, Verdict]) -> web.Response:
    nothing = posted.refused and not posted.accepted
    value: dict[str, Any] = {"accepted": posted.accepted, "refused": posted.refused, "verdicts": verdicts}
    return told(HTTPStatus.UNPROCESSABLE_ENTITY if nothing else HTTPStatus.OK, value)


def _refusal(route: str, request: web.BaseRequest, problem: Refused) -> web.Response:
    """Write why a request is refused, for OpenTelemetry's exporters as they read it."""
    if route in _SIGNALS.values():
        encoding = ENCODINGS.get(_media_type(request), ENCODINGS[PROTOBUF])
        return status_answer(problem.status, encoding, problem.text, headers=problem.headers, close=problem.close)
    return told(problem.status, {"error": problem.text}, headers=problem.headers, close=problem.close)
