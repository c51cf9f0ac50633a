"""Engine b: the bare loop. aiokafka, states in a dict, those that changed written every half second, nothing else.

    python -m tests.bench.engines.bare PLAN

It uses no transactions and reads no state back: after a crash, events would be counted twice or not at all.
"""

from __future__ import annotations

import asyncio
import signal
import time
from typing import TYPE_CHECKING, Any

import uvloop

from detectors import SessionState, TaskState, encode_state, encode_task
from schemas.topics import ALERTS
from streams.forwarded import origin
from streams.kafka import KafkaSettings, consumer, producer, running
from streams.topics import SESSIONS_TABLE, TASKS_TABLE, changelog_name
from streams.worker.records import SESSION, TASK, encode_stored
from streams.worker.settings import FETCH_BYTES, POLL_RECORDS
from tests.bench.engines.job import INPUT, Job, Meter, records, take_plan

if TYPE_CHECKING:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
    from aiokafka.structs import ConsumerRecord

    from tests.bench.engines.job import Plan

WRITE_SECONDS = 0.5


class Loop:
    """Reads, judges and writes.

    Args:
        plan: what to do.
        reader: of the input.
        writer: of everything.
    """

    def __init__(self, plan: Plan, reader: AIOKafkaConsumer, writer: AIOKafkaProducer) -> None:
        self._reader = reader
        self._writer = writer
        self._job = Job(Meter(plan))
        self._alerts = f"{plan.prefix}{ALERTS.name}"
        self._topics = [changelog_name(plan.app_id, table) for table in (SESSIONS_TABLE, TASKS_TABLE)]
        self._sessions: dict[bytes, SessionState] = {}
        self._tasks: dict[bytes, TaskState] = {}
        self._changed: dict[bytes, ConsumerRecord] = {}
        self._changed_tasks: dict[bytes, ConsumerRecord] = {}
        self._waiting: set[asyncio.Future[Any]] = set()

    async def run(self, stop: asyncio.Event) -> None:
        """Work until told to stop."""
        due = time.monotonic() + WRITE_SECONDS
        while not stop.is_set():
            for batch in (await self._reader.getmany(timeout_ms=50, max_records=POLL_RECORDS)).values():
                for record in batch:
                    await self._apply(record)
            if time.monotonic() >= due:
                await self._write()
                due = time.monotonic() + WRITE_SECONDS
        await self._write()
        await asyncio.gather(*self._waiting)

    async def _apply(self, record: ConsumerRecord) -> None:
        event = self._job.read(record.key, record.value, record.headers)
        alerts, told = self._job.judge(self._sessions.setdefault(record.key, SessionState()), event)
        self._changed[record.key] = record
        if told is not None:
            key = told.task_id.encode()
            alerts += self._job.judge_task(self._tasks.setdefault(key, TaskState()), told)
            self._changed_tasks[key] = record
        for key, value in records(alerts, origin(record)):
            await self._writer.send(self._alerts, key=key, value=value)

    async def _write(self) -> None:
        """Write what changed, and commit how far was read once the broker has it, without waiting for either."""
        positions: dict[TopicPartition, int] = {tp: await self._reader.position(tp) for tp in self._reader.assignment()}
        sent = [await self._send(0, SESSION, key, record) for key, record in self._changed.items()]
        sent += [await self._send(1, TASK, key, record) for key, record in self._changed_tasks.items()]
        self._changed, self._changed_tasks = {}, {}
        if sent:
            task = asyncio.create_task(self._commit(sent, positions))
            self._waiting.add(task)
            task.add_done_callback(self._waiting.discard)

    async def _send(self, table: int, kind: int, key: bytes, record: ConsumerRecord) -> asyncio.Future[Any]:
        value: bytes | None
        applied = {INPUT.name: (record.offset, record.timestamp)}
        if kind == SESSION:
            value = encode_stored(kind, applied, encode_state(self._sessions[key]))
        elif self._tasks[key].empty:
            value = None
            del self._tasks[key]
        else:
            value = encode_stored(kind, applied, encode_task(self._tasks[key]))
        future: asyncio.Future[Any] = await self._writer.send(
            self._topics[table], key=key, value=value, partition=record.partition
        )
        return future

    async def _commit(self, sent: list[asyncio.Future[Any]], positions: dict[TopicPartition, int]) -> None:
        await asyncio.gather(*sent)
        await self._reader.commit(positions)


async def work(plan: Plan) -> None:
    """Work until a signal comes."""
    kafka, stop = KafkaSettings(plan.bootstrap, plan.prefix), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    reader = consumer(kafka, group_id=plan.app_id, max_partition_fetch_bytes=FETCH_BYTES)
    reader.subscribe([plan.input])
    async with running(reader, kafka), running(producer(kafka, max_batch_size=2**18), kafka) as writer:
        await Loop(plan, reader, writer).run(stop)


def main() -> int:
    """Work until told to stop."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work(take_plan()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
