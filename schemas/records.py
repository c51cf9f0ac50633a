"""The records of the contract in one table: the name of each in files and CloudEvents types, and its special fields.

Generation, decoding and encoding take names from here, so that a record is added in one place.
"""

from typing import Literal

import msgspec

from schemas.events import Control, FixAttempt, Override, Review, SessionEvent, ToolCall
from schemas.outputs import (
    Alert,
    DeadLetterHeaders,
    Directive,
    Fitness,
    KnownFlapping,
    Notification,
    Termination,
)

MAJOR = 1
"""Major version of the contract, part of every schema's identifier and of every CloudEvents type."""


class RecordType(msgspec.Struct, frozen=True, kw_only=True):
    """One record of the contract.

    ``id_field``, ``time_field`` and ``key_field`` name the fields that say the same as the CloudEvents attributes
    ``id``, ``time`` and ``subject``; the key of the Kafka record is the text of ``key_field``. ``id_field`` is None
    where nothing in the record identifies it.
    """

    name: str
    struct: type[msgspec.Struct]
    direction: Literal["in", "out"]
    id_field: str | None = "event_id"
    time_field: str = "occurred_at"
    key_field: str = "session_id"

    @property
    def schema_file(self) -> str:
        """Name of its JSON Schema file."""
        return f"{self.name}.v{MAJOR}.json"

    @property
    def schema_id(self) -> str:
        """Absolute identifier of its JSON Schema. A URN: it names, and promises nothing to fetch."""
        return f"urn:traction:schema:{self.name}:v{MAJOR}"

    @property
    def event_type(self) -> str:
        """Its CloudEvents type."""
        return f"traction.{self.name}.v{MAJOR}"


RECORDS = (
    RecordType(name="tool-call", struct=ToolCall, direction="in"),
    RecordType(name="fix-attempt", struct=FixAttempt, direction="in"),
    RecordType(name="review", struct=Review, direction="in"),
    RecordType(name="session-event", struct=SessionEvent, direction="in"),
    RecordType(name="control", struct=Control, direction="in"),
    RecordType(name="override", struct=Override, direction="in", id_field=None, time_field="set_at", key_field="scope"),
    RecordType(name="alert", struct=Alert, direction="out", id_field="alert_id", key_field="task_id"),
    RecordType(name="directive", struct=Directive, direction="out", id_field="directive_id", time_field="issued_at"),
    RecordType(
        name="termination", struct=Termination, direction="out", id_field="termination_id", time_field="issued_at"
    ),
    RecordType(
        name="known-flapping",
        struct=KnownFlapping,
        direction="out",
        id_field="termination_id",
        time_field="since",
        key_field="task_id",
    ),
    RecordType(
        name="notification",
        struct=Notification,
        direction="out",
        id_field="notification_id",
        time_field="issued_at",
        key_field="task_id",
    ),
    RecordType(
        name="fitness",
        struct=Fitness,
        direction="out",
        id_field="fitness_id",
        time_field="updated_at",
        key_field="fitness_id",
    ),
)
"""Every record that is the value of a topic."""

DEAD_LETTER = RecordType(name="dead-letter-headers", struct=DeadLetterHeaders, direction="out", id_field=None)
"""The headers of a dead letter, which have a schema like a record; the value is whatever came."""

BY_STRUCT = {record.struct: record for record in RECORDS}
