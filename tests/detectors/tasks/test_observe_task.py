"""A task's events, in whatever order they come: counted once, over all sessions, forgotten in time, never a crash."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detectors import Limits, TaskState, decode_task, encode_task, observe_task, step
from detectors.state import SessionState
from detectors.tasks.observe import TASK_DETECTORS
from schemas.common import Task, Usage
from schemas.events import ReviewFinding
from schemas.testing import at, control, fix_attempt, review, session_event
from tests.detectors.tasks.conftest import Player
from tests.detectors.tasks.test_derive import change, green, red
from tests.detectors.traces import found

T1 = Task(id="T1")
DAY_S = 86_400
ALONE = {"off": ["circular_fix", "approach_churn", "state_cycle", "flaky_tests"]}


def tries(count, start=0, **fields):
    """Return failed attempts, each in words of its own."""
    return [fix_attempt(start + n, f"{'bcdfghjklmnpqrst'[n] * 6} it", **fields) for n in range(count)]


def test_attempts_of_several_sessions_are_those_of_one_task(heard):
    """Two sessions try three times each, under the same ids: six in all."""
    events = [event for name in ("one", "two") for event in tries(3, session_id=name, task=T1)]
    alerts = heard(events, ALONE)
    assert [(alert.detector, alert.task_id, alert.session_id, alert.seq) for alert in alerts] == [
        ("too_many_attempts", "T1", "two", 5)
    ]
    assert not heard([event for name in ("one", "two") for event in tries(3, session_id=name)], ALONE)


def test_an_attempt_that_is_told_twice_counts_once(player):
    """By another event, after a retry of its producer: its id within its session is what it is."""
    game = player(ALONE)
    again = [msgspec.structs.replace(event, event_id=f"{event.event_id}-again") for event in tries(5)]
    assert not game.play([*tries(5), *again])
    assert (game.tasks["s1"].tried, game.tasks["s1"].failed, game.tasks["s1"].steps) == (5, 5, 5)


def test_attempts_that_did_not_fail_for_a_reason_of_their_own_are_no_failed_ones(player):
    """Given up untried, better than before, and an outage."""
    game = player()
    game.play(
        [
            fix_attempt(0, "cache", outcome="partial"),
            fix_attempt(1, "round", outcome="skipped"),
            fix_attempt(2, "sort", error_message="503 Service Unavailable"),
            fix_attempt(3, "quote", error_message="ValueError: 503 rows"),
        ]
    )
    assert (game.tasks["s1"].tried, game.tasks["s1"].failed) == (4, 1)


def test_one_event_dated_far_ahead_forgets_nothing(player):
    """How long nothing was heard of a task is for its keeper to say, whose clock is no producer's."""
    game = player(ALONE)
    game.play(tries(5, task=T1))
    ahead = fix_attempt(9, "quote it", occurred_at=at(400 * DAY_S), session_id="s2", task=T1)
    assert [alert.detector for alert in game.play([ahead])] == ["too_many_attempts"]
    assert game.tasks["T1"].tried == 6


@pytest.mark.parametrize(("later", "counted"), [(12, 0), (13, 1), (15, 3)])
def test_a_word_dated_far_ahead_settles_a_dozen_attempts_at_most(player, later, counted):
    """Else one clock that is wrong would blind the task for as long as it is ahead."""
    game = player()
    game.play([fix_attempt(-1), control(400 * DAY_S, "resume")])
    game.play(tries(later))
    assert game.tasks["s1"].tried == counted


OTHERS = ("obeyed", "refused", "ended", "terminate")
SETTLING = ("resume", "reset", "clear")


@pytest.mark.parametrize("action", OTHERS)
def test_what_becomes_of_a_session_is_no_matter_of_detection(player, action):
    """Of what is known of its task nothing changes but the time, and what is found next is the same."""
    plain, game, word = player(ALONE), player(ALONE), control(4_000, action, answers="a1")
    for each in (plain, game):
        each.play([*tries(5, task=T1), review(0)])
    game.play([word])
    before, after = plain.tasks["T1"], game.tasks["T1"]
    wall = msgspec.structs.replace(before.spent, wall_ms=after.spent.wall_ms)
    assert after == msgspec.structs.replace(before, spent=wall, last_ms=after.last_ms)
    more = [fix_attempt(100, "quote it")]
    assert found(game.play(more)) == found(plain.play(more)) != []


