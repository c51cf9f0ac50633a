"""Review ping-pong: rounds are counted until somebody decides, and a remark that does not go away is told at once."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detectors import Limits, TaskState
from schemas.common import Task
from schemas.events import ReviewFinding, SessionInput
from schemas.testing import at, fix_attempt, review
from tests.detectors.tasks.conftest import Player
from tests.detectors.traces import found, reached

BY_PERSON = {"author": "person"}


def remarks(*texts, path="src/cart.py"):
    """Return remarks without ids, about one file."""
    return tuple(ReviewFinding(path=path, text=text) for text in texts)


def asked(count, **fields):
    """Return so many rounds of an agent that ask for changes."""
    return [review(n, **fields) for n in range(count)]


def levels(alerts):
    """Return the levels of what is alerted of ping-pong."""
    return [alert.level for alert in alerts if alert.detector == "ping_pong"]


@pytest.mark.parametrize(
    ("rounds", "limits", "wanted"),
    [
        (2, {}, []),
        (3, {}, ["warn"]),
        (4, {}, ["warn"]),
        (5, {}, ["warn", "terminate"]),
        (9, {}, ["warn", "terminate"]),
        (1, {"ping_pong.warn": 2}, []),
        (2, {"ping_pong.warn": 2}, ["warn"]),
        (6, {"ping_pong.terminate": 7}, ["warn", "warn"]),  # again at double the count
        (7, {"ping_pong.terminate": 7}, ["warn", "warn", "terminate"]),
    ],
)
def test_rounds_that_ask_for_changes_warn_and_terminate_at_their_limits(heard, rounds, limits, wanted):
    """Flapping and convergence: 3 and 5."""
    alerts = heard(asked(rounds), limits)
    assert levels(alerts) == wanted
    assert all(alert.pattern == "review_ping_pong" for alert in alerts)


@pytest.mark.parametrize(
    "settling",
    [
        review(10, "approved"),
        review(10, "approved", **BY_PERSON),
        review(10, "changes_requested", **BY_PERSON),
    ],
)
def test_an_approval_or_a_persons_decision_sets_the_rounds_back(heard, settling):
    """Four rounds, the decision, four rounds: without it there would be eight."""
    alerts = heard([*asked(4), settling, *(review(n) for n in range(11, 15))])
    assert levels(alerts) == ["warn", "recovered", "warn"]
    assert "a review settled it" in alerts[1].reasoning


@pytest.mark.parametrize("author", ["person", "agent"])
def test_a_mere_comment_neither_adds_nor_sets_back(heard, author):
    """Whoever makes it: nobody has decided anything."""
    alerts = heard([*asked(2), review(10, "commented", author=author), *(review(n) for n in range(11, 14))])
    assert found(alerts) == [("warn", "ping_pong", 3), ("terminate", "ping_pong", 5)]


@pytest.mark.parametrize("verdict", ["merged", "closed"])
def test_the_end_of_the_only_pull_request_ends_its_loops_and_a_merge_the_task(player, verdict):
    """Nothing is kept of what was merged: attempts, rounds, loops, what was spent."""
    game = player()
    alerts = game.play([fix_attempt(1, "cache the totals"), *asked(3), review(9, verdict)])
    assert levels(alerts) == ["warn", "recovered"]
    assert f"the pull request was {verdict}" in alerts[-1].reasoning
    (task,) = game.tasks.values()
    assert task.empty == (verdict == "merged")
    assert (task.pulls, task.loops) == ([], [])
    assert not levels(game.play([review(n) for n in range(10, 12)]))


@pytest.mark.parametrize(("apart_s", "rounds"), [(120, 1), (121, 3)])
def test_several_reviewers_of_one_round_are_one_round(player, apart_s, rounds):
    """They come at once, with nothing tried in between, where rounds have no numbers."""
    game = player()
    alerts = game.play([review(n, occurred_at=at(n * apart_s)) for n in range(3)])
    assert game.tasks["s1"].pulls[0].rounds == rounds
    assert bool(levels(alerts)) == (rounds == 3)


def test_an_attempt_between_two_reviews_begins_a_round(player):
    """However quick it was."""
    game = player()
    events = [event for n in range(3) for event in (fix_attempt(n, occurred_at=at(n)), review(n, occurred_at=at(n)))]
    game.play(events)
    assert game.tasks["s1"].pulls[0].rounds == 3


def test_a_task_under_review_is_not_empty(player):
    """Else the rounds so far would be lost."""
    game = player()
    game.play(asked(1))
    (task,) = game.tasks.values()
    assert not task.empty
    assert TaskState().empty


def test_a_settled_remark_that_comes_back_warns_at_once(heard):
    """In the third round, before the limit of rounds counts."""
    first, second = remarks("The total ignores discounts."), remarks("The loop reads one row too many.")
    rounds = [review(n, findings=findings) for n, findings in enumerate((first, second, first))]
    alerts = heard(rounds, {"ping_pong.warn": 4})
    assert reached(alerts, "ping_pong") == [("warn", "ping_pong.returned_warn", 2)]
    assert alerts[0].evidence.calls == ("The total ignores discounts.",)
    assert alerts[0].evidence.event_ids == ("s1-review-0", "s1-review-1", "s1-review-2")
    assert not heard(rounds[:2], {"ping_pong.warn": 4})


@pytest.mark.parametrize(
    "between",
    [(), tuple(ReviewFinding(path="src/cart.py", text=f"Escape name {n}.") for n in range(400))],
)
def test_a_round_that_does_not_say_all_settles_nothing(heard, between):
    """One that names no remarks, and one with more than are remembered, of which those from before are some."""
    first = tuple(ReviewFinding(path="src/cart.py", text=f"Escape name {n}.") for n in range(40))
    rounds = [review(n, findings=findings) for n, findings in enumerate((first, between, first))]
    assert not heard(rounds, {"ping_pong.warn": 5, "ping_pong.unfixed_warn": 3})


@pytest.mark.parametrize(("numbers", "wanted"), [((1, 2, 3), ["warn"]), ((1, 2), []), ((None, None), ["warn"])])
def test_reviews_of_several_agents_are_one_round_when_their_numbers_agree(heard, numbers, wanted):
    """Two of them look at each state of the change; without numbers each review counts."""
    rounds = [review(2 * n + each, round=number) for n, number in enumerate(numbers) for each in range(2)]
    assert levels(heard(rounds)) == wanted


def test_what_only_one_of_several_agents_remarks_is_not_settled_by_the_other(heard):
    """Each has remarks of its own, the same ones in both rounds: none came back, and both are still there."""
    one, other = remarks("Escape the name."), remarks("Name the constant.")
    said = [(1, one), (1, other), (2, other), (2, one), (3, one), (3, other)]
    rounds = [review(n, round=number, findings=findings) for n, (number, findings) in enumerate(said)]
    limits = {"ping_pong.warn": 5}
    assert not heard(rounds[:4], limits)
    alerts = heard(rounds, limits)
    assert reached(alerts, "ping_pong") == [("warn", "ping_pong.unfixed_warn", 4)]
    gone = [*rounds[:3], review(9, round=3, findings=one)]
    assert reached(heard(gone, limits), "ping_pong") == [("warn", "ping_pong.returned_warn", 3)]


@pytest.mark.parametrize(("limit", "wanted"), [(1, True), (2, True), (3, False)])
def test_how_many_remarks_must_come_back_is_a_limit(heard, limit, wanted):
    """Two come back here."""
    both = remarks("The total ignores discounts.", "The loop reads one row too many.")
    rounds = [review(n, findings=findings) for n, findings in enumerate((both, remarks("Name the constant."), both))]
    alerts = heard(rounds, {"ping_pong.warn": 5, "ping_pong.returned_warn": limit})
    assert bool(reached(alerts, "ping_pong.returned_warn")) == wanted


@pytest.mark.parametrize(
    ("rounds", "limit", "wanted"),
    [(2, 2, False), (3, 2, True), (3, 3, False), (4, 3, True), (1, 1, False), (2, 1, True)],
)
def test_a_remark_that_further_rounds_make_again_warns(heard, rounds, limit, wanted):
    """By default two further ones; beside it the agent does other things."""
    events = [review(n, findings=remarks("Escape the name.", f"Word number {'abcd'[n] * 4}.")) for n in range(rounds)]
    alerts = heard(events, {"ping_pong.warn": 5, "ping_pong.unfixed_warn": limit})
    assert bool(reached(alerts, "ping_pong.unfixed_warn")) == wanted
    assert all(alert.count == limit for alert in alerts)
    assert all(alert.evidence.calls == ("Escape the name.",) for alert in alerts)


def test_a_remark_is_known_by_its_id_whatever_its_words(heard):
    """The reviewer's own word on what is the same remark."""
    rounds = [review(n, findings=(ReviewFinding(id="R7", text=f"{'abc'[n] * 5} words"),)) for n in range(3)]
    assert reached(heard(rounds, {"ping_pong.warn": 5}), "ping_pong") == [("warn", "ping_pong.unfixed_warn", 2)]


