"""Brings lines that are taken out and put in into the bounded form of a `Change`, and several changes into one.

White space within a line makes no difference, blank lines never count, and lines that a replacement both takes out and
puts in are no change: re-indenting is none. Nothing here knows what a diff or an edit tool looks like.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from struct import pack
from typing import Final, NamedTuple

import msgspec

from detectors.canonical import digest
from detectors.tasks.facts import PRINT_BYTES, Change, FileChange, Region
from detectors.tasks.lines import bare_lines, marks_of, minus, near, numbers, packed, without_common

MAX_LINES: Final = 256  # prints of lines in one change, over all its files
MAX_FILES: Final = 16  # of one change
MAX_REGIONS: Final = 64  # of one change, over all its files
MAX_BLOCKS: Final = 2_000
"""Blocks of one change that are read, those that only name a file included: what follows is not known.

In recorded sessions no call has more than nine. A message has room for tens of thousands of one line each, of which
each takes as long as forty lines of a long one, and what is remembered of a change has room for few of them.
"""

_MOST_SAME = 16  # times that one line counts on one side of a region: a thousand closing brackets say no more
_MASK = 2 ** (8 * PRINT_BYTES) - 1
NOWHERE: Final = "/dev/null"
"""What a diff calls the file where there is none."""

PATH_CHARS: Final = 1_024
"""How much of a path is read."""

_begun = blake2b(digest_size=8).copy  # takes half as long as a new one
_NO_PATHS = digest(""), digest("")
_WHOLE, _MOVED = 2**64 - 1, 2**64 - 2  # stand in the digest where else a number of lines does


class Block(NamedTuple):
    """Lines of a file that others take the place of.

    ``source`` is its path before, ``path`` that after, each empty where there is no file. ``old`` and ``new`` are the
    numbers, before and after, of the first line concerned, or of the line that what is put in or taken out stands
    before, from 1; 0: not known. ``whole``: ``added`` is all that is in the file.
    """

    source: str
    path: str
    old: int = 0
    new: int = 0
    removed: Sequence[str] = ()
    added: Sequence[str] = ()
    whole: bool = False


def plain_path(path: str) -> str:
    """Return a path in the form in which paths compare; empty for that of no file."""
    path = path.strip().replace("\\", "/")
    while path[:2] == "./":
        path = path[2:].lstrip("/")
    return "" if path == NOWHERE else path


def gather(blocks: Iterable[Block]) -> Change:
    """Return the change that the blocks make, which come in their order within each file.

    Memory stays bounded however many come. Of too many lines those remain whose prints are divisible by a power of two,
    of too many files those with the lowest digests of their paths, and of too many regions neighbours become one. Of
    too many blocks the first are read.
    """
    gathered = None
    for block in islice(blocks, MAX_BLOCKS):
        gathered = gathered or _Gathered()
        gathered.take(block)
    return gathered.change() if gathered else Change()


def join(changes: Sequence[Change]) -> Change:
    """Return several changes, made one after the other, as one.

    What a later one takes back of an earlier one is in neither, a file that was renamed on the way is one file, and
    what is known of a file's whole content stays known: join before settling. Places are those at the time of each.
    """
    changes = [change for change in changes if change.digest]
    if len(changes) < 2:  # noqa: PLR2004 -- nothing to join
        return changes[0] if changes else Change()
    gathered = _Gathered(max(change.thin for change in changes))
    for change in changes:
        gathered.follow(change)
    return gathered.change()


def thinned(change: Change, lines: int, regions: int) -> Change:
    """Return a change of which so many lines and regions are kept at most, in the way in which large ones are.

    It is the same change, by its digest. There must be room for a region of each file.
    """
    gathered = _Gathered(change.thin, lines)
    gathered.follow(change)
    return msgspec.structs.replace(gathered.change(regions), digest=change.digest)


@dataclass(slots=True)
class _Lines:
    """A region in the making."""

    old: int
    old_count: int
    new: int
    new_count: int
    removed: list[int]
    added: list[int]

    def region(self) -> Region:
        """Return it in the form that is remembered."""
        return Region(self.old, self.old_count, self.new, self.new_count, packed(self.removed), packed(self.added))


@dataclass(slots=True)
class _File:
    """What becomes of one file, in the making; ``content`` is all that is in it, where that is known."""

    source: int
    path: int
    regions: list[_Lines] = field(default_factory=list)
    content: list[int] | None = None

    def lists(self) -> Iterator[list[int]]:
        """Yield the lists of lines."""
        for region in self.regions:
            yield region.removed
            yield region.added
        if self.content is not None:
            yield self.content

    def gather_placeless(self) -> None:
        """Make one region of those that may be anywhere."""
        placeless = [region for region in self.regions if not (region.old and region.new)]
        if len(placeless) > 1:
            removed, added = (
                [line for each in placeless for line in getattr(each, side)] for side in ("removed", "added")
            )
            self.regions = [region for region in self.regions if region.old and region.new]
            self.regions.append(_Lines(0, 0, 0, 0, removed, added))

    def change(self) -> FileChange:
        """Return it in the form that is remembered."""
        return FileChange(
            self.path,
            self.source,
            tuple(region.region() for region in self.regions),
            self.content is not None,
            packed(self.content or ()),
        )


class _Gathered:
    """A change in the making."""

    __slots__ = ("_count", "_file", "_files", "_hashed", "_lines", "_named", "_paths", "_thin", "_told", "_touched")

    def __init__(self, thin: int = 1, lines: int = MAX_LINES) -> None:
        self._lines = lines
        self._files: dict[tuple[int, int], _File] = {}
        self._named = ("", "")  # paths of the block before, as they were written
        self._paths = _NO_PATHS  # their digests
        self._file: _File | None = None  # of the block before; None when it is left out
        self._hashed = _begun()
        self._told = False  # the paths were hashed
        self._touched = False  # there is something that counts
        self._thin = thin
        self._count = 0  # of the lines that are kept

    def take(self, block: Block) -> None:
        """Add a block."""
        if self._named != block[:2] or not self._files:
            self._turn_to(block.source, block.path)
        before, after = without_common(bare_lines(block.removed), bare_lines(block.added))
        removed, added = marks_of(before) if before else [], marks_of(after) if after else []
        if block.whole:
            self._hash(_WHOLE, *added)
        elif removed or added:
            self._hash(len(removed), len(added), *removed, *added)
        else:
            return
        file = self._file
        if file is None:
            return
        removed, added = self._kept(removed), self._kept(added)
        if block.whole:
            self._count -= sum(map(len, file.lists()))
            file.regions, file.content = [], added
        elif removed or added:
            old_count, new_count = (len(block.removed), len(block.added)) if block.old and block.new else (0, 0)
            file.regions.append(_Lines(block.old, old_count, block.new, new_count, removed, added))
        self._count += len(removed) + len(added)
        self._shrink()

    def follow(self, change: Change) -> None:
        """Add a change that was made after what is there."""
        self._hash(change.digest)
        for later in change.files:
            before = next((file for file in self._files.values() if file.path == later.source), None)
            if before is None:
                before = _File(later.source, later.path)
            else:
                del self._files[before.source, before.path]
            before.path = later.path
            file = self._keep(before)
            if file is not None and later.whole:
                file.regions, file.content = [], numbers(later.content, self._thin)
            elif file is not None:
                for region in later.regions:
                    self._amend(file, region)
        self._recount()
        self._shrink()

    def change(self, regions: int = MAX_REGIONS) -> Change:
        """Return what was gathered, with so many regions at most."""
        if not self._touched:
            return Change()
        files = self._files.values()
        for file in files:
            file.gather_placeless()
        while sum(len(file.regions) for file in files) > regions:
            for file in files:
                file.regions = [_merged(file.regions[at : at + 2]) for at in range(0, len(file.regions), 2)]
        found = int.from_bytes(self._hashed.digest(), "little")
        return Change(found, tuple(file.change() for file in files), self._thin)

    def _turn_to(self, source: str, path: str) -> None:
        """Make the file with these paths, as they are written, that of the next blocks."""
        self._named = source, path
        source, path = plain_path(source), plain_path(path)
        before = digest(source)
        after = before if source == path else digest(path)
        self._paths = before, after
        self._told = False
        if source != path:
            self._hash(_MOVED)
        self._file = self._keep(_File(before if source else after, after if path else before))

    def _keep(self, file: _File) -> _File | None:
        """Return what is gathered of a file, from now on; None when there are too many, of which it is left out."""
        kept = self._files.setdefault((file.source, file.path), file)
        if len(self._files) <= MAX_FILES:
            return kept
        left_out = self._files.pop(max(self._files, key=min))
        self._count -= sum(map(len, left_out.lists()))
        return None if left_out is kept else kept

    def _hash(self, *marks: int) -> None:
        """Have the digest cover something that counts, after the paths of its file."""
        if not self._told:
            self._told = True
            self._hash(*self._paths)
        self._hashed.update(pack(f"<{len(marks)}Q", *marks))
        self._touched = True

    def _amend(self, file: _File, region: Region) -> None:
        """Add a region of a later change to a file, less what it takes back."""
        lines = _Lines(
            region.old_start, region.old_count, region.new_start, region.new_count,
            numbers(region.removed, self._thin), numbers(region.added, self._thin),
        )  # fmt: skip
        if file.content is not None:
            file.content = [*minus(file.content, lines.removed), *lines.added]
            return
        for earlier in file.regions:
            if near(earlier.new, earlier.new_count, lines.old, lines.old_count):
                earlier.added, lines.removed = without_common(earlier.added, lines.removed)
                earlier.removed, lines.added = without_common(earlier.removed, lines.added)
        file.regions.append(lines)

    def _kept(self, marks: Sequence[int]) -> list[int]:
        """Return the prints of lines that are kept, each a few times at most."""
        thin = self._thin
        prints = [number for mark in marks if (number := mark & _MASK) and not number % thin]  # 0 would never thin out
        if len(prints) > _MOST_SAME <= len(prints) - len(set(prints)):
            prints = [number for number, times in Counter(prints).items() for _ in range(min(times, _MOST_SAME))]
        return prints

    def _shrink(self) -> None:
        """Thin out until the lines are few enough."""
        while self._count > self._lines:
            self._thin *= 2
            for lines in (lines for file in self._files.values() for lines in file.lists()):
                lines[:] = [number for number in lines if number % self._thin == 0]
            self._recount()

    def _recount(self) -> None:
        for file in self._files.values():
            file.regions = [region for region in file.regions if region.removed or region.added]
        self._count = sum(len(lines) for file in self._files.values() for lines in file.lists())


def _merged(regions: list[_Lines]) -> _Lines:
    """Return one or two neighbours as one."""
    first, last = regions[0], regions[-1]
    if first is last:
        return first
    old, old_count = _joined(first.old, first.old_count, last.old, last.old_count)
    new, new_count = _joined(first.new, first.new_count, last.new, last.new_count)
    return _Lines(old, old_count, new, new_count, first.removed + last.removed, first.added + last.added)


def _joined(start: int, count: int, other_start: int, other_count: int) -> tuple[int, int]:
    first = min(start, other_start)
    return first, max(start + count, other_start + other_count) - first
