"""Fixtures of the tests of what is judged over a task."""

from collections import defaultdict

import pytest

from detectors import Limits, SessionState, TaskState, limits_from, observe_task, step


class Player:
    """Plays events of several sessions and keeps what their tasks say.

    Attributes:
        tasks: the tasks' states.
        sessions: the sessions' states.
    """

    def __init__(self, limits=None):
        self.limits = limits if isinstance(limits, Limits) else limits_from([("test", limits or {})])
        self.sessions = defaultdict(SessionState)
        self.tasks = defaultdict(TaskState)

    def play(self, events):
        """Play events, and give the alerts of their tasks."""
        alerts = []
        for event in events:
            told = step(self.sessions[event.session_id], event, self.limits).task_event
            if told is not None:
                alerts += observe_task(self.tasks[told.task_id], told, self.limits)
        return alerts


@pytest.fixture
def player():
    """Give what makes a player."""
    return Player


@pytest.fixture
def heard():
    """Give what plays events under limits and gives the alerts of their tasks."""

    def play(events, limits=None):
        return Player(limits).play(events)

    return play
