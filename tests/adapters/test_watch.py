"""What adapters share: guidance that comes between calls is not lost, and an emitter is a watch as a guard is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from streams.adapters.watch import EmitterWatch, Enforcer, SessionStopped, beside, ends
from streams.emitter import Emitter, EmitterSettings
from streams.guard import Guard
from streams.verdicts import GO_ON, CallKey, Verdict
from streams.verdicts.refusal import refusal
from tests.streams.emitter.kit import GatewayStub

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GUIDE = Verdict(action="guide", session_id="s1", text="Stop.", answers="d1")


class Told:
    """A watch that says what it was given to say."""

    def __init__(self, before: list[Verdict], after: list[Verdict]) -> None:
        self._before, self._after = iter(before), iter(after)
        self.statuses: list[Any] = []

    def before(self, *_: Any) -> Verdict:
        """Say the next."""
        return next(self._before, GO_ON)

    def after(self, *_: Any, status: Any = None, **__: Any) -> Verdict:
        """Say the next."""
        self.statuses.append(status)
        return next(self._after, GO_ON)

    def verdict(self) -> Verdict:
        """Stop."""
        return Verdict(action="stop", session_id="s1", text="Enough.")


def test_guidance_before_a_call_comes_with_a_result() -> None:
    """It does not hold up the call, is not given with an error, which no model sees, and comes once."""
    enforcer = Enforcer(Told([GUIDE], []))
    assert enforcer.before("t", {}) == GO_ON
    assert enforcer.after("t", {}, error=ValueError()) == GO_ON
    assert enforcer.after("t", {}, "result") == GUIDE
    assert enforcer.after("t", {}, "result") == GO_ON


def test_graver_verdicts_go_before_guidance_that_waits() -> None:
    """A stop is a stop."""
    stop = Verdict(action="stop", session_id="s1")
    enforcer = Enforcer(Told([GUIDE], [stop]))
    enforcer.before("t", {})
    assert enforcer.after("t", {}, "result", failed=True) == stop


def test_without_enforcement_nothing_is_asked() -> None:
    """The watch hears everything all the same."""
    told = Told([GUIDE], [Verdict(action="stop")])
    enforcer = Enforcer(told, enforce=False)
    assert (enforcer.before("t", {}), enforcer.after("t", {}, "", failed=True), enforcer.ends()) == (GO_ON, GO_ON, None)
    assert told.statuses == ["error"]
    assert Enforcer(told).ends() is not None


@pytest.mark.parametrize(
    ("verdict", "stops", "words"),
    [
        (Verdict(action="stop", text="Enough."), True, "the session is stopped"),
        (Verdict(action="ask", text="Wait."), True, "the session waits for a person"),
        (Verdict(action="deny", text="No.", calls=(CallKey("0f"),)), False, "it repeats the one before"),
        (Verdict(action="deny", text="Later."), False, "the session is paused"),
    ],
)
def test_what_the_model_reads_says_why(verdict: Verdict, stops: bool, words: str) -> None:  # noqa: FBT001 - a case
    """In the place of a result stands that the call was not made, why, and what to do."""
    assert ends(verdict) is stops
    assert words in refusal(verdict)
    assert verdict.text in refusal(verdict)
    assert str(SessionStopped(verdict)) == verdict.text
    assert beside("result", GUIDE).startswith("result\n")


@pytest.fixture
def gateway() -> Iterator[GatewayStub]:
    """Give a gateway."""
    with GatewayStub() as stub:
        yield stub


def test_an_emitter_is_a_watch(gateway: GatewayStub, tmp_path: Path) -> None:
    """Calls are sent, guidance is given once and answered, and a stop is heard of before the next call."""
    with Emitter(EmitterSettings(url=gateway.url, spool=str(tmp_path))) as emitter:
        watch = EmitterWatch(emitter, "s1", ask_seconds=5)
        assert watch.before("Bash", {"command": "ls"}) == GO_ON
        gateway.verdicts["s1"] = {"action": "guide", "session_id": "s1", "text": "Stop.", "answers": "d1"}
        watch.after("Bash", {"command": "ls"}, "a.py", call_id="c1")
        assert emitter.flush(20)
        assert watch.before("Bash", {"command": "ls"}).text == "Stop."
        assert watch.before("Bash", {"command": "ls"}) == GO_ON
        gateway.verdicts["s1"] = {"action": "stop", "session_id": "s1", "text": "Enough.", "answers": "x1"}
        assert watch.before("Bash", {"command": "ls"}).action == "stop"
        assert watch.verdict().action == "stop"
        assert emitter.flush(20)
    assert [(event.call_id, event.result) for event in gateway.events] == [("c1", "a.py")]
    assert [each["answers"] for each in gateway.said] == ["d1"]


def test_a_guard_is_a_watch_as_it_is() -> None:
    """The same loop is told through the common interface."""
    enforcer = Enforcer(Guard())
    told = [enforcer.after("Bash", {"command": "pytest"}, "1 failed").action for _ in range(5)]
    assert told == ["go_on", "go_on", "guide", "go_on", "stop"]
    assert enforcer.before("Bash", {"command": "ls"}).action == "stop"
