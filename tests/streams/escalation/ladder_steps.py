"""Steps to put the ladder through, made by chance, and what comes out of it in the plain model's form.

A step only says what is to happen; which id a word answers is looked up when its turn comes, so that a list of steps
stays sensible when some are taken out of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from schemas.common import Agent, Task
from schemas.outputs import Alert, Directive, Evidence, KnownFlapping, LimitReached, Notification, Termination
from streams.escalation.context import Cleared
from streams.policy.model import RUNGS, Budgets, Candidate, Ladder

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from streams.escalation.context import Output
    from tests.streams.escalation.ladder_book import Told

SESSIONS = {"s1": "t1", "s2": "t1", "s3": "t1", "u1": "t2"}
"""The sessions of most runs, with their tasks."""

CROWD = dict.fromkeys(("s1", *(f"c{number:02}" for number in range(19))), "t1")
"""More sessions than a state has room for."""

AGENTS = (None, Agent(name="claude-code", model="m1", config="c1"), Agent(name="codex", model="m2"), Agent(config="c3"))
TASKS = (None, Task(type="bugfix"), Task(type="docs"))
CANDIDATES = (Candidate(name="codex", model="m2"), Candidate(model="m9"), Candidate(config="c3"), Candidate())

WHOLE = "whole task"
"""A word with this is said under the id of the task itself."""

SENSIBLE = (
    *(("refused", "directive"), ("refused", "termination"), ("obeyed", "termination"), ("false_alarm", "alert")),
    *(("refused", "directive"), ("refused", "termination"), ("terminate", "nothing"), ("resume", "nothing")),
    ("forget", "nothing"),
)
"""Words with what they answer where people and orchestrators know what they do."""

ANY = st.tuples(
    st.sampled_from(
        ("refused", "obeyed", "ended", "false_alarm", "resume", "reset", "clear", "user_message", "forget")
    ),
    st.sampled_from(("directive", "termination", "alert", "nonsense", "nothing", WHOLE)),
)

MINUTE = 60_000
DAY = 24 * 60 * MINUTE
PASSES = (0, 1, -1, 0, 1, MINUTE, 60 * MINUTE, 60 * MINUTE + 1, 7 * DAY, 400 * DAY, -1, -MINUTE, -DAY, -400 * DAY)
"""Milliseconds that pass: about what matters, and where a clock is set."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """An alert; with ``again`` one that came before is sent again."""

    session: str
    fields: dict[str, Any]
    again: int | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """A word, and the kind of id that it answers: the latest of the session, or one so many before it.

    An empty session is the one of which something was asked at last.
    """

    session: str
    word: tuple[str, str]
    back: int
    agent: Agent | None


@dataclass(frozen=True, slots=True)
class Tried:
    """An attempt, a review or only what was spent."""

    session: str
    outcome: str
    derived: bool
    tokens: int
    agent: Agent | None
    task: Task | None


@dataclass(frozen=True, slots=True)
class Passes:
    """Time passes, by one of the policy's lengths and more or less; ``looked``: the timers are looked at then."""

    length: str
    by_ms: int
    looked: bool


Step = Alarm | Said | Tried | Passes | Ladder | None
"""A Ladder is a new policy; None: the state is written and read again."""


