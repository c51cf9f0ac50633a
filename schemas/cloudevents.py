"""CloudEvents 1.0 on Kafka: recognises both content modes and takes out what our records need of them.

Structured: the value is the whole event, known by the content type or, without headers, by its ``specversion``. Binary:
``ce_*`` headers, the value is the data. Written after "CloudEvents 1.0 Kafka Protocol Binding" and "JSON Event Format".
It reads attributes only, and must not know what a record looks like.
"""

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from schemas.invalid import InvalidEvent
from schemas.refusals import syntax_refusal

_SPECVERSION = "1.0"
_PREFIX = "ce_"
_REQUIRED = ("id", "source", "type")
_OPTIONAL = ("subject", "time")
_READ = ("specversion", *_REQUIRED, *_OPTIONAL)
_READ_HEADERS = frozenset(_PREFIX + name for name in _READ)
_CONTENT_TYPE = "content-type"
_MEDIA_TYPE = b"application/cloudevents"
_JSON_MEDIA_TYPES = (_MEDIA_TYPE, _MEDIA_TYPE + b"+json")

Headers = Iterable[tuple[str, bytes | None]]


class Attributes(msgspec.Struct, frozen=True):
    """The attributes that can stand for fields of a record, and the type, which says what record it is."""

    id: str
    type: str
    subject: str | None
    time: str | None


class _Envelope(msgspec.Struct):
    """A structured event. Members are checked one by one, since anything may carry these names."""

    specversion: Any = None
    id: Any = None
    source: Any = None
    type: Any = None
    subject: Any = None
    time: Any = None
    data: msgspec.Raw = msgspec.Raw(b"null")
    data_base64: Any = None


_ENVELOPE = msgspec.json.Decoder(_Envelope)


def read_headers(headers: Headers) -> Attributes | Literal["structured"] | None:
    """Tell from a record's headers how it is to be read.

    Args:
        headers: names and values as they came; of two with one name the last counts.

    Returns:
        The attributes of a binary event, ``structured``, or None when the headers speak of no CloudEvent.

    Raises:
        InvalidEvent: a format or version that is not read, or an attribute that is missing or not UTF-8.
    """
    found: dict[str, bytes] = {}
    for name, value in headers:
        lower = name.lower()
        if value is not None and (lower in _READ_HEADERS or lower == _CONTENT_TYPE):
            found[lower] = value
    media_type = found.get(_CONTENT_TYPE, b"").split(b";")[0].strip().lower()
    if media_type.startswith(_MEDIA_TYPE):
        if media_type in _JSON_MEDIA_TYPES:
            return "structured"
        raise InvalidEvent(
            "cloudevents_format",
            "a CloudEvents batch, or not in JSON",
            "send one event per record as application/cloudevents+json",
            field=_CONTENT_TYPE,
        )
    if "ce_specversion" not in found:
        return None
    return _attributes({name: _text(name, value) for name, value in found.items() if name != _CONTENT_TYPE}, _PREFIX)


def open_envelope(value: bytes) -> tuple[Attributes, bytes] | None:
    """Open a structured event.

    Args:
        value: the record's value.

    Returns:
        Its attributes and its data as JSON; None when the value is JSON and no CloudEvent.

    Raises:
        InvalidEvent: not JSON, or a CloudEvent whose version, attributes or data cannot be read.
    """
    try:
        envelope = _ENVELOPE.decode(value)
    except msgspec.ValidationError:
        return None
    except (msgspec.DecodeError, RecursionError) as error:
        raise syntax_refusal(value, error) from None
    if envelope.specversion is None:
        return None
    attributes = _attributes({name: getattr(envelope, name) for name in _READ}, "")
    data = bytes(envelope.data)
    if data == b"null":
        encoded = envelope.data_base64 is not None
        problem = "binary data is not read" if encoded else "missing"
        field = "data_base64" if encoded else "data"
        raise InvalidEvent("cloudevents_data", problem, "put the record into data as a JSON object", field=field)
    return attributes, data


def _attributes(members: dict[str, Any], prefix: str) -> Attributes:
    """Check the attributes of either mode; names carry the prefix."""
    version = members.get(f"{prefix}specversion")
    if version != _SPECVERSION:
        raise InvalidEvent(
            "cloudevents_version", f"not {_SPECVERSION}", "send CloudEvents 1.0", field=f"{prefix}specversion"
        )
    for name in _REQUIRED:
        _check_text(members.get(f"{prefix}{name}"), f"{prefix}{name}", required=True)
    for name in _OPTIONAL:
        _check_text(members.get(f"{prefix}{name}"), f"{prefix}{name}", required=False)
    return Attributes(
        members[f"{prefix}id"], members[f"{prefix}type"], members.get(f"{prefix}subject"), members.get(f"{prefix}time")
    )


def _check_text(value: object, field: str, *, required: bool) -> None:
    if value is None and not required:
        return
    if not isinstance(value, str) or not value:
        problem = "required and missing" if value is None else "not a text, or empty"
        remedy = "send it as CloudEvents 1.0 defines it"
        raise InvalidEvent("cloudevents_attribute", problem, remedy, field=field)


def _text(name: str, value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise InvalidEvent("not_utf8", "not UTF-8", "encode the header as UTF-8", field=name) from None