def test_remarks_with_other_ids_are_others_whatever_their_words(heard):
    """Likewise."""
    rounds = [review(n, findings=(ReviewFinding(id=f"R{n}", text="Escape the name."),)) for n in range(3)]
    assert not heard(rounds, {"ping_pong.warn": 5})


@pytest.mark.parametrize(
    ("first", "again", "same"),
    [
        ("Escape the name.", remarks("escape  THE\nname. "), True),
        ("Escape the name.", remarks("Escape the name.", path="./src/cart.py"), True),
        ("Escape the name.", remarks("Escape the name.", path="src/order.py"), False),
        ("Escape the name.", remarks("Escape the path."), False),
        ("Name the constant 3.", remarks("Name the constant 4."), False),
        ("修复名称的转义", remarks("修复名称的转义"), True),
    ],
)
def test_a_remark_without_an_id_is_known_by_path_and_wording(heard, first, again, same):
    """Case and blanks aside."""
    rounds = [review(n, findings=findings) for n, findings in enumerate((remarks(first), again))]
    alerts = heard(rounds, {"ping_pong.warn": 5, "ping_pong.unfixed_warn": 1})
    assert bool(reached(alerts, "ping_pong.unfixed_warn")) == same


def test_pull_requests_of_one_task_are_counted_apart(heard, player):
    """Two rounds each are no four of one; and the end of one leaves the other alone."""
    one, other = {"pull_request": "acme/shop#1"}, {"pull_request": "acme/shop#2"}
    assert not heard([review(n, **(one if n % 2 else other)) for n in range(4)])
    game = player()
    game.play([review(0, **one), review(1, **one), review(2, **other), review(3, "merged", **other)])
    alerts = game.play([review(4, **one)])
    assert [(alert.level, alert.count) for alert in alerts] == [("warn", 3)]


