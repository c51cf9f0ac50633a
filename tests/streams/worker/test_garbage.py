"""The garbage collector and states in memory: they are never gone through, and garbage is still found."""

from __future__ import annotations

import gc
import weakref

import pytest

from streams.worker.garbage import spare

pytestmark = pytest.mark.usefixtures("collector")

FULL = 2
"""The generation that a full collection goes through."""


class Ring:
    """An object that refers to itself."""

    def __init__(self) -> None:
        self.me = self


def full_collections(objects: int) -> int:
    """Make objects that live on, and count the full collections meanwhile."""
    before = gc.get_stats()[FULL]["collections"]
    kept: list[list[int]] = [[] for _ in range(objects)]
    found: int = gc.get_stats()[FULL]["collections"] - before
    assert len(kept) == objects
    return found


def test_live_states_bring_no_full_collection() -> None:
    """However many objects come to live, none of them is gone through again; without it they would be."""
    many = 4 * len(gc.get_objects()) + 1_000_000
    assert full_collections(many) > 0
    spare()
    assert full_collections(many) == 0


def test_what_is_there_is_set_aside() -> None:
    """All that is there when it is called is looked at no more, also when it is called again."""
    spare()
    first = gc.get_freeze_count()
    spare()
    assert first > 0
    assert abs(gc.get_freeze_count() - first) < first / 10


def test_young_cycles_are_collected() -> None:
    """A cycle that ends soon after it began is freed by itself."""
    spare()
    gone = weakref.ref(Ring())
    full_collections(20_000)
    assert gone() is None


def test_old_cycles_are_collected_with_the_next_call() -> None:
    """A cycle that lived for long, and through a call, is freed by the next one."""
    ring = Ring()
    gone = weakref.ref(ring)
    spare()
    full_collections(20_000)
    del ring
    full_collections(20_000)
    assert gone() is not None
    spare()
    assert gone() is None
