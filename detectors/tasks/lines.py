"""Lines as they are compared: by prints in which white space makes no difference, each as often as it stands there.

Nothing here knows of files or changes.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from struct import iter_unpack, pack
from typing import Final

NEAR_LINES: Final = 3  # as many as git shows around a change: what is closer to another one is one with it there


def marks_of(lines: Sequence[str]) -> list[int]:
    """Return the digests of the lines that are not blank, whatever white space is in them."""
    return [_mark(text) for text in ("".join(line.split()) for line in lines) if text]


def _mark(text: str) -> int:
    """Return the digest of one line; that of `canonical.digest` takes thrice as long, and a diff has many."""
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def without_common(removed: list[int], added: list[int]) -> tuple[list[int], list[int]]:
    """Return both without what is in both, as often as it is."""
    if set(removed).isdisjoint(added):
        return removed, added
    return minus(removed, added), minus(added, removed)


def minus(found: Iterable[int], others: Iterable[int]) -> list[int]:
    """Return what is found less the others, as often as they are there."""
    left = Counter(others)
    kept = []
    for number in found:
        if left[number] > 0:
            left[number] -= 1
        else:
            kept.append(number)
    return kept


def numbers(prints: bytes, thin: int = 1) -> list[int]:
    """Return the prints of a row as numbers, those that are divisible by ``thin``."""
    return [number for (number,) in iter_unpack("<I", prints) if number % thin == 0]  # `facts.PRINT_BYTES` each


def packed(found: Iterable[int]) -> bytes:
    """Return a row of prints, of numbers, in rising order."""
    rising = sorted(found)
    return pack(f"<{len(rising)}I", *rising)


def near(start: int, count: int, other_start: int, other_count: int) -> bool:
    """Tell whether two ranges of lines of one file are the same place; one that starts at 0 may be anywhere."""
    if not start or not other_start:
        return True
    return max(start, other_start) - min(start + count, other_start + other_count) <= NEAR_LINES
