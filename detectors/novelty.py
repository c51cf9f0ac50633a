"""What a call brings that its session has not seen: the share of its pieces of text that are new.

Pieces are what stands between line ends, ``;`` and ``,`` in the masked result and in the arguments. Of each call a
sample of bounded size is taken, the pieces with the smallest prints, so that two texts that share lines share them in
the sample too (bottom-k sketch, Cohen and Kaplan, "Summarizing data using bottom-k sketches", 2007). The session
remembers pieces in a bit set of fixed size with two halves (a Bloom filter with two active buffers, Yoon, "Aging Bloom
filter with two active buffers for dynamic sets", 2010): when the younger half is full it becomes the older one, and
what is seen again moves over, so that the set forgets and never fills up.
"""

import re
import struct
from zlib import crc32

from detectors.state import SpinMemory

MAX_PIECES = 16  # of one call, in the sample
HALF_BITS = 4_096  # of 8,192 in both halves
MAX_FILL = 1_365  # bits of the younger half, a third: a piece not seen is then taken for seen once in nine times
_READ_BYTES = 8_192  # at either end of a text

_PIECE = re.compile(rb"[^\s;,\\][^\n;,\\]*")  # the backslash stands before the line ends in JSON
_PRINT = 0xFFFF
_SPREAD = 40_503  # a second place for each print (Knuth's multiplicative hashing, 2^16 over the golden ratio)


def pieces_of(result: str, arguments: bytes) -> bytes:
    """Return the sample of a call's pieces, two bytes each: of its masked result and its canonical arguments."""
    text = result.encode("utf-8", "replace")
    if len(text) > 2 * _READ_BYTES:
        text = text[:_READ_BYTES] + b"\n" + text[-_READ_BYTES:]
    found = _PIECE.findall(text)
    found += _PIECE.findall(arguments[:_READ_BYTES])
    prints = sorted({crc32(piece) & _PRINT for piece in found})[:MAX_PIECES]
    return struct.pack(f"<{len(prints)}H", *prints)


def new_share(memory: SpinMemory, pieces: bytes) -> float:
    """Return the share of a call's pieces that the session has not seen, from 0 to 1, and remember them all.

    `pieces` is a sample as `pieces_of` gives it, with at least one piece.
    """
    if not memory.young:
        memory.young = bytearray(HALF_BITS // 8)
    young, old = memory.young, memory.old
    new = filled = 0
    prints = struct.unpack(f"<{len(pieces) // 2}H", pieces)
    for each in prints:
        first, second = each & 4_095, (each * _SPREAD >> 4) & 4_095
        at, bit, other_at, other_bit = first >> 3, 1 << (first & 7), second >> 3, 1 << (second & 7)
        if young[at] & bit and young[other_at] & other_bit:
            continue
        if not (old and old[at] & bit and old[other_at] & other_bit):
            new += 1
        filled += not young[at] & bit
        young[at] |= bit
        filled += not young[other_at] & other_bit
        young[other_at] |= other_bit
    memory.filled += filled
    if memory.filled > MAX_FILL:
        memory.old, memory.young, memory.filled = bytes(young), bytearray(), 0
    return new / len(prints)
