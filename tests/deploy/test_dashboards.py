"""Grafana's dashboards: made by code, whole, readable by who has never seen them, and asking for what is there."""

from __future__ import annotations

import functools
import itertools
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import promql_parser as promql
import pytest
import yaml

from deploy.grafana import slo
from deploy.grafana.dashboards import files
from deploy.grafana.look import PAGES
from streams.metric_list import listed
from tests.deploy.dashboards_kit import (
    ANYTHING,
    FOLDER,
    WINDOWS,
    Asked,
    Labels,
    asked,
    boards,
    choices,
    everything_asked,
    filled,
    metrics,
    panels,
    selectors,
    variables,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

RULES = FOLDER.parent / "prometheus" / "rules.yaml"
RUNBOOKS = FOLDER.parents[1] / "docs" / "runbooks.md"

OF_THE_SCRAPE = {"fleet", "namespace", "job", "instance"}
"""Labels that Prometheus sets itself."""

ELSEWHERE: dict[str, Labels] = {
    "up": {},
    "ALERTS": {"alertname": None, "alertstate": ("firing", "pending"), "severity": ("page", "ticket")},
    "process_cpu_seconds_total": {},
    "process_resident_memory_bytes": {},
    "process_start_time_seconds": {},
}
"""What is not ours, with its labels: Prometheus's own, and those of the client library for all processes."""

BOARDS = boards()


@functools.cache
def rules() -> list[dict[str, Any]]:
    """Give all rules."""
    return [rule for group in yaml.safe_load(RULES.read_text("utf-8"))["groups"] for rule in group["rules"]]


@functools.cache
def known() -> dict[str, Labels]:
    """Give all that may be asked for, with its labels: metrics of the code, recorded series, and those elsewhere."""
    recorded: dict[str, Labels] = {rule["record"]: {} for rule in rules() if "record" in rule}
    return metrics() | recorded | ELSEWHERE


def test_files_are_what_the_code_says() -> None:
    """Every dashboard is committed as the code makes it, and none is left over."""
    assert {path: path.read_text("utf-8") for path in FOLDER.glob("*.json")} == files()


def test_names_are_lasting_and_unique() -> None:
    """A dashboard has a uid that is its file's name, no id of some Grafana, and a title of its own."""
    assert len(BOARDS) == 5
    for name, board in BOARDS.items():
        assert (f"{board['uid']}.json", board["id"], board["tags"]) == (name, None, ["traction"])
    assert len({board["title"] for board in BOARDS.values()}) == len(BOARDS)


@pytest.mark.parametrize("name", BOARDS)
def test_panels_fill_the_grid(name: str) -> None:
    """Panels have ids and titles of their own, overlap nowhere, and leave no hole in a line."""
    board = BOARDS[name]
    all_panels = board["panels"]
    assert len({panel["id"] for panel in all_panels}) == len(all_panels)
    titles = [panel["title"] for panel in panels(board)]
    assert len(set(titles)) == len(titles)
    taken: set[tuple[int, int]] = set()
    for panel in all_panels:
        at = panel["gridPos"]
        cells = set(itertools.product(range(at["x"], at["x"] + at["w"]), range(at["y"], at["y"] + at["h"])))
        assert not cells & taken, panel["title"]
        taken |= cells
    height = max(y for _, y in taken) + 1
    assert taken == set(itertools.product(range(24), range(height)))


@pytest.mark.parametrize("name", BOARDS)
def test_every_panel_explains_itself(name: str) -> None:
    """Each panel has a description that says what is good, a unit, and what stands there when there is nothing."""
    for panel in panels(BOARDS[name]):
        assert panel["description"].endswith("."), panel["title"]
        if panel["type"] == "text":
            assert "](https://" in panel["options"]["content"]
            continue
        assert re.search(r"\b(good|better|Must be)\b", panel["description"], re.IGNORECASE), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["type"] == "heatmap" or panel["fieldConfig"]["defaults"]["noValue"], panel["title"]


@pytest.mark.parametrize("name", BOARDS)
def test_data_sources_and_variables_are_chosen(name: str) -> None:
    """No panel is bound to one Grafana's data source; what a query names as a variable, the dashboard has."""
    board = BOARDS[name]
    there = {variable["name"] for variable in board["templating"]["list"]}
    assert {"datasource", "fleet", "namespace", "job"} <= there <= ANYTHING.keys()
    source = {"type": "prometheus", "uid": "${datasource}"}
    for panel in panels(board):
        if panel["type"] != "text":
            assert [panel["datasource"], *(target["datasource"] for target in panel["targets"])] == [source] * (
                1 + len(panel["targets"])
            )
    for each in asked(board):
        assert variables(each.expr) <= there | WINDOWS.keys(), each.where
    for query, label in choices(board).values():
        (selector,) = selectors(filled(query))
        assert label in known()[selector.name or ""].keys() | OF_THE_SCRAPE


def _wrong(each: Asked) -> Iterator[str]:
    """Tell what a query asks for that is not there."""
    found = list(selectors(filled(each.expr)))
    for selector in found:
        name = selector.name or ""
        labels = known().get(name)
        if labels is None:
            yield f"{name} is nowhere"
            continue
        for matcher in selector.matchers.matchers:
            if matcher.name not in labels.keys() | OF_THE_SCRAPE:
                yield f"{name} has no label {matcher.name}"
            values = labels.get(matcher.name)
            if values is not None and matcher.op in (promql.MatchOp.Equal, promql.MatchOp.NotEqual):
                yield from () if matcher.value in values else (f"{name} has no {matcher.name}={matcher.value}",)
    whole = OF_THE_SCRAPE.union(*(known().get(selector.name or "", {}) for selector in found))
    grouped = {label for group in re.findall(r"by \(([^)]*)\)", each.expr) for label in group.split(", ")}
    yield from (f"nothing has the label {label}" for label in grouped - whole)
    yield from (f"no series has the label {label}" for label in set(re.findall(r"{{(\w+)}}", each.legend)) - grouped)


@pytest.mark.parametrize("name", BOARDS)
def test_queries_ask_for_what_is_there(name: str) -> None:
    """Each query parses; its metrics are in the code, the rules or Prometheus, and so are labels and their values."""
    assert [(each.where, wrong) for each in asked(BOARDS[name]) for wrong in _wrong(each)] == []


@pytest.mark.parametrize("name", BOARDS)
def test_queries_keep_to_the_scope_and_the_windows(name: str) -> None:
    """Each query heeds the variables; a window is Grafana's, or a day for what is rare; counters are never bare."""
    for each in asked(BOARDS[name]):
        assert "$fleet" in each.expr, each.where
        assert set(re.findall(r"\[([^\]]+)\]", each.expr)) <= {"$__rate_interval", "$__range", "1d"}, each.where
        for counter in re.findall(r"\btraction_\w+_(?:total|bucket|count)\b", each.expr):
            assert re.search(rf"\b(rate|increase)\({counter}\{{", each.expr), each.where
        assert not (each.instant and "$__rate_interval" in each.expr), each.where


def test_every_metric_is_drawn() -> None:
    """Each metric of the code is on a dashboard."""
    drawn = {selector.name for each in everything_asked() for selector in selectors(filled(each.expr))}
    shown = {re.sub(r"_(bucket|count)$", "", name or "") for name in drawn}
    assert {each.name for each in listed()} <= shown


def test_links_lead_somewhere() -> None:
    """Links to runbooks are those of alerts that exist, and other links of pages and headings that do."""
    alerts = {rule["alert"].lower() for rule in rules() if "alert" in rule}
    text = "".join(path.read_text("utf-8") for path in FOLDER.glob("*.json"))
    links = set(re.findall(rf"{re.escape(PAGES)}/([^)\"\s]*)", text))
    assert len(links) > 40
    for link in links - {"runbooks.md#${__value.text}"}:
        page, _, anchor = link.partition("#")
        lines = (RUNBOOKS.parent / page).read_text("utf-8").splitlines()
        headings = {
            re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower()).replace(" ", "-") for line in lines if line[:1] == "#"
        }
        assert not anchor or anchor in headings, link
        assert page != "runbooks.md" or not anchor or anchor in alerts, link
    assert {rule["annotations"]["runbook_url"].partition("/runbooks")[0] for rule in rules() if "alert" in rule} == {
        PAGES
    }