@pytest.mark.parametrize("task", [None, T1])
@pytest.mark.parametrize("action", [*OTHERS, "false_alarm"])
def test_no_state_is_kept_of_a_task_for_the_sake_of_such_a_word(player, task, action):
    """There are many sessions, of most of which there is nothing to watch."""
    game = player()
    game.play([control(0, action, task=task, answers="a1")])
    assert game.tasks == {task.id if task else "s1": TaskState()}


@pytest.mark.parametrize("action", SETTLING)
def test_what_settles_is_remembered_of_named_tasks_alone(player, action):
    """Of these, what was tried in other sessions may be read later; a session without one has only its own events."""
    game = player()
    game.play([control(0, action), control(0, action, session_id="s2", task=T1)])
    assert game.tasks["s1"] == TaskState()
    assert game.tasks["T1"].settled_ms > 0


def test_what_a_session_without_a_task_cost_is_remembered_by_itself(player):
    """Its task has nothing to watch, unless there were attempts."""
    game, usage = player(), Usage(input_tokens=10)
    game.play([session_event(0, "turn", usage=usage), session_event(1, "ended")])
    assert game.tasks == {"s1": TaskState()}
    game.play([session_event(2, "turn", usage=usage), fix_attempt(1), session_event(70, "ended")])
    assert game.tasks["s1"].spent.tokens == 10


def test_an_event_is_as_it_was_after_it_was_applied():
    """The same one may be played under several limits."""
    told = step(SessionState(), fix_attempt(1, "cache it", diff="+a\n", files=("a.py",)), Limits()).task_event
    assert told is not None
    before, state = encode_task(told), TaskState()
    observe_task(state, told, Limits())
    assert encode_task(told) == before
    assert state.attempts[0].number == 1


@pytest.mark.parametrize("known", [True, False])
def test_a_pull_request_that_is_closed_settles_nothing_but_its_reviews(player, known):
    """What was tried may be tried again in the next one; only a merge is an end."""
    game = player({"task_budget.attempts": 6})
    opened = [review(1, pull_request="acme/shop#9")] if known else []
    game.play([*tries(3), *opened, review(2, "closed", pull_request="acme/shop#9")])
    task = game.tasks["s1"]
    assert (task.tried, len(task.attempts), task.pulls) == (3, 3, [])
    assert [alert.level for alert in game.play(tries(3, start=10)) if alert.detector == "task_budget"][
        -1
    ] == "terminate"
    game.play([review(3, "merged", pull_request="acme/shop#10")])
    assert game.tasks["s1"].empty


def test_a_success_forgets_the_task_and_what_comes_after_begins_anew(player):
    """Its history is settled, and nothing of it has to be remembered."""
    game = player(ALONE)
    game.play([*tries(5), fix_attempt(5, "done", outcome="success")])
    assert game.tasks["s1"].empty
    assert not game.play([fix_attempt(n, f"{'vwxz'[n - 6] * 6} it") for n in range(6, 10)])


@pytest.mark.parametrize("outcome", ["success", "failed"])
def test_a_success_under_review_forgets_attempts_and_no_rounds(player, outcome):
    """The review says whether it was one."""
    game = player(ALONE)
    game.play([review(0), *tries(3), fix_attempt(5, "done", outcome=outcome)])
    task = game.tasks["s1"]
    assert bool(task.attempts) == (outcome == "failed")
    assert [pull.rounds for pull in task.pulls] == [1]


