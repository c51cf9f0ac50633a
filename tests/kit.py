"""What tests of whole processes share: events to send, what the detectors make of them in-process, and workers.

The detectors, run here on the same events, are what workers are compared with; nothing in here stands in for Kafka.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import sys
import time
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self

import msgspec
from aiokafka import TopicPartition
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from detectors import Limits, SessionState, TaskState, decode_state, decode_task, observe_task, step
from schemas import topics
from schemas.common import Task
from schemas.decode import decode
from schemas.encode import encode, record_key
from schemas.events import Control, FixAttempt, Review, SessionEvent, SessionInput, ToolCall
from schemas.outputs import Alert, Evidence, LimitReached
from streams.kafka import KafkaSettings, consumer, producer, running
from streams.topics import SESSIONS_TABLE, TASKS_TABLE, changelog_name, task_events_name
from streams.worker.app import build
from streams.worker.judge import DETECTION
from streams.worker.metrics import WorkerMetrics
from streams.worker.records import HEARTBEAT_KEY, decode_stored
from streams.worker.settings import WorkerSettings
from tests.processes import TRACTION, TractionProcess
from tests.waiting import SOON_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from aiokafka import AIOKafkaConsumer
    from aiokafka.structs import ConsumerRecord

    from schemas.topics import Topic

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
TOPIC_OF = {
    ToolCall: topics.TOOL_CALLS,
    FixAttempt: topics.FIX_ATTEMPTS,
    Review: topics.REVIEWS,
    SessionEvent: topics.SESSIONS,
    Control: topics.CONTROL,
}


def tool_call(session: str, number: int, **fields: Any) -> ToolCall:
    """Build the n-th call of a session: of another file each time, unless told otherwise."""
    defaults: dict[str, Any] = {
        "event_id": f"{session}:{number}",
        "session_id": session,
        "occurred_at": BEGIN + timedelta(seconds=number),
        "tool": "read",
        "arguments": {"path": f"src/file{number}.py"},
        "result": f"contents of file {number}",
        "status": "ok",
    }
    return ToolCall(**defaults | fields)


def spinning(session: str, episodes: int) -> Iterator[ToolCall]:
    """Give the calls of a session that spins again and again: 6 equal calls and 2 others, each time of another kind."""
    for number in range(8 * episodes):
        episode, step = divmod(number, 8)
        if step < 6:
            path = f"src/loop{episode}.py"
            yield tool_call(session, number, arguments={"path": path}, result=f"the same in {path}")
        else:
            yield tool_call(session, number)


def quiet(session: str, kind: int, count: int) -> Iterator[SessionInput]:
    """Give events of one kind, by number, that bring no alert."""
    for number in range(count):
        common: dict[str, Any] = {
            "event_id": f"{session}:{number}",
            "session_id": session,
            "occurred_at": BEGIN + timedelta(seconds=number),
        }
        yield (
            FixAttempt(attempt_id=f"a{number}", outcome="skipped", **common),
            Review(pull_request="o/r#1", author="agent", verdict="commented", **common),
            SessionEvent(kind="turn", **common),
            Control(action="mode", mode="explore", **common),
        )[kind]


def attempt(session: str, number: int, task: str, **fields: Any) -> FixAttempt:
    """Build the n-th attempt at a task: it takes back what the one before it did, and breaks what that one fixed."""
    back = number % 2
    before, after = ("cached(cart)", "compute(cart)") if back else ("compute(cart)", "cached(cart)")
    failing = f"tests/test_cart.py::test_{'fast' if back else 'fresh'}"
    defaults: dict[str, Any] = {
        "event_id": f"{session}:attempt{number}",
        "session_id": session,
        "occurred_at": BEGIN + timedelta(seconds=number),
        "task": Task(id=task),
        "attempt_id": f"a{number}",
        "approach": "Compute the totals on every request again" if back else "Cache totals in the service of the cart",
        "files": ("src/cart.py",),
        "diff": f"--- a/src/cart.py\n+++ b/src/cart.py\n@@ -10 +10 @@\n-    return {before}\n+    return {after}\n",
        "outcome": "failed",
        "error_message": f"{failing} failed",
        "failing": (failing,),
    }
    return FixAttempt(**defaults | fields)


def trying(session: str, count: int) -> Iterator[FixAttempt]:
    """Give attempts of one session at a task of its own, which go to and fro until every tenth succeeds."""
    for number in range(count):
        fields: dict[str, Any] = {"outcome": "success", "failing": ()} if number % 10 == 9 else {}
        yield attempt(session, number, f"task of {session}", **fields)


def terminal_alert(name: str, task_id: str = "t") -> Alert:
    """Build an alert that leads to a termination."""
    return Alert(
        alert_id=name,
        session_id=f"session of {name}",
        level="terminate",
        mode="enforce",
        detector="identical",
        loop_id="l1",
        task_id=task_id,
        seq=4,
        occurred_at=BEGIN,
        first_seen=BEGIN,
        count=3.0,
        limits=(LimitReached(name="identical.terminate", value=3, layer="default"),),
        evidence=Evidence(event_ids=("e1",), calls=("read(a.py)",)),
        reasoning="read(a.py) was called 3 times with the same result",
        guidance="Stop.",
    )


def traffic(sessions: int, episodes: int, prefix: str = "s") -> list[SessionInput]:
    """Give events of many sessions, mixed; each session is of one topic, so that its order does not depend on luck.

    Of every five sessions one tries at a task of its own, at a quarter of the others' pace, since attempts cost most to
    judge; and one is quiet, on the other topics in turn. That is 6.8 events a session and episode.
    """
    each: list[Iterator[SessionInput | None]] = []
    for number in range(sessions):
        name, count = f"{prefix}{number}", 8 * episodes
        if number % 5 == 3:
            each.append(event for attempt in trying(name, count // 4) for event in (attempt, None, None, None))
        elif number % 5 == 4:
            each.append(quiet(name, number // 5 % 4, count))
        else:
            each.append(spinning(name, episodes))
    return [event for row in itertools.zip_longest(*each) for event in row if event is not None]


@dataclass
class Outcome:
    """What detectors make of events."""

    alerts: dict[str, Alert] = field(default_factory=dict)
    states: dict[str, SessionState] = field(default_factory=dict)
    tasks: dict[str, TaskState] = field(default_factory=dict)


def outcome(events: Iterable[SessionInput], limits: Limits | None = None) -> Outcome:
    """Apply events in-process, in their order, to their sessions and tasks."""
    found, limits = Outcome(), limits or Limits()
    for event in events:
        alerts, told = step(found.states.setdefault(event.session_id, SessionState()), event, limits)
        if told is not None:
            task = found.tasks.setdefault(told.task_id, TaskState())
            alerts += observe_task(task, told, limits)
            if task.empty:
                del found.tasks[told.task_id]
        for alert in alerts:
            assert alert.alert_id not in found.alerts
            found.alerts[alert.alert_id] = alert
    return found


def without_position(alert: Alert) -> Alert:
    """Give an alert as the detectors make it: where its event stood in Kafka is not theirs to know."""
    return msgspec.structs.replace(alert, evidence=msgspec.structs.replace(alert.evidence, position=None))


class Wire:
    """Writes events and reads what became of them, as anybody could."""

    def __init__(self, settings: KafkaSettings, app_id: str, partitions: int) -> None:
        self.settings = settings
        self.app_id = app_id
        self.partitions = partitions

    async def send(self, events: Iterable[SessionInput], *, rate: float | None = None, **options: Any) -> None:
        """Write events in order, so many a second at most, by a producer with these options."""
        async with running(producer(self.settings, linger_ms=5, **options), self.settings) as client:
            began, futures = time.monotonic(), []
            for number, event in enumerate(events):
                topic = self.settings.topic(TOPIC_OF[type(event)])
                futures.append(await client.send(topic, key=record_key(event), value=encode(event)))
                if rate is not None and number % 50 == 0:
                    await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
            await asyncio.gather(*futures)

    @property
    def changelog(self) -> str:
        """Name of the sessions' changelog."""
        return changelog_name(self.app_id, SESSIONS_TABLE)

    @property
    def tasks_changelog(self) -> str:
        """Name of the tasks' changelog."""
        return changelog_name(self.app_id, TASKS_TABLE)

    @property
    def task_events(self) -> str:
        """Name of the topic on which events are forwarded to tasks."""
        return task_events_name(self.app_id)

    async def raw(self, topic: Topic, value: bytes | None, *, key: bytes | None = b"s", **fields: Any) -> Any:
        """Write one record to a topic of the contract as it is."""
        return await self.put(self.settings.topic(topic), value, key=key, **fields)

    async def put(self, topic: str, value: bytes | None, *, compression_type: str | None = None, **fields: Any) -> Any:
        """Write one record to any topic."""
        async with running(producer(self.settings, compression_type=compression_type), self.settings) as client:
            return await client.send_and_wait(topic, value, **fields)

    async def records(self, topic: str, *, level: str = "read_committed") -> list[ConsumerRecord]:
        """Read all that is on a topic now."""
        client = consumer(self.settings, isolation_level=level)
        client.subscribe([topic])
        async with running(client, self.settings):
            return await drain(client)

    async def alerts(self) -> list[Alert]:
        """Read all committed alerts."""
        found = [decode(topics.ALERTS, record.value) for record in await self.alert_records()]
        return [alert for alert in found if isinstance(alert, Alert)]

    async def alert_records(self) -> list[ConsumerRecord]:
        """Read the records of all committed alerts."""
        return await self.records(self.settings.topic(topics.ALERTS))

    async def inputs(self, topic: Topic) -> list[ConsumerRecord]:
        """Read all committed records of one input."""
        return await self.records(self.settings.topic(topic))

    async def dead_letters(self) -> list[ConsumerRecord]:
        """Read all committed dead letters."""
        return await self.records(self.settings.topic(topics.DEAD_LETTERS))

    async def stored(self, changelog: str | None = None) -> dict[tuple[int, bytes], bytes]:
        """Fold a changelog, the sessions' unless told otherwise: the last committed value by partition and key."""
        found: dict[tuple[int, bytes], bytes] = {}
        for record in await self.records(changelog or self.changelog):
            if record.value is None:
                found.pop((record.partition, record.key), None)
            elif record.key != HEARTBEAT_KEY:
                found[record.partition, record.key] = record.value
        assert len({key for _, key in found}) == len(found), "a session or task is in two partitions"
        return found

    async def states(self) -> dict[str, SessionState]:
        """Fold the changelog to states by session."""
        stored = await self.stored()
        return {key.decode(): decode_state(decode_stored(value).state) for (_, key), value in stored.items()}

    async def tasks(self) -> dict[str, TaskState]:
        """Fold the tasks' changelog to states by task."""
        stored = await self.stored(self.tasks_changelog)
        return {key.decode(): decode_task(decode_stored(value).state, TaskState) for (_, key), value in stored.items()}

    async def lag(self) -> int:
        """Give how many records of the inputs no committed offset has passed; markers at the ends count."""
        names = [*(self.settings.topic(topic) for topic in topics.SESSION_INPUTS), self.task_events]
        tps = [TopicPartition(name, number) for name in names for number in range(self.partitions)]
        # What is not committed yet counts: so no event is out of sight between its own offset and what it forwards.
        client = consumer(self.settings, group_id=self.app_id, isolation_level="read_uncommitted")
        client.assign(tps)
        async with running(client, self.settings):
            committed = await asyncio.gather(*map(client.committed, tps))
            ends, begins = await client.end_offsets(tps), await client.beginning_offsets(tps)
        return sum(ends[tp] - (begins[tp] if at is None else at) for tp, at in zip(tps, committed, strict=True))

    async def until_applied(self, seconds: float = SOON_SECONDS) -> None:
        """Wait until everything that was sent is committed as applied."""
        await until(self._applied, seconds)

    async def _applied(self) -> bool:
        return await self.lag() == 0


