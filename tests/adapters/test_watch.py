"""What adapters share: nothing that is to be told is lost, what was enforced is told once, and who may be a watch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from detectors.denial import CLASSES, own_denial
from schemas.common import Agent, ErrorInfo
from streams.adapters.watch import EmitterWatch, Enforcer, SessionStopped, beside, ends
from streams.emitter import Emitter, EmitterSettings
from streams.guard import Guard
from streams.verdicts import GO_ON, CallKey, Verdict
from streams.verdicts.refusal import refusal
from tests.streams.emitter.kit import GatewayStub

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from detectors.denial import Denial

GUIDE = Verdict(action="guide", session_id="s1", text="Stop.", answers="d1")
STOP = Verdict(action="stop", session_id="s1", text="Enough.", answers="x1")


class Told:
    """A watch that says what it was given to say."""

    def __init__(self, before: list[Verdict], after: list[Verdict]) -> None:
        self._before, self._after = iter(before), iter(after)
        self.asked = 0
        self.heeded = True
        self.statuses: list[Any] = []
        self.errors: list[Any] = []
        self.answered: list[Verdict] = []

    def before(self, *_: Any) -> Verdict:
        """Say the next."""
        self.asked += 1
        return next(self._before, GO_ON)

    def after(self, *given: Any, status: Any = None, **_: Any) -> Verdict:
        """Say the next."""
        self.statuses.append(status)
        self.errors += given[3:]
        return next(self._after, GO_ON)

    def obeyed(self, verdict: Verdict) -> None:
        """Keep it."""
        self.answered.append(verdict)

    def unheeded(self) -> None:
        """Keep that it is so."""
        self.heeded = False

    def verdict(self) -> Verdict:
        """Stop."""
        return STOP


def test_guidance_before_a_call_comes_with_a_result() -> None:
    """It does not hold up the call, is not given with an error, which no model sees, and comes once."""
    told = Told([GUIDE], [GUIDE])
    enforcer = Enforcer(told)
    assert enforcer.before("t", {}) == GO_ON
    assert enforcer.after("t", {}, error=ValueError()) == GO_ON
    assert told.answered == []
    assert enforcer.after("t", {}, "result") == GUIDE
    assert enforcer.after("t", {}, "result") == GO_ON
    assert told.answered == [GUIDE]


def test_graver_verdicts_go_before_guidance_that_waits() -> None:
    """A stop is a stop."""
    stop = Verdict(action="stop", session_id="s1")
    enforcer = Enforcer(Told([GUIDE], [stop]))
    enforcer.before("t", {})
    assert enforcer.after("t", {}, "result", failed=True) == stop


def test_without_enforcement_nothing_is_asked() -> None:
    """The watch hears everything all the same, and nothing is answered that was not done."""
    told = Told([GUIDE], [STOP])
    enforcer = Enforcer(told, enforce=False)
    assert (enforcer.before("t", {}), enforcer.after("t", {}, "", failed=True), enforcer.ends()) == (GO_ON, GO_ON, None)
    assert (told.asked, told.statuses, told.answered, told.heeded) == (0, ["error"], [], False)
    assert Enforcer(told).ends() is not None


def test_a_stop_is_answered_once() -> None:
    """Whichever way it comes first, and however often the agent is told to stop; another one is answered too."""
    later = msgspec.structs.replace(STOP, answers="x2")
    told = Told([STOP, STOP, later], [GO_ON, STOP])
    enforcer = Enforcer(told)
    for expected in ([STOP], [STOP], [STOP, later]):
        enforcer.before("t", {})
        assert told.answered == expected
    assert enforcer.ends() is not None
    first = Told([], [STOP])
    assert Enforcer(first).after("t", {}, "result") == STOP
    assert first.answered == [STOP]
    assert Enforcer(Told([GO_ON], [])).before("t", {}) == GO_ON


@pytest.mark.parametrize(
    ("verdict", "error"),
    [
        (Verdict(action="deny", text="No.", answers="d1", calls=(CallKey("0f"),)), "repeat"),
        (Verdict(action="deny", text="Later.", answers="d2"), "other"),
        (Verdict(action="stop", text="Enough.", answers="x1"), "other"),
    ],
)
def test_a_call_that_is_kept_from_being_made_is_told_of(verdict: Verdict, error: Denial) -> None:
    """Once, as what it is; only a repetition counts, and one too many ends the run at once."""
    told = Told([verdict, verdict], [GO_ON, STOP])
    enforcer = Enforcer(told)
    assert enforcer.before("t", {"a": 1}, call_id="c1") == verdict
    assert told.errors == [ErrorInfo(type=CLASSES[error])]
    assert enforcer.before("t", {"a": 1}, call_id="c2") == STOP


def test_guidance_that_comes_with_a_denial_is_not_lost() -> None:
    """It comes with the next result."""
    deny = Verdict(action="deny", text="Later.", answers="d2")
    enforcer = Enforcer(Told([deny], [GUIDE]))
    assert enforcer.before("t", {}) == deny
    assert enforcer.after("t", {}, "result") == GUIDE


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
    """Calls are sent, denied ones as such; a stop is heard of before the next call; each is answered once."""
    command = {"command": "ls"}
    with Emitter(EmitterSettings(url=gateway.url, spool=str(tmp_path))) as emitter:
        enforcer = Enforcer(EmitterWatch(emitter, "s1", ask_seconds=5))
        assert enforcer.before("Bash", command) == GO_ON
        gateway.verdicts["s1"] = {"action": "guide", "session_id": "s1", "text": "Stop.", "answers": "d1"}
        enforcer.after("Bash", command, "a.py", call_id="c1")
        assert emitter.flush(20)
        assert enforcer.before("Bash", command) == GO_ON
        assert enforcer.after("Bash", command, "a.py", call_id="c2").text == "Stop."
        gateway.verdicts["s1"] = {"action": "stop", "session_id": "s1", "text": "Enough.", "answers": "x1"}
        assert [enforcer.before("Bash", command, call_id=call).action for call in ("c3", "c4")] == ["stop", "stop"]
        assert enforcer.ends() is not None
        assert emitter.flush(20)
    made = [(event.call_id, event.status, own_denial(event)) for event in gateway.events]
    assert made == [("c1", None, None), ("c2", None, None), ("c3", "denied", "other"), ("c4", "denied", "other")]
    assert [(each["answers"], each["action"]) for each in gateway.said] == [("d1", "obeyed"), ("x1", "obeyed")]


@pytest.mark.parametrize("agent", [None, Agent(id="a", role="code", model="m")])
def test_calls_of_who_only_watches_say_so(gateway: GatewayStub, tmp_path: Path, agent: Agent | None) -> None:
    """Whoever does not enforce tells it as the agent's role, with what else is known of it; nothing is answered."""
    gateway.verdicts["s1"] = {"action": "stop", "session_id": "s1", "text": "Enough.", "answers": "x1"}
    with Emitter(EmitterSettings(url=gateway.url, spool=str(tmp_path)), agent=agent) as emitter:
        for enforce in (True, False):
            Enforcer(EmitterWatch(emitter, "s1"), enforce=enforce).after("Bash", {"command": "ls"}, "a.py")
        assert emitter.flush(20)
    watched = Agent(role="observed") if agent is None else Agent(id="a", role="observed", model="m")
    assert [event.agent for event in gateway.events] == [agent, watched]
    assert gateway.said == []


def test_a_guard_is_a_watch_as_it_is() -> None:
    """The same loop is told through the common interface: the second repetition that was denied ends it."""
    guard = Guard()
    enforcer = Enforcer(guard)
    calls = [enforcer.after("Bash", {"command": "pytest"}, "1 failed").action for _ in range(3)]
    assert calls == ["go_on", "go_on", "guide"]
    asked = [enforcer.before("Bash", {"command": "pytest"}).action for _ in range(2)]
    assert asked == ["deny", "stop"]
    assert [(alert.level, alert.count) for alert in guard.alerts] == [("warn", 3), ("terminate", 5)]
    assert enforcer.before("Bash", {"command": "ls"}).action == "stop"
