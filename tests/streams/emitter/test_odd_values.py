"""Whatever an agent's code hands to the emitter, nothing raises into it: what cannot be sent is told in the log."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streams.emitter import AsyncEmitter, EmitterSettings, Usage, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from streams.emitter import Emitter
    from tests.streams.emitter.kit import GatewayStub

    Make = Callable[..., Emitter]


class Broken:
    """Something that cannot even be looked at."""

    def __str__(self) -> str:
        raise RuntimeError("confidential")

    __repr__ = __bool__ = __len__ = __iter__ = __str__


ODD = st.sampled_from(
    [None, 5, -1, True, math.nan, math.inf, "", "x", "x" * 2_000, "\ud800", b"\xff", [], [None], {}, {1: {2}}, object(),
     Broken(), Broken, ValueError(Broken()), Usage(input_tokens="x"), Verdict(action=Broken(), session_id=7)],  # type: ignore[arg-type]
)  # fmt: skip
CALLS: dict[str, tuple[int, tuple[str, ...]]] = {
    "tool_call": (4, ("error", "status", "call_id", "batch_id", "usage", "occurred_at", "agent", "event_id")),
    "fix_attempt": (2, ("approach", "files", "replacements", "failing", "attempt_id", "usage", "task")),
    "review": (3, ("author", "findings", "number", "parent_session_id")),
    "session": (2, ("usage", "reason", "event_id", "nonsense")),
    "send": (1, ()),
    "verdict": (2, ()),
    "call_key": (2, ()),
    "answer": (2, ("reason",)),
}  # fmt: skip
"""How many arguments each method takes, and by which names more."""

TAKEN = {"author": "agent"}  # without which a method cannot be called

INVALID = [
    (lambda made: made.tool_call("s", None, {}, "r"), "tool: give a text"),
    (lambda made: made.tool_call("s", 5, {}, "r"), "tool: give a text"),
    (lambda made: made.tool_call("s", "x", {}, "r", call_id=7), "call_id: give a text"),
    (lambda made: made.tool_call(None, "x", {}, "r"), "session_id: give a text"),
    (lambda made: made.tool_call("s", "x", usage=object()), "usage: cannot be made JSON; give a value"),
    (lambda made: made.tool_call("s", "x", status="odd"), "status: "),
    (lambda made: made.tool_call("s", "x", nonsense=1), "'nonsense': no field of ToolCall; leave it out"),
    (lambda made: made.fix_attempt("s", "failed", files="a.py"), "files: give a list, also of one text"),
    (lambda made: made.fix_attempt("s", "failed", failing=5), "failing: give a list"),
    (lambda made: made.send(None), "event: give a ToolCall"),
    (lambda made: made.answer(None, "obeyed"), "verdict: give one as it was given"),
    (lambda made: made.answer(Verdict(action="stop"), "done"), "action: give one of obeyed, refused, ended"),
    (lambda made: made.answer(Verdict(action="stop"), "ended", reason=5), "reason: give a text"),
]  # fmt: skip


@pytest.mark.parametrize(("tell", "said"), INVALID)
def test_what_cannot_be_sent_is_named(
    emitter: Make, gateway: GatewayStub, caplog: pytest.LogCaptureFixture, tell: Callable[[Emitter], object], said: str
) -> None:
    """It is counted each time, and told once, with the field and what to do."""
    made = emitter()
    tell(made)
    tell(made)
    assert made.flush(20)
    assert (made.counts.invalid, gateway.events, gateway.said) == (2, [], [])
    (record,) = caplog.records
    assert said in record.getMessage()
    assert record.exc_info is None


def test_a_question_that_is_none_is_answered_all_the_same(
    emitter: Make, gateway: GatewayStub, caplog: pytest.LogCaptureFixture
) -> None:
    """What is known is given, and what is wrong with the question is told once."""
    gateway.verdicts["s1"] = {"action": "stop", "session_id": "s1", "answers": "x1"}
    made = emitter()
    assert made.ask("s1").action == "stop"
    assert made.ask("s1", seconds="soon").action == "stop"  # type: ignore[arg-type]
    assert made.ask(None).action == "go_on"  # type: ignore[arg-type]
    assert made.verdict([]).action == "go_on"  # type: ignore[arg-type]
    assert made.flush(math.nan)
    assert [record.getMessage() for record in caplog.records] == [
        "a question is not understood: seconds: give a number from 0"
    ]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
@pytest.mark.parametrize("name", CALLS)
def test_no_value_raises(
    asynchronous: AsyncEmitter, caplog: pytest.LogCaptureFixture, name: str, data: st.DataObject
) -> None:
    """Each method takes anything in the place of each argument; nothing of it is in the log, nor a traceback."""
    count, names = CALLS[name]
    given = [data.draw(ODD | st.just("s1")) for _ in range(count)]
    more = {each: TAKEN[each] for each in names if each in TAKEN}
    getattr(asynchronous, name)(
        *given, **more | data.draw(st.dictionaries(st.sampled_from(names), ODD)) if names else {}
    )
    asynchronous.verdict("s1")
    assert not any(record.exc_info or "confidential" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("odd", [None, "x", -1, math.nan, math.inf, [], Broken()])
async def test_what_waits_takes_any_value(gateway: GatewayStub, tmp_path: Path, odd: Any) -> None:
    """In an event loop too, questions and ends are no errors, whatever they are given."""
    made = AsyncEmitter(EmitterSettings(url=gateway.url, spool=str(tmp_path), exit_seconds=0.1), agent=odd, task=odd)
    made.tool_call("s1", "t")
    assert (await made.ask(odd, seconds=odd)).action == "go_on"
    assert await made.flush(5 if odd is math.inf else odd) in {True, False}
    await made.close(odd if odd is not math.inf else 0.1)
