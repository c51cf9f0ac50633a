"""What a follower tells while it runs: one record for each thing that happened, for people and programs alike.

Quotes nothing of a transcript but what alerts say of it.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

What = Literal[
    "ready", "progress", "alert", "fault", "not_followed", "rewritten", "removed", "refused", "away", "back", "ended"
]


class Told(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that happened.

    Attributes:
        what: `ready`: all files that there were are known; `progress`: events were sent; `alert`: a detector said
            something (dry run); `fault`: a line cannot be read; `not_followed`: a file cannot be followed;
            `rewritten`: a file was cut or written anew, and is read from its beginning; `removed`: a file is gone;
            `refused`: an event is never taken; `away` and `back`: events are, and are no longer, waiting for the
            brokers or the gateway; `ended`.
        path: the file.
        line: its line, from 1.
        reason: why, and what to do.
        event_id: the event that was refused.
        files: how many files there are, recordings or not.
        reading: how many of them are being read.
        sent: events sent since the start.
        alert: the alert, as `traction replay --json` gives it.
    """

    what: What
    path: str | None = None
    line: int | None = None
    reason: str | None = None
    event_id: str | None = None
    files: int | None = None
    reading: int | None = None
    sent: int | None = None
    alert: dict[str, Any] | None = None
