"""False alarms: the loop that a person marked as wrong stays quiet for as long as they say, and nothing else does."""

import pytest

from detectors import Limits, SessionState, decode_state, encode_state, limits_from, observe
from detectors.loops import dismissed
from detectors.watch import DISMISSED, MAX_LOOP_ALERTS, MAX_LOOPS, MAX_QUIET, MAX_TOLD
from schemas.testing import at, control, session_event
from tests.detectors.traces import shell, work

DAY_S = 86_400
PATIENT = limits_from([("test", {"decision.rearm_after": 1_000, "off": ["category", "spin_score"]})])


class Session:
    """A session that is played event by event, a second after one another unless it is told to skip time."""

    def __init__(self, limits=None):
        self.state, self.limits, self.second = SessionState(), limits or Limits(), 0

    def play(self, event):
        """Play an event at the present second and give its alerts."""
        self.state = decode_state(encode_state(self.state))
        return observe(self.state, event, self.limits)

    def loop(self, name, calls=3):
        """Make the same call again and again, and give the alerts."""
        alerts = []
        for _ in range(calls):
            self.second += 1
            alerts += self.play(shell(self.second, f"./tool_{name}", event_id=f"{name}-{self.second}"))
        return alerts

    def work(self, calls=30):
        """Do something else."""
        alerts = []
        for _ in range(calls):
            self.second += 1
            alerts += self.play(work(self.second))
        return [alert.level for alert in alerts]

    def mark(self, alert, **fields):
        """Mark an alert as wrong."""
        self.second += 1
        self.play(control(self.second, "false_alarm", answers=alert.alert_id, **fields))


@pytest.fixture
def session():
    """Give a session with the default limits."""
    return Session()


def levels(alerts):
    """Return the levels of alerts."""
    return [alert.level for alert in alerts]


def test_a_loop_that_recovered_before_it_was_marked_is_quiet_when_it_comes_again(session):
    """People answer yesterday's alerts."""
    (alert,) = session.loop("sync")
    assert session.work() == ["recovered"]
    assert session.state.loops == []
    session.mark(alert)
    assert session.loop("sync", 9) == []
    assert levels(session.loop("other")) == ["warn"]


@pytest.mark.parametrize(
    "word",
    [
        lambda n: control(n, "resume"),
        lambda n: control(n, "reset"),
        lambda n: control(n, "clear"),
        lambda n: session_event(n, "started"),
        lambda n: session_event(n, "user_message"),
    ],
)
def test_what_settles_loops_leaves_what_a_person_said_of_one(session, word):
    """A new beginning makes no alert right that was wrong."""
    (alert,) = session.loop("sync")
    session.mark(alert)
    session.second += 1
    session.play(word(session.second))
    assert session.loop("sync", 9) == []


@pytest.mark.parametrize(("days", "seconds", "more"), [(1, -10, []), (1, 0, ["warn"]), (2, 0, [])])
def test_the_default_is_a_limit(days, seconds, more):
    """Until so many days after the word; from then on it is noticed anew, and warned about before it is ended."""
    game = Session(limits_from([("test", {"decision.false_alarm_days": days})]))
    (alert,) = game.loop("sync")
    game.mark(alert)
    game.second += DAY_S + seconds - 1
    assert levels(game.loop("sync", 4)) == more


def test_any_alert_of_a_loop_may_be_marked_and_takes_no_room_of_another_loop(session):
    """They are kept together."""
    alerts = session.loop("sync", 5)
    assert (levels(alerts), len(session.state.told)) == (["warn", "terminate"], 1)
    session.mark(alerts[0])
    assert session.loop("sync", 9) == []


def test_without_a_time_it_holds_for_a_week(session):
    """As long as alerts are kept."""
    (alert,) = session.loop("sync")
    session.mark(alert)
    session.second += 7 * DAY_S - 5
    assert session.loop("sync", 4) == []
    session.second += 1
    assert levels(session.loop("sync", 2)) == ["warn", "terminate"]


@pytest.mark.parametrize("gone", [False, True])
def test_the_record_says_until_when(session, gone):
    """Shorter or longer than the rule, by the time of the calls."""
    (alert,) = session.loop("sync")
    if gone:
        session.work()
    end = session.second + 100
    session.mark(alert, expires_at=at(end))
    assert session.loop("sync", 9) == []
    session.second = end - 4
    assert session.loop("sync", 3) == []
    assert levels(session.loop("sync", 2)) == ["warn", "terminate"]


@pytest.mark.parametrize("first", [50, 5_000])
def test_of_two_words_the_one_that_holds_longer_counts(session, first):
    """Whichever is read first."""
    (alert,) = session.loop("sync")
    for end in (first, 5_050 - first):
        session.mark(alert, expires_at=at(end))
    session.second = 4_000
    assert session.loop("sync", 5) == []


def test_a_word_whose_time_is_over_silences_nothing(session):
    """It was read late: what goes on is noticed anew."""
    (alert,) = session.loop("sync")
    session.mark(alert, expires_at=at(1))
    assert levels(session.loop("sync", 3)) == ["warn", "terminate"]


@pytest.mark.parametrize("gone", [False, True])
def test_a_loop_that_shares_a_call_with_the_marked_one_silences_no_third(session, gone):
    """What was marked is one loop, and does not grow into its neighbours."""
    (alert,) = session.loop("sync")
    if gone:
        session.work()
    session.mark(alert)
    alerts = []
    for _ in range(8):
        alerts += session.loop("sync", 1) + session.loop("other", 1)
    assert levels(alerts + session.loop("other", 9))[-1:] == ["terminate"]
    assert session.loop("sync", 9) == []


@pytest.mark.parametrize(("others", "levels_"), [(MAX_TOLD - 1, []), (MAX_TOLD, ["warn"])])
def test_alerts_of_as_many_loops_can_be_marked_as_there_is_room_for(others, levels_):
    """Then the one that was alerted longest ago is forgotten."""
    game = Session(PATIENT)
    (alert,) = game.loop("sync")
    assert all(game.loop(name) for name in range(others))
    game.mark(alert)
    assert levels(game.loop("sync", 3)) == levels_
    assert len(game.state.told) == min(others + 1 + len(levels_), MAX_TOLD)
    assert all(len(told.alerts) <= 4 * MAX_LOOP_ALERTS for told in game.state.told)


@pytest.mark.parametrize("more", [0, 1])
def test_as_many_loops_are_quiet_as_there_is_room_for(more):
    """Then the one whose time is up first is forgotten; there is always room to watch others."""
    game = Session(PATIENT)
    for name in range(MAX_QUIET + more):
        game.mark(game.loop(name)[0], expires_at=at(10_000 + name))
    assert len(dismissed(game.state.loops)) == MAX_QUIET
    again = [name for name in range(MAX_QUIET + more) if game.loop(name, 5)]
    assert again == list(range(more))
    watched = [f"more {name}" for name in range(MAX_LOOPS - MAX_QUIET - more)]
    assert all(game.loop(name) for name in watched)
    assert [levels(game.loop(name, 5)) for name in watched] == [["terminate"]] * len(watched)
    assert len(game.state.loops) == MAX_LOOPS


def test_what_is_marked_takes_no_more_room_than_there_is():
    """Also where the loop is gone and others have taken all of it."""
    game = Session(PATIENT)
    (alert,) = game.loop("sync")
    assert all(game.loop(name) for name in range(MAX_LOOPS))
    game.mark(alert)
    assert len(game.state.loops) == MAX_LOOPS
    assert [loop.level for loop in game.state.loops].count(DISMISSED) == 1
    assert game.loop("sync", 9) == []
