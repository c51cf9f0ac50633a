"""Sinks on a real broker: each delivers in order and holds up only itself; what it cannot deliver is set aside."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import GroupAuthorizationFailedError
from prometheus_client import CollectorRegistry

from schemas import topics
from schemas.encode import encode, record_key
from schemas.outputs import Notification
from streams.kafka import KafkaSettings, consumer, producer, running
from streams.letters.letter import Choice
from streams.letters.replay import Order, Outcome, Replay
from streams.metrics import dead_letters
from streams.sinks.delivery import Timing
from streams.sinks.errors import InvalidSinks
from streams.sinks.metrics import SinkMetrics
from streams.sinks.run import Sinks
from streams.sinks.runner import NEW_SINK_MS
from streams.sinks.settings import AnySettings, read_sinks
from tests.streams.sinks.conftest import (
    PARTITIONS,
    Clock,
    MakeNotification,
    Receiver,
    hang,
    reset,
    status,
)
from tests.streams.sinks.process import SESSION_TIMEOUT_MS
from tests.waiting import SOON_SECONDS, until

KEY = b"SHOP-412"
SECRET = "T0ps3cret"  # noqa: S105 - opens nothing


class Bench:
    """Sinks of this process on the test's topics, and what goes in and comes out."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self.kafka = kafka
        self.registry = CollectorRegistry()
        self.group = f"{kafka.prefix}g"
        self.clock = Clock()

    @contextlib.asynccontextmanager
    async def at_work(self, settings: Sequence[AnySettings], timing: Timing | None = None) -> AsyncIterator[Sinks]:
        """Run sinks."""
        registry = self.registry = CollectorRegistry()
        sinks = Sinks(
            self.kafka,
            self.group,
            SinkMetrics(registry, dead_letters(registry)),
            timing=timing or self.clock.timing,
            session_timeout_ms=SESSION_TIMEOUT_MS,
        )
        sinks.replace(settings, "p")
        stop = asyncio.Event()
        task = asyncio.create_task(sinks.run(stop))
        try:
            yield sinks
        finally:
            stop.set()
            await task

    async def send(self, *sent: Notification | bytes, **more: Any) -> None:
        """Write notifications, or bytes in one's place, in order."""
        async with running(producer(self.kafka), self.kafka) as client:
            for each in sent:
                key, value = (KEY, each) if isinstance(each, bytes) else (record_key(each), encode(each))
                topic = self.kafka.topic(topics.NOTIFICATIONS)
                await client.send_and_wait(topic, key=key, value=value, **more)

    def value(self, name: str, sink: str = "hooks", **labels: str) -> float:
        """Give a metric."""
        return self.registry.get_sample_value(f"traction_sink_{name}", {"sink": sink, **labels}) or 0.0

    def count(self, outcome: str, sink: str = "hooks") -> float:
        """Give how many deliveries had an outcome."""
        return self.value("deliveries_total", sink, outcome=outcome)

    async def letters(self, count: int) -> list[ConsumerRecord]:
        """Wait for so many dead letters, and give them."""
        topic = self.kafka.topic(topics.DEAD_LETTERS)
        found: list[ConsumerRecord] = []
        client = consumer(self.kafka)
        client.assign([TopicPartition(topic, number) for number in range(PARTITIONS)])
        async with running(client, self.kafka), asyncio.timeout(SOON_SECONDS):
            while len(found) < count:
                for records in (await client.getmany(timeout_ms=200)).values():
                    found += records
        assert len(found) == count
        return found

    async def committed(self, sink: str = "hooks") -> int:
        """Give how many records a sink's group has passed."""
        tps = [TopicPartition(self.kafka.topic(topics.NOTIFICATIONS), number) for number in range(PARTITIONS)]
        client = consumer(self.kafka, group_id=f"{self.group}-sink-{sink}")
        client.assign(tps)
        async with running(client, self.kafka):
            return sum([await client.committed(tp) or 0 for tp in tps])


