"""Decides what it means when a batch does not begin where the batch before it ended.

Offsets themselves have gaps (commit markers, aborted and compacted records), so what is compared is the consumer's
position: each fetch says from which position to which it went. Pure; whoever asks fetches the log's bounds.
"""

from __future__ import annotations

from enum import Enum, auto


class Meaning(Enum):
    """What a batch's start means, seen from where the last one ended."""

    FOLLOWS = auto()
    """It begins where the last one ended."""
    OVERLAPS = auto()
    """It begins earlier, in a log that still reaches further: what was applied comes again."""
    DELETED = auto()
    """It begins later, and what lies between is no longer in the log: retention was faster than we."""
    ANEW = auto()
    """It begins earlier, and the log ends before what was applied: it was cut, or the topic was made anew."""
    LOST = auto()
    """It begins later although what lies between is there: a batch was fetched and not applied. Never go on."""


def meaning(expected: int, start: int, earliest: int, end: int) -> Meaning:
    """Compare a batch's start with what must come next.

    Args:
        expected: position after the last applied batch; the committed one at first.
        start: position from which the batch was fetched.
        earliest: first position of the log, learnt after the batch was fetched.
        end: position after its last record, likewise.
    """
    if start == expected:
        return Meaning.FOLLOWS
    if start < expected:
        return Meaning.OVERLAPS if end >= expected else Meaning.ANEW
    # The log's beginning only moves forward: what is missing was gone already when the fetch began, or it is there.
    return Meaning.DELETED if start <= earliest else Meaning.LOST
