"""Writes what OTLP answers an export request with, in the request's encoding: partial success, or why it is refused.

After "OpenTelemetry Protocol Specification", "OTLP/HTTP Response". The messages are so small that protobuf's wire
format is written here, and no library is needed for it. Nothing is decided here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from streams.gateway.refused import JSON
from streams.page_server import answer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from http import HTTPStatus

    from aiohttp import web

    from streams.gateway.metrics import Signal
    from streams.otlp import Encoding

PROTOBUF: Final = "application/x-protobuf"

ENCODINGS: Final[dict[str, Encoding]] = {JSON: "json", PROTOBUF: "protobuf"}
"""How a request is written, by its content type."""

_REJECTED: Final[dict[Signal, str]] = {"traces": "rejectedSpans", "logs": "rejectedLogRecords"}
_LENGTH_DELIMITED: Final = 2
_SEVEN_BITS: Final = 0x7F


def export_answer(signal: Signal, encoding: Encoding, rejected: int, message: str) -> bytes:
    """Write an ExportTraceServiceResponse or ExportLogsServiceResponse.

    Args:
        signal: which.
        encoding: how.
        rejected: how many spans or log records were not taken.
        message: why; empty when all is well.
    """
    if encoding == "json":
        partial: dict[str, Any] = {}
        if rejected:
            partial[_REJECTED[signal]] = str(rejected)  # a 64-bit integer is a text in protobuf's JSON
        if message:
            partial["errorMessage"] = message
        return msgspec.json.encode({"partialSuccess": partial} if partial else {})
    inner = b"\x08" + _varint(rejected) if rejected else b""
    if message:
        inner += _field(2, message.encode())
    return _field(1, inner) if inner else b""


def status_answer(
    status: HTTPStatus, encoding: Encoding, message: str, *, headers: Mapping[str, str], close: bool
) -> web.Response:
    """Write a google.rpc.Status, with which a request is refused."""
    if encoding == "json":
        return answer(
            status, msgspec.json.encode({"message": message}), content_type=JSON, headers=headers, close=close
        )
    return answer(status, _field(2, message.encode()), content_type=PROTOBUF, headers=headers, close=close)


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | _LENGTH_DELIMITED]) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > _SEVEN_BITS:
        found.append(value & _SEVEN_BITS | 0x80)
        value >>= 7
    return bytes([*found, value])
