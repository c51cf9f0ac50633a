"""Faust's tables of sessions and of tasks: names for what the group assigns and recovers, with nothing in them.

What is stored is kept by `streams.worker.changelogs`, which gets the changelogs' records before Faust does. Faust's
own memory store mixes all partitions, forgets the copies it was told to keep, and begins each recovery from the start.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, cast

import faust
from aiokafka import TopicPartition
from aiokafka.errors import KafkaTimeoutError
from faust.stores import memory
from faust.tables.manager import TableManager
from faust.tables.recovery import Recovery, ServiceStopped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from faust.types import TP, EventT
    from faust.types.stores import StoreT

    from streams.worker.changelogs import Changelogs

FAUST_LOGGER = logging.getLogger("faust.worker")
"""For what Faust's code says through our classes; it would use our modules' names."""


NOTHING = -1
"""The offset before the first, to Faust."""


class StateStore(memory.Store[bytes, bytes]):
    """Tells Faust from where on a changelog is to be read."""

    logger = FAUST_LOGGER
    table: StateTable

    def persisted_offset(self, tp: TP) -> int | None:
        """Give the offset of the last record that was applied, -1 for none.

        With None Faust would keep the offset that it had before of a copy that was thrown away since; and where a
        rebalance comes in the middle of a recovery, the one that it breaks off would seek None, and end the process.
        """
        offset = self.table.changelogs.offset(TopicPartition(*tp))
        return NOTHING if offset is None else offset

    def apply_changelog_batch(
        self, batch: Iterable[EventT[Any]], to_key: Callable[[Any], Any], to_value: Callable[[Any], Any]
    ) -> None:
        """Do nothing: what Faust gets only says how far was read."""


class StateTable(faust.Table[bytes, bytes]):
    """Faust's table with our store: the group's assignment and the order of recovery are Faust's.

    Attributes:
        changelogs: what keeps the states; to be set before the app starts.
    """

    logger = FAUST_LOGGER
    changelogs: Changelogs

    def _new_store(self) -> StoreT[bytes, bytes]:
        return cast(
            "StoreT[bytes, bytes]",
            StateStore(
                "memory://", self.app, self, table_name=self.name, key_type=bytes, value_type=bytes, loop=self.loop
            ),
        )


class StateRecovery(Recovery):
    """Faust's recovery, but for its end when the brokers do not answer in time.

    Faust takes that for having been stopped: it reads nothing back any more, whatever is assigned, and says nothing.
    """

    logger = FAUST_LOGGER

    async def _wait(self, coro: Any, timeout: Any = None) -> None:  # noqa: ASYNC109 - Faust's signature
        try:
            await super()._wait(coro, timeout)
        except ServiceStopped:
            if self.should_stop:
                raise
            raise KafkaTimeoutError(f"no answer for {timeout} s while state is read back") from None


class StateTables(TableManager):
    """Faust's tables with our recovery."""

    logger = FAUST_LOGGER

    @property
    def recovery(self) -> Recovery:
        """Reads the tables back."""
        if self._recovery is None:
            self._recovery = StateRecovery(self.app, self, beacon=self.beacon, loop=self.loop)
        return self._recovery
