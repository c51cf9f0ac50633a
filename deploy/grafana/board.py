"""Puts panels together to a dashboard in Grafana's classic form, which all of its versions from 9 to 13 read.

It sees to what all of them have: variables, links to each other, ids, the grid. It knows no metric's meaning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from grafana_foundation_sdk.builders.dashboard import (
    Dashboard,
    DashboardLink,
    DatasourceVariable,
    QueryVariable,
    Row,
)
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    RowPanel,
    VariableOption,
    VariableRefresh,
    VariableSort,
)
from grafana_foundation_sdk.models.dashboard import Panel as PanelModel

from deploy.grafana.look import DATASOURCE, PAGES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grafana_foundation_sdk.cog.builder import Builder
    from grafana_foundation_sdk.models import dashboard

TAG = "traction"
"""By which the dashboards find each other."""

COLUMNS = 24
"""Width of Grafana's grid."""


@dataclass(frozen=True, slots=True)
class Section:
    """Panels under a heading.

    Attributes:
        title: the heading.
        panels: from left to right; they go on below when a line is full.
    """

    title: str
    panels: Sequence[Builder[dashboard.Panel]]


def chosen(name: str, label: str, query: str, *, several: bool = True, all_value: str | None = None) -> QueryVariable:
    """Make a variable that is chosen from a label's values, all of them at first.

    Args:
        name: its name in queries.
        label: what stands beside it.
        query: Grafana's `label_values(…)`.
        several: more than one may be chosen.
        all_value: what all stands for in queries; None for the list of values.
    """
    made = (
        QueryVariable(name)
        .label(label)
        .query({"query": query, "refId": f"{name}-values"})
        .definition(query)
        .datasource(DATASOURCE)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
        .multi(several)
        .include_all(include_all=True)
        .current(VariableOption(selected=True, text="All", value="$__all"))
    )
    return made if all_value is None else made.all_value(all_value)


def _variables(metric: str, further: Sequence[QueryVariable]) -> list[Builder[dashboard.VariableModel]]:
    namespace = f'label_values({metric}{{fleet=~"$fleet"}}, namespace)'
    job = f'label_values({metric}{{fleet=~"$fleet",namespace=~"$namespace"}}, job)'
    return [
        DatasourceVariable("datasource").label("Data source").type("prometheus"),
        # Where the scrape configuration sets no such label there is nothing to choose, and all matches.
        chosen("fleet", "Fleet", f"label_values({metric}, fleet)", all_value=".*"),
        chosen("namespace", "Namespace", namespace, all_value=".*"),
        chosen("job", "Job", job),
        *further,
    ]


def board(
    uid: str,
    title: str,
    description: str,
    sections: Sequence[Section],
    *,
    metric: str,
    variables: Sequence[QueryVariable] = (),
    shown: str = "6h",
) -> dashboard.Dashboard:
    """Make a dashboard.

    Args:
        uid: its lasting name in Grafana.
        title: its title, without the product's name.
        description: what it is for.
        sections: its panels.
        metric: what the processes that it shows have; fleets, namespaces and jobs are its labels.
        variables: further variables.
        shown: how far back it shows at first.

    Raises:
        ValueError: a line of panels is wider than the grid.
    """
    made = (
        Dashboard(f"Traction / {title}")
        .uid(uid)
        .description(description)
        .tags([TAG])
        .timezone("browser")
        .readonly()
        .refresh("30s")
        .time(f"now-{shown}", "now")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .variables(_variables(metric, variables))
        .links(
            [
                DashboardLink("Other dashboards")
                .type(DashboardLinkType.DASHBOARDS)
                .tags([TAG])
                .as_dropdown(as_dropdown=True)
                .include_vars(include_vars=True)
                .keep_time(keep_time=True),
                DashboardLink("Runbooks")
                .type(DashboardLinkType.LINK)
                .icon("doc")
                .url(f"{PAGES}/runbooks.md")
                .target_blank(target_blank=True),
            ]
        )
    )
    for section in sections:
        made = made.with_row(Row(section.title).collapsed(collapsed=False))
        for panel in section.panels:
            made = made.with_panel(panel)
    built = made.build()
    for number, each in enumerate(built.panels or (), 1):
        if isinstance(each, PanelModel | RowPanel):
            each.id_val = number
        at = each.grid_pos
        if at is not None and at.x + at.w > COLUMNS:
            raise ValueError(f"{title}: the panel {each.title} does not fit beside those before it; make them narrower")
    return built
