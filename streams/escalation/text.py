"""Makes text that came from outside fit for an agent's prompt, a log line or a page of Markdown.

Alerts quote what agents and tools wrote. Here it is cut short, and whatever could act instead of being read is taken
out: control and invisible characters, markup, mentions. Nothing in here knows what the text says.
"""

from __future__ import annotations

import re
import unicodedata

ELLIPSIS = "…"

_BACKTICKS = re.compile(r"`+")
_MARKUP = re.compile(r"([\\`*_\[\]<>#!|~&])")
_ACTIVE = re.compile(r"(@|:(?=//)|\bwww(?=\.))")
_AHEAD = 2
"""A text is looked at to this many times its limit before the cut, since what is taken out does not count."""

_KEPT = frozenset("\n\t")
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode's general categories of control and format characters (directions, zero width), surrogates, private use,
unassigned, and the two exotic line ends. Unicode Standard, section 4.5."""


def clean(text: str, most: int) -> str:
    """Return text with lines kept, control and invisible characters taken out, cut to a number of characters.

    Args:
        text: any text.
        most: most characters of the result, at least 1.
    """
    ahead = text[: most * _AHEAD].replace("\r\n", "\n").replace("\r", "\n")
    kept = "".join(char for char in ahead if char in _KEPT or unicodedata.category(char) not in _INVISIBLE).strip()
    if len(kept) <= most and len(text) <= most * _AHEAD:
        return kept
    return f"{kept[: most - 1]}{ELLIPSIS}"


def line(text: str, most: int) -> str:
    """Return text as one line: as `clean`, each run of blanks and line ends one blank.

    Args:
        text: any text.
        most: most characters of the result, at least 1.
    """
    return clean(" ".join(clean(text, most * _AHEAD).split()), most)


def markdown_text(text: str) -> str:
    """Return one line of text so that Markdown shows it as it is: no markup, no links, nobody notified.

    Args:
        text: one clean line.
    """
    # Escapes do not stop forges from notifying a person after an at sign or linking an address; a word joiner does.
    return _ACTIVE.sub("\\1\u2060", _MARKUP.sub(r"\\\1", text))


def markdown_block(lines: tuple[str, ...]) -> str:
    """Return lines as a block of code, which nothing in them can end.

    Args:
        lines: clean lines.
    """
    body = "\n".join(lines)
    fence = "`" * max(3, *(len(run) + 1 for run in _BACKTICKS.findall(body)), 3)
    return f"{fence}text\n{body}\n{fence}"
