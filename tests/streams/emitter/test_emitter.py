"""What agents tell arrives whole and once, in batches; nothing of it raises, and verdicts come back."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import UNSET

from schemas.events import Control
from streams.emitter import Agent, AsyncEmitter, EmitterSettings, ErrorInfo, Replacement, Task, Usage, Verdict
from streams.plain import MAX_EVENT_BYTES
from streams.privacy import EXCERPT_CHARS, arguments_digest
from streams.verdicts import GO_ON

if TYPE_CHECKING:
    from collections.abc import Callable

    from streams.emitter import Emitter
    from tests.streams.emitter.kit import GatewayStub

    Make = Callable[..., Emitter]

SOON = (datetime.now(UTC) + timedelta(minutes=15)).isoformat()


def wait(emitter: Emitter) -> None:
    """Wait until everything is sent or kept."""
    assert emitter.flush(20)


def guide(**fields: Any) -> dict[str, Any]:
    """Make guidance as the gateway gives it."""
    return {"action": "guide", "session_id": "s1", "text": "Stop.", "answers": "d1", "expires_at": SOON, **fields}


def test_each_kind_of_event_arrives_as_it_was_told(emitter: Make, gateway: GatewayStub) -> None:
    """Every field has its place, defaults are filled in, and the contract takes all of it."""
    made = emitter(agent=Agent(id="a1"), task=Task(id="t1"))
    first = made.tool_call(
        "s1", "Bash", {"command": "ls"}, "a.py", call_id="c1", batch_id="b1", duration_ms=3.5, usage=Usage(cost_usd=0.1)
    )
    made.tool_call("s1", "Bash", {"command": "ls"}, error=TimeoutError("after 5 s"), task=Task(id="t2"))
    made.fix_attempt("s1", "failed", diff="--- a", failing=["test_a"], replacements=[Replacement(path="a", new="b")])
    made.review("s1", "acme/shop#1", "changes_requested", author="person", findings=["no"], number=2)
    made.session("s1", "ended", reason="done", event_id="end", occurred_at=datetime(2026, 1, 1, tzinfo=UTC))
    wait(made)
    call, failed, attempt, review, ended = gateway.events
    assert (call.event_id, call.session_id, call.tool, call.arguments, call.result) == (
        first, "s1", "Bash", {"command": "ls"}, "a.py",
    )  # fmt: skip
    assert (call.call_id, call.batch_id, call.duration_ms, call.usage.cost_usd) == ("c1", "b1", 3.5, 0.1)
    assert (call.status, call.agent.id, call.task.id) == (None, "a1", "t1")
    assert (failed.status, failed.error, failed.result, failed.task.id) == (
        "timeout", ErrorInfo(type="TimeoutError", message="after 5 s"), UNSET, "t2",
    )  # fmt: skip
    assert (attempt.outcome, attempt.failing, attempt.replacements[0].new) == ("failed", ("test_a",), "b")
    assert (review.verdict, review.author, review.round, review.findings[0].text) == (
        "changes_requested", "person", 2, "no",
    )  # fmt: skip
    assert (ended.event_id, ended.kind, ended.occurred_at.year) == ("end", "ended", 2026)
    assert made.counts.sent == 5


class Odd:
    """Something that is no JSON."""

    def __str__(self) -> str:
        return "odd"

    def __repr__(self) -> str:
        raise RuntimeError


class Broken(Odd):
    """Something that cannot even be looked at."""

    def __str__(self) -> str:
        raise RuntimeError


def test_whatever_an_agent_has_in_its_hands_is_sent(emitter: Make, gateway: GatewayStub) -> None:
    """Objects become their text, numbers and texts beyond JSON what comes nearest; nothing is left out for it."""
    deep: list[Any] = []
    for _ in range(300):
        deep = [deep]
    values = [{"a": Odd(), 1: {2, 1}}, Broken(), 2**70, "\ud800", deep, b"\xff", float("nan"), [1, (2, 3)]]
    made = emitter()
    for value in values:
        made.tool_call("s1", "t" * 1_000, {"value": value}, value)
    wait(made)
    assert (made.counts.sent, made.counts.invalid) == (len(values), 0)
    assert gateway.events[0].arguments == {"value": {"a": "odd", "1": [1, 2]}}
    assert gateway.events[-1].result == [1, [2, 3]]


def test_blocks_of_content_are_sent_as_their_text(emitter: Make, gateway: GatewayStub) -> None:
    """MCP's results say the same as a text that is no block; a list of data stays one."""
    made = emitter()
    made.tool_call("s1", "t", {}, [{"type": "text", "text": "1 failed"}, {"type": "image", "data": "…"}])
    made.tool_call("s1", "t", {}, [{"kind": "data"}])
    wait(made)
    assert [event.result for event in gateway.events] == ["1 failed\n[image]", [{"kind": "data"}]]


