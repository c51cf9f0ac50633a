"""Review ping-pong: an agent's reviews ask for changes round after round, and nothing is merged.

Three rounds are a warn, five a terminate. A remark that was settled and comes back, and one that is made again in two
further rounds, are a warn at once. A person's decision or an approval sets the rounds back; a merge or close ends them
(flapping and convergence).
"""

from collections.abc import Iterator

from detectors.about import About
from detectors.canonical import digest
from detectors.facts import Mark
from detectors.findings import Level, level_of
from detectors.limits import Limits
from detectors.tasks.facts import Round
from detectors.tasks.findings import TaskFinding
from detectors.tasks.state import Pull, TaskState
from detectors.tasks.words import each

NAME = "ping_pong"
ABOUT = About(
    rule=(
        "3 rounds of an agent's review that ask for changes without a merge; a remark that was settled and comes back; "
        "one that 2 further rounds make again. Terminates after 5 rounds."
    ),
    source="flapping and convergence",
    cleared_by="an approval, a person's decision, a merge or close",
)


def observe(state: TaskState, pull: Pull, review: Round, limits: Limits) -> Iterator[TaskFinding]:
    """Yield what goes round in the reviews of a pull request, of which the latest round is taken in already."""
    if not asks_again(review):
        return
    group = limits.ping_pong
    if level := level_of(pull.rounds, group.warn, group.terminate):
        what = f"{pull.rounds} rounds of review of {pull.shown} that asked for changes"
        yield _finding(state, pull, level, pull.rounds, level, getattr(group, level), what, ())
    back = [mark for mark in each(review.findings) if mark in pull.returned]
    if len(back) >= group.returned_warn:
        what = "a remark that was settled and is made again"
        yield _finding(state, pull, "warn", len(back), "returned_warn", group.returned_warn, what, _texts(review, back))
    again = [mark for mark, rounds in pull.open if rounds > group.unfixed_warn]
    if again:
        what = f"a remark that {group.unfixed_warn} further rounds of review made again"
        count = max(rounds for _, rounds in pull.open) - 1
        texts = _texts(review, again)
        yield _finding(state, pull, "warn", count, "unfixed_warn", group.unfixed_warn, what, texts)


def asks_again(review: Round) -> bool:
    """Tell whether a round is one more of an agent's that asks for changes."""
    return review.verdict == "changes_requested" and not review.by_person


def settles(review: Round) -> bool:
    """Tell whether a round sets the count back: an approval, or what a person decides; a mere comment does not."""
    return review.verdict == "approved" or (review.by_person and review.verdict == "changes_requested")


def _finding(  # noqa: PLR0917 - private, and all of it differs
    state: TaskState, pull: Pull, level: Level, count: int, limit: str, value: float, what: str, texts: tuple[str, ...]
) -> TaskFinding:
    return TaskFinding(
        detector=NAME,
        level="terminate" if level == "terminate" else "warn",
        fingerprint=digest(NAME, state.task_id, pull.pull_request),
        members=(pull.pull_request,),
        count=count,
        limit=f"{NAME}.{limit}",
        value=value,
        mark=Mark(pull.since_ms, pull.spent.calls, pull.spent.tokens, pull.spent.cost),
        what=what,
        calls=texts,
        pattern="review_ping_pong",
        strategy="escalate_human",
        advice="Put the disagreement into one sentence and ask a person to decide it.",
        event_ids=tuple(pull.events),
    )


def _texts(review: Round, marks: list[bytes]) -> tuple[str, ...]:
    return tuple(text for mark, text in review.remarks if mark in marks and text)
