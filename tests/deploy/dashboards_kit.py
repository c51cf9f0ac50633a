"""Grafana's dashboards as they are committed, their panels and queries, with Grafana's variables filled in.

It reads the JSON alone, as Grafana does, not the code that makes it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import promql_parser as promql

from streams.metric_list import listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "grafana"

ANYTHING = {"fleet": ".*", "namespace": ".*", "job": "traction-.+", "detector": ".*", "datasource": "prometheus"}
"""Values of the template variables when all is chosen."""

WINDOWS = {"__rate_interval": "1m", "__range": "6h", "__interval": "15s"}
"""Grafana's own variables, as of a dashboard of six hours."""

_VARIABLE = re.compile(r"\$\{?(\w+)\}?")
_VALUES = re.compile(r"label_values\((?P<query>.+), (?P<label>\w+)\)")


@dataclass(frozen=True, slots=True)
class Asked:
    """One query of a panel.

    Attributes:
        uid: of the dashboard.
        title: of the panel.
        ref: letter of the query.
        expr: the query, variables and all.
        legend: what its series are called.
        instant: asked for now only.
    """

    uid: str
    title: str
    ref: str
    expr: str
    legend: str
    instant: bool

    @property
    def where(self) -> str:
        """Name it for messages."""
        return f"{self.uid}: {self.title} ({self.ref})"


Labels: TypeAlias = "dict[str, tuple[str, ...] | None]"
"""Names of labels with their values, or None where these are not known before."""


def metrics() -> dict[str, Labels]:
    """List all series of the code by name, with their labels."""
    found: dict[str, Labels] = {}
    for each in listed():
        labels = found.get(each.name, {}) | dict(each.labels)
        if each.type == "histogram":
            edges = (*(str(float(edge)) for edge in each.buckets), "+Inf")
            found |= {f"{each.name}_bucket": labels | {"le": edges}, f"{each.name}_count": labels}
        else:
            found[each.name] = labels
    return found


def boards() -> dict[str, dict[str, Any]]:
    """Read the dashboards, by file name."""
    return {path.name: json.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.json"))}


def panels(board: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Give a dashboard's panels, without the headings."""
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def asked(board: Mapping[str, Any]) -> Iterator[Asked]:
    """Give a dashboard's queries."""
    for panel in panels(board):
        for target in panel.get("targets", ()):
            yield Asked(
                board["uid"],
                panel["title"],
                target["refId"],
                target["expr"],
                target.get("legendFormat", ""),
                target["instant"],
            )


def everything_asked() -> list[Asked]:
    """Give the queries of all dashboards."""
    return [each for board in boards().values() for each in asked(board)]


def choices(board: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Give the selector and the label whose values each variable is chosen from."""
    found = {}
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            match = _VALUES.fullmatch(variable["query"]["query"])
            assert match, variable
            found[variable["name"]] = match["query"], match["label"]
    return found


def filled(expr: str, **values: str) -> str:
    """Put values in the place of variables; fail when there is one that nobody knows."""
    known = ANYTHING | WINDOWS | values
    return _VARIABLE.sub(lambda match: known[match[1]], expr)


def variables(expr: str) -> set[str]:
    """Give the names of a query's variables."""
    return set(_VARIABLE.findall(expr))


def selectors(expr: str) -> Iterator[promql.VectorSelector]:
    """Parse a query, and give what it selects; fail when it cannot be parsed."""
    return _within(promql.parse(expr))


def _within(expr: promql.Expr) -> Iterator[promql.VectorSelector]:
    if isinstance(expr, promql.VectorSelector):
        yield expr
    elif isinstance(expr, promql.MatrixSelector):
        yield expr.vector_selector
    elif isinstance(expr, promql.Call):
        for each in expr.args:
            yield from _within(each)
    elif isinstance(expr, promql.BinaryExpr):
        yield from _within(expr.lhs)
        yield from _within(expr.rhs)
    elif isinstance(expr, promql.AggregateExpr | promql.ParenExpr | promql.UnaryExpr | promql.SubqueryExpr):
        yield from _within(expr.expr)
    else:
        assert isinstance(expr, promql.NumberLiteral | promql.StringLiteral), expr
