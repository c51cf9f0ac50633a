"""The rules are sound: each alert has cases that fire and that do not, and no rule names what nobody measures."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from streams.metric_list import listed
from tests.deploy.monitoring import FOLDER, fast, promtool, tool

GRAFANA = FOLDER.parent / "grafana"
CASES = sorted((FOLDER / "tests").glob("*.yaml"))
RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load((FOLDER / "rules.yaml").read_text())["groups"] for rule in group["rules"]
]
ALERTS = {rule["alert"]: rule for rule in RULES if "alert" in rule}
RECORDED = {rule["record"] for rule in RULES if "record" in rule}

OF_PROMETHEUS = {"up", "ALERTS"}
OF_PYTHON = {
    *("process_start_time_seconds", "process_cpu_seconds_total", "process_open_fds", "process_max_fds"),
    *("process_resident_memory_bytes", "process_virtual_memory_bytes"),
}
"""What the Python client measures of its process on Linux, as far as it is looked at."""

TEXTS = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'")
NAME = re.compile(r"(?<![\w:])(?:[a-z]+:)?(?:traction|process|python|up|ALERTS)(?:_\w+|:[\w:]+)?(?:[:\w]+)?(?![\w:(])")


def names(query: str) -> set[str]:
    """Give the metrics that a query reads, histograms without their endings."""
    return {re.sub(r"_(bucket|count|sum)$", "", name) for name in NAME.findall(TEXTS.sub('""', query))}


def known() -> set[str]:
    """Give the names of all metrics there are."""
    return {metric.name for metric in listed()} | OF_PROMETHEUS | OF_PYTHON | RECORDED


def panels() -> dict[str, str]:
    """Give every dashboard's text by its file; none where there are none."""
    return {path.name: path.read_text("utf-8") for path in sorted(GRAFANA.glob("*.json"))}


def test_rules_name_metrics_that_exist() -> None:
    """Every metric in a rule is on the page of some process, or recorded by a rule of the same group."""
    groups = yaml.safe_load((FOLDER / "rules.yaml").read_text())["groups"]
    measured = known() - RECORDED
    for group in groups:
        own = {rule["record"] for rule in group["rules"] if "record" in rule}
        for rule in group["rules"]:
            promql_parser.parse(rule["expr"])
            assert names(rule["expr"]) <= measured | own, rule


def test_a_wrong_name_would_be_noticed() -> None:
    """The check of names can fail: it sees metrics wherever they stand in a query."""
    query = 'sum by (job) (rate(traction_no_such_total{job="traction-worker"}[5m])) / fleet:traction_x:ratio_rate5m'

    assert names(query) == {"traction_no_such_total", "fleet:traction_x:ratio_rate5m"}


def test_every_metric_is_looked_at() -> None:
    """What is measured is in a rule or on a dashboard, and so is what is recorded."""
    text = "\n".join([*(rule["expr"] for rule in RULES), *panels().values()])
    seen = names(text.replace('\\"', '"')) | set(re.findall(r"[\w:]*traction_\w+(?::\w+)?", text))
    seen |= {re.sub(r"_(bucket|count|sum)$", "", name) for name in seen}
    assert {metric.name for metric in listed()} | RECORDED <= seen


def test_labels_exist() -> None:
    """A label that a rule selects by is one that the metric has, with a value that it can have."""
    metrics = {metric.name: metric for metric in listed()}
    added = {"job", "instance", "fleet", "expect_input", "le"}
    for rule in RULES:
        for name, inner in re.findall(r"(traction_\w+)\{([^}]*)\}", rule["expr"]):
            metric = metrics[re.sub(r"_(bucket|count|sum)$", "", name)]
            for label, operator, value in re.findall(r"(\w+)(=~|!~|!=|=)\"([^\"]*)\"", inner):
                assert label in {*metric.labels, *added}, (rule, label)
                values = metric.labels.get(label)
                if label == "le":
                    assert float(value) in metric.buckets, (rule, value)
                elif values is not None and operator in {"=", "!="}:
                    assert value in values, (rule, label, value)


