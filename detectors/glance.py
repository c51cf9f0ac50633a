"""Cheap looks at a text before a regular expression reads it: most texts hold nothing that the pattern could match.

A look says yes too often, and never no where the pattern would match: that is what its tests hold. It judges nothing.
"""

import re
from functools import lru_cache
from re import _constants as codes  # type: ignore[attr-defined]  # the parse tree is Python's own
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

DIGITS = tuple("1023456789")
"""The ASCII digits, what is frequent first."""

_MAX_SIGNS = 4  # beyond, looking for them costs as much as the pattern

_LETTERS = bytes(code | 0x20 if chr(code).isalpha() else 0x20 for code in range(128)) + b" " * 128


def folded(text: str) -> str:
    """Return a text in lower case as patterns that ignore case compare it: four letters beyond ASCII equal one in it.

    It is as long as the text, letter for letter.
    """
    if text.isascii():
        return text.lower()
    return text.replace("\u0130", "i").replace("\u0131", "i").replace("\u017f", "s").lower()  # the fourth lowers to k


def words_of(text: str) -> list[bytes]:
    """Return the runs of ASCII letters in a text, folded: a word of a pattern between boundaries is one of them."""
    if not text.isascii():
        text = folded(text)
    return text.encode("ascii", "replace").translate(_LETTERS).split()


def has_any(text: str, words: tuple[str, ...]) -> bool:
    """Tell whether one of the words, or part of a word, is in a text."""
    for word in words:  # noqa: SIM110 - the inner loop of detection: a generator takes twice as long
        if word in text:
            return True
    return False


@lru_cache(maxsize=256)
def signs_of(pattern: re.Pattern[str]) -> tuple[str, ...]:
    """Return some texts of which one is in every text that the pattern matches; none where no short list tells."""
    return _signs(parser.parse(pattern.pattern, pattern.flags), cased=not pattern.flags & re.IGNORECASE)


def _signs(parts: Any, *, cased: bool) -> tuple[str, ...]:
    """Return the signs of the part whose shortest sign is longest, since longer ones are rarer.

    Where case is ignored, only a digit is known to be one.
    """
    known: list[tuple[str, ...]] = []
    literal = ""
    for code, value in parts:
        if code is codes.LITERAL:
            literal += chr(value) if cased else ""
            continue
        known.append((literal,))
        literal = ""
        if code is codes.IN and value == _DIGIT:
            known.append(DIGITS)
        elif code is codes.SUBPATTERN:
            known.append(_signs(value[3], cased=cased and not value[1] & re.IGNORECASE))
        elif code in _REPEATS and value[0]:
            known.append(_signs(value[2], cased=cased))
        elif code is codes.BRANCH:
            ways = [_signs(way, cased=cased) for way in value[1]]
            known.append(tuple(sign for way in ways for sign in way) if all(ways) else ())
    known.append((literal,))
    telling = [signs for signs in known if all(signs) and (0 < len(signs) <= _MAX_SIGNS or signs == DIGITS)]
    return max(telling, key=lambda signs: min(map(len, signs)), default=())


_DIGIT = [(codes.RANGE, (ord("0"), ord("9")))]
_REPEATS = frozenset({codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT})
