"""What tests of detection share: playing events through one session."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

from detectors import Limits, SessionState, limits_from, observe
from schemas.events import SessionInput
from schemas.outputs import Alert

Play = Callable[..., list[Alert]]

RULES_ALONE = {"off": ["spin_score"]}
"""Limits under which nothing hangs on the weights of the spin score, which are data."""


def _play(
    events: Iterable[SessionInput], limits: Mapping[str, Any] | Limits | None, base: Mapping[str, Any]
) -> list[Alert]:
    made = limits if isinstance(limits, Limits) else limits_from([("base", base), ("test", limits or {})])
    state = SessionState()
    return [alert for event in events for alert in observe(state, event, made)]


@pytest.fixture
def play() -> Play:
    """Play events through a fresh session, by the rules alone, and return its alerts; limits may be a mapping."""
    return lambda events, limits=None: _play(events, limits, RULES_ALONE)


@pytest.fixture
def play_weighed() -> Play:
    """Play events in the same way, with the spin score."""
    return lambda events, limits=None: _play(events, limits, {})
