"""Lines are compared without their white space, however many are taken at once."""

from hashlib import blake2b

from hypothesis import given
from hypothesis import strategies as st

from detectors.tasks.lines import bare_lines, marks_of, minus, without_common

LINES = st.lists(st.text(st.sampled_from("ab \t\r\x0b\x1c\x85\xa0\u2003\u3000\u200bé\udcff"), max_size=6), max_size=12)


@given(LINES)
def test_bare_lines_are_those_that_are_not_blank_without_their_white_space(lines):
    """All that Unicode calls white space, and in whatever script the rest is."""
    bare = [line.encode("utf-8", "surrogatepass") for line in map("".join, map(str.split, lines)) if line]
    assert bare_lines(lines) == bare
    assert bare_lines(lines * 8) == bare * 8


@given(st.lists(st.binary(min_size=1, max_size=2), max_size=30))
def test_marks_are_the_digests_of_the_lines_one_by_one(lines):
    """Also of lines that stand there many times."""
    wanted = [int.from_bytes(blake2b(line, digest_size=8).digest(), "little") for line in lines]
    assert list(marks_of(lines)) == wanted


@given(st.lists(st.integers(0, 3)), st.lists(st.integers(0, 3)))
def test_what_is_common_is_left_out_as_often_as_it_is(one, other):
    """What is left of both has nothing in common, and with it each is what it was."""
    first, second = without_common(one, other)
    assert set(first).isdisjoint(second)
    assert sorted(minus(one, first)) == sorted(minus(other, second))
    assert len(one) - len(first) == len(other) - len(second)
