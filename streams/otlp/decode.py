"""Reads an export request in either encoding, within bounds. Nothing that can be sent raises anything else.

Protobuf needs the extra `otlp`; JSON needs nothing. Compression is for those who receive: what comes here is unpacked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from streams.otlp import json_form
from streams.otlp.items import MAX_REQUEST_BYTES, InvalidRequest, Logs, Traces

if TYPE_CHECKING:
    from types import ModuleType

Encoding = Literal["json", "protobuf"]
"""``application/json``, ``application/x-protobuf`` over HTTP; ``otlp_json``, ``otlp_proto`` on a collector's topics."""


def decode_traces(body: bytes, encoding: Encoding) -> Traces:
    """Read a trace export request, or the message of a collector's topic of spans.

    Args:
        body: what was received, unpacked.
        encoding: how it is written.

    Raises:
        InvalidRequest: nothing of it can be read.
    """
    traces: Traces = _form(body, encoding).read_traces(body)
    return traces


def decode_logs(body: bytes, encoding: Encoding) -> Logs:
    """Read a log export request, or the message of a collector's topic of log records.

    Args:
        body: what was received, unpacked.
        encoding: how it is written.

    Raises:
        InvalidRequest: nothing of it can be read.
    """
    logs: Logs = _form(body, encoding).read_logs(body)
    return logs


def _form(body: bytes, encoding: Encoding) -> ModuleType:
    if len(body) > MAX_REQUEST_BYTES:
        text = f"{len(body)} bytes, more than {MAX_REQUEST_BYTES}; send smaller batches"
        raise InvalidRequest("too_large", text)
    if encoding == "json":
        return json_form
    try:
        from streams.otlp import protobuf_form  # noqa: PLC0415 - only who installed the extra can import it
    except ModuleNotFoundError:
        text = "protobuf cannot be read here; install traction[otlp], or send JSON"
        raise InvalidRequest("unsupported", text) from None
    return protobuf_form
