"""Makes of what an agent hands over what is sent: events that the contract takes, and answers to verdicts.

Whatever cannot be sent raises, and is told by the emitter. Sends nothing, and remembers nothing.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from schemas.decode import decode
from schemas.events import FixAttempt, Review, ReviewFinding, SessionEvent, SessionInput, ToolCall
from schemas.topics import FIX_ATTEMPTS, REVIEWS, SESSIONS, TOOL_CALLS
from streams.emitter.sending import ANSWERS, Item
from streams.plain import encoded, plain
from streams.unfit import Unfit, check_names, identified
from streams.verdicts.model import Verdict, call_key

if TYPE_CHECKING:
    from schemas.topics import Topic
    from streams.client.answers import Answer
    from streams.emitter.settings import EmitterSettings
    from streams.verdicts.model import CallKey

_ANSWERS: Final[tuple[Answer, ...]] = ("obeyed", "refused", "ended")
_TOPICS: Final[dict[type, Topic]] = {
    ToolCall: TOOL_CALLS,
    FixAttempt: FIX_ATTEMPTS,
    Review: REVIEWS,
    SessionEvent: SESSIONS,
}


def event_of(record: type[Any], session_id: str, about: dict[str, Any], fields: dict[str, Any]) -> SessionInput:
    """Make an event; what its fields hold is for `item_of` to check.

    Args:
        record: which.
        session_id: the session.
        about: fields that any event has.
        fields: the record's own.

    Raises:
        Unfit: a name is no field's, or a value of a wrong type.
    """
    check_names(record, about)
    at = about.pop("occurred_at", None) or datetime.now(UTC)
    made: SessionInput = record(session_id=identified("session_id", session_id), occurred_at=at, **about, **fields)
    return made


def item_of(event: object, settings: EmitterSettings) -> tuple[Any, Item]:
    """Give an event as it is read where it arrives, and what is sent of it.

    Raises:
        Unfit: it is none that agents send.
        InvalidEvent: the contract does not take it.
        ValueError: it is too long at any level.
    """
    topic = _TOPICS.get(type(event))
    if topic is None:
        raise Unfit("event", "give a ToolCall, FixAttempt, Review or SessionEvent")
    _, data = encoded(event, settings.privacy, settings.key)  # type: ignore[arg-type]
    sent: Any = decode(topic, data)
    return sent, Item(topic.name, sent.session_id, data)


def key_of(tool: object, arguments: Any, settings: EmitterSettings) -> CallKey | None:
    """Name a call that is about to be made, as it will be named when it is told of; None without arguments.

    Raises:
        Unfit: the tool has no name.
    """
    call = ToolCall(
        event_id="-",
        session_id="-",
        occurred_at=datetime.now(UTC),
        tool=identified("tool", tool),
        arguments=plain(arguments),
    )
    sent, _ = encoded(call, settings.privacy, settings.key)
    return call_key(sent) if isinstance(sent, ToolCall) else None


def remark(finding: ReviewFinding | str) -> ReviewFinding:
    """Give a finding of a review, of which there may be but the text."""
    return ReviewFinding(text=finding) if isinstance(finding, str) else finding


def answer_item(verdict: object, action: object, reason: object) -> Item | None:
    """Give what is sent to answer a verdict; None where nobody waits for that.

    Raises:
        Unfit: it is no verdict, or no answer.
    """
    if not isinstance(verdict, Verdict):
        raise Unfit("verdict", "give one as it was given")
    if not isinstance(action, str) or action not in _ANSWERS:
        raise Unfit("action", f"give one of {', '.join(_ANSWERS)}")
    if reason is not None and not isinstance(reason, str):
        raise Unfit("reason", "give a text")
    if verdict.answers is None:
        return None
    said = {"session_id": identified("session_id", verdict.session_id), "answers": verdict.answers, "action": action}
    if reason is not None:
        said["reason"] = reason
    return Item(ANSWERS, verdict.session_id, json.dumps(said).encode())
