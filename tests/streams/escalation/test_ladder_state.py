"""What is kept of a task: bounded whatever comes, the same after a restart, and of one version."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, get_args

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from detectors import UnsupportedState
from detectors.tasks.facts import Word
from schemas import topics
from schemas.common import Agent, Task
from schemas.decode import decode
from schemas.encode import encode
from schemas.outputs import (
    Directive,
    Evidence,
    KnownFlapping,
    Level,
    LimitReached,
    Mode,
    Notification,
    Position,
    Termination,
)
from streams.escalation.actions import MOST_REASON
from streams.escalation.kept import kept_alert, kept_task
from streams.escalation.ladder import Cleared, label
from streams.escalation.state import (
    MAX_ACTIVE,
    MAX_CLIMBS,
    MAX_CONFIGS,
    MAX_LOOPS,
    MAX_SEEN,
    MAX_TRIED,
    LadderState,
    Pending,
    decode_ladder,
    encode_ladder,
)
from streams.escalation.words import MOST_TEXT
from streams.policy.model import RUNGS, Budgets, Candidate, Ladder
from tests.streams.escalation.ladder_kit import NOW, Desk, an_alert, an_attempt, short

if TYPE_CHECKING:
    from streams.escalation.ladder import Output

MOST_STATE = 90_000
"""Bytes of an encoded ladder, whatever comes in, ids of 256 characters of four bytes each among it."""

MOST_STATE_ASCII = 65_536
"""Bytes when ids are ASCII, whatever their length and the texts are."""

TYPICAL = 4_096

WIDE = "\U00020000"  # a letter of four bytes in UTF-8


# Versions


def test_a_ladder_of_another_version_is_refused() -> None:
    """The message says which version, and which is read."""
    with pytest.raises(UnsupportedState, match="version 2, of a newer release; this one reads version 1"):
        decode_ladder(msgspec.msgpack.encode([2, []]))


@pytest.mark.parametrize("data", [b"", b"\xff", msgspec.msgpack.encode([1, "no ladder"]), b"\x91" * 100_000])
def test_a_damaged_ladder_is_refused(data: bytes) -> None:
    """Never guessed at, and never a crash that names something else."""
    with pytest.raises(UnsupportedState, match="damaged"):
        decode_ladder(data)


# Size


def hostile(number: int, char: str, session: str, **fields: Any) -> Any:
    """Build an alert that is as large as the contract lets it be, and larger than any detector makes it."""
    long, name = char * 10_000, char * 256
    return an_alert(
        f"{number}{char * 250}"[:256],
        session_id=session,
        task_id=char * 256,
        agent=Agent(id=name, role=name, name=f"{number}{name}"[:256], model=name, config=name),
        task=Task(id=name, type=name, repo=name, ref=name, paths=(char * 1_024,) * 1_000),
        detector=long,
        loop_id=f"{number}{long}",
        reasoning=long,
        guidance=long,
        pattern=name,
        limits=(LimitReached(name=long, value=1.0, layer=long),) * 9,
        evidence=Evidence(
            event_ids=(long,) * 12,
            position=Position(topic=long, partition=2**62, offset=2**62),
            calls=(long,) * 100,
            error=long,
            counts={f"{number}{long}": 1.0 for number in range(10)},
            attempt_ids=(long,) * 12,
        ),
        **fields,
    )


def filled(char: str) -> Desk:
    """Give a ladder on which everything that can be kept is kept, as large as it comes."""
    desk = Desk(
        Ladder(
            budget=Budgets(rotate_strategy=1_000),
            cooldown_seconds=0.001,
            candidates=(Candidate(name=char * 256),),
            answer_seconds=604_800,
        ),
        reload=False,
    )
    desk.chosen = Candidate(name=char * 256, model=char * 256)
    number = 0
    for who in range(MAX_CLIMBS + 2):
        session = f"{who}{char * 256}"[:256]
        for scope in ("session", "task"):
            for _ in range(MAX_LOOPS + 1):
                number += 1
                fields = msgspec.structs.asdict(hostile(number, char, session, scope=scope))
                desk.alert(**fields)
                desk.now += timedelta(milliseconds=5)
        fields = msgspec.structs.asdict(hostile(number + 10_000, char, session, level="terminate"))
        desk.alert(**fields)
        desk.event(session, task_id=char * 256, agent=Agent(name=f"{who}{char * 250}"), attempt=an_attempt("failed"))
    return desk


@pytest.mark.parametrize(("char", "most"), [("x", MOST_STATE_ASCII), (WIDE, MOST_STATE), ("<", MOST_STATE_ASCII)])
def test_the_largest_ladder_keeps_its_bound(char: str, most: int) -> None:
    """All lists are full, and the record is far below what a broker takes."""
    desk = filled(char)
    state = desk.state
    assert len(state.climbs) == MAX_CLIMBS
    assert len(state.active) == MAX_ACTIVE
    assert len(state.seen) == MAX_SEEN
    assert len(state.configs) == MAX_CONFIGS
    assert len(state.rotated) == MAX_TRIED
    assert sum(climb.pending is not None for climb in state.climbs.values()) == MAX_CLIMBS - 1
    assert max(len(climb.loops) for climb in state.climbs.values()) == MAX_LOOPS
    size = len(encode_ladder(state))
    assert most // 2 < size < most
    assert decode_ladder(encode_ladder(state)) == state


def test_a_typical_ladder_is_small() -> None:
    """Three sessions of which one was stopped: a few kilobytes."""
    desk = Desk(Ladder(cooldown_seconds=0.001))
    for number in range(12):
        desk.alert(
            f"{number:032x}",
            session_id=f"claude-{number % 3:08x}",
            agent=Agent(name="claude-code", model="claude-opus-4"),
            task=Task(type="bugfix", repo="acme/shop"),
            evidence=Evidence(event_ids=("e" * 36,) * 12, calls=("bash(pytest -q)",) * 8, error="AssertionError"),
        )
        desk.now += timedelta(seconds=1)
    desk.alert("f" * 32, session_id="claude-00000000", level="terminate")
    assert 1_000 < len(encode_ladder(desk.state)) < TYPICAL


def test_what_is_kept_of_an_alert_is_enough_for_the_same_report() -> None:
    """Of an alert as the detectors make it, a repeated termination says what the first one said."""
    alert = an_alert("a", agent=Agent(name="n", role="r"), task=Task(repo="acme/shop"), count=2.5)
    kept = msgspec.structs.replace(kept_alert(alert, "s1"), session_id="s1", task_id="t1", guidance=alert.guidance)
    assert kept == alert


def test_paths_are_kept_as_far_as_there_is_room() -> None:
    """Policies choose by them: whole ones, the first kilobyte."""
    paths = ("a" * 512, "b" * 512, "c")
    assert kept_task(Task(paths=paths)).paths == paths[:2]
    assert kept_task(Task(paths=(*paths[:1], "b" * 511, "c"))).paths == (*paths[:1], "b" * 511, "c")


@given(parts=st.tuples(st.text(max_size=256), st.text(max_size=256), st.text(max_size=256)))
def test_labels_are_short_and_fit_into_a_list(parts: tuple[str, str, str]) -> None:
    """Nothing in one can be taken for the end of it, and it is never empty."""
    name = label(*parts)
    assert 0 < len(name.encode()) <= 160
    assert "," not in name
    assert name.isprintable()


# Any sequence


SESSIONS = ("s1", "s2", "s3")
texts = st.text(max_size=30)
agents = st.none() | st.builds(Agent, name=st.sampled_from(["a", "b"]), model=st.none() | texts)
tasks = st.none() | st.builds(Task, type=st.sampled_from(["bugfix", "docs"]), repo=st.none() | texts)
alert_steps = st.fixed_dictionaries(
    {
        "step": st.just("alert"),
        "session_id": st.sampled_from(SESSIONS),
        "level": st.sampled_from(get_args(Level)),
        "mode": st.sampled_from(get_args(Mode)),
        "scope": st.sampled_from(["session", "session", "task"]),
        "muted": st.sampled_from([False, False, False, True]),
        "detector": st.sampled_from(["identical", "analysis"]),
        "loop_id": st.sampled_from(["l1", "l2"]),
        "agent": agents,
        "task": tasks,
        "reasoning": texts,
        "guidance": texts,
        "suggested_strategy": st.sampled_from([None, "skip_subtask", "different_method"]),
        "evidence": st.builds(Evidence, calls=st.lists(texts, max_size=3).map(tuple), error=st.none() | texts),
    }
)
words = st.fixed_dictionaries(
    {
        "step": st.just("word"),
        "session_id": st.sampled_from(SESSIONS),
        "word": st.sampled_from(get_args(Word)),
        "answers": st.integers(0, 5),
    }
)
events = st.fixed_dictionaries(
    {
        "step": st.just("event"),
        "session_id": st.sampled_from(SESSIONS),
        "agent": agents,
        "task": tasks,
        "attempt": st.none() | st.builds(an_attempt, st.sampled_from(["failed", "success"]), derived=st.booleans()),
    }
)
waits = st.fixed_dictionaries(
    {"step": st.just("wait"), "seconds": st.sampled_from([0, 1, 59, 60, 301, 3_700, 90_000, -5_000])}
)
policies = st.builds(
    Ladder,
    order=st.permutations(RUNGS).flatmap(lambda order: st.integers(0, len(order)).map(lambda end: tuple(order[:end])))
    | st.just(RUNGS),
    warn_most=st.sampled_from(RUNGS),
    on_terminate=st.sampled_from(RUNGS),
    answer_attempts=st.integers(1, 3),
)
reloads = st.fixed_dictionaries({"step": st.just("reload"), "policy": policies})
sequences = st.lists(alert_steps | alert_steps | words | events | waits | reloads, max_size=40)

TOPICS = {
    Directive: topics.DIRECTIVES,
    Termination: topics.TERMINATIONS,
    KnownFlapping: topics.KNOWN_FLAPPING,
    Notification: topics.NOTIFICATIONS,
}


def ids(outputs: list[Output]) -> list[str]:
    """List what a person or orchestrator can answer."""
    found = []
    for output in outputs:
        found += [output.directive_id] if isinstance(output, Directive) else []
        found += [output.termination_id] if isinstance(output, Termination) else []
        found += [output.alert_id] if isinstance(output, Notification) else []
    return found


def play(desk: Desk, sequence: list[dict[str, Any]], *, twice: bool = False) -> list[list[Output]]:
    """Take the steps, and return what came of each; repeating each alert and word is to bring nothing more."""
    history: list[list[Output]] = []
    known = ["of nothing"]
    for number, each in enumerate(sequence):
        fields = dict(each)
        step = fields.pop("step")
        if step == "wait":
            outputs = desk.later(**fields)
        elif step == "reload":
            desk.policy, outputs = fields["policy"], []
        elif step == "alert":
            outputs = desk.alert(f"a{number}", **fields)
            if twice:
                assert desk.alert(f"a{number}", **fields) == []
        else:
            if step == "word":
                fields["answers"] = known[-1 - fields["answers"] % len(known)]
            outputs = desk.event(event_id=f"e{number}", **fields)
            if twice:
                assert desk.event(event_id=f"e{number}", **fields) == []
        history.append(outputs)
        known += ids(outputs)
    return history


COMMON = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@COMMON
@given(policy=policies, sequence=sequences)
def test_any_sequence_keeps_every_bound_and_the_contract(policy: Ladder, sequence: list[dict[str, Any]]) -> None:
    """Outputs decode as what they are, texts are capped, ids come once, and the state stays within its bounds."""
    desk = Desk(policy, reload=False)
    outputs = [output for step in play(desk, sequence) for output in step]
    for output in outputs:
        if isinstance(output, Cleared):
            continue
        assert decode(TOPICS[type(output)], encode(output)) == output
        if isinstance(output, Directive):
            assert 0 < len(output.text) <= MOST_TEXT
            assert output.expires_at > output.issued_at
        if isinstance(output, Termination):
            assert len(output.reason) <= MOST_REASON
    named = [output.notification_id for output in outputs if isinstance(output, Notification)]
    assert len(named) == len(set(named))
    directives = [output.directive_id for output in outputs if isinstance(output, Directive)]
    assert len(directives) == len(set(directives))
    state = desk.state
    assert decode_ladder(encode_ladder(state)) == state
    assert len(state.rotated) <= MAX_TRIED


@COMMON
@given(policy=policies, sequence=sequences)
def test_the_same_input_twice_gives_nothing_new(policy: Ladder, sequence: list[dict[str, Any]]) -> None:
    """Neither alerts nor words do anything when they come again at once."""
    play(Desk(policy), sequence, twice=True)


@COMMON
@given(policy=policies, sequence=sequences)
def test_a_restart_between_any_two_steps_changes_nothing(policy: Ladder, sequence: list[dict[str, Any]]) -> None:
    """What is kept is all that matters: the outputs are the same with the state stored and read after each step."""
    kept, stored = Desk(policy, reload=False), Desk(policy, reload=True)
    assert play(kept, sequence) == play(stored, sequence)
    assert kept.state == stored.state
    assert kept.tallies == stored.tallies


@COMMON
@given(policy=policies, sequence=sequences)
def test_what_is_due_is_never_in_the_past(policy: Ladder, sequence: list[dict[str, Any]]) -> None:
    """After the time was looked at, what is due next lies ahead, and looking again at once brings nothing."""
    desk = Desk(policy, reload=False)
    play(desk, sequence)
    desk.look()
    assert desk.due is None or desk.due > desk.now
    assert desk.look() == []


@COMMON
@given(policy=policies, sequence=sequences)
def test_after_a_week_of_silence_the_state_equals_a_fresh_one(policy: Ladder, sequence: list[dict[str, Any]]) -> None:
    """Whatever happened: every wait ends, each entry is taken out again, and nothing is left to be kept."""
    desk = Desk(policy, reload=False)
    history = play(desk, sequence)
    for _ in range(policy.answer_attempts + 5):
        history.append(desk.later(days=8))
    assert desk.state == LadderState()
    assert desk.due is None
    listed = [name for outputs in history for name in short(outputs) if name.split()[0] in {"list", "unlist"}]
    assert listed == [] or listed[-1] == "unlist t1"


@COMMON
@given(policy=policies, sequence=sequences)
def test_after_a_clearing_everything_begins_anew(policy: Ladder, sequence: list[dict[str, Any]]) -> None:
    """A person who clears a task finds it as if nothing had happened, whatever did."""
    desk = Desk(policy, reload=False)
    play(desk, sequence)
    desk.word("clear")
    assert desk.state == LadderState()


@COMMON
@given(policy=policies, sequence=sequences)
def test_no_ending_without_the_mode(policy: Ladder, sequence: list[dict[str, Any]]) -> None:
    """Where no alert has the mode enforce and no person asks, nothing is stopped or given up."""
    calm = [
        {**step, "mode": "warn"} if step["step"] == "alert" else step
        for step in sequence
        if step.get("word") != "terminate"
    ]
    named = [name.split()[0] for outputs in play(Desk(policy, reload=False), calm) for name in short(outputs)]
    assert not {"abandon", "skip_subtask", "stop", "list"} & set(named)


def test_times_are_exact() -> None:
    """A pending termination keeps its time to the microsecond, and milliseconds are not one short by rounding."""
    at = datetime(2026, 12, 1, 3, 0, 0, 123_457, tzinfo=UTC)
    state = LadderState(task_id="t")
    desk = Desk(now=at, state=state, reload=True)
    desk.alert("a", level="terminate")
    pending = desk.state.climbs["s1"].pending
    assert isinstance(pending, Pending)
    assert pending.issued_at == at
    assert pending.due_ms == (int(NOW.timestamp()) + 60) * 1_000 + 123
