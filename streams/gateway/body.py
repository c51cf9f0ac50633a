"""Reads a request's body within bounds, and unpacks it: how much a packed one becomes is counted as it grows.

Knows nothing of what is in it.
"""

from __future__ import annotations

import zlib
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web import RequestPayloadError

from streams.gateway.refused import Refused, too_large

if TYPE_CHECKING:
    from aiohttp import web

    from streams.gateway.admission import Ticket

CODINGS: Final = ("gzip", "deflate")
"""How a body may be packed: what OpenTelemetry's exporters offer."""

_EITHER: Final = 32 + zlib.MAX_WBITS  # zlib recognises gzip's header or its own
_PIECE_BYTES: Final = 2**18


async def read(request: web.BaseRequest, ticket: Ticket, most: int) -> bytes:
    """Read a body, unpacked.

    Args:
        request: whose it is.
        ticket: takes its bytes.
        most: longest body, as it comes and unpacked.

    Raises:
        Refused: it is too long, packed in another way or not at all as it says, or there is no room for it now.
    """
    coding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if coding not in {"identity", *CODINGS}:
        raise Refused(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"packed in a way that is not known; send it as it is, or as {' or '.join(CODINGS)}",
            headers={"Accept-Encoding": ", ".join(CODINGS)},
        )
    said = request.content_length
    if said is not None and said > most:
        raise too_large("the body", most)
    found = bytearray()
    try:
        if request.headers.get("Expect", "").lower() == "100-continue":  # which curl waits for with long bodies
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0  # the answer has not begun
        async for piece in request.content.iter_any():
            if len(found) + len(piece) > most:
                raise too_large("the body", most)
            ticket.take(len(piece))
            found += piece
    except (HttpProcessingError, RequestPayloadError, OSError):
        raise Refused(
            HTTPStatus.BAD_REQUEST, "the body is cut short, or not as HTTP has it; send it again", close=True
        ) from None
    return bytes(found) if coding == "identity" else _unpacked(bytes(found), ticket, most)


def _unpacked(packed: bytes, ticket: Ticket, most: int) -> bytes:
    """Unpack a body piece by piece. It must be of one part: many small ones would be long work."""
    found = bytearray()
    unpacking = zlib.decompressobj(_EITHER)
    rest = packed
    while not unpacking.eof:
        try:
            piece = unpacking.decompress(rest, _PIECE_BYTES)
        except zlib.error:
            raise _unreadable() from None
        rest = unpacking.unconsumed_tail
        if not piece and not rest and not unpacking.eof:
            raise _unreadable()
        if len(found) + len(piece) > most:
            raise too_large("the body, unpacked,", most)
        ticket.take(len(piece))
        found += piece
    if unpacking.unused_data:
        raise _unreadable()
    return bytes(found)


def _unreadable() -> Refused:
    return Refused(
        HTTPStatus.BAD_REQUEST, "the body is not packed as Content-Encoding says, in one part, or is cut short"
    )
