"""Reads labels: what a person said of recorded sessions, one JSON object a line.

A line that cannot be meant is refused by file, line, field and remedy, since a label that is passed over in silence
makes every figure wrong.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Meta

from schemas.common import Count
from streams.identity import identifier

if TYPE_CHECKING:
    from pathlib import Path

HARD = "hard:"
"""How the reason begins of a healthy session that repeats a lot."""

_FIELD = re.compile(r"(?:`\$\.|required field `)(?P<name>\w+)")
"""Where msgspec's message names the field."""

_REMEDIES = {
    "session_id": "write the session's id, as the recording has it",
    "label": "write loop, healthy or ambiguous",
    "first_loop_seq": "write the position, from 0, of the call at which one would say that it loops",
    "pattern": "write a word for what repeats, or leave it out",
    "source": "write a name for where the session comes from, or leave it out",
    "why": "write the reason as one text, or leave it out",
}


class InvalidLabels(ValueError):
    """The labels cannot be used: the message names file, line, field and remedy."""


class Label(msgspec.Struct, frozen=True):
    """What a person said of a session. Further fields are passed by.

    Attributes:
        session_id: the session's id in the recording.
        label: `loop` when it spins; `ambiguous` when people would differ: such a session is left out.
        first_loop_seq: position, from 0, of the call at which the person would first say that it loops.
        pattern: what kind of loop.
        source: where the session comes from.
        why: the reason; begins with `hard:`, in whatever case, for a healthy session that repeats a lot.
    """

    session_id: Annotated[str, Meta(min_length=1)]
    label: Literal["loop", "healthy", "ambiguous"]
    first_loop_seq: Count | None = None
    pattern: str | None = None
    source: str | None = None
    why: str | None = None

    @property
    def hard(self) -> bool:
        """Whether it is a healthy session that repeats a lot."""
        return (self.why or "").lstrip().casefold().startswith(HARD)


_decoder = msgspec.json.Decoder(Label)


def read_labels(path: Path) -> dict[str, Label]:
    """Read the labels of a file, by the session's id as importers give it.

    Args:
        path: the file.

    Raises:
        InvalidLabels: the file cannot be read or has no label, or a line cannot be meant.
    """
    return read_labels_and_digest(path)[0]


def read_labels_and_digest(path: Path) -> tuple[dict[str, Label], str]:
    """Read the labels as `read_labels` does, with the SHA-256 of the content that they were read from, in hex."""
    try:
        data = path.read_bytes()
    except OSError as problem:
        raise InvalidLabels(
            f"{path}: cannot be read ({problem.strerror}); give --labels a file of JSON lines"
        ) from None
    labels: dict[str, Label] = {}
    places: dict[str, int] = {}
    for number, line in enumerate(data.splitlines(), start=1):
        if not line.strip():
            continue
        label = _label(f"{path}:{number}", line)
        name = identifier(label.session_id)
        same = labels.get(name)
        if same is not None and (same.label, same.first_loop_seq) != (label.label, label.first_loop_seq):
            raise InvalidLabels(
                f"{path}:{number}: field `session_id`: line {places[name]} says something else of this session; "
                "keep one of the two"
            )
        labels.setdefault(name, label)
        places.setdefault(name, number)
    if not labels:
        raise InvalidLabels(f"{path}: there is no label in it; write one object a line, with session_id and label")
    return labels, hashlib.sha256(data).hexdigest()


def _label(place: str, line: bytes) -> Label:
    try:
        label = _decoder.decode(line)
    except msgspec.ValidationError as problem:
        found = _FIELD.search(str(problem))
        if found is None:
            raise InvalidLabels(f"{place}: not an object; write {{...}} with session_id and label") from None
        name = found["name"]
        raise InvalidLabels(f"{place}: field `{name}` is missing or wrong; {_REMEDIES[name]}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InvalidLabels(f"{place}: not JSON; write one object a line") from None
    if label.label == "loop" and label.first_loop_seq is None:
        raise InvalidLabels(
            f"{place}: field `first_loop_seq` is missing or wrong; {_REMEDIES['first_loop_seq']}, since it is a loop"
        )
    return label
