"""Finds the files below some paths again and again, a part at each turn, so that many files hold nothing up.

By names and times alone, without help of the system that others lack. Opens no file, and follows no link to a folder.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Found(NamedTuple):
    """A file.

    Attributes:
        root: the path below which it is.
        path: its own.
        named: it is the root itself.
        stat: what the system says of it.
    """

    root: str
    path: str
    named: bool
    stat: os.stat_result

    @property
    def identity(self) -> str:
        """Device and inode, which stay when a file is renamed."""
        return identity(self.stat)


def identity(found: os.stat_result) -> str:
    """Name a file by device and inode."""
    return f"{found.st_dev}:{found.st_ino}"


class Scan:
    """Goes through all paths, over and over.

    Args:
        roots: files and folders; those that are not there may come.

    Attributes:
        passes: how many times all paths were gone through.
    """

    def __init__(self, roots: Sequence[str]) -> None:
        self.passes = 0
        self._roots = roots
        self._going = self._walk()

    def step(self, most: int) -> list[Found]:
        """Give the next files: of so many entries of folders, or up to the end of this pass.

        Args:
            most: entries of folders to look at.
        """
        found: list[Found] = []
        for _ in range(most):
            entry = next(self._going, None)
            if entry is None:
                self.passes += 1
                self._going = self._walk()
                break
            if entry.stat is not None and stat.S_ISREG(entry.stat.st_mode):
                found.append(Found(entry.root, entry.path, entry.named, entry.stat))
        return found

    def _walk(self) -> Iterator[_Entry]:
        for root in self._roots:
            try:
                top = os.stat(root)  # noqa: PTH116 - as scandir gives it
            except OSError:
                continue
            if not stat.S_ISDIR(top.st_mode):
                yield _Entry(root, root, named=True, stat=top)
                continue
            folders = [root]
            while folders:
                yield from self._folder(root, folders.pop(), folders)

    @staticmethod
    def _folder(root: str, folder: str, folders: list[str]) -> Iterator[_Entry]:
        try:
            with os.scandir(folder) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError:  # gone in between, or not for us to read
            return
        for entry in listed:
            try:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                    yield _Entry(root, entry.path, named=False, stat=None)
                else:
                    yield _Entry(root, entry.path, named=False, stat=entry.stat())
            except OSError:
                continue


class _Entry(NamedTuple):
    root: str
    path: str
    named: bool
    stat: os.stat_result | None
