"""Verdicts from real topics: what was there at the start, what comes while they are followed, answers, brokers away."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from aiokafka.admin import NewPartitions

from schemas.encode import encode, headers, record_key
from streams import reading
from streams.kafka import KafkaSettings, KafkaUnavailable, admin, producer, running
from streams.topics import TopicsError
from streams.verdicts import GO_ON
from streams.verdicts.live import LiveVerdicts
from tests.streams.outputs_kit import PARTITIONS, answers, directive, put, put_raw, soon, termination
from tests.streams.verdicts.kit import BEGIN, call, ended, key, said
from tests.waiting import SOON_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiokafka import AIOKafkaProducer

    from schemas.events import Control
    from streams.verdicts import Verdict


class Writing:
    """Writes answers, unless it is told to fail."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self.kafka = kafka
        self.failing = False
        self.asked = 0

    async def __call__(self, control: Control) -> None:
        """Write an answer."""
        self.asked += 1
        await asyncio.sleep(0)  # as long as it is on its way, others may come by
        if self.failing:
            raise ConnectionError
        await put(self.kafka, control)


def follow(kafka: KafkaSettings, actor: str = "traction") -> LiveVerdicts:
    """Make what is tested."""
    return LiveVerdicts(kafka, Writing(kafka), actor=actor)


async def until(live: LiveVerdicts, session: str, wanted: Callable[[Verdict], bool]) -> Verdict:
    """Wait for a verdict."""
    async with asyncio.timeout(SOON_SECONDS):
        while not wanted(found := live.verdict(session)):  # noqa: ASYNC110 - topics tell nobody
            await asyncio.sleep(0.02)
    return found


async def test_what_was_asked_before_the_start_holds_at_once(kafka: KafkaSettings) -> None:
    """A process that starts tells of terminations, guidance and answers that were there, and of no one else's."""
    named = [termination(), directive("d2", session_id="s2"), directive("d3", session_id="s3")]
    await put(kafka, *named)
    async with follow(kafka, "gateway-1") as live:
        assert [live.verdict(f"s{n}").action for n in range(5)] == ["go_on", "stop", "guide", "guide", "go_on"]
        await live.handed_out(live.verdict("s2"))
        assert live.verdict("s2") == GO_ON
    (answer,) = await answers(kafka)
    assert (answer.event_id, answer.action, answer.answers, answer.session_id) == ("d2-1-obeyed", "obeyed", "d2", "s2")
    assert (answer.actor, answer.task.id if answer.task else None) == ("gateway-1", "t1")
    async with follow(kafka) as again:
        assert [again.verdict(f"s{n}").action for n in (1, 2, 3)] == ["stop", "go_on", "guide"]


async def test_what_comes_later_is_followed(kafka: KafkaSettings) -> None:
    """A termination stops at once, a resume lets go on; what cannot be read is left out, and what follows is not."""
    async with follow(kafka) as live:
        await put(kafka, termination())
        stopped = await until(live, "s1", lambda verdict: verdict.action == "stop")
        await live.answer_to("s1", "x1", "ended", reason="it was over")
        with pytest.raises(LookupError, match="answers"):
            await live.answer_to("s2", "x1", "obeyed")
        async with follow(kafka) as other:
            assert other.verdict("s1") == stopped, "an answer takes nothing back"
        (answer,) = await answers(kafka)
        assert (answer.event_id, answer.reason) == ("x1-1-ended", "it was over")
        await put_raw(kafka, f"{kafka.prefix}control", "s1", b"{")
        await put(kafka, said("resume", (soon(seconds=1) - BEGIN).total_seconds()))
        await until(live, "s1", lambda verdict: verdict == GO_ON)
        assert live.unreadable == 1


async def test_a_repeated_call_is_denied_as_events_tell(kafka: KafkaSettings) -> None:
    """A directive that names the latest call of a session denies it when it is asked for again."""
    async with follow(kafka) as live:
        live.note(call("pytest"))
        await put(kafka, directive(repeats=(key("pytest").digest,)))
        await live.handed_out(await until(live, "s1", lambda verdict: verdict.action == "guide"))
        assert live.verdict("s1", key("pytest"), now=call("pytest", 1).occurred_at).action == "deny"
        assert live.verdict("s1", key("ls")).action == "go_on"


