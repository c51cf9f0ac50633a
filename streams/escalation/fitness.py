"""Counts how configurations of agents fare, and picks the one that fares best.

Each partition counts its own tasks, and writes its counts with what they follow from, so that each is counted once;
every process reads the counts of all partitions. Counts that cannot be read are left out: they are a hint, no verdict.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import defaultdict
from typing import TYPE_CHECKING, cast

import msgspec
from aiokafka import TopicPartition

from schemas import topics
from schemas.decode import check_key, decode
from schemas.invalid import InvalidEvent
from schemas.outputs import Fitness
from streams.escalation.context import label
from streams.received import check_header_names
from streams.whole import WholeTopic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from collections.abc import Set as AbstractSet
    from datetime import datetime

    from aiokafka.structs import ConsumerRecord

    from streams.escalation.ladder import Tally
    from streams.kafka import KafkaSettings
    from streams.policy.model import Candidate

logger = logging.getLogger(__name__)

MAX_KEYS = 1_000
"""Configurations and types of task that one partition counts apart; all further ones are counted together."""

OTHER = ("other", "", "", "")
"""The names under which further ones are counted."""

MAX_COUNT = 2**63 - 1  # of the contract
MAX_COST = 1e15  # dollars; sums stay finite

REACHED_PAUSE = 0.02
"""Seconds between two looks whether the counts were read to the end; that takes a moment."""

Names = tuple[str, str, str, str]
"""Name, model and configuration of an agent, and type of task."""


def fitness_id(names: Names, partition: int) -> str:
    """Derive the key of a record of counts: 32 hexadecimal digits, and the partition."""
    digest = hashlib.blake2b("\0".join(names).encode("utf-8", "replace"), digest_size=16).hexdigest()
    return f"{digest}:{partition}"


def names_of(counts: Fitness | Tally) -> Names:
    """Give what counts are about."""
    return counts.name, counts.model, counts.config, counts.task_type


class Partial:
    """The counts of one partition.

    Args:
        partition: its number.
        known: what was counted before.
    """

    def __init__(self, partition: int, known: Iterable[Fitness] = ()) -> None:
        self._partition = partition
        self.counts: dict[Names, Fitness] = {names_of(each): each for each in known}
        self._changed: set[Names] = set()

    def add(self, tally: Tally, now: datetime) -> None:
        """Add to the counts; beyond `MAX_KEYS` to those of all others."""
        names = names_of(tally)
        if names not in self.counts and len(self.counts) - (OTHER in self.counts) >= MAX_KEYS:
            names = OTHER
        held = self.counts.get(names)
        if held is None:
            name, model, config, task_type = names
            held = Fitness(
                fitness_id=fitness_id(names, self._partition),
                name=name,
                model=model,
                config=config,
                task_type=task_type,
                partition=self._partition,
                updated_at=now,
            )
        self.counts[names] = msgspec.structs.replace(
            held,
            tasks=min(held.tasks + tally.tasks, MAX_COUNT),
            attempts=min(held.attempts + tally.attempts, MAX_COUNT),
            converged=min(held.converged + tally.converged, MAX_COUNT),
            flapped=max(0, min(held.flapped + tally.flapped, MAX_COUNT)),  # less by one that is taken back
            tokens=min(held.tokens + tally.tokens, MAX_COUNT),
            cost_usd=min(held.cost_usd + tally.cost, MAX_COST),
            updated_at=now,
        )
        self._changed.add(names)

    def changed(self) -> list[Fitness]:
        """Give what changed since the last call, to be written."""
        changed = [self.counts[names] for names in self._changed]
        self._changed.clear()
        return changed


class Standing:
    """The counts of all partitions."""

    def __init__(self) -> None:
        self._by_id: dict[str, Fitness] = {}
        self._sums: defaultdict[tuple[str, str, str], dict[str, tuple[int, int]]] = defaultdict(dict)

    def put(self, fitness: Fitness) -> None:
        """Take counts over, in place of earlier ones with their id."""
        self.remove(fitness.fitness_id)
        self._by_id[fitness.fitness_id] = fitness
        self._add(fitness, 1)

    def remove(self, key: str) -> None:
        """Drop the counts with an id, if there are any."""
        held = self._by_id.pop(key, None)
        if held is not None:
            self._add(held, -1)

    def _add(self, fitness: Fitness, sign: int) -> None:
        *config, task_type = names_of(fitness)
        by_type = self._sums[config[0], config[1], config[2]]
        converged, flapped = by_type.get(task_type, (0, 0))
        by_type[task_type] = (converged + sign * fitness.converged, flapped + sign * fitness.flapped)

    def of_partition(self, partition: int) -> list[Fitness]:
        """Give the counts of one partition."""
        return [each for each in self._by_id.values() if each.partition == partition]

    def outcomes(self, candidate: Candidate, task_type: str) -> tuple[int, int]:
        """Give how many tasks a configuration brought to an end, and with how many it failed.

        Args:
            candidate: the configuration.
            task_type: only tasks of this type count, unless nothing is known of these.
        """
        by_type = self._sums.get((candidate.name, candidate.model, candidate.config), {})
        found = by_type.get(task_type, (0, 0))
        if any(found):
            return found
        return sum(converged for converged, _ in by_type.values()), sum(flapped for _, flapped in by_type.values())

    def choose(self, candidates: tuple[Candidate, ...], exclude: AbstractSet[str], task_type: str) -> Candidate | None:
        """Pick where a rotation goes; see `best`."""
        return best(candidates, exclude, lambda candidate: self.outcomes(candidate, task_type))


def best(
    candidates: Iterable[Candidate], exclude: AbstractSet[str], outcomes: Callable[[Candidate], tuple[int, int]]
) -> Candidate | None:
    """Pick the configuration that most probably brings the task to an end; None when none is left.

    The share of tasks that were brought to an end, with one more of each kind (Laplace's rule of succession): one of
    which nothing is known stands at a half. Of equal ones the first is taken.

    Args:
        candidates: in the order of the policy.
        exclude: labels of those that must not be picked.
        outcomes: gives how many tasks one brought to an end, and with how many it failed.
    """
    found, highest = None, -1.0
    for candidate in candidates:
        if label(candidate.name, candidate.model, candidate.config) in exclude:
            continue
        converged, flapped = outcomes(candidate)
        share = (converged + 1) / (converged + flapped + 2)
        if share > highest:
            found, highest = candidate, share
    return found


class FitnessFollower(WholeTopic):
    """Keeps `Standing` as the topic says.

    Args:
        kafka: where the topic is.
        standing: what is kept.
    """

    def __init__(self, kafka: KafkaSettings, standing: Standing) -> None:
        super().__init__(kafka, kafka.topic(topics.FITNESS), self._put)
        self._standing = standing

    async def of_partition(self, partition: int, end: int) -> list[Fitness]:
        """Give the counts of one partition, once all is read that was written before an offset.

        What other processes left open before it holds this up until the brokers end it.

        Args:
            partition: the partition; its former owner must be fenced.
            end: the offset, beyond open transactions: behind one of them a committed record is not readable yet.
        """
        while not await self.reached({TopicPartition(self.topic, 0): end}):  # noqa: ASYNC110 - `follow` runs beside it
            await asyncio.sleep(REACHED_PAUSE)
        return self._standing.of_partition(partition)

    def _put(self, record: ConsumerRecord) -> None:
        key = (record.key or b"").decode("utf-8", "replace")
        if record.value is None:
            self._standing.remove(key)
            return
        try:
            check_header_names(record.headers)
            fitness = cast("Fitness", decode(topics.FITNESS, record.value, record.headers))
            check_key(topics.FITNESS, fitness, record.key)
            self._standing.put(fitness)
        except InvalidEvent as problem:
            logger.warning("counts at %s-%d@%d are ignored: %s", record.topic, record.partition, record.offset, problem)
