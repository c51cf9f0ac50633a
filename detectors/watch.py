"""What is remembered of a loop under watch, of a session or a task, and of the alerts that were given of it.

Bounded, and compact when encoded, as all that is remembered. What is due to be said of a loop is decided in `loops`.
"""

from typing import Final

import msgspec

from detectors.facts import Mark

NOTICE: Final = 1
WARN: Final = 2
TERMINATED: Final = 3
DISMISSED: Final = 4

MAX_LOOPS = 12  # loops under watch at once, and marked as wrong by a person:
MAX_QUIET = 8  # of these, so that there is room for others
MAX_TOLD = 16  # loops of which alerts are known that a person can still mark as wrong:
MAX_LOOP_ALERTS = 8  # the latest of each


class Loop(msgspec.Struct, array_like=True, gc=False):
    """One loop under watch: what it is, the highest level alerted, and when it was last seen.

    ``level``: 0 seen only, 1 notice, 2 warn, 3 terminate, 4 dismissed by a person, until ``quiet_ms``. ``limit`` is the
    kind of limit that ``count`` and ``next_warn`` speak of, ``alerted_ms`` the time of the call last alerted.
    """

    fingerprint: int
    detector: str
    limit: str
    members: list[int]
    level: int
    count: float
    next_warn: float
    last_seq: int
    alerted_ms: int
    since_ms: int
    mark: Mark
    weak: bool = False
    quiet_ms: int = 0


class Told(msgspec.Struct, array_like=True, gc=False):
    """Prints of the latest alerts that were given of a loop, whether or not it is still under watch."""

    fingerprint: int
    detector: str
    alerts: bytes = b""