async def test_brokers_and_topics_that_are_not_there_are_told(kafka: KafkaSettings, prefix: str) -> None:
    """The start fails in words."""
    with pytest.raises(TopicsError, match="control"):
        async with follow(KafkaSettings(bootstrap=kafka.bootstrap, prefix=f"{prefix}none.")):
            pass
    with pytest.raises(KafkaUnavailable):
        async with follow(KafkaSettings(bootstrap="127.0.0.1:9")):
            pass


async def test_a_stop_that_was_handed_out_is_answered_once(kafka: KafkaSettings) -> None:
    """A session that was told to stop obeyed, however often and by how many hooks it is told; it goes on being told."""
    await put(kafka, termination("x0", attempt=2), termination("x1"))
    async with follow(kafka) as live:
        stop = live.verdict("s1")
        await asyncio.gather(*(live.handed_out(stop) for _ in range(3)))
        await live.handed_out(live.verdict("s1"))
        assert live.verdict("s1") == stop
    async with follow(kafka) as other:
        await other.handed_out(other.verdict("s1"))
    found = [(each.event_id, each.action, each.session_id) for each in await answers(kafka)]
    assert sorted(found) == [("x0-2-obeyed", "obeyed", "s1"), ("x1-1-obeyed", "obeyed", "s1")]


async def test_an_answer_that_could_not_be_written_is_given_when_the_termination_comes_again(
    kafka: KafkaSettings,
) -> None:
    """Until the brokers have an answer it is due: at the next hook, and at each repetition."""
    await put(kafka, termination())
    writing = Writing(kafka)
    writing.failing = True
    async with LiveVerdicts(kafka, writing) as live:
        for _ in range(2):
            with pytest.raises(ConnectionError):
                await live.handed_out(live.verdict("s1"))
        assert writing.asked == 2
        await put(kafka, termination(attempt=2))
        await _eventually(lambda: writing.asked == 3)
        writing.failing = False
        await put(kafka, termination(attempt=3))
        await _eventually(lambda: not live._table.unanswered("s1", soon()))
    (answer,) = await answers(kafka)
    assert answer.event_id == "x1-3-obeyed"


async def test_a_session_that_has_ended_is_answered_for(kafka: KafkaSettings) -> None:
    """Whether the termination comes before the end or after it: `ended`; not for a session that has begun anew."""
    writing = Writing(kafka)
    async with LiveVerdicts(kafka, writing) as live:
        live.note(ended(0, "s2"))
        live.note(ended(0, "s3"))
        live.note(call("ls", 1, "s3"))
        await put(kafka, termination(), termination("x2", session_id="s2"), termination("x3", session_id="s3"))
        for session in ("s1", "s3"):
            await until(live, session, lambda verdict: verdict.action == "stop")
        live.note(ended(0))
        await live.settle("s1")
        await live.settle("s3")
        await _eventually(lambda: not live._table.unanswered("s2", soon()))
    found = [(each.answers, each.action) for each in await answers(kafka)]
    assert sorted(found) == [("x1", "ended"), ("x2", "ended")]


async def test_partitions_that_are_added_are_followed(kafka: KafkaSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A termination in a partition that was not there at the start stops its session, and no record is read twice."""
    monkeypatch.setattr(reading, "NEWS_MS", 300)
    await put(kafka, termination())
    async with follow(kafka) as live:
        async with running(admin(kafka), kafka) as client:
            name = f"{kafka.prefix}terminations"
            await client.create_partitions({name: NewPartitions(PARTITIONS + 1)})
        late = termination("x9", session_id="s9")
        async with running(producer(kafka, metadata_max_age_ms=300), kafka) as client:
            await _eventually(lambda: len(client.client.cluster.partitions_for_topic(name) or ()) > PARTITIONS, client)
            await client.send_and_wait(
                name, encode(late), key=record_key(late), headers=headers(late, source="/test"), partition=PARTITIONS
            )
        await until(live, "s9", lambda verdict: verdict.action == "stop")
        await put(kafka, said("resume", (soon(seconds=1) - BEGIN).total_seconds()))
        await until(live, "s1", lambda verdict: verdict == GO_ON)
    async with follow(kafka) as again:
        assert again.verdict("s9").action == "stop"


async def _eventually(condition: Callable[[], bool], client: AIOKafkaProducer | None = None) -> None:
    async with asyncio.timeout(SOON_SECONDS):
        while not condition():
            if client is not None:
                await client.client.fetch_all_metadata()
            await asyncio.sleep(0.02)
