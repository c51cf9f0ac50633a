"""The store behind Faust's tables of sessions and of tasks: bytes in memory, kept apart by partition.

Faust's own memory store mixes all partitions, so that a session sent to two partitions by a wrong partitioner would
share one entry, and what was deleted while a partition was elsewhere would come back. Faust fills it while it
recovers; after that, only a committed transaction writes to it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, cast

import faust
from faust.stores import memory

from streams.worker.records import HEARTBEAT_KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from faust.types import TP, EventT
    from faust.types.stores import StoreT


FAUST_LOGGER = logging.getLogger("faust.worker")
"""For what Faust's code says through our classes; it would use our modules' names."""


class StateStore(memory.Store[bytes, bytes]):
    """Keeps the states of each partition owned: keys and values as they are in the changelog."""

    logger = FAUST_LOGGER

    def __post_init__(self) -> None:
        super().__post_init__()
        self._partitions: dict[int, dict[bytes, bytes]] = {}

    def partition(self, number: int) -> dict[bytes, bytes]:
        """Give the states of one partition, to be read and changed."""
        return self._partitions.setdefault(number, {})

    def apply_changelog_batch(
        self, batch: Iterable[EventT[Any]], to_key: Callable[[Any], Any], to_value: Callable[[Any], Any]
    ) -> None:
        """Take over what was read from the changelog; a record without a value removes its state."""
        del to_key, to_value  # bytes stay bytes
        for event in batch:
            message = event.message
            key, value = message.key, message.value
            if key is None or key == HEARTBEAT_KEY:
                continue
            states = self.partition(message.partition)
            if value is None:
                states.pop(key, None)
            else:
                states[key] = value

    async def on_rebalance(
        self, assigned: set[TP], revoked: set[TP], newly_assigned: set[TP], generation_id: int = 0
    ) -> None:
        """Forget partitions that went elsewhere; Faust reads them from the beginning when they come back."""
        del newly_assigned, generation_id
        kept = {tp.partition for tp in assigned}
        for tp in revoked:
            if tp.partition not in kept:
                self._partitions.pop(tp.partition, None)


class StateTable(faust.Table[bytes, bytes]):
    """Faust's table with our store: the group's assignment and the recovery are Faust's, the writing is not."""

    logger = FAUST_LOGGER

    def _new_store(self) -> StoreT[bytes, bytes]:
        return StateStore(
            "memory://", self.app, self, table_name=self.name, key_type=bytes, value_type=bytes, loop=self.loop
        )

    @property
    def store(self) -> StateStore:
        """The store."""
        return cast("StateStore", self.data)
