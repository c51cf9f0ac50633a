"""An orchestrator is asked everything once, may crash at any point, and its answers can be read."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from schemas import topics
from schemas.decode import decode
from schemas.encode import encode
from streams.client import Directive, KafkaUnavailable, Orchestrator, Termination, TopicsError
from streams.client import answers as client_answers
from streams.client import orchestrator as module
from streams.kafka import KafkaSettings, admin, running
from streams.reading import partition_of
from tests.streams.outputs_kit import (
    PARTITIONS,
    answers,
    directive,
    fitness,
    known_flapping,
    make,
    put,
    put_raw,
    soon,
    termination,
)
from tests.waiting import SOON_SECONDS

if TYPE_CHECKING:
    from streams.client import Item

GROUP = "fleet"
NUMBERS = itertools.count()


def ours(kafka: KafkaSettings) -> Orchestrator:
    """Make an orchestrator of the test's group."""
    return Orchestrator(kafka, group=f"{kafka.prefix}{GROUP}", actor="fleet-1")


async def take(orchestrator: Orchestrator, count: int) -> list[Item]:
    """Take so many items."""
    async with asyncio.timeout(SOON_SECONDS):
        return [await anext(orchestrator) for _ in range(count)]


async def nothing_more(orchestrator: Orchestrator, kafka: KafkaSettings) -> None:
    """See that what is handed out next is what is written now, to every partition of both topics."""
    last = {f"last-{next(NUMBERS)}" for _ in range(2 * PARTITIONS)}
    sessions = ("s1", "s0", "s2", "s3")
    by_partition = {partition_of(session.encode(), PARTITIONS): session for session in sessions}
    assert len(by_partition) == PARTITIONS
    kinds = [(kind, session) for kind in (directive, termination) for session in by_partition.values()]
    written = [kind(name, session_id=session) for name, (kind, session) in zip(sorted(last), kinds, strict=True)]
    await put(kafka, *written)
    items = await take(orchestrator, len(last))
    assert {item.acknowledge.answers for item in items} == last
    for item in items:
        await orchestrator.done(item)


def control(kafka: KafkaSettings) -> str:
    """Name the topic of answers."""
    return kafka.topic(topics.CONTROL)


async def test_items_of_both_topics_are_answered(kafka: KafkaSettings) -> None:
    """Both kinds come typed, in one iterator; answers name what they answer, who, why, and the session is their key."""
    await put(kafka, directive(control=control(kafka)), termination(control=control(kafka), session_id="s2"))
    async with ours(kafka) as orchestrator:
        items = {type(item): item for item in await take(orchestrator, 2)}
        assert items.keys() == {Directive, Termination}
        await orchestrator.answer(items[Directive], "refused", reason="no such prompt " + "x" * 5_000)
        await orchestrator.answer(items[Termination], "obeyed")

    refused, obeyed = sorted(await answers(kafka), key=lambda each: each.session_id)
    assert (refused.event_id, refused.action, refused.answers) == ("d1-1-refused", "refused", "d1")
    assert (refused.session_id, refused.actor) == ("s1", "fleet-1")
    assert [each.task and each.task.id for each in (refused, obeyed)] == [
        items[kind].task_id for kind in (Directive, Termination)
    ], "the task whose ladder waits, wherever the session has gone meanwhile"
    assert refused.reason is not None
    assert len(refused.reason) == client_answers.MOST_REASON_CHARS
    assert (obeyed.event_id, obeyed.action, obeyed.answers, obeyed.reason) == ("x1-1-obeyed", "obeyed", "x1", None)
    decode(topics.CONTROL, encode(refused))  # fits the contract


async def test_what_was_not_answered_comes_again(kafka: KafkaSettings) -> None:
    """After a crash: what was answered or done does not, what is open does, and what was answered behind that too."""
    await put(kafka, *(directive(f"d{n}", control=control(kafka)) for n in range(4)))
    async with ours(kafka) as first:
        zero, _, two, _ = await take(first, 4)
        await first.answer(zero, "obeyed")
        await first.answer(two, "obeyed")
    async with ours(kafka) as second:
        one, two_again, three = await take(second, 3)
        assert [item.acknowledge.answers for item in (one, two_again, three)] == ["d1", "d2", "d3"]
        for item in (three, one):
            await second.done(item)
        await second.answer(two_again, "obeyed")
    async with ours(kafka) as third:
        await nothing_more(third, kafka)
    assert [each.event_id for each in await answers(kafka)] == ["d0-1-obeyed", "d2-1-obeyed", "d2-1-obeyed"]


