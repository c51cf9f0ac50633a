"""Verdicts from real topics: what was there at the start, what comes while they are followed, answers, brokers away."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from streams.kafka import KafkaSettings, KafkaUnavailable
from streams.topics import TopicsError
from streams.verdicts import GO_ON
from streams.verdicts.live import LiveVerdicts
from tests.streams.outputs_kit import answers, directive, put, put_raw, soon, termination
from tests.streams.verdicts.kit import BEGIN, call, key, said

if TYPE_CHECKING:
    from collections.abc import Callable

    from streams.verdicts import Verdict


async def until(live: LiveVerdicts, session: str, wanted: Callable[[Verdict], bool]) -> Verdict:
    """Wait for a verdict."""
    async with asyncio.timeout(30):
        while not wanted(found := live.verdict(session)):  # noqa: ASYNC110 - topics tell nobody
            await asyncio.sleep(0.02)
    return found


async def test_what_was_asked_before_the_start_holds_at_once(kafka: KafkaSettings) -> None:
    """A process that starts tells of terminations, guidance and answers that were there, and of no one else's."""
    named = [termination(), directive("d2", session_id="s2"), directive("d3", session_id="s3")]
    await put(kafka, *named)
    async with LiveVerdicts(kafka, actor="gateway-1") as live:
        assert [live.verdict(f"s{n}").action for n in range(5)] == ["go_on", "stop", "guide", "guide", "go_on"]
        await live.handed_out(live.verdict("s2"))
        await live.handed_out(live.verdict("s1"))
        assert live.verdict("s2") == GO_ON
    (answer,) = await answers(kafka)
    assert (answer.event_id, answer.action, answer.answers, answer.session_id) == ("d2-1-obeyed", "obeyed", "d2", "s2")
    assert (answer.actor, answer.task.id if answer.task else None) == ("gateway-1", "t1")
    async with LiveVerdicts(kafka) as again:
        assert [again.verdict(f"s{n}").action for n in (1, 2, 3)] == ["stop", "go_on", "guide"]


async def test_what_comes_later_is_followed(kafka: KafkaSettings) -> None:
    """A termination stops at once, a resume lets go on; what cannot be read is left out, and what follows is not."""
    async with LiveVerdicts(kafka) as live:
        await put(kafka, termination())
        stopped = await until(live, "s1", lambda verdict: verdict.action == "stop")
        await live.answer(stopped, "ended", reason="it was over")
        with pytest.raises(LookupError, match="answers"):
            await live.answer_to("s2", "x1", "obeyed")
        async with LiveVerdicts(kafka) as other:
            assert other.verdict("s1") == stopped, "an answer takes nothing back"
        (answer,) = await answers(kafka)
        assert (answer.event_id, answer.reason) == ("x1-1-ended", "it was over")
        await put_raw(kafka, f"{kafka.prefix}control", "s1", b"{")
        await put(kafka, said("resume", (soon(seconds=1) - BEGIN).total_seconds()))
        await until(live, "s1", lambda verdict: verdict == GO_ON)
        assert live.unreadable == 1


async def test_a_repeated_call_is_denied_as_events_tell(kafka: KafkaSettings) -> None:
    """A directive that names the latest call of a session denies it when it is asked for again."""
    async with LiveVerdicts(kafka) as live:
        live.note(call("pytest"))
        await put(kafka, directive(repeats=(key("pytest").digest,)))
        await live.handed_out(await until(live, "s1", lambda verdict: verdict.action == "guide"))
        assert live.verdict("s1", key("pytest"), now=call("pytest", 1).occurred_at).action == "deny"
        assert live.verdict("s1", key("ls")).action == "go_on"


async def test_brokers_and_topics_that_are_not_there_are_told(kafka: KafkaSettings, prefix: str) -> None:
    """The start fails in words."""
    with pytest.raises(TopicsError, match="control"):
        async with LiveVerdicts(KafkaSettings(bootstrap=kafka.bootstrap, prefix=f"{prefix}none.")):
            pass
    with pytest.raises(KafkaUnavailable):
        async with LiveVerdicts(KafkaSettings(bootstrap="127.0.0.1:9")):
            pass
