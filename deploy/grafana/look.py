"""What all panels have in common: the data source, colours, thresholds, links to runbooks, and how queries are put in.

Nothing in here knows what is worth showing.
"""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from grafana_foundation_sdk.builders import prometheus
from grafana_foundation_sdk.builders.dashboard import DashboardLink, ThresholdsConfig
from grafana_foundation_sdk.models.common import DataSourceRef
from grafana_foundation_sdk.models.dashboard import DashboardLinkType, Threshold, ThresholdsMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grafana_foundation_sdk.cog.builder import Builder
    from grafana_foundation_sdk.cog.variants import Dataquery
    from grafana_foundation_sdk.models import dashboard

    Links: TypeAlias = Sequence[tuple[str, str]]
    Steps: TypeAlias = Sequence[tuple[float, str]]

DATASOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")

PAGES = "https://github.com/traction/traction/blob/main/docs"
"""Where the pages are read that panels link to."""

GREEN, YELLOW, ORANGE, RED, BLUE, PURPLE, GREY = "green", "yellow", "orange", "red", "blue", "purple", "#8e8e8e"

LEVELS = {"notice": BLUE, "warn": ORANGE, "terminate": RED, "recovered": GREEN}
"""Colours of alerts' levels, the same on all dashboards."""

PLAIN: tuple[tuple[float, str], ...] = ()
"""Thresholds of a number that is neither good nor bad."""

EACH = "{{job}} {{instance}}"
"""What series of single processes are called."""

NEVER = ((1.0, RED),)
"""Thresholds of what must never happen: red from 1 on."""


@dataclass(frozen=True, slots=True)
class Query:
    """What a panel asks.

    Attributes:
        expr: the query.
        legend: what its series are called, with labels in double braces.
    """

    expr: str
    legend: str = ""


def runbook(alert: str) -> tuple[str, str]:
    """Give title and address of an alert's runbook, to link a panel to."""
    return f"Runbook: {alert}", f"{PAGES}/runbooks.md#{alert.lower()}"


def thresholds(base: str, steps: Steps) -> ThresholdsConfig:
    """Set thresholds: a colour below the first, and those from there on."""
    levels = [Threshold(value=None, color=base), *(Threshold(value=value, color=colour) for value, colour in steps)]
    return ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(levels)


def targets(
    queries: Sequence[Query], *, instant: bool, form: PromQueryFormat = PromQueryFormat.TIME_SERIES
) -> list[Builder[Dataquery]]:
    """Put queries in, for now only or over the time shown."""
    made: list[Builder[Dataquery]] = []
    for letter, query in zip(string.ascii_uppercase, queries, strict=False):
        target = prometheus.Dataquery().expr(query.expr).ref_id(letter).format(form).datasource(DATASOURCE)
        target = target.instant() if instant else target.range()
        made.append(target.legend_format(query.legend) if query.legend else target)
    return made


def linked(links: Links) -> list[Builder[dashboard.DashboardLink]]:
    """Link a panel to pages, by their titles and addresses."""
    return [
        DashboardLink(title).type(DashboardLinkType.LINK).url(url).target_blank(target_blank=True)
        for title, url in links
    ]
