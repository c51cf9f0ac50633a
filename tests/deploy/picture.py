"""Draws a dashboard with the answers to its queries, panel by panel, about as Grafana would.

It is there to be looked at: what cannot be read in the picture cannot be read in Grafana either. It judges nothing.
"""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, Any, TypeAlias

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from tests.deploy.drawn_tables import table
from tests.deploy.units import shown

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from matplotlib.axes import Axes

Answers: TypeAlias = "dict[str, dict[str, list[dict[str, Any]]]]"
"""Results of Prometheus's API by title of the panel and letter of the query."""

COLUMN_INCHES, ROW_INCHES = 0.78, 0.36
COLUMNS = 24
PAD_INCHES = 0.12

NIGHT, PANEL, EDGE, TEXT, DIM = "#111217", "#181b1f", "#2c3036", "#d8d9da", "#8e8e8e"
COLOURS = {
    "green": "#73bf69",
    "yellow": "#fade2a",
    "orange": "#ff9830",
    "red": "#f2495c",
    "blue": "#5794f2",
    "purple": "#b877d9",
    "transparent": "none",
}
PALETTE = ("#73bf69", "#f2cc0c", "#8ab8ff", "#ff780a", "#f2495c", "#5794f2", "#b877d9", "#705da0", "#37872d", "#fade2a")


def draw(board: Mapping[str, Any], answers: Answers, path: Path) -> None:
    """Draw a dashboard.

    Args:
        board: its JSON.
        answers: to its queries.
        path: the picture's file.
    """
    mpl.rcParams.update({"font.size": 7.5, "text.color": TEXT, "axes.labelcolor": DIM, "font.family": "DejaVu Sans"})
    rows = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in board["panels"])
    height = (rows + 2) * ROW_INCHES
    figure = Figure(figsize=(COLUMNS * COLUMN_INCHES, height), facecolor=NIGHT)
    figure.text(0.006, 1 - 0.7 * ROW_INCHES / height, board["title"], fontsize=15, va="center", weight="bold")
    for panel in board["panels"]:
        at = panel["gridPos"]
        left, top = at["x"] * COLUMN_INCHES, (at["y"] + 1.5) * ROW_INCHES
        wide, high = at["w"] * COLUMN_INCHES, at["h"] * ROW_INCHES
        box = (left + PAD_INCHES / 2, height - top - high + PAD_INCHES / 2, wide - PAD_INCHES, high - PAD_INCHES)
        _panel(figure, panel, answers.get(panel["title"], {}), box)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)


def _panel(
    figure: Figure,
    panel: Mapping[str, Any],
    answers: Mapping[str, list[dict[str, Any]]],
    box: tuple[float, float, float, float],
) -> None:
    wide, high = figure.get_size_inches()
    left, bottom, width, height = box
    whole = figure.add_axes((left / wide, bottom / high, width / wide, height / high))
    whole.set(xticks=[], yticks=[], facecolor=NIGHT if panel["type"] == "row" else PANEL)
    for side in whole.spines.values():
        side.set(color=NIGHT if panel["type"] == "row" else EDGE)
    if panel["type"] == "row":
        whole.text(0.003, 0.4, f"▾ {panel['title']}", fontsize=10, va="center", transform=whole.transAxes)
        return
    if panel["title"]:
        room = int(width * 13.5)
        title = textwrap.shorten(panel["title"], room, placeholder="…")
        at = whole.transAxes
        whole.text(0.06 / width, 1 - 0.09 / height, title, va="top", weight="bold", color="white", transform=at)
    drawing = {"text": _words, "stat": _number, "bargauge": _ranking, "table": table, "heatmap": _heat}
    made = drawing.get(panel["type"])
    if made is None:
        # Below is the legend, to the left are the axis's numbers.
        inner = (left + 0.62, bottom + 0.52, width - 0.75, height - 0.85)
    elif panel["type"] == "heatmap":
        inner = (left + 0.62, bottom + 0.25, width - 0.75, height - 0.58)
    else:
        inner = (left + 0.06, bottom + 0.05, width - 0.12, height - 0.35)
    axes = figure.add_axes((inner[0] / wide, inner[1] / high, inner[2] / wide, inner[3] / high))
    axes.set_facecolor(PANEL)
    if made is not None and panel["type"] != "heatmap":
        axes.axis("off")
    (made or _lines)(axes, panel, answers)


