"""Reversals: what one change takes back of another, in the same direction, place and file; and how alike two are."""

from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from detectors.tasks.diffs import change_of_diff, change_of_texts
from detectors.tasks.edits import MAX_LINES, join
from detectors.tasks.facts import PRINT_BYTES, Change
from detectors.tasks.lines import NEAR_LINES
from detectors.tasks.reversal import agreement, reversal, settled
from tests.detectors.tasks.diff_kit import WORDS, files, hunks, written


def changed(old: str, new: str, start: int = 10, path: str = "a.py") -> Change:
    """The change that replaces words, one a line, by others."""
    return change_of_diff(written({path: [(start - 1, old.split(), new.split())]}))


def whole(*lines: str, path: str = "a.py") -> Change:
    """The change of a file that is written anew."""
    return change_of_texts([(path, None, "\n".join(lines))])


def lines_in(change: Change) -> int:
    """How many lines count in a change."""
    prints = [prints for file in change.files for each in file.regions for prints in (each.removed, each.added)]
    return sum(map(len, prints)) // PRINT_BYTES


def test_the_worked_example_of_the_definition():
    """Two lines of three come back."""
    found = reversal(changed("a b", "c"), changed("c", "a d"))
    assert found.share == pytest.approx(2 / 3)
    assert len(found.lines) == 2


@pytest.mark.parametrize(
    ("previous", "current", "share"),
    [
        (("a", "b"), ("b", "a"), 1),
        (("a", "b"), ("a", "b"), 0),  # the same again takes nothing back
        (("a b", ""), ("a b", ""), 0),  # nor does taking out again,
        (("", "a b"), ("", "a b"), 0),  # or putting in again
        (("a b", ""), ("", "a"), 1 / 2),
        (("", "a b"), ("b", ""), 1 / 2),
        (("a", "b"), ("b", "c"), 1 / 2),
        (("a", "b"), ("c", "d"), 0),
        (("", "a a a a"), ("a", ""), 1 / 4),  # each line once
        (("", "a"), ("a a a a", ""), 1),
        (("", "a b"), ("a b c d e f", ""), 1),  # of the previous change's lines
        (("", ""), ("a", "b"), 0),
        (("a", "b"), ("", ""), 0),
    ],
)
def test_the_share_is_of_the_previous_lines_in_the_other_direction(previous, current, share):
    """Flapping and convergence: lines added in one iteration are removed in the next, and vice versa."""
    assert reversal(changed(*previous), changed(*current)).share == pytest.approx(share)


@pytest.mark.parametrize(
    ("at", "share"),
    [(10, 1), (12 + NEAR_LINES, 1), (13 + NEAR_LINES, 0), (9 - NEAR_LINES, 1), (8 - NEAR_LINES, 0), (100, 0)],
)
def test_places_are_the_same_up_to_a_few_lines(at, share):
    """The two lines put in at 10 and 11; the one taken out stands at some line before or behind."""
    found = reversal(changed("", "a b", start=10), changed("a", "", start=at))
    assert found.share == share / 2


def test_a_place_that_is_not_known_may_be_any():
    """Of a replacement of texts, no line number is known."""
    replaced = change_of_texts([("a.py", "b", "a")])
    assert reversal(changed("a", "b", start=500), replaced).share == 1
    assert reversal(replaced, changed("a", "b", start=500)).share == 1
    assert reversal(replaced, change_of_texts([("b.py", "a", "b")])).share == 0


def test_lines_that_stand_twice_are_each_taken_back_where_they_were_put():
    """The share does not depend on which of two near places is looked at first."""
    previous = change_of_diff(written({"a.py": [(1, [], ["x"]), (1, [], ["x"]), (1, [], ["x"])]}))
    current = change_of_diff(written({"a.py": [(1, [], ["x"]), (1, [], ["x"]), (1, [], ["x"])]}, back=True))
    assert reversal(previous, current).share == 1


@settings(max_examples=60, deadline=None)
@given(files)
@example({"a.py": [(1, ["x"], ["x"])]})
@example({"a.py": [(1, [""], [])]})
def test_a_diff_is_taken_back_in_full_by_its_inverse(changes):
    """And by no more: it does not take itself back, unless it moves lines."""
    previous, current = change_of_diff(written(changes)), change_of_diff(written(changes, back=True))
    counts = lines_in(previous) > 0
    assert reversal(previous, current).share == reversal(current, previous).share == counts
    assert bool(previous.digest) == counts


@settings(max_examples=60, deadline=None)
@given(files, files)
def test_the_share_is_a_share_and_the_agreement_symmetric(one, other):
    """For any two diffs."""
    first, second = change_of_diff(written(one)), change_of_diff(written(other))
    found = reversal(first, second)
    assert 0 <= found.share <= 1
    assert bool(found.lines) == (found.share > 0)
    assert 0 <= agreement(first, second) == agreement(second, first) <= 1
    assert agreement(first, first) == bool(first.digest)


