"""What is remembered of one session: bounded, versioned, and compact when encoded.

Every list is a ring or has a stated bound; texts are short redacted excerpts. Detectors change the parts they own in
place and never keep an event. States are trees, so that their parts need no garbage collector (`gc=False`).
"""

from enum import IntEnum
from typing import Any, Final

import msgspec

from detectors.facts import Call, Mark
from detectors.tasks.facts import Change, Spent
from detectors.versions import Versions
from detectors.watch import DISMISSED, TERMINATED, Loop, Told
from schemas.common import Agent, Task

STATE_VERSION: Final = 6
"""Version of the encoded form. A change of it needs a step in `VERSIONS`.

Raised as well when masks or canonical forms change, since digests made before and after do not compare: the step then
empties what `SessionState.forget_runs` does.
"""

MAX_STATE_BYTES: Final = 16_000
"""Of the encoded form, whatever comes: `fitting` sees to it."""

MAX_PERIOD_CALLS = 8  # of a block of calls that repeats
MAX_SEEN = 64  # event ids remembered to recognise what comes twice; likewise call ids:
MAX_SEEN_CALLS = 32
MAX_CLEARS = 8  # clearing events whose time no call has reached yet
MAX_AREAS = 8  # programs whose failures are counted apart
MAX_KINDS = 8  # kinds of failure, and calls, remembered per area
MAX_FAILING_CALLS = 8  # failing calls remembered for the same-call limit
MAX_CHECKS = 8  # checks that fail, told apart
MAX_READS = 8  # targets whose coverage is remembered
MAX_KNOWN = 64  # calls with their results that are recognised when they come again
MAX_SEEN_IDS = 256  # unique call ids remembered for long, since a compacted transcript repeats old calls
PRINT_BYTES = 4


class Clear(IntEnum):
    """How much an event sets back: what was read, all counts, or the loops under watch as well."""

    READS = 0
    COUNTS = 1
    LOOPS = 2


class SeenCall(msgspec.Struct, array_like=True, gc=False):
    """A call that was counted, to recognise another record of it: digests of id and action, and when it was."""

    call_id: int
    action: int
    at_ms: int
    repeats: int = 0


class Streak(msgspec.Struct, array_like=True, gc=False):
    """Equal calls in a row, and equal ones in the latest parallel batch."""

    key: int = 0
    count: int = 0
    mark: Mark = Mark()
    batch: int = 0
    in_batch: int = 0


class Cycle(msgspec.Struct, array_like=True, gc=False):
    """For one period: how many calls in a row equalled the call that many places before."""

    run: int = 0
    since_ms: int = 0
    mark: Mark = Mark()


class Area(msgspec.Struct, array_like=True, gc=False):
    """Failures in a row of one program.

    ``again`` is how much of the count came from failures that had been seen; ``kinds`` are their templates and
    ``abouts`` what they named; ``failing`` is the smallest number of failing checks seen in it, ``passing`` the largest
    of passing ones; ``edited`` tells of an accepted edit since the last one.
    """

    area: int
    count: float = 0.0
    again: float = 0.0
    kinds: list[int] = msgspec.field(default_factory=list)
    actions: list[int] = msgspec.field(default_factory=list)
    failing: int | None = None
    edited: bool = False
    mark: Mark = Mark()
    abouts: list[int] = msgspec.field(default_factory=list)
    passing: int | None = None


class FailingCall(msgspec.Struct, array_like=True, gc=False):
    """The same call with the same failure, however often; ``failing``, ``passing`` and ``about`` as in an `Area`."""

    action: int
    kind: int
    count: int
    mark: Mark
    last_seq: int
    failing: int | None = None
    passing: int | None = None
    about: int = 0


class Denied(msgspec.Struct, array_like=True, gc=False):
    """Calls in a row of one tool that does not exist or is forbidden."""

    tool: str = ""
    count: int = 0
    mark: Mark = Mark()


class FailingRow(msgspec.Struct, array_like=True, gc=False):
    """Failing calls in a row.

    ``kind`` is the latest reason, ``other`` the one before it; ``block`` is the weight of the latest calls that failed
    for the latest reason alone, ``pair`` of those that failed for either, ``first`` which of them began, and
    ``in_turn`` says that it came back. ``calls`` counts all of them; ``mark`` is of the first.
    """

    calls: int = 0
    kind: int = 0
    other: int = 0
    first: int = 0
    block: float = 0.0
    pair: float = 0.0
    in_turn: bool = False
    actions: list[int] = msgspec.field(default_factory=list)
    mark: Mark = Mark()


