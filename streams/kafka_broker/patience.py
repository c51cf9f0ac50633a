"""Waiting for what a broker that was just killed still holds: it takes the system a moment to clear up after it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 2.0
"""Seconds; a killed Java process is gone after a tenth of that."""


def eventually(condition: Callable[[], bool]) -> bool:
    """Tell whether a condition holds now or does so before patience ends."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
