"""An agent that is only watched is asked nothing: its hooks say so, and workers and escalation go by it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from detectors import SessionState
from schemas.common import OBSERVED
from schemas.events import Override
from streams.escalation.climb import on_alert
from streams.hooks import AGENTS, Agents, Observed, read
from streams.policy.policy import Policy
from streams.worker.judge import DETECTION, SessionJudge
from streams.worker.overrides import Overrides
from tests.streams.escalation.ladder_kit import Desk, short
from tests.streams.hooks.payloads import ALL
from tests.streams.hooks.work import failed

if TYPE_CHECKING:
    from schemas.outputs import Alert

BEGIN = datetime(2026, 11, 30, 10, tzinfo=UTC)


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("watched", [True, False])
def test_every_event_says_whether_its_agent_is_only_watched(agent: Agents, watched: bool) -> None:  # noqa: FBT001
    """It is the role, beside what is known of the agent else, whatever the hook tells."""
    told = 0
    for payload in ALL[agent].values():
        seen = read(agent, json.dumps(payload).encode(), at=BEGIN, privacy="digests", watched=watched)
        assert isinstance(seen, Observed)
        for event in seen.events:
            who: Any = getattr(event, "agent", None)
            assert (who.name, who.role) == (agent, OBSERVED if watched else None)
            told += 1
    assert told


def judged(*, watched: bool, override: Override | None = None) -> tuple[list[Alert], list[str]]:
    """Let an agent fail in the same way many times; give its alerts, and what escalation does about them."""
    overrides = Overrides(Policy())
    if override is not None:
        overrides.put(override)
    judge, state, desk = SessionJudge(overrides, DETECTION), SessionState(), Desk()
    alerts: list[Alert] = []
    done: list[str] = []
    for number in range(8):
        at = BEGIN + number * timedelta(seconds=20)
        payload = json.dumps(failed("make test", "FAILED test_login")).encode()
        seen = read("claude-code", payload, at=at, privacy="digests", watched=watched)
        assert isinstance(seen, Observed)
        for event in seen.events:
            found = judge.judge(state, event).alerts
            alerts += found
            for alert in found:
                done += short(on_alert(desk.state, alert, desk.now, desk.policy, desk.context))
    return alerts, done


def test_a_loop_of_an_agent_that_is_watched_is_told_and_nothing_is_done_about_it() -> None:
    """The same alerts as of one that is told what was decided, in mode observe: no directive, no call for a person."""
    watched, nothing = judged(watched=True)
    told, done = judged(watched=False)
    assert [(each.detector, each.level) for each in watched] == [(each.detector, each.level) for each in told]
    assert {each.level for each in watched} >= {"warn", "terminate"}
    assert ({each.mode for each in watched}, {each.mode for each in told}) == ({"observe"}, {"enforce"})
    assert nothing == []
    assert any("terminate" in each for each in done)


def test_an_override_says_otherwise_for_agents_that_are_watched() -> None:
    """Whoever wants them stopped all the same, by what reads the topics, says so for their role."""
    override = Override(scope=f"role:{OBSERVED}", set_at=BEGIN, limits={"mode": "enforce"}, set_by="dana", reason="x")
    alerts, done = judged(watched=True, override=override)
    assert {each.mode for each in alerts} == {"enforce"}
    assert any("terminate" in each for each in done)