class Edit(msgspec.Struct, array_like=True, gc=False):
    """One of the latest edits; ``reason`` is the kind of its failure, 0 when it was accepted."""

    seq: int
    action: int
    target: int
    patch: int
    reason: int
    mark: Mark


class Search(msgspec.Struct, array_like=True, gc=False):
    """One of the latest searches and whether it brought anything."""

    action: int
    fruitless: bool
    words: bytes
    mark: Mark


class Check(msgspec.Struct, array_like=True, gc=False):
    """One check or run that fails: how often in turn with the answer of this key."""

    action: int
    key: int
    count: int
    mark: Mark


class Read(msgspec.Struct, array_like=True, gc=False):
    """What was lately read of one target: ranges of lines, (0, 0) for all of it, whose latest key is ``whole``."""

    target: int
    whole: int
    spans: list[tuple[int, int]]
    last_seq: int
    mark: Mark
    times: int = 0


class Stretch(msgspec.Struct, array_like=True, gc=False):
    """Calls of one category in a row."""

    category: str = ""
    count: float = 0.0
    action: int = 0
    mark: Mark = Mark()


class SpinMemory(msgspec.Struct, array_like=True, gc=False):
    """What the spin score remembers beside the latest calls.

    ``came`` is a ring of short prints of calls, results, pairs, failures and patches; ``young`` and ``old`` are the
    halves of the set of pieces seen, of which ``filled`` bits are set in the younger. So many ``calls`` were noted,
    the first of them that of number ``since``; earlier ones do not count. ``score`` is that of the call of number
    ``seq``, None when there were not enough calls; ``above`` says for how many calls in a row it was a notice at least,
    and ``mark`` when that began.
    """

    came: bytes = b""
    young: bytearray = msgspec.field(default_factory=bytearray)
    old: bytes = b""
    filled: int = 0
    calls: int = 0
    since: int = 0
    seq: int = -1
    score: float | None = None
    above: int = 0
    mark: Mark = Mark()


class Tries(msgspec.Struct, array_like=True, gc=False):
    """What a session is trying, as its tool calls tell, and what its task has been told.

    ``edits`` accepted since the latest check make ``change`` in the files of ``paths``; ``red`` are the checks that
    failed after edits and have not passed since. ``reported`` is what was spent up to the latest report to the task;
    ``told`` says that there was an attempt or a review, ``sends`` that the agent sends its attempts itself.
    """

    edits: int = 0
    change: Change = Change()
    paths: list[str] = msgspec.field(default_factory=list)
    red: list[int] = msgspec.field(default_factory=list)
    reported: Spent = Spent()
    told: bool = False
    sends: bool = False

    def forget_edits(self) -> None:
        """Drop the edits: they were checked."""
        self.edits, self.change = 0, Change()
        self.paths.clear()


