"""Real frameworks, scripted models: an agent that loops is told, refused and stopped; one that works is left alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.tools, pytest.mark.timeout(900)]

HOW_IT_ENDS = {
    "claude-agent-sdk": None,
    "langchain": None,
    "openai-agents": "stop",
    "pydantic-ai": "stop",
    "smolagents": "AgentError",
}
"""With which error of the framework, or of ours, the run of a stopped session ends."""

HOW_A_TOOL_FAILS = {**dict.fromkeys(HOW_IT_ENDS), "langchain": "RuntimeError", "pydantic-ai": "RuntimeError"}
"""With which error a run ends whose tool raises: that is the framework's matter, and stays as it is."""

PARTS: dict[str, tuple[str, ...]] = {name: ("tools", "code") if name == "smolagents" else ("",) for name in HOW_IT_ENDS}
CASES = [(name, part) for name, parts in PARTS.items() for part in parts]


@pytest.fixture(scope="module")
def outcome(run_in: Callable[[str, str], str]) -> Callable[[str, str, str], dict[str, Any]]:
    """Give what came of a case in a framework, which is run once for all of them."""
    found: dict[str, Any] = {}

    def get(name: str, part: str, case: str) -> dict[str, Any]:
        if name not in found:
            printed = run_in(name, f"scripted_{name.replace('-', '_')}.py")
            found[name] = json.loads(printed[printed.index('{"loop"') :])
        told: dict[str, Any] = found[name][case]
        return told[part] if part else told

    return get


@pytest.mark.parametrize(("name", "part"), CASES)
def test_a_looping_agent_is_stopped(name: str, part: str, outcome: Callable[..., Any]) -> None:
    """Guidance comes with the third result, three equal calls are refused, and the fifth that is made is the last."""
    told = outcome(name, part, "loop")
    assert (told["made"], told["stopped"], told["error"]) == (5, True, HOW_IT_ENDS[name])
    assert told["alerts"] == ["warn", "terminate"]
    results = told["results"]
    guided = [place for place, each in enumerate(results) if "Traction noticed" in each and "not made" not in each]
    assert guided == ([len(results) - 1] if name == "claude-agent-sdk" else [2]), "it is shown, there as context"
    assert "1 failed" in results[2]
    assert ["This call was not made" in each for each in results[:7]] == [False] * 3 + [True] * 3 + [False]


@pytest.mark.parametrize(("name", "part"), CASES)
def test_an_agent_that_works_is_not_touched(name: str, part: str, outcome: Callable[..., Any]) -> None:
    """Every call is made, every result comes as it was, and the run ends as it would."""
    told = outcome(name, part, "healthy")
    assert (told["made"], told["stopped"], told["error"], told["last"]) == (25, False, None, "finished")
    assert told["alerts"] == []
    assert not [each for each in told["results"] if "Traction" in each or "not made" in each]


@pytest.mark.parametrize(("name", "part"), CASES)
def test_observing_enforces_nothing(name: str, part: str, outcome: Callable[..., Any]) -> None:
    """The loop is alerted, and goes on to its end."""
    told = outcome(name, part, "observed")
    assert (told["made"], told["error"], told["last"]) == (40, None, "finished")
    assert told["alerts"][:2] == ["warn", "terminate"]
    assert not [each for each in told["results"] if "Traction" in each]


@pytest.mark.parametrize(("name", "part"), CASES)
def test_a_tool_that_raises_does_what_it_did(name: str, part: str, outcome: Callable[..., Any]) -> None:
    """What the framework makes of an error stays as it is."""
    told = outcome(name, part, "failing")
    assert (told["made"], told["stopped"], told["error"]) == (1, False, HOW_A_TOOL_FAILS[name])
