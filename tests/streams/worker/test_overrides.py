"""Overrides resolve to one set of limits: the narrower scope wins, and one that does not fit the others is left out."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from detectors import Limits, limits_from
from schemas.common import Agent, Task
from schemas.decode import InvalidEvent
from schemas.events import Override
from streams.policy.conditions import When, read_glob
from streams.policy.policy import Policy, Rule
from streams.worker.overrides import Overrides
from tests.kit import BEGIN, tool_call

if TYPE_CHECKING:
    from schemas.events import ToolCall

CALL = tool_call("s", 0, agent=Agent(role="code"), task=Task(id="t", repo="o/r"))
SCOPES = ("role:code", "repo:o/r", "task:t", "session:s")


def override(scope: str, **fields: Any) -> Override:
    """Build an override."""
    return Override(scope=scope, set_at=BEGIN, **fields)


def test_what_holds_for_all_is_known() -> None:
    """As long as neither a rule nor an override makes a difference, whatever was in force before."""
    overrides = Overrides(Policy())
    assert overrides.same_for_all is overrides.policy.common
    overrides.put(override("session:other", mute=True))
    assert overrides.same_for_all is None
    overrides.remove("session:other")
    assert overrides.same_for_all is overrides.policy.common
    overrides.replace(Policy(rules=[Rule("code", When(role=(read_glob("code"),)))]))
    assert overrides.same_for_all is None
    overrides.replace(Policy(Limits(off=("spin_score",))))
    assert overrides.same_for_all == Limits(off=("spin_score",))


def resolve(overrides: Overrides, event: ToolCall = CALL) -> tuple[Limits, bool]:
    """Resolve what a call says itself."""
    return overrides.resolve(
        event.agent,
        event.task,
        session_id=event.session_id,
        task_id=(event.task.id if event.task else None) or event.session_id,
        at=event.occurred_at,
    )


def warn(overrides: Overrides, event: ToolCall = CALL) -> int:
    """Resolve, and give one of the limits."""
    return resolve(overrides, event)[0].identical.warn


def test_nothing_is_overridden_by_default() -> None:
    """Without overrides the worker's own limits hold, the very same object."""
    base = Limits()
    assert resolve(Overrides(Policy(base))) == (base, False)
    assert resolve(Overrides(Policy(base)))[0] is base


def test_the_narrower_scope_wins() -> None:
    """Role, repository, task, session: each later one wins over those before it, in whatever order they came."""
    overrides = Overrides(Policy(limits_from([("file", {"identical.warn": 1, "identical.terminate": 9})])))
    for number, scope in reversed(list(enumerate(SCOPES, 2))):
        overrides.put(override(scope, limits={"identical.warn": number}))
    for number, scope in reversed(list(enumerate(SCOPES, 2))):
        assert warn(overrides) == number
        assert resolve(overrides)[0].layer("identical.warn") == f"override:{scope}"
        assert resolve(overrides)[0].layer("identical.terminate") == "file"
        overrides.remove(scope)
    assert warn(overrides) == 1


def test_scopes_of_what_is_not_said_do_not_apply() -> None:
    """Without a role, or a repository, none is overridden; the session's own id names a task that was not given."""
    overrides = Overrides(Policy(Limits()))
    overrides.put(override("role:code", limits={"identical.warn": 2}))
    bare = tool_call("s", 1)
    assert (warn(overrides, bare), warn(overrides)) == (3, 2)
    overrides.put(override("task:s", limits={"identical.warn": 4}))
    assert warn(overrides, bare) == 4
    assert warn(overrides) == 2  # another task


def test_any_mute_mutes() -> None:
    """A narrower override without mute does not lift a wider one's."""
    overrides = Overrides(Policy(Limits()))
    overrides.put(override("repo:o/r", mute=True))
    overrides.put(override("session:s", limits={"identical.warn": 4}))
    assert resolve(overrides)[1]
    overrides.put(override("repo:o/r"))
    assert not resolve(overrides)[1]


def test_an_override_expires_by_the_event_s_time() -> None:
    """It holds up to its expiry, not at it, whenever the event is read."""
    overrides = Overrides(Policy(Limits()))
    overrides.put(override("session:s", mute=True, expires_at=BEGIN + timedelta(seconds=5)))
    found = [resolve(overrides, tool_call("s", second))[1] for second in (0, 4, 5, 6, 3)]
    assert found == [True, True, False, False, True]


@pytest.mark.parametrize("limits", [{"identical.wran": 4}, {"identical.warn": 0}, {"identical.warn": 6}])
def test_limits_that_cannot_be_used(limits: dict[str, int]) -> None:
    """An unknown limit, a value out of range, and a warning above its termination are refused, and nothing changes."""
    overrides = Overrides(Policy(Limits()))
    with pytest.raises(InvalidEvent) as refused:
        overrides.put(override("session:s", limits=limits))
    assert (refused.value.stage, refused.value.reason, refused.value.field) == ("validate", "invalid_value", "limits")
    assert next(iter(limits)) in str(refused.value)
    assert warn(overrides) == 3


