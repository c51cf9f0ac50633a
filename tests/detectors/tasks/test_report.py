"""What a session tells its task: attempts, reviews and words at once, spending now and then, and everything once."""

import msgspec
import pytest

from detectors import Limits, SessionState, limits_from, step
from detectors.tasks.facts import Spent
from detectors.who import NAME_BYTES
from schemas.common import Agent, Task, Usage
from schemas.testing import at, control, fix_attempt, review, session_event, tool_call

T1 = Task(id="T1", repo="acme/shop")
WORDS = ("resume", "reset", "clear", "false_alarm", "obeyed", "refused", "ended", "terminate")
UNSAID = ("mode", "force")


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
def test_what_people_say_of_a_session_alone_is_told_whatever_was_told_before(told, action):
    """Somebody waits for the answer, also where there were no attempts, or no events at all."""
    (event,) = told(control(0, action, answers="a1"))
    assert (event.word, event.answers, event.session_id, event.task_id) == (action, "a1", "s1", "s1")
    assert told(fix_attempt(0, "round"), control(60, action))[-1].word == action


@pytest.mark.parametrize("action", WORDS)
@pytest.mark.parametrize("before", [[], [tool_call(0)], [tool_call(0, task=Task(repo="acme/shop"))]])
def test_a_word_goes_to_the_task_that_it_names_and_says_nothing_of_the_session(told, action, before):
    """Whether the session named none or was never seen: the next word without a task goes to the session's own."""
    assert told(*before, control(60, action, task=T1))[-1].task_id == "T1"
    assert told(*before, control(60, action, task=T1), control(61, action))[-1].task_id == "s1"


@pytest.mark.parametrize("action", WORDS)
def test_a_word_for_another_task_leaves_the_session_with_its_own(told, action):
    """It is told with what it says of that task, and without what the session spent on its own."""
    turn = session_event(0, "turn", usage=Usage(input_tokens=10), task=T1)
    other = Task(id="T2", repo="r" * (NAME_BYTES + 1))
    *_, word, end = told(turn, control(1, action, answers="a1", task=other), fix_attempt(2, "round"))
    assert (word.task_id, word.task.repo, word.spent) == ("T2", "r" * NAME_BYTES, Spent())
    assert (end.task_id, end.task) == ("T1", T1)
    assert end.spent.tokens == 10


def test_a_word_is_told_with_who_said_it_why_and_until_when(told):
    """Who acts on it says so."""
    bare, full = told(
        control(0, "terminate"),
        control(1, "terminate", actor="mira", reason="It deletes data.", expires_at=at(3_600)),
    )
    assert (bare.actor, bare.reason, bare.until_ms) == ("", "", None)
    assert (full.actor, full.reason) == ("mira", "It deletes data.")
    assert full.until_ms == full.at_ms + 3_599_000


@pytest.mark.parametrize("action", sorted({*WORDS} - {"ended"}))
def test_words_tell_what_was_spent_only_where_the_task_keeps_account(told, action):
    """A session without a task tells it with its attempts, all of it."""
    turns = [session_event(n, "turn", usage=Usage(input_tokens=10)) for n in range(3)]
    word, attempt = told(*turns, control(60, action), fix_attempt(2, "round"))[-2:]
    assert (word.spent, attempt.spent.tokens) == (Spent(), 30)
    word, attempt = told(*turns, control(60, action, task=T1), fix_attempt(2, "round"))[-2:]
    assert (word.spent, attempt.spent.tokens) == (Spent(), 30), "it names another task than the session's own"
    turns = [msgspec.structs.replace(turn, task=T1) for turn in turns]
    word, attempt = told(*turns, control(60, action), fix_attempt(2, "round"))[-2:]
    assert (word.spent.tokens, attempt.spent.tokens) == (30, 0)


@pytest.mark.parametrize(
    ("budget", "wanted"),
    [
        ({}, [10, 20, 30]),
        ({"attempts": 5}, [10, 20, 30]),  # these are told as they are made
        ({"soft_share": 0.5}, [10, 20, 30]),
        *(({name: 1_000}, [1, 2, 4, 8, 16, 26]) for name in ("calls", "turns", "tokens", "cost_usd", "wall_s")),
        ({"calls": 1_000, "every": 3}, [1, 2, 4, 7, 10, 13, 16, 19, 22, 25, 28]),
    ],
)
def test_where_a_budget_is_set_short_sessions_tell_what_they_spend(told, budget, wanted):
    """When it has doubled, up to the usual step: else a task of sessions of nine calls each would spend nothing."""
    limits = limits_from([("test", {"task_budget": budget})])
    events = told(*(tool_call(n, task=T1, arguments={"command": f"./c{n}"}) for n in range(30)), limits=limits)
    assert [n for n, event in enumerate(events, 1) if event] == wanted
    assert sum(event.spent.calls for event in events if event) == wanted[-1]


@pytest.mark.parametrize("action", UNSAID)
def test_what_is_the_sessions_own_business_is_not_told(told, action):
    """Modes."""
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


@pytest.mark.parametrize("usage", [Usage(input_tokens=10), Usage(cost_usd=0.5)])
@pytest.mark.parametrize("end", [session_event(40, "ended"), control(40, "ended")])
def test_a_session_without_a_task_tells_what_it_cost_at_its_end(told, usage, end):
    """Once, and all of it: what agents and models cost is counted by that."""
    *rest, event, again = told(*(tool_call(n, usage=usage) for n in range(40)), end, session_event(41, "ended"))
    assert not any(rest)
    wanted = 40 * (usage.input_tokens or 0), 40 * (usage.cost_usd or 0)
    assert (event.task_id, event.spent.tokens, event.spent.cost) == ("s1", *wanted)
    assert again is None


def test_a_session_without_a_task_that_told_attempts_tells_the_rest_at_its_end(told):
    """Its task keeps account since then, whether or not usage is sent."""
    *_, event = told(fix_attempt(0, "round"), tool_call(60), tool_call(61), session_event(62, "ended"))
    assert (event.spent.calls, event.word, event.attempt) == (2, None, None)


def test_an_event_that_only_names_its_task_leaves_the_rest_as_it_was_said(told):
    """So that it takes the session out of no rule; another task is another one, and says all of itself."""
    full = Task(id="T1", repo="acme/shop", type="bugfix", paths=("auth/login.py",))
    only_id = told(tool_call(0, task=full), fix_attempt(1, "round", task=Task(id="T1")))[-1]
    no_id = told(tool_call(0, task=full), fix_attempt(1, "round", task=Task(ref="main")))[-1]
    other = told(tool_call(0, task=full), fix_attempt(1, "round", task=Task(id="T2")))[-1]
    assert only_id.task == full
    assert no_id.task == msgspec.structs.replace(full, ref="main")
    assert other.task == Task(id="T2")
