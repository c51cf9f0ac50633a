"""Reads records off the wire: bytes in, one typed struct out, or a refusal that says what is wrong.

Plain JSON and CloudEvents 1.0 in both modes are read. Nothing that a producer can send raises anything but
`InvalidEvent`, and what comes out is safe to compare and to store; whether it makes sense for a session is not judged.
"""

from typing import Any, Final

import msgspec
from msgspec import UNSET

from schemas.cloudevents import Attributes, Headers, open_envelope, read_headers
from schemas.content import read_content
from schemas.events import ToolCall
from schemas.invalid import InvalidEvent, Reason, Stage
from schemas.records import BY_STRUCT, RecordType
from schemas.refusals import field_refusal, syntax_refusal, utf8_refusal
from schemas.topics import TOPICS, Topic
from schemas.values import settle

MAX_VALUE_BYTES: Final = 1024 * 1024
"""Largest value read. A broker's own default for a batch is 12 bytes more (Apache Kafka, ``message.max.bytes``)."""

_FIRST_YEAR: Final = 1970
_LAST_YEAR: Final = 2999
_OBJECT = msgspec.json.Decoder(dict[str, Any])


def decode(topic: Topic, value: bytes | None, headers: Headers | None = None) -> msgspec.Struct:
    """Read one record of a topic.

    The fields of a CloudEvent's data win; its ``id``, ``time`` and ``subject`` fill the fields of the same meaning that
    the data leaves out.

    Args:
        topic: a topic that carries records, which is any but the dead letters.
        value: the record's value; None for a tombstone, which is no record.
        headers: the record's headers.

    Returns:
        An instance of the topic's struct.

    Raises:
        InvalidEvent: the value cannot be read as one, at the stage ``decode`` or ``validate``.
    """
    if not value:
        raise InvalidEvent("empty", "no value", "send one JSON object per record")
    if len(value) > MAX_VALUE_BYTES:
        remedy = "cut the result and say so in result_length and result_digest"
        raise InvalidEvent("too_large", f"{len(value)} bytes, more than {MAX_VALUE_BYTES}", remedy)
    reader = _READERS[topic.name]
    mode = read_headers(headers) if headers else None
    if mode is None:
        event = reader.plain(value)
    elif mode == "structured":
        event = reader.structured(value)
    else:
        event = reader.data(value, mode, data="", attribute="ce_")
    if not value.isascii():
        wrong = utf8_refusal(value)
        if wrong is not None:
            raise wrong
    reader.check(event)
    return event


def check_key(topic: Topic, event: msgspec.Struct, key: bytes | None) -> None:
    """Check that a record was written under the key of its session, or scope.

    Args:
        topic: the input topic it was read from.
        event: what `decode` returned.
        key: the record's key.

    Raises:
        InvalidEvent: there is no key or another one, at the stage ``route``.
    """
    field = _READERS[topic.name].record.key_field
    remedy = f"send the {field} in UTF-8 as the record's key"
    if key is None:
        raise InvalidEvent("key_missing", "the record has no key", remedy, field=field)
    if key != getattr(event, field).encode():
        raise InvalidEvent("key_mismatch", "the record's key is another", remedy, field=field)


