"""What a follower sends of a transcript is what a replay reads of it, format by format."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from streams.importers import Session, read_path
from streams.importers.detect import FORMATS
from tests.streams import importers

if TYPE_CHECKING:
    from tests.streams.follow.kit import World

DATA = Path(importers.__path__[0]) / "data"
FOLLOWED = {form.NAME for form in FORMATS if hasattr(form, "Reader")}
LINES = [
    path
    for path in sorted(DATA.rglob("*.jsonl"))
    if any(isinstance(found, Session) and found.format in FOLLOWED for found in read_path(path))
]


@pytest.mark.parametrize("path", LINES, ids=[str(path.relative_to(DATA)) for path in LINES])
def test_equal_to_a_replay(world: World, path: Path) -> None:
    """Events have the identifiers and come in the order of a replay, with the same calls in them."""
    wanted = {found.session_id: found.events for found in read_path(path) if isinstance(found, Session)}
    with asyncio.Runner() as loop:
        loop.run(world.started())
        target = world.write(path.name, path.read_bytes())
        loop.run(world.turns())
        target.unlink()
        loop.run(world.turns(6))
    for session, events in wanted.items():
        assert sorted(each.event_id for each in world.sink.events if each.session_id == session) == sorted(
            each.event_id for each in events
        )
    assert {each.session_id for each in world.sink.events} == {name for name, events in wanted.items() if events}
