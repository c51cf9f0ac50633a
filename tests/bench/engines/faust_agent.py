"""Engine c: an ordinary agent of stock Faust, one event at a time, with its states in Faust's tables.

    python -m tests.bench.engines.faust_agent PLAN

As its users write it: a codec for the states, ``table[key] = state`` for each event, `send` for alerts. Settings are
those that made it fastest: uvloop, a producer that lingers, raw values, log level info (below it, it logs more), no
web server.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from mode.loop import use

use("uvloop")

import faust  # noqa: E402 - the loop comes first
from faust.serializers.codecs import Codec  # noqa: E402

from detectors import SessionState, TaskState, encode_state, encode_task  # noqa: E402
from schemas.topics import ALERTS  # noqa: E402
from streams.forwarded import Origin  # noqa: E402
from streams.worker.records import SESSION, TASK, encode_stored  # noqa: E402
from tests.bench.engines.job import INPUT, Job, Meter, records, take_plan  # noqa: E402

if TYPE_CHECKING:
    from tests.bench.engines.job import Plan

LINGER_SECONDS = 0.05


class States(Codec):
    """Encodes states as Traction stores them. Nothing is read back here, since each run begins with nothing.

    Args:
        kind: of sessions or of tasks.
        encode: gives the state's bytes.
    """

    def __init__(self, kind: int, encode: Any) -> None:
        super().__init__(kind=kind, encode=encode)
        self._kind = kind
        self._encode = encode

    def _dumps(self, value: Any) -> bytes:
        applied, state = value
        return encode_stored(self._kind, applied, self._encode(state))


def make(plan: Plan) -> faust.App:
    """Make the app with its one agent."""
    app = faust.App(
        plan.app_id,
        broker=f"kafka://{plan.bootstrap}",
        store="memory://",
        datadir=plan.directory,
        consumer_auto_offset_reset="earliest",
        producer_linger=LINGER_SECONDS,
        producer_max_batch_size=2**17,
        topic_allow_declare=False,
        topic_disable_leader=True,
        topic_partitions=plan.partitions,
        table_standby_replicas=0,
        key_serializer="raw",
        value_serializer="raw",
        web_enabled=False,
    )
    sessions: Any = app.Table("sessions", partitions=plan.partitions, key_type=bytes)
    sessions.value_serializer = States(SESSION, encode_state)
    tasks: Any = app.Table("tasks", partitions=plan.partitions, key_type=bytes)
    tasks.value_serializer = States(TASK, encode_task)
    alerts = app.topic(f"{plan.prefix}{ALERTS.name}", key_type=bytes, value_type=bytes)
    job = Job(Meter(plan))

    @app.agent(app.topic(plan.input, key_type=bytes, value_type=bytes), name="detect")
    async def detect(stream: Any) -> None:
        """Apply events."""
        async for each in stream.events():
            message = each.message
            appended_ms = int(message.timestamp * 1_000)
            applied = {INPUT.name: (message.offset, appended_ms)}
            event = job.read(message.key, message.value, list((message.headers or {}).items()))
            _, state = sessions.get(message.key) or (None, SessionState())
            found, told = job.judge(state, event)
            sessions[message.key] = (applied, state)
            if told is not None:
                key = told.task_id.encode()
                _, task = tasks.get(key) or (None, TaskState())
                found += job.judge_task(task, told)
                if not task.empty:
                    tasks[key] = (applied, task)
                elif key in tasks:
                    del tasks[key]
            place = Origin(message.topic, message.partition, message.offset, appended_ms)
            for key, value in records(found, place):
                await alerts.send(key=key, value=value)

    return app


def main() -> int:
    """Work until told to stop."""
    app = make(take_plan())
    sys.argv = ["faust"]
    worker = faust.Worker(app, loglevel="info")
    worker.execute_from_commandline()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
