"""The list of metrics says what is on the pages, and the command prints it for people and for scripts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, get_args

import pytest
from click.testing import CliRunner
from prometheus_client import CollectorRegistry

from detectors.limits import DetectorName
from schemas.invalid import Reason
from streams.cli import traction
from streams.metric_list import PROCESSES, listed
from streams.metrics import SECONDS_TO_ALERT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from click.testing import Result

    from streams.metric_list import Listed, Process

LARGEST_PAGE = 1_500
"""Series of a process without what a deployment names; a hundred processes are then no trouble to a Prometheus."""


@pytest.fixture
def by_name() -> dict[str, Listed]:
    """Give the metrics of all processes."""
    return {one.name: one for one in listed()}


def run(*arguments: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(traction, ["metrics", *arguments], prog_name="traction")


@pytest.mark.parametrize("process", PROCESSES)
def test_the_list_is_the_page(process: Process) -> None:
    """Whatever is ours on a process's page is listed with its type, help and labels, and nothing else."""
    registry = CollectorRegistry()
    PROCESSES[process](registry)
    families = {family.name: family for family in registry.collect() if family.name.startswith("traction_")}
    found = {one.name.removesuffix("_total") if one.type == "counter" else one.name: one for one in listed(process)}
    assert found.keys() == families.keys()
    for name, one in found.items():
        assert (one.type, one.help) == (families[name].type, families[name].documentation)
        for sample in families[name].samples:
            assert one.labels.keys() == sample.labels.keys() - {"le"}
            for label, values in one.labels.items():
                assert values is None or sample.labels[label] in values
    assert sum(len(family.samples) for family in families.values()) < LARGEST_PAGE


def test_what_several_processes_have_is_listed_once(by_name: dict[str, Listed]) -> None:
    """With the pages that it is on, and with the values of all of them, unless one is asked for."""
    events = by_name["traction_events_total"]
    assert len(by_name) == len(listed())
    assert events.pages == ("worker", "escalate", "bridge")
    topics = set(events.labels["topic"] or ())
    assert {"agent.tool-calls", "agent.alerts", "otlp_spans"} < topics
    (own,) = [one for one in listed("bridge") if one.name == "traction_events_total"]
    assert own.labels == {"topic": ("otlp_spans", "otlp_logs"), "result": ("applied", "dead")}
    assert own.pages == events.pages


def test_sets_units_and_buckets(by_name: dict[str, Listed]) -> None:
    """Closed sets are given whole, what is not known before is left open, a unit is that of the name."""
    assert by_name["traction_dead_letters_total"].labels == {"reason": get_args(Reason)}
    reasons = by_name["traction_terminations_total"].labels["reason"]
    assert reasons == (*get_args(DetectorName), "person")
    assert by_name["traction_tasks_total"].labels == {"repo": None, "role": None, "task_type": None}
    assert by_name["traction_sink_deliveries_total"].labels["sink"] is None
    assert by_name["traction_gateway_requests_total"].labels["code"] is None
    assert by_name["traction_append_to_alert_seconds"].buckets == SECONDS_TO_ALERT
    units = {name: by_name[f"traction_{name}"].unit for name in ("commit_duration_seconds", "live_tasks")}
    assert units == {"commit_duration_seconds": "seconds", "live_tasks": ""}
    assert by_name["traction_saved_cost_usd_total"].unit == "US dollars"


@pytest.mark.parametrize("arguments", [(), ("--process", "ingest")])
def test_the_command_for_scripts(arguments: Sequence[str]) -> None:
    """One metric on each line, as it is in the code."""
    result = run("--json", *arguments)
    wanted = listed("ingest" if arguments else None)
    assert result.exit_code == 0
    assert [json.loads(line)["name"] for line in result.stdout.splitlines()] == [one.name for one in wanted]
    first = json.loads(result.stdout.splitlines()[0])
    assert first.keys() == {"name", "type", "labels", "unit", "help", "pages", "buckets"}


def test_the_command_for_people() -> None:
    """Each metric with its type, unit, pages, help, labels and buckets."""
    result = run("--process", "escalate")
    assert result.exit_code == 0
    assert "traction_saved_tokens_total  (counter, tokens; escalate)\n" in result.stdout
    assert "    kind: measured, estimated\n    by: termination, directive\n" in result.stdout
    assert "    buckets: 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60\n" in result.stdout
    assert "    repo\n    role\n    task_type\n" in result.stdout
    assert "traction_spin_score" not in result.stdout


def test_another_process_is_wrong_use() -> None:
    """What may be chosen is told."""
    result = run("--process", "demo")
    assert result.exit_code == 2
    assert "'worker', 'escalate', 'ingest', 'bridge'" in result.stderr
