"""The guard stops an agent that loops, by the worker's own detectors, and does not touch one that works."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from detectors import SessionState, TaskState, observe_task, step
from schemas.common import Agent, Task
from schemas.events import ToolCall
from schemas.testing import fix_attempt
from streams.demo.cast import Part, load
from streams.guard import Guard, InvalidLimits, Limits, not_made
from streams.guard.guard import MAX_ALERTS
from streams.verdicts import GO_ON
from tests.detectors.traces import PAGE_TEXT, edit, shell, view

if TYPE_CHECKING:
    from collections.abc import Iterable

    from schemas.events import SessionInput
    from streams.guard import Verdict

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    """Give a moment."""
    return BEGIN + timedelta(seconds=seconds)


def played(guard: Guard, events: Iterable[SessionInput]) -> list[tuple[str, str]]:
    """Let an agent work through what was recorded and obey the guard; return what it was told, and when."""
    told: list[tuple[str, str]] = []
    for event in events:
        if not isinstance(event, ToolCall):
            told.append(("after", guard.observe(event).action))
            continue
        arguments = None if event.arguments is UNSET else event.arguments
        asked = guard.before(event.tool, arguments, at=event.occurred_at).action
        told.append(("before", asked))
        if asked == "stop":
            break
        if asked != "deny":
            told.append(("after", guard.observe(event).action))
    return told


def actions(told: list[tuple[str, str]]) -> set[str]:
    """Return what was told but to go on."""
    return {action for _, action in told} - {"go_on"}


def agent(guard: Guard, *, heeds: bool = False, tells: bool = True) -> list[str]:
    """Run an agent that asks for the same test for ever, unless it is stopped or `heeds` what it is told."""
    heard: list[str] = []
    for n in range(100):
        command = "pytest -q"
        asked = guard.before("Bash", {"command": command}, at=at(2 * n))
        heard.append(asked.action)
        if heard[-1] == "deny" and tells:
            error = not_made(asked)
            heard.append(guard.after("Bash", {"command": command}, error=error, at=at(2 * n + 1)).action)
        elif heard[-1] == "go_on":
            heard.append(guard.after("Bash", {"command": command}, "1 failed", at=at(2 * n + 1)).action)
        if heard[-1] == "stop" or (heeds and heard[-1] == "guide"):
            break
    return heard


def test_an_agent_that_loops_is_told_then_denied_then_stopped() -> None:
    """Guidance comes once, and what was denied as a repetition counts as one: the session ends at the fifth."""
    guard = Guard()
    heard = agent(guard)
    assert [action for action in heard if action != "go_on"] == ["guide", "deny", "deny", "stop"]
    assert heard.index("guide") == 5, "after the third call"
    assert guard.stopped
    assert [alert.level for alert in guard.alerts] == ["warn", "terminate"]
    stop = guard.before("Read", {"path": "a.py"}, at=at(500))
    assert (stop.action, stop.calls, stop.expires_at) == ("stop", (), None)
    assert "pytest -q" in stop.text


def test_who_does_not_tell_of_denials_is_stopped_all_the_same() -> None:
    """After three denials the call is let through, made and counted."""
    guard = Guard()
    heard = agent(guard, tells=False)
    assert [action for action in heard if action != "go_on"] == ["guide", "deny", "deny", "deny", "stop"]
    assert guard.stopped


def test_guidance_says_what_the_worker_would_say() -> None:
    """The text is that of the directive, with what is quoted marked as such."""
    guard = Guard()
    told = [guard.after("Bash", {"command": "pytest"}, "1 failed", at=at(n)) for n in range(3)]
    assert [each.action for each in told] == ["go_on", "go_on", "guide"]
    assert "----- quotation" in told[2].text
    assert (told[2].session_id, told[2].detector) == (guard.session_id, "identical")
    assert guard.verdict(at=at(4)) == GO_ON, "it was given"


@pytest.fixture(scope="module")
def parts() -> list[Part]:
    """Give the demo's sessions: one that works, and three that loop."""
    return load()


def test_recorded_loops_are_stopped_and_recorded_work_is_not_touched(parts: list[Part]) -> None:
    """What the demo expects of the worker holds for the guard on the same sessions."""
    for part in parts:
        guard = Guard()
        found = actions(played(guard, part.session.events))
        assert ("stop" in found) == part.role.terminated, part.role.name
        assert bool(found) == part.role.warned, part.role.name


