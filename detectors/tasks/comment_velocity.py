"""Comment velocity: a pull request gathers comments and is neither merged nor closed (flapping and convergence: 20).

It does not tell flapping from a hard review, and asks for a person's attention only: it never terminates.
"""

from collections.abc import Iterator

from detectors.about import About
from detectors.canonical import digest
from detectors.facts import Mark
from detectors.limits import Limits
from detectors.tasks.facts import Round
from detectors.tasks.findings import TaskFinding
from detectors.tasks.state import Pull, TaskState

NAME = "comment_velocity"
ABOUT = About(
    rule="More than 20 comments on a pull request that is neither merged nor closed. Never terminates.",
    source="flapping and convergence",
    cleared_by="a merge or close",
)


def observe(state: TaskState, pull: Pull, review: Round, limits: Limits) -> Iterator[TaskFinding]:
    """Yield that a pull request has gathered too many comments."""
    group = limits.comment_velocity
    if pull.comments < group.warn:
        return
    yield TaskFinding(
        detector=NAME,
        level="warn",
        fingerprint=digest(NAME, state.task_id, pull.pull_request),
        members=(pull.commented,),
        count=pull.comments,
        limit=f"{NAME}.warn",
        value=group.warn,
        mark=Mark(pull.since_ms, pull.spent.calls, pull.spent.tokens, pull.spent.cost),
        what=f"{pull.comments} comments on {pull.shown} that is neither merged nor closed",
        pattern="review_ping_pong",
        strategy="escalate_human",
        advice="Ask a person to look at the pull request before another round.",
        event_ids=(review.event_id,),
    )