async def test_a_repeated_termination_is_obeyed_once(kafka: KafkaSettings) -> None:
    """While it is worked on and after it was answered, another attempt is not handed out; its answer is sent again."""
    attempts = [termination(control=control(kafka), attempt=n) for n in (1, 2, 3)]
    await put(kafka, *attempts[:2])
    async with ours(kafka) as orchestrator:
        (item,) = await take(orchestrator, 1)
        await nothing_more(orchestrator, kafka)
        assert orchestrator.repeated == 1
        await orchestrator.answer(item, "ended", reason="gone since noon")
        await put(kafka, attempts[2])
        await nothing_more(orchestrator, kafka)
        assert orchestrator.repeated == 2
    async with ours(kafka) as later:
        await nothing_more(later, kafka)
    said = [(each.event_id, each.action, each.reason) for each in await answers(kafka)]
    assert said == [("x1-1-ended", "ended", "gone since noon"), ("x1-3-ended", "ended", "gone since noon")]


async def test_a_call_that_is_cancelled_leaves_nothing_open(
    kafka: KafkaSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is broken off while it answers a repeated item is done by the next call, and all is committed."""
    sending = asyncio.Event()

    async def hang(*_: Any, **__: Any) -> None:
        sending.set()
        await asyncio.Event().wait()

    await put(kafka, termination(control=control(kafka)))
    async with ours(kafka) as orchestrator:
        (item,) = await take(orchestrator, 1)
        await orchestrator.answer(item, "obeyed")
        await put(kafka, termination(control=control(kafka), attempt=2))
        with monkeypatch.context() as patched:
            patched.setattr(orchestrator._producer, "send_and_wait", hang)
            waiting = asyncio.ensure_future(anext(orchestrator))
            async with asyncio.timeout(SOON_SECONDS):
                await sending.wait()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        await nothing_more(orchestrator, kafka)
    assert [each.event_id for each in await answers(kafka)] == ["x1-1-obeyed", "x1-2-obeyed"]
    async with ours(kafka) as later:
        await nothing_more(later, kafka)


async def test_answers_are_remembered_up_to_a_limit(kafka: KafkaSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that was answered longest ago makes room, and its termination is handed out again."""
    monkeypatch.setattr(module, "MAX_ANSWERED", 1)
    async with ours(kafka) as orchestrator:
        for name in ("x1", "x2"):
            await put(kafka, termination(name, control=control(kafka)))
            (item,) = await take(orchestrator, 1)
            await orchestrator.answer(item, "obeyed")
        await put(kafka, *(termination(name, control=control(kafka), attempt=2) for name in ("x2", "x1")))
        (again,) = await take(orchestrator, 1)
        assert (again.acknowledge.answers, orchestrator.repeated) == ("x1", 1)


async def test_what_is_too_late_or_cannot_be_read_is_left_out(kafka: KafkaSettings) -> None:
    """Both are counted and do not come again; one that has time left is handed out."""
    name = kafka.topic(topics.DIRECTIVES)
    unknown = encode(directive("d3")).replace(b"inject_guidance", b"make_coffee")
    await put(kafka, directive("d1", expires_at=soon(seconds=-1)), directive("d2", expires_at=soon(minutes=1)))
    await put(kafka, termination("x1", expires_at=soon(seconds=-1)), termination("x2", expires_at=soon(minutes=1)))
    await put_raw(kafka, name, "s1", unknown)
    await put_raw(kafka, kafka.topic(topics.TERMINATIONS), "s1", None)
    async with ours(kafka) as orchestrator:
        items = await take(orchestrator, 2)
        await nothing_more(orchestrator, kafka)
        assert {item.acknowledge.answers for item in items} == {"d2", "x2"}
        assert (orchestrator.expired, orchestrator.unreadable) == (2, 1)


async def test_an_answer_that_an_item_does_not_take_is_refused(kafka: KafkaSettings) -> None:
    """The message names those that it takes, nothing is written, and the item stays open."""
    await put(kafka, directive(control=control(kafka)))
    async with ours(kafka) as orchestrator:
        (item,) = await take(orchestrator, 1)
        with pytest.raises(ValueError, match="inject_guidance is answered with obeyed or refused, not with 'ended'"):
            await orchestrator.answer(item, "ended")
    assert await answers(kafka) == []
    async with ours(kafka) as again:
        await take(again, 1)


async def test_partitions_are_shared_and_nothing_is_lost(kafka: KafkaSettings) -> None:
    """A second one of the group takes partitions over while items are open: all are answered."""
    names = {f"x{n}" for n in range(12)}
    await put(kafka, *(termination(name, control=control(kafka), session_id=f"s-{name}") for name in names))

    async def work(orchestrator: Orchestrator) -> None:
        async for item in orchestrator:
            await orchestrator.answer(item, "obeyed")

    async with ours(kafka) as first:
        held = await take(first, 3)
        async with ours(kafka) as second:
            works = [asyncio.create_task(work(each)) for each in (first, second)]
            async with asyncio.timeout(SOON_SECONDS):
                while len(second._consumer.assignment()) < 2:  # noqa: ASYNC110 - the group tells nobody
                    await asyncio.sleep(0.1)
                for item in held:
                    await first.answer(item, "obeyed")
                while {each.answers for each in await answers(kafka)} < names:  # noqa: ASYNC110 - likewise
                    await asyncio.sleep(0.2)
            for each in works:
                each.cancel()
            await asyncio.gather(*works, return_exceptions=True)


async def test_known_flapping_is_as_the_topic_is_now(kafka: KafkaSettings) -> None:
    """Entries that come, expire or are removed count at once; one that cannot be read counts as none."""
    await put(kafka, known_flapping("t1"), known_flapping("t2", expires_at=soon(seconds=-1)))
    async with ours(kafka) as orchestrator:
        entry = await orchestrator.known_flapping("t1")
        assert entry is not None
        assert entry.termination_id == "x1"
        assert await orchestrator.known_flapping("t2") is None
        assert await orchestrator.known_flapping("t3") is None

        await put(kafka, known_flapping("t3"))
        assert await orchestrator.known_flapping("t3")
        await put_raw(kafka, kafka.topic(topics.KNOWN_FLAPPING), "t3", None)
        await put_raw(kafka, kafka.topic(topics.KNOWN_FLAPPING), "t1", b"{}")
        assert await orchestrator.known_flapping("t3") is None
        assert await orchestrator.known_flapping("t1") is None


async def test_a_topic_that_is_made_anew_is_read_anew(kafka: KafkaSettings) -> None:
    """What was in it before counts no longer."""
    name = kafka.topic(topics.KNOWN_FLAPPING)
    await put(kafka, known_flapping("t1"), known_flapping("t2"))
    async with ours(kafka) as orchestrator:
        assert await orchestrator.known_flapping("t1")
        async with running(admin(kafka), kafka) as client:
            await client.delete_topics([name])
            while name in await client.list_topics():  # noqa: ASYNC110 - the brokers take a moment
                await asyncio.sleep(0.05)
        await make(kafka, name, 1)
        await put(kafka, known_flapping("t2"))
        assert await orchestrator.known_flapping("t1") is None
        assert await orchestrator.known_flapping("t2")


async def test_fitness_is_summed_over_partitions(kafka: KafkaSettings) -> None:
    """The latest record of each partition counts, the best comes first, and only the type that is asked for."""
    await put(
        kafka,
        fitness(0, "a", tasks=1, task_type="bugfix"),
        fitness(0, "a", tasks=4, attempts=9, flapped=3, tokens=5, cost_usd=0.5, task_type="bugfix"),
        fitness(1, "a", tasks=2, attempts=2, converged=1, flapped=1, tokens=7, cost_usd=0.25, task_type="bugfix"),
        fitness(0, "b", tasks=3, converged=3, task_type="bugfix"),
        fitness(0, "a", tasks=9, converged=9, task_type="docs"),
    )
    async with ours(kafka) as orchestrator:
        b, a = await orchestrator.fitness("bugfix")
        assert (b.model, a.model) == ("b", "a")
        counts: Any = (a.tasks, a.attempts, a.converged, a.flapped, a.tokens, a.cost_usd)
        assert counts == (6, 11, 1, 4, 12, 0.75)
        assert len(await orchestrator.fitness()) == 3


async def test_what_is_missing_is_told(bootstrap: str, prefix: str) -> None:
    """Topics that nobody created, and brokers that are not there."""
    with pytest.raises(TopicsError, match="traction topics create"):
        await ours(KafkaSettings(bootstrap=bootstrap, prefix=prefix)).__aenter__()
    with pytest.raises(KafkaUnavailable, match="Is it running"):
        await ours(KafkaSettings(bootstrap="127.0.0.1:1")).__aenter__()


def test_no_more_than_needed_is_imported() -> None:
    """An orchestrator carries neither Faust nor the command line nor a server of pages."""
    program = "import sys, streams.client; print(sorted({'faust', 'mode', 'click', 'aiohttp'} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
