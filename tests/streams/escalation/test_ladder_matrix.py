"""The ladder does what the plain model of it says, whatever comes in which order.

The short form takes some twenty seconds; `make matrix` runs the long one: TRACTION_MATRIX_EXAMPLES lists of
steps.
"""

from __future__ import annotations

import os
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from detectors import TaskEvent
from detectors.tasks.facts import Attempt, Round, Spent
from schemas.outputs import KnownFlapping
from streams.escalation.context import Cleared, Context, Tally
from streams.escalation.ladder import next_due, on_alert, on_event, on_time
from streams.escalation.state import LadderState, decode_ladder, encode_ladder
from streams.policy.model import BY_TASK, RUNGS, Budgets, Candidate, Ladder
from tests.streams.escalation.ladder_book import label
from tests.streams.escalation.ladder_model import LadderModel
from tests.streams.escalation.ladder_steps import (
    CROWD,
    SESSIONS,
    WHOLE,
    Alarm,
    Passes,
    Said,
    Tried,
    ladders,
    make_alert,
    plain,
    steps,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from schemas.outputs import Alert
    from streams.escalation.context import Output
    from tests.streams.escalation.ladder_book import Told
    from tests.streams.escalation.ladder_steps import Step

LONG = "TRACTION_MATRIX_EXAMPLES"
EXAMPLES = int(os.environ.get(LONG, "600"))

CONTROL = "agent.control"
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
EARLIEST = datetime(2024, 1, 1, tzinfo=UTC)
LEVELS = ("notice", "warn", "terminate", "recovered")


def first_allowed(candidates: Sequence[Candidate], exclude: AbstractSet[str], task_type: str) -> Candidate | None:
    """Choose as the model takes it for granted."""
    assert task_type in {"", "bugfix", "docs"}
    return next((found for found in candidates if label(found.name, found.model, found.config) not in exclude), None)


class Both:
    """One task, as the code and as the model know it."""

    def __init__(self, task_id: str) -> None:
        self.state = LadderState()
        self.model = LadderModel(task_id)
        self.tallies: Counter[tuple[str, ...]] = Counter()
        self.context = Context(control_topic=CONTROL, choose=first_allowed, count=self.count, save=lambda _: None)

    def count(self, tally: Tally) -> None:
        """Add up what is to be added to fitness."""
        config = (tally.name, tally.model, tally.config, tally.task_type)
        for name in ("tasks", "attempts", "converged", "flapped", "tokens"):
            self.tallies[*config, name] += getattr(tally, name)
        self.tallies[*config, "cents"] += round(tally.cost * 100)

    def alert(self, alert: Alert, now: datetime, policy: Ladder) -> list[Output]:
        """Give both an alert."""
        found = on_alert(self.state, alert, now, policy, self.context)
        assert [plain(output) for output in found] == self.model.alert(alert, now, policy)
        for output in found:
            assert not isinstance(output, Cleared)
            assert output.alert_id == alert.alert_id, "whatever comes of an alert answers it"
            assert (output.loop_id, output.detector) == (alert.loop_id, alert.detector)
            assert (output.since if isinstance(output, KnownFlapping) else output.issued_at) == now
        self.agree()
        return found

    def event(self, event: TaskEvent, now: datetime, policy: Ladder) -> list[Output]:
        """Give both an event."""
        found = on_event(self.state, event, now, policy, self.context)
        self.same(found, self.model.event(event, now, policy))
        return found

    def time(self, now: datetime, policy: Ladder) -> list[Output]:
        """Have both look at the clock."""
        due = next_due(self.state, policy)
        found = on_time(self.state, now, policy, self.context)
        self.same(found, self.model.time(now, policy))
        assert not found or (due is not None and due <= ms(now)), "nothing comes of time before it is due"
        due = next_due(self.state, policy)
        assert (due is None) == (self.state == LadderState()), "whatever is kept is looked at some time"
        assert due is None or due > ms(now), "what was due is done"
        return found

    def same(self, found: list[Output], expected: list[Told]) -> None:
        """Compare what came out, in any order."""
        assert sorted(map(repr, map(plain, found))) == sorted(map(repr, expected))
        self.agree()

    def agree(self) -> None:
        """Compare what waits, how far everything is, and what was counted."""
        state, model = self.state, self.model
        waits = {
            session: (climb.pending.termination_id, climb.pending.attempt, climb.pending.due_ms)
            for session, climb in state.climbs.items()
            if climb.pending
        }
        assert waits == {session: (one["id"], one["attempt"], one["due"]) for session, one in model.pending.items()}
        climbed = {
            key: (
                climb.at,
                +Counter(climb.used),
                climb.notices,
                climb.loops,
                climb.cooldown_ms,
                climb.incident,
                climb.stopped_ms,
                climb.joint,
                climb.unstopped.termination_id if climb.unstopped else "",
                climb.refused,
            )
            for key, climb in state.climbs.items()
        }
        assert climbed == model.climbed()
        assert +Counter(state.used) == Counter(rung for _, rung in model.taken if rung in BY_TASK)
        assert state.refused == [rung for _, rung in model.refused if rung in BY_TASK]
        assert (state.active, state.seen, state.rotated) == (model.heard, model.seen, model.rotated)
        assert (state.flapping_ms, state.last_ms) == (model.flapping[0], model.last)
        assert +self.tallies == +model.tallies

    def copy(self) -> Both:
        """Give another one that knows the same."""
        other = Both(self.model.task_id)
        other.state, other.model = decode_ladder(encode_ladder(self.state)), self.model.copy()
        other.tallies = Counter(self.tallies)
        return other

    def written_and_read(self) -> None:
        """Put the state through its encoded form."""
        read = decode_ladder(encode_ladder(self.state))
        assert read == self.state
        self.state = read


class Run:
    """All tasks, the clock, and the ids that a word may answer."""

    def __init__(self, sessions: dict[str, str], policy: Ladder) -> None:
        self.sessions = sessions
        self.policy = policy
        self.now = BEGAN
        self.tasks = {task_id: Both(task_id) for task_id in sorted(set(sessions.values()))}
        self.alerts: list[Alert] = []
        self.asked = min(sessions)  # the session of which something was asked at last
        self.ids: dict[tuple[str, str], list[str]] = {}
        self.told: set[str] = set()
        self.repeats = False

    def take(self, number: int, step: Step) -> None:
        """Take one step."""
        match step:
            case Alarm():
                alert = self.which(number, step)
                task = self.tasks[alert.task_id]
                self.note(task.alert(alert, self.now, self.policy))
                self.ids.setdefault(("alert", alert.session_id), []).append(alert.alert_id)
            case Said() | Tried():
                event = self.meant(number, step)
                self.note(self.tasks[event.task_id].event(event, self.now, self.policy))
            case Passes():
                length = timedelta(seconds=getattr(self.policy, step.length) if step.length else 0)
                self.now = max(EARLIEST, self.now + length + timedelta(milliseconds=step.by_ms))
                if step.looked:
                    for task in self.tasks.values():
                        self.note(task.time(self.now, self.policy))
            case Ladder():
                self.policy = step
            case None:
                for task in self.tasks.values():
                    task.written_and_read()

    def which(self, number: int, step: Alarm) -> Alert:
        """Make the alert, or find the one that is sent again."""
        if step.again is not None and step.again < len(self.alerts):
            self.repeats = True
            return self.alerts[-1 - step.again]
        self.alerts.append(make_alert(f"a{number}", step.session, self.sessions[step.session], step.fields))
        return self.alerts[-1]

    def meant(self, number: int, step: Said | Tried) -> TaskEvent:
        """Make the event."""
        session = step.session or self.asked
        event = TaskEvent(f"e{number}", session, self.sessions[session], ms(self.now), agent=step.agent)
        if isinstance(step, Said):
            word, kind = step.word
            known = [""] if kind == "nothing" else self.ids.get((kind, session), ["nobody's"])
            event.word = cast("Any", word)
            event.answers = known[-1 - min(step.back, len(known) - 1)]
            if word == "forget" and kind == WHOLE:
                event.session_id = event.task_id
            return event
        event.task, event.spent = step.task, Spent(tokens=step.tokens, cost=step.tokens / 4)
        if step.outcome in {"merged", "commented"}:
            verdict = cast("Any", step.outcome)
            event.review = Round(event.event_id, event.at_ms, 1, "o/r#1", by_person=False, verdict=verdict)
        elif step.outcome != "spent":
            event.attempt = Attempt(
                f"{number}", 1, event.event_id, event.at_ms, cast("Any", step.outcome), derived=step.derived
            )
        return event

    def note(self, outputs: list[Output]) -> None:
        """Remember ids that may be answered; nobody is told two things under one id."""
        for output in outputs:
            told = plain(output)
            if told[0] in {"directive", "termination"}:
                acknowledge = cast("Any", output).acknowledge
                self.asked, answers = told[1], told[4]
                assert (acknowledge.topic, acknowledge.answers) == (CONTROL, answers)
                self.ids.setdefault((told[0], told[1]), []).append(answers)
            elif told[0] == "notification" and not self.repeats:
                notification_id = cast("Any", output).notification_id
                assert notification_id not in self.told
                self.told.add(notification_id)


def ms(now: datetime) -> int:
    """Give milliseconds since 1970."""
    return round(now.timestamp() * 1000)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(policy=st.just(Ladder()) | ladders(), taken=steps(SESSIONS, 60))
def test_any_run_goes_as_the_model_says(policy: Ladder, taken: list[Step]) -> None:
    """Alerts, words, attempts, time and policies in any order: outputs, what waits and what is counted agree."""
    run = Run(SESSIONS, policy)
    for number, step in enumerate(taken):
        run.take(number, step)


@settings(max_examples=EXAMPLES // 4, deadline=None, suppress_health_check=list(HealthCheck))
@given(policy=st.just(Ladder()) | ladders(), taken=steps(CROWD, 120))
def test_a_crowded_task_goes_as_the_model_says(policy: Ladder, taken: list[Step]) -> None:
    """The same with more sessions, loops and alerts of one task than its state has room for."""
    run = Run(CROWD, policy)
    for number, step in enumerate(taken):
        run.take(number, step)


@pytest.mark.parametrize("length", [0, 1, 2, 3])
def test_every_short_ladder_goes_as_the_model_says(length: int) -> None:
    """Every order of so many rungs, every budget from 0 to 2, every sequence of up to four alerts (else three of 3)."""
    depth = 4 if length < 3 or LONG in os.environ else 3
    for order in permutations(RUNGS, length):
        for budget in range(3):
            policy = Ladder(order=order, budget=Budgets(**dict.fromkeys(RUNGS, budget)), cooldown_seconds=150.0)
            deeper(Both("t1"), policy, (), depth)


def deeper(task: Both, policy: Ladder, before: tuple[str, ...], left: int) -> None:
    """Try every next alert, and every one after it; a cooldown covers one of them."""
    now = BEGAN + timedelta(seconds=100 * len(before))
    detector = ("identical", "rereads")[len(before) % 2]
    for level in LEVELS:
        alert = make_alert(
            ".".join((*before, level)),
            "s1",
            "t1",
            {"level": level, "mode": "enforce", "detector": detector, "loop_id": "l1"},
        )
        following = task.copy()
        following.alert(alert, now, policy)
        if left > 1:
            deeper(following, policy, (*before, level), left - 1)