def test_objectives_are_those_of_the_rules() -> None:
    """The limits that panels draw are those that alerts fire at."""
    expr = {rule["alert"]: rule["expr"] for rule in rules() if "alert" in rule}
    recorded = {rule["record"]: rule["expr"] for rule in rules() if "record" in rule}
    for objective in (slo.IN_TIME, slo.RESPONDED, slo.READABLE, slo.ANSWERED):
        assert f"{objective.over('1h')} > {slo.FAST_BURN:g} * {objective.bad:g}" in expr[objective.alert]
        assert f"{objective.over('3d')} > {objective.bad:g}" in expr[objective.ticket]
        assert objective.over("30d") in recorded
    assert f'le="{slo.ALERT_SECONDS}"' in recorded[slo.IN_TIME.over("5m")]
    assert f'le="{slo.RESPONSE_SECONDS}"' in recorded[slo.RESPONDED.over("5m")]
    assert slo.WORKER in recorded[slo.READABLE.over("5m")]
    for alert, limit in (
        ("TractionBehind", slo.BEHIND_SECONDS),
        ("TractionNotCommitting", slo.COMMIT_AGE_SECONDS),
        ("TractionCommitsSlow", slo.COMMIT_SECONDS),
        ("TractionGatewaySlow", slo.PUBLISH_SECONDS),
        ("TractionVerdictsBehind", slo.VERDICTS_SECONDS),
        ("TractionSinkBehind", slo.QUEUE_SECONDS),
        ("TractionFalseAlarms", slo.FALSE_SHARE),
        ("TractionTasksFlapping", slo.FLAPPING_SHARE),
        ("TractionSpinScoreHigh", slo.SPINNING_SHARE),
        ("TractionProcessorFull", slo.FULL_CORE),
    ):
        assert re.search(rf"> {limit:g}(\s|$)", expr[alert]), alert
    assert f"> {slo.LIVE_SHARE:g} * traction_live_states_limit" in expr["TractionLiveSessionsHigh"]
    assert f"< {slo.CERTIFICATE_SECONDS // 86_400} * 86400" in expr["TractionCertificateExpiring"]


