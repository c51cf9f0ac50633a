"""What tests of detection share: playing events through one session."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

from detectors import Limits, SessionState, limits_from, observe
from schemas.events import SessionInput
from schemas.outputs import Alert

Play = Callable[..., list[Alert]]


def _play(events: Iterable[SessionInput], limits: Mapping[str, Any] | Limits | None = None) -> list[Alert]:
    made = limits if isinstance(limits, Limits) else limits_from([("test", limits or {})])
    state = SessionState()
    return [alert for event in events for alert in observe(state, event, made)]


@pytest.fixture
def play() -> Play:
    """Play events through a fresh session and return its alerts; limits may be given as a mapping."""
    return _play
