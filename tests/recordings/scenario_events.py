"""What the events of a scenario are in our contract: the records that an agent would publish of each.

Calls stay calls. Attempts, reviews and turns of the model become the records that we have for them, all in one session
that names its task. Nothing here may look at what a scenario expects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, TypeVar

import msgspec
from msgspec import UNSET

from detectors.canonical import plain_text
from schemas.common import ErrorInfo, Task, Usage
from schemas.events import FixAttempt, Review, ReviewFinding, SessionEvent, SessionInput, ToolCall
from schemas.testing import at, fix_attempt, review, session_event, tool_call

TASK: Final = Task(id="scenario")
"""The task of every session: what is spent is told only to a task that the session names."""

TALK = {"assistant_message", "assistant_thought"}
"""What a model says without calling a tool: agents publish calls, so that these reach nobody."""

SESSION_EVENTS = {
    "user_message": "user_message",
    "session_start": "started",
    "context_compaction": "context_trimmed",
    "llm_turn": "turn",
    "step": "turn",
}

ATTEMPTS = {"fix_attempt", "submit_change", "state_snapshot"}
REVIEWS = {"review", "pr_merged"}

_AUTHORS = {"human": "person"}
_OUTCOMES: Mapping[bool | None, Literal["failed", "success"]] = {True: "failed", False: "success", None: "failed"}
_FAILED = "FAILED "

_T = TypeVar("_T", FixAttempt, Review)


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a scenario's play: a call with its result, or what else happened."""

    tool: str
    args: Any = UNSET
    result: Any = UNSET
    error: bool | None = None
    repeat: int = 1
    event_id: str | None = None
    batch_id: str | None = None
    call_id: str | None = None
    phase: Literal["start", "end"] | None = None
    ts: float | None = None  # seconds
    error_class: str | None = None

    def arg(self, name: str) -> Any:
        """Give the argument of this name; None where there is none."""
        return self.args.get(name) if isinstance(self.args, dict) else None


def records(entries: Iterable[Entry]) -> Iterator[tuple[Entry, tuple[SessionInput, ...]]]:
    """Give each event of a scenario, repeats one by one, with the records an agent would publish of it, if any.

    A second passes from event to event unless the scenario says when. Where a stream of the model is retried, its calls
    come again under the ids they had, since an event that is sent again keeps its id.

    Raises msgspec.ValidationError for an attempt or a review that the contract has no form for.
    """
    position = response = 0
    second = 0.0
    for entry in (each for each in entries for _ in range(each.repeat)):
        position += 1
        second = second + 1 if entry.ts is None else entry.ts
        if entry.tool in SESSION_EVENTS:
            response = position
            yield entry, (event_of(entry, position, second),)
        elif entry.tool == "stream_retry":
            position = response
            yield entry, ()
        elif entry.tool in ATTEMPTS:
            yield entry, (attempt_of(entry, position, second),)
        elif entry.tool in REVIEWS:
            yield entry, (review_of(entry, position, second),)
        elif entry.tool in TALK:
            yield entry, ()
        else:
            yield entry, (call_of(entry, position, second), *_revision_of(entry, position, second))


def call_of(entry: Entry, position: int, second: float) -> ToolCall:
    """Give the record of a call. Hooks, reflections and the model's own requests are calls like any other.

    An empty result of a call of which nobody knows how it ended is one that was not recorded.
    """
    unrecorded = entry.result == "" and entry.error is None
    return tool_call(
        position,
        entry.tool,
        entry.args,
        UNSET if unrecorded else entry.result,
        error=ErrorInfo(type=entry.error_class) if entry.error_class else None,
        status={True: "error", False: "ok", None: None}[entry.error],
        event_id=entry.event_id or f"call-{position}",
        occurred_at=at(second),
        task=TASK,
        batch_id=entry.batch_id,
        call_id=entry.call_id,
        phase=entry.phase,
    )


def event_of(entry: Entry, position: int, second: float) -> SessionEvent:
    """Give the record of what happened to the session itself; a turn says what it cost where the scenario does."""
    cost = entry.arg("cost_usd")
    return session_event(
        position,
        SESSION_EVENTS[entry.tool],
        occurred_at=at(second),
        task=TASK,
        usage=None if cost is None else Usage(cost_usd=cost),
    )


def attempt_of(entry: Entry, position: int, second: float) -> FixAttempt:
    """Give the record of an attempt: it failed unless the scenario says otherwise.

    What is submitted for review is an attempt that its author takes to be done, hence a success: it settles what was
    tried before it, and must not set back the rounds of a review that goes on. Of a snapshot only the state is known.
    """
    text = None if entry.result is UNSET else plain_text(entry.result)
    about: dict[str, Any] = {"outcome": _OUTCOMES[entry.error]}
    if entry.tool == "state_snapshot":
        about = {"state_digest": text or None}
    elif entry.tool == "submit_change":
        about = {"outcome": "success"}
    elif entry.error is not False:
        about["error_message"] = text
    file = entry.arg("file")
    return _sent(
        fix_attempt(
            position,
            entry.arg("approach"),
            files=() if file is None else (file,),
            diff=entry.arg("diff"),
            **about,
            **_common(entry, position, second),
        )
    )


def review_of(entry: Entry, position: int, second: float) -> Review:
    """Give the record of a round of review, or of the merge that ends it."""
    merged = entry.tool == "pr_merged"
    author = str(entry.arg("reviewer") or ("agent" if merged else ""))
    return _sent(
        review(
            position,
            "merged" if merged else entry.arg("verdict"),
            author=_AUTHORS.get(author, author),
            round=position,  # each is a round of its own, however soon it comes
            findings=tuple(ReviewFinding(text=text) for text in entry.arg("findings") or ()),
            **_common(entry, position, second),
        )
    )


def _revision_of(entry: Entry, position: int, second: float) -> Iterator[FixAttempt]:
    """Give the attempt that a run of the tests reports on where it names the revision that it ran on.

    Revisions are changes of whose text nothing is known; what a failed run lists are the checks that fail after it.
    """
    revision = entry.arg("rev")
    if entry.tool != "run_tests" or revision is None:
        return
    text = "" if entry.result is UNSET else plain_text(entry.result)
    made = fix_attempt(
        position,
        outcome=_OUTCOMES[entry.error],
        error_message=text if entry.error is not False else None,
        failing=tuple(text.removeprefix(_FAILED).split()) if text.startswith(_FAILED) else (),
        state_digest=str(revision),
        **_common(entry, position, second),
    )
    yield _sent(made)


def _common(entry: Entry, position: int, second: float) -> dict[str, Any]:
    return {
        "event_id": f"{entry.event_id or position}-of-task",
        "occurred_at": at(second),
        "task": TASK,
    }


def _sent(record: _T) -> _T:
    """Give a record as it is read from the topic, which refuses what the contract does not know."""
    return msgspec.convert(msgspec.to_builtins(record), type(record))
