"""What a detector says of itself, for the pages that people read: the pages are made from it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class About:
    """A detector in three sentences: its rule, where rule and limits come from, and what sets its count back."""

    rule: str
    source: str
    cleared_by: str
