"""Panels of service level objectives: what is left of an error budget, and how fast it burns.

They read the series that the recording rules write, so that what they show is what the alerts go by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deploy.grafana.look import BLUE, GREEN, GREY, ORANGE, RED, Query, runbook
from deploy.grafana.panels import lines, number
from deploy.grafana.queries import recorded
from deploy.grafana.slo import FAST_BURN

if TYPE_CHECKING:
    from grafana_foundation_sdk.builders import stat, timeseries

    from deploy.grafana.slo import Objective

LITTLE_LEFT = 0.25
"""Below this share of a budget, changes that may cost some of it had better wait."""


def budget(title: str, what: str, objective: Objective, *, width: int = 6, height: int = 4) -> stat.Panel:
    """Show what is left of an objective's budget, of the fleet that has least.

    Args:
        title: its title.
        what: what may be bad, to go on after the share.
        objective: the objective.
        width: in columns.
        height: in Grafana's rows.
    """
    return number(
        f"{title}: budget left",
        f"Over 30 days {objective.bad:.1%} of the {what}. This is how much of that is left: 100 % is all, 0 % none, "
        f"below 0 the objective is missed. Good: above {LITTLE_LEFT:.0%}. No data: none in 30 days, or the recording "
        "rules are not loaded.",
        f"min(1 - {recorded(objective.over('30d'))} / {objective.bad:g})",
        "percentunit",
        base=RED,
        steps=[(0, ORANGE), (LITTLE_LEFT, GREEN)],
        decimals=0,
        none="no data",
        links=[runbook(objective.alert), runbook(objective.ticket)],
        width=width,
        height=height,
    )


def burning(title: str, what: str, objective: Objective, *, width: int = 8) -> timeseries.Panel:
    """Show how fast an objective's budget burns, over three windows.

    Args:
        title: its title.
        what: what may be bad, to go on after the share.
        objective: the objective.
        width: in columns.
    """
    return lines(
        f"{title}: how fast the budget burns",
        f"How many times faster than it may: at 1 the budget ({objective.bad:.1%} of the {what}) lasts for 30 days "
        f"exactly. Good: below 1. Where both the line of the hour and that of 5 minutes are above {FAST_BURN:g}, "
        "somebody is woken.",
        [
            Query(f"max({recorded(objective.over(window))}) / {objective.bad:g}", name)
            for window, name in (("5m", "5 minutes"), ("1h", "1 hour"), ("3d", "3 days"))
        ],
        "none",
        steps=[(1, ORANGE), (FAST_BURN, RED)],
        colours={"5 minutes": GREY, "1 hour": BLUE, "3 days": GREEN},
        links=[runbook(objective.alert)],
        width=width,
    )
