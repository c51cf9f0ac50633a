"""Makes tables of values, one row for each set of labels, and panels of words.

Nothing in here knows what is worth showing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from grafana_foundation_sdk.builders import common, table, text
from grafana_foundation_sdk.models.dashboard import DataTransformerConfig, DynamicConfigValue
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from deploy.grafana.look import DATASOURCE, PLAIN, Query, targets, thresholds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deploy.grafana.look import Steps


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        name: its heading.
        unit: Grafana's name of the unit.
        decimals: digits after the point; None leaves it to Grafana.
        steps: thresholds, and the colours of cells from there on.
        link: address that cells link to; None for none.
    """

    name: str
    unit: str = "short"
    decimals: int | None = None
    steps: Steps = PLAIN
    link: str | None = None


def grid(
    title: str,
    description: str,
    queries: Sequence[str],
    columns: Mapping[str, Column],
    *,
    sort: str,
    none: str = "none",
    width: int = 24,
    height: int = 8,
) -> table.Panel:
    """Make a table of the values now, one row for each set of labels.

    Args:
        title: its title.
        description: what it is and what good looks like.
        queries: give the columns of values, the first `Value #A` and so on (`Value` when there is only one).
        columns: what is shown, in this order, by labels and names of values; all else is left out.
        sort: heading of the column that rows are sorted by, the largest first.
        none: what stands in empty cells.
        width: in columns, of which a dashboard has 24.
        height: in Grafana's rows.
    """
    order = {name: place for place, name in enumerate(columns)}
    renamed = {name: column.name for name, column in columns.items()}
    made = (
        table.Panel()
        .title(title)
        .description(description)
        .datasource(DATASOURCE)
        .targets(targets([Query(query) for query in queries], instant=True, form=PromQueryFormat.TABLE))
        .unit("short")
        .no_value(none)
        .thresholds(thresholds("transparent", ()))
        .transformations(
            [
                DataTransformerConfig(id_val="merge", options={}),
                DataTransformerConfig(id_val="filterFieldsByName", options={"include": {"names": list(columns)}}),
                DataTransformerConfig(id_val="organize", options={"indexByName": order, "renameByName": renamed}),
            ]
        )
        .sort_by([common.TableSortByFieldState().display_name(sort).desc(desc=True)])
        .span(width)
        .height(height)
    )
    for column in columns.values():
        made = made.override_by_name(column.name, _properties(column))
    return made


def _properties(column: Column) -> list[DynamicConfigValue]:
    properties = [DynamicConfigValue(id_val="unit", value=column.unit)]
    if column.decimals is not None:
        properties.append(DynamicConfigValue(id_val="decimals", value=column.decimals))
    if column.steps:
        properties.append(
            DynamicConfigValue(id_val="thresholds", value=thresholds("transparent", column.steps).build())
        )
        properties.append(DynamicConfigValue(id_val="custom.cellOptions", value={"type": "color-background"}))
    if column.link:
        link = {"title": f"Open {column.name}", "url": column.link, "targetBlank": True}
        properties.append(DynamicConfigValue(id_val="links", value=[link]))
    return properties


def words(content: str, *, width: int = 24, height: int = 4) -> text.Panel:
    """Make a panel of Markdown that says how the dashboard is read."""
    return text.Panel().title("").description("How to read this dashboard.").content(content).span(width).height(height)
