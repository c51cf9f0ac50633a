"""Remembers of every offset of a topic of dead letters what is there and whether it was put back, in three bytes each.

Millions of letters fit into memory so. It knows neither letters nor Kafka.
"""

from __future__ import annotations

from array import array
from collections import Counter
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

K = TypeVar("K", bound="Hashable")

MOST_KINDS = 10_000
"""Kinds that are told apart. Reasons and topics make some hundreds; whoever forges letters cannot fill the memory."""


class Ledger(Generic[K]):
    """Kinds by partition and offset.

    Args:
        others: the kind of everything beyond `MOST_KINDS`.
    """

    def __init__(self, others: K) -> None:
        self._kinds: list[K] = [others]
        self._numbers: dict[K, int] = {others: 0}
        self._first: dict[int, int] = {}
        self._marks: dict[int, tuple[array[int], bytearray]] = {}

    def note(self, partition: int, offset: int, kind: K) -> K:
        """Note that something of a kind is at an offset, and give as what kind it counts.

        Offsets of a partition come in ascending order.
        """
        number = self._numbers.get(kind)
        if number is None:
            number = len(self._kinds) if len(self._kinds) < MOST_KINDS else 0
            if number:
                self._numbers[kind] = number
                self._kinds.append(kind)
        first = self._first.setdefault(partition, offset)
        kinds, done = self._marks.setdefault(partition, (array("H"), bytearray()))
        missing = offset - first - len(kinds)
        kinds.frombytes(bytes(missing * kinds.itemsize))
        done.extend(bytes(missing + 1))
        kinds.append(number + 1)
        return self._kinds[number]

    def settle(self, partition: int, offset: int) -> None:
        """Note that what is at an offset was put back; nothing is noted where nothing can be."""
        at = self._at(partition, offset)
        if at is not None:
            self._marks[partition][1][at] = 1

    def settled(self, partition: int, offset: int) -> bool:
        """Tell whether what is at an offset was put back."""
        at = self._at(partition, offset)
        return at is not None and bool(self._marks[partition][1][at])

    def noted(self, partition: int, offset: int) -> bool:
        """Tell whether something is at an offset."""
        at = self._at(partition, offset)
        return at is not None and bool(self._marks[partition][0][at])

    def count(self) -> tuple[Counter[K], Counter[K]]:
        """Count what was not put back, and what was, by kind."""
        still, done = Counter[K](), Counter[K]()
        for kinds, marks in self._marks.values():
            for (number, mark), times in Counter(zip(kinds, marks, strict=True)).items():
                if number:
                    (done if mark else still)[self._kinds[number - 1]] += times
        return still, done

    def spans(self) -> Iterator[tuple[int, int, int]]:
        """Give each partition in which something is, with the offset of the first and that after the last."""
        for partition, (kinds, _) in self._marks.items():
            first = self._first[partition]
            yield partition, first, first + len(kinds)

    def _at(self, partition: int, offset: int) -> int | None:
        if partition not in self._marks:
            return None
        at = offset - self._first[partition]
        return at if 0 <= at < len(self._marks[partition][0]) else None
