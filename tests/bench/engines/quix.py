"""Engine d: a stateful `apply` of Quix Streams, with RocksDB and a changelog.

    python -m tests.bench.engines.quix PLAN

As its users write it: the state of the key is read, changed and set again for each event. States are written to the
changelog with each checkpoint, every half second as in the others.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from quixstreams import Application, message_context
from quixstreams.models.topics.exceptions import TopicNotFoundError

from detectors import SessionState, TaskState, decode_state, decode_task, encode_state, encode_task
from schemas.topics import ALERTS
from streams.forwarded import Origin
from streams.worker.records import SESSION, TASK, decode_stored, encode_stored
from tests.bench.engines.job import INPUT, Job, Meter, records, take_plan

if TYPE_CHECKING:
    from tests.bench.engines.job import Plan

CHECKPOINT_SECONDS = 0.5

TRIES = 5
"""How often the application is made, a second apart, until the broker tells of its changelog."""


def make(plan: Plan) -> Application:
    """Make the application."""
    app = Application(
        broker_address=plan.bootstrap,
        consumer_group=plan.app_id,
        auto_offset_reset="earliest",
        commit_interval=CHECKPOINT_SECONDS,
        consumer_poll_timeout=0.05,  # it ends no sooner than a poll does; a second by default
        state_dir=plan.directory,
        auto_create_topics=False,
        producer_extra_config={"linger.ms": 5},
        loglevel="INFO",
    )
    job = Job(Meter(plan))
    events = app.topic(plan.input, key_deserializer="bytes", value_deserializer="bytes")
    alerts = app.topic(f"{plan.prefix}{ALERTS.name}", key_serializer="bytes", value_serializer="bytes")

    def detect(value: bytes, key: bytes, appended_ms: int, headers: Any, store: Any) -> list[tuple[bytes, bytes]]:
        """Apply an event, and give the alerts."""
        context = message_context()
        applied = {INPUT.name: (context.offset, appended_ms)}
        event = job.read(key, value, headers or ())
        stored = store.get_bytes("session")
        state = SessionState() if stored is None else decode_state(decode_stored(stored).state)
        found, told = job.judge(state, event)
        store.set_bytes("session", encode_stored(SESSION, applied, encode_state(state)))
        if told is not None:
            stored = store.get_bytes("task")
            task = TaskState() if stored is None else decode_task(decode_stored(stored).state, TaskState)
            found += job.judge_task(task, told)
            if not task.empty:
                store.set_bytes("task", encode_stored(TASK, applied, encode_task(task)))
            elif stored is not None:
                store.delete("task")
        return list(records(found, Origin(plan.input, context.partition, context.offset, appended_ms)))

    told = app.dataframe(events).apply(detect, stateful=True, metadata=True, expand=True)
    told.apply(lambda record: record[1], metadata=False).to_topic(alerts)
    return app


def made(plan: Plan, tries: int) -> Application:
    """Make the application: it looks for its changelog as soon as it has asked for it, which may be too soon."""
    try:
        return make(plan)
    except TopicNotFoundError:
        if tries == 1:
            raise
        time.sleep(1)
        return made(plan, tries - 1)


def main() -> int:
    """Work until told to stop."""
    made(take_plan(), TRIES).run()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
