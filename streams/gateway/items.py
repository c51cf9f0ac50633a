"""Takes the body of a request apart into events, each by itself: what is wrong with one takes no other along.

JSON, arrays, lines of JSON and CloudEvents over HTTP. What an event must be is for `schemas.decode` to say; nothing is
sent here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Literal, cast
from urllib.parse import unquote_to_bytes

import msgspec

from schemas import topics
from schemas.cloudevents import open_envelope
from schemas.decode import MAX_VALUE_BYTES, InvalidEvent, decode
from schemas.encode import encode
from schemas.records import BY_STRUCT
from streams.gateway.refused import JSON, Refused
from streams.gateway.settings import MAX_ITEMS
from streams.privacy import reduce

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from schemas.cloudevents import Headers
    from schemas.events import SessionInput
    from schemas.invalid import Reason
    from schemas.topics import Topic
    from streams.privacy import Level

NDJSON: Final = "application/x-ndjson"
CLOUDEVENT: Final = "application/cloudevents+json"
CLOUDEVENTS: Final = "application/cloudevents-batch+json"

TAKEN: Final = (topics.TOOL_CALLS, topics.FIX_ATTEMPTS, topics.SESSIONS, topics.REVIEWS)
"""What is taken over HTTP. Not what orchestrators and people decide: agents must not resume or clear themselves."""

TOPIC_OF: Final[dict[type, Topic]] = {topic.record: topic for topic in TAKEN if topic.record is not None}
TOPIC_OF_TYPE: Final = {BY_STRUCT[record].event_type: topic for record, topic in TOPIC_OF.items()}

_MAX_COMMAS: Final = 1_000_000  # more values than any events have, were they all in the array itself
_ARRAY = msgspec.json.Decoder(list[msgspec.Raw])
_PREFIX: Final = "ce-"
_SYNTAX: Final[tuple[Reason, ...]] = ("empty", "not_json", "not_utf8", "too_deep")

Form = Literal["json", "lines", "cloudevent", "cloudevents", "binary"]


class RefusedItem(msgspec.Struct, frozen=True):
    """An event that was not taken.

    Attributes:
        index: its place in the request, from 0.
        field: path of the field that is wrong; None when it is the whole event.
        reason: what is wrong and what to do.
    """

    index: int
    field: str | None
    reason: str


@dataclass(slots=True)
class Sendable:
    """An event that was taken.

    Attributes:
        index: its place in the request.
        event: the event.
        topic: its topic.
        value: what is sent.
        traceparent: the trace context to send along.
    """

    index: int
    event: SessionInput
    topic: Topic
    value: bytes
    traceparent: bytes | None = None


@dataclass(slots=True)
class Items:
    """What a request's body holds.

    Attributes:
        taken: in order.
        refused: in order.
        reasons: of these, whose topic they were for, None where that is not known, and why, as a code.
    """

    taken: list[Sendable] = field(default_factory=list)
    refused: list[RefusedItem] = field(default_factory=list)
    reasons: list[tuple[Topic | None, Reason]] = field(default_factory=list)

    def refuse(self, index: int, problem: InvalidEvent, topic: Topic | None) -> None:
        """Note that an event is not taken."""
        self.refused.append(RefusedItem(index, problem.field, str(problem)))
        self.reasons.append((topic, problem.reason))

    def add(self, index: int, event: SessionInput, level: Level, traceparent: bytes | None = None) -> None:
        """Take an event, reduced to what may go on from here.

        Raises:
            InvalidEvent: it is longer as it would be sent than may be.
        """
        topic = TOPIC_OF[type(event)]
        if topic is topics.TOOL_CALLS:
            event = reduce(cast("Any", event), level)
        value = encode(event)
        if len(value) > MAX_VALUE_BYTES:  # a long number may have come short
            remedy = "cut the result and say so in result_length and result_digest"
            raise InvalidEvent("too_large", f"more than {MAX_VALUE_BYTES} bytes", remedy)
        self.taken.append(Sendable(index, event, topic, value, traceparent))


@dataclass(frozen=True, slots=True)
class Reading:
    """How the events of a request are read.

    Attributes:
        topic: whose events they are; None where each says it itself.
        allowed: the topics that are taken.
        level: how much of tool calls' content goes on.
        traceparent: the request's trace context.
    """

    topic: Topic | None
    allowed: frozenset[str]
    level: Level
    traceparent: bytes | None = None


def form_of(media_type: str, headers: Mapping[str, str], *, named: bool) -> Form:
    """Say how a body is to be read.

    Args:
        media_type: the content type without parameters, in small letters; empty for none.
        headers: of the request.
        named: whether the address names the kind of events.

    Raises:
        Refused: in no way that is known.
    """
    if media_type == CLOUDEVENT:
        return "cloudevent"
    if media_type == CLOUDEVENTS:
        return "cloudevents"
    if media_type == JSON and f"{_PREFIX}specversion" in headers:
        return "binary"
    if named and media_type in {JSON, NDJSON}:
        return "json" if media_type == JSON else "lines"
    wanted = [JSON, NDJSON, CLOUDEVENT, CLOUDEVENTS] if named else [CLOUDEVENT, CLOUDEVENTS, f"{JSON} with ce- headers"]
    raise Refused(
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        f"say with Content-Type what is sent: {', '.join(wanted)}"
        + ("" if named else f"; events that are no CloudEvents go to /v1/events/{topics.TOOL_CALLS.name} and so on"),
    )


def read_items(body: bytes, form: Form, headers: Mapping[str, str], reading: Reading) -> Items:
    """Read all events of a body.

    Args:
        body: the body, unpacked.
        form: how it is written.
        headers: of the request, for the attributes of a CloudEvent in binary mode.
        reading: see there.

    Raises:
        Refused: nothing can be read, or there are too many.
    """
    items = Items()
    if form == "binary":
        said: list[tuple[str, bytes]] = list(_attributes(headers))
    else:
        said = [("content-type", CLOUDEVENT.encode())] if form.startswith("cloudevent") else []
    single, pieces = _pieces(body, form)
    for index, value in enumerate(pieces):
        if index == MAX_ITEMS:
            raise _too_many()
        try:
            topic = _topic(value, form, said, reading)
            event = cast("SessionInput", decode(topic, value, said))
            items.add(index, event, reading.level, reading.traceparent)
        except InvalidEvent as problem:
            if single and problem.reason in _SYNTAX:
                raise Refused(HTTPStatus.BAD_REQUEST, str(problem)) from None
            items.refuse(index, problem, reading.topic)
    return items


def _pieces(body: bytes, form: Form) -> tuple[bool, Iterable[bytes]]:
    """Take a body apart, and say whether it is one event by its form."""
    if not body.strip():
        raise Refused(HTTPStatus.BAD_REQUEST, "the body is empty; send events in it")
    if form == "lines":
        return False, (line for line in body.split(b"\n") if line.strip())
    if form in {"binary", "cloudevent"} or (form == "json" and not body.lstrip().startswith(b"[")):
        return True, (body,)
    if body.count(b",") > _MAX_COMMAS:
        raise _too_many()
    try:
        return False, map(bytes, _ARRAY.decode(body))
    except (msgspec.DecodeError, RecursionError):
        raise Refused(
            HTTPStatus.BAD_REQUEST, "the body is no JSON array, or cut short; send one array of events"
        ) from None


def _topic(value: bytes, form: Form, said: Headers, reading: Reading) -> Topic:
    """Say whose topic an event is for: the address does, or the CloudEvent's type, and both must agree.

    Raises:
        InvalidEvent: none that is taken here.
    """
    if form in {"json", "lines"} and reading.topic is not None:
        return reading.topic
    if form == "binary":
        kind = next((content.decode("utf-8", "replace") for name, content in said if name == "ce_type" and content), "")
        name = "ce-type"
    else:
        envelope = open_envelope(value)
        kind, name = "" if envelope is None else envelope[0].type, "type"
    topic = TOPIC_OF_TYPE.get(kind)
    if topic is None or topic.name not in reading.allowed or reading.topic not in {None, topic}:
        wanted = sorted(
            known
            for known, its in TOPIC_OF_TYPE.items()
            if its.name in reading.allowed and reading.topic in {None, its}
        )
        raise InvalidEvent(
            "cloudevents_attribute", "not a type that is taken here", f"send {' or '.join(wanted)}", field=name
        )
    return topic


def _attributes(headers: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    """Give the attributes of a CloudEvent in binary mode as they are named on Kafka, values unquoted.

    Written after "HTTP Protocol Binding for CloudEvents", section 3.1.3.
    """
    for name, value in headers.items():
        if name.lower().startswith(_PREFIX):
            plain = value[1:-1] if len(value) > 1 and value[0] == value[-1] == '"' else value
            yield f"ce_{name[len(_PREFIX) :].lower()}", unquote_to_bytes(plain.encode("utf-8", "surrogateescape"))
    yield "content-type", JSON.encode()


def _too_many() -> Refused:
    return Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {MAX_ITEMS} events; send smaller requests")
