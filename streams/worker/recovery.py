"""Tells how far the reading back of state is: in the log every few seconds, in metrics, and on the page of readiness.

It only looks at what Faust's recovery and `streams.worker.changelogs` count. Offsets are counted, since nobody knows
how many records compaction has left between them.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from aiokafka import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from faust.types import TP

    from streams.worker.app import Worker
    from streams.worker.partition import Partition

logger = logging.getLogger(__name__)

TELL_SECONDS = 5.0
"""Between two lines of the log."""


@dataclass(slots=True)
class _Reading:
    """One reading back, of the changelogs of what was ours when it began."""

    owned: Mapping[int, Partition]
    began: float
    told: float
    begins: dict[TopicPartition, int] = field(default_factory=dict)


class RecoveryWatch:
    """Watches one worker reading state back.

    Args:
        worker: the worker.
    """

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._reading: _Reading | None = None

    def look(self) -> str:
        """Look how far it is, note it, and give it in words; to be called a few times a second."""
        worker, now = self._worker, time.monotonic()
        owned = worker.ownerships.current
        if not worker.recovering:
            self._end(now)
            return "done"
        if self._reading is None or self._reading.owned is not owned:
            self._reading = _Reading(owned, now, now)
        reading, ends = self._reading, self._ends(owned)
        offsets = read_back(worker)
        for tp in offsets.keys() & ends.keys():
            reading.begins.setdefault(tp, offsets[tp])
        total = sum(max(0, ends[tp] - begin) for tp, begin in reading.begins.items() if tp in ends)
        done = sum(min(offsets[tp], ends[tp]) - begin for tp, begin in reading.begins.items() if tp in offsets)
        worker.metrics.recovery_remaining.set(max(0, total - done))
        if not total:
            return "partitions are being assigned"
        seconds = now - reading.began
        left = f", {(total - done) * seconds / done:.0f} s left" if done > 0 else ""
        words = f"{done:,} of {total:,} offsets read, {done / total:.0%}{left}"
        if now - reading.told >= TELL_SECONDS:
            reading.told = now
            logger.info(
                "state is read back from %d changelog partitions: %s, %s records/s (partitions %s)",
                len(reading.begins),
                words,
                f"{self._records / seconds:,.0f}",
                ", ".join(map(str, sorted(owned))),
            )
        return words

    def _end(self, now: float) -> None:
        reading, self._reading = self._reading, None
        self._worker.metrics.recovery_remaining.set(0)
        if reading is None:
            return
        seconds = now - reading.began
        self._worker.metrics.recovery_seconds.set(seconds)
        if reading.owned:
            logger.info("state is back: %s changelog records read in %.1f s", f"{self._records:,}", seconds)

    @property
    def _records(self) -> int:
        changelogs, owned = self._worker.ownerships.changelogs, self._worker.ownerships.current
        return sum(count for tp, count in changelogs.read.items() if tp.partition in owned)

    def _ends(self, owned: Mapping[int, Partition]) -> dict[TopicPartition, int]:
        # Faust keeps None there until it knows.
        ends = cast("dict[TP, int | None]", dict(self._worker.tables.recovery.active_highwaters))
        return {TopicPartition(*tp): end for tp, end in ends.items() if end is not None and tp.partition in owned}


def read_back(worker: Worker) -> dict[TopicPartition, int]:
    """Give the offset up to which each changelog of what is ours was read.

    Args:
        worker: the worker.
    """
    # Faust keeps None there until it knows where to begin.
    offsets = cast("dict[TP, int | None]", dict(worker.tables.recovery.active_offsets))
    owned = worker.ownerships.current
    return {
        TopicPartition(*tp): offset for tp, offset in offsets.items() if offset is not None and tp.partition in owned
    }
