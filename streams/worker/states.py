"""The stored states of one partition of one table: changelog values by key, and how much of the changelog they rest on.

What keeps them in memory is here, what keeps them on disk in `streams.worker.rocks`; whoever uses them cannot tell
which it is. Nothing in here knows what a state means, or when it may be written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

Changes = list[tuple[bytes, bytes | None]]
"""Key and value of changelog records; no value removes the state."""


class States(Protocol):
    """What is stored of one partition of one table."""

    @property
    def offset(self) -> int | None:
        """Offset of the last changelog record that the states rest on; None for none: all of it is to be read."""

    @property
    def topic(self) -> str | None:
        """Id of the changelog that they were read from; None where nothing was read."""

    @property
    def in_step_ms(self) -> int | None:
        """When they were last known to miss nothing of the changelog, ms since 1970; None for never."""

    @property
    def count(self) -> int:
        """How many there are, or an estimate."""

    @property
    def size(self) -> int:
        """Bytes of their keys and values, or an estimate."""

    def get(self, key: bytes) -> bytes | None:
        """Give a state as it is in the changelog, None where there is none."""

    def keys(self) -> Iterator[bytes]:
        """Give the keys of all states, read as they are asked for; what is written meanwhile may or may not be seen."""

    def values(self) -> Iterator[bytes]:
        """Give all states likewise."""

    def write(self, changes: Changes, offset: int | None) -> None:
        """Take over changes that were committed, all or none of them.

        Args:
            changes: what was written to the changelog.
            offset: of the last changelog record that the states rest on with them; None leaves it as it was.
        """

    def mark(self, topic: str, in_step_ms: int) -> None:
        """Note which changelog the states were read from, and when they were in step with it."""

    def close(self) -> None:
        """Give back what it holds. Nothing may be asked of it after that."""


class Stores(Protocol):
    """Where the states of all partitions are kept."""

    def open(self, table: str, number: int) -> States:
        """Give what is stored of one partition of a table; it must not be open already."""

    def discard(self, table: str, number: int) -> None:
        """Throw away what is stored of a partition that is closed."""

    def close(self) -> None:
        """Give back what it holds, when all that it opened is closed."""


class MemoryStates:
    """States in memory: gone when they are closed, and with the process.

    Args:
        values: what there is already, by key; kept and changed.
    """

    def __init__(self, values: dict[bytes, bytes] | None = None) -> None:
        self.offset: int | None = None
        self.topic: str | None = None
        self.in_step_ms: int | None = None
        self._values = {} if values is None else values
        self.size = sum(len(key) + len(value) for key, value in self._values.items())

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._values)

    def get(self, key: bytes) -> bytes | None:
        """Give a state."""
        return self._values.get(key)

    def keys(self) -> Iterator[bytes]:
        """Give the keys of all states that there are now."""
        return iter(list(self._values))

    def values(self) -> Iterator[bytes]:
        """Give all states that there are now."""
        return iter(list(self._values.values()))

    def write(self, changes: Changes, offset: int | None) -> None:
        """Take over changes that were committed."""
        for key, value in changes:
            before = self._values.pop(key, None)
            self.size -= 0 if before is None else len(key) + len(before)
            if value is not None:
                self._values[key] = value
                self.size += len(key) + len(value)
        if offset is not None:
            self.offset = offset

    def mark(self, topic: str, in_step_ms: int) -> None:
        """Note which changelog the states were read from, and when they were in step with it."""
        self.topic, self.in_step_ms = topic, in_step_ms

    def close(self) -> None:
        """Forget everything."""
        self.offset = self.topic = self.in_step_ms = None
        self._values, self.size = {}, 0


class MemoryStores:
    """Keeps all states in memory."""

    def open(self, table: str, number: int) -> States:
        """Give empty states."""
        del table, number
        return MemoryStates()

    def discard(self, table: str, number: int) -> None:
        """Do nothing: what was closed is gone."""

    def close(self) -> None:
        """Do nothing."""