class _Reader:
    """Reads the records of one topic."""

    def __init__(self, record: RecordType) -> None:
        self.record = record
        self._decode = msgspec.json.Decoder(record.struct).decode
        kinds = {
            field.name: _kinds(msgspec.inspect.type_info(field.type)) for field in msgspec.structs.fields(record.struct)
        }
        self._instants = [name for name, types in kinds.items() if msgspec.inspect.DateTimeType in types]
        self._json = [name for name, types in kinds.items() if msgspec.inspect.AnyType in types]
        self._parts = [name for name, types in kinds.items() if msgspec.inspect.StructType in types]

    def plain(self, value: bytes) -> msgspec.Struct:
        """Read a value that is a record, or by its content a structured CloudEvent."""
        try:
            return self._decode(value)
        except msgspec.ValidationError as error:
            refused = error
        except (msgspec.DecodeError, RecursionError) as error:
            raise syntax_refusal(value, error) from None
        envelope = open_envelope(value) if b'"specversion"' in value else None
        if envelope is None:
            return self._relaxed(value, refused, {}, data="", attribute="")
        attributes, data = envelope
        return self.data(data, attributes, data="data", attribute="")

    def structured(self, value: bytes) -> msgspec.Struct:
        """Read a value that its headers say is a structured CloudEvent."""
        envelope = open_envelope(value)
        if envelope is None:
            problem, remedy = "missing", "send CloudEvents 1.0 in JSON, or drop the content type"
            raise InvalidEvent("cloudevents_version", problem, remedy, field="specversion")
        attributes, data = envelope
        return self.data(data, attributes, data="data", attribute="")

    def data(self, value: bytes, attributes: Attributes, *, data: str, attribute: str) -> msgspec.Struct:
        """Read the data of a CloudEvent, and fill what they leave out from its attributes.

        ``data`` is the path of the data and ``attribute`` what stands before attributes' names, both for errors.
        """
        try:
            return self._decode(value)
        except msgspec.ValidationError as error:
            refused = error
        except (msgspec.DecodeError, RecursionError) as error:
            raise syntax_refusal(value, error) from None
        texts = {
            self.record.id_field: ("id", attributes.id),
            self.record.time_field: ("time", attributes.time),
            self.record.key_field: ("subject", attributes.subject),
        }
        given = {field: (name, text) for field, (name, text) in texts.items() if field and text is not None}
        return self._relaxed(value, refused, given, data=data, attribute=attribute)

    def _relaxed(
        self,
        value: bytes,
        refused: msgspec.ValidationError,
        given: dict[str, tuple[str, str]],
        *,
        data: str,
        attribute: str,
    ) -> msgspec.Struct:
        """Read once more what was refused, null taken for absent, and fields filled in with what is given for them."""
        try:
            fields = _OBJECT.decode(value)
        except msgspec.ValidationError:
            raise field_refusal(refused, self.record.name, data, {}) from None
        except (msgspec.DecodeError, RecursionError) as error:
            raise syntax_refusal(value, error) from None
        fields = _without_nulls(fields)
        for name in self._parts:
            if isinstance(fields.get(name), dict):
                fields[name] = _without_nulls(fields[name])
        filled = {field: attribute + name for field, (name, _) in given.items() if field not in fields}
        fields.update({field: given[field][1] for field in filled})
        try:
            return msgspec.convert(fields, self.record.struct)
        except msgspec.ValidationError as error:
            raise field_refusal(error, self.record.name, data, filled) from None

    def check(self, event: msgspec.Struct) -> None:
        """Check what the types cannot say, and make values of any JSON shape safe."""
        for name in self._instants:
            instant = getattr(event, name)
            if instant is not None and not _FIRST_YEAR <= instant.year <= _LAST_YEAR:
                problem, remedy = f"not in the years {_FIRST_YEAR} to {_LAST_YEAR}", "send when it happened"
                raise InvalidEvent("invalid_value", problem, remedy, field=name)
        for name in self._json:
            value = getattr(event, name)
            if value is not UNSET and type(value) is not str:
                safe = settle(value, name)
                if safe is not value:
                    msgspec.structs.force_setattr(event, name, safe)
        if isinstance(event, ToolCall) and isinstance(event.result, list | dict):
            value, failed = read_content(event.result)
            msgspec.structs.force_setattr(event, "result", value)
            if failed and event.status is None:
                msgspec.structs.force_setattr(event, "status", "error")


def _without_nulls(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _kinds(of: msgspec.inspect.Type) -> set[type[msgspec.inspect.Type]]:
    """List the kinds of type that a field may have, without what unions and metadata wrap around them."""
    if isinstance(of, msgspec.inspect.UnionType):
        return {kind for part in of.types for kind in _kinds(part)}
    if isinstance(of, msgspec.inspect.Metadata):
        return _kinds(of.type)
    return {type(of)}


_READERS: Final = {topic.name: _Reader(BY_STRUCT[topic.record]) for topic in TOPICS if topic.record is not None}

__all__ = ["MAX_VALUE_BYTES", "InvalidEvent", "Reason", "Stage", "check_key", "decode"]
