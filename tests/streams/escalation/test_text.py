"""Text from outside: cut, without what acts instead of being read, and unable to leave its quotation."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.escalation.text import clean, line, markdown_block, markdown_text


@given(text=st.text(), most=st.integers(1, 200))
def test_clean_text_is_short_and_has_nothing_invisible(text: str, most: int) -> None:
    """No control, format, surrogate or unassigned character passes, except line ends and tabs; the cut holds."""
    result = clean(text, most)
    assert len(result) <= most
    assert not [char for char in result if char not in "\n\t" and unicodedata.category(char)[0] == "C"]


@given(
    text=st.text(
        alphabet=st.characters(categories=["L", "N"], exclude_characters="\u115f\u1160\u3164\uffa0"), max_size=50
    )
)
def test_harmless_text_stays_as_it_is(text: str) -> None:
    """Letters and digits within the limit are not touched."""
    assert clean(text, 50) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\x1b[31mred\x07", "a[31mred"),
        ("right\u202eleft", "rightleft"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("fill\u3164er\u115f, se\ufe0flector\U000e0100, join\u034fer, blank\u2800", "filler, selector, joiner, blank"),
        ("tags \U000e0041\U000e007f", "tags"),
        ("one\r\ntwo\rthree\u2028four", "one\ntwo\nthreefour"),
        ("lone \ud800 surrogate", "lone  surrogate"),
    ],
)
def test_what_acts_is_taken_out(text: str, expected: str) -> None:
    """Terminal escapes, directions, zero-width characters, odd line ends and surrogates do not pass."""
    assert clean(text, 100) == expected


def test_a_cut_is_shown() -> None:
    """Text that was cut ends in an ellipsis, also where it was cut long before the limit counts."""
    assert clean("x" * 11, 10) == "x" * 9 + "…"
    assert clean("\x00" * 100 + "x", 10) == "…"


@given(text=st.text(), most=st.integers(1, 100))
def test_a_line_is_one_line(text: str, most: int) -> None:
    """Nothing that any program takes for a line end is in it."""
    assert len(line(text, most).splitlines()) <= 1
    assert len(line(text, most)) <= most


@pytest.mark.parametrize(
    "text",
    [
        "acme/shop#12",
        "!12 $12 %12 ~12 &12",
        "GH-12",
        "[x](http://evil)",
        "<script>",
        "**bold**",
        "| cell |",
        "@everyone",
        "www.evil.example",
        "# title",
        "&#64;me",
    ],
)
def test_markdown_shows_text_as_it_is(text: str) -> None:
    """Neither links, HTML, entities, table cells nor mentions come about."""
    shown = markdown_text(text)
    assert not re.search(r"(?<!\\)[\[\]<>*|#&]|[@#!$%~&]\w|://|www\.|GH-\d", shown)
    assert re.sub(r"\\(?=[^\w\s])|\u2060", "", shown) == text


@given(lines=st.lists(st.text(alphabet="`~ab\n"), max_size=5).map(tuple))
def test_nothing_ends_a_block_from_inside(lines: tuple[str, ...]) -> None:
    """A block's fence is longer than any run of backticks in it."""
    block = markdown_block(lines)
    fence = block.partition("text")[0]
    assert fence not in block[len(fence) : -len(fence)]
    assert block.endswith(f"\n{fence}")