def test_provisioning_suits_the_scrapes() -> None:
    """Grafana is told of dashboards that nobody edits there, and of a data source with the interval of the scrapes."""
    (provider,) = _read("dashboards/traction.yaml")["providers"]
    assert (provider["type"], provider["allowUiUpdates"]) == ("file", False)
    (source,) = _read("datasources/prometheus.yaml")["datasources"]
    scrapes = yaml.safe_load((RULES.parent / "prometheus.yaml").read_text("utf-8"))["global"]["scrape_interval"]
    assert (source["type"], source["jsonData"]["timeInterval"]) == ("prometheus", scrapes)


def test_the_page_puts_them_where_grafana_looks(tmp_path: Path) -> None:
    """The commands of the page copy every dashboard to the folder that the provisioning names, and the provisioning."""
    page = (RUNBOOKS.parent / "dashboards.md").read_text("utf-8")
    (copying,) = re.findall(r"```sh dashboards\n(.*?)```", page, re.DOTALL)
    (provider,) = _read("dashboards/traction.yaml")["providers"]
    (tmp_path / "etc" / "grafana" / "provisioning").mkdir(parents=True)
    here = re.sub(r" /(var|etc)/", rf" {tmp_path}/\1/", copying)
    subprocess.run(["/bin/sh", "-eu", "-c", here], cwd=FOLDER.parents[1], check=True)
    copied = {path.name for path in Path(f"{tmp_path}{provider['options']['path']}").iterdir()}
    assert copied == BOARDS.keys()
    assert (tmp_path / "etc/grafana/provisioning/datasources/prometheus.yaml").exists()
    assert all(f"`{board['uid']}`" in page for board in BOARDS.values())
    assert "tests/deploy/test_dashboards_drawn.py" in page
    assert (Path(__file__).parent / "test_dashboards_drawn.py").exists()


def _read(path: str) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((FOLDER / "provisioning" / Path(path)).read_text("utf-8"))
    assert read["apiVersion"] == 1
    return read
