"""Reads recorded sessions from files and directories, whatever format they are in.

What cannot be read is part of the answer, beside the sessions: a fault in one line or file never hides the others.
Prints nothing and decides on no exit code.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from streams.importers.containers import CannotOpen
from streams.importers.detect import Detected, detect
from streams.importers.files import UTF_16, UTF_16_REMEDY, CannotRead, Damaged, Recording, Skipped, Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streams.importers.build import Session

_RECORDING_NAMES = tuple(name + packed for name in (".jsonl", ".json", ".traj") for packed in ("", ".gz", ".zst"))
"""A file in a directory whose name ends so, and in which there is no JSON, is broken rather than something else."""

_CONTAINER_NAMES = (".db", ".eval")
"""Likewise one that cannot be opened as the database or archive that it begins as."""


def read_path(path: str | os.PathLike[str]) -> Iterator[Session | Unreadable | Damaged | Skipped]:
    """Read the sessions of a file, or of all files in a directory and below it, sorted by name, each once.

    A file that is named must be a recording. In a directory, files of other kinds are `Skipped`; those that are, or
    once were, recordings and cannot be read are `Unreadable` there too.

    Args:
        path: a file or directory. The sessions' `source` is this path, extended by the place within it.
    """
    top = Path(path)
    named = not top.is_dir()
    for file in _files(top):
        yield from _read_file(file, named=named)


def is_read(file: Path, path: Path) -> bool:
    """Tell whether `read_path` reads a file, under this or another name, as more than something to be `Skipped`.

    Args:
        file: a file that there is.
        path: what would be given to `read_path`.
    """
    wanted = file.stat()
    for each in _files(path):
        try:
            same = os.path.samestat(each.stat(), wanted)
        except OSError:  # a link that leads nowhere, or a path that there is not
            continue
        if same and (each == path or not isinstance(next(_read_file(each, named=False), None), Skipped)):
            return True
    return False


def _files(top: Path) -> Iterator[Path]:
    if not top.is_dir():
        yield top
        return
    given: set[tuple[int, int]] = set()
    for directory, below, names in os.walk(top):
        below.sort()
        for name in sorted(names):
            path = Path(directory, name)
            try:
                found = path.stat()
            except OSError:  # a link that leads nowhere, which is told when it is read
                yield path
                continue
            if (found.st_dev, found.st_ino) not in given:  # else a link to a file that was given
                given.add((found.st_dev, found.st_ino))
                yield path


def _read_file(path: Path, *, named: bool) -> Iterator[Session | Unreadable | Damaged | Skipped]:
    source = os.fsencode(path).decode("utf-8", "replace")
    recording = Recording(path, source, named=named)
    if not path.exists():
        yield Unreadable(source, None, "no such file or directory")
        return
    if not path.is_file():  # a pipe or device could keep us waiting for ever
        yield Unreadable(source, None, "not a regular file") if named else Skipped(source)
        return
    try:
        found = detect(recording)
    except CannotOpen as problem:
        known = named or path.name.endswith(_CONTAINER_NAMES)
        yield Unreadable(source, None, str(problem)) if known else Skipped(source)
        return
    except CannotRead as problem:
        yield Unreadable(source, None, str(problem))
        return
    if found.format is None:
        yield _not_known(path, source, found, named=named)
        return
    told = 0
    for session in found.format.read(recording, whole=found.whole):
        yield session
        yield from recording.unreadable[told:]
        told = len(recording.unreadable)
    yield from recording.unreadable[told:]
    yield from recording.damages()


def _not_known(path: Path, source: str, found: Detected, *, named: bool) -> Unreadable | Skipped:
    """Tell a file that is something else from one that is broken."""
    empty = path.stat().st_size == 0
    no_json = not found.is_json and not found.container and not empty
    broken = found.fault is not None or (no_json and path.name.endswith(_RECORDING_NAMES))
    if not named and not broken:
        return Skipped(source)
    if found.fault is not None:
        return Unreadable(source, *found.fault)
    if found.container:
        return Unreadable(
            source, None, f"{found.container}, but of no known format; `traction replay --help` lists them"
        )
    if found.is_json:
        return Unreadable(source, None, "JSON, but of no known format; `traction replay --help` lists them")
    with path.open("rb") as file:
        if file.read(2) in UTF_16:
            return Unreadable(source, None, UTF_16_REMEDY)
    return Unreadable(source, None, "empty" if empty else "not a recording: there is no JSON in it")
