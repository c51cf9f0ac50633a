"""Makes panels of the few kinds that the dashboards use, each alike in look: numbers, lines, rankings, heat maps.

A panel cannot be made without a description and a unit. Nothing in here knows what is worth showing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grafana_foundation_sdk.builders import bargauge, common, heatmap, stat, timeseries
from grafana_foundation_sdk.builders.dashboard import FieldColor
from grafana_foundation_sdk.models.common import (
    BarGaugeDisplayMode,
    BigValueColorMode,
    BigValueGraphMode,
    GraphDrawStyle,
    GraphThresholdsStyleMode,
    HeatmapCellLayout,
    LegendDisplayMode,
    LegendPlacement,
    SortOrder,
    StackingMode,
    TooltipDisplayMode,
    VisibilityMode,
    VizOrientation,
)
from grafana_foundation_sdk.models.dashboard import DynamicConfigValue, FieldColorModeId
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode, HeatmapColorScale
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from deploy.grafana.look import BLUE, DATASOURCE, GREEN, PLAIN, Query, linked, targets, thresholds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deploy.grafana.look import Links, Steps


def number(
    title: str,
    description: str,
    query: str,
    unit: str,
    *,
    base: str = GREEN,
    steps: Steps = PLAIN,
    instant: bool = True,
    none: str = "no data",
    decimals: int | None = None,
    links: Links = (),
    width: int = 4,
    height: int = 4,
) -> stat.Panel:
    """Make one large number, coloured by thresholds.

    Args:
        title: its title.
        description: what it is and what good looks like.
        query: gives one series.
        unit: Grafana's name of the unit.
        base: colour below the first threshold.
        steps: thresholds and the colours from there on.
        instant: ask for now only; else the last value, with its course behind it.
        none: what stands there when there is no value.
        decimals: digits after the point; None leaves it to Grafana.
        links: titles and addresses.
        width: in columns, of which a dashboard has 24.
        height: in Grafana's rows.
    """
    made = (
        stat.Panel()
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .targets(targets([Query(query)], instant=instant))
        .unit(unit)
        .no_value(none)
        .thresholds(thresholds(base, steps))
        .color_scheme(FieldColor().mode(FieldColorModeId.THRESHOLDS))
        .color_mode(BigValueColorMode.BACKGROUND if steps else BigValueColorMode.VALUE)
        .graph_mode(BigValueGraphMode.NONE if instant else BigValueGraphMode.AREA)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .links(linked(links))
        .span(width)
        .height(height)
    )
    return made if decimals is None else made.decimals(decimals)


def lines(
    title: str,
    description: str,
    queries: Sequence[Query],
    unit: str,
    *,
    steps: Steps = PLAIN,
    colours: Mapping[str, str] | None = None,
    bars: bool = False,
    stacked: bool = False,
    top: float | None = None,
    none: str = "none",
    links: Links = (),
    width: int = 8,
    height: int = 8,
) -> timeseries.Panel:
    """Make a graph over time.

    Args:
        title: its title.
        description: what it is and what good looks like.
        queries: what is drawn.
        unit: Grafana's name of the unit.
        steps: goals and limits, drawn as dashed lines.
        colours: of series, by their names.
        bars: draw bars, for what happens now and then.
        stacked: one upon the other, where the sum means something; what is 0 is left out, since its line would run
            along the top of the others.
        top: the axis's upper end; None leaves it to Grafana.
        none: what stands there when there is no series.
        links: titles and addresses.
        width: in columns, of which a dashboard has 24.
        height: in Grafana's rows.
    """
    if stacked and not bars:
        queries = [Query(f"{query.expr} > 0", query.legend) for query in queries]
    made = (
        timeseries.Panel()
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .targets(targets(queries, instant=False))
        .unit(unit)
        .min(0)
        .no_value(none)
        .thresholds(thresholds("transparent", steps))
        .color_scheme(FieldColor().mode(FieldColorModeId.PALETTE_CLASSIC))
        .draw_style(GraphDrawStyle.BARS if bars else GraphDrawStyle.LINE)
        .line_width(1 if bars else 2)
        .fill_opacity(70 if bars else 30 if stacked else 8)
        .show_points(VisibilityMode.NEVER if bars else VisibilityMode.AUTO)
        .stacking(common.StackingConfig().group("A").mode(StackingMode.NORMAL if stacked else StackingMode.NONE))
        .legend(
            common.VizLegendOptions()
            .display_mode(LegendDisplayMode.LIST)
            .placement(LegendPlacement.BOTTOM)
            .show_legend(show_legend=True)
            .calcs([])
        )
        .tooltip(common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI).sort(SortOrder.DESCENDING))
        .links(linked(links))
        .span(width)
        .height(height)
    )
    if bars:
        # The window that is counted is a little longer than a bar then; else it would be several bars long.
        made = made.interval("1m")
    if steps:
        made = made.thresholds_style(common.GraphThresholdsStyleConfig().mode(GraphThresholdsStyleMode.DASHED))
    if top is not None:
        made = made.max(top)
    for name, colour in (colours or {}).items():
        fixed = {"mode": FieldColorModeId.FIXED, "fixedColor": colour}
        made = made.override_by_name(name, [DynamicConfigValue(id_val="color", value=fixed)])
    return made


def ranking(
    title: str,
    description: str,
    query: Query,
    unit: str,
    *,
    base: str = BLUE,
    steps: Steps = PLAIN,
    top: float | None = None,
    none: str = "none",
    decimals: int | None = None,
    width: int = 8,
    height: int = 8,
) -> bargauge.Panel:
    """Make one bar for each series, of its value now.

    Args:
        title: its title.
        description: what it is and what good looks like.
        query: gives the series.
        unit: Grafana's name of the unit.
        base: colour below the first threshold.
        steps: thresholds and the colours from there on.
        top: value of a full bar; None for the largest.
        none: what stands there when there is no series.
        decimals: digits after the point; None leaves it to Grafana.
        width: in columns, of which a dashboard has 24.
        height: in Grafana's rows.
    """
    made = (
        bargauge.Panel()
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .targets(targets([query], instant=True))
        .unit(unit)
        .min(0)
        .no_value(none)
        .thresholds(thresholds(base, steps))
        .color_scheme(FieldColor().mode(FieldColorModeId.THRESHOLDS))
        .orientation(VizOrientation.HORIZONTAL)
        .display_mode(BarGaugeDisplayMode.GRADIENT)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .span(width)
        .height(height)
    )
    if top is not None:
        made = made.max(top)
    return made if decimals is None else made.decimals(decimals)


def heat(
    title: str,
    description: str,
    query: Query,
    unit: str,
    *,
    links: Links = (),
    width: int = 8,
    height: int = 8,
) -> heatmap.Panel:
    """Make a heat map of a histogram's buckets over time.

    Args:
        title: its title.
        description: what it is and what good looks like.
        query: gives the growth of the buckets by `le`.
        unit: Grafana's name of the unit of the edges.
        links: titles and addresses.
        width: in columns, of which a dashboard has 24.
        height: in Grafana's rows.
    """
    colour = heatmap.HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme("Oranges").steps(64)
    return (
        heatmap.Panel()
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .targets(targets([Query(query.expr, "{{le}}")], instant=False, form=PromQueryFormat.HEATMAP))
        .unit(unit)
        .calculate(calculate=False)
        .color(colour.exponent(0.5).scale(HeatmapColorScale.EXPONENTIAL).fill("dark-orange").reverse(reverse=False))
        .cell_gap(1)
        .filter_values(heatmap.FilterValueRange().le(1e-9))
        .rows_frame(heatmap.RowsHeatmapOptions().layout(HeatmapCellLayout.AUTO))
        .y_axis(heatmap.YAxisConfig().unit(unit))
        .hide_legend()
        .links(linked(links))
        .span(width)
        .height(height)
    )
