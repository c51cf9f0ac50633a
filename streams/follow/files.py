"""Which files there are, which of them are new, changed, renamed or gone, and what is known of each.

Goes by device and inode, and by a file's first bytes where these may be another's. Reads no line, and sends nothing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from streams.follow.notes import Known
from streams.follow.scan import Found, Scan
from streams.follow.tail import HEAD_BYTES, begins_as, head_of
from streams.importers.codex import PACKED, PLAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from streams.follow.notes import Given, Notes


@dataclass(slots=True)
class _Seen:
    """A file as it was seen last: where, how large, when it changed, in which pass; whether one went by without it."""

    path: str
    size: int
    modified_ns: int
    passed: int
    missed: bool = False


class Files:
    """The files below some paths.

    Args:
        roots: the paths.
        notes: what was sent before.
        since: see `FollowSettings`.

    Attributes:
        named: the paths that are files themselves.
        renamed: files that were renamed, as they are known now; to be emptied by who reads them.
    """

    def __init__(self, roots: Sequence[str], notes: Notes, since: datetime | None) -> None:
        self.named: set[str] = set()
        self.renamed: dict[str, Known] = {}
        self._notes = notes
        self._since = since
        self._scan = Scan(roots)
        self._pass = 0
        self._old = {root for root in roots if not notes.is_followed(root)}
        self._complete: set[str] = set()  # of these, those of which all was seen, not noted yet
        self._seen: dict[str, _Seen] = {}
        self._known: dict[str, Known] = {}  # not noted yet
        self._paths: dict[str, str] = {}  # of these, by path

    def __len__(self) -> int:
        """Give how many files there are."""
        return len(self._seen)

    @property
    def passes(self) -> int:
        """How many times all was looked at."""
        return self._scan.passes

    def look(self, most: int) -> list[tuple[str, str | None]]:
        """Look at some, and give those that there is something to read of.

        Args:
            most: entries of folders to look at.

        Returns:
            The files, each with another that was in its place before: that one is to be read first.
        """
        self._pass = self._scan.passes
        found = self._scan.step(most)
        changed = [(each.identity, after) for each in found for is_changed, after in [self._take(each)] if is_changed]
        if self._scan.passes > self._pass:
            self._complete |= self._old
            self._old = set()
        return changed

    def gone(self, is_wanted: Callable[[str], bool]) -> list[tuple[str, str]]:
        """Forget the files that two passes went by without, since one may be renamed during a pass.

        Args:
            is_wanted: tells whether one is not to be forgotten yet.

        Returns:
            The files and their paths.
        """
        latest = self._scan.passes - 1
        gone = []
        for name, seen in self._seen.items():
            if seen.passed < latest:
                if seen.missed and not is_wanted(name):
                    gone.append((name, seen.path))
                seen.missed = True
        for name, _ in gone:
            del self._seen[name]
        return gone

    def size(self, name: str) -> int:
        """Give a file's size, in bytes, as it was seen last; 0 for one that is not there."""
        seen = self._seen.get(name)
        return 0 if seen is None else seen.size

    def find(self, name: str) -> Known | None:
        """Give what is known of a file."""
        return self._known.get(name) or self._notes.find(name)

    def at(self, path: str) -> Known | None:
        """Give the file that was seen latest under a path."""
        name = self._paths.get(path)
        return self._notes.at(path) if name is None else self._known[name]

    def is_packed(self, path: str) -> bool:
        """Tell whether a file holds, packed, what was read under its other name: its agent has packed it."""
        plain = path.removesuffix(PACKED) + PLAIN
        return path.endswith(PACKED) and any(seen.path == plain for seen in self._seen.values())

    def keep(self, known: Known) -> None:
        """Take what is known of a file now; to be noted."""
        self._known[known.identity] = known
        self._paths[known.path] = known.identity

    def save(self, given: Iterable[Given]) -> None:
        """Note all that is to be noted.

        Args:
            given: events that were acknowledged.

        Raises:
            NotesUnusable: it cannot be written.
        """
        if self._known or self._complete or given:
            self._notes.note(self._known.values(), given, roots=self._complete, now=time.time())
        self._known.clear()
        self._paths.clear()
        self._complete.clear()

    def tidy(self) -> None:
        """Forget what was noted of files that are gone for long."""
        self._notes.tidy(self._seen, time.time())

    def _take(self, found: Found) -> tuple[bool, str | None]:
        name, stat = found.identity, found.stat
        if found.named:
            self.named.add(found.path)
        seen = self._seen.get(name)
        moved = seen is not None and seen.path != found.path and seen.passed != self._pass
        if seen is None or (moved and not self._is_renamed(found)):
            self._seen[name] = _Seen(found.path, stat.st_size, stat.st_mtime_ns, self._pass)
            return self._begin(found)
        same = (seen.size, seen.modified_ns) == (stat.st_size, stat.st_mtime_ns)
        seen.size, seen.modified_ns, seen.passed, seen.missed = stat.st_size, stat.st_mtime_ns, self._pass, False
        if moved:
            seen.path = found.path
        return not same, None

    def _is_renamed(self, found: Found) -> bool:
        """Tell whether a file was renamed, rather than another one made that got the inode of one that is gone."""
        known = self.find(found.identity)
        if known is None or not begins_as(found.path, known):
            return False
        self.renamed[known.identity] = known = replace(known, path=found.path)
        self.keep(known)
        return True

    def _begin(self, found: Found) -> tuple[bool, str | None]:
        """Take in a file that was not seen since the start."""
        name, stat = found.identity, found.stat
        known = self.find(name)
        if known is not None and (known.path == found.path or self._is_renamed(found)):
            return (known.offset, known.modified_ns) != (stat.st_size, stat.st_mtime_ns), None
        before = self.at(found.path)
        known = Known(name, found.path, found.path)
        if before is None and found.path.endswith(PLAIN):
            # An agent that packs old transcripts unpacks one to go on with it: what was packed is no news.
            packed = self.at(found.path.removesuffix(PLAIN) + PACKED)
            if packed is not None:
                known = replace(known, since=packed.modified_ns / 10**9)
        if before is not None and before.identity != name:
            if begins_as(found.path, before):
                # The agent wrote it anew and put it in the place of the old one: what was there is no news.
                known = replace(known, source=before.source, start=before.start, since=before.since)
        elif found.root in self._old:
            return self._begin_old(known, found), None
        self.keep(known)
        return True, None if before is None else before.identity

    def _begin_old(self, known: Known, found: Found) -> bool:
        """Take in a file that was there before it was followed, and tell whether it is to be read."""
        stat = found.stat
        if self._since is not None and stat.st_mtime >= self._since.timestamp():
            self.keep(replace(known, since=self._since.timestamp()))
            return True
        count = min(stat.st_size, HEAD_BYTES)
        known = replace(known, head_bytes=count, head=head_of(found.path, count))
        self.keep(replace(known, start=stat.st_size, offset=stat.st_size, modified_ns=stat.st_mtime_ns))
        return found.named  # so that one that cannot be followed is told of at once
