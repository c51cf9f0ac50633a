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
from streams.policy.policy import is_observed
from streams.received import check_header_names
from streams.whole import WholeTopic

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from aiokafka.structs import ConsumerRecord

    from schemas.common import Agent, Task
    from schemas.events import Override
    from streams.kafka import KafkaSettings
    from streams.policy.policy import Held, Policy

logger = logging.getLogger(__name__)

VOLATILE = "tools.volatile"
"""The limits that only a file may set, of settings or of a policy: a bad regular expression would stop every worker."""

MAX_COMBINATIONS = 10_000
"""Merged limits that are kept; sessions that share their overrides share one."""


class Overrides:
    """The overrides in force, by scope, over the policy in force.

    Args:
        policy: says by which limits is judged where no override says otherwise.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._by_scope: dict[str, Override] = {}
        self._refused: dict[str, Override] = {}
        """Those that the policy in force does not allow; another one may."""
        self._merged: dict[tuple[Held, bool, tuple[str, ...]], Limits] = {}

    @property
    def same_for_all(self) -> Limits | None:
        """The limits by which all are judged but agents that are observed; None where a rule or an override differs."""
        return None if self._by_scope or self._policy.rules else self._policy.common

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self._policy

    def replace(self, policy: Policy) -> None:
        """Put another policy in force, from the next event on; the overrides stay.

        Which of them can be used is judged anew, so that it is the same for a worker that starts now.
        """
        self._policy = policy
        for override in [*self._by_scope.values(), *self._refused.values()]:
            try:
                self.put(override)
            except InvalidEvent as problem:
                logger.warning("the override for %s is ignored: %s", override.scope, problem)
        self._merged.clear()

    def put(self, override: Override) -> None:
        """Take an override over, in place of an earlier one of its scope, which ends also where this one is refused.

        Raises:
            InvalidEvent: its limits do not exist, or cannot be set so under the policy in force.
        """
        self.remove(override.scope)
        self._refused[override.scope] = override
        if any(f"{name}.".startswith(f"{VOLATILE}.") for name in override.limits):  # before the expressions are tried
            raise InvalidEvent(
                "invalid_value",
                f"{VOLATILE} cannot be set by an override, since a bad regular expression would stop the workers",
                f"set it in the settings file or the policy, table [limits.{VOLATILE}], and send the override again "
                "without it",
                field=f"limits.{VOLATILE}",
            )
        try:
            self._policy.check(*_layer(override))
        except InvalidLimits as problem:
            raise InvalidEvent(
                "invalid_value", str(problem), "send the override again with limits that exist", field="limits"
            ) from None
        self._by_scope[override.scope] = self._refused.pop(override.scope)
        self._merged.clear()

    def remove(self, scope: str) -> None:
        """Drop the override of a scope, if there is one."""
        self._refused.pop(scope, None)
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
        policy = self._policy
        if not self._by_scope:
            return policy.limits(agent, task), False
        scopes = (
            f"role:{agent.role}" if agent else "",
            f"repo:{task.repo}" if task else "",
            f"task:{task_id}",
            f"session:{session_id}",
        )
        held = [found for scope in scopes if (found := self._by_scope.get(scope)) and _holds(found, at)]
        if not held:
            return policy.limits(agent, task), False
        key = policy.held(agent, task), is_observed(agent), tuple(override.scope for override in held)
        limits = self._merged.get(key)
        if limits is None:
            if len(self._merged) >= MAX_COMBINATIONS:
                self._merged.clear()
            limits = self._merged[key] = self._merge(policy.limits(agent, task), held)
        return limits, any(override.mute for override in held)

    def _merge(self, limits: Limits, held: Iterable[Override]) -> Limits:
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


def read_override(record: ConsumerRecord) -> Override:
    """Read a record of the topic that is no tombstone.

    Raises:
        InvalidEvent: it is no override.
    """
    check_header_names(record.headers)
    override = cast("Override", decode(OVERRIDES, record.value, record.headers))
    check_key(OVERRIDES, override, record.key)
    return override


class OverridesFollower(WholeTopic):
    """Keeps `Overrides` as the topic says.

    Args:
        kafka: where the topic is.
        overrides: what is kept.
    """

    def __init__(self, kafka: KafkaSettings, overrides: Overrides) -> None:
        super().__init__(kafka, kafka.topic(OVERRIDES), self._put)
        self._overrides = overrides
        self._rejected: dict[bytes, tuple[ConsumerRecord, InvalidEvent]] = {}

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

    def _put(self, record: ConsumerRecord) -> None:
        key = record.key or b""
        self._rejected.pop(key, None)
        scope = key.decode("utf-8", "replace")
        self._overrides.remove(scope)  # also where what comes cannot be used: its author meant to replace it
        if record.value is None:
            return
        try:
            override = read_override(record)
            self._overrides.put(override)
        except InvalidEvent as problem:
            self._rejected[key] = record, problem
            logger.warning(
                "override at %s-%d@%d is ignored: %s", record.topic, record.partition, record.offset, problem
            )
        else:
            logger.info("override for %s is in force", override.scope)