def colour_at(steps: list[dict[str, Any]], value: float) -> str:
    """Give the colour that thresholds have for a value."""
    name: str = next(step["color"] for step in reversed(steps) if step["value"] is None or value >= step["value"])
    return COLOURS.get(name, name)


def name_of(series: Mapping[str, Any], target: Mapping[str, Any]) -> str:
    """Give what a series is called."""
    legend = target.get("legendFormat") or ""
    return re.sub(r"{{(\w+)}}", lambda match: series["metric"].get(match[1], ""), legend)


def _nothing(axes: Axes, text: str) -> None:
    axes.text(0.5, 0.5, text, ha="center", va="center", color=DIM, fontsize=9, transform=axes.transAxes)


def _words(axes: Axes, panel: Mapping[str, Any], _: object) -> None:
    text = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", panel["options"]["content"]).replace("**", "").replace("`", "")
    blocks = [re.sub(r"\s+", " ", block) for block in re.split(r"\n(?=- |\n)", text.strip())]
    lines = [line for block in blocks for line in textwrap.wrap(block, 235)]
    axes.text(0.005, 1.12, "\n".join(lines), va="top", fontsize=8, linespacing=1.45, transform=axes.transAxes)


def _number(axes: Axes, panel: Mapping[str, Any], answers: Mapping[str, list[dict[str, Any]]]) -> None:
    defaults = panel["fieldConfig"]["defaults"]
    series = [each for result in answers.values() for each in result]
    if not series:
        _nothing(axes, defaults["noValue"])
        return
    assert len(series) == 1, f"{panel['title']}: one number, and {len(series)} series"
    values = [float(value) for _, value in series[0].get("values") or [series[0]["value"]]]
    colour = colour_at(defaults["thresholds"]["steps"], values[-1])
    solid = panel["options"]["colorMode"] == "background"
    if solid:
        panels: Any = axes.get_figure()
        panels.axes[-2].set_facecolor(colour)  # the panel's own
    if panel["options"]["graphMode"] == "area":
        behind = axes.inset_axes((0, 0, 1, 0.45))
        behind.axis("off")
        behind.fill_between(range(len(values)), values, color="white" if solid else colour, alpha=0.35, lw=0)
        behind.set_ylim(0, max(*values, 1e-9))
    text = shown(values[-1], defaults["unit"], defaults.get("decimals"))
    where: dict[str, Any] = {"ha": "center", "va": "center", "transform": axes.transAxes}
    axes.text(0.5, 0.55, text, fontsize=20, weight="bold", color="white" if solid else colour, **where)


def _lines(axes: Axes, panel: Mapping[str, Any], answers: Mapping[str, list[dict[str, Any]]]) -> None:
    defaults = panel["fieldConfig"]["defaults"]
    custom = defaults["custom"]
    fixed = {
        each["matcher"]["options"]: each["properties"][0]["value"]["fixedColor"]
        for each in panel["fieldConfig"]["overrides"]
    }
    bars, stacked = custom["drawStyle"] == "bars", custom["stacking"]["mode"] == "normal"
    below: dict[float, float] = {}
    drawn = [(name_of(each, t), each) for t in panel["targets"] for each in answers[t["refId"]]]
    for number, (name, each) in enumerate(drawn):
        colour = fixed.get(name, PALETTE[number % len(PALETTE)])
        colour = COLOURS.get(colour, colour)
        points = [(float(at), float(value)) for at, value in each["values"] if value != "NaN"]
        times, values = [at for at, _ in points], [value for _, value in points]
        base = [below.get(at, 0.0) if stacked else 0.0 for at in times]
        tops = [low + value for low, value in zip(base, values, strict=True)]
        if bars:
            axes.bar(times, values, width=0.8, bottom=base, color=colour, alpha=0.75, label=name)
        else:
            axes.plot(times, tops, color=colour, lw=1.5, label=name, marker="o", ms=1.6)
            axes.fill_between(times, base, tops, color=colour, alpha=custom["fillOpacity"] / 100, lw=0)
        below |= dict(zip(times, tops, strict=True))
    _ruled(axes, defaults)
    if not drawn:
        _nothing(axes, defaults["noValue"])
        return
    for step in defaults["thresholds"]["steps"]:
        if step["value"] is not None:
            axes.axhline(step["value"], color=COLOURS.get(step["color"], step["color"]), ls="--", lw=1)
    handles, labels = axes.get_legend_handles_labels()
    place: dict[str, Any] = {
        "loc": "upper left",
        "bbox_to_anchor": (-0.06, -0.11),
        "borderaxespad": 0,
        "frameon": False,
    }
    columns = max(1, min(4, int(axes.get_window_extent().width / 100 / max(map(len, labels)) * 13)))
    axes.legend(handles[:8], labels[:8], ncols=columns, fontsize=6.2, handlelength=1, columnspacing=1, **place)


def _ruled(axes: Axes, defaults: Mapping[str, Any]) -> None:
    axes.set_axisbelow(b=True)
    axes.grid(color=EDGE, lw=0.6)
    axes.tick_params(colors=DIM, labelsize=6.5, length=0)
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: shown(value, defaults["unit"])))
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value % 3600 // 60:02.0f}:{value % 60:02.0f}"))
    axes.set_ylim(defaults.get("min"), defaults.get("max"))
    for side in axes.spines.values():
        side.set(color=EDGE)


def _ranking(axes: Axes, panel: Mapping[str, Any], answers: Mapping[str, list[dict[str, Any]]]) -> None:
    defaults = panel["fieldConfig"]["defaults"]
    target = panel["targets"][0]
    found = [(name_of(each, target), float(each["value"][1])) for each in answers["A"]]
    if not found:
        _nothing(axes, defaults["noValue"])
        return
    top = defaults.get("max") or max(value for _, value in found)
    for row, (name, value) in enumerate(found):
        colour = colour_at(defaults["thresholds"]["steps"], value)
        axes.barh(row, 0.56, left=0.3, color=EDGE, height=0.7)
        axes.barh(row, 0.56 * min(1, value / top), left=0.3, color=colour, height=0.7)
        axes.text(0.29, row, textwrap.shorten(name, 30, placeholder="…"), ha="right", va="center")
        text = shown(value, defaults["unit"], defaults.get("decimals"))
        axes.text(0.87, row, text, va="center", color=colour, weight="bold", fontsize=9)
    axes.set(xlim=(0, 1), ylim=(max(len(found), 4) - 0.5, -0.6))


def _heat(axes: Axes, panel: Mapping[str, Any], answers: Mapping[str, list[dict[str, Any]]]) -> None:
    unit = panel["fieldConfig"]["defaults"]["unit"]
    found = sorted(answers["A"], key=lambda each: float(each["metric"]["le"]))
    _ruled(axes, {"unit": unit})
    if not found:
        _nothing(axes, "No data")
        return
    times = sorted({float(at) for each in found for at, _ in each["values"]})
    cumulated = [{float(at): float(value) for at, value in each["values"]} for each in found]
    cells = [
        [max(0.0, row.get(at, 0.0) - (cumulated[place - 1].get(at, 0.0) if place else 0.0)) for at in times]
        for place, row in enumerate(cumulated)
    ]
    masked = [[value if value > 1e-9 else float("nan") for value in row] for row in cells]
    axes.pcolormesh(times, range(len(found)), masked, cmap="Oranges", shading="nearest", vmin=0)
    axes.set_yticks(range(len(found)), [shown(float(each["metric"]["le"]), unit) for each in found])
    axes.grid(visible=False)
