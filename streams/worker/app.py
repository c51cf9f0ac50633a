"""Builds the worker: the Faust app, which has the group and the tables, and everything that applies what it fetches.

There are no globals: each call builds a worker of its own, and what it needs from outside (detectors, metrics, a way
to end the process) is handed in.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import faust
import mode
from faust.auth import OAuthCredentials

from streams.topics import SESSIONS_TABLE, TASKS_TABLE
from streams.worker.apply import Applier
from streams.worker.changelogs import Changelogs
from streams.worker.engine import Engine
from streams.worker.faults import EXIT_FAILED, abandon
from streams.worker.judge import DETECTION
from streams.worker.lanes import Lanes
from streams.worker.overrides import Overrides, OverridesFollower
from streams.worker.ownership import Ownerships
from streams.worker.settings import FETCH_BYTES, POLL_RECORDS
from streams.worker.store import FAUST_LOGGER, StateTable, StateTables
from streams.worker.stores import open_stores
from streams.worker.sweep import Sweeper
from streams.worker.transport import BatchConsumer, BatchTransport

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from faust.tables.manager import TableManager
    from faust.types.auth import CredentialsT

    from streams.kafka import KafkaSettings
    from streams.worker.judge import Detection
    from streams.worker.metrics import WorkerMetrics
    from streams.worker.settings import WorkerSettings


@dataclass(frozen=True, slots=True)
class Worker:
    """One worker, built and not started.

    Attributes:
        settings: what it was built from.
        app: the Faust app: the group, the assignment, the recovery.
        engine: what applies batches.
        lanes: has it apply them, those of several input partitions in turn.
        ownerships: the partitions that are ours.
        overrides: the policy and the overrides in force.
        follower: reads the overrides.
        metrics: counts.
    """

    settings: WorkerSettings
    app: faust.App
    engine: Engine
    lanes: Lanes
    ownerships: Ownerships
    overrides: Overrides
    follower: OverridesFollower
    metrics: WorkerMetrics

    @property
    def consumer(self) -> BatchConsumer:
        """The group's consumer."""
        return cast("BatchConsumer", self.app.consumer)

    @property
    def tables(self) -> TableManager:
        """Faust's tables: of sessions and of tasks."""
        return cast("TableManager", self.app.tables)

    @property
    def recovering(self) -> bool:
        """Whether state is still being read back, or partitions are being assigned."""
        return bool(self.app.rebalancing or not self.tables.actives_ready)

    async def run(self) -> None:
        """Read the overrides, join the group and work; comes back only when something failed.

        Raises:
            Exception: what failed.
        """
        await self.follower.start()
        await self.ownerships.start()
        changelogs = self.ownerships.changelogs
        following = asyncio.create_task(self.follower.follow(self.engine.reconcile))
        marking = asyncio.create_task(changelogs.keep_marking(self.consumer))
        sweeping = asyncio.create_task(Sweeper(self).run())
        starting = asyncio.create_task(self.app.start())
        applying = asyncio.create_task(self.lanes.run())
        failing = asyncio.create_task(self.app.wait_until_stopped())
        tasks: set[asyncio.Task[Any]] = {following, marking, sweeping, starting, applying, failing}
        try:
            while failing in tasks:
                done, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            raise self.app.crash_reason or RuntimeError("Faust stopped by itself")
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def stop(self) -> None:
        """Leave the group and the brokers."""
        await self.app.stop()
        await self.ownerships.stop()
        await self.follower.stop()


class App(faust.App):
    """Faust's app, which leaves the file system alone: what is kept there is not its own."""

    logger = FAUST_LOGGER

    def _create_directories(self) -> None:
        """Create none; a container's file system may be read-only."""


def build(
    settings: WorkerSettings,
    partitions: int,
    metrics: WorkerMetrics,
    *,
    detection: Detection = DETECTION,
    abandon: Callable[[int, str], NoReturn] = abandon,
) -> Worker:
    """Build a worker on the running event loop.

    Args:
        settings: see there.
        partitions: how many the inputs have.
        metrics: counts.
        detection: the detectors.
        abandon: ends the process when it must not go on.

    Raises:
        StoreError: states cannot be stored as the settings say.
    """
    changelogs = Changelogs(
        settings, stores=open_stores(settings, partial(abandon, EXIT_FAILED)), metrics=metrics, abandon=abandon
    )
    app = App(
        settings.app_id,
        broker=[f"kafka://{host}" for host in settings.kafka.hosts],
        broker_credentials=_credentials(settings.kafka),
        broker_client_id="traction",
        broker_session_timeout=settings.session_timeout,
        broker_heartbeat_interval=settings.heartbeat_interval,
        broker_rebalance_timeout=settings.rebalance_timeout,
        broker_request_timeout=settings.request_timeout,
        broker_max_poll_interval=300.0,
        broker_max_poll_records=POLL_RECORDS,
        consumer_max_fetch_size=FETCH_BYTES,
        consumer_auto_offset_reset="earliest",  # `latest` can make recovery wait for ever
        consumer_group_instance_id=settings.instance_id,
        # An agent that fails takes the process down; Faust's default would lose the batch and hang at the end.
        agent_supervisor=mode.CrashingSupervisor,
        store="memory://",
        Table=StateTable,
        TableManager=StateTables,
        table_standby_replicas=settings.standby_replicas,
        # Topics are made by `traction topics create`; the group's leader needs none of its own.
        topic_allow_declare=False,
        topic_disable_leader=True,
        topic_partitions=partitions,
        key_serializer="raw",
        value_serializer="raw",
        web_enabled=False,  # our own pages; Faust's would serve the table to everyone
    )
    for name in (SESSIONS_TABLE, TASKS_TABLE):
        table = cast("StateTable", app.Table(name, key_type=bytes, value_type=bytes, partitions=partitions))
        table.changelogs = changelogs
    overrides = Overrides(settings.policy)
    applier = Applier(settings, overrides, metrics, detection)
    follower = OverridesFollower(settings.kafka, overrides)
    ownerships = Ownerships(
        settings,
        count=partitions,
        changelogs=changelogs,
        redo=applier.redo,
        extra=lambda: list(follower.positions),
        metrics=metrics,
        abandon=abandon,
    )
    engine = Engine(
        settings, ownerships=ownerships, applier=applier, follower=follower, metrics=metrics, abandon=abandon
    )
    lanes = Lanes(lambda fetched: engine.handle(fetched, worker.consumer))
    app.transport = BatchTransport(app, engine, lanes)
    worker = Worker(settings, app, engine, lanes, ownerships, overrides, follower, metrics)
    for name in settings.inputs:
        _subscribe(app, name, partitions)
    return worker


def _subscribe(app: faust.App, topic: str, partitions: int) -> None:
    """Have an input topic read: Faust subscribes to what an agent reads. Nothing comes to this one."""

    @app.agent(app.topic(topic, partitions=partitions, acks=False), name=topic)
    async def read(stream: Any) -> None:
        async for _ in stream:
            raise AssertionError("batches go to the lanes")


def _credentials(kafka: KafkaSettings) -> CredentialsT | None:
    context = kafka.client_arguments().get("ssl_context")
    if kafka.tokens is not None:
        return OAuthCredentials(oauth_cb=kafka.tokens, ssl_context=context)
    if kafka.sasl:
        return faust.SASLCredentials(
            username=kafka.username, password=kafka.password, mechanism=kafka.sasl_mechanism, ssl_context=context
        )
    return faust.SSLCredentials(context) if kafka.tls else None
