"""What detectors know of one tool call, and of what had been spent at it: plain facts that the state can keep."""

import msgspec

from detectors.failure import Failure
from detectors.use import Kind

WORD_BYTES = 2
"""Of the print of one word of a query."""


class Mark(msgspec.Struct, array_like=True, gc=False, frozen=True):
    """What the session had spent up to some call: time in ms since 1970, calls, tokens and US dollars so far."""

    at_ms: int = 0
    calls: int = 0
    tokens: int = 0
    cost: float = 0.0


class Call(msgspec.Struct, array_like=True, gc=False):
    """One tool call as detectors see it. Digests are 64 bits; 0 says that there is nothing to compare.

    ``action`` is a digest of tool and canonical arguments, ``key`` of those and the masked result, ``answer`` of the
    tool and its result without what the arguments echo, ``patch`` of an edit without comments and blanks, ``page`` of
    what an interaction led to, ``target`` of the one thing that is read or changed, of which ``start`` to ``end`` are
    the lines asked for (0 and 0 for all), ``words`` prints of what a search asks for.

    ``recorded`` is False when the result was not; ``ok`` is the producer's word that the call succeeded. ``program`` is
    what a command runs, the tool itself for others. ``empty`` tells of a result that brought nothing, ``complains`` of
    a short one that says no, ``pending`` of one that says that something is still going on, ``outage`` of one that
    passes by itself. ``lengthy`` arguments hold content.
    ``mark`` includes the call.

    ``pieces`` are prints of a sample of its pieces of text.

    Set when the call is counted: ``settled`` calls (an accepted edit came after them) no longer count towards a
    majority; ``stale`` ones brought what the session had seen before; ``news`` is the share of the pieces that were
    new, in hundredths; ``said`` is its answer as the spin score compares it, ``signs`` what the score counts of it, and
    ``before`` how often what it brought came before (see `detectors.features`); ``further`` ones failed, yet got
    further than those before (see `detectors.progress`).
    """

    seq: int
    event_id: str
    mark: Mark
    tool: str
    program: str
    kind: Kind
    action: int
    key: int
    answer: int
    patch: int
    page: int
    target: int
    words: bytes
    start: int
    end: int
    recorded: bool
    ok: bool
    batch: int
    executes: bool
    changes: bool
    scrolls: bool
    lengthy: bool
    empty: bool
    complains: bool
    pending: bool
    outage: bool
    failure: Failure | None
    text: str
    pieces: list[int] = msgspec.field(default_factory=list)
    settled: bool = False
    stale: bool = False
    news: int = 0
    said: int = 0
    signs: int = 0
    before: int = 0
    further: bool = False

    @property
    def succeeded(self) -> bool:
        """The call is known, or from its text believed, not to have failed."""
        return self.failure is None and (self.recorded or self.ok)

    @property
    def edits(self) -> bool:
        """The call changes files or other state."""
        return self.kind == "edit" or self.changes

    @property
    def applied(self) -> bool:
        """The call is an edit that was accepted."""
        return (self.kind == "edit" or self.changes) and self.failure is None and (self.recorded or self.ok)

    @property
    def polls(self) -> bool:
        """The call waits, or asks how something is getting on."""
        return self.kind == "poll"

    @property
    def met_outage(self) -> bool:
        """The call met something that passes by itself."""
        return self.outage or (self.failure is not None and self.failure.transient)

    @property
    def waits(self) -> bool:
        """The call waits for something: it polls, its answer says so, or it met an outage."""
        return self.kind == "poll" or self.pending or self.met_outage

    @property
    def operates(self) -> bool:
        """The call presses, types or chooses in an interface: what is done again does the same, unlike scrolling."""
        return self.kind == "interact" and not self.scrolls

    @property
    def runs(self) -> bool:
        """The call executes something whose outcome is its answer."""
        return self.executes or self.kind in {"run", "check"}

    @property
    def talks(self) -> bool:
        """The call only plans or speaks: it neither adds to a loop of work nor ends one."""
        return self.kind in {"plan", "talk"} and self.failure is None
