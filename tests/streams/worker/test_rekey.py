"""Events in another partition than their key's: judged there, or written again and judged where they belong."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka import TopicPartition
from aiokafka.structs import ConsumerRecord
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from schemas import topics
from schemas.decode import decode
from schemas.encode import encode, record_key
from schemas.outputs import Alert
from streams.policy.policy import Policy
from streams.reading import partition_of
from streams.worker.apply import Applier
from streams.worker.judge import DETECTION
from streams.worker.live import SESSIONS, TASKS, LiveTable
from streams.worker.metrics import WorkerMetrics
from streams.worker.outgoing import HEADER_BYTES, MAX_REKEYED_BYTES, RECORD_BYTES, REKEYED_HEADER, rekeyed
from streams.worker.overrides import Overrides
from streams.worker.partition import Partition
from streams.worker.settings import WorkerSettings
from streams.worker.states import MemoryStates
from tests.kit import TOPIC_OF, outcome, tool_call, traffic, without_position

if TYPE_CHECKING:
    from schemas.events import SessionInput

PARTITIONS = 4
SETTINGS = WorkerSettings(rekey=True)
TOOL_CALLS = SETTINGS.kafka.topic(topics.TOOL_CALLS)


class Cluster:
    """A worker that owns all of some partitions, and logs that its transactions are written to.

    Args:
        rekey: whether it writes again what is in the wrong partition.
        counted: how many partitions the worker takes the topics to have.
    """

    def __init__(self, *, rekey: bool = True, counted: int = PARTITIONS) -> None:
        self.settings = dataclasses.replace(SETTINGS, rekey=rekey)
        self.registry = CollectorRegistry()
        self.metrics = WorkerMetrics(self.registry, topics=self.settings.inputs)
        self.logs: dict[TopicPartition, list[ConsumerRecord]] = defaultdict(list)
        self.alerts: list[Alert] = []
        self.time_ms = 1_000_000
        applier = Applier(self.settings, Overrides(Policy(None)), self.metrics, DETECTION)
        self.applier = applier
        self.partitions = [self._own(number, counted) for number in range(PARTITIONS)]

    def _own(self, number: int, counted: int) -> Partition:
        sessions: dict[bytes, bytes] = {}
        tasks: dict[bytes, bytes] = {}
        return Partition(
            number,
            sessions=LiveTable(SESSIONS, number, counted, lambda: MemoryStates(sessions)),
            tasks=LiveTable(TASKS, number, counted, lambda: MemoryStates(tasks)),
            positions={TopicPartition(name, number): 0 for name in self.settings.inputs},
            redo=self.applier.redo,
        )

    def write(self, topic: str, partition: int, key: bytes, value: bytes, headers: Any = ()) -> ConsumerRecord:
        """Append a record, as a broker does."""
        log = self.logs[TopicPartition(topic, partition)]
        self.time_ms += 1
        record = ConsumerRecord(
            topic, partition, len(log), self.time_ms, 1, key, value, None, len(key), len(value), tuple(headers)
        )
        log.append(record)
        return record

    def send(self, event: SessionInput, partition: int | None = None) -> ConsumerRecord:
        """Write an event as a producer does, to its key's partition unless told otherwise."""
        key = record_key(event)
        number = partition_of(key, PARTITIONS) if partition is None else partition
        return self.write(self.settings.kafka.topic(TOPIC_OF[type(event)]), number, key, encode(event))

    def apply(self, number: int, *, commit: bool = True) -> bool:
        """Apply what a partition has, and commit it or crash before that; tells whether there was anything."""
        partition, found = self.partitions[number], False
        for name, topic in self.settings.inputs.items():
            tp = TopicPartition(name, number)
            for record in self.logs[tp][partition.positions[tp] :]:
                found = True
                self.applier.apply(partition, topic, [record])
                partition.advance(tp, record.offset + 1, 1, record.timestamp)
        if not commit:
            self._begin_anew(number)
            return found
        taken = partition.snapshot()
        if taken is None:
            return found
        taken.tally.publish(self.metrics)
        for out in taken.outgoing:
            if out.topic == self.settings.alerts:
                alert = decode(topics.ALERTS, out.value)
                assert isinstance(alert, Alert)
                self.alerts.append(alert)
            else:
                assert out.key is not None
                assert out.value is not None
                self.write(out.topic, partition_of(out.key, PARTITIONS), out.key, out.value, out.headers)
        partition.settle(taken)
        return found

    def _begin_anew(self, number: int) -> None:
        """Take a partition over with what was committed."""
        gone = self.partitions[number]
        new = Partition(
            number,
            sessions=LiveTable(SESSIONS, number, PARTITIONS, gone.sessions._stored),
            tasks=LiveTable(TASKS, number, PARTITIONS, gone.tasks._stored),
            positions=dict(gone.committed),
            redo=self.applier.redo,
        )
        self.partitions[number] = new

    def run(self) -> None:
        """Apply and commit until nothing is left."""
        while sum(self.apply(number) for number in range(PARTITIONS)):
            pass

    def counted(self, name: str, **labels: str) -> float:
        """Read a metric of the tool calls."""
        return self.registry.get_sample_value(name, {"topic": TOOL_CALLS, **labels}) or 0.0


def loop(session: str = "s") -> list[SessionInput]:
    """Give five equal calls of a session."""
    return [tool_call(session, number, arguments={"path": "a"}, result="the same") for number in range(5)]


def levels(cluster: Cluster) -> list[str]:
    """Give the levels of the alerts, as they came."""
    return [alert.level for alert in cluster.alerts]


HOME = partition_of(b"s", PARTITIONS)
ASTRAY = (HOME + 1) % PARTITIONS