@settings(max_examples=60, deadline=None)
@given(hunks, hunks)
def test_other_files_and_other_places_have_nothing_to_do_with_each_other(one, other):
    """However alike the lines are."""
    previous = change_of_diff(written({"a.py": one}))
    assert reversal(previous, change_of_diff(written({"b.py": other}, back=True))).share == 0
    assert reversal(previous, change_of_diff(written({"a.py": other}, back=True, first=200))).share == 0
    assert agreement(previous, change_of_diff(written({"b.py": one}))) == 0


@settings(max_examples=60, deadline=None)
@given(hunks, hunks)
def test_names_of_files_make_no_difference(one, other):
    """Only whether they are the same."""
    shares = {
        reversal(change_of_diff(written({path: one})), change_of_diff(written({path: other}, back=True)))
        for path in ("a.py", "lib/b.py", "größe/c d.md")
    }
    assert len(shares) == 1


def spaced(line: str) -> str:
    """The line with other white space in it."""
    return f"\t {line.replace(' ', '  ')} "


@settings(max_examples=60, deadline=None)
@given(hunks, hunks)
def test_white_space_in_lines_makes_no_difference(one, other):
    """An edit that was indented anew is the same edit."""
    plain = [change_of_diff(written({"a.py": changes})) for changes in (one, other)]
    indented = [
        change_of_diff(written({"a.py": [(gap, out, list(map(spaced, put_in))) for gap, out, put_in in changes]}))
        for changes in (one, other)
    ]
    assert indented == plain


@settings(max_examples=60, deadline=None)
@given(hunks, hunks, st.lists(st.sampled_from(["", " ", "\t"]), max_size=2))
def test_blank_lines_make_no_difference(one, other, blank):
    """Nor do lines that are only indented anew, elsewhere in the file."""
    previous, current = written({"a.py": one}), written({"a.py": other}, back=True)
    more_out = [(gap, [*out, *blank], put_in) for gap, out, put_in in one]
    more_in = [(gap, [*out, *blank], put_in) for gap, out, put_in in other]  # written back, they are put in
    indented = (200, ["deep = 1", "x"], ["    deep = 1", "  x"])
    noisy_previous, noisy_current = (
        written({"a.py": [*more_out, indented]}), written({"a.py": [*more_in, indented]}, back=True),
    )  # fmt: skip
    assert reversal(change_of_diff(noisy_previous), change_of_diff(noisy_current)) == reversal(
        change_of_diff(previous), change_of_diff(current)
    )
    assert change_of_diff(noisy_previous).digest == change_of_diff(previous).digest


def test_lines_that_are_indented_anew_are_not_taken_back():
    """Though they are taken out and put in: a block is put under a condition, and that is dropped again."""
    previous = change_of_diff(written({"a.py": [(4, ["x = 1", "y = 2"], ["if z:", "    x = 1", "    y = 2"])]}))
    assert lines_in(previous) == 1
    kept = change_of_diff(written({"a.py": [(4, ["if z:", "    x = 1"], ["if w:", "        x = 1"])]}))
    assert reversal(previous, kept).share == 1
    assert reversal(previous, change_of_diff(written({"a.py": [(4, ["    x = 1"], ["x = 1"])]}))).share == 0


def test_alike_are_changes_of_the_same_lines_in_the_same_direction():
    """Three of four lines here are in both."""
    one = changed("a b", "c")
    assert agreement(one, changed("a b", "d")) == 2 / 4
    assert agreement(one, changed("c", "a b")) == 0
    assert agreement(one, changed("a b", "c", start=500)) == 1  # wherever they stand
    assert agreement(one, changed("a b", "c", path="b.py")) == 0
    assert agreement(Change(), Change()) == agreement(one, Change()) == 0


def numbered(word: str, count: int) -> list[str]:
    """So many lines that are all different."""
    return [f"{word} {number}" for number in range(count)]