async def drain(client: AIOKafkaConsumer) -> list[ConsumerRecord]:
    """Read everything up to the end as it is now."""
    tps = list(client.assignment())
    ends = await client.end_offsets(tps)
    found: list[ConsumerRecord] = []
    while any([await client.position(tp) < ends[tp] for tp in tps]):
        for records in (await client.getmany(timeout_ms=200)).values():
            found += records
    return found


async def assert_same(wire: Wire, wanted: Outcome) -> None:
    """Compare what workers wrote with what the detectors make of the same events: alerts once, states equal."""
    alerts, states, tasks = await wire.alerts(), await wire.states(), await wire.tasks()
    times = Counter(alert.alert_id for alert in alerts)
    assert {name: count for name, count in times.items() if count > 1} == {}, "alerts were written twice"
    found = {alert.alert_id: without_position(alert) for alert in alerts}
    assert found.keys() - wanted.alerts.keys() == set(), "alerts that nobody asked for"
    assert wanted.alerts.keys() - found.keys() == set(), "alerts are missing"
    assert found == wanted.alerts
    assert states.keys() == wanted.states.keys()
    assert {name for name, state in states.items() if state != wanted.states[name]} == set(), "states differ"
    assert tasks.keys() == wanted.tasks.keys()
    assert {name for name, state in tasks.items() if state != wanted.tasks[name]} == set(), "tasks differ"


