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
    "openhands": None,
    "pydantic-ai": "stop",
    "smolagents": "AgentError",
}
"""With which error of the framework, or of ours, the run of a stopped session ends."""

HOW_A_TOOL_FAILS = {**dict.fromkeys(HOW_IT_ENDS), "langchain": "RuntimeError", "pydantic-ai": "RuntimeError"}
"""With which error a run ends whose tool raises: that is the framework's matter, and stays as it is."""

PARTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(HOW_IT_ENDS, ("",)),
    "openhands": ("run", "arun"),
    "smolagents": ("tools", "code"),
}
GUIDED = {**dict.fromkeys(HOW_IT_ENDS, 2), "claude-agent-sdk": -1, "openhands": 3}
"""Which of the texts that the model is shown is the guidance: the result that it came with, or one of its own."""

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
    """Guidance comes with the third result, the same call is refused, and asked for once more it is the end."""
    told = outcome(name, part, "loop")
    assert (told["made"], told["stopped"], told["error"]) == (3, True, HOW_IT_ENDS[name])
    assert told["alerts"] == ["warn", "terminate"]
    assert told["answered"] == ["guide", "stop"], "once each"
    results = told["results"]
    guided = [place for place, each in enumerate(results) if "Traction noticed" in each and "not made" not in each]
    assert guided == [GUIDED[name] % len(results)]
    assert all("1 failed" in each for each in results[:3])
    refused = ["it repeats the one before" in each for each in results if "This call was not made" in each]
    assert refused in ([True], [True, False]), "the last is that of the stop, where the model is still shown one"


@pytest.mark.parametrize(("name", "part"), CASES)
def test_an_agent_is_stopped_by_what_a_call_brought(name: str, part: str, outcome: Callable[..., Any]) -> None:
    """Where no call repeats the one before none is refused, and with the last that was one too many the run ends."""
    told = outcome(name, part, "circle")
    assert (told["made"], told["stopped"], told["error"]) == (10, True, HOW_IT_ENDS[name])
    assert (told["alerts"], told["answered"]) == (["warn", "terminate"], ["guide", "stop"])
    refused = [each for each in told["results"] if "This call was not made" in each]
    assert not refused


@pytest.mark.parametrize(("name", "part"), CASES)
def test_an_agent_that_works_is_not_touched(name: str, part: str, outcome: Callable[..., Any]) -> None:
    """Every call is made, every result comes as it was, and the run ends as it would."""
    told = outcome(name, part, "healthy")
    assert (told["made"], told["stopped"], told["error"], told["last"]) == (25, False, None, "finished")
    assert (told["alerts"], told["answered"]) == ([], [])
    assert not [each for each in told["results"] if "Traction" in each or "not made" in each]


@pytest.mark.parametrize(("name", "part"), CASES)
def test_observing_enforces_nothing(name: str, part: str, outcome: Callable[..., Any]) -> None:
    """The loop is alerted, and goes on to its end."""
    told = outcome(name, part, "observed")
    assert (told["made"], told["error"], told["last"]) == (40, None, "finished")
    assert (told["alerts"][:2], told["answered"]) == (["warn", "terminate"], [])
    assert not [each for each in told["results"] if "Traction" in each]


@pytest.mark.parametrize(("name", "part"), CASES)
def test_a_tool_that_raises_does_what_it_did(name: str, part: str, outcome: Callable[..., Any]) -> None:
    """What the framework makes of an error stays as it is."""
    told = outcome(name, part, "failing")
    assert (told["made"], told["stopped"], told["error"]) == (1, False, HOW_A_TOOL_FAILS[name])


@pytest.mark.parametrize("part", PARTS["openhands"])
def test_guidance_does_not_part_the_results_of_one_response(part: str, outcome: Callable[..., Any]) -> None:
    """Models' APIs refuse a message between them: it comes behind the last, also when it came with the first."""
    told = outcome("openhands", part, "together")
    assert told["results"][:4] == ["1 failed", "1 failed", "1 failed", "done: step 1 4"]
    assert "Traction noticed" in told["results"][4]
    assert told["results"][5:] == ["done: step 2 5"]
    assert (told["answered"], told["last"]) == (["guide"], "finished")
