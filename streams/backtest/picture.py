"""What pictures in SVG have in common: texts that are escaped, and several drawn below each other. Writes no file."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

COLOURS = ("#1f5f99", "#d9822b", "#666666")
"""Blue, orange and grey, which people who see few colours can tell apart."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture, or a part of one.

    Attributes:
        title: what it shows.
        width: in pixels.
        height: in pixels.
        parts: its elements.
    """

    title: str
    width: int
    height: int
    parts: list[str]


def draw(pictures: Sequence[Picture]) -> str:
    """Give the content of a file with the pictures below each other."""
    width, height = max(each.width for each in pictures), sum(each.height for each in pictures)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="12" fill="#222">'
    )
    parts = [
        head,
        f"<title>{html.escape('; '.join(each.title for each in pictures))}</title>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    top = 0
    for each in pictures:
        parts += (f'<g transform="translate(0 {top})">', *each.parts, "</g>")
        top += each.height
    return "\n".join((*parts, "</svg>")) + "\n"


def written(x: float, y: float, text: str, attributes: str = "") -> str:
    """Give the element of a text."""
    return f'<text x="{x:g}" y="{y:g}" {attributes}>{html.escape(text)}</text>'


def upright(x: float, y: float, text: str) -> str:
    """Give the element of a text that runs upwards, centred."""
    return written(x, y, text, f'text-anchor="middle" transform="rotate(-90 {x:g} {y:g})"')
