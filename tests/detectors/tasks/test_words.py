"""Words: the guide's worked figures come out, in any script, and rows of prints compare like what they are of."""

import re
from importlib.resources import files
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detectors.canonical import digest
from detectors.state import print_of
from detectors.tasks.words import (
    DEFAULT_STOPWORDS,
    MAX_PRINTS,
    each,
    jaccard,
    overlap,
    parse_stopwords,
    prints,
    similarity,
    tokens,
)

approaches = st.lists(
    st.sampled_from(["fix", "the", "import", "Importing", "cache", "lock_file", "修复导入", "größer", "--", "#1", "x"])
).map(" ".join)


@pytest.mark.parametrize(
    ("one", "other", "wanted"),
    [
        ("Fixed import statement in main.py", "Updated import statement in main.py", 3 / 5),
        ("Fixed the bug", "Updated the bug fix", 1 / 3),
        ("Fixed the import statement", "Updated import statement", 1 / 2),
    ],
)
def test_the_worked_figures_of_the_guide_come_out(one, other, wanted):
    """Circular-fix guide: 60 % in its algorithm, about 50 % in its test, 0.33 in its reference."""
    assert similarity(one, other) == pytest.approx(wanted)


def test_attempts_told_apart_by_a_number_alone_are_similar():
    """At the guide's limit of 0.30."""
    assert similarity("Fix attempt 1 for the bug", "Another fix for the bug") >= 0.30


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("The THE the", set()),
        ("fix update fixed updated import", {"fix", "updat", "import"}),  # the first two are listed, and only so
        ("re-use lock_file; go to utils.py", {"use", "lock_fil", "util"}),
        ("ab abc", {"abc"}),
        ("don't", set()),
        ("", set()),
        ("?! ...", set()),
    ],
)
def test_tokens_follow_the_rules_in_their_order(text, wanted):
    """Lower case, punctuation, stopwords, length, stem: in another order the worked figures do not come out."""
    assert tokens(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("größere Schlüssel", {"größere", "schlüssel"}),
        ("Cafe\u0301", {"café"}),  # written as two characters
        ("исправлен модуль", {"исправлен", "модуль"}),
        ("修复导入错误", {"修复", "复导", "导入", "入错", "错误"}),
        ("修复 import 错误", {"修复", "import", "错误"}),
        ("修", {"修"}),
        ("버그 수정", {"버그", "수정"}),
        ("हिन्दी भाषा", {"हिन्दी", "भाषा"}),  # whose vowels are marks
        ("\uff26\uff49\uff58\uff45\uff44", {"fix"}),  # in full width
    ],
)
def test_words_of_any_script_survive(text, wanted):
    """A text that is one long token is like no other, and one without tokens is never compared."""
    assert tokens(text) == wanted


def test_texts_in_chinese_are_compared_by_what_they_share():
    """The same repair of another module: alike, and not the same."""
    assert 0.3 < similarity("修复主模块的导入语句", "修改主模块的导入语句") < 1


def test_stopwords_are_those_that_are_given():
    """The list is a file that users edit."""
    assert tokens("Fix the bug", stopwords=["bug"]) == {"fix", "the"}
    assert tokens("Fix the bug", stopwords=()) == {"fix", "the", "bug"}
    assert tokens("修复错误", stopwords={"修复"}) == {"复错", "错误"}


def test_the_list_that_comes_with_traction_holds_what_the_guide_names():
    """Circular-fix guide: the, a, is, are, fix, update; words of one or two letters need not be listed."""
    assert {"the", "are", "fix", "update"} <= DEFAULT_STOPWORDS
    assert not {"fixed", "updated", "import", "not", "without"} & DEFAULT_STOPWORDS
    assert parse_stopwords(files("detectors.tasks").joinpath("stopwords.txt").read_text("utf-8")) == DEFAULT_STOPWORDS
    assert not tokens("the a is are fix update")


