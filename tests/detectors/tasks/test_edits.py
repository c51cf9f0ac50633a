"""Changes in their bounded form: what is left out when there is too much, and several changes as one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detectors.tasks import edits
from detectors.tasks.diffs import change_of_diff, change_of_texts
from detectors.tasks.edits import MAX_FILES, MAX_LINES, MAX_REGIONS, Block, gather, join, plain_path, thinned
from detectors.tasks.facts import Change
from detectors.tasks.lines import near, numbers, packed
from detectors.tasks.reversal import reversal
from tests.detectors.tasks.diff_kit import files, written


def lines_of(change: Change) -> tuple[int, int]:
    """How many lines a change takes out, and how many it puts in."""
    regions = [region for file in change.files for region in file.regions]
    return sum(len(numbers(each.removed)) for each in regions), sum(len(numbers(each.added)) for each in regions)


def added(*lines: str, path: str = "a.py", start: int = 1) -> Block:
    """Lines that are put in."""
    return Block(path, path, start, start, added=lines)


@pytest.mark.parametrize(
    ("path", "plain"),
    [
        ("a.py", "a.py"),
        ("./a.py", "a.py"),
        ("././/a.py", "a.py"),
        (" lib\\till.py\r\n", "lib/till.py"),
        ("/repo/a.py", "/repo/a.py"),
        ("a/b.py", "a/b.py"),  # a folder of that name
        ("../a.py", "../a.py"),
        (".env", ".env"),
        ("/dev/null", ""),
        ("", ""),
    ],
)
def test_paths_compare_in_one_form(path, plain):
    """However the tool writes them."""
    assert plain_path(path) == plain == plain_path(plain)


@pytest.mark.parametrize(
    ("one", "other", "wanted"),
    [
        ((10, 2), (10, 2), True),
        ((10, 2), (15, 1), True),
        ((10, 2), (16, 1), False),
        ((10, 0), (13, 5), True),
        ((10, 0), (14, 5), False),
        ((10, 100), (50, 0), True),
        ((0, 2), (999, 1), True),
    ],
)
def test_places_are_near_up_to_three_lines_between_them(one, other, wanted):
    """Whichever comes first; 0 may be anywhere."""
    assert near(*one, *other) == near(*other, *one) == wanted


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 2**32 - 1)))
def test_prints_are_packed_in_rising_order(found):
    """And come back as they were."""
    assert numbers(packed(found)) == sorted(found)
    assert numbers(packed(found), 4) == [number for number in sorted(found) if number % 4 == 0]


@pytest.mark.parametrize(("count", "thin"), [(MAX_LINES, 1), (MAX_LINES + 1, 2)])
def test_of_too_many_lines_half_are_kept_by_their_prints(count, thin):
    """However they are spread over places and files."""
    lines = [f"line {number}" for number in range(count)]
    one = gather([added(*lines)])
    spread = gather(added(line, start=number + 1, path=f"{number % 9}.py") for number, line in enumerate(lines))
    for change in (one, spread):
        assert change.thin == thin
        assert lines_of(change)[1] == (MAX_LINES if thin == 1 else lines_of(one)[1]) <= MAX_LINES
    assert {n for file in spread.files for each in file.regions for n in numbers(each.added)} == set(
        numbers(one.files[0].regions[0].added)
    )


def test_a_line_that_is_there_a_thousand_times_counts_a_few_times():
    """It must not drive out all the others."""
    change = gather([added(*["}"] * 1_000, *(f"line {number}" for number in range(100)))])
    assert change.thin == 1
    assert lines_of(change) == (0, 16 + 100)
    assert lines_of(gather([added(*["}"] * 16)])) == (0, 16)
    assert lines_of(gather([added(*["}"] * 17)])) == (0, 16)


def test_a_line_whose_print_is_zero_does_not_keep_the_others_from_being_thinned_out(monkeypatch):
    """Such a line can be searched for, at four thousand million tries; zero is divisible by any number."""
    monkeypatch.setattr(
        edits, "marks_of", lambda lines: [0 if line == b"zero" else 2**32 + len(line) for line in lines]
    )
    change = gather(added("zero", "one", start=number + 1) for number in range(MAX_LINES + 1))
    assert change.thin > 1
    assert lines_of(change) == (0, 0)


@pytest.mark.parametrize("count", [MAX_FILES, MAX_FILES + 1, 200])
def test_of_too_many_files_the_same_are_kept_in_any_order(count):
    """So that two large changes are compared over the same ones."""
    blocks = [added(f"line {number}", path=f"{number}.py") for number in range(count)]
    change, turned = gather(blocks), gather(reversed(blocks))
    assert len(change.files) == min(count, MAX_FILES)
    assert {file.path for file in change.files} == {file.path for file in turned.files}
    back = gather(block._replace(removed=block.added, added=()) for block in blocks)
    assert reversal(change, back).share == 1


def test_a_file_that_is_left_out_stays_out():
    """Also when more of it comes; the digest covers it."""
    blocks = [added(f"line {number}", path=f"{number}.py") for number in range(MAX_FILES + 1)]
    change = gather(blocks)
    again = gather([*blocks, *(block._replace(old=50, new=50, added=("more",)) for block in blocks)])
    assert {file.path for file in again.files} == {file.path for file in change.files}
    assert lines_of(again) == (0, 2 * MAX_FILES)
    left_out = next(
        block for block in blocks if gather([block]).files[0].path not in {file.path for file in change.files}
    )
    without = gather(block for block in blocks if block is not left_out)
    assert {file.path for file in without.files} == {file.path for file in change.files}
    assert without.digest != change.digest


@pytest.mark.parametrize("count", [MAX_REGIONS, MAX_REGIONS + 1, MAX_LINES])
def test_of_too_many_regions_neighbours_become_one(count):
    """No line is lost, and what takes them back is found."""
    blocks = [added(f"line {number}", start=10 * number + 1) for number in range(count)]
    change = gather(blocks)
    regions = change.files[0].regions
    assert len(regions) == {MAX_REGIONS: MAX_REGIONS, MAX_REGIONS + 1: 33, MAX_LINES: MAX_REGIONS}[count]
    assert lines_of(change) == (0, count)
    assert regions[0].new_start == 1
    assert regions[-1].new_start + regions[-1].new_count == 10 * (count - 1) + 2
    back = gather(block._replace(removed=block.added, added=()) for block in blocks)
    assert reversal(change, back).share == 1


def test_the_digest_covers_all_that_is_left_out():
    """Two large changes that differ in one line are not the same."""
    lines = [f"line {number}" for number in range(5_000)]
    digests = {
        gather([added(*lines)]).digest,
        gather([added(*lines[:-1])]).digest,
        gather([added(*lines[::-1])]).digest,
        gather([added(*lines, path="b.py")]).digest,
        gather([Block("a.py", "b.py", added=lines)]).digest,
        gather([Block("a.py", "a.py", removed=lines)]).digest,
        gather([Block("a.py", "a.py", added=lines, whole=True)]).digest,
    }
    assert len(digests) == 7
    assert gather([added(*lines, start=500)]).digest == gather([added(*lines)]).digest


def test_several_edits_are_one_change():
    """Of one file and of others, in their order."""
    one, other = change_of_texts([("a.py", "a", "b")]), change_of_texts([("b.py", "c", "d")])
    both = join([one, other])
    assert lines_of(both) == (2, 2)
    assert [file.path for file in both.files] == [file.path for change in (one, other) for file in change.files]
    assert both.digest not in {0, one.digest, other.digest, join([other, one]).digest}
    assert join([one]) == join([Change(), one]) == one
    assert join([]) == join([Change(), Change()]) == Change()


def test_what_a_later_edit_takes_back_is_in_neither():
    """An agent that tries three values in a row made one change."""
    edits = [("a", "b"), ("b", "c"), ("c", "d")]
    joined = join([change_of_texts([("a.py", *edit)]) for edit in edits])
    assert joined.files == change_of_texts([("a.py", "a", "d")]).files
    there_and_back = join([change_of_texts([("a.py", *edit)]) for edit in (*edits[:1], ("b", "a"))])
    assert lines_of(there_and_back) == (0, 0)
    assert there_and_back.digest
    elsewhere = written({"a.py": [(200, ["b"], ["c"])]})
    assert lines_of(join([change_of_diff(written({"a.py": [(1, ["a"], ["b"])]})), change_of_diff(elsewhere)])) == (2, 2)


def test_a_file_that_is_renamed_between_edits_is_one_file():
    """From its first path to its last."""
    first = change_of_diff("--- a/a.py\n+++ b/b.py\n@@ -1 +1 @@\n-a\n+b\n")
    second = change_of_diff("--- a/b.py\n+++ b/c.py\n@@ -1 +1 @@\n-b\n+c\n")
    joined = join([first, second])
    assert [(file.source, file.path) for file in joined.files] == [(first.files[0].source, second.files[0].path)]
    assert lines_of(joined) == (1, 1)


def test_edits_after_a_whole_content_change_that_content():
    """And a content after edits is what there is."""
    content, edit = change_of_texts([("a.py", None, "a\nb\nc")]), change_of_texts([("a.py", "b", "d")])
    wanted = change_of_texts([("a.py", None, "a\nd\nc")])
    assert join([content, edit]).files == wanted.files
    assert join([edit, wanted]).files == wanted.files


def test_the_latest_content_of_a_file_counts():
    """Of two in one change."""
    twice = change_of_texts([("a.py", None, "a\nb"), ("a.py", None, "c")])
    assert twice.files == change_of_texts([("a.py", None, "c")]).files


@settings(max_examples=60, deadline=None)
@given(st.lists(files, max_size=4))
def test_joined_changes_stay_bounded(several):
    """And are the same each time."""
    changes = [change_of_diff(written(each)) for each in several]
    joined = join(changes)
    assert joined == join(changes)
    assert bool(joined.digest) == any(change.digest for change in changes)
    assert sum(lines_of(joined)) <= sum(sum(lines_of(change)) for change in changes)


@pytest.mark.parametrize("lines", [16, 64, MAX_LINES])
def test_a_change_that_is_thinned_out_is_the_same_change_and_still_compares(lines):
    """Fewer lines, by their prints, and fewer regions; what takes it back takes it back as before."""
    blocks = [
        Block(
            f"{at % 4}.py",
            f"{at % 4}.py",
            1 + 20 * at,
            1 + 20 * at,
            [f"old {at} {n}" for n in range(3)],
            [f"new {at} {n}" for n in range(3)],
        )
        for at in range(40)
    ]
    back = [block._replace(removed=block.added, added=block.removed) for block in blocks]
    change, undone = gather(blocks), gather(back)
    thin = thinned(change, lines, MAX_FILES)
    assert thin.digest == change.digest
    assert sum(lines_of(thin)) <= lines
    assert sum(len(file.regions) for file in thin.files) <= MAX_FILES
    taken = reversal(thin, undone)
    assert taken is not None
    assert taken.share == pytest.approx(1.0)


def test_a_small_change_is_left_as_it_is_and_so_is_none():
    """There is nothing to thin out."""
    change = change_of_diff("--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a\n+b\n")
    assert thinned(change, 16, MAX_FILES) == change
    assert thinned(Change(), 16, MAX_FILES) == Change()


def test_many_large_changes_joined_stay_bounded():
    """Thinned out alike, and their files left out alike."""
    changes = [
        gather(
            added(*(f"line {number} {each}" for each in range(90)), path=f"{number}.py")
            for number in range(at, at + 10)
        )
        for at in range(0, 50, 10)
    ]
    joined = join(changes)
    assert len(joined.files) == MAX_FILES
    assert 64 < sum(lines_of(joined)) <= MAX_LINES
    assert joined.thin >= max(change.thin for change in changes) == 4
