"""What the worker can be told, and what follows from it.

One immutable object, made by the command line or by a test, and handed to whoever needs it. It reads no environment
and no file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from schemas.topics import ALERTS, DEAD_LETTERS, SESSION_INPUTS, Topic
from streams.kafka import KafkaSettings
from streams.policy.policy import Policy
from streams.topics import DEFAULT_APP_ID, SESSIONS_TABLE, TASK_EVENTS, TASKS_TABLE, changelog_name, task_events_name

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

StateStore = Literal["memory", "rocksdb"]

POLL_RECORDS = 2_000
"""Most records of one fetch that are handed over at once; what a partition has beyond waits for the next turn."""

SLICE_SECONDS = 0.002
"""For how long records are applied without a break; commits, other inputs and the health page wait for the one under
way to end. A commit takes ten turns of the event loop or so, in each of which one input may have a slice."""

SLICE_RECORDS = 500
"""Most records of such a slice, and records looked at likewise where nothing is applied."""

FETCH_BYTES = 2**18
"""Most bytes of one partition in one fetch (a single larger record still comes). While events are applied, the thread
that fetches has little of the processor: with 4 MiB, fetches of a busy partition held up the others for 2 seconds, and
with 512 KiB for 0.8. With half of what it is, all are worked off more slowly."""

MAX_QUEUED_RECORDS = 4 * POLL_RECORDS
"""Records of one partition that may wait to be applied before no more of it are fetched."""

MAX_QUEUED_BYTES = 32 * 2**20
"""Bytes likewise."""

MAX_UNCOMMITTED_RECORDS = 50_000
"""Records of one partition applied since its last commit before it waits for one; reached when commits stall. A core
applies no more than half as many in the half second between two commits."""

MAX_UNCOMMITTED_BYTES = 32 * 2**20
"""Bytes likewise, of dead letters and of events that are written again: they may be a thousand times the usual size."""


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Settings of one worker process.

    Attributes:
        kafka: where the brokers are and how to log in.
        app_id: name of the group, and what the names of the workers' own topics and of the transactions start with;
            workers with the same one share the partitions.
        instance_id: name of this process among the workers, for static membership (KIP-345): a restart within the
            session timeout then moves no partition. None for dynamic membership.
        commit_interval: seconds between commits of a partition in which nothing was alerted; alerts, dead letters and
            what tasks are judged by are committed at once.
        live_sessions: sessions and tasks whose state is kept decoded, together and over all partitions.
        session_timeout: seconds without a sign of life after which the group gives a worker up.
        away_timeout: seconds that a commit, or taking partitions over, may last before the worker gives up and exits.
        sweep_interval: seconds between two looks for sessions and tasks that nothing was heard of for longer than the
            policy says (`sessions.idle_days`, `sessions.ended_hours`, `tasks.retention_days`).
        state_store: where the states of sessions and tasks are kept besides the changelogs.
        state_dir: directory of the files of `rocksdb`; each worker has its own.
        standby_replicas: how many other workers keep a copy of each partition's states, to take over quickly.
        rekey: whether an event in a partition that is not its key's is written again to that one, and judged there.
        message_bytes: most bytes that an input takes at once (`max.message.bytes`), by its name on the brokers, where
            events are written again; what is not in here takes as much as any record needs.
        policy: says by which limits sessions and tasks are judged; its file is followed while the worker runs.
    """

    kafka: KafkaSettings = field(default_factory=KafkaSettings)
    app_id: str = DEFAULT_APP_ID
    instance_id: str | None = None
    commit_interval: float = 0.5
    live_sessions: int = 20_000
    session_timeout: float = 30.0
    away_timeout: float = 60.0
    sweep_interval: float = 600.0
    state_store: StateStore = "memory"
    state_dir: Path | None = None
    standby_replicas: int = 0
    rekey: bool = False
    message_bytes: Mapping[str, int] = field(default_factory=dict)
    policy: Policy = field(default_factory=Policy)

    @property
    def heartbeat_interval(self) -> float:
        """Seconds between signs of life: ten in a session timeout, so that a few may be lost."""
        return self.session_timeout / 10

    @property
    def rebalance_timeout(self) -> float:
        """Seconds that the group waits for its members to rejoin."""
        return 2 * self.session_timeout

    @property
    def request_timeout(self) -> float:
        """Seconds that a broker may take to answer; Faust wants it to be no less than the session timeout."""
        return max(40.0, self.session_timeout)

    @property
    def transaction_timeout(self) -> float:
        """Seconds after which the broker aborts a transaction whose producer died without a successor."""
        return self.away_timeout

    @property
    def sessions_changelog(self) -> str:
        """Name of the topic that keeps the sessions' state."""
        return changelog_name(self.app_id, SESSIONS_TABLE)

    @property
    def tasks_changelog(self) -> str:
        """Name of the topic that keeps the tasks' state."""
        return changelog_name(self.app_id, TASKS_TABLE)

    @property
    def task_events(self) -> str:
        """Name of the topic on which events are forwarded to their tasks."""
        return task_events_name(self.app_id)

    @property
    def inputs(self) -> dict[str, Topic]:
        """The topics of session events, and that of what is forwarded to tasks, by their names on the brokers."""
        return {self.kafka.topic(topic): topic for topic in SESSION_INPUTS} | {self.task_events: TASK_EVENTS}

    @property
    def alerts(self) -> str:
        """Name of the topic of alerts."""
        return self.kafka.topic(ALERTS)

    @property
    def dead_letters(self) -> str:
        """Name of the topic of dead letters."""
        return self.kafka.topic(DEAD_LETTERS)

    def transactional_id(self, partition: int) -> str:
        """Name the transactions of one partition; whoever uses the name last fences all others."""
        return f"{self.app_id}-{partition}"