def test_alerts_say_what_is_needed() -> None:
    """Each alert has a severity, a summary, numbers or names in its description, and the section of its runbook."""
    for name, rule in ALERTS.items():
        assert re.fullmatch("Traction[A-Z][A-Za-z]+", name)
        assert rule["labels"]["severity"] in {"page", "ticket", "none"}
        assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
        assert rule["annotations"]["runbook_url"] == (
            f"https://github.com/traction/traction/blob/main/docs/runbooks.md#{name.lower()}"
        )


def test_windows_of_objectives_agree() -> None:
    """The ratios of one objective differ in their window alone."""
    forms = defaultdict(set)
    for rule in RULES:
        found = re.fullmatch(r"(fleet:\w+):ratio_rate(5m|30m|1h|6h|3d|30d)", rule.get("record", ""))
        if found:
            assert f"[{found[2]}]" in rule["expr"]
            forms[found[1]].add(rule["expr"].replace(f"[{found[2]}]", "[W]"))
    assert len(forms) == 4
    assert all(len(each) == 1 for each in forms.values())


def test_each_alert_fires_and_stays_silent_in_a_case() -> None:
    """No alert lacks a case in which it fires, nor one in which it does not."""
    firing: set[str] = set()
    silent: set[str] = set()
    for file in CASES:
        for case in yaml.safe_load(file.read_text())["tests"]:
            for each in case["alert_rule_test"]:
                (firing if each["exp_alerts"] else silent).add(each["alertname"])
    assert firing == silent == set(ALERTS)


def test_inhibitions_name_alerts() -> None:
    """Alertmanager's rules of what is silent while another alert fires name alerts that there are."""
    config = yaml.safe_load((FOLDER / "alertmanager.yaml").read_text())
    for rule in config["inhibit_rules"]:
        for matcher in (*rule["source_matchers"], *rule["target_matchers"]):
            label, _, value = re.fullmatch(r'(\w+)(=~?)"(.*)"', matcher).groups()  # type: ignore[union-attr]
            if label == "alertname":
                before, _, rest = value.partition("(")
                named = {before + each for each in rest.removesuffix(")").split("|")}
                assert named <= set(ALERTS), matcher


@pytest.mark.tools
@pytest.mark.parametrize("text", [pytest.param(str, id="as-they-are"), pytest.param(fast, id="fast")])
def test_promtool_takes_the_rules(text: Any, tmp_path: Path) -> None:
    """Promtool finds nothing to say about them, nor about those that are made short for tests."""
    (tmp_path / "rules.yaml").write_text(text((FOLDER / "rules.yaml").read_text()))

    verdict = promtool("check", "rules", "--lint=all", "--lint-fatal", tmp_path / "rules.yaml")

    assert verdict.returncode == 0, verdict.stderr


@pytest.mark.tools
@pytest.mark.parametrize("file", [pytest.param(file, id=file.stem) for file in CASES])
def test_cases(file: Path, tmp_path: Path) -> None:
    """Each case comes out as promtool is told; only the groups that it is of are evaluated, which is much faster."""
    whole = yaml.safe_load((FOLDER / "rules.yaml").read_text())
    tested = {
        each["alertname"] for case in yaml.safe_load(file.read_text())["tests"] for each in case["alert_rule_test"]
    }
    groups = [group for group in whole["groups"] if any(rule.get("alert") in tested for rule in group["rules"])]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / file.name).write_text(file.read_text())

    verdict = promtool("test", "rules", file.name, folder=tmp_path / "tests")

    assert verdict.returncode == 0, verdict.stdout + verdict.stderr


@pytest.mark.tools
def test_configurations_are_accepted() -> None:
    """Prometheus and Alertmanager take their files, and pages and tickets go their ways."""
    verdict = promtool("check", "config", FOLDER / "prometheus.yaml")
    assert verdict.returncode == 0, verdict.stderr

    def amtool(*words: str) -> str:
        return subprocess.run([tool("amtool"), *words], capture_output=True, text=True, check=True).stdout.strip()

    file = str(FOLDER / "alertmanager.yaml")
    assert "SUCCESS" in amtool("check-config", file)
    assert amtool("config", "routes", "test", f"--config.file={file}", "severity=page") == "pages"
    assert amtool("config", "routes", "test", f"--config.file={file}", "severity=ticket") == "tickets"
    assert amtool("config", "routes", "test", f"--config.file={file}", "severity=none") == "nobody"
