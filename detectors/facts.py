"""What detectors know of one tool call, and of what had been spent at it: plain facts that the state can keep."""

import msgspec

from detectors.failure import Failure


class Mark(msgspec.Struct, array_like=True, frozen=True):
    """What the session had spent up to some call: time in ms since 1970, calls, tokens and US dollars so far."""

    at_ms: int = 0
    calls: int = 0
    tokens: int = 0
    cost: float = 0.0


class Call(msgspec.Struct, array_like=True):
    """One tool call as detectors see it.

    ``action`` is a digest of tool and canonical arguments, ``key`` of those and the masked result; both are 0 when the
    arguments were not recorded. ``recorded`` is False when the result was not; ``ok`` is the producer's word that the
    call succeeded. ``program`` is what a command runs, the tool itself for others; ``outage`` tells of a result that
    passes by itself. ``mark`` includes the call. ``settled`` calls (an accepted edit came after them) no longer count
    towards a majority.
    """

    seq: int
    event_id: str
    mark: Mark
    tool: str
    program: str
    action: int
    key: int
    recorded: bool
    ok: bool
    batch: int
    executes: bool
    edits: bool
    polls: bool
    outage: bool
    failure: Failure | None
    text: str
    settled: bool = False

    @property
    def succeeded(self) -> bool:
        """The call is known, or from its text believed, not to have failed."""
        return self.failure is None and (self.recorded or self.ok)