def test_a_green_check_leaves_attempts_that_were_sent_by_others(player):
    """Another session's word is not refuted by a run in this one."""
    game = player()
    quiet = [change(), red("test_a.py::test_a"), green()]
    quiet = [
        msgspec.structs.replace(call, session_id="s2", event_id=f"s2-{n}", occurred_at=at(n), task=T1)
        for n, call in enumerate(quiet)
    ]
    game.play([*tries(2, task=T1), *quiet])
    assert [attempt.derived for attempt in game.tasks["T1"].attempts] == [False, False]


def test_a_message_of_the_user_keeps_what_is_under_watch_beside_the_attempts(heard):
    """A budget that was spoken of is not spoken of again since what was derived is dropped."""
    calls = [change(), red("test_a.py::test_a"), change("x", "y"), red("test_a.py::test_a")]
    calls = [
        msgspec.structs.replace(call, event_id=f"s1-{n}", occurred_at=at(n), task=T1) for n, call in enumerate(calls)
    ]
    limits = {"task_budget.attempts": 2, "task_budget.soft_share": 1, "off": ["diff_reversal", "state_cycle"]}
    spent = found(heard([*calls, session_event(5, "user_message")], limits))
    assert spent == [("terminate", "task_budget", 1)]
    more = [change("p", "q"), red("test_b.py::test_b"), change("r", "s"), red("test_c.py::test_c")]
    more = [msgspec.structs.replace(call, event_id=f"s1-{n}", occurred_at=at(n)) for n, call in enumerate(more, 6)]
    assert found(heard([*calls, session_event(5, "user_message"), *more], limits), "task_budget") == spent


def test_events_of_two_sessions_with_equal_ids_give_alerts_with_ids_of_their_own(heard):
    """Ids that a producer counts within its session."""
    limits = {"task_budget.attempts": 1, "warn_only": ["task_budget"]}
    events = [fix_attempt(n, f"{'bcdf'[n] * 6} it", event_id="1", session_id=f"s{n}", task=T1) for n in range(4)]
    alerts = heard(events, limits)
    assert [alert.count for alert in alerts] == [1, 2, 4]
    assert len({alert.alert_id for alert in alerts}) == 3


def test_names_of_detectors_are_told_apart():
    """Limits, loops and alerts go by them."""
    names = [detector.NAME for detector in TASK_DETECTORS]
    assert len(set(names)) == len(names) == 10
    assert all(hasattr(Limits(), name) for name in names)


approaches = st.sampled_from([None, "cache the totals", "cache all totals", "sort the rows", "quote the name twice"])
diffs = st.sampled_from([None, "-a = 1\n+a = 2\n", "-a = 2\n+a = 1\n", "-b = 1\n+b = 5\n"]).map(
    lambda lines: lines and f"--- a/src/cart.py\n+++ b/src/cart.py\n@@ -3 +3 @@\n{lines}"
)
attempts = st.builds(
    fix_attempt,
    st.integers(0, 30),
    approaches,
    diff=diffs,
    files=st.sampled_from([(), ("src/cart.py",), ("src/cart.py", "src/order.py")]),
    outcome=st.sampled_from(["failed"] * 9 + ["success", "partial", "skipped"]),
    error_message=st.sampled_from([None, "ValueError: a", "TypeError: b", "503 Service Unavailable"]),
    failing=st.sampled_from([(), ("t::a",), ("t::b",), ("t::a", "t::b")]),
    state_digest=st.sampled_from([None, "d1", "d2"]),
    usage=st.none() | st.builds(Usage, input_tokens=st.integers(0, 2**63 - 1), cost_usd=st.sampled_from([0.5, 1e300])),
)
remarks = st.sampled_from([(), (ReviewFinding(text="Escape it."),), (ReviewFinding(id="1", path="a", text="No."),)])
reviews = st.builds(
    review,
    st.integers(0, 1),
    st.sampled_from(["changes_requested"] * 6 + ["approved", "commented", "merged", "closed"]),
    author=st.sampled_from(["agent", "agent", "person"]),
    findings=remarks,
    comments_total=st.none() | st.sampled_from([1, 21, 50, 2**63 - 1]),
    pull_request=st.sampled_from(["a#1", "a#2"]),
)
words = st.builds(
    control,
    st.just(0),
    st.sampled_from(["resume", "reset", "clear", "false_alarm", "obeyed", "refused", "ended", "terminate"]),
    answers=st.just("a1"),
)
turns = st.builds(session_event, st.just(0), st.sampled_from(["turn", "user_message", "ended"]))
stories = st.lists(
    st.tuples(st.one_of(attempts, attempts, attempts, reviews, words | turns), st.sampled_from(["s1", "s2"])),
    max_size=24,
)
BUDGETED = msgspec.structs.replace(
    Limits(), task_budget=type(Limits().task_budget)(attempts=9, turns=4, tokens=10**9, cost_usd=9.0, wall_s=900.0)
)