class SessionState(msgspec.Struct, array_like=True):
    """All that detection remembers of one session. New parts are added at the end, with a new version.

    ``clocks`` has for each kind of event the time of the newest one, and how many late ones came in a row. The encoded
    form may grow by ``room`` bytes before it has to be measured again.
    """

    session_id: str = ""
    calls: int = 0
    duplicates: int = 0
    late: int = 0
    alerts: int = 0
    clocks: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict)
    tokens: int = 0
    cost: float = 0.0
    metered: bool = False
    priced: bool = False
    ended: bool = False
    mode: str = ""
    mode_until_ms: int | None = None
    agent: Agent | None = None
    task: Task | None = None
    seen: list[int] = msgspec.field(default_factory=list)
    seen_calls: list[SeenCall] = msgspec.field(default_factory=list)
    reuses_call_ids: bool = False
    sequences: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict)
    clears: list[tuple[int, int]] = msgspec.field(default_factory=list)
    recent: list[Call] = msgspec.field(default_factory=list)
    streak: Streak = msgspec.field(default_factory=Streak)
    cycles: list[Cycle] = msgspec.field(default_factory=lambda: [Cycle() for _ in range(MAX_PERIOD_CALLS - 1)])
    areas: list[Area] = msgspec.field(default_factory=list)
    failing_calls: list[FailingCall] = msgspec.field(default_factory=list)
    denied: Denied = msgspec.field(default_factory=Denied)
    row: FailingRow = msgspec.field(default_factory=FailingRow)
    edits: list[Edit] = msgspec.field(default_factory=list)
    searches: list[Search] = msgspec.field(default_factory=list)
    checks: list[Check] = msgspec.field(default_factory=list)
    reads: list[Read] = msgspec.field(default_factory=list)
    known: bytes = b""
    stretch: Stretch = msgspec.field(default_factory=Stretch)
    said: Streak = msgspec.field(default_factory=Streak)
    moving: Streak = msgspec.field(default_factory=Streak)
    page: Streak = msgspec.field(default_factory=Streak)
    looks: int = 0
    look_notices: int = 0
    opened: int = 0
    turns: int = 0
    first_ms: int = 0
    call_ms: int = 0
    seen_ids: bytes = b""
    loops: list[Loop] = msgspec.field(default_factory=list)
    spin: SpinMemory = msgspec.field(default_factory=SpinMemory)
    began_ms: int = 0
    tries: Tries = msgspec.field(default_factory=Tries)
    told: list[Told] = msgspec.field(default_factory=list)
    room: int = 0

    def settle(self, at_ms: int, depth: Clear) -> None:
        """Drop what was counted so far, as deep as is said, and loops that were last alerted before this time.

        With the counts go the loops that were terminated, since who goes on after that is warned anew; the others only
        when they are to go as well. What a person said of a loop stays said.
        """
        if depth == Clear.READS:
            self.forget_reads()
            return
        self.forget_runs()
        loops = depth == Clear.LOOPS
        self.loops = [
            loop
            for loop in self.loops
            if loop.alerted_ms >= at_ms or loop.level == DISMISSED or not (loops or loop.level == TERMINATED)
        ]

    @property
    def last_ms(self) -> int:
        """Time of the newest event, in milliseconds since 1970."""
        return max((newest_ms for newest_ms, _ in self.clocks.values()), default=0)

    @property
    def spent(self) -> Spent:
        """What the session consumed so far."""
        wall_ms = max(0, self.last_ms - self.began_ms)
        return Spent(self.calls, self.turns, self.tokens, self.cost, wall_ms, self.metered, self.priced)

    @property
    def latest_score(self) -> float | None:
        """The spin score of the latest call; None when it has none, since it only talks or repeats within its batch."""
        return self.spin.score if self.spin.seq == self.calls - 1 else None

    def forget_runs(self) -> None:
        """Drop everything counted so far; loops already under watch stay, so that nobody is warned twice."""
        self.recent.clear()
        self.streak = Streak()
        self.cycles = [Cycle() for _ in range(MAX_PERIOD_CALLS - 1)]
        self.areas.clear()
        self.failing_calls.clear()
        self.denied = Denied()
        self.row = FailingRow()
        self.edits.clear()
        self.searches.clear()
        self.checks.clear()
        self.stretch = Stretch()
        self.said = Streak()
        self.moving = Streak()
        self.page = Streak()
        self.looks = 0
        self.look_notices = 0
        self.opened = self.calls
        self.forget_reads()

    def forget_reads(self) -> None:
        """Drop what was read so far: an agent whose context was trimmed has to read again."""
        self.reads.clear()
        self.known = b""
        self.spin = SpinMemory()
        for call in self.recent:
            call.settled = True


def print_of(digest: int) -> bytes:
    """Return the short form of a digest that rings of many hold."""
    return (digest & 0xFFFF_FFFF).to_bytes(PRINT_BYTES, "little")


def holds_print(ring: bytes, wanted: bytes) -> bool:
    """Tell whether a ring of prints holds one; a match across two of them is none."""
    at = ring.find(wanted)
    while at >= 0 and at % PRINT_BYTES:
        at = ring.find(wanted, at + 1)
    return at >= 0


def _framed(fields: list[Any]) -> list[Any]:
    """From version 5 to 6: the fields stand in a list of their own behind the version, and one more at their end."""
    return [fields]


VERSIONS: Final = Versions("a session's state", SessionState, STATE_VERSION, {5: _framed})
"""What is read of earlier releases, and how it becomes what is written now."""


def encode_state(state: SessionState) -> bytes:
    """Return the state in its compact form (MessagePack, fields by position)."""
    return VERSIONS.encode(state)


def decode_state(data: bytes) -> SessionState:
    """Return the state of its compact form, of this version or an earlier one that is still read.

    Raises UnsupportedState when it is damaged or of another version; the message says which, and what to do.
    """
    return VERSIONS.decode(data)