def test_without_it_halves_of_a_session_are_two() -> None:
    """What stands in the wrong partition is judged there: of a loop in two places no part is long enough."""
    cluster = Cluster(rekey=False)
    for number, call in enumerate(loop()):
        cluster.send(call, HOME if number % 2 else ASTRAY)
    cluster.run()
    assert levels(cluster) == ["warn"]
    assert cluster.counted("traction_misrouted_events_total") == 3
    assert cluster.counted("traction_events_total", result="rekeyed") == 0


def test_with_it_a_session_is_whole() -> None:
    """The loop is found once; each astray event counts as misrouted and as written again, and is applied once."""
    cluster = Cluster()
    for number, call in enumerate(loop()):
        cluster.send(call, HOME if number % 2 else ASTRAY)
    cluster.run()
    assert levels(cluster) == ["warn", "terminate"]
    assert cluster.counted("traction_misrouted_events_total") == 3
    assert cluster.counted("traction_events_total", result="rekeyed") == 3
    assert cluster.counted("traction_events_total", result="applied") == 5
    assert cluster.counted("traction_events_total", result="duplicate") == 0


def test_a_copy_is_the_record_and_says_where_it_stood() -> None:
    """Key, value and headers are kept, one header is added, and an alert names the copy: it is what was judged."""
    cluster = Cluster()
    calls = loop()[:3]
    trace = ("traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    for call in calls:
        cluster.write(TOOL_CALLS, ASTRAY, b"s", encode(call), (("x", None), trace))
    cluster.run()
    came, copies = (cluster.logs[TopicPartition(TOOL_CALLS, number)] for number in (ASTRAY, HOME))
    assert [(copy.key, copy.value) for copy in copies] == [(each.key, each.value) for each in came]
    assert [list(copy.headers) for copy in copies] == [
        [
            *each.headers,
            (REKEYED_HEADER, b'["%s",%d,%d,%d]' % (TOOL_CALLS.encode(), ASTRAY, each.offset, each.timestamp)),
        ]
        for each in came
    ]
    (alert,) = cluster.alerts
    assert alert.evidence.position is not None
    assert (alert.evidence.position.partition, alert.evidence.position.offset) == (HOME, copies[2].offset)


def test_a_copy_that_is_astray_again_is_judged_where_it_is() -> None:
    """Where two processes count partitions otherwise, an event goes once, and then is judged, and counted twice."""
    cluster = Cluster(counted=PARTITIONS + 1)
    session = next(
        name for name in map(str, range(99)) if partition_of(name.encode(), 5) != partition_of(name.encode(), 4)
    )
    for call in loop(session):
        cluster.send(call)
    cluster.run()
    assert levels(cluster) == ["warn", "terminate"]
    assert cluster.counted("traction_events_total", result="rekeyed") == 5
    assert cluster.counted("traction_events_total", result="applied") == 5
    assert cluster.counted("traction_misrouted_events_total") == 10


def test_what_cannot_be_read_is_a_dead_letter_where_it_stands() -> None:
    """It is not written again: its dead letter names the place to which the producer wrote it."""
    cluster = Cluster()
    cluster.write(TOOL_CALLS, ASTRAY, b"s", b"{")
    cluster.run()
    assert cluster.counted("traction_events_total", result="dead") == 1
    assert not cluster.logs[TopicPartition(TOOL_CALLS, HOME)]


@pytest.mark.parametrize("beyond", [False, True])
@pytest.mark.parametrize(("taken", "most"), [(9_000, 9_000), (12_000_000, MAX_REKEYED_BYTES)])
def test_a_record_too_large_to_be_written_again_stays(taken: int, most: int, beyond: bool) -> None:  # noqa: FBT001
    """At its topic's limit or ours it is written again, headers counted; a byte more, and it stays where it stands."""
    cluster = Cluster()
    frame = len(b"s") + len("note") + HEADER_BYTES + RECORD_BYTES
    note = b"x" * (most - frame - 1_000 + beyond)
    record = cluster.write(TOOL_CALLS, ASTRAY, b"s", b"y" * 1_000, (("note", note),))
    assert (rekeyed(record, taken) is None) == beyond


EVENTS = traffic(sessions=4, episodes=2)
WANTED = outcome(EVENTS)
PLACES = st.none() | st.integers(0, PARTITIONS - 1)
TURNS = st.tuples(st.integers(0, len(EVENTS) - 1), st.integers(0, PARTITIONS - 1), st.booleans())


@settings(max_examples=25, deadline=None)
@given(places=st.lists(PLACES, min_size=4, max_size=4), turns=st.lists(TURNS, max_size=12))
def test_folding_with_rekeying_is_folding(places: list[int | None], turns: list[tuple[int, int, bool]]) -> None:
    """Alerts and states are those of events that were keyed rightly, each once.

    Whatever partition each session's producer writes to, whichever partition is read when, and whenever its worker
    crashes between what it read and the commit.
    """
    sessions = sorted({event.session_id for event in EVENTS})
    place = dict(zip(sessions, places, strict=True))
    cluster = Cluster()
    for number, event in enumerate(EVENTS):
        cluster.send(event, place[event.session_id])
        for when, partition, commit in turns:
            if when == number:
                cluster.apply(partition, commit=commit)
    cluster.run()
    assert WANTED.alerts
    assert len(cluster.alerts) == len({alert.alert_id for alert in cluster.alerts})
    assert {alert.alert_id: without_position(alert) for alert in cluster.alerts} == WANTED.alerts
    for name in sessions:
        home = cluster.partitions[partition_of(name.encode(), PARTITIONS)]
        assert home.sessions.get(name.encode()).state == WANTED.states[name]