@pytest.mark.parametrize("count", [MAX_LINES, MAX_LINES + 1, 5_000])
def test_of_large_changes_a_sample_tells_the_same(count):
    """At the limit all lines are compared, beyond it those that both samples have."""
    lines = numbered("line", count)
    previous = change_of_diff(written({"a.py": [(1, [], lines)]}))
    assert previous.thin == (1 if count == MAX_LINES else 2 if count == MAX_LINES + 1 else 32)
    assert reversal(previous, change_of_diff(written({"a.py": [(1, lines, [])]}))).share == 1
    half = change_of_diff(written({"a.py": [(1, lines[: count // 2], [])]}))
    assert reversal(previous, half).share == pytest.approx(1 / 2, abs=0.15)
    assert agreement(previous, change_of_diff(written({"a.py": [(1, [], lines[: count // 2])]}))) == pytest.approx(
        1 / 2, abs=0.15
    )
    assert reversal(previous, previous).share == 0


def test_a_small_change_of_what_a_large_one_made_is_compared_in_the_sample_of_the_large_one():
    """What it takes back is a small share of that."""
    lines = numbered("line", 2_000)
    large, small = change_of_diff(written({"a.py": [(1, [], lines)]})), changed("x", "y", start=2)
    taken = change_of_diff(written({"a.py": [(1, lines[:100], [])]}))
    assert reversal(large, taken).share == pytest.approx(1 / 20, abs=0.05)
    assert reversal(small, large).share == 0


def test_a_first_content_says_nothing_of_what_it_replaced():
    """There is nothing to take back, nor to agree with, but the same content again."""
    one, other = whole("a", "b"), whole("a", "c")
    assert settled(one, None) == settled(one, Change()) == settled(one, whole("z", path="b.py")) == one
    assert reversal(one, other).share == 0
    assert agreement(one, other) == 0
    assert agreement(one, whole("a", "b")) == 1


def test_contents_are_settled_one_against_the_other():
    """What the second lacks was taken out, what it has more was put in; settled too, it is the content for a third."""
    first, second, third = whole("a", "b", "c"), whole("a", "d", "e"), whole("a", "b", "e")
    made = settled(second, first)
    assert lines_in(made) == 4
    assert settled(made, first) == made
    assert settled(third, made) == settled(third, second)
    assert reversal(made, settled(third, made)).share == 2 / 4
    assert agreement(made, settled(second, first)) == 1
    assert agreement(made, settled(third, second)) == 0


def test_the_same_content_again_takes_nothing_back():
    """Though lines that were taken out once are still in it elsewhere."""
    made = settled(whole("a", "a", "b"), whole("a", "a", "a"))
    again = settled(whole("a", "a", "b"), made)
    assert reversal(made, again).share == 0
    assert lines_in(again) == 0


def test_a_content_takes_back_what_a_diff_did():
    """What the diff put in is no longer there, and what it took out is there again."""
    previous = changed("a b", "c d")
    assert reversal(previous, whole("a", "b", "x")).share == 1
    assert reversal(previous, whole("c", "d", "x")).share == 0
    assert reversal(previous, whole("a", "d", "x")).share == 2 / 4
    assert reversal(previous, whole("a", "b", path="b.py")).share == 0


def test_other_files_of_a_settled_change_stay_as_they_are():
    """A diff and a whole file in one attempt."""
    both = join([changed("a", "b", path="b.py"), whole("c", "d")])
    made = settled(both, whole("c", "e"))
    assert lines_in(made) == 4
    assert reversal(made, changed("b", "a", path="b.py")).share == 2 / 4


@pytest.mark.parametrize("count", [MAX_LINES // 3, MAX_LINES, 10 * MAX_LINES])
def test_settled_changes_stay_bounded(count):
    """Two contents without a line in common are as many lines again as one."""
    made = settled(whole(*numbered("new", count)), whole(*numbered("old", count)))
    size = lines_in(made) + sum(len(file.content) for file in made.files) // PRINT_BYTES
    assert MAX_LINES / 4 < size <= MAX_LINES
    assert reversal(made, settled(whole(*numbered("old", count)), made)).share == 1


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.sampled_from(WORDS), max_size=6), min_size=3, max_size=3))
def test_contents_tell_what_their_lines_do(versions):
    """The share is that of the multisets of lines."""
    first, second, third = (whole(*lines) for lines in versions)
    found = reversal(settled(second, first), settled(third, second))
    before, between, after = (Counter("".join(line.split()) for line in lines if line) for lines in versions)
    put_in, out = between - before, before - between
    back = (put_in & (between - after)) + (out & (after - between))
    assert found.share == pytest.approx(back.total() / ((put_in + out).total() or 1))


def test_a_file_without_a_name_is_one_file():
    """Diffs that are lines alone are compared with one another."""
    assert reversal(change_of_diff("-a\n+b\n"), change_of_diff("-b\n+a\n")).share == 1


@settings(max_examples=60, deadline=None)
@given(files, st.permutations(["a.py", "lib/b.py", "c d.md"]))
def test_the_order_of_files_makes_no_difference(changes, order):
    """To what is taken back."""
    back = change_of_diff(written({path: changes.get(path, []) for path in order}, back=True))
    previous = change_of_diff(written(changes))
    assert reversal(previous, back).share == bool(previous.digest)