def metrics_on(page: str) -> set[str]:
    """Give the names of our metrics that a page has, as the list of metrics names them."""
    return set(re.findall("^# TYPE (traction_[a-z_]+) ", page, re.MULTILINE))


class WorkerProcess(TractionProcess):
    """A worker in a process of its own.

    Args:
        wire: the topics it works on.
        flags: further flags of the command.
        config: its configuration file.
        program: Python to run in place of the `traction` command, with the same arguments.
    """

    def __init__(self, wire: Wire, *flags: str, config: Path | None = None, program: str | None = None) -> None:
        settings = wire.settings
        super().__init__(
            *((sys.executable, "-c", program) if program else (TRACTION,)),
            *(("--config", str(config)) if config else ()),
            *("worker", "--bootstrap", settings.bootstrap, "--prefix", settings.prefix),
            *("--app-id", wire.app_id, "--port", "0", "--session-timeout", "6", *flags),
        )

    async def metrics(self) -> dict[tuple[str, ...], float]:
        """Read the metrics page: values by name and label values."""
        url = await self.ready()
        text = await asyncio.to_thread(lambda: urllib.request.urlopen(f"{url}/metrics").read().decode())  # noqa: S310
        return {
            (sample.name, *sample.labels.values()): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }


class WorkerInside:
    """A worker inside of the test's process, so that a test can put its hand between its parts."""

    def __init__(self, wire: Wire, **options: Any) -> None:
        self.registry = CollectorRegistry()
        detection = options.pop("detection", DETECTION)
        settings = WorkerSettings(kafka=wire.settings, app_id=wire.app_id, session_timeout=6.0, **options)
        metrics = WorkerMetrics(self.registry, topics=settings.inputs)
        self.worker = build(settings, wire.partitions, metrics, detection=detection, abandon=self._abandon)
        self._task: asyncio.Task[None] | None = None

    @staticmethod
    def _abandon(code: int, message: str) -> NoReturn:
        raise AssertionError(f"the worker wants to end the process with {code}: {message}")

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self.worker.run())
        await until(self._ready)
        return self

    async def _ready(self) -> bool:
        assert self._task is not None
        if self._task.done():
            self._task.result()
        return not self.worker.recovering and bool(self.worker.ownerships.current)

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        await self.worker.ownerships.release()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self.worker.stop()

    def value(self, name: str, **labels: str) -> float:
        """Read a metric."""
        return self.registry.get_sample_value(name, labels) or 0.0
