"""Answers OpenTelemetry's exporters: what spans and log records mean goes to the topics, the rest is counted.

Reads and maps by `streams.otlp`. Spans that are no tool calls are taken and give nothing; only what cannot be read is
rejected.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from schemas.decode import InvalidEvent
from streams.gateway.events import aside
from streams.gateway.items import Items
from streams.gateway.otlp_answer import ENCODINGS, export_answer
from streams.gateway.refused import Refused
from streams.otlp import InvalidRequest, decode_logs, decode_traces, map_logs, map_traces

if TYPE_CHECKING:
    from streams.gateway.events import Publisher
    from streams.gateway.metrics import OtlpMetrics, Signal
    from streams.gateway.settings import GatewaySettings
    from streams.otlp import Encoding, Mapped, Memory, Refusal
    from streams.privacy import Level

MOST_TOLD: Final = 5
"""Refusals that an answer tells word for word, with the place in the request from 0 on: exporters log it."""

_STATUS: Final = {
    "too_large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "malformed": HTTPStatus.BAD_REQUEST,
    "unsupported": HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
}


def events_of(
    signal: Signal, body: bytes, encoding: Encoding, memory: Memory, level: Level
) -> tuple[Items, Mapped, list[Refusal]]:
    """Make events of an export request.

    Args:
        signal: what it holds.
        body: the request, unpacked.
        encoding: how it is written.
        memory: what is known of earlier requests.
        level: how much of tool calls' content goes on.

    Returns:
        The events, the counts of the rest, and what cannot be read.

    Raises:
        InvalidRequest: nothing can be read.
    """
    now = datetime.now(UTC)
    if signal == "traces":
        traces = decode_traces(body, encoding)
        mapped, refused = map_traces(traces, now, memory), traces.refused
    else:
        logs = decode_logs(body, encoding)
        mapped, refused = map_logs(logs, now), logs.refused
    mapped.leave_to_hooks(memory)
    items = Items()
    for index, observed in enumerate(mapped.events):
        trace = observed.traceparent
        try:
            items.add(index, observed.event, level, trace.encode() if trace else None)
        except InvalidEvent as problem:
            items.refuse(index, problem, None)
    return items, mapped, refused


class Otlp:
    """The routes `/v1/traces` and `/v1/logs`.

    Args:
        settings: how much goes on.
        publisher: sends.
        metrics: takes the counts.
        memory: what is known of earlier requests, and of sessions that have hooks.
    """

    def __init__(self, settings: GatewaySettings, publisher: Publisher, metrics: OtlpMetrics, memory: Memory) -> None:
        self._level = settings.privacy
        self._publisher = publisher
        self._metrics = metrics
        self._memory = memory
        self._one = asyncio.Lock()  # requests share the memory, and a long one is read in a thread

    async def post(self, signal: Signal, body: bytes, media_type: str) -> bytes:
        """Take an export request, and give the answer to it in its own encoding.

        Raises:
            Refused: nothing can be read, or not all was acknowledged.
        """
        encoding = ENCODINGS.get(media_type)
        if encoding is None:
            raise Refused(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"say with Content-Type what is sent: {' or '.join(ENCODINGS)}"
            )
        try:
            async with self._one:
                items, mapped, refused = await aside(
                    len(body), lambda: events_of(signal, body, encoding, self._memory, self._level)
                )
        except InvalidRequest as problem:
            raise Refused(_STATUS[problem.reason], str(problem)) from None
        posted = await self._publisher.publish(items)
        self._metrics.count(signal, mapped, refused)
        item = "span" if signal == "traces" else "log record"
        reasons = [f"{item} {each.position}: {each.text}" for each in refused]
        reasons += [f"{_named(item, mapped.events[each.index].traceparent)}: {each.reason}" for each in posted.refused]
        rejected = sum(each.count for each in refused) + len(posted.refused)
        rest = [f"and {len(reasons) - MOST_TOLD} more"] if len(reasons) > MOST_TOLD else []
        return export_answer(signal, encoding, rejected, "; ".join([*reasons[:MOST_TOLD], *rest]))


def _named(item: str, traceparent: str | None) -> str:
    """Name the span or log record of an event, by the id of its span where it has one (W3C Trace Context)."""
    if not traceparent:
        return f"a {item}"
    span = traceparent.split("-")[2]
    return f"span {span}" if item == "span" else f"the {item} of span {span}"
