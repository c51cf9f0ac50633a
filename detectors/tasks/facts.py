"""What is known of one task's attempts and reviews: plain facts that the state can keep, and never a text in full.

They are read once, in the session whose event they come from, and travel to the task's own state as they are here.
Digests have 64 bits, prints of lines and words four bytes each; 0 and empty say that nothing is known.
"""

from typing import Literal

import msgspec

from schemas.common import Agent, Task

Outcome = Literal["failed", "success", "partial", "skipped"]
Verdict = Literal["approved", "changes_requested", "commented", "merged", "closed"]
Word = Literal[
    "resume", "reset", "clear", "false_alarm", "user_message", "obeyed", "refused", "ended", "terminate", "forget"
]

_MOST = 2**62  # of a sum: beyond it the compact form of the state has no integer

PRINT_BYTES = 4
"""Of the print of one line, word or name."""


class Spent(msgspec.Struct, array_like=True, frozen=True):
    """What was consumed: calls, turns, tokens, US dollars, and milliseconds from a session's first event to its last.

    ``metered`` says that tokens were sent with some of it, ``priced`` likewise for the price.
    """

    calls: int = 0
    turns: int = 0
    tokens: int = 0
    cost: float = 0.0
    wall_ms: int = 0
    metered: bool = False
    priced: bool = False

    def plus(self, other: "Spent") -> "Spent":
        """Return both together."""
        return Spent(
            self.calls + other.calls,
            self.turns + other.turns,
            min(self.tokens + other.tokens, _MOST),
            self.cost + other.cost,
            self.wall_ms + other.wall_ms,
            self.metered or other.metered,
            self.priced or other.priced,
        )

    def minus(self, other: "Spent") -> "Spent":
        """Return what is more than in the other; what was sent stays said."""
        return Spent(
            max(0, self.calls - other.calls),
            max(0, self.turns - other.turns),
            max(0, self.tokens - other.tokens),
            max(0.0, self.cost - other.cost),
            max(0, self.wall_ms - other.wall_ms),
            self.metered,
            self.priced,
        )


class Region(msgspec.Struct, array_like=True, frozen=True):
    """Lines of one file that a change touches.

    They are the lines ``old_start`` to ``old_start + old_count - 1`` before the change and ``new_start`` to
    ``new_start + new_count - 1`` after it, from 1; starts of 0: not known. ``removed`` and ``added`` are the prints of
    the lines that are not blank, in rising order.
    """

    old_start: int = 0
    old_count: int = 0
    new_start: int = 0
    new_count: int = 0
    removed: bytes = b""
    added: bytes = b""


class FileChange(msgspec.Struct, array_like=True, frozen=True):
    """What a change does to one file.

    ``path`` is a digest of its path after the change, ``source`` of that before it. ``whole`` says that the new content
    of the whole file was given, of whose lines ``content`` has the prints, in rising order; what it replaced is then
    not known, and there are no regions, until it is settled against an earlier content (`reversal.settled`).
    """

    path: int
    source: int
    regions: tuple[Region, ...] = ()
    whole: bool = False
    content: bytes = b""


class Change(msgspec.Struct, array_like=True, frozen=True):
    """What one attempt does to the files.

    ``digest`` is that of the whole change, whatever is left out of ``files``. Of a large change only the lines whose
    print is divisible by ``thin`` are kept, so that two large changes are sampled alike.
    """

    digest: int = 0
    files: tuple[FileChange, ...] = ()
    thin: int = 1


class Attempt(msgspec.Struct, array_like=True):
    """One try at the task.

    ``attempt_id`` names it among those of its ``session`` (a digest of that one's id); ``number`` counts the task's
    attempts from 1. ``derived`` ones were read from tool calls: edits and then a check, ``check`` being the digest of
    what was run (0 for those that were sent).
    ``approach`` is an excerpt of its words, ``words`` the prints of its tokens in rising order, ``wording`` a digest of
    them. ``files`` are prints of the paths it touched in rising order, ``names`` excerpts of the first of them.
    ``error`` is a digest of the kind of failure and what it is about (`detectors.failure`), ``error_text`` its masked
    excerpt; ``specific`` says that it names a kind of error rather than only that something failed; ``missing`` is the
    name of a module that is not there; ``transient`` failures pass by themselves. ``failing`` are prints of the names
    of failing checks in rising order,
    ``failing_names`` excerpts of the first of them, ``failing_count`` how many fail and ``passing_count`` how many
    pass, or ran where the runner counts these; None when not known.
    ``concerned`` are those of ``failing`` that the touched files concern by their names. ``state`` is a digest of the
    tree after it. ``spent`` is what the task had spent at it, the attempt included.
    """

    attempt_id: str
    session: int
    event_id: str
    at_ms: int
    outcome: Outcome
    derived: bool = False
    check: int = 0
    number: int = 0
    approach: str = ""
    words: bytes = b""
    wording: int = 0
    files: bytes = b""
    names: tuple[str, ...] = ()
    change: Change = Change()
    error: int = 0
    error_text: str = ""
    specific: bool = False
    missing: str = ""
    transient: bool = False
    failing: bytes = b""
    failing_names: tuple[str, ...] = ()
    failing_count: int | None = None
    concerned: bytes = b""
    state: int = 0
    spent: Spent = Spent()
    passing_count: int | None = None


class Round(msgspec.Struct, array_like=True):
    """One round of review.

    ``pull_request`` is a digest of its name, ``name`` an excerpt of it. ``findings`` are prints of the remarks in
    rising order, by their own id, else by path and wording; ``remarks`` excerpts of the first of them, each with its
    print. ``number`` is that of the round where it was sent: reviews of several agents are one round when theirs agree.
    """

    event_id: str
    at_ms: int
    pull_request: int
    name: str
    by_person: bool
    verdict: Verdict
    findings: bytes = b""
    remarks: tuple[tuple[bytes, str], ...] = ()
    comments: int | None = None
    number: int | None = None


class TaskEvent(msgspec.Struct, array_like=True):
    """What one event of a session means to its task.

    ``at_ms`` is the event's time in milliseconds since 1970. ``spent`` is what the session consumed since the last one.
    One of ``attempt``, ``review`` and ``word`` may be there; else it only tells what was spent. A word is what a person
    or orchestrator said in answer to the alert, directive or termination ``answers``, with ``actor`` and ``reason`` as
    they came, and holds until ``until_ms`` where that was said; a user's message sets back what was read from the
    session's tool calls.
    """

    event_id: str
    session_id: str
    task_id: str
    at_ms: int
    agent: Agent | None = None
    task: Task | None = None
    spent: Spent = Spent()
    attempt: Attempt | None = None
    review: Round | None = None
    word: Word | None = None
    answers: str = ""
    until_ms: int | None = None
    actor: str = ""
    reason: str = ""
