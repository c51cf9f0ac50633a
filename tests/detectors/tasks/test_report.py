"""What a session tells its task: attempts, reviews and words at once, spending now and then, and everything once."""

import pytest

from detectors import Limits, SessionState, step
from detectors.tasks.facts import Spent
from schemas.common import Agent, Task, Usage
from schemas.testing import at, control, fix_attempt, review, session_event, tool_call

T1 = Task(id="T1", repo="acme/shop")
WORDS = ("resume", "reset", "false_alarm")
UNSAID = ("mode", "force", "obeyed", "refused", "ended")


@pytest.fixture
def told():
    """Give what plays events of one session and gives what each tells its task."""

    def play(*events, limits=None):
        state = SessionState()
        return [step(state, event, limits or Limits()).task_event for event in events]

    return play


def test_an_attempt_is_told_with_who_and_what_was_spent_up_to_it(told):
    """What the calls before it consumed belongs to it."""
    agent = Agent(role="code", model="m1")
    usage = Usage(input_tokens=100, output_tokens=20, cost_usd=0.5)
    calls = [tool_call(n, usage=usage, agent=agent, task=T1) for n in range(3)]
    *_, event = told(*calls, fix_attempt(1, "round the total", usage=usage))
    assert (event.event_id, event.session_id, event.task_id) == ("s1-attempt-1", "s1", "T1")
    assert (event.agent, event.task) == (agent, T1)
    assert event.attempt.attempt_id == "attempt-1"
    assert event.at_ms == event.attempt.at_ms
    assert event.spent == Spent(3, 0, 480, 2.0, 60_000, metered=True, priced=True)
    assert event.review is event.word is None


def test_without_a_task_the_session_is_the_task(told):
    """The contract's default."""
    (event,) = told(review(0))
    assert (event.task_id, event.task) == ("s1", None)


def test_what_was_told_is_not_told_again(told):
    """The sum of all that is told is what was spent."""
    turn = Usage(input_tokens=10)
    events = told(
        session_event(0, "turn", usage=turn, task=T1),
        fix_attempt(1, "round"),
        session_event(90, "turn", usage=turn),
        fix_attempt(2, "cache"),
        fix_attempt(3, "sort"),
    )
    assert [(event.spent.turns, event.spent.tokens, event.spent.wall_ms) for event in events if event] == [
        (1, 10, 60_000),
        (1, 10, 60_000),
        (0, 0, 60_000),
    ]


@pytest.mark.parametrize("action", WORDS)
def test_what_people_say_of_a_task_with_a_name_is_told(told, action):
    """Another session may have tried it."""
    (event,) = told(control(0, action, task=T1, answers="a1"))
    assert (event.word, event.answers, event.task_id) == (action, "a1", "T1")


@pytest.mark.parametrize("action", WORDS)
def test_what_people_say_of_a_session_alone_is_told_once_there_was_something_to_speak_of(told, action):
    """Most sessions have no attempts, and their tasks no state."""
    assert told(control(0, action)) == [None]
    assert told(fix_attempt(0, "round"), control(60, action))[-1].word == action


@pytest.mark.parametrize("action", UNSAID)
def test_what_is_the_sessions_own_business_is_not_told(told, action):
    """Modes, and answers to directives."""
    assert told(control(0, action, task=T1, mode="explore" if action == "mode" else None)) == [None]


@pytest.mark.parametrize(
    ("events", "wanted"),
    [
        ([fix_attempt(0, "round"), session_event(60, "user_message")], None),  # it sends attempts of its own
        ([review(0), session_event(3_600, "user_message")], "user_message"),
        ([session_event(60, "user_message", task=T1)], None),  # nothing was derived yet
    ],
)
def test_a_message_of_the_user_is_told_where_attempts_may_have_been_derived(told, events, wanted):
    """Only these does it set back."""
    event = told(*events)[-1]
    assert (event.word if event else None) == wanted


def test_a_message_of_the_user_is_not_told_where_it_clears_nothing(told):
    """A setting."""
    limits = Limits()
    assert told(review(0), session_event(3_600, "user_message"), limits=limits)[-1] is not None
    keeps = Limits(decision=type(limits.decision)(user_message_clears=False))
    assert told(review(0), session_event(3_600, "user_message"), limits=keeps)[-1] is None


@pytest.mark.parametrize(
    "repeat",
    [
        fix_attempt(0, "round", sequence=5, event_id="other"),  # not above the highest of its kind
        fix_attempt(0, "round", sequence=5),
        fix_attempt(0, "round", occurred_at=at(-4_000), event_id="old"),  # more than an hour late
    ],
)
def test_what_comes_twice_or_much_too_late_is_not_told(told, repeat):
    """The session's own rule, for every kind of event."""
    events = told(fix_attempt(0, "round", sequence=5), repeat)
    assert [event is not None for event in events] == [True, False]


def test_long_identifiers_are_told_as_digests_and_the_tasks_own_in_full(told):
    """The task's is a key; the others are for people, and a loop has a dozen of them."""
    long = "x" * 256
    event, other = told(
        fix_attempt(0, "round", event_id=long, attempt_id=long, task=Task(id=long)),
        fix_attempt(1, "round", event_id=f"{long[1:]}y", attempt_id=f"{long[1:]}y"),
    )
    assert event.task_id == long
    assert len(event.event_id) == len(event.attempt.attempt_id) == 16
    assert event.event_id != other.event_id
    assert event.attempt.attempt_id != other.attempt.attempt_id


def test_calls_alone_are_told_only_by_sessions_that_name_their_task(told):
    """Ten calls and turns by default, and what is left at the end."""
    calls = [tool_call(n, task=T1) for n in range(12)]
    events = told(*calls, session_event(12, "ended"), session_event(12, "ended", event_id="again"))
    assert [n for n, event in enumerate(events) if event] == [9, 12]
    assert [event.spent.calls for event in events if event] == [10, 2]
    assert not any(told(*(tool_call(n) for n in range(40)), session_event(40, "ended")))