def test_alerts_are_those_of_the_detectors(parts: list[Part]) -> None:
    """Nothing is added and nothing is left out, of sessions and of tasks."""
    for part in parts:
        state, task, limits = SessionState(), TaskState(), Limits()
        expected = []
        guard = Guard(session_id=part.role.name)
        for event in part.session.events:
            found = step(state, event, limits)
            expected += found.alerts
            if found.task_event is not None:
                expected += observe_task(task, found.task_event, limits)
            guard.observe(event)
        assert list(guard.alerts) == expected[-MAX_ALERTS:], part.role.name


HONEST: dict[str, list[ToolCall]] = {
    "reads": [view(n, f"src/{n}.py", f"{PAGE_TEXT} {n}") for n in range(40)],
    "edits and checks": [
        each
        for n in range(0, 40, 2)
        for each in (edit(n, f"src/{n}.py", f"new {n}"), shell(n + 1, "pytest -q", f"{40 - n} failed: test_{n}"))
    ],
    "polls": [shell(60 * n, "gh pr checks 7", "build  pending") for n in range(8)],
    "grows": [shell(n, "./import.sh", f"{n} of 40 done") for n in range(40)],
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_work_is_never_denied_or_stopped(name: str) -> None:
    """Reading on, mending and checking, waiting with patience."""
    assert actions(played(Guard(), HONEST[name])) == set()


def test_after_an_edit_the_same_check_is_let_through() -> None:
    """What the guidance asks for is not denied: change something, then run it again."""
    guard = Guard()
    agent(guard, heeds=True)
    assert guard.before("Edit", {"file_path": "a.py", "new_string": "b"}, at=at(10)).action == "go_on"
    guard.after("Edit", {"file_path": "a.py", "new_string": "b"}, "updated", at=at(11))
    assert guard.before("Bash", {"command": "pytest -q"}, at=at(12)).action == "go_on"


def test_a_person_lets_it_go_on() -> None:
    """A word to the agent sets counts back, and resume takes a stop back; another loop is stopped again."""
    guard = Guard()
    guard.after("Bash", {"command": "pytest"}, "1 failed", at=at(0))
    guard.after("Bash", {"command": "pytest"}, "1 failed", at=at(1))
    guard.user_message(at=at(2))
    assert guard.after("Bash", {"command": "pytest"}, "1 failed", at=at(3)).action == "go_on"
    agent(guard)
    assert guard.stopped
    guard.resume(at=at(1_000))
    assert not guard.stopped
    later = [guard.after("Bash", {"command": "make"}, "error 2", at=at(1_001 + n)).action for n in range(6)]
    assert later == ["go_on", "go_on", "guide", "go_on", "stop", "stop"]


@pytest.mark.parametrize(
    ("mode", "found"), [("observe", set()), ("warn", {"guide", "deny"}), ("enforce", {"guide", "deny", "stop"})]
)
def test_the_mode_counts(mode: str, found: set[str]) -> None:
    """Observing asks for nothing, warning for no stop."""
    guard = Guard({"mode": mode})
    assert set(agent(guard)) - {"go_on"} == found
    assert guard.alerts


def test_limits_may_be_set_and_wrong_ones_are_named() -> None:
    """By dotted name or nested, or as they are."""
    assert len(agent(Guard({"identical.warn": 2, "identical": {"terminate": 3}}))) < len(agent(Guard(Limits())))
    with pytest.raises(InvalidLimits, match=r"identical\.wran"):
        Guard({"identical.wran": 2})


def test_a_circle_of_fix_attempts_is_told() -> None:
    """What spins as a task is watched as well."""
    guard = Guard(agent=Agent(id="a"), task=Task(id="t"))
    told = [guard.observe(fix_attempt(n, "Round each line, then add", outcome="failed")).action for n in range(8)]
    assert "guide" in told or "stop" in told
    assert {alert.scope for alert in guard.alerts} == {"task"}


class Odd:
    """Something that cannot be looked at."""

    def __repr__(self) -> str:
        raise RuntimeError

    __str__ = __repr__


def test_nothing_that_it_is_given_raises() -> None:
    """Whatever arguments, results and errors are, the agent goes on, and what can be compared is compared."""
    guard = Guard()
    values: tuple[object, ...] = (Odd(), {"a": Odd()}, b"\xff", 2**80, "\ud800", "x" * 3_000_000, {1, 2}, None, [[[]]])
    for value in values:
        assert guard.before("t" * 300, value).action == "go_on"
        assert guard.after("t" * 300, value, value, ValueError(value)).action == "go_on"
    assert guard.after("", {}, "").action == "go_on"
    assert guard.after("t", {}, "", status="odd").action == "go_on"  # type: ignore[arg-type]


def test_what_is_no_call_is_told_once_and_leaves_nothing_behind(caplog: pytest.LogCaptureFixture) -> None:
    """The log names field and remedy, once, without a traceback; a call without a proper time counts as one of now."""
    guard = Guard()
    for _ in range(2):
        assert guard.before(None).action == "go_on"  # type: ignore[arg-type]
        assert guard.after("t", {}, "", call_id=7).action == "go_on"  # type: ignore[arg-type]
        assert guard.observe(None).action == "go_on"  # type: ignore[arg-type]
        guard.user_message(at=5)  # type: ignore[arg-type]
        guard.resume(at=datetime(2026, 1, 1))  # noqa: DTZ001 - which is the case
        assert guard.verdict(at="now").action == "go_on"  # type: ignore[arg-type]
    assert [record.getMessage() for record in caplog.records] == [
        "a call was not looked at: tool: give a text",
        "an event was not looked at: event: give a record of a session's topics",
        "the present time is taken: at: give a datetime with an offset",
    ]
    assert not any(record.exc_info for record in caplog.records)
    for _ in range(20):
        guard.after("t", {}, "same", at=5)  # type: ignore[arg-type]
    assert guard.stopped
    with pytest.raises(ValueError, match="session_id: give a text"):
        Guard(session_id=5)  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_value_raises(data: st.DataObject) -> None:
    """Each method takes anything in the place of each argument, and a loop is still found afterwards."""
    guard = Guard({"off": ["spin_score"]})
    odd: st.SearchStrategy[Any] = st.sampled_from(
        [None, 5, "", "x" * 2_000, "\ud800", b"x", [], {1: {2}}, Odd, Odd(), Agent(id=5), at(1)]  # type: ignore[arg-type]
    )
    names = {"after": ("error", "status", "call_id", "batch_id", "at"), "before": ("at",), "observe": (), "obeyed": ()}
    for name, more in names.items():
        extra = data.draw(st.dictionaries(st.sampled_from(more), odd)) if more else {}
        getattr(guard, name)(data.draw(odd), *(data.draw(odd) for _ in more[:1]), **extra)
    for name in ("user_message", "resume", "verdict"):
        getattr(guard, name)(at=data.draw(odd))
    assert "stop" in [guard.after("t", {}, "same").action for _ in range(40)]


def test_it_is_bounded() -> None:
    """Its state does not grow with the session, nor do the alerts that it keeps."""
    guard = Guard({"off": ["spin_score"]})
    for n in range(3_000):
        guard.after("Bash", {"command": f"make {n // 6}"}, "error", at=at(n))
        if guard.verdict(at=at(n)).action == "stop":
            guard.resume(at=at(n))
    assert len(guard.alerts) == MAX_ALERTS
    assert len(msgspec.msgpack.encode(guard._state)) < 20_000


def test_threads_may_share_it() -> None:
    """Calls of several threads are counted each once."""
    guard = Guard({"mode": "observe", "off": ["spin_score"]})
    verdicts: list[Verdict] = []

    def work(number: int) -> None:
        for n in range(50):
            verdicts.append(guard.before("t", {"thread": number, "n": n}))
            guard.after("t", {"thread": number, "n": n}, f"result {number} {n}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert guard._state.calls == 200
    assert {each.action for each in verdicts} == {"go_on"}


def test_the_end_of_the_block_is_the_end_of_the_session() -> None:
    """A guard is a context manager; its name is its own unless given."""
    with Guard(session_id="mine") as guard, Guard() as other:
        assert (guard.session_id, other.session_id == guard.session_id) == ("mine", False)
    assert guard._state.ended
