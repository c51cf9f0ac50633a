"""What was read and is not acknowledged yet: events as they are sent, each only where it was not sent before.

A file that is written anew gives its events again, under the same identifiers; those are dropped. One that begins anew
may count from 0 again, so that another event has the identifier of an earlier one; it gets one of its own, since it
would be taken for the same. Sends nothing.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import msgspec

from schemas.encode import encode
from streams.follow.notes import Given
from streams.follow.sinks import Outgoing
from streams.identity import identifier
from streams.importers.build import SYNTHETIC_START
from streams.plain import encoded

if TYPE_CHECKING:
    from datetime import datetime

    from schemas.events import SessionInput
    from streams.follow.notes import Notes
    from streams.privacy import Level

MOST_EVENTS: Final = 40
"""Of a batch: less than the 64 identifiers that the state of a session remembers, so that a batch that comes twice,
since nobody could note that it was sent, counts once."""

_BYTES: Final = 8


class Batch:
    """Events on their way.

    Args:
        privacy: what is sent of arguments, results and errors.
        notes: what was sent before.

    Attributes:
        outgoing: the events, in order.
        given: their digests, to be noted with them.
    """

    def __init__(self, privacy: Level, notes: Notes) -> None:
        self.outgoing: list[Outgoing] = []
        self.given: list[Given] = []
        self._privacy = privacy
        self._notes = notes

    def __len__(self) -> int:
        """Give how many events there are."""
        return len(self.outgoing)

    def clear(self) -> None:
        """Forget them: they were acknowledged, and noted."""
        self.outgoing = []
        self.given = []

    def add(self, source: str, event: SessionInput, now: datetime) -> str | None:
        """Add an event, unless it was sent before.

        Args:
            source: the file.
            event: the event as it was read.
            now: its time where the recording tells none.

        Returns:
            Why it cannot be sent; None where it can, or need not be.
        """
        given = Given(_number(event.event_id.encode()), _content(event, now))
        others = self._notes.contents(given.id) | {each.content for each in self.given if each.id == given.id}
        if given.content in others:
            return None
        if others:
            own = f"{event.event_id}~{given.content & (2**64 - 1):016x}"
            event = msgspec.structs.replace(event, event_id=identifier(own))
        self.given.append(given)
        try:
            self.outgoing.append(Outgoing(source, *encoded(event, self._privacy)))
        except ValueError as problem:
            return str(problem)
        return None


def _content(event: SessionInput, now: datetime) -> int:
    """Digest what an event says; not what is told of it at one time and not at another."""
    if event.occurred_at == now:
        event = msgspec.structs.replace(event, occurred_at=SYNTHETIC_START)
    return _number(encode(msgspec.structs.replace(event, agent=None, task=None, usage=None)))


def _number(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=_BYTES).digest(), signed=True)
