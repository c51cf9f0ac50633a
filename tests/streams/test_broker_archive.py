"""The classes that a broker loads are kept for quicker starts, and nothing depends on it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from streams.kafka_broker import KafkaBroker, archive, java
from streams.kafka_broker.jars import class_path, default_cache

if TYPE_CHECKING:
    from collections.abc import Callable


def quiet(_: str) -> None:
    """Take what is told."""


def mapped(broker: KafkaBroker, path: Path) -> bool:
    """Tell whether the running broker reads its classes from a file."""
    return path.name in Path(f"/proc/{broker.pid}/maps").read_text("utf-8")


def test_it_is_made_once_and_used() -> None:
    """Java maps the file; a second call finds it and starts nothing."""
    kept = archive.make(default_cache(), tell=quiet)
    assert kept is not None
    made = kept.stat().st_mtime_ns
    told: list[str] = []
    assert archive.make(default_cache(), tell=told.append) == kept
    assert (kept.stat().st_mtime_ns, told) == (made, [])
    assert [each.name for each in kept.parent.iterdir() if each.name.startswith(".kafka-")] == []
    with KafkaBroker() as broker:
        assert mapped(broker, kept)


def _cut(data: bytearray) -> None:
    del data[len(data) // 2 :]


def _flip(data: bytearray) -> None:
    data[len(data) // 2] ^= 0xFF


def _empty(data: bytearray) -> None:
    data.clear()


@pytest.mark.parametrize("damage", [_cut, _flip, _empty])
def test_a_broker_starts_beside_a_damaged_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, damage: Callable[[bytearray], None]
) -> None:
    """Java notices, and loads its classes from the jars."""
    kept = archive.make(default_cache(), tell=quiet)
    assert kept is not None
    data = bytearray(kept.read_bytes())
    damage(data)
    damaged = tmp_path / kept.name
    damaged.write_bytes(data)
    monkeypatch.setattr(java, "archive_of", lambda *_: damaged)
    with KafkaBroker() as broker:
        assert broker.pid is not None


def test_it_is_of_the_jars_as_they_are(tmp_path: Path) -> None:
    """Where a jar was fetched anew, or lies elsewhere, another file is asked for; none is no hindrance."""
    program = java.find_java()
    jars = class_path(default_cache(), tell=quiet)
    moved = tmp_path / jars[0].name
    moved.write_bytes(b"")
    again = [moved, *jars[1:]]
    first = java.archive_of(program, again)
    assert first == java.archive_of(program, again) != java.archive_of(program, jars)
    os.utime(moved, ns=(1, 1))
    assert java.archive_of(program, again) != first
    assert java.class_options(program, again) == ["-cp", os.pathsep.join(map(str, again))]


def test_where_it_cannot_be_kept_that_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is said, with the file's name, and fails nothing."""
    place = tmp_path / "missing" / "kafka.aot"
    monkeypatch.setattr(archive, "archive_of", lambda *_: place)
    told: list[str] = []
    assert archive.make(default_cache(), tell=told.append) is None
    assert told[1:] == [f"{place}: not made (No such file or directory); brokers start all the same"]
