"""Comment velocity: many comments without a merge or close ask for a person, and never end anything."""

import pytest

from schemas.testing import control, fix_attempt, review
from tests.detectors.traces import found, reached


def comments(n, total, **fields):
    """Return a comment after which there are so many on the pull request."""
    return review(n, "commented", comments_total=total, **fields)


@pytest.mark.parametrize(
    ("total", "limits", "wanted"),
    [
        (20, {}, False),
        (21, {}, True),
        (None, {}, False),
        (4, {"comment_velocity.warn": 5}, False),
        (5, {"comment_velocity.warn": 5}, True),
    ],
)
def test_more_comments_than_the_limit_warn(heard, total, limits, wanted):
    """Flapping and convergence: more than 20."""
    alerts = heard([comments(0, total)], limits)
    assert bool(reached(alerts, "comment_velocity.warn")) == wanted
    assert all((alert.count, alert.suggested_strategy) == (total, "escalate_human") for alert in alerts)


def test_it_warns_again_at_double_the_count_and_never_terminates(heard):
    """However many they become."""
    alerts = heard([comments(n, total) for n, total in enumerate((21, 22, 41, 42, 83, 84, 2**63 - 1))])
    assert [(alert.level, alert.count) for alert in alerts] == [
        ("warn", 21),
        ("warn", 42),
        ("warn", 84),
        ("warn", 2**63 - 1),
    ]


def test_a_smaller_total_is_an_older_one(player):
    """Reviews of several harnesses may come out of order, and not all of them count comments."""
    game = player()
    assert len(game.play([comments(0, 21), comments(1, 3), comments(2, None)])) == 1
    assert [pull.comments for pull in game.tasks["s1"].pulls] == [21]


@pytest.mark.parametrize("verdict", ["merged", "closed"])
def test_a_merge_or_close_ends_it(heard, verdict):
    """The comment with which it ends is one too many for nobody."""
    assert not heard([comments(0, 20), review(1, verdict, comments_total=25)])
    alerts = heard([comments(0, 21), review(1, verdict, comments_total=25)])
    assert found(alerts) == [("warn", "comment_velocity", 0), ("recovered", "comment_velocity", 1)]


@pytest.mark.parametrize("verdict", ["merged", "closed"])
def test_the_end_of_one_pull_request_settles_its_comments_alone(heard, verdict):
    """Two of one task gather comments."""
    both = [comments(n, 30, pull_request=f"acme/shop#{n}") for n in range(2)]
    alerts = heard([*both, review(2, verdict, pull_request="acme/shop#0")])
    assert [alert.level for alert in alerts] == ["warn", "warn", "recovered"]
    assert alerts[2].loop_id == alerts[0].loop_id != alerts[1].loop_id


@pytest.mark.parametrize("verdict", ["approved", "changes_requested"])
def test_a_persons_decision_leaves_the_comments_there(heard, verdict):
    """They are as many as before, until the pull request is through."""
    alerts = heard([comments(0, 21), review(1, verdict, author="person", comments_total=22), comments(2, 23)])
    assert found(alerts) == [("warn", "comment_velocity", 0)]


def test_neither_attempts_nor_a_success_break_the_loop_of_an_open_pull_request(heard):
    """It would be warned about anew with the next comment."""
    tries = [fix_attempt(60 + n, f"{'abcdef'[n] * 5} it") for n in range(6)]
    done = fix_attempt(70, "done", outcome="success")
    alerts = heard([comments(0, 21), *tries, done, comments(2, 22)], {"off": ["too_many_attempts"]})
    assert found(alerts) == [("warn", "comment_velocity", 0)]


def test_a_person_may_mark_it_as_wrong(heard):
    """A hard review, and no flapping: nothing more of it."""
    first = heard([comments(0, 21)])
    said = control(4_000, "false_alarm", answers=first[0].alert_id)
    assert heard([comments(0, 21), said, comments(2, 42), comments(3, 84)]) == first
    assert len(heard([comments(0, 21), comments(2, 42), comments(3, 84)])) == 3
