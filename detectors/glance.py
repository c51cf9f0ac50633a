"""Cheap looks at a text before a regular expression reads it: most texts hold nothing that the pattern could match.

A look says yes too often, and never no where the pattern would match: that is what its tests hold. It judges nothing.
"""

import re
from functools import lru_cache
from re import _compiler as compiler  # type: ignore[attr-defined]  # the parse tree is Python's own
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

DIGITS = tuple("1023456789")
"""The ASCII digits, what is frequent first."""

_MAX_SIGNS = 4  # beyond, looking for them costs as much as the pattern

_ZEROS = bytes.maketrans(b"123456789", b"000000000")
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


def matches_any(text: str, patterns: tuple[re.Pattern[str], ...]) -> bool:
    """Tell whether one of the patterns, each of which begins with plain characters, matches somewhere in a text."""
    for pattern in patterns:  # noqa: SIM110 - likewise
        if pattern.search(text):
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


def zeroed(text: str) -> str:
    """Return a text with 0 for each ASCII digit: what `zeroed_pattern` gives is looked for in it."""
    return text.encode("utf-8", "surrogatepass").translate(_ZEROS).decode("utf-8", "surrogatepass")


@lru_cache(maxsize=256)
def zeroed_pattern(pattern: re.Pattern[str]) -> re.Pattern[str] | None:
    """Return what matches in a zeroed text if the pattern does in the text itself; None when nobody can tell.

    Only for patterns that begin with ``[0-9]``: one plain character is found ten times as quickly as one of a set.
    """
    tree = parser.parse(pattern.pattern, pattern.flags)
    if not tree or tree[0] != (codes.IN, _DIGIT):
        return None
    try:
        tree.data = _blurred(tree, widens=True)
    except _Untold:
        return None
    tree.data[0] = _ZERO
    found: re.Pattern[str] = compiler.compile(tree, pattern.flags)
    return found


class _Untold(Exception):
    """A part of a pattern goes by which digit stands there, and must not match more than it does."""


def _blurred(parts: Any, *, widens: bool) -> list[Any]:
    """Return parts that match in a zeroed text whatever these do in the text itself.

    Where a match more would mean one less around it (``widens`` is false), they must match the same.
    """
    blurred = []
    for code, value in parts:
        if code in {codes.LITERAL, codes.NOT_LITERAL, codes.IN}:
            blurred.append(_blurred_set(code, value, widens=widens))
        elif code in {codes.ANY, codes.AT}:
            blurred.append((code, value))
        elif code is codes.BRANCH:
            blurred.append((code, (None, [_into(way, widens=widens) for way in value[1]])))
        elif code is codes.SUBPATTERN:
            blurred.append((code, (*value[:3], _into(value[3], widens=widens))))
        elif code in _REPEATS:
            keeps = widens and code is not codes.POSSESSIVE_REPEAT
            blurred.append((code, (*value[:2], _into(value[2], widens=keeps))))
        elif code in {codes.ASSERT, codes.ASSERT_NOT}:
            blurred.append((code, (value[0], _into(value[1], widens=widens and code is codes.ASSERT))))
        else:
            raise _Untold
    return blurred


def _into(parts: Any, *, widens: bool) -> Any:
    parts.data = _blurred(parts, widens=widens)
    return parts


def _blurred_set(code: Any, value: Any, *, widens: bool) -> Any:
    """Return what stands for one character of the text in its zeroed form."""
    one = parser.SubPattern(parser.State(), [(code, value)])
    digits = sum(compiler.compile(one).match(digit) is not None for digit in DIGITS)
    if digits in {0, len(DIGITS)}:
        return code, value
    if code is codes.LITERAL and widens:
        return _ZERO
    if code is codes.IN and widens and value[0][0] is not codes.NEGATE:
        return codes.IN, [*value, _ZERO]
    raise _Untold


_DIGIT = [(codes.RANGE, (ord("0"), ord("9")))]
_ZERO = (codes.LITERAL, ord("0"))
_REPEATS = frozenset({codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT})
