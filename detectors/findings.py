"""What detectors report: findings about the current call, for the decision to weigh. No texts for agents in here."""

from dataclasses import dataclass
from typing import Literal

from detectors.facts import Mark


@dataclass(frozen=True, slots=True)
class Finding:
    """One detector's word on the current call.

    ``fingerprint`` names the loop itself and ``members`` the actions it is made of, so that two detectors that see one
    loop are known to speak of the same. ``limit`` is the dotted name of the limit reached and ``value`` what it was.
    ``since_ms`` is the event time of the loop's first call and ``mark`` what had been spent when it began to repeat.
    ``weak`` evidence does not terminate alone; ``from_text`` says that failure was read from text.
    """

    detector: str
    level: Literal["warn", "terminate"]
    fingerprint: int
    members: tuple[int, ...]
    count: float
    limit: str
    value: float
    since_ms: int
    mark: Mark
    what: str
    calls: tuple[str, ...] = ()
    error: str = ""
    weak: bool = False
    from_text: bool = False


def level_of(count: float, warn: float, terminate: float) -> Literal["warn", "terminate"] | None:
    """Return the level that a count reaches, None below both limits."""
    if count >= terminate:
        return "terminate"
    return "warn" if count >= warn else None
