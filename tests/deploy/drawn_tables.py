"""Draws a table panel: the answers merged by their labels, columns chosen and named as the panel says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.deploy.units import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from matplotlib.axes import Axes

COLOURS = {"green": "#37872d", "orange": "#e0752d", "red": "#c4162a"}
MAX_ROWS = 12


def merged(panel: Mapping[str, Any], answers: Mapping[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Join the answers' rows, as Grafana's `merge` does: those that agree in the labels that all of them have."""
    series = {ref: result for ref, result in answers.items() if result}
    shared = (
        set.intersection(*({*each["metric"]} for result in series.values() for each in result)) if series else set()
    )
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for ref, result in series.items():
        value = "Value" if len(panel["targets"]) == 1 else f"Value #{ref}"
        for each in result:
            key = tuple(each["metric"][name] for name in sorted(shared))
            rows.setdefault(key, {}).update(each["metric"], **{value: float(each["value"][1])})
    return list(rows.values())


def table(axes: Axes, panel: Mapping[str, Any], answers: Mapping[str, list[dict[str, Any]]]) -> None:
    """Draw a table panel."""
    organized = next(each["options"] for each in panel["transformations"] if each["id"] == "organize")
    names = {
        name: organized["renameByName"][name]
        for name in sorted(organized["indexByName"], key=organized["indexByName"].get)
    }
    overrides = {
        each["matcher"]["options"]: {prop["id"]: prop["value"] for prop in each["properties"]}
        for each in panel["fieldConfig"]["overrides"]
    }
    rows = [{names[name]: value for name, value in row.items() if name in names} for row in merged(panel, answers)]
    if not rows:
        axes.text(0.5, 0.5, panel["fieldConfig"]["defaults"]["noValue"], ha="center", transform=axes.transAxes)
        return
    by = panel["options"]["sortBy"][0]["displayName"]
    rows.sort(key=lambda row: (by in row, row.get(by, "")), reverse=True)
    columns = list(names.values())
    for place, column in enumerate(columns):
        axes.text((place + 0.04) / len(columns), 0, column, color="#6e9fff", va="center")
    for number, row in enumerate(rows[:MAX_ROWS], 1):
        for place, (text, colour) in enumerate(_cells(row, columns, overrides)):
            box = {"facecolor": colour, "edgecolor": "none", "pad": 2.5} if colour else None
            axes.text((place + 0.04) / len(columns), number, text, va="center", bbox=box)
    axes.set(xlim=(0, 1), ylim=(max(len(rows[:MAX_ROWS]), 5) + 0.5, -0.6))


def _cells(
    row: Mapping[str, Any], columns: list[str], overrides: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, str | None]]:
    for column in columns:
        of, value = overrides[column], row.get(column, "-")
        if isinstance(value, str):
            yield value, None
            continue
        steps = of.get("thresholds", {}).get("steps", [])
        reached = [step["color"] for step in steps if step["value"] is not None and value >= step["value"]]
        yield shown(value, of["unit"], of.get("decimals")), COLOURS.get(reached[-1]) if reached else None
