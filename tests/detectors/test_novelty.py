"""Novelty: which pieces a text has, which of them are new, and how the set of seen ones ages."""

import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from detectors.novelty import HALF_BITS, MAX_FILL, MAX_PIECES, new_share, pieces_of
from detectors.state import SpinMemory

prints = st.lists(st.integers(1, 0xFFFF_FFFF), min_size=1, max_size=MAX_PIECES, unique=True)


PIECES = random.Random(1).sample(range(1, 2**32), 20_000)  # noqa: S311 - as prints of texts are


def share(memory, text):
    """How much of a result without arguments is new."""
    return new_share(memory, pieces_of(text, b""))


@pytest.mark.parametrize("end", ["\n", ";", ",", "\\n"])
def test_pieces_stand_between_line_ends_semicolons_and_commas(end):
    """A line end as JSON writes it is one, so that the lines of an argument are those of a result."""
    assert pieces_of(f"alpha{end}beta{end}gamma", b"") == pieces_of("gamma\nalpha\nbeta", b"")
    assert len(pieces_of(f"alpha{end}beta{end}gamma", b"")) == 3


def test_other_characters_do_not_part_a_text():
    """A sentence is one piece."""
    assert len(pieces_of("alpha beta: gamma. delta | epsilon \\t zeta", b"")) == 1


def test_result_and_arguments_are_read_alike():
    """A piece is the same wherever it stands."""
    assert pieces_of("alpha\nbeta", b"gamma") == pieces_of("gamma\nalpha", b"beta")


@pytest.mark.parametrize("text", ["", "\n\n", ",;,", "\\n"])
def test_what_has_no_text_has_no_pieces(text):
    """There is nothing to compare."""
    assert pieces_of(text, b"") == []


def test_lines_that_repeat_are_one_piece():
    """How often a line stands in a text is not news."""
    assert pieces_of("same\n" * 50, b"") == pieces_of("same", b"")


@pytest.mark.parametrize(
    ("lines", "taken"), [(MAX_PIECES - 1, MAX_PIECES - 1), (MAX_PIECES, MAX_PIECES), (60, MAX_PIECES)]
)
def test_the_sample_is_bounded(lines, taken):
    """Up to its size all pieces are taken."""
    assert len(pieces_of("\n".join(f"l{n}" for n in range(lines)), b"")) == taken


def test_texts_that_share_lines_share_them_in_the_sample():
    """The same line moved by others is taken again: what is taken hangs on the line, not on its place."""
    lines = [f"l{n}" for n in range(40)]
    moved = ["another", *lines[:39]]
    assert len({*pieces_of("\n".join(lines), b"")} & {*pieces_of("\n".join(moved), b"")}) >= MAX_PIECES - 2


@pytest.mark.parametrize("inside", [0, 100_000])
def test_of_a_long_text_both_ends_are_read(inside):
    """What lies between makes no difference, however long it is."""
    text = f"{'a' * 255}\n{'b' * inside}\n{'c' * 255}"
    assert {*pieces_of(f"{'a' * 255}\n", b""), *pieces_of(f"\n{'c' * 255}", b"")} <= {*pieces_of(text, b"")}


def test_a_text_that_no_encoding_has_is_read():
    """Lone surrogates come in JSON."""
    assert len(pieces_of("a\udc80\nb", b"")) == 2


def test_the_share_of_what_was_not_seen():
    """All of the first text is new, none of the same one, half of one that shares half."""
    memory = SpinMemory()
    assert share(memory, "a\nb\nc\nd") == 1.0
    assert share(memory, "d\nc\nb\na") == 0.0
    assert share(memory, "a\nb\nx\ny") == 0.5
    assert share(memory, "x\ny") == 0.0


def seen(memory, each):
    """Tell whether a piece counts as seen, without remembering it."""
    copy = SpinMemory(young=bytearray(memory.young), old=memory.old, filled=memory.filled)
    return new_share(copy, [each]) == 0.0


def filled_to(bits):
    """A younger half of which so many bits are set."""
    half = ((1 << bits) - 1).to_bytes(HALF_BITS // 8, "little")
    return SpinMemory(young=bytearray(half), filled=bits)


@pytest.mark.parametrize(("bits", "turns"), [(MAX_FILL - 2, False), (MAX_FILL - 1, True), (MAX_FILL, True)])
def test_a_full_half_becomes_the_older_one(bits, turns):
    """The piece sets two bits: up to the bound nothing changes, and what was seen is seen on either side of it."""
    memory = filled_to(bits)
    fresh = next(each for each in PIECES if fresh_bits(memory, each) == 2)
    known = next(each for each in PIECES if seen(memory, each))
    assert new_share(memory, [fresh]) == 1.0
    assert (memory.old != b"", memory.filled) == (turns, 0 if turns else bits + 2)
    assert len(memory.old or memory.young) == HALF_BITS // 8
    assert seen(memory, fresh)
    assert seen(memory, known)


def fresh_bits(memory, each):
    """Tell how many bits a piece would set."""
    copy = SpinMemory(young=bytearray(memory.young), filled=-HALF_BITS)
    new_share(copy, [each])
    return copy.filled + HALF_BITS


def test_what_is_seen_again_moves_over_and_the_rest_is_forgotten():
    """A set that only filled up would find nothing new after an hour."""
    memory, every = SpinMemory(), PIECES[0]
    for each in PIECES[1:6_000]:
        new_share(memory, [each])
        new_share(memory, [every])
    assert seen(memory, every)
    assert all(seen(memory, each) for each in PIECES[5_700:6_000])
    assert sum(not seen(memory, each) for each in PIECES[1:3_000]) > 2_200


def test_what_is_new_is_found_however_long_a_session_goes_on():
    """Of what is new one in seven is taken for seen on the average, and at no time more than a third."""
    memory = SpinMemory()
    shares = [new_share(memory, PIECES[at : at + 8]) for at in range(0, len(PIECES), 8)]
    assert sum(shares) / len(shares) > 0.85
    assert min(sum(shares[at : at + 20]) / 20 for at in range(0, len(shares) - 20, 20)) > 0.67


@settings(max_examples=60, deadline=None)
@given(st.lists(prints, max_size=300))
def test_the_halves_are_what_they_say(calls):
    """`filled` counts the bits of the younger half, which stays below its bound; nothing just seen is new."""
    memory, exact = SpinMemory(), set[int]()
    for call in calls:
        share = new_share(memory, call)
        assert (
            0.0 <= share <= len({*call} - exact) / len(call)
        )  # a piece may be taken for another, never forgotten here
        exact.update(call)
        assert memory.filled == int.from_bytes(memory.young, "little").bit_count() <= MAX_FILL
        assert new_share(memory, call) == 0.0
        if memory.old:
            break


@settings(max_examples=60, deadline=None)
@given(st.lists(prints, max_size=120), st.integers(6, 32))
@example([PIECES[at : at + 8] for at in range(0, 2_400, 8)], 32)  # some turns of the halves
def test_the_set_is_the_plain_one_of_two_halves(calls, bits):
    """Two places of twelve bits for each piece, looked up and set one after the other; few bits make them collide."""
    memory, young, old = SpinMemory(), set[int](), set[int]()
    for call in calls:
        pieces = sorted({each % 2**bits for each in call} - {0}) or [1]
        new = 0
        for each in pieces:
            places = {each % 4_096, each // 4_096 % 4_096}
            new += not (places <= young or places <= old)
            young |= places
        assert new_share(memory, pieces) == new / len(pieces)
        if len(young) > MAX_FILL:
            young, old = set(), young
        assert int.from_bytes(memory.young, "little") == sum(1 << place for place in young)
