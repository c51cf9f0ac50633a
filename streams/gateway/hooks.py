"""Answers agents' hooks: what they hand over goes to the topics, and they are told what holds for their session.

Payloads and answers are the business of `streams.hooks`, what holds that of `streams.verdicts`. A verdict is told only
after the brokers have the event.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import msgspec

from schemas.events import Instant, SessionEvent, ToolCall
from schemas.invalid import InvalidEvent, Reason
from streams.gateway.items import NDJSON, Items
from streams.gateway.refused import JSON, Refused
from streams.gateway.settings import MAX_ITEMS
from streams.hooks import AGENTS, Agents, NotRead, answer, denied, denies, read
from streams.privacy import Level
from streams.verdicts.model import GO_ON, UNLIKE
from streams.verdicts.refusal import denial_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from schemas.events import SessionInput
    from streams.gateway.events import Posted, Publisher
    from streams.gateway.metrics import GatewayMetrics
    from streams.gateway.settings import GatewaySettings
    from streams.hooks import Observed
    from streams.otlp import Memory
    from streams.verdicts.live import LiveVerdicts
    from streams.verdicts.model import Verdict

logger = logging.getLogger(__name__)

Mode = Literal["observe", "enforce"]

MODES: Final[tuple[Mode, ...]] = get_args(Mode)
LEVELS: Final[tuple[Level, ...]] = get_args(Level)
"""From the one that lets least go on to the one that lets most."""

NOTED_AT_ONCE: Final = 200
"""Events noted in one go: some milliseconds, since each call is made comparable."""

_REASONS: Final[dict[str, Reason]] = {
    "too_large": "too_large",
    "malformed": "not_json",
    "too_deep": "too_deep",
    "no_session_id": "missing_field",
    "no_tool_name": "missing_field",
}


class Spooled(msgspec.Struct, frozen=True):
    """A payload that was kept while the gateway was away.

    Attributes:
        agent: whose hook it was.
        at: when it was handed over.
        payload: the JSON that the agent gave.
        privacy: how much of it may go on.
        mode: whether the agent was only watched; what is past is not answered with a verdict in either mode.
    """

    agent: Agents
    at: Instant
    payload: msgspec.Raw
    privacy: Level = "digests"
    mode: Mode = "observe"


_PAYLOAD: Final = b'"payload":'
_SPOOLED = msgspec.json.Decoder(Spooled)


class Hooks:
    """The routes `/v1/hooks/{agent}` and `/v1/hooks`.

    Args:
        settings: how much goes on.
        publisher: sends.
        live: tells what holds for sessions.
        metrics: takes the counts.
        memory: learns which sessions' calls hooks tell without ids, so that telemetry of them is left out.
    """

    def __init__(
        self,
        settings: GatewaySettings,
        publisher: Publisher,
        live: LiveVerdicts,
        metrics: GatewayMetrics,
        memory: Memory,
    ) -> None:
        self._memory = memory
        self._level = settings.privacy
        self._publisher = publisher
        self._live = live
        self._metrics = metrics

    async def post(self, agent: str, body: bytes, media_type: str, query: Mapping[str, str]) -> dict[str, Any]:
        """Take what one hook handed over, and give the JSON that its agent wants.

        Args:
            agent: as the address names it.
            body: the payload.
            media_type: its content type.
            query: `mode`, `privacy` and `at` of the address.

        Raises:
            Refused: nothing can be made of it, or it was not acknowledged.
        """
        which = next((known for known in AGENTS if known == agent), None)
        if which is None:
            raise Refused(HTTPStatus.NOT_FOUND, f"there are no such hooks; known are those of {', '.join(AGENTS)}")
        if media_type != JSON:
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"send the hook's payload as {JSON}")
        mode = _one_of("mode", query, MODES, "observe")
        level = _one_of("privacy", query, LEVELS, "digests")
        enforce = mode == "enforce"
        observed = read(which, body, at=_time(query), privacy=self._lower(level), watched=not enforce)
        if isinstance(observed, NotRead):
            status = HTTPStatus.BAD_REQUEST if observed.reason == "malformed" else HTTPStatus.UNPROCESSABLE_ENTITY
            raise Refused(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE if observed.reason == "too_large" else status, observed.text
            )
        items = Items()
        self._add(items, 0, observed.events)
        await self._publisher.publish(items)
        verdict = self._verdict(observed) if enforce else GO_ON
        await self.note([each.event for each in items.taken], waits=observed.waits)
        said = answer(which, observed, verdict, enforce=enforce)
        if said:
            await self._told(observed, verdict, said)
        return said

    async def spooled(self, body: bytes, media_type: str) -> Posted:
        """Take payloads that were kept, a line each; counted by lines.

        Raises:
            Refused: nothing can be made of them, or not all was acknowledged.
        """
        if media_type != NDJSON:
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"send payloads that were kept as {NDJSON}")
        items, count = Items(), 0
        for line in body.split(b"\n"):
            if not line.strip():
                continue
            if count == MAX_ITEMS:
                raise Refused(
                    HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {MAX_ITEMS} payloads; send smaller requests"
                )
            self._add_spooled(items, count, line)
            count += 1
        posted = await self._publisher.publish(items)
        gone = {each.index for each in posted.refused}
        return dataclasses.replace(posted, accepted=count - len(gone))

    async def note(self, events: Iterable[SessionInput], *, waits: bool = False) -> None:
        """Take in what sessions did, as far as verdicts depend on it; that a call begins is asked about, not noted.

        Args:
            events: what they did.
            waits: whether calls among them wait for something, as far as more is known of them than they tell.
        """
        for number, event in enumerate(events, 1):
            if not number % NOTED_AT_ONCE:
                await asyncio.sleep(0)  # hooks wait for their answers meanwhile
            if isinstance(event, SessionEvent) or (isinstance(event, ToolCall) and event.phase != "start"):
                self._live.note(event, waits=waits)
            if isinstance(event, SessionEvent) and event.kind == "ended":
                await self._settle(event.session_id)

    async def _settle(self, session_id: str) -> None:
        """Answer what a session that has ended was asked; failing that, it is when the termination is repeated."""
        try:
            await self._live.settle(session_id)
        except Refused as problem:
            logger.warning("a session has ended, and that cannot be answered yet: %s", problem)

    def _add_spooled(self, items: Items, index: int, line: bytes) -> None:
        try:
            kept, payload = _kept(line)
        except (msgspec.DecodeError, RecursionError):  # a validation's words may quote
            remedy = "send agent, at and payload, as traction-hook keeps them"
            items.refuse(index, InvalidEvent("invalid_value", "not a payload that was kept", remedy), None)
            return
        level, watched = self._lower(kept.privacy), kept.mode == "observe"
        observed = read(kept.agent, payload, at=kept.at, privacy=level, watched=watched)
        if isinstance(observed, NotRead):
            items.refuse(index, InvalidEvent(_REASONS[observed.reason], observed.text, "it is left out"), None)
        else:
            self._add(items, index, observed.events)

    def _add(self, items: Items, index: int, events: Iterable[SessionInput]) -> None:
        for event in events:
            if isinstance(event, ToolCall) and event.call_id is None and event.phase != "start":
                self._memory.hear_hook(event.session_id)
            try:
                items.add(index, event, self._level)
            except InvalidEvent as problem:
                items.refuse(index, problem, None)

    def _lower(self, level: Level) -> Level:
        """Give the level that lets less go on: that of the request, or of the gateway."""
        return min(level, self._level, key=LEVELS.index)

    def _verdict(self, observed: Observed) -> Verdict:
        """Tell what holds for a session, and for a sub-agent also what ends the session that it belongs to."""
        call = None
        if observed.moment == "before_tool":
            call = UNLIKE if observed.waits else observed.call
        if observed.parent_id is not None:
            above = self._live.verdict(observed.parent_id)
            if above.action == "stop":
                return above
        return self._live.verdict(observed.session_id, call)

    async def _told(self, observed: Observed, verdict: Verdict, said: dict[str, Any]) -> None:
        """Note that an agent was told, and that its call was denied. What cannot be noted is told all the same."""
        self._metrics.verdicts.labels(verdict.action, "hooks").inc()
        try:
            if verdict.session_id == observed.session_id:  # a sub-agent that is stopped is not the session above it
                await self._live.handed_out(verdict)
            if denies(said):
                items = Items()
                self._add(items, 0, denied(observed, denial_of(verdict)))
                await self._publisher.publish(items)
        except Refused as problem:
            logger.warning("an agent was told, and that cannot be noted: %s", problem)


def _kept(line: bytes) -> tuple[Spooled, bytes]:
    """Take a line apart, so that the payload is read as if its hook had found the gateway.

    Agents write texts that no JSON allows, as half of a surrogate pair. What is to be made of them is for `read` to
    say, so where the line as a whole is no JSON, what stands around the payload is read by itself.

    Raises:
        msgspec.DecodeError: it is nothing that was kept.
    """
    try:
        kept = _SPOOLED.decode(line)
        return kept, bytes(kept.payload)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        head, _, payload = line.rstrip().partition(_PAYLOAD)
        return _SPOOLED.decode(head + _PAYLOAD + b"null}"), payload.removesuffix(b"}")


def _one_of(name: str, query: Mapping[str, str], known: tuple[Any, ...], default: Any) -> Any:
    value = query.get(name, default)
    if value not in known:
        raise Refused(HTTPStatus.BAD_REQUEST, f"{name}: not one of {', '.join(known)}")
    return value


def _time(query: Mapping[str, str]) -> datetime:
    """Give when the payload was handed over: as its sender says, so that it is the same when it is sent again."""
    text = query.get("at")
    if text is None:
        return datetime.now(UTC)
    try:
        return msgspec.convert(text, Instant)
    except msgspec.ValidationError:
        raise Refused(HTTPStatus.BAD_REQUEST, "at: not an RFC 3339 date and time with an offset") from None
