"""How alike two texts are in words, and two lists of names: sets of tokens, their prints, and what they share.

The rules for tokens are the circular-fix detection guide's, completed where it is silent so that its worked figures
come out. Only the beginning of a text is read, in time linear in its length. Nothing here judges what a likeness means.
"""

import re
from collections.abc import Collection, Iterable
from collections.abc import Set as AbstractSet
from functools import lru_cache
from importlib.resources import files
from itertools import islice
from typing import Final
from unicodedata import category, normalize

from snowballstemmer.english_stemmer import EnglishStemmer

from detectors.canonical import digest
from detectors.tasks.facts import PRINT_BYTES
from detectors.tasks.lines import numbers

MAX_PRINTS: Final = 64  # of one text or list of names, unless told otherwise
_READ_CHARS = 4_000  # of a text: an approach is described in a few sentences
_LEAST_CHARS = 3  # of a token (circular-fix guide)
_MOST_CHARS = 48  # of a token: what is longer is no word but a digest or a run of code
_READ_NAMES = 10_000  # as many as an event may list
_STEMS = 4_096  # words whose stem is remembered: finding one takes 70 µs

_UNSPACED_CHARS = (  # of scripts without blanks between words, or whose words carry more than their stem
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Burmese, Khmer
    "\u3040-\u30ff"  # Japanese
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese
    "\uac00-\ud7a3"  # Korean
)
_UNSPACED = re.compile(f"[{_UNSPACED_CHARS}]")
_RUN = re.compile(rf"[{_UNSPACED_CHARS}]+|[^\s{_UNSPACED_CHARS}]+")
_PLAIN = re.compile(r"\w+", re.ASCII)
_MASK: Final = 2 ** (8 * PRINT_BYTES) - 1


def _words(text: str) -> list[str]:
    """Return the words of a text in lower case, and pairs of characters of scripts without blanks between words."""
    if text.isascii():
        return _PLAIN.findall(text.lower())
    text = normalize("NFKC", text).lower()  # one form for what can be written as one character or two, or in full width
    kept = "".join(char if char.isalnum() or char == "_" or category(char)[0] == "M" else " " for char in text)
    words: list[str] = []
    for run in _RUN.findall(kept):
        if _UNSPACED.match(run):
            words.extend(run[at : at + 2] for at in range(max(1, len(run) - 1)))
        else:
            words.append(run)
    return words


def parse_stopwords(text: str) -> frozenset[str]:
    """Return the words of a list: one a line, blank lines and what follows a ``#`` aside.

    Raises ValueError, naming the line and the remedy, for a line that could never match a word.
    """
    words: set[str] = set()
    for number, line in enumerate(text.splitlines(), 1):
        written = line.partition("#")[0].strip()
        found = _words(written)
        if written and len(found) != 1:
            remedy = f"write {' and '.join(map(repr, found))} on a line each" if found else "take the line out"
            raise ValueError(f"line {number}: {written[:_MOST_CHARS]!r} is not one word and never matches; {remedy}")
        words.update(found)
    return frozenset(words)


DEFAULT_STOPWORDS: Final = parse_stopwords(files("detectors.tasks").joinpath("stopwords.txt").read_text("utf-8"))
"""The words of the list that comes with Traction."""


def tokens(text: str, stopwords: Collection[str] = DEFAULT_STOPWORDS) -> frozenset[str]:
    """Return what a text is compared by.

    1. Lower-case; everything but letters, digits and ``_`` separates words.
    2. Stopwords go, in the form in which they are listed, and words of fewer than 3 characters.
    3. What is left is brought to its stem, by the rules for English, which other languages' words survive.

    Scripts without blanks between words are read as pairs of neighbouring characters, as search engines do: a word of
    Chinese has two characters more often than not. Those are not too short.
    """
    if not isinstance(stopwords, frozenset | set):
        stopwords = frozenset(stopwords)
    return frozenset(
        _stem(word[:_MOST_CHARS])
        for word in _words(text[:_READ_CHARS])
        if word not in stopwords and (len(word) >= _LEAST_CHARS or _UNSPACED.match(word))
    )


def jaccard(one: Collection[str], other: Collection[str]) -> float:
    """Return the share of what is in either that is in both; 0 when both are empty: nothing known is no agreement."""
    one, other = frozenset(one), frozenset(other)
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared) if shared else 0.0


def similarity(one: str, other: str, stopwords: Collection[str] = DEFAULT_STOPWORDS) -> float:
    """Return how alike two texts are in their tokens, from 0 to 1."""
    return jaccard(tokens(one, stopwords), tokens(other, stopwords))


def prints(names: Iterable[str], most: int = MAX_PRINTS) -> bytes:
    """Return the prints of names or tokens, each once, in rising order as numbers.

    Of more than ``most`` the lowest are kept: two lists that share names share them in what is kept too (bottom-k
    sketch, as in `detectors.novelty`).
    """
    lowest = sorted({digest(name) & _MASK for name in islice(names, _READ_NAMES)})[:most]
    return b"".join(number.to_bytes(PRINT_BYTES, "little") for number in lowest)


def each(joined: bytes) -> list[bytes]:
    """Return the prints of a row of them."""
    return [joined[at : at + PRINT_BYTES] for at in range(0, len(joined), PRINT_BYTES)]


def overlap(one: bytes, other: bytes, most: int = MAX_PRINTS) -> float:
    """Return the share of what is in either of two rows of prints that is in both; 0 when both are empty.

    Rows with fewer than ``most`` are complete, and the share is exact; else it is that among the lowest ``most`` of
    both together, which are known in full.
    """
    return shared(set(numbers(one)), set(numbers(other)), most)


def shared(first: AbstractSet[int], second: AbstractSet[int], most: int = MAX_PRINTS) -> float:
    """Return the overlap of two rows of prints, of which each is a set of numbers: for who compares one with many."""
    both = first & second
    if not both:
        return 0.0
    if max(len(first), len(second)) < most:
        return len(both) / (len(first) + len(second) - len(both))
    either = sorted(first | second)[:most]
    return len(both & set(either)) / len(either)


@lru_cache(maxsize=_STEMS)
def _stem(word: str) -> str:
    stem: str = EnglishStemmer().stemWord(word)  # one each time: it keeps the word that it works on
    return stem
