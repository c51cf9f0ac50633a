"""How much of one change another takes back, and how alike two changes are, by the lines they take out and put in.

Nothing here judges what that means, and no text is read: changes come in their bounded form (`detectors.tasks.facts`).
Of two changes that were thinned out differently, the thinner sample of both is compared.
"""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from detectors.tasks.edits import MAX_LINES
from detectors.tasks.facts import PRINT_BYTES, Change, FileChange, Region
from detectors.tasks.lines import minus, near, numbers, packed


class Reversal(NamedTuple):
    """What a change takes back of the one before it: the share of that one's lines, and their prints."""

    share: float
    lines: frozenset[bytes]


def reversal(previous: Change, current: Change) -> Reversal:
    """Return what the current change takes back of the previous one.

    With A(r) the lines that a region puts in and R(r) those that it takes out, each as often as it stands there, and
    over all pairs of regions p of the previous and c of the current change that are the same place:

        share = sum of |A(p) & R(c)| + |R(p) & A(c)|  /  sum of |A(p)| + |R(p)|

    No line counts twice, and the share is 0 where the previous change has none. The direction counts: what both put in
    is not taken back. Regions are the same place when they are in one file, through its renaming too, and the lines of
    p after its change and those of c before its own overlap or are at most `lines.NEAR_LINES` apart, or when either's
    numbers are not known. That is lenient since an attempt may be sent as a diff against a clean checkout, whose
    numbers are a little off.

    For example, the previous change replaces ``a`` and ``b`` by ``c``, and the current one ``c`` by ``a`` and ``d``:
    ``c`` is taken out again and ``a`` is put back, two lines of three, so the share is 0.67.

    Where only the whole content after the current change is known, what is not in it was taken out, and what is in it
    was put in.
    """
    thin = max(previous.thin, current.thin)
    total = 0
    lines: list[int] = []
    for file in previous.files:
        earlier = [_Part(region, region.new_start, region.new_count, thin) for region in file.regions]
        total += sum(part.added.total() + part.removed.total() for part in earlier)
        for later in current.files:
            if file.path not in {later.source, later.path}:
                continue
            if later.whole and not later.regions:
                lines += _gone(earlier, later, thin)
            else:
                lines += _taken_back(earlier, later, thin)
    share = len(lines) / total if total else 0.0
    return Reversal(share, frozenset(number.to_bytes(PRINT_BYTES, "little") for number in lines))


def agreement(one: Change, other: Change) -> float:
    """Return how alike two changes are: of the lines that either takes out or puts in, the share that both do.

    Lines compare with their file and direction; 0 when nothing is known of either, 1 when all of both is the same.
    """
    if one.digest and one.digest == other.digest:
        return 1.0
    thin = max(one.thin, other.thin)
    first, second = _all_lines(one, thin), _all_lines(other, thin)
    shared = len(first & second)
    return shared / (len(first) + len(second) - shared) if shared else 0.0


def settled(change: Change, before: Change | None) -> Change:
    """Return the change with what it takes out and puts in where a file's whole content was given, as it was earlier.

    ``before`` is the latest earlier change that gives the whole content of its files, settled or not; None, and files
    that it does not give, leave things as they are. Of a large file only the sample of its lines is compared. What is
    settled has one region, which is empty when the content stayed as it was.
    """
    known = {} if before is None else {file.path: file for file in before.files if file.whole}
    if before is None or not any(file.whole and file.source in known for file in change.files):
        return change
    thin = max(change.thin, before.thin)
    while True:
        files = tuple(_settled(file, known.get(file.source), thin) for file in change.files)
        if sum(map(_size, files)) <= MAX_LINES * PRINT_BYTES:
            return Change(change.digest, files, thin)
        thin *= 2


class _Part:
    """What is left of a region to be taken back, or to take back with: the place, and the lines of either kind."""

    __slots__ = ("added", "count", "removed", "start")

    def __init__(self, region: Region, start: int, count: int, thin: int) -> None:
        self.start = start
        self.count = count
        self.removed = Counter(numbers(region.removed, thin))
        self.added = Counter(numbers(region.added, thin))

    def take_back(self, earlier: "_Part") -> Iterator[int]:
        """Yield the lines of an earlier part that this one takes back, and leave them out of both."""
        for mine, its in ((self.removed, earlier.added), (self.added, earlier.removed)):
            if mine.keys().isdisjoint(its):
                continue
            both = mine & its
            mine -= both  # noqa: PLW2901 -- in place
            its -= both  # noqa: PLW2901 -- likewise
            yield from both.elements()


def _taken_back(earlier: list[_Part], later: FileChange, thin: int) -> Iterator[int]:
    """Yield the lines that a later change takes back; those of exactly the same place come first."""
    parts = [_Part(region, region.old_start, region.old_count, thin) for region in later.regions]
    for exactly in (True, False):
        for part in earlier:
            for other in parts:
                same = (part.start, part.count) == (other.start, other.count)
                if same if exactly else near(part.start, part.count, other.start, other.count):
                    yield from other.take_back(part)


def _gone(earlier: list[_Part], later: FileChange, thin: int) -> Iterator[int]:
    """Yield the lines that a later content takes back: those put in that it lacks, those taken out that it has."""
    content = Counter(numbers(later.content, thin))
    for part in earlier:
        kept = part.added & content
        content -= kept
        yield from (part.added - kept).elements()
        part.added = kept
    for part in earlier:
        back = part.removed & content
        content -= back
        yield from back.elements()
        part.removed -= back


def _all_lines(change: Change, thin: int) -> frozenset[tuple[int, bool, int]]:
    """Return the lines of a change with their file, and whether they are put in."""
    return frozenset(
        (file.path, put_in, number)
        for file in change.files
        for region in file.regions
        for put_in, prints in ((False, region.removed), (True, region.added))
        for number in numbers(prints, thin)
    )


def _settled(file: FileChange, before: FileChange | None, thin: int) -> FileChange:
    """Return a file's change with lines whose prints are divisible by ``thin``, settled where both are whole."""
    content = numbers(file.content, thin)
    regions = file.regions
    if file.whole and before is not None:
        earlier = numbers(before.content, thin)
        regions = (Region(removed=packed(minus(earlier, content)), added=packed(minus(content, earlier))),)
    thinned = (
        msgspec.structs.replace(
            region, removed=packed(numbers(region.removed, thin)), added=packed(numbers(region.added, thin))
        )
        for region in regions
    )
    kept = (region for region in thinned if file.whole or region.removed or region.added)
    return msgspec.structs.replace(file, regions=tuple(kept), content=packed(content))


def _size(file: FileChange) -> int:
    return len(file.content) + sum(len(region.removed) + len(region.added) for region in file.regions)
