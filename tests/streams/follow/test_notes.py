"""What is noted is there after a restart, together or not at all; what cannot be used is told with a remedy."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from streams.follow.notes import FORGET_SECONDS, Given, Known, Notes, NotesUnusable

if TYPE_CHECKING:
    from pathlib import Path


def known(number: int, **fields: int) -> Known:
    """Make what is known of the n-th file."""
    return Known(f"1:{number}", f"/p{number}", f"/s{number}", 3, b"head", **{"start": 1, "offset": 7} | fields)


def test_kept(tmp_path: Path) -> None:
    """All of it is read back by another process: files by identity and by path, events, folders."""
    with Notes(tmp_path / "deep" / "state") as notes:
        notes.note([known(1), known(2)], [Given(5, -(2**63)), Given(5, 2**63 - 1)], roots=["/r"], now=1.0)
        notes.note([known(1, offset=9)], now=2.0)
    with Notes(tmp_path / "deep" / "state") as notes:
        assert notes.find("1:1") == known(1, offset=9)
        assert (notes.at("/p2"), notes.at("/p3"), notes.find("1:3")) == (known(2), None, None)
        assert (notes.contents(5), notes.contents(6)) == ({-(2**63), 2**63 - 1}, set())
        assert (notes.is_followed("/r"), notes.is_followed("/q")) == (True, False)
    assert (tmp_path / "deep" / "state").stat().st_mode & 0o077 == 0


def test_the_latest_at_a_path(tmp_path: Path) -> None:
    """Of several files that had one path the latest counts."""
    with Notes(tmp_path) as notes:
        for number in (3, 1, 2):
            notes.note([Known(f"1:{number}", "/p", "/s")], now=5.0)
        found = notes.at("/p")
    assert found is not None
    assert found.identity == "1:2"


def test_forgotten(tmp_path: Path) -> None:
    """A file that is gone is forgotten after its time, not before; of too many events the oldest are."""
    with Notes(tmp_path) as notes:
        notes.note([known(1), known(2)], [Given(number, 0) for number in range(10)], now=0.0)
        notes.tidy(["1:1"], FORGET_SECONDS, most=4)
        assert notes.find("1:2") is not None
        assert [bool(notes.contents(number)) for number in range(10)] == [False] * 6 + [True] * 4
        notes.tidy(["1:1"], FORGET_SECONDS + 1)
        assert (notes.find("1:1"), notes.find("1:2")) == (known(1), None)


def test_all_or_nothing(tmp_path: Path) -> None:
    """Where something of it cannot be noted nothing is."""
    with Notes(tmp_path) as notes:
        with pytest.raises(NotesUnusable, match="cannot be written"):
            notes.note([known(1)], [(1, None)])  # type: ignore[list-item]
        assert notes.find("1:1") is None
        notes.note([known(2)])


def test_unusable(tmp_path: Path) -> None:
    """A state that is damaged, of another version, in use, or no directory is refused with what to do."""
    (tmp_path / "file").write_text("")
    with pytest.raises(NotesUnusable, match="give --state a directory"):
        Notes(tmp_path / "file")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "follow.db").write_bytes(b"not a database" * 100)
    with pytest.raises(NotesUnusable, match=r"damaged.*remove it"):
        Notes(tmp_path / "damaged")
    (tmp_path / "newer").mkdir()
    with sqlite3.connect(tmp_path / "newer" / "follow.db") as newer:
        newer.execute("PRAGMA user_version = 2")
    newer.close()
    with pytest.raises(NotesUnusable, match="another version"):
        Notes(tmp_path / "newer")
    with Notes(tmp_path / "used"), pytest.raises(NotesUnusable, match="another traction follow uses it"):
        Notes(tmp_path / "used")
    with Notes(tmp_path / "used"):
        pass