def laid_out(story):
    """Return the events a minute after one another, each with an id of its own."""
    return [
        msgspec.structs.replace(event, event_id=f"e{n}", session_id=session, occurred_at=at(60 * n), task=T1)
        for n, (event, session) in enumerate(story)
    ]


@settings(max_examples=60, deadline=None)
@given(stories)
def test_whatever_is_told_levels_follow_one_another_and_ids_are_unique(story):
    """A recovery only of what was warned about, a terminate only after a warning unless the limit is a hard one."""
    alerts = Player(BUDGETED).play(laid_out(story))
    assert len({alert.alert_id for alert in alerts}) == len(alerts)
    warned = set()
    for alert in alerts:
        if alert.level == "warn":
            warned.add(alert.loop_id)
        elif alert.level == "recovered":
            assert alert.loop_id in warned
            warned.remove(alert.loop_id)
        elif alert.level == "terminate":
            assert alert.loop_id in warned or alert.detector == "task_budget"
            warned.discard(alert.loop_id)
    assert msgspec.json.decode(msgspec.json.encode(alerts)) is not None


@settings(max_examples=40, deadline=None)
@given(stories)
def test_states_that_were_stored_in_between_give_the_same_alerts(story):
    """After each event the task's state and the event itself go through their compact forms, as over a restart."""
    events = laid_out(story)
    wanted = Player(BUDGETED).play(events)
    sessions: dict[str, SessionState] = {}
    task, alerts = TaskState(), []
    for event in events:
        told = step(sessions.setdefault(event.session_id, SessionState()), event, BUDGETED).task_event
        if told is not None:
            alerts += observe_task(task, decode_task(encode_task(told), type(told)), BUDGETED)
            task = TaskState() if task.empty else decode_task(encode_task(task), TaskState)
    assert alerts == wanted


@settings(max_examples=40, deadline=None)
@given(stories)
def test_what_comes_twice_changes_nothing(story):
    """A redelivery of everything: at the latest the session knows."""
    events = laid_out(story)
    twice = [each for event in events for each in (event, event)]
    once, again = Player(BUDGETED), Player(BUDGETED)
    assert once.play(events) == again.play(twice)
    assert once.tasks == again.tasks


@pytest.mark.parametrize("fields", [{"outcome": "skipped"}, {"error_message": "HTTP 503: service unavailable"}])
def test_what_was_not_tried_neither_breaks_a_loop_nor_takes_room(heard, player, fields):
    """A dozen outages, or parts given up untried, between two attempts leave everything as it was; they are counted."""
    tries = [fix_attempt(n, ("cache the totals", "sort every row")[n % 2], files=("cart.py",)) for n in range(4)]
    between = [fix_attempt(10 + n, "wait", **fields) for n in range(13)]
    later = [fix_attempt(30 + n, ("cache the totals", "sort every row")[n % 2], files=("cart.py",)) for n in range(2)]
    seen = [(alert.level, alert.detector) for alert in heard([*tries, *later])]
    assert [(alert.level, alert.detector) for alert in heard([*tries, *between, *later])] == seen
    game = player()
    game.play([*tries, *between])
    assert (game.tasks["s1"].tried, len(game.tasks["s1"].attempts)) == (17, 4)