def test_what_is_no_event_is_counted_and_raises_nothing(
    emitter: Make, gateway: GatewayStub, caplog: pytest.LogCaptureFixture
) -> None:
    """Wrong kinds, texts that are too long, unknown fields, and control records, which agents do not write."""
    made = emitter()
    made.session("s1", "slept")  # type: ignore[arg-type]
    made.fix_attempt("s1", "failed", approach="secret" * 1_000_000)
    made.tool_call("s1", "t", nonsense=1)
    made.tool_call("", "t")
    made.tool_call("s1", "t", duration_ms="long")  # type: ignore[arg-type]
    made.send(Control(event_id="e", session_id="s1", occurred_at=datetime.now(UTC), action="resume"))
    wait(made)
    assert (made.counts.invalid, gateway.events) == (6, [])
    assert "secret" not in caplog.text
    assert len(caplog.records) == 1, "one warning, not one for each"


def test_a_call_that_is_too_long_is_cut(emitter: Make, gateway: GatewayStub) -> None:
    """Texts are cut first, and digests are sent where that does not help; equal calls stay equal."""
    made = emitter()
    made.tool_call("s1", "read", {"path": "a"}, "x" * MAX_EVENT_BYTES)
    made.tool_call("s1", "write", {"lines": ["y" * 50] * (MAX_EVENT_BYTES // 50)}, "done")
    wait(made)
    cut, digested = gateway.events
    assert (len(cut.result), cut.result_length) == (EXCERPT_CHARS, MAX_EVENT_BYTES)
    assert digested.arguments is UNSET
    assert digested.arguments_digest == arguments_digest("write", {"lines": ["y" * 50] * (MAX_EVENT_BYTES // 50)})


def test_the_privacy_level_holds_for_what_is_sent_and_kept(emitter: Make, gateway: GatewayStub, tmp_path: Any) -> None:
    """With digests no text of a call leaves the process, onto the wire or the disk."""
    made = emitter(privacy="digests", key=b"k")
    made.tool_call("s1", "Bash", {"command": "confidential"}, "confidential", error="confidential")
    wait(made)
    assert b"confidential" not in b"".join(str(event).encode() for event in gateway.events)
    gateway.status = 503
    made.tool_call("s1", "Bash", {"command": "confidential"}, "confidential", error="confidential")
    wait(made)
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"arguments_digest" in kept
    assert b"confidential" not in kept


def test_verdicts_come_with_the_answers(emitter: Make, gateway: GatewayStub) -> None:
    """A verdict is there after the answer, told once when it is new, and gone when it is taken back."""
    heard: list[Verdict] = []

    def hear(verdict: Verdict) -> None:
        heard.append(verdict)
        raise ValueError

    made = emitter(on_verdict=hear)
    gateway.verdicts["s1"] = {"action": "stop", "session_id": "s1", "text": "Enough.", "answers": "x1"}
    for session in ("s1", "s1", "s2"):
        made.tool_call(session, "t")
        wait(made)
    assert [(each.action, each.text) for each in heard] == [("stop", "Enough.")]
    assert (made.verdict("s1"), made.verdict("s2")) == (heard[0], GO_ON)
    made.answer(heard[0], "ended", reason="it was over")
    gateway.verdicts.clear()
    made.tool_call("s1", "t")
    wait(made)
    assert made.verdict("s1") == GO_ON
    assert gateway.said == [{"session_id": "s1", "answers": "x1", "action": "ended", "reason": "it was over"}]


def test_guidance_is_given_until_it_is_answered_and_denies_the_call_it_is_about(
    emitter: Make, gateway: GatewayStub
) -> None:
    """After the answer it is given no more, though the gateway may still tell of it; the repeated call is denied."""
    made = emitter()
    key = made.call_key("Bash", {"command": "pytest"})
    assert key is not None
    made.tool_call("s1", "Bash", {"command": "pytest"}, "1 failed")
    gateway.verdicts["s1"] = guide(calls=[{"digest": key.digest}])
    made.tool_call("s1", "Bash", {"command": "pytest"}, "1 failed")
    wait(made)
    verdict = made.verdict("s1")
    assert (verdict.action, verdict.text, made.verdict("s1")) == ("guide", "Stop.", verdict)
    made.answer(verdict, "obeyed")
    wait(made)
    assert (made.verdict("s1"), gateway.said[0]["action"]) == (GO_ON, "obeyed")
    assert made.verdict("s1", key).action == "deny"
    assert made.verdict("s1", made.call_key("Bash", {"command": "ls"})) == GO_ON
    assert made.verdict("s1", key) == GO_ON, "something else was done in between"


def test_guidance_that_is_taken_back_before_it_was_given_is_not_given(emitter: Make, gateway: GatewayStub) -> None:
    """What the gateway tells of no more, another process has given, or a person has taken back."""
    made = emitter()
    gateway.verdicts["s1"] = guide()
    made.tool_call("s1", "t")
    wait(made)
    gateway.verdicts.clear()
    made.tool_call("s1", "t")
    wait(made)
    assert made.verdict("s1") == GO_ON


def test_a_session_can_be_asked_about_at_any_time(emitter: Make, gateway: GatewayStub) -> None:
    """Between events too; what is known holds where the gateway does not answer, or not as it should."""
    made = emitter()
    gateway.verdicts["s1"] = {"action": "stop", "session_id": "s1", "text": "Enough.", "answers": "x1"}
    assert made.ask("s1").action == "stop"
    gateway.status = 503
    assert made.ask("s1").action == "stop"
    gateway.status, gateway.verdicts["s1"] = 200, {"action": "juggle"}
    assert made.ask("s1").action == "stop"
    gateway.verdicts["s1"] = {"action": "go_on"}
    assert made.ask("s1") == GO_ON


def test_a_token_is_shown_and_read_again_when_it_is_replaced(
    emitter: Make, gateway: GatewayStub, tmp_path: Any
) -> None:
    """A token of a file that is refused is read anew; what was refused meanwhile is not lost."""
    gateway.token = "second"  # noqa: S105 - of this test
    (tmp_path / "token").write_text("first\n")
    made = emitter(token_file=tmp_path / "token")
    made.tool_call("s1", "t")
    wait(made)
    assert gateway.events == []
    (tmp_path / "token").write_text("second\n")
    gateway.arrived(1)
    assert gateway.headers["Authorization"] == "Bearer second"


async def test_an_async_emitter_tells_verdicts_in_the_loop(gateway: GatewayStub, tmp_path: Any) -> None:
    """The callback may be a coroutine; what waits is awaited."""
    heard: list[Verdict] = []
    here = threading.get_ident()

    async def hear(verdict: Verdict) -> None:
        assert threading.get_ident() == here
        heard.append(verdict)

    gateway.verdicts["s1"] = {"action": "stop", "session_id": "s1", "answers": "x1"}
    settings = EmitterSettings(url=gateway.url, spool=str(tmp_path))
    async with AsyncEmitter(settings, on_verdict=hear) as made:
        made.tool_call("s1", "t")
        assert await made.flush(20)
        assert (await made.ask("s1")).action == "stop"
    assert [each.action for each in heard] == ["stop"]


@pytest.mark.parametrize("waits", [False, True])
async def test_a_callback_that_fails_is_told_without_a_traceback(
    gateway: GatewayStub, tmp_path: Any, caplog: pytest.LogCaptureFixture, *, waits: bool
) -> None:
    """Whether it is a coroutine or not, the loop goes on, and the log says that it failed."""
    failed = asyncio.Event()

    def hear(_: Verdict) -> None:
        failed.set()
        raise RuntimeError("confidential")

    async def hear_later(verdict: Verdict) -> None:
        hear(verdict)

    gateway.verdicts["s1"] = {"action": "stop", "session_id": "s1", "answers": "x1"}
    settings = EmitterSettings(url=gateway.url, spool=str(tmp_path))
    async with AsyncEmitter(settings, on_verdict=hear_later if waits else hear) as made:
        await made.ask("s1")
        await failed.wait()
    await asyncio.sleep(0)
    assert [(each.getMessage(), each.exc_info) for each in caplog.records] == [
        ("on_verdict failed: RuntimeError", None)
    ]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"url": "127.0.0.1:8321"}, "url"),
        ({"url": "http://user:secret@host"}, "url"),
        ({"token": "a", "token_file": "b"}, "token"),
        ({"token": "ä"}, "token"),
        ({"url": None}, "url"),
        ({"privacy": "all"}, "privacy: one of digests, excerpts, full"),
        ({"key": "secret"}, "key"),
        ({"key": b"secret" * 11}, "key"),
        ({"exit_seconds": float("nan")}, "exit_seconds"),
        ({"queue": "secret"}, "queue"),
        ({"queue": 0}, "queue"),
        ({"timeout_seconds": 0}, "timeout_seconds"),
    ],
)
def test_settings_that_cannot_be_used_are_named(given: dict[str, Any], name: str) -> None:
    """The message names the setting and quotes no secret."""
    with pytest.raises(ValueError, match=f"^{name}") as problem:
        EmitterSettings(**given)
    assert "secret" not in str(problem.value)
