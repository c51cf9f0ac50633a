"""What a request is refused with, and how an answer is written. Says nothing of what came but what is wrong with it."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import msgspec

from streams.gateway.settings import MAX_BODY_BYTES
from streams.page_server import answer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp import web

JSON: Final = "application/json"

BUSY_SECONDS: Final = 1
"""After which a request may be tried again when there were too many: most are answered in milliseconds."""

AWAY_SECONDS: Final = 3
"""Likewise while brokers are away, or this process ends: a leader is elected, or another process there, by then."""


class Refused(Exception):
    """A request that is not taken as a whole.

    Attributes:
        status: of the answer.
        text: what is wrong and what to do.
        headers: of the answer.
        close: whether the connection ends with it.
    """

    def __init__(
        self, status: HTTPStatus, text: str, *, headers: Mapping[str, str] | None = None, close: bool = False
    ) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.headers = dict(headers or {})
        self.close = close


def busy(text: str) -> Refused:
    """Refuse for now what is too much at once."""
    return Refused(HTTPStatus.TOO_MANY_REQUESTS, text, headers={"Retry-After": str(BUSY_SECONDS)})


def away(text: str, *, close: bool = False) -> Refused:
    """Refuse for now what cannot be acknowledged."""
    return Refused(HTTPStatus.SERVICE_UNAVAILABLE, text, headers={"Retry-After": str(AWAY_SECONDS)}, close=close)


def too_large(what: str, most: int) -> Refused:
    """Refuse what has more bytes than are taken."""
    larger = ", or give traction ingest a larger --max-body" if most < MAX_BODY_BYTES else ""
    text = f"{what} has more than {most} bytes; send smaller requests{larger}"
    return Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, text)


def told(
    status: HTTPStatus, value: Any, *, headers: Mapping[str, str] | None = None, close: bool = False
) -> web.Response:
    """Write an answer in JSON.

    Args:
        status: its status.
        value: what msgspec can encode.
        headers: further headers.
        close: whether the connection ends with it.
    """
    return answer(status, msgspec.json.encode(value), content_type=JSON, headers=headers, close=close)
