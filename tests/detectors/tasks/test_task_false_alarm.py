"""False alarms of a task: its loop stays quiet as long as a person says, whoever goes on, until the task is over."""

import msgspec
import pytest

from schemas.common import Task
from schemas.testing import at, control, fix_attempt, review, session_event
from tests.detectors.tasks.test_decision import CHURN, back_and_forth, brief, new
from tests.detectors.tasks.test_derive import OFF, green, swing

T1 = Task(id="T1")
DAY_S = 86_400
WARNED = [("warn", "approach_churn")]


def _from(second, calls):
    """Return calls one after another from this second on."""
    return [
        msgspec.structs.replace(call, event_id=f"s1-{second + n}", occurred_at=at(second + n))
        for n, call in enumerate(calls)
    ]


def churn(start, session="s1"):
    """Return a loop that is warned about, of a session at the task, from this minute on."""
    return back_and_forth(3, start=start, session_id=session, task=T1)


@pytest.fixture
def game(player):
    """Give a player of the task."""
    return player(CHURN)


def test_it_holds_for_all_sessions_of_the_task(game):
    """The word reaches the task, whoever it was said to."""
    (alert,) = game.play(churn(0))
    assert game.play([control(300, "false_alarm", session_id="s7", task=T1, answers=alert.alert_id)]) == []
    assert game.play(churn(10, "s2") + churn(20, "s3")) == []


def test_a_loop_that_recovered_before_it_was_marked_is_quiet_when_it_comes_again(game):
    """People answer yesterday's alerts."""
    (alert,) = game.play(churn(0))
    assert brief(game.play([new(n) for n in range(4, 16)])) == [("recovered", "approach_churn")]
    assert game.tasks["T1"].loops == []
    game.play([control(1_000, "false_alarm", answers=alert.alert_id)])
    assert game.play(churn(30) + churn(34)) == []


@pytest.mark.parametrize(("minute", "wanted"), [(98, []), (100, WARNED)])
def test_the_record_says_until_when(game, minute, wanted):
    """By the time of the attempts; then it is warned about before it is ended."""
    (alert,) = game.play(churn(0))
    game.play([control(200, "false_alarm", answers=alert.alert_id, expires_at=at(100 * 60 + 1))])
    assert brief(game.play(churn(minute)[:2]))[:1] == wanted


@pytest.mark.parametrize(("seconds", "wanted"), [(-1, []), (0, WARNED)])
def test_without_a_time_the_default_holds(player, seconds, wanted):
    """A limit."""
    game = player({**CHURN, "decision.false_alarm_days": 2})
    (alert,) = game.play(churn(0))
    game.play([control(200, "false_alarm", answers=alert.alert_id)])
    later = fix_attempt(900, **{**_fields(churn(3)[1]), "occurred_at": at(200 + 2 * DAY_S + seconds)})
    assert brief(game.play([later])) == wanted


def _fields(attempt):
    return {name: getattr(attempt, name) for name in ("approach", "files", "diff", "error_message", "task")}


@pytest.mark.parametrize("action", ["resume", "reset", "clear"])
def test_what_settles_what_was_tried_leaves_what_a_person_said(game, action):
    """A new beginning makes no alert right that was wrong."""
    (alert,) = game.play(churn(0))
    game.play([control(300, "false_alarm", answers=alert.alert_id), control(301, action)])
    assert game.play(churn(10) + churn(14)) == []


@pytest.mark.parametrize(
    "over",
    [fix_attempt(5, "done", outcome="success"), review(1, "merged")],
)
def test_with_the_task_it_is_over(game, over):
    """What comes after is another piece of work."""
    (alert,) = game.play(churn(0))
    game.play([control(200, "false_alarm", answers=alert.alert_id), over])
    assert game.tasks["T1"].empty
    assert brief(game.play(churn(70))) == WARNED


@pytest.mark.parametrize("over", [*_from(60, [green()]), session_event(60, "user_message")])
def test_what_ends_a_stretch_of_work_does_not_end_it(player, over):
    """A check that passes, or a message of the user: the next one may go the same way."""
    for marks, wanted in (True, set()), (False, {"warn"}):
        game = player(OFF)
        alerts = game.play(_from(0, swing(4)))
        assert "warn" in {alert.level for alert in alerts}
        if marks:
            game.play([control(50 + n, "false_alarm", answers=alert.alert_id) for n, alert in enumerate(alerts)])
        game.play([over])
        assert game.tasks["s1"].attempts == []
        assert {alert.level for alert in game.play(_from(70, swing(4)))} - {"notice"} == wanted
