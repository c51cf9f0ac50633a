"""The cheap looks pass over no text that a pattern would have matched: all is as if there were none."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detectors import call, excerpt, failure, interface, masks, nothing, patch, verdict
from detectors.glance import folded, has_any, signs_of, words_of, zeroed, zeroed_pattern
from detectors.limits import Limits
from tests.fuzz.patterns import matching

ALIKE = str.maketrans({"i": "\u0131", "s": "\u017f", "k": "\u212a", "I": "\u0130"})
"""Letters beyond ASCII that a pattern takes for these where it ignores case."""

EVERY_CHARACTER = "".join(map(chr, range(sys.maxunicode + 1)))

PLAIN = """
    not no can't error failed invalid n o t 'x' ' a/b.py ../x .. a.b.c x.y-z.py ~/q https://a.b/c
    title: URL 0 1 12 [] {} null = , . - _ / unknown tool found none 12:00:01 3s FAILED ] [ // # -- /*
    */ <!-- --> ok added
"""
FRAGMENTS = st.sampled_from(
    [
        *PLAIN.split(),
        '"x"',
        '"',
        '"items":',
        "\\",
        "\n",
        "\t",
        "0 results",
        "pid 7",
        "turns left:",
        "\xe9",
        "\u017f",
        "\u0131",
    ]
)
TEXTS = st.lists(FRAGMENTS | st.text(max_size=3), max_size=14).map("".join) | st.lists(FRAGMENTS, max_size=14).map(
    " ".join
)

Look = Callable[[str], object]
ALL = Limits().tools


def _varied(text: str, chance: Random) -> str:
    """Give a text in some case, now and then with letters that only patterns take for these."""
    text = chance.choice((str, str.upper, str.capitalize, str.swapcase))(text)
    return text.translate(ALIKE) if chance.random() < 0.2 else text


def _named(text: str) -> bool:
    """Tell whether names are found without the titles, or a title may be there."""
    return verdict._NAMES.search(text) is not None or has_any(folded(text), ("title", "url"))


LOOKS: dict[str, tuple[re.Pattern[str], Look, bool]] = {
    "secrets": (excerpt._SECRET, lambda text: excerpt.redact(text) != text or "[redacted]" in text, True),
    "telling names": (excerpt._NAME, lambda text: has_any(folded(text), excerpt._NAME_PARTS), False),
    "refusals": (verdict._REFUSES, lambda text: not verdict._NO_WORDS.isdisjoint(words_of(text)), True),
    "envelopes": (verdict._ENVELOPE, lambda text: verdict._may_be_envelope(folded(text)), True),
    "failures within": (verdict._FAILED_WITHIN, lambda text: verdict._may_fail_within(folded(text)), True),
    "outages": (failure._TRANSIENT, lambda text: has_any(folded(text), failure._OUTAGE_PARTS), True),
    "failing lines": (failure._FAILING_LINE, failure._failing, False),
    "failed checks": (verdict._FAILED_CHECK, verdict._check_failed, False),
    "titles": (verdict._NAMES_AND_TITLES, _named, False),
    "nothing": (nothing._SAYS_NOTHING, nothing._says_nothing, True),
    "pictures": (interface._PICTURE, lambda text: interface._shows_picture(folded(text)), True),
    "pending": (call._PENDING, lambda text: call._is_pending(folded(text)), True),
    "as before": (call._AS_BEFORE, lambda text: has_any(folded(text), call._AS_BEFORE_PARTS), True),
    "exceptions": (failure._EXCEPTION_LINE, lambda text: has_any(text, failure._EXCEPTION_PARTS), False),
}
"""Patterns, the looks before them, and whether the pattern is for folded text."""


@pytest.mark.parametrize("name", LOOKS)
@given(chance=st.randoms(use_true_random=False), around=TEXTS)
@settings(max_examples=80, deadline=None)
def test_a_look_passes_over_nothing_that_matches(name, chance, around):
    """What a pattern matches, in any case and beside anything, the look before it sees."""
    pattern, look, folds = LOOKS[name]
    text = _varied(matching(pattern, chance), chance)[:240]
    for each in (text, f"{text} {around}", f"{around}{text}"):
        if len(each) <= nothing._HEAD_CHARS and pattern.search(folded(each) if folds else each):
            assert look(each), each


@pytest.mark.parametrize("name", LOOKS)
def test_the_texts_do_match(name):
    """The texts that looks are tried with are often matched: the test before this one says something."""
    pattern, _, folds = LOOKS[name]
    found = 0
    for seed in range(60):
        chance = Random(seed)  # noqa: S311 - no secret
        text = _varied(matching(pattern, chance), chance)
        found += pattern.search(folded(text) if folds else text) is not None
    assert found >= 10


@given(chance=st.randoms(use_true_random=False), around=TEXTS)
@settings(max_examples=200, deadline=None)
def test_signs_change_nothing_that_is_masked(chance, around):
    """What is masked is what the patterns match in texts with one of their words: neither signs nor digits count."""
    text = around
    for _ in range(chance.randint(1, 3)):
        _, _, pattern = chance.choice(masks._VOLATILE)
        text = f"{text}{chance.choice(' =x')}{_varied(matching(pattern, chance), chance)}{chance.choice(' .x')}"
    plain, lower = text, text.lower()
    for words, _, pattern in masks._VOLATILE:
        if not words or any(word.decode() in lower for word in words):
            plain = pattern.sub(masks.MASK, plain)
    assert masks._mask_volatile(text) == plain


@given(chance=st.randoms(use_true_random=False), number=st.integers(0, len(masks._VOLATILE) - 1))
@settings(max_examples=200, deadline=None)
def test_words_are_in_what_a_mask_matches(chance, number):
    """A text that a mask matches has one of its words."""
    words, _, pattern = masks._VOLATILE[number]
    text = matching(pattern, chance)
    if pattern.search(text):
        attempts = "ttempts?" in pattern.pattern and "attempt" in text.lower()  # only counts beside what is left
        assert not words or attempts or any(word.decode() in text.lower() for word in words) or " of " in text


@given(chance=st.randoms(use_true_random=False), around=TEXTS, tool=st.sampled_from(["", *ALL.volatile]))
@settings(max_examples=150, deadline=None)
def test_the_masks_of_tools_miss_nothing(chance, around, tool):
    """A result is masked as by each pattern of its tool, one after the other."""
    patterns = ALL.masks(tool)
    text = f"{around}{matching(chance.choice(patterns), chance)}{chance.choice(['', ' ', chr(10)])}"
    plain = text
    for pattern in patterns:
        plain = pattern.sub(masks.MASK, plain)
    assert ALL.masked(tool, text) == plain


SETTINGS = [
    *("a+", "ab|c", "(?i)ab", "(?i:ab)c", "x(?i:ab)?y", "(?:ab){0,3}c", "(?:ab){2}", "[0-9]+", "(?i)[0-9]x", r"\d"),
    *("[^a]b", "a|", "(?=ab)c?", "(?<!a)b", "(a)(?:bc|de)f", "(?>abc)", "a*+bc", "(?s).", "abcd|efgh|ij|kl|mn|op"),
]


@pytest.mark.parametrize("expression", SETTINGS)
def test_signs_of_any_pattern_are_in_what_it_matches(expression):
    """Whatever pattern the settings name for a tool: its signs are in the texts that it matches."""
    pattern = re.compile(expression)
    signs = signs_of(pattern)
    for seed in range(50):
        chance = Random(seed)  # noqa: S311 - no secret
        text = _varied(matching(pattern, chance), chance)
        if pattern.search(text):
            assert not signs or any(sign in text for sign in signs), (text, signs)


def test_signs_are_found():
    """The rarest part that must be there is the sign: without one a pattern is always tried."""
    assert signs_of(re.compile(r"\d{1,3} of (?:abc|de) x")) == (" of ",)
    assert signs_of(re.compile("(?:abc|def)x")) == ("abc", "def")
    assert signs_of(re.compile("(?i)abc")) == ()
    assert signs_of(re.compile("a[0-9]|[0-9]b|[0-9]c")) == signs_of(re.compile("(?i)[0-9]a|b[0-9]")) == ()
    assert signs_of(re.compile("(?i)[0-9]a")) == tuple("1023456789")


OF_DIGITS = [
    *(
        r"[0-9]+ of \d",
        "[0-9]:[3-6]x",
        "[0-9]7?(?:12|3)b",
        "(?i)[0-9](?=k|[5s])",
        "[0-9](?<!ab.)(?![a-z0-9])",
        r"[0-9](?<=4.)",
    ),
    *(r"[0-9]\d*+(?:/\d{1,9}+)?+ x", "[0-9](?:(?<=left: .)|(?<=127.))", *[each.pattern for each in ALL.masks("bash")]),
]
UNTOLD = [
    *(
        "[0-9][^5]x",
        "[0-9](?!4)",
        "[0-9](?<!7.)",
        "[0-9][3-6]++x",
        r"[0-9](a)?\1",
        "[0-9](?>1|2)",
        r"\dx",
        "a[0-9]",
        "a?[0-9]",
    ),
    *("[0-9]|a", "[0-8]", "", "[^0-9]"),
]


@pytest.mark.parametrize("expression", OF_DIGITS)
def test_a_pattern_matches_where_digits_are_zeros(expression):
    """What a pattern of digits matches, its form for zeroed texts does in those: also beside other digits."""
    pattern = re.compile(expression)
    zeros = zeroed_pattern(pattern)
    found = 0
    for seed in range(80):
        chance = Random(seed)  # noqa: S311 - no secret
        before, behind = chance.choice(("", "x", "12 ", "\u0663")), chance.choice(("", "9", " \ud800"))
        text = f"{before}{_varied(matching(pattern, chance), chance)}{behind}"
        if zeros is not None and pattern.search(text):
            found += 1
            assert zeros.search(zeroed(text)), text
    assert zeros is None or found


@pytest.mark.parametrize("expression", UNTOLD)
def test_patterns_that_go_by_which_digit_it_is_are_not_looked_for_among_zeros(expression):
    """Nor are those that begin with anything else than a digit."""
    assert zeroed_pattern(re.compile(expression)) is None


def test_zeros_tell_where_a_pattern_matches_nothing():
    """The form for zeroed texts says no where nothing but the digit could match, and is found by its zero."""
    zeros = zeroed_pattern(re.compile("(?i)[0-9](?<![a-z].) (?:[xt]imes|12)"))
    assert zeros is not None
    assert zeros.search(zeroed("7 TIMES"))
    assert zeros.search(zeroed("7 34"))
    assert not zeros.search(zeroed("a7 times, 7 days, 7 1"))


@given(TEXTS)
@settings(max_examples=200, deadline=None)
def test_refusals_are_as_without_the_look(text):
    """Leaving names out may make words of what is beside them: what complains is as if all texts were read whole."""
    head = folded(verdict._NAMES_AND_TITLES.sub("", text[: verdict._REFUSAL_CHARS]))
    refused, accepted = verdict._REFUSES.search(head), verdict._ACCEPTS.search(head)
    says_no = refused is not None and (accepted is None or refused.start() < accepted.start())
    assert verdict.complains(text) is (says_no and not verdict._STRUCTURED.match(text))


@given(TEXTS)
@settings(max_examples=150, deadline=None)
def test_failed_checks_are_as_in_beginning_and_end(text):
    """A short text stands for its beginning and its end."""
    both = f"{text[: verdict._CHECK_CHARS]}\n{text[-verdict._CHECK_CHARS :]}"
    assert verdict._check_failed(text) is (verdict._FAILED_CHECK.search(both) is not None)


@given(TEXTS, st.integers(1, 9), st.sampled_from([str.isalpha, str.isalnum]))
@settings(max_examples=150, deadline=None)
def test_letters_beside_fields_are_those_without_them(text, enough, counts):
    """Reading up to enough letters tells what leaving out all fields would."""
    left = sum(map(counts, nothing.without_fields(text)))
    assert nothing.letters_beside_fields(text, enough, counts) is (left >= enough)


@given(TEXTS)
@settings(max_examples=150, deadline=None)
def test_a_text_without_the_beginning_of_a_comment_has_none(text):
    """A text is kept whole where nothing begins a comment."""
    for comment, begins in {*patch._LANGUAGES.values(), patch._OTHERS}:
        if not any(each in text for each in begins):
            assert comment.sub(patch._kept, text) == text


def test_folded_is_what_patterns_take_it_for():
    """Among all characters, those that a pattern takes for a letter where it ignores case are that letter, folded."""
    lowered = folded(EVERY_CHARACTER)
    assert len(lowered) == len(EVERY_CHARACTER)
    for letter in "abcdefghijklmnopqrstuvwxyz":
        found = [each.start() for each in re.finditer(f"(?i){letter}", EVERY_CHARACTER)]
        assert found == [each.start() for each in re.finditer(letter, lowered)]


@given(st.text())
def test_words_are_runs_of_letters(text):
    """Words are what stands between anything but ASCII letters, folded."""
    assert [word.decode() for word in words_of(text)] == re.findall("[a-z]+", folded(text))
