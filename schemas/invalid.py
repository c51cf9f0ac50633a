"""Why a record is refused: the closed list of reasons, and the error that carries one.

Refused records are data, not faults of the reader, so the error says which field is wrong and what to do. It must not
quote the record: its text goes to logs and headers, and payloads may hold secrets.
"""

from typing import Final, Literal

Stage = Literal["decode", "validate", "route", "detect", "deliver"]
"""Where a record was refused: reading bytes, checking fields, checking the key, applying it, or telling people."""

Reason = Literal[
    "empty",
    "too_large",
    "too_deep",
    "not_utf8",
    "not_json",
    "not_otlp",
    "cloudevents_format",
    "cloudevents_version",
    "cloudevents_attribute",
    "cloudevents_data",
    "unsupported_version",
    "missing_field",
    "wrong_type",
    "invalid_value",
    "key_missing",
    "key_mismatch",
    "detector_error",
    "delivery_failed",
    "delivery_refused",
]
"""What is wrong, as a code. Readers of dead letters take a code that they do not know as one more kind."""

_STAGES: Final[dict[Reason, Stage]] = {
    "empty": "decode",
    "too_large": "decode",
    "too_deep": "decode",
    "not_utf8": "decode",
    "not_json": "decode",
    "not_otlp": "decode",
    "cloudevents_format": "decode",
    "key_missing": "route",
    "key_mismatch": "route",
    "detector_error": "detect",
    "delivery_failed": "deliver",
    "delivery_refused": "deliver",
}


class InvalidEvent(ValueError):
    """A record that cannot be taken.

    Attributes:
        stage: where it was refused.
        reason: what is wrong, as a code.
        field: path of the field, such as ``task.paths[3]``, or name of the header; None when it is the whole record.
    """

    def __init__(self, reason: Reason, problem: str, remedy: str, *, field: str | None = None) -> None:
        """Make the error; its text is ``field: problem; remedy``.

        Args:
            reason: what is wrong, as a code.
            problem: the same in words, without any part of the record.
            remedy: what the producer should do.
            field: path of the field or name of the header.
        """
        self.stage: Stage = _STAGES.get(reason, "validate")
        self.reason: Reason = reason
        self.field = field
        super().__init__(f"{field}: {problem}; {remedy}" if field else f"{problem}; {remedy}")
