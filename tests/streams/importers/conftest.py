"""Ways to read the recordings in `data`, and to write others. The recordings are made up for these tests."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from schemas.events import SessionEvent, ToolCall
from streams.importers import Damaged, Session, Unreadable, read_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

DATA = Path(__file__).parent / "data"


@pytest.fixture
def data() -> Path:
    """Give the directory of the recordings."""
    return DATA


@pytest.fixture
def sessions() -> Callable[[str], list[Session]]:
    """Read a recording that has no faults."""

    def read(name: str) -> list[Session]:
        found = list(read_path(DATA / name))
        assert all(isinstance(each, Session) for each in found), found
        return [each for each in found if isinstance(each, Session)]

    return read


@pytest.fixture
def calls() -> Callable[[Session], list[ToolCall]]:
    """Give a session's tool calls."""
    return lambda session: [event for event in session.events if isinstance(event, ToolCall)]


@pytest.fixture
def kinds() -> Callable[[Session], list[str]]:
    """Give a session's other events."""
    return lambda session: [event.kind for event in session.events if isinstance(event, SessionEvent)]


@pytest.fixture
def story() -> Callable[[Session], list[Any]]:
    """Give a session's events in order: calls with what was asked and answered, others by their kind."""

    def told(session: Session) -> list[Any]:
        return [
            (event.call_id, event.tool, event.arguments, event.result, event.status)
            if isinstance(event, ToolCall)
            else f"{event.kind}: {event.reason}"
            if isinstance(event, SessionEvent) and event.reason
            else getattr(event, "kind", "")
            for event in session.events
        ]

    return told


@pytest.fixture
def lines(tmp_path: Path) -> Callable[..., Path]:
    """Write a file of JSON lines; texts and bytes go in as they are."""

    def write(*values: Any, name: str = "recording.jsonl", packed: bool = False) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(_joined(values)) if packed else _joined(values))
        return path

    return write


def _joined(values: Iterable[Any]) -> bytes:
    texts = [value if isinstance(value, str | bytes) else json.dumps(value) for value in values]
    return b"".join((text if isinstance(text, bytes) else text.encode()) + b"\n" for text in texts)


@dataclass
class Found:
    """What was read of a path, by kind."""

    sessions: list[Session]
    unreadable: list[Unreadable]
    damaged: list[Damaged]


@pytest.fixture
def found_in() -> Callable[[Path], Found]:
    """Read a path with its faults."""

    def read(path: Path) -> Found:
        found = list(read_path(path))
        return Found(
            [each for each in found if isinstance(each, Session)],
            [each for each in found if isinstance(each, Unreadable)],
            [each for each in found if isinstance(each, Damaged)],
        )

    return read


@pytest.fixture
def read_all(found_in: Callable[[Path], Found]) -> Callable[[Path], list[Session]]:
    """Read a path that has no faults."""

    def read(path: Path) -> list[Session]:
        found = found_in(path)
        assert not found.unreadable
        return found.sessions

    return read
