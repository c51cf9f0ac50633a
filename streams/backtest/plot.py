"""Shows how soon loops are found: how many loops have which delay, as bars on a terminal or a picture in SVG.

Every bin is five calls wide, and one of them ends at the delay that still counts as in time. Writes no file.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from streams.backtest.cases import PROMPT_CALLS
from streams.backtest.picture import COLOURS, Picture, upright, written
from streams.timeline import ending

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from streams.backtest.scoring import Score

TITLE = "Calls from a loop's onset to the first warn or terminate"

_WIDTH_CALLS = PROMPT_CALLS
_FIRST = -20
_LAST = 50
_UPPER = range(_FIRST, _LAST + 1, _WIDTH_CALLS)
"""Last delay of every bin; the first bin has all that is below it too."""

_BAR_CHARS = 28
_ALL_BARS_CHARS = 63  # of all configurations together
_NAME_CHARS = 24

_PLOT_WIDTH, _PLOT_HEIGHT = 900, 300
_LEFT, _TOP, _BOTTOM = 60, 80, 90
_TICKS = 5


def bins() -> list[str]:
    """Name the bins."""
    between = [f"{upper - _WIDTH_CALLS + 1} to {upper}" for upper in _UPPER[1:]]
    return [f"up to {_FIRST}", *between, f"over {_LAST}", "missed"]


def histogram(score: Score) -> list[int]:
    """Count the loops in each bin."""
    counts = [0] * len(bins())
    for entry in score.loops:
        if entry.delay is None:
            counts[-1] += 1
        elif entry.delay > _LAST:
            counts[-2] += 1
        else:
            counts[max(0, math.ceil((entry.delay - _FIRST) / _WIDTH_CALLS))] += 1
    return counts


def bar_lines(scores: Sequence[Score]) -> Iterator[str]:
    """Write the bars for a terminal, one line a bin, configurations beside each other."""
    counts = [histogram(score) for score in scores]
    most = max(map(max, counts))
    longest = min(_BAR_CHARS, _ALL_BARS_CHARS // len(scores))
    wide = longest + 4  # the number stands behind the bar
    names = "".join(f"  {ending(score.configuration, min(_NAME_CHARS, wide)):<{wide}}" for score in scores)
    yield TITLE
    yield f"{'':<10}{names}".rstrip()
    for place, name in enumerate(bins()):
        cells = "".join(f"  {_bar(each[place], most, longest):<{wide}}" for each in counts)
        yield f"{name:>10}{cells}".rstrip()


def _bar(count: int, most: int, longest: int) -> str:
    """Draw a bar: a block for each loop, or for several where they are many; it never vanishes."""
    length = count if most <= longest else math.ceil(count * longest / most)
    return f"|{'█' * length} {count or ''}".rstrip()


def picture(scores: Sequence[Score]) -> Picture:
    """Draw the same as a picture.

    Args:
        scores: one to three.
    """
    counts = [histogram(score) for score in scores]
    most = max(1, *map(max, counts))
    step = math.ceil(most / _TICKS)
    top = step * math.ceil(most / step)
    parts = [
        written(_LEFT, 26, TITLE, 'font-size="16"'),
        *_legend(scores),
        *_axes(step, top),
        *(part for place, each in enumerate(counts) for part in _columns(each, place, len(counts), top)),
    ]
    return Picture(TITLE, _LEFT + _PLOT_WIDTH + 20, _TOP + _PLOT_HEIGHT + _BOTTOM, parts)


def _legend(scores: Sequence[Score]) -> Iterator[str]:
    for place, score in enumerate(scores):
        x = _LEFT + place * _PLOT_WIDTH // max(2, len(scores))
        loops = score.groups["loop"]
        said = f"{ending(score.configuration, _NAME_CHARS)}: {loops.warned} of {loops.sessions} loops found"
        yield f'<rect x="{x}" y="40" width="12" height="12" fill="{COLOURS[place]}"/>'
        yield written(x + 18, 50, said)


def _axes(step: int, top: int) -> Iterator[str]:
    """Draw lines for numbers of loops, the names of the bins, and where being in time ends."""
    names = bins()
    bottom, slot = _TOP + _PLOT_HEIGHT, _PLOT_WIDTH / len(names)
    for number in range(0, top + 1, step):
        y = bottom - number * _PLOT_HEIGHT / top
        yield f'<line x1="{_LEFT}" x2="{_LEFT + _PLOT_WIDTH}" y1="{y:g}" y2="{y:g}" stroke="#ddd"/>'
        yield written(_LEFT - 8, y + 4, str(number), 'text-anchor="end"')
    for place, name in enumerate(names):
        x = _LEFT + (place + 0.5) * slot
        yield written(x, bottom + 16, name, f'text-anchor="end" transform="rotate(-40 {x:g} {bottom + 16})"')
    x = _LEFT + (list(_UPPER).index(PROMPT_CALLS) + 1) * slot
    yield f'<line x1="{x:g}" x2="{x:g}" y1="{_TOP - 8}" y2="{bottom}" stroke="#666" stroke-dasharray="4 3"/>'
    yield written(x + 4, _TOP - 4, f"in time up to {PROMPT_CALLS}", 'fill="#666"')
    yield written(_LEFT + _PLOT_WIDTH / 2, bottom + _BOTTOM - 12, "calls after the onset", 'text-anchor="middle"')
    yield upright(16, _TOP + _PLOT_HEIGHT / 2, "loops")


def _columns(counts: Sequence[int], place: int, of: int, top: int) -> Iterator[str]:
    """Draw the columns of one configuration, with their numbers."""
    slot = _PLOT_WIDTH / len(counts)
    wide = 0.8 * slot / of
    for number, count in enumerate(counts):
        if count:
            x = _LEFT + number * slot + 0.1 * slot + place * wide
            high = count * _PLOT_HEIGHT / top
            y = _TOP + _PLOT_HEIGHT - high
            colour = COLOURS[place]
            yield f'<rect x="{x:g}" y="{y:g}" width="{wide:g}" height="{high:g}" fill="{colour}"/>'
            yield written(x + wide / 2, y - 4, str(count), 'text-anchor="middle"')
