"""Lines as they are compared: by prints in which white space makes no difference, each as often as it stands there.

Nothing here knows of files or changes.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from struct import Struct, unpack
from typing import Final, TypeVar

NEAR_LINES: Final = 3  # as many as git shows around a change: what is closer to another one is one with it there
_FEW: Final = 8  # from so many lines on it pays to do things at once
_ROWS: Final = 512  # lengths of rows whose form is remembered: one change has no more lines
_WHITE: Final = b"\t\x0b\x0c\r\x1c\x1d\x1e\x1f "  # all of it in ASCII, but for the end of a line
_WIDE: Final = tuple(char for char in map(chr, range(0x80, 0x3001)) if char.isspace())  # and all that is not
_begun = blake2b(digest_size=8).copy  # a copy takes half as long as a new one, and a diff has many lines
_T = TypeVar("_T", bound=Hashable)


def bare_lines(lines: Sequence[str]) -> list[bytes]:
    """Return the lines that are not blank, without their white space: what of them is compared."""
    if len(lines) >= _FEW:
        text = "\n".join(lines)  # at once, as no line has another one in it
        if text.isascii() or not any(white in text for white in _WIDE):
            return list(filter(None, text.encode("utf-8", "surrogatepass").translate(None, _WHITE).split(b"\n")))
    return [bare.encode("utf-8", "surrogatepass") for line in lines if (bare := "".join(line.split()))]


def marks_of(lines: Sequence[bytes]) -> Sequence[int]:
    """Return the digests of bare lines."""
    known: Collection[bytes] = lines if len(lines) < _FEW else dict.fromkeys(lines)
    digests = []
    for line in known:
        hashed = _begun()
        hashed.update(line)
        digests.append(hashed.digest())
    marks = unpack(f"<{len(known)}Q", b"".join(digests))
    if len(known) == len(lines):
        return marks
    of_line = dict(zip(known, marks, strict=True))
    return [of_line[line] for line in lines]


def without_common(removed: list[_T], added: list[_T]) -> tuple[list[_T], list[_T]]:
    """Return both without what is in both, as often as it is."""
    if not removed or not added or set(removed).isdisjoint(added):
        return removed, added
    return minus(removed, added), minus(added, removed)


def minus(found: Iterable[_T], others: Iterable[_T]) -> list[_T]:
    """Return what is found less the others, as often as they are there."""
    left = Counter(others)
    kept = []
    for each in found:
        if left.get(each):  # `left[each]` calls a function for each that is not there
            left[each] -= 1
        else:
            kept.append(each)
    return kept


def numbers(prints: bytes, thin: int = 1) -> list[int]:
    """Return the prints of a row as numbers, those that are divisible by ``thin``."""
    found = _row(len(prints) // 4).unpack(prints)  # `facts.PRINT_BYTES` each
    return list(found) if thin == 1 else [number for number in found if number % thin == 0]


@lru_cache(maxsize=_ROWS)
def _row(count: int) -> Struct:
    return Struct(f"<{count}I")


def packed(found: Iterable[int]) -> bytes:
    """Return a row of prints, of numbers, in rising order."""
    rising = sorted(found)
    return _row(len(rising)).pack(*rising)


def near(start: int, count: int, other_start: int, other_count: int) -> bool:
    """Tell whether two ranges of lines of one file are the same place; one that starts at 0 may be anywhere."""
    if not start or not other_start:
        return True
    return max(start, other_start) - min(start + count, other_start + other_count) <= NEAR_LINES