def steps(sessions: dict[str, str], most: int) -> SearchStrategy[list[Step]]:
    """Give lists of steps; long ones, since little happens in short ones."""
    session = st.sampled_from((*["s1"] * (len(sessions) // 3), *sorted(sessions)))
    agent = st.sampled_from(AGENTS)
    alert = st.builds(
        Alarm,
        session,
        st.fixed_dictionaries(
            {
                "level": st.sampled_from(("warn", "terminate", "notice", "recovered", "warn", "terminate")),
                "mode": st.sampled_from(("enforce", "enforce", "enforce", "warn", "observe")),
                "scope": st.sampled_from(("session", "task", "session")),
                "muted": st.sampled_from((False, False, False, False, True)),
                "detector": st.sampled_from(("identical", "rereads", "analysis")),
                "loop_id": st.sampled_from(
                    ("l1", "l2") if sessions == SESSIONS else [f"l{number}" for number in range(10)]
                ),
                "suggested_strategy": st.sampled_from((None, None, "skip_subtask", "different_files")),
                "agent": agent,
                "task": st.sampled_from(TASKS),
            }
        ),
        st.sampled_from((*[None] * 8, 0, 1, 2)),
    )
    said = st.builds(
        Said, st.just("") | session, st.sampled_from(SENSIBLE) | ANY, st.sampled_from((0, 0, 0, 1, 2)), agent
    )
    tried = st.builds(
        Tried,
        session,
        st.sampled_from(("failed", "success", "partial", "skipped", "merged", "commented", "spent")),
        st.booleans(),
        st.sampled_from((0, 7)),
        agent,
        st.sampled_from(TASKS),
    )
    passes = st.builds(
        Passes, st.sampled_from(("", "", "answer_seconds", "cooldown_seconds")), st.sampled_from(PASSES), st.booleans()
    )
    # Policies change and time passes seldom enough for a climb to get somewhere in between.
    kinds: dict[SearchStrategy[Any], int] = {alert: 8, said: 5, passes: 3, tried: 1, ladders(): 1, st.none(): 1}
    often = [kind for kind, times in kinds.items() for _ in range(times)]
    single = st.sampled_from(often).flatmap(st.tuples)
    scenes = st.sampled_from(_scenes(sessions)).flatmap(lambda scene: st.tuples(*scene))
    taken = st.lists(
        st.sampled_from([single] * 15 + [scenes]).flatmap(lambda kind: kind), min_size=most // 4, max_size=most
    )
    return taken.map(lambda groups: [step for group in groups for step in group])


def _scenes(sessions: dict[str, str]) -> list[list[SearchStrategy[Step]]]:
    """Give what seldom comes about by chance: limits of time met exactly, and more than a state has room for."""
    about = st.sampled_from((-1, 0, 1))

    def alert(session: str, level: str = "warn", scope: str = "session", loop: str = "l1") -> SearchStrategy[Step]:
        fields = {"level": level, "mode": "enforce", "scope": scope, "detector": "identical", "loop_id": loop}
        return st.just(Alarm(session, fields))

    def said(word: str, answers: str) -> SearchStrategy[Step]:
        return st.just(Said("", (word, answers), 0, None))

    def pause(length: str, by_ms: int = 0) -> SearchStrategy[Step]:
        return st.builds(Passes, st.just(length), about.map(lambda more: by_ms + more), st.booleans())

    first, *others = sorted(sessions, key=lambda session: (sessions[session], session))
    scope = st.sampled_from(("session", "task"))
    stopped = [alert(first, "terminate"), said("obeyed", "termination"), pause("answer_seconds")]
    again = scope.flatmap(lambda drawn: alert(first, "terminate", drawn))
    return [
        [*stopped, again],
        [*stopped, alert(others[0], "terminate", "task")],
        [alert(first), pause("", 60 * MINUTE), alert(others[0], "terminate", "task")],
        [alert(first, "terminate", "task"), said("false_alarm", "alert")],
        [alert(first), alert(first), pause("cooldown_seconds"), alert(first)],
        [alert(first, loop=f"l{number}") for number in range(10)],
        [alert(first, scope="task"), pause("", 1), *(alert(session) for session in sorted(sessions))],
        [alert(others[0], "terminate"), alert(first, "terminate", "task"), said("forget", "nothing")],
        [alert(first, "terminate", "task"), alert(others[0]), said("forget", "nothing"), said("forget", WHOLE)],
    ]


@st.composite
def ladders(draw: st.DrawFn) -> Ladder:
    """Give policies, foolish ones among them."""
    order = draw(st.permutations(RUNGS))[: draw(st.integers(0, len(RUNGS)))]
    if draw(st.booleans()):
        order = sorted(order, key=RUNGS.index)
    return Ladder(
        order=tuple(order),
        budget=Budgets(**{rung: draw(st.sampled_from((1, 2, 0))) for rung in RUNGS}),
        warn_most=draw(st.sampled_from(RUNGS)),
        on_terminate=draw(st.sampled_from(RUNGS)),
        notices=draw(st.integers(0, 2)),
        guidance_minutes=draw(st.sampled_from((15.0, 1.0))),
        directive_minutes=draw(st.sampled_from((60.0, 2.0))),
        cooldown_seconds=draw(st.sampled_from((300.0, 1.0))),
        answer_seconds=draw(st.sampled_from((60.0, 1.0))),
        answer_attempts=draw(st.integers(1, 3)),
        flapping_days=draw(st.sampled_from((7.0, 0.5, 30.0))),
        candidates=draw(st.lists(st.sampled_from(CANDIDATES), unique=True, max_size=3).map(tuple)),
        notify=draw(st.sampled_from((None, (), ("pager",)))),
    )


def make_alert(alert_id: str, session: str, task_id: str, fields: dict[str, Any]) -> Alert:
    """Build an alert."""
    began = datetime(2026, 1, 1, tzinfo=UTC)
    return Alert(
        alert_id=alert_id,
        session_id=session,
        task_id=task_id,
        seq=4,
        occurred_at=began,
        first_seen=began,
        count=3.0,
        limits=(LimitReached(name="identical.warn", value=3, layer="default"),),
        evidence=Evidence(event_ids=("e1",), calls=("read(a.py)",)),
        reasoning="read(a.py) was called 3 times with the same result",
        guidance="Stop reading a.py.",
        **fields,
    )


def plain(output: Output) -> Told:
    """Give an output in the model's form."""
    match output:
        case Directive():
            directive = ("directive", output.session_id, output.action, output.alert_id, output.directive_id)
            return (*directive, output.expires_at, _parameters(output))
        case Termination():
            termination = ("termination", output.session_id, output.attempt, output.alert_id)
            return (*termination, output.termination_id, output.issued_at)
        case KnownFlapping():
            return ("flapping", output.session_id, output.alert_id, output.termination_id, output.expires_at)
        case Cleared():
            return ("cleared", output.task_id)
        case Notification():
            notification = ("notification", output.kind, output.severity, output.resolves, output.incident_id)
            return (*notification, output.sinks, None if output.resolves else output.answers)


def _parameters(directive: Directive) -> Told:
    given = dict(directive.parameters)
    if directive.action == "cooldown":
        found: Told = (given.pop("seconds"), datetime.fromisoformat(str(given.pop("until"))))
    elif directive.action == "rotate_strategy":
        found = (given.pop("rotation"), given.pop("of"), given.pop("from"))
        to = tuple(given.pop(name, "") for name in ("to_name", "to_model", "to_config"))
        avoid = str(given.pop("avoid", ""))
        strategy = given.pop("strategy", None)
        found = (*found, *([to] if any(to) else []), strategy, tuple(avoid.split(",")) if avoid else ())
    else:
        found = ()
    return (*found, *given)  # nothing is left over