@pytest.fixture
def bench(kafka: KafkaSettings) -> Bench:
    """Give a bench."""
    return Bench(kafka)


def hook(url: str, **more: Any) -> dict[str, Any]:
    """Give the table of a webhook that needs no secret."""
    return {"type": "webhook", "url": f"{url}/{SECRET}", "format": "alertmanager", "per_second": 1_000, **more}


def hooks(url: str, **more: Any) -> tuple[AnySettings, ...]:
    """Give the settings of a single webhook."""
    return read_sinks({"hooks": hook(url, **more)}, "p")


def ids(receiver: Receiver) -> list[str]:
    """Give the idempotency keys in the order in which they came."""
    return [each.headers["webhook-id"] for each in receiver.received]


async def test_delivered_in_order_and_once(bench: Bench, receiver: Receiver, notification: MakeNotification) -> None:
    """Notifications come in order, failures between are tried again, what was chosen for others is passed over."""
    receiver.replies = [status(200), status(500), status(429, Retry_After="3"), reset, status(200)]
    sent = [notification(f"n{number}") for number in range(4)]
    await bench.send(
        sent[0], notification("other", sinks=("x",)), sent[1], sent[1], notification("quiet", kind="cooldown")
    )
    async with bench.at_work(hooks(receiver.url)):
        await bench.send(*sent[2:])
        await until(lambda: bench.count("delivered") == 4)
        await until(lambda: bench.value("queue_age_seconds") == 0)
    assert ids(receiver) == ["n0", "n1", "n1", "n1", "n1", "n2", "n3"]
    assert (bench.count("retried"), bench.count("skipped"), bench.count("dead")) == (3, 3, 0)
    assert bench.value("delivery_seconds_count") == 4
    assert 3 in bench.clock.slept
    assert await bench.committed() == 7

    async with bench.at_work(hooks(receiver.url)):  # a successor reads on where this one ended
        await bench.send(notification("n4"))
        await until(lambda: bench.count("delivered") == 1)
    assert ids(receiver)[7:] == ["n4"]


