"""Says which dead letters cannot be put back, and why, with what to do instead.

A closed list of hindrances, judged from the letter and the topics that there are. It must not judge whether the record
would be taken this time: that is for whoever asks, who mended what was wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from schemas import topics
from schemas.decode import MAX_VALUE_BYTES
from streams.received import CUT, NOT_TEXT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streams.kafka import KafkaSettings
    from streams.letters.letter import Letter

MOST_ATTEMPTS: Final = 5
"""Times that a record is put back: what is refused as often is not mended by one time more."""

BACK: Final = (*topics.SESSION_INPUTS, topics.ALERTS, topics.NOTIFICATIONS)
"""The topics that records are put back onto. No others, whatever a letter's headers say."""

Hindrance = Literal[
    "cut", "header_names", "no_content", "override", "internal", "too_large", "topic_gone", "partition_gone",
    "too_often",
]  # fmt: skip

WORDS: Final[dict[Hindrance, str]] = {
    "cut": "a part of it is missing, since it was cut for want of room; have its producer send it anew",
    "header_names": "a header's name is not UTF-8, which every reader refuses; have its producer send it anew",
    "no_content": "it came without key and value, so there is nothing to put back; look at its producer",
    "override": "workers read overrides again by themselves, when they start and with each new policy, and an old one "
    "would take the place of a newer one; write the override anew if it is still refused",
    "internal": "its topic is not one that records are put back onto, such as what workers tell each other; let its "
    "events come again from their own topics",
    "too_large": f"its value has more than {MAX_VALUE_BYTES} bytes, which every reader refuses; have its producer cut "
    "the result and send it anew",
    "topic_gone": "its topic is not there, or not shown to us; create it with traction topics create, or look at our "
    "rights",
    "partition_gone": "its topic has no such partition any more; have its producer send it anew",
    "too_often": f"it was put back {MOST_ATTEMPTS} times and refused each time; mend what its message says, then name "
    "it and say --again",
}
"""Each in words, with the remedy; none quotes a record."""


def hindrance(
    kafka: KafkaSettings, partitions: Mapping[str, int], letter: Letter, *, again: bool = False
) -> Hindrance | None:
    """Say why a letter cannot be put back; None when it can.

    Args:
        kafka: gives the topics' names.
        partitions: how many each topic has that is there, by name.
        letter: the letter.
        again: whether it may be put back however often it was already.
    """
    lost = _lost(letter)
    if lost is not None:
        return lost
    nowhere = _nowhere(kafka, partitions, letter)
    if nowhere is not None:
        return nowhere
    if len(letter.value or b"") > MAX_VALUE_BYTES:
        return "too_large"
    return "too_often" if letter.attempts >= MOST_ATTEMPTS and not again else None


def only_for(kafka: KafkaSettings, letter: Letter) -> str | None:
    """Give the one group that is to read the record again; None when all are.

    A notification failed at one sink: the others had it, and are not to tell people twice.
    """
    return letter.group if letter.topic == kafka.topic(topics.NOTIFICATIONS) else None


def _lost(letter: Letter) -> Hindrance | None:
    """Say why the record cannot be made again from its letter."""
    if CUT in letter.message:
        return "cut"
    if letter.reason == "not_utf8" and letter.message.startswith(NOT_TEXT):
        return "header_names"
    if letter.key is None and not letter.value:  # `dead_letter` makes of no value an empty one
        return "no_content"
    return None


def _nowhere(kafka: KafkaSettings, partitions: Mapping[str, int], letter: Letter) -> Hindrance | None:
    """Say why there is no place to put the record back to."""
    if letter.topic == kafka.topic(topics.OVERRIDES):
        return "override"
    if letter.topic not in map(kafka.topic, BACK):
        return "internal"
    if letter.topic not in partitions:
        return "topic_gone"
    return None if letter.from_partition in range(partitions[letter.topic]) else "partition_gone"
