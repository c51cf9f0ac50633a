"""What a call brings that its session has not seen: the share of its pieces of text that are new.

Pieces are what stands between line ends, ``;`` and ``,`` in the masked result and in the arguments. Of each call a
sample of bounded size is taken, the pieces with the smallest prints, so that two texts that share lines share them in
the sample too (bottom-k sketch, Cohen and Kaplan, "Summarizing data using bottom-k sketches", 2007). The session
remembers pieces in a bit set of fixed size with two halves (a Bloom filter with two active buffers, Yoon, "Aging Bloom
filter with two active buffers for dynamic sets", 2010): when the younger half is full it becomes the older one, and
what is seen again moves over, so that the set forgets and never fills up.
"""

from zlib import crc32

from detectors.state import SpinMemory

MAX_PIECES = 8  # of one call, in the sample
HALF_BITS = 4_096  # of 8,192 in both halves
MAX_FILL = 1_365  # bits of a half, a third: a new piece is taken for a seen one once in nine times, for each full half
_BITS = (1, 2, 4, 8, 16, 32, 64, 128)
_LINES = bytes.maketrans(b";,", b"\n\n")
_READ_CHARS = 256  # at either end of a result, and at the beginning of the arguments: more changes no figure


def pieces_of(result: str, arguments: bytes) -> list[int]:
    """Return the sample of a call's pieces, as prints of 32 bits: of its masked result and its canonical arguments."""
    if len(result) > 2 * _READ_CHARS:
        result = f"{result[:_READ_CHARS]}\n{result[-_READ_CHARS:]}"
    text = result.encode("utf-8", "replace") + b"\n" + arguments[:_READ_CHARS]
    text = text.translate(_LINES).replace(rb"\n", b"\n")  # the last as JSON writes it
    prints = set(map(crc32, text.split(b"\n")))
    prints.discard(0)  # of no text
    return sorted(prints)[:MAX_PIECES]


def new_share(memory: SpinMemory, pieces: list[int]) -> float:
    """Return the share of a call's pieces that the session has not seen, from 0 to 1, and remember them all.

    `pieces` is a sample as `pieces_of` gives it, with at least one piece.
    """
    if not memory.young:
        memory.young = bytearray(HALF_BITS // 8)
    young, old = memory.young, memory.old
    new = filled = 0
    for each in pieces:  # two places of twelve bits, from the end: the sample is taken by the beginning
        place, other = each & 0xFFF, each >> 12 & 0xFFF
        at, bit, other_at, other_bit = place >> 3, _BITS[place & 7], other >> 3, _BITS[other & 7]
        if young[at] & bit:
            if young[other_at] & other_bit:
                continue
        else:
            filled += 1
            young[at] |= bit
        if not young[other_at] & other_bit:  # looked at after the first was set, since both may be one
            filled += 1
            young[other_at] |= other_bit
        if not (old and old[at] & bit and old[other_at] & other_bit):
            new += 1
    memory.filled += filled
    if memory.filled > MAX_FILL:
        memory.old, memory.young, memory.filled = bytes(young), bytearray(), 0
    return new / len(pieces)
