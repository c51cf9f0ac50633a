"""Turns what the JSON decoder says into a refusal: which field, what is wrong, what to do.

The decoder's own text is for programmers and may quote a value, so only the parts of it that name types, limits and
fields are kept.
"""

import re

import msgspec

from schemas.invalid import InvalidEvent, Reason

_PATH = re.compile(r" - at (?:`key` in )?`\$\.?(?P<path>[^`]*)`$")
_MISSING = re.compile(r"Object missing required field `(?P<field>[^`]+)`")
_EXPECTED = re.compile(r"Expected `[^`]+`(?P<got>, got `[^`]+`)?")
_KEPT = re.compile(r"Expected `[^`]+`(?:, got `[^`]+`| (?:of|matching|with|[<>]).*)|Invalid RFC3339 encoded datetime")
_LONE_SURROGATE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F]"
)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_TYPES = re.compile(r"`([^`]+)`")
_JSON_NAMES = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "datetime": "date-time string",
}


def syntax_refusal(value: bytes, error: msgspec.DecodeError | RecursionError) -> InvalidEvent:
    """Say why bytes are no JSON that can be read.

    Args:
        value: the bytes.
        error: what the decoder raised.

    Returns:
        A refusal with the reason ``too_deep``, ``not_utf8`` or ``not_json``.
    """
    if isinstance(error, RecursionError):
        return InvalidEvent("too_deep", "arrays or objects are nested too deep", "send the nested part as text")
    wrong = utf8_refusal(value)
    if wrong is not None:
        return wrong
    if value.startswith(_BYTE_ORDER_MARK):
        return InvalidEvent("not_json", "begins with a byte-order mark", "write UTF-8 without one")
    if _LONE_SURROGATE.search(value):
        remedy = "replace what is not Unicode before encoding"
        return InvalidEvent("not_json", "a \\u escape is half of a surrogate pair", remedy)
    return InvalidEvent(
        "not_json", "not JSON, or cut short", "send one JSON object per record, without NaN or Infinity"
    )


def utf8_refusal(value: bytes) -> InvalidEvent | None:
    """Give the refusal of bytes that are not UTF-8, None when they are."""
    try:
        value.decode()
    except UnicodeDecodeError as error:
        return InvalidEvent("not_utf8", f"not UTF-8 at byte {error.start}", "encode the record as UTF-8")
    return None


def field_refusal(error: msgspec.ValidationError, record: str, prefix: str, renamed: dict[str, str]) -> InvalidEvent:
    """Say which field of a record is wrong.

    Args:
        error: what the decoder raised.
        record: the record's name, as in its schema file.
        prefix: what to put before the path, ``data`` for the data of a CloudEvent.
        renamed: fields that did not come in the record itself, and where they came from.

    Returns:
        A refusal of the stage ``validate``.
    """
    text = str(error)
    place = _PATH.search(text)
    path: str = place["path"] if place else ""
    text = text[: place.start()] if place else text
    schema = f"the schema is {record}.v1.json"
    missing = _MISSING.match(text)
    if missing:
        absent = _join(prefix, path, missing["field"])
        return InvalidEvent("missing_field", "required and missing", f"send it; {schema}", field=absent)
    field = renamed.get(path) or _join(prefix, path) or None
    if path == "schema_version":
        return InvalidEvent("unsupported_version", "not a 1.x", f"send what major 1 defines; {schema}", field=field)
    expected = _EXPECTED.match(text)
    reason: Reason = "wrong_type" if expected and expected["got"] else "invalid_value"
    if not _KEPT.fullmatch(text):
        text = "not one of the values allowed" if text.startswith("Invalid enum value") else "out of range"
    return InvalidEvent(reason, _in_json_names(text), f"send what is expected; {schema}", field=field)


def _join(*parts: str) -> str:
    return ".".join(part for part in parts if part)


def _in_json_names(text: str) -> str:
    """Name types as JSON does."""
    named = _TYPES.sub(lambda types: " or ".join(_JSON_NAMES.get(kind, kind) for kind in types[1].split(" | ")), text)
    return named[0].lower() + named[1:]