@pytest.mark.parametrize("limits", [{"tools.volatile": "x+"}, {"tools.volatile.play": "x+"}])
def test_regular_expressions_are_refused(limits: dict[str, Any]) -> None:
    """A record must not be able to freeze the workers; its author is told where such a limit is set."""
    overrides = Overrides(Policy(Limits()))
    with pytest.raises(InvalidEvent, match=r"tools\.volatile cannot be set by an override") as refused:
        overrides.put(override("session:s", limits=limits))
    assert (refused.value.reason, refused.value.field) == ("invalid_value", "limits.tools.volatile")
    assert "settings file" in str(refused.value)
    overrides.put(override("session:s", limits={"tools.names.volatile": "read"}))


def test_overrides_that_do_not_fit_together(caplog: pytest.LogCaptureFixture) -> None:
    """Where one that is fine alone does not fit those before it, it is left out, which is told once."""
    overrides = Overrides(Policy(Limits()))
    overrides.put(override("role:code", limits={"identical.terminate": 3, "identical.warn": 2}))
    overrides.put(override("task:t", limits={"identical.warn": 4}))
    overrides.put(override("session:s", mute=True))
    for _ in range(3):
        limits, muted = resolve(overrides)
        assert (limits.identical.warn, limits.identical.terminate, muted) == (2, 3, True)
    assert caplog.text.count("ignored beside the others") == 1


def test_a_replaced_override_holds_at_once() -> None:
    """What was merged before is merged anew."""
    overrides = Overrides(Policy(Limits()))
    for number in (4, 5, 2):
        overrides.put(override("session:s", limits={"identical.warn": number}))
        assert warn(overrides) == number


RULES = Policy(
    limits={"identical.warn": 4},
    rules=[Rule("docs", When(repo=(read_glob("o/r"),)), limits={"identical.warn": 2, "identical.terminate": 7})],
)


def test_overrides_lie_over_the_rules_that_hold() -> None:
    """Whose rules differ is judged differently under the same override; what it does not set stays the rule's."""
    overrides = Overrides(RULES)
    other = tool_call("s", 0, agent=Agent(role="code"), task=Task(id="t", repo="o/other"))
    assert (warn(overrides), warn(overrides, other)) == (2, 4)
    overrides.put(override("role:code", limits={"identical.warn": 3}))
    found = [resolve(overrides, event)[0].identical for event in (CALL, other)]
    assert [(limits.warn, limits.terminate) for limits in found] == [(3, 7), (3, 5)]
    assert resolve(overrides)[0].layer("identical.warn") == "override:role:code"
    assert resolve(overrides)[0].layer("identical.terminate") == "policy:None:rule docs"


def test_a_policy_that_is_replaced_holds_at_once() -> None:
    """With and without an override that applies; the overrides stay."""
    overrides = Overrides(RULES)
    overrides.put(override("session:s", limits={"same_write.warn": 2}))
    assert warn(overrides) == 2
    overrides.replace(Policy(rules=[Rule("docs", RULES.rules[0].when, limits={"identical.warn": 5})]))
    assert (warn(overrides), resolve(overrides)[0].same_write.warn) == (5, 2)
    overrides.remove("session:s")
    overrides.replace(RULES)
    assert warn(overrides) == 2


def test_an_override_need_only_fit_where_a_rule_holds() -> None:
    """It is refused where it fits on no rule either, and left out for whom it does not fit."""
    overrides = Overrides(RULES)
    overrides.put(override("role:code", limits={"identical.warn": 6}))
    other = tool_call("s", 0, agent=Agent(role="code"), task=Task(id="t", repo="o/other"))
    assert (warn(overrides), warn(overrides, other)) == (6, 4)
    with pytest.raises(InvalidEvent, match=r"identical\.warn = 8 is above"):
        overrides.put(override("role:code", limits={"identical.warn": 8}))
    assert (warn(overrides), warn(overrides, other)) == (2, 4)


@pytest.mark.parametrize("scope", SCOPES)
def test_another_policy_judges_the_overrides_anew(scope: str, caplog: pytest.LogCaptureFixture) -> None:
    """A worker that read them under the policy before goes by the same as one that starts now, mute or not."""
    loose, strict = Policy(limits={"identical.terminate": 9}), Policy(limits={"identical.terminate": 3})
    record = override(scope, limits={"identical.warn": 6}, mute=True)
    overrides = Overrides(strict)
    with pytest.raises(InvalidEvent):
        overrides.put(record)
    overrides.replace(loose)
    assert (warn(overrides), resolve(overrides)[1]) == (6, True)
    overrides.replace(strict)
    assert (warn(overrides), resolve(overrides)[1]) == (3, False)
    assert f"the override for {scope} is ignored" in caplog.text
    overrides.remove(scope)
    overrides.replace(loose)
    assert (warn(overrides), resolve(overrides)[1]) == (3, False)


@pytest.mark.parametrize("limits", [{"identical.warn": 0}, {"identical.wran": 1}, {"tools.volatile.play": "x+"}])
def test_a_refused_override_ends_the_one_before_it(limits: dict[str, Any]) -> None:
    """Its author meant to replace it, and no policy brings it back."""
    overrides = Overrides(RULES)
    overrides.put(override("session:s", limits={"identical.warn": 3}))
    with pytest.raises(InvalidEvent):
        overrides.put(override("session:s", limits=limits))
    assert warn(overrides) == 2
    overrides.replace(RULES)
    assert warn(overrides) == 2
