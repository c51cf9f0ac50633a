"""Measures how the cost of hashing, normalising and masking grows with the text, and that it ends where reading does.

    python -m tests.bench.texts
    python -m tests.bench.texts --check            (exits with 1 when a cost grows faster than it may)
    python -m tests.bench.texts --json

Texts of 1 kB to 1 MB, the most that a record may have, of several kinds. Costs are processor time, the least of some
tries, and compared with each other: of a text of one size with that of another. That single regular expressions do not
backtrack is shown elsewhere (`tests/fuzz/test_patterns.py`).
"""

from __future__ import annotations

import gc
import itertools
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from detectors import Limits
from detectors.call import read_call
from detectors.canonical import canonical_arguments, digest
from detectors.facts import Mark
from detectors.failure import failure_of
from detectors.masks import MAX_READ_CHARS, mask_result
from schemas.testing import tool_call
from tests.bench.program import parser, run, say, show, table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SIZES = (1_024, 8_192, MAX_READ_CHARS, 4 * MAX_READ_CHARS, 1_000_000)
"""Characters. Of a result and of a failure no more than the third is read."""

TRIES = 5
ROUGH = 2.0
"""How far from straight growth may stray: caches of the processor, and a machine that does other things."""

LOOKS = 3
"""How often is looked before a cost counts as growing too fast."""

FLAT = 2.0
"""How much more a text of a megabyte may cost than one of a quarter, where no more is read of either."""

LIMITS = Limits()


class Work(NamedTuple):
    """What is done with a text, and whether more than `MAX_READ_CHARS` of it is read."""

    run: Callable[[str], object]
    reads_all: bool


WORKS = {
    "digest": Work(digest, reads_all=True),
    "canonical form of arguments": Work(lambda text: canonical_arguments({"text": text}), reads_all=True),
    "mask of a result": Work(mask_result, reads_all=False),
    "template of a failure": Work(failure_of, reads_all=False),
    "facts of a result": Work(
        lambda text: read_call(tool_call(1, "bash", {"command": "pytest"}, text), Mark(calls=1), LIMITS),
        reads_all=False,
    ),
    "facts of a command": Work(
        lambda text: read_call(tool_call(1, "bash", {"command": text}, "done"), Mark(calls=1), LIMITS),
        reads_all=True,
    ),
    "facts of an edit": Work(
        lambda text: read_call(
            tool_call(1, "edit", {"path": "a.py", "old_string": text, "new_string": text}), Mark(calls=1), LIMITS
        ),
        reads_all=True,
    ),
}
"""Arguments are digested to their end, since two that differ there are two. A record's bound holds for them."""

KINDS = {
    "prose": "the totals of the cart were computed once more and came out as before, ",
    "a log": "2026-01-31T12:00:00.123Z INFO worker[4242] took 12.5ms for /var/tmp/x1/y.txt\n",
    "code": 'def total(cart):\n    return sum(item.price for item in cart)  # of "all" items\n',
    "failures": "FAILED tests/test_cart.py::test_total - AssertionError: expected 3, got 4\n",
    "JSON": '{"id": "call_0123456789abcdef", "items": [1, 2.5, null], "ok": true}, ',
    "letters": "a",
}


def text_of(kind: str, size: int) -> str:
    """Give a text of so many characters."""
    piece = KINDS[kind]
    return (piece * (size // len(piece) + 1))[:size]


def cost(work: Work, text: str, tries: int = TRIES) -> float:
    """Measure the processor time that a work takes, in seconds: the least of some tries."""
    least = float("inf")
    for _ in range(tries):
        begun = time.thread_time()
        work.run(text)
        least = min(least, time.thread_time() - begun)
    return least


def measure(work: Work, kind: str, tries: int = TRIES) -> list[float]:
    """Measure what a work takes for texts of all SIZES, in seconds."""
    return [cost(work, text_of(kind, size), tries) for size in SIZES]


def growth(work: Work, seconds: Sequence[float]) -> tuple[float, float]:
    """Tell how costs grow: up to what is read of a result, and beyond.

    Args:
        work: what was measured.
        seconds: what each of SIZES took.

    Returns:
        The most that the cost of a character grew from one size to the next. Beyond, where no more is read, the most
        that the cost of the whole text grew, of texts that are all cut: a number of characters stands in these, which
        alone can have a pattern looked for that nothing in the text itself asks for.
    """
    bound = SIZES.index(MAX_READ_CHARS)
    each = [spent / size for spent, size in zip(seconds, SIZES, strict=True)]
    return _steepest(each[: bound + 1]), _steepest(each[bound:] if work.reads_all else seconds[bound + 1 :])


def _steepest(costs: Sequence[float]) -> float:
    return max(later / sooner for sooner, later in itertools.pairwise(costs))


def checked(name: str, kind: str, looks: int = LOOKS) -> dict[str, Any]:
    """Measure until what grows keeps to its bounds, at most so many times, and give the figures of the last time."""
    work, found = WORKS[name], dict[str, Any]()
    for _ in range(looks):
        seconds = measure(work, kind)
        within, beyond = growth(work, seconds)
        kept = within <= ROUGH and beyond <= (ROUGH if work.reads_all else FLAT)
        found = {"work": name, "text": kind, "seconds": seconds, "within": within, "beyond": beyond, "kept": kept}
        if kept:
            break
    return found


def checked_all() -> list[dict[str, Any]]:
    """Look at every work with every kind of text."""
    found = []
    gc.collect()
    gc.disable()
    try:
        for name in WORKS:
            say(name)
            found += [checked(name, kind) for kind in KINDS]
    finally:
        gc.enable()
    return found


def text(found: Sequence[dict[str, Any]]) -> str:
    """Give nanoseconds a character of each size, as a table."""
    rows = [
        (
            each["work"],
            each["text"],
            *(f"{spent / size * 1e9:.1f}" for spent, size in zip(each["seconds"], SIZES, strict=True)),
            f"{each['within']:.2f}",
            f"{each['beyond']:.2f}",
            "" if each["kept"] else "too fast",
        )
        for each in found
    ]
    head = ("ns a character", "text", *(f"{size:,}" for size in SIZES), "grows within", "beyond", "")
    return table(head, rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    options = parser(__doc__, "texts")
    options.add_argument("--check", action="store_true", help="exit with 1 when a cost grows faster than it may")
    asked = options.parse_args(arguments)
    found = checked_all()
    show(found, text, as_json=asked.json)
    return int(asked.check and not all(each["kept"] for each in found))


if __name__ == "__main__":
    run(main)
