"""Shows a calibration: for each bin of the score how many calls spin, as bars on a terminal or a picture in SVG.

Beside each bar stands the mean score, where a calibrated one would end. Writes no file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streams.backtest.picture import COLOURS, Picture, upright, written

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streams.backtest.calibration import Bin, Calibration

TITLE = "Scores of the calls of sources left out, and the share of these calls that spin"

_BAR_CHARS = 40
_LEFT, _WIDTH, _RIGHT = 60, 900, 20
_TOP, _HEIGHT, _BOTTOM = 50, 260, 60
_TICKS = 5


def bar_lines(calibration: Calibration) -> Iterator[str]:
    """Write the bars for a terminal, one line a bin; a stroke in each line marks the mean score."""
    yield TITLE
    yield "     score   calls   mean  spins"
    for each in calibration.bins:
        mean, share = ("-" if figure is None else f"{figure:.2f}" for figure in (each.mean, each.share))
        yield f"{_name(each)}  {each.calls:>6,}  {mean:>5}  {share:>5}  {_bar(each)}".rstrip()
    if calibration.error is not None:
        yield (
            f"expected calibration error {calibration.error:.3f} over {calibration.calls:,} calls, "
            f"{calibration.spinning:,} of them spinning"
        )


def _name(each: Bin) -> str:
    return f"{each.low:.1f} to {each.high:.1f}"


def _bar(each: Bin) -> str:
    if each.mean is None or each.share is None:
        return "|"
    bar = ("█" * round(each.share * _BAR_CHARS)).ljust(_BAR_CHARS)
    mark = min(int(each.mean * _BAR_CHARS), _BAR_CHARS - 1)
    return f"|{bar[:mark]}│{bar[mark + 1 :]}".rstrip()


def picture(calibration: Calibration) -> Picture:
    """Draw the same: a column for each bin as high as the share that spins, and the line of a calibrated score."""
    bottom = _TOP + _HEIGHT
    parts = [written(_LEFT, 26, TITLE, 'font-size="16"')]
    for tick in range(_TICKS + 1):
        part = tick / _TICKS
        y = bottom - part * _HEIGHT
        parts += (
            f'<line x1="{_LEFT}" x2="{_LEFT + _WIDTH}" y1="{y:g}" y2="{y:g}" stroke="#ddd"/>',
            written(_LEFT - 8, y + 4, f"{part:.1f}", 'text-anchor="end"'),
        )
    for each in calibration.bins:
        parts += _column(each)
    parts += (
        f'<line x1="{_LEFT}" x2="{_LEFT + _WIDTH}" y1="{bottom}" y2="{_TOP}" stroke="#666" stroke-dasharray="4 3"/>',
        upright(16, _TOP + _HEIGHT / 2, "share that spins"),
        written(_LEFT + _WIDTH / 2, bottom + 44, _below(calibration), 'text-anchor="middle"'),
    )
    return Picture(TITLE, _LEFT + _WIDTH + _RIGHT, bottom + _BOTTOM, parts)


def _below(calibration: Calibration) -> str:
    error = "" if calibration.error is None else f"; expected calibration error {calibration.error:.3f}"
    return f"score{error}; above each column: calls; dots: mean score and share that spins"


def _column(each: Bin) -> Iterator[str]:
    bottom = _TOP + _HEIGHT
    wide = (each.high - each.low) * _WIDTH
    x = _LEFT + each.low * _WIDTH
    yield written(x + wide / 2, bottom + 18, _name(each), 'text-anchor="middle"')
    if each.mean is None or each.share is None:
        return
    high = each.share * _HEIGHT
    y = bottom - high
    yield (
        f'<rect x="{x + 0.1 * wide:g}" y="{y:g}" width="{0.8 * wide:g}" height="{high:g}" fill="{COLOURS[0]}" '
        'fill-opacity="0.5"/>'
    )
    yield f'<circle cx="{_LEFT + each.mean * _WIDTH:g}" cy="{y:g}" r="4" fill="{COLOURS[1]}"/>'
    yield written(x + wide / 2, y - 8, f"{each.calls:,}", 'text-anchor="middle"')
