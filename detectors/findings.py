"""What detectors report: findings about the current call, for the decision to weigh. No texts for agents in here."""

from dataclasses import dataclass
from typing import Literal

from detectors.facts import Mark
from detectors.failure import Failure

Level = Literal["notice", "warn", "terminate"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One detector's word on the current call.

    ``fingerprint`` names the loop itself and ``members`` the actions it is made of, so that two detectors that see one
    loop are known to speak of the same. ``limit`` is the dotted name of the limit reached and ``value`` what it was.
    ``mark`` is what had been spent when it began to repeat, ``since_ms`` the event time of the loop's first call where
    that is another. ``failure`` is what recurs. ``weak`` evidence does not terminate alone; a ``hard`` limit terminates
    unwarned. What ``waits`` for something may be right to look again.
    """

    detector: str
    level: Level
    fingerprint: int
    members: tuple[int, ...]
    count: float
    limit: str
    value: float
    mark: Mark
    what: str
    calls: tuple[str, ...] = ()
    failure: Failure | None = None
    weak: bool = False
    hard: bool = False
    since_ms: int | None = None
    waits: bool = False

    @property
    def error(self) -> str:
        """The template of the recurring failure; empty when there is none."""
        return self.failure.template if self.failure else ""

    @property
    def from_text(self) -> bool:
        """Failure was read from text, which is weaker than a flag."""
        return self.failure is not None and self.failure.from_text


def level_of(count: float, warn: float, terminate: float) -> Literal["warn", "terminate"] | None:
    """Return the level that a count reaches, None below both limits."""
    if count >= terminate:
        return "terminate"
    return "warn" if count >= warn else None
