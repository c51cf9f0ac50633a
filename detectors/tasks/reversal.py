"""How much of one change another takes back, and how alike two changes are, by the lines they take out and put in.

Nothing here judges what that means, and no text is read: changes come in their bounded form (`detectors.tasks.facts`).
Of two changes that were thinned out differently, the thinner sample of both is compared.
"""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from detectors.tasks.edits import MAX_LINES
from detectors.tasks.facts import PRINT_BYTES, Change, FileChange, Region
from detectors.tasks.lines import minus, near, numbers, packed

Counts = dict[int, int]


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
        put_in, taken_out = numbers(_put_in(file), thin), numbers(_taken_out(file), thin)
        total += len(put_in) + len(taken_out)
        earlier: list[_Part] = []
        for later in current.files:
            if file.path not in {later.source, later.path}:
                continue
            known = later.whole and not later.regions
            if not known and not _may_take_back(put_in, taken_out, later, thin):
                continue
            earlier = earlier or [_Part(region, region.new_start, region.new_count, thin) for region in file.regions]
            lines += (_gone if known else _taken_back)(earlier, later, thin)
    share = len(lines) / total if total else 0.0
    return Reversal(share, frozenset(number.to_bytes(PRINT_BYTES, "little") for number in lines))


def agreement(one: Change, other: Change) -> float:
    """Return how alike two changes are: of the lines that either takes out or puts in, the share that both do.

    Lines compare with their file and direction; 0 when nothing is known of either, 1 when all of both is the same.
    """
    if one.digest and one.digest == other.digest:
        return 1.0
    if {file.path for file in one.files}.isdisjoint([file.path for file in other.files]):
        return 0.0
    thin = max(one.thin, other.thin)
    first, second = _all_lines(one, thin), _all_lines(other, thin)
    shared = sum(len(lines & second[side]) for side, lines in first.items() if side in second)
    return shared / (sum(map(len, first.values())) + sum(map(len, second.values())) - shared) if shared else 0.0


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


def _may_take_back(put_in: list[int], taken_out: list[int], later: FileChange, thin: int) -> bool:
    """Tell whether a later change has lines of an earlier one in the other direction, wherever they are."""
    return not (
        set(put_in).isdisjoint(numbers(_taken_out(later), thin))
        and set(taken_out).isdisjoint(numbers(_put_in(later), thin))
    )


class _Part:
    """What is left of a region to be taken back, or to take back with: the place, and the lines of either kind."""

    __slots__ = ("added", "count", "removed", "start")

    def __init__(self, region: Region, start: int, count: int, thin: int) -> None:
        self.start = start
        self.count = count
        self.removed = _counted(numbers(region.removed, thin))
        self.added = _counted(numbers(region.added, thin))

    def take_back(self, earlier: "_Part") -> list[int]:
        """Return the lines of an earlier part that this one takes back, and leave them out of both."""
        return _out_of_both(self.removed, earlier.added) + _out_of_both(self.added, earlier.removed)


def _counted(lines: Iterable[int]) -> Counts:
    found: Counts = {}
    for line in lines:
        found[line] = found.get(line, 0) + 1
    return found


def _out_of_both(one: Counts, other: Counts) -> list[int]:
    """Return what two have in common, as often as they have, and take it out of both."""
    found: list[int] = []
    for line in one.keys() & other.keys():
        times = min(one[line], other[line])
        found += [line] * times
        for counts in (one, other):
            if counts[line] == times:
                del counts[line]
            else:
                counts[line] -= times
    return found


def _taken_back(earlier: list[_Part], later: FileChange, thin: int) -> list[int]:
    """Return the lines that a later change takes back; those of exactly the same place come first."""
    parts = [_Part(region, region.old_start, region.old_count, thin) for region in later.regions]
    at_place: dict[tuple[int, int], list[_Part]] = {}
    for part in parts:
        at_place.setdefault((part.start, part.count), []).append(part)
    found: list[int] = []
    for before in earlier:
        for part in at_place.get((before.start, before.count), ()):
            found += part.take_back(before)
    left = [part for part in parts if part.removed or part.added]
    for before in earlier:
        for part in left if before.removed or before.added else ():
            if near(before.start, before.count, part.start, part.count):
                found += part.take_back(before)
    return found


def _gone(earlier: list[_Part], later: FileChange, thin: int) -> list[int]:
    """Return the lines that a later content takes back: those put in that it lacks, those taken out that it has."""
    content = _counted(numbers(later.content, thin))
    found: list[int] = []
    for part in earlier:
        kept = _out_of_both(part.added, content)
        found += [line for line, times in part.added.items() for _ in range(times)]
        part.added = _counted(kept)
    for part in earlier:
        found += _out_of_both(part.removed, content)
    return found


def _all_lines(change: Change, thin: int) -> dict[tuple[int, bool], set[int]]:
    """Return the lines of a change, each once, by their file and whether they are put in."""
    found: dict[tuple[int, bool], set[int]] = {}
    for file in change.files:
        for put_in, prints in ((False, _taken_out(file)), (True, _put_in(file))):
            found.setdefault((file.path, put_in), set()).update(numbers(prints, thin))
    return found


def _taken_out(file: FileChange) -> bytes:
    return b"".join([region.removed for region in file.regions])


def _put_in(file: FileChange) -> bytes:
    return b"".join([region.added for region in file.regions])


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
