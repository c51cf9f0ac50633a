"""Standing exceptions: reads the whole overrides topic before the first event is applied, and follows it from then on.

Every worker reads all of it. What cannot be used is ignored and kept until the owner of partition 0 has written it to
the dead letters. Nothing in here applies events.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, cast

from aiokafka import TopicPartition

from detectors import InvalidLimits, Limits, limits_from
from schemas.decode import InvalidEvent, check_key, decode
from schemas.topics import OVERRIDES
from streams.kafka import consumer
from streams.received import check_header_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from aiokafka import AIOKafkaConsumer
    from aiokafka.structs import ConsumerRecord

    from schemas.common import Agent, Task
    from schemas.events import Override
    from streams.kafka import KafkaSettings

logger = logging.getLogger(__name__)

POLL_MS = 1_000
"""How long one fetch may wait for news."""

VOLATILE = "tools.volatile"
"""The limits that only the settings file may set: a bad regular expression would stop every worker."""

MAX_COMBINATIONS = 10_000
"""Merged limits that are kept; sessions that share their overrides share one."""


class Overrides:
    """The overrides in force, by scope.

    Args:
        base: the limits where no override says otherwise.
    """

    def __init__(self, base: Limits) -> None:
        self._base = base
        self._by_scope: dict[str, Override] = {}
        self._merged: dict[tuple[str, ...], Limits] = {}

    def put(self, override: Override) -> None:
        """Take an override over, in place of an earlier one of its scope.

        Raises:
            InvalidEvent: its limits do not exist or cannot be set so.
        """
        if any(f"{name}.".startswith(f"{VOLATILE}.") for name in override.limits):  # before the expressions are tried
            raise InvalidEvent(
                "invalid_value",
                f"{VOLATILE} cannot be set by an override, since a bad regular expression would stop the workers",
                f"set it in the settings file, table [limits.{VOLATILE}], and send the override again without it",
                field=f"limits.{VOLATILE}",
            )
        try:
            limits_from([_layer(override)], self._base)
        except InvalidLimits as problem:
            raise InvalidEvent(
                "invalid_value", str(problem), "send the override again with limits that exist", field="limits"
            ) from None
        self._by_scope[override.scope] = override
        self._merged.clear()

    def remove(self, scope: str) -> None:
        """Drop the override of a scope, if there is one."""
        if self._by_scope.pop(scope, None) is not None:
            self._merged.clear()

    def resolve(
        self, agent: Agent | None, task: Task | None, *, session_id: str, task_id: str, at: datetime
    ) -> tuple[Limits, bool]:
        """Say by which limits an event of a session, or of a task, is judged, and whether its alerts are muted.

        Expiry goes by the event's own time, so that the same events give the same answer whenever they are read.

        Args:
            agent: who acts, as far as known.
            task: for which task, likewise.
            session_id: the event's session.
            task_id: the task's id; the session's own where none was given.
            at: the event's time.
        """
        if not self._by_scope:
            return self._base, False
        scopes = (
            f"role:{agent.role}" if agent else "",
            f"repo:{task.repo}" if task else "",
            f"task:{task_id}",
            f"session:{session_id}",
        )
        held = [found for scope in scopes if (found := self._by_scope.get(scope)) and _holds(found, at)]
        if not held:
            return self._base, False
        return self._limits(held), any(override.mute for override in held)

    def _limits(self, held: list[Override]) -> Limits:
        key = tuple(override.scope for override in held)
        limits = self._merged.get(key)
        if limits is None:
            if len(self._merged) >= MAX_COMBINATIONS:
                self._merged.clear()
            limits = self._merged[key] = self._merge(held)
        return limits

    def _merge(self, held: Iterable[Override]) -> Limits:
        limits = self._base
        for override in held:
            try:
                limits = limits_from([_layer(override)], limits)
            except InvalidLimits as problem:  # fine alone, but not on top of the others
                logger.warning("ignored beside the others that apply: %s", problem)
        return limits


def _layer(override: Override) -> tuple[str, dict[str, Any]]:
    """Give an override as a layer of limits; the mode it sets is one of them."""
    limits = dict(override.limits)
    if override.mode is not None:
        limits["session_mode"] = override.mode
    return f"override:{override.scope}", limits


def _holds(override: Override, at: datetime) -> bool:
    return override.expires_at is None or at < override.expires_at


class OverridesFollower:
    """Keeps `Overrides` as the topic says.

    Args:
        kafka: where the topic is.
        overrides: what is kept.
    """

    def __init__(self, kafka: KafkaSettings, overrides: Overrides) -> None:
        self._topic = kafka.topic(OVERRIDES)
        self._overrides = overrides
        self._consumer: AIOKafkaConsumer = consumer(kafka)
        self._rejected: dict[bytes, tuple[ConsumerRecord, InvalidEvent]] = {}
        self.positions: dict[TopicPartition, int] = {}
        """For each partition of the topic the offset to read next."""

    async def start(self) -> None:
        """Read the whole topic.

        Raises:
            KafkaError: it cannot be read.
        """
        self._consumer.subscribe([self._topic])  # without a group, that is all partitions of it
        await self._consumer.start()
        tps = sorted(self._consumer.assignment())
        ends: dict[TopicPartition, int] = await self._consumer.end_offsets(tps)
        while any([await self._consumer.position(tp) < ends[tp] for tp in tps]):
            await self._take()
        for tp in tps:
            self.positions[tp] = await self._consumer.position(tp)

    async def follow(self, on_change: Callable[[], None]) -> None:
        """Take over what comes; never returns.

        Args:
            on_change: called after records were taken over.
        """
        while True:
            if await self._take():
                on_change()

    async def stop(self) -> None:
        """Leave the brokers."""
        await self._consumer.stop()

    def rejected(self, since: dict[TopicPartition, int]) -> list[tuple[ConsumerRecord, InvalidEvent]]:
        """Give the records that cannot be used.

        Args:
            since: for each partition the first offset that is wanted.
        """
        return [
            (record, problem)
            for record, problem in self._rejected.values()
            if record.offset >= since.get(TopicPartition(record.topic, record.partition), 0)
        ]

    async def _take(self) -> int:
        fetched: dict[TopicPartition, list[ConsumerRecord]] = await self._consumer.getmany(timeout_ms=POLL_MS)
        for tp, records in fetched.items():
            for record in records:
                self._apply(record)
            self.positions[tp] = records[-1].offset + 1
        return len(fetched)

    def _apply(self, record: ConsumerRecord) -> None:
        key = record.key or b""
        self._rejected.pop(key, None)
        scope = key.decode("utf-8", "replace")
        if record.value is None:
            self._overrides.remove(scope)
            return
        try:
            check_header_names(record.headers)
            override = cast("Override", decode(OVERRIDES, record.value, record.headers))
            check_key(OVERRIDES, override, record.key)
            self._overrides.put(override)
        except InvalidEvent as problem:
            # An earlier, usable one of the scope ends too: its author meant to replace it.
            self._overrides.remove(scope)
            self._rejected[key] = record, problem
            logger.warning(
                "override at %s-%d@%d is ignored: %s", record.topic, record.partition, record.offset, problem
            )
        else:
            logger.info("override for %s is in force", override.scope)