def test_attempts_between_the_rounds_do_not_break_the_loop(heard):
    """An agent that tries much between two rounds is warned once, and terminated after five rounds all the same."""
    events: list[SessionInput] = []
    for n in range(5):
        events.append(review(n))
        events += [fix_attempt(60 * n + 1 + each, f"{'abcdefg'[each] * (5 + n)} it") for each in range(7)]
    alerts = heard(events, {"off": ["too_many_attempts"]})
    assert levels(alerts) == ["warn", "terminate"]


def test_rounds_in_several_sessions_of_one_task_add_up(heard):
    """The task is what is reviewed, not the session."""
    events = [review(n, session_id=f"s{n}", task=Task(id="T1")) for n in range(3)]
    alerts = heard(events)
    assert [(alert.level, alert.task_id, alert.session_id) for alert in alerts] == [("warn", "T1", "s2")]


def test_a_success_leaves_the_rounds_alone(heard):
    """The agent says that it is done; the review goes on, and it is the one that decides."""
    events = [*asked(3), fix_attempt(250, "all done", outcome="success"), review(5), review(6)]
    assert levels(heard(events)) == ["warn", "terminate"]


verdicts = st.sampled_from(["changes_requested", "approved", "commented"])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(verdicts, st.sampled_from(["agent", "person"])), max_size=14))
def test_the_rounds_since_the_last_decision_decide(said):
    """Whatever is said in between: warned from 3 on, terminated from 5 on, and everything warned about recovers."""
    rounds, warned, wanted = 0, 0, []
    for verdict, author in said:
        if verdict == "approved" or (author == "person" and verdict == "changes_requested"):
            wanted += ["recovered"] if warned == 1 else []
            rounds = warned = 0
        elif verdict == "changes_requested":
            rounds += 1
            level = 2 if rounds >= 5 else int(rounds >= 3)
            wanted += [("warn", "terminate")[level - 1]] if level > warned else []
            warned = max(level, warned)
    alerts = Player(Limits()).play(review(n, verdict, author=author) for n, (verdict, author) in enumerate(said))
    assert levels(alerts) == wanted
