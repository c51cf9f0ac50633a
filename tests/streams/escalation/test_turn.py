"""One turn of the consumer with clients that are none: what is polled for, and what is committed when reading fails."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest
from aiokafka import TopicPartition
from aiokafka.structs import ConsumerRecord
from prometheus_client import CollectorRegistry

from detectors import TaskEvent, encode_task
from schemas.encode import encode, headers
from streams.escalation import consumer
from streams.escalation.consumer import BATCH_RECORDS, POLL_MS, Escalation, EscalationSettings, utc_now
from streams.escalation.metrics import EscalationMetrics
from streams.escalation.state import Climb, LadderState, encode_ladder
from streams.escalation.unit import Feed, Unit
from streams.fetching import UnreadableBatch
from streams.forwarded import Origin, origin_header
from streams.health import Health
from streams.kafka import KafkaSettings
from streams.ownership import CONDITIONS
from streams.policy.policy import Policy
from tests.streams.escalation.ladder_kit import an_alert

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

ALERTS, EVENTS = (TopicPartition(name, 0) for name in ("agent.alerts", "traction-task-events"))


class Client:
    """Stands in for the group's member: gives what it is told to, and says where it reads."""

    def __init__(self) -> None:
        self.waits: list[int] = []
        self.problem: Exception | None = None
        self.positions: Mapping[TopicPartition, int] = {ALERTS: 0, EVENTS: 0}

    async def getmany(self, *_: TopicPartition, timeout_ms: int, max_records: int) -> dict[TopicPartition, list[Any]]:
        """Note how long it may wait."""
        assert max_records == BATCH_RECORDS
        self.waits.append(timeout_ms)
        if self.problem is not None:
            raise self.problem
        return {}

    async def position(self, tp: TopicPartition) -> int:
        """Say where it reads."""
        return self.positions[tp]

    def last_stable_offset(self, tp: TopicPartition) -> int:
        """Say that nothing more is to be had."""
        return self.positions[tp]


class Bench:
    """An escalation consumer that owns one partition, and what it would commit."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.registry = CollectorRegistry()
        self.escalation = Escalation(
            KafkaSettings(),
            EscalationSettings(),
            Policy(),
            metrics=EscalationMetrics(self.registry),
            health=Health(CONDITIONS),
            on_ready=lambda _: None,
        )
        self.client = Client()
        self.unit = Unit(0, Feed(ALERTS), Feed(EVENTS), producer=cast("Any", None), ready=True)
        self.escalation._ownerships._units = {0: self.unit}
        self.committed: list[Mapping[TopicPartition, int]] = []

        async def write(
            _producer: object, _outputs: object, offsets: Mapping[TopicPartition, int], **_: object
        ) -> None:
            self.committed.append(offsets)

        monkeypatch.setattr(consumer, "write", write)

    async def turn(self) -> None:
        """Take one turn."""
        await self.escalation._turn(cast("Any", self.client))


@pytest.fixture
async def bench(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    """Give a consumer to take turns with; its clients are never started."""
    made = Bench(monkeypatch)
    yield made
    await made.escalation._fitness.stop()


def said(offset: int, session: str = "s1") -> ConsumerRecord:
    """Give a forwarded word."""
    event = TaskEvent(f"e{offset}", session, "t1", 1_000, word="user_message")
    head = (origin_header(Origin("calls", 0, 0, 1_000)),)
    return ConsumerRecord(EVENTS.topic, 0, offset, 1_000, 0, b"t1", encode_task(event), 0, 0, 0, head)


async def test_what_was_in_hand_when_reading_fails_is_not_skipped(bench: Bench) -> None:
    """A partition that cannot be read takes records of others with it: what is committed stands before these."""
    bench.unit.events.fetched([said(0), said(1)], 2)
    bench.client.positions = {ALERTS: 0, EVENTS: 7}  # five more were taken out of the client, and lost
    bench.client.problem = UnreadableBatch(ALERTS, 0, ValueError("damaged"))
    with pytest.raises(UnreadableBatch):
        await bench.turn()
    assert bench.committed == [{EVENTS: 2}]


@pytest.mark.parametrize(("due", "waits"), [(BATCH_RECORDS - 1, POLL_MS), (2 * BATCH_RECORDS - 1, 0)])
async def test_what_is_due_does_not_wait_for_records_in_between(bench: Bench, due: int, waits: int) -> None:
    """After a restart or a new policy all ladders are due at once: they are looked at without a pause."""
    now_ms = round((utc_now() - timedelta(minutes=1)).timestamp() * 1000)
    for number in range(due):
        state = LadderState(task_id=f"t{number}", last_ms=now_ms, climbs={"s": Climb(loops=["l"])})
        bench.unit.ladders.restore(state.task_id, encode_ladder(state))
    await bench.turn()
    await bench.turn()
    assert bench.client.waits == [POLL_MS, waits]
    await bench.turn()
    assert bench.client.waits[-1] == POLL_MS


async def test_what_a_task_wasted_is_counted_once(bench: Bench) -> None:
    """However many of its sessions are to be terminated for it."""
    bench.unit.events.fetched([said(number, f"s{number}") for number in range(3)], 3)
    ends = an_alert("a", level="terminate", scope="task", session_id="s0", tokens_wasted=900, cost_wasted=0.5)
    record = ConsumerRecord(ALERTS.topic, 0, 0, 2_000, 0, b"t1", encode(ends), 0, 0, 0, headers(ends, source="/test"))
    bench.unit.alerts.fetched([record], 1)
    bench.client.positions = {ALERTS: 1, EVENTS: 3}
    await bench.turn()

    def shown(name: str, **labels: str) -> float | None:
        return bench.registry.get_sample_value(f"traction_{name}", labels)

    assert shown("terminations_total", attempt="first", reason="identical") == 3
    assert shown("wasted_tokens_total", kind="measured") == 900
    assert shown("wasted_cost_usd_total") == 0.5
