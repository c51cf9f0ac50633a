"""How sessions, sub-agents and records are named, wherever they are observed: by a hook, in a log, in a span.

One place for it, so that whatever is seen twice is recognised. Reads no format, and must stay quick to import, since
hooks that are started for each call need it.
"""

from __future__ import annotations

import hashlib
from typing import Final, Literal

from schemas.common import MAX_ID_CHARS

Source = Literal["hook", "log", "span", "turn"]
"""Where a record comes from. A turn is told by logs and spans alike, and named by the model's response."""

_DIGEST_CHARS: Final = 16
_RECORD_BYTES: Final = 16  # as many as a UUID


def identifier(text: str) -> str:
    """Give a text as an identifier of the contract: one that is too long is cut and gets a digest of the whole."""
    if len(text) <= MAX_ID_CHARS:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:_DIGEST_CHARS]
    return f"{text[: MAX_ID_CHARS - _DIGEST_CHARS - 1]}~{digest}"


def sub_session(session_id: str, agent_id: str | None) -> tuple[str, str | None]:
    """Name the session of a sub-agent, and the one that it belongs to.

    Args:
        session_id: the agent's session.
        agent_id: what the agent says of its sub-agents only; None or empty for the session itself.

    Returns:
        The ``session_id`` and the ``parent_session_id`` of the event.
    """
    session_id = identifier(session_id)
    return (identifier(f"{session_id}:{agent_id}"), session_id) if agent_id else (session_id, None)


def record_id(source: Source, session_id: str, *parts: str | int) -> str:
    """Give the ``event_id`` of one observed record: the same whenever it is sent, and no other record's.

    Records of one call that come from several sources have different ones. What they have in common is the ``call_id``,
    by which the worker counts them once: it also knows that some models use the ids of calls again, and that the record
    with the arguments tells more than one without, which no common ``event_id`` could.

    Args:
        source: where it was observed.
        session_id: the session of the event.
        parts: what tells it from the other records of this source and session, for a hook the call's id and the phase.
    """
    hashed = hashlib.blake2b(digest_size=_RECORD_BYTES)
    for part in (session_id, *parts):
        data = str(part).encode("utf-8", "replace")
        hashed.update(len(data).to_bytes(8, "little") + data)
    return f"{source}-{hashed.hexdigest()}"