async def test_a_sink_that_hangs_holds_up_itself_alone(
    bench: Bench,
    receiver: Receiver,
    notification: MakeNotification,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While one hangs, another has everything delivered, its age grows on the metrics, and both end in time."""
    monkeypatch.setattr("streams.sinks.run.STOP_SECONDS", 0.2)
    receiver.handler = hang
    tables = {"hooks": hook(receiver.url), "log": {"type": "file", "path": str(tmp_path / "log")}}
    async with bench.at_work(read_sinks(tables, "p")):
        await bench.send(*(notification(f"n{number}") for number in range(5)))
        await until(lambda: bench.count("delivered", "log") == 5)
        await receiver.until(1)
        age = bench.value("queue_age_seconds")
        assert age > 0
        await until(lambda: bench.value("queue_age_seconds") > age)
    assert len((tmp_path / "log").read_bytes().splitlines()) == 5
    assert (ids(receiver), bench.count("delivered")) == (["n0"], 0)


FAILURES = {
    "refused": (status(400, SECRET), "delivery_refused", "answered 400"),
    "redirect": (status(302, Location=f"/{SECRET}"), "delivery_refused", "a redirect"),
    "away": (status(503, SECRET), "delivery_failed", "given up after 1 minutes"),
    "reset": (reset, "delivery_failed", "closed the connection"),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_what_cannot_be_delivered_is_set_aside(
    bench: Bench, receiver: Receiver, notification: MakeNotification, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    """It becomes a dead letter with the record as it came and the reason, the next is delivered, no secret is told."""
    caplog.set_level(logging.INFO)
    caplog.set_level(logging.DEBUG, "streams")
    caplog.set_level(logging.DEBUG, "aiohttp")
    reply, reason, told = FAILURES[name]

    async def answer(request: Any) -> Any:
        return await (reply if request.headers["webhook-id"] == "n0" else status(200))(request)

    receiver.handler = answer
    async with bench.at_work(hooks(receiver.url, give_up_minutes=1)):
        await bench.send(notification("n0"), b"{}", notification("n1"))
        await until(lambda: bench.count("delivered") == 1)
        assert bench.count("dead") == 2
        for each in (reason, "missing_field"):
            assert bench.registry.get_sample_value("traction_dead_letters_total", {"reason": each}) == 1
    first, second = await bench.letters(2)
    assert (first.key, first.value) == (KEY, encode(notification("n0")))
    headers = {key: value.decode() for key, value in first.headers}
    assert headers["__traction.errors.reason"] == reason
    assert headers["__traction.errors.stage"] == "deliver"
    assert headers["__traction.errors.group"] == f"{bench.group}-sink-hooks"
    assert told in headers["__traction.errors.message"]
    assert second.value == b"{}"
    assert dict(second.headers)["__traction.errors.reason"] == b"missing_field"
    assert (SECRET in caplog.text, SECRET in str([first, second])) == (False, False)
    assert told in caplog.text


async def test_a_dead_letter_put_back_is_for_its_sink_alone(
    bench: Bench, receiver: Receiver, notification: MakeNotification, tmp_path: Path
) -> None:
    """Once the receiver is mended, a replay has it told what it missed, and no other sink tells people twice."""
    receiver.handler = status(400)
    tables = {"hooks": hook(receiver.url), "log": {"type": "file", "path": str(tmp_path / "log")}}
    async with bench.at_work(read_sinks(tables, "p")):
        await bench.send(notification("n0"))
        await until(lambda: bench.count("dead") == bench.count("delivered", "log") == 1)
    receiver.handler = status(200)
    told: list[Outcome] = []
    async with bench.at_work(read_sinks(tables, "p")):  # other processes, which do not remember what was told
        await Replay(
            bench.kafka, Order(Choice(stages=("deliver",)), "dana"), 30.0, lambda _: None, told.append
        ).perform()
        await until(lambda: bench.count("delivered") == bench.count("skipped", "log") == 1)
    assert [each.what for each in told] == ["replayed"]
    assert ids(receiver) == ["n0", "n0"]
    assert len((tmp_path / "log").read_bytes().splitlines()) == 1


async def test_what_no_sink_can_read_does_not_multiply(bench: Bench, receiver: Receiver, tmp_path: Path) -> None:
    """Put back, a notification that each sink refused is refused by each of them once more, and not by each for all."""
    tables = {"hooks": hook(receiver.url), "log": {"type": "file", "path": str(tmp_path / "log")}}
    async with bench.at_work(read_sinks(tables, "p")):
        await bench.send(b"{")
        await until(lambda: bench.count("dead") == bench.count("dead", "log") == 1)
        await Replay(bench.kafka, Order(Choice(), "dana"), 30.0, lambda _: None, lambda _: None).perform()
        await until(lambda: bench.count("dead") + bench.count("skipped") == 3)
        await until(lambda: bench.count("dead", "log") + bench.count("skipped", "log") == 3)
        assert (bench.count("dead"), bench.count("dead", "log")) == (2, 2)


async def test_gone_is_not_asked_again_before_a_reload(
    bench: Bench, receiver: Receiver, notification: MakeNotification
) -> None:
    """After 410 later ones are set aside at once and the metrics say so; read anew, it is asked again."""
    receiver.replies = [status(410)]
    async with bench.at_work(hooks(receiver.url)) as sinks:
        await bench.send(notification("n0"), notification("n1"))
        await until(lambda: bench.count("dead") == 2)
        assert (ids(receiver), bench.value("disabled")) == (["n0"], 1)
        sinks.replace(hooks(receiver.url))
        assert bench.value("disabled") == 0
        await bench.send(notification("n2"))
        await until(lambda: bench.count("delivered") == 1)
    assert ids(receiver) == ["n0", "n2"]


async def test_the_policy_is_read_anew(
    bench: Bench, receiver: Receiver, notification: MakeNotification, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A changed sink goes on with its new settings, one that is gone takes its metrics along, a wrong one is none."""
    log = {"type": "file", "path": str(tmp_path / "log")}
    key = tmp_path / "secret"
    key.write_text("whsec_" + "A" * 32)
    standard = {**hook(receiver.url), "format": "standard", "secret_file": str(key)}
    async with bench.at_work(read_sinks({"log": log, "hooks": hook(receiver.url)}, "p")) as sinks:
        await bench.send(notification("n0"))
        await until(lambda: bench.count("delivered") == bench.count("delivered", "log") == 1)

        sinks.replace(read_sinks({"log": log, "hooks": standard}, "p"))
        await bench.send(notification("n1"))
        await until(lambda: bench.count("delivered") == bench.count("delivered", "log") == 2)

        key.write_text("whsec_" + "B" * 32)
        sinks.replace(read_sinks({"hooks": standard}, "p"))
        await bench.send(notification("n2"))
        await until(lambda: bench.count("delivered") == 3)
        assert bench.registry.get_sample_value("traction_sink_restarts_total", {"sink": "log"}) is None

        monkeypatch.delenv("NOT_SET", raising=False)
        with pytest.raises(InvalidSinks):
            sinks.replace(read_sinks({"hooks": {**standard, "secret_file": "/nowhere"}}, "p"))
        await bench.send(notification("n3"))
        await until(lambda: bench.count("delivered") == 4)
    assert ids(receiver) == ["n0", "n1", "n2", "n3"]
    assert len((tmp_path / "log").read_bytes().splitlines()) == 2
    signatures = [each.headers.get("webhook-signature") for each in receiver.received]
    assert (signatures[0], None in signatures[1:]) == (None, False)


async def test_a_new_sink_begins_with_what_is_young(
    bench: Bench, receiver: Receiver, notification: MakeNotification
) -> None:
    """A sink that was not there before tells what is an hour old at most, not what a topic still holds."""
    now = int(time.time() * 1000)
    await bench.send(notification("old"), timestamp_ms=now - NEW_SINK_MS - 60_000)
    await bench.send(notification("young"), timestamp_ms=now - NEW_SINK_MS + 60_000)
    async with bench.at_work(hooks(receiver.url)):
        await until(lambda: bench.count("delivered") == 1)
    assert ids(receiver) == ["young"]


class Hurried:
    """Real time in which pauses are short."""

    @staticmethod
    async def sleep(seconds: float) -> None:
        """Wait, but not long."""
        await asyncio.sleep(min(seconds, 0.05))

    timing = Timing(sleep=sleep)


def partitions(sinks: Sinks) -> set[TopicPartition]:
    """Give the partitions from which the webhook's sink reads now."""
    return {tp for runner, _ in sinks._running.values() for tp in runner._begun}


async def test_a_partition_changes_hands_while_it_is_tried(
    bench: Bench, receiver: Receiver, notification: MakeNotification, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When another process gets the partition of what is tried, that one goes on, and the first leaves it alone."""
    monkeypatch.setattr("streams.sinks.runner.HEARTBEAT_MS", 100)
    receiver.handler = status(503)
    others: list[tuple[Bench, Sinks]] = []
    await bench.send(notification("n0"), notification("n1"))
    async with bench.at_work(hooks(receiver.url), Hurried.timing) as first, contextlib.AsyncExitStack() as stack:
        await receiver.until(1)
        tried = first._running["hooks"][0]._current
        while not any(tried in partitions(sinks) for _, sinks in others):  # who gets it is Kafka's choice
            for _ in range(3):
                other = Bench(bench.kafka)
                others.append(
                    (other, await stack.enter_async_context(other.at_work(hooks(receiver.url), Hurried.timing)))
                )
            await asyncio.sleep(1)
        await receiver.until(len(receiver.received) + 5)
        receiver.handler = status(200)
        await until(lambda: sum(other.count("delivered") for other, _ in others) == 2)
    assert bench.count("delivered") == 0
    assert await bench.committed() == 2


async def test_a_partition_stays_while_it_is_tried(
    bench: Bench, receiver: Receiver, notification: MakeNotification, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When partitions are shared anew and that of what is tried stays, it is tried on, and set aside once."""
    monkeypatch.setattr("streams.sinks.runner.HEARTBEAT_MS", 100)
    receiver.handler = status(503)
    async with bench.at_work(hooks(receiver.url), Hurried.timing) as first:
        async with Bench(bench.kafka).at_work(hooks(receiver.url), Hurried.timing) as second:
            await until(lambda: len(partitions(first)) == len(partitions(second)) == 1)
            (tp,) = partitions(first)
            await bench.send(notification("n0"), notification("n1"), partition=tp.partition)
            await receiver.until(1)
        client = first._running["hooks"][0]._client
        assert client
        await until(lambda: len(client.assignment()) == PARTITIONS)
        receiver.handler = status(400)
        await until(lambda: bench.count("dead") >= 2)
    assert [each.value for each in await bench.letters(2)] == [encode(notification(each)) for each in ("n0", "n1")]


async def test_what_is_being_tried_at_the_end_is_left_to_the_next(
    bench: Bench, receiver: Receiver, notification: MakeNotification
) -> None:
    """A process ends while it waits for the next try, and its successor makes it."""
    receiver.replies = [status(503, Retry_After="900")]
    await bench.send(notification("n0"))
    async with bench.at_work(hooks(receiver.url), Timing()):
        await until(lambda: bench.count("retried") == 1)
    assert await bench.committed() == 0
    async with bench.at_work(hooks(receiver.url)):
        await until(lambda: bench.count("delivered") == 1)
    assert ids(receiver) == ["n0", "n0"]


async def test_kafka_s_refusals_end_nothing(
    bench: Bench,
    receiver: Receiver,
    notification: MakeNotification,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A sink that Kafka refuses something begins anew, counts it, and delivers; what a defect says is not logged."""
    real, failures = AIOKafkaConsumer.start, [GroupAuthorizationFailedError("g"), ZeroDivisionError(SECRET)]

    async def start(self: Any) -> None:
        if failures:
            raise failures.pop(0)
        await real(self)

    monkeypatch.setattr(AIOKafkaConsumer, "start", start)
    await bench.send(notification("n0"))
    async with bench.at_work(hooks(receiver.url)):
        await until(lambda: bench.count("delivered") == 1)
        assert bench.value("restarts_total") == 2
    assert "ZeroDivisionError at " in caplog.text
    assert SECRET not in caplog.text


async def test_a_killed_process_repeats_the_one_under_way_at_most(
    bench: Bench, receiver: Receiver, notification: MakeNotification
) -> None:
    """Across SIGKILL all is delivered in order, and at most the one that was on its way twice, with the same key."""
    sent = [notification(f"n{number}") for number in range(12)]
    held = asyncio.Event()

    async def answer(request: Any) -> Any:
        if request.headers["webhook-id"] == "n5" and not held.is_set():
            held.set()
            return await hang(request)
        return await status(200)(request)

    receiver.handler = answer
    await bench.send(*sent)

    async def process() -> asyncio.subprocess.Process:
        script, root = Path(__file__).with_name("process.py"), Path(__file__).parents[3]
        arguments = (bench.kafka.bootstrap, bench.kafka.prefix, receiver.url)
        return await asyncio.create_subprocess_exec(sys.executable, str(script), *arguments, cwd=root)

    first = await process()
    async with asyncio.timeout(SOON_SECONDS):
        await held.wait()
    second = await process()
    first.kill()
    await first.wait()
    try:
        await receiver.until(13)
    finally:
        second.kill()
        await second.wait()
    count = receiver.count()
    assert count == {each.notification_id: 1 for each in sent} | {"n5": 2}
    assert list(dict.fromkeys(ids(receiver))) == [each.notification_id for each in sent]
