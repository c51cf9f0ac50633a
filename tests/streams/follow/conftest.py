"""A folder that is followed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from streams.follow import follower
from tests.streams.follow.kit import World

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Give a folder that can be followed."""
    made = World(tmp_path)
    yield made
    made.end()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have events sent again soon."""
    monkeypatch.setattr(follower, "FIRST_PAUSE_SECONDS", 0.01)