def test_a_list_is_one_word_a_line_with_comments():
    """Whatever the case, and with Windows' line ends."""
    assert parse_stopwords("# mine\r\nThe\r\n\r\n  bug  # whichever\n修复\n") == {"the", "bug", "修复"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the\ndon't\n", "line 2: \"don't\" is not one word and never matches; write 'don' and 't' on a line each"),
        ("the bug", "line 1: 'the bug' is not one word and never matches; write 'the' and 'bug' on a line each"),
        ("the\n\n--\n", "line 3: '--' is not one word and never matches; take the line out"),
        ("修复导", "line 1: '修复导' is not one word and never matches; write '修复' and '复导' on a line each"),
    ],
)
def test_a_line_that_never_matches_is_refused_with_its_number_and_remedy(text, message):
    """A typing error in the list would else go unnoticed."""
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        parse_stopwords(text)


def test_only_the_beginning_of_a_text_is_read():
    """4,000 characters: what stands before counts, what comes after does not."""
    assert "import" in tokens("x " * 1_997 + "import")
    assert "import" not in tokens("x " * 1_998 + "import")


def test_a_word_is_compared_by_its_beginning():
    """48 characters: digests and code without blanks are no words."""
    assert tokens("q" * 47 + "wz") == tokens("q" * 47 + "wx")
    assert tokens("q" * 46 + "zw") != tokens("q" * 46 + "xw")


@pytest.mark.parametrize("piece", ["a", "a ", "修", "\u0301", "-", "\ufdfa", "_", "aing"])
def test_long_texts_take_no_longer_than_their_beginning(piece):
    """A megabyte of anything is read in well under a second."""
    started = process_time()
    tokens(piece * (1_000_000 // len(piece)))
    assert process_time() - started < 0.5


@settings(max_examples=60, deadline=None)
@given(approaches, approaches)
def test_similarity_is_symmetric_and_a_share(one, other):
    """And 1 for any text that has a token, compared with itself."""
    assert 0 <= similarity(one, other) == similarity(other, one) <= 1
    assert similarity(one, one) == bool(tokens(one))


@settings(max_examples=60, deadline=None)
@given(st.text())
def test_any_text_has_tokens_that_its_case_does_not_change(text):
    """Nothing that an agent writes breaks the reading."""
    assert all(tokens(text))
    if text.isascii():
        assert tokens(text) == tokens(text.upper())


def test_nothing_known_is_no_agreement():
    """Two empty approaches are not the same approach."""
    assert jaccard(frozenset(), frozenset()) == 0
    assert overlap(b"", b"") == overlap(prints(["a"]), b"") == 0


def test_prints_are_distinct_in_rising_order_and_as_the_states_are():
    """So that equal sets are equal bytes."""
    row = prints(["b", "a", "b", "c"])
    assert row == prints("cab")
    assert set(each(row)) == {print_of(digest(name)) for name in "abc"}
    numbers = [int.from_bytes(mark, "little") for mark in each(row)]
    assert numbers == sorted(numbers)
    assert prints([]) == b""


@pytest.mark.parametrize("most", [1, 5, MAX_PRINTS])
def test_of_too_many_names_the_lowest_prints_are_kept(most):
    """At the limit all, beyond it always the same ones, whatever else is in the list."""
    names = [f"name {number}" for number in range(most)]
    assert len(each(prints(names, most))) == most
    more = [f"more {number}" for number in range(most)]
    kept = set(each(prints(names + more, most)))
    assert len(kept) == most
    assert kept & set(each(prints(names))) <= set(each(prints(names, most)))


names = st.frozensets(st.integers(0, 60).map(str), max_size=40)


@settings(max_examples=60, deadline=None)
@given(names, names)
def test_rows_that_are_complete_overlap_as_the_names_do(one, other):
    """The share is exact below the limit."""
    assert overlap(prints(one), prints(other)) == jaccard(one, other)


@settings(max_examples=60, deadline=None)
@given(names, names, st.integers(1, 10))
def test_rows_that_are_cut_overlap_as_their_samples_do(one, other, most):
    """Symmetric, a share, and 1 for the same names."""
    first, second = prints(one, most), prints(other, most)
    assert 0 <= overlap(first, second, most) == overlap(second, first, most) <= 1
    assert overlap(first, first, most) == bool(one)


def test_the_overlap_of_rows_that_are_cut_is_near_that_of_the_names():
    """Two lists of 600 names with a third in common, of each of which 64 prints are kept."""
    one, other = [str(number) for number in range(600)], [str(number) for number in range(300, 900)]
    assert overlap(prints(one), prints(other)) == pytest.approx(1 / 3, abs=0.15)
