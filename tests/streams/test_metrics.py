"""The metrics keep Prometheus' conventions, no label grows without a bound, and pages tell of what is theirs."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, get_args

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from detectors.limits import DetectorName
from detectors.tasks.facts import Word
from schemas.invalid import Reason
from schemas.outputs import Action, Fitness, Level, NotificationKind
from streams.escalation.metrics import (
    ANSWERED,
    ATTEMPTS,
    MAX_COMBINATIONS,
    MAX_NAMES,
    SECONDS_OF_RESTORE,
    EscalationMetrics,
)
from streams.escalation.savings import Basis, By
from streams.health import Health
from streams.labels import MAX_LABEL_VALUES, OTHER
from streams.metric_list import PROCESSES
from streams.metrics import RECORDS_OF_BATCH, SECONDS_OF_COMMIT, SECONDS_TO_ALERT, ConsumerMetrics
from streams.sinks.metrics import SECONDS_TO_DELIVERY
from streams.worker.metrics import EVENT_RESULTS, SPIN_SCORES, TaskEventKind, WorkerMetrics

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from prometheus_client import Metric

    from streams.metric_list import Process

NOW = datetime(2026, 3, 1, tzinfo=UTC)

TOPICS = ("agent.tool-calls", "agent.control")

CLOSED_LABELS = {
    *("topic", "partition", "result", "kind", "level", "detector", "reason", "action", "version", "python"),
    *("word", "answered", "attempt", "model", "config", "outcome", "sink", "copy", "table", "by"),
    *("repo", "role", "task_type", "route", "code", "signal", "what", "certificate"),
}
"""Labels whose values a deployment or the code limits. Sessions, agents, tools and texts are not among them."""

NOT_BASE_UNITS = re.compile(r"_(ms|millis|milliseconds|micros|minutes|hours|days|kb|mb|kilobytes|percent)(_|$)")


def page_of(process: Process) -> CollectorRegistry:
    """Give a registry with a process's metrics."""
    registry = CollectorRegistry()
    PROCESSES[process](registry)
    return registry


each_process = pytest.mark.parametrize("process", PROCESSES)


def ours(registry: CollectorRegistry) -> Iterable[Metric]:
    """List the metrics of a page that are ours."""
    text = generate_latest(registry).decode()
    return [family for family in text_string_to_metric_families(text) if family.name.startswith("traction_")]


@each_process
def test_names_and_helps_keep_the_conventions(process: Process) -> None:
    """Prefix, snake case, base units, `_total` on counters and on nothing else, a help that is a sentence."""
    families = list(ours(page_of(process)))
    assert len(families) >= 15
    for family in families:
        assert re.fullmatch(r"traction(_[a-z0-9]+)+", family.name)
        assert not NOT_BASE_UNITS.search(family.name)
        assert family.documentation.endswith(".")
        for sample in family.samples:
            assert sample.name.endswith("_total") == (family.type == "counter")
            assert not sample.name.endswith("_created"), "doubles the series for nothing"


@each_process
def test_labels_are_of_closed_sets(process: Process) -> None:
    """No label can take whatever somebody sends."""
    for family in ours(page_of(process)):
        for sample in family.samples:
            assert set(sample.labels) - {"le"} <= CLOSED_LABELS


@each_process
def test_the_process_and_the_build_are_shown(process: Process) -> None:
    """Memory, processor time and version are on the page, from our own registry."""
    text = generate_latest(page_of(process)).decode()
    assert "process_resident_memory_bytes" in text
    assert "python_info" in text
    assert re.search(r'traction_build_info\{python="3[^"]*",version="[^"]+"\} 1\.0', text)


@pytest.mark.parametrize(
    ("process", "name", "labels"),
    [
        ("worker", "events_total", {"topic": TOPICS, "result": EVENT_RESULTS}),
        ("worker", "alerts_total", {"level": get_args(Level), "detector": get_args(DetectorName)}),
        ("worker", "dead_letters_total", {"reason": get_args(Reason)}),
        ("worker", "task_events_total", {"kind": get_args(TaskEventKind)}),
        ("worker", "stored_states", {"table": ("sessions", "tasks"), "copy": ("own", "standby")}),
        (
            "escalate",
            "events_total",
            {"topic": ("agent.alerts", "traction-task-events"), "result": ("applied", "dead")},
        ),
        ("escalate", "directives_total", {"action": get_args(Action)}),
        ("escalate", "notifications_total", {"kind": get_args(NotificationKind)}),
        ("escalate", "answers_total", {"word": get_args(Word), "answered": ANSWERED}),
        ("escalate", "terminations_total", {"attempt": ATTEMPTS, "reason": (*get_args(DetectorName), "person")}),
        ("escalate", "saved_tokens_total", {"kind": get_args(Basis), "by": get_args(By)}),
        ("escalate", "wasted_tokens_total", {"kind": get_args(Basis)}),
        ("bridge", "events_total", {"topic": ("otlp_spans", "otlp_logs"), "result": ("applied", "dead")}),
    ],
)
def test_what_can_be_counted_begins_at_0(process: Process, name: str, labels: dict[str, tuple[str, ...]]) -> None:
    """A rate over a counter is right from the first event on, for every combination of closed labels."""
    registry = page_of(process)
    for values in itertools.product(*labels.values()):
        assert registry.get_sample_value(f"traction_{name}", dict(zip(labels, values, strict=True))) == 0, values


def test_two_sets_of_metrics_live_side_by_side() -> None:
    """Nothing is registered globally: a test, a demo and two workers in one interpreter do not clash."""
    for process in (*PROCESSES, *PROCESSES):
        page_of(process)


@pytest.mark.parametrize(
    "buckets",
    [SECONDS_TO_ALERT, SECONDS_OF_COMMIT, SECONDS_OF_RESTORE, SECONDS_TO_DELIVERY, RECORDS_OF_BATCH, SPIN_SCORES],
)
def test_buckets_are_few_and_rising(buckets: tuple[float, ...]) -> None:
    """Each bucket is a series for each process."""
    assert list(buckets) == sorted(set(buckets))
    assert len(buckets) <= 14


@pytest.mark.parametrize("objective", [0.1, 1, 5])
def test_objectives_are_edges(objective: float) -> None:
    """The share of alerts and of answers within what is promised can be read off; the range is 10 ms to 60 s."""
    assert objective in SECONDS_TO_ALERT
    assert (SECONDS_TO_ALERT[0], SECONDS_TO_ALERT[-1]) == (0.01, 60)


def test_spin_scores_are_counted_by_tenths_below_1() -> None:
    """A shift of the scores shows before any limit is reached; 1 would be the bucket of all a second time."""
    assert set(SPIN_SCORES) >= {tenths / 10 for tenths in range(1, 10)}
    assert (SPIN_SCORES[0] > 0, SPIN_SCORES[-1] < 1) == (True, True)
    buckets = [
        sample for family in ours(page_of("worker")) for sample in family.samples if "spin_score_bucket" in sample.name
    ]
    assert [sample.labels for sample in buckets] == [{"le": str(edge)} for edge in (*SPIN_SCORES, "+Inf")]


@pytest.mark.parametrize("more", [0, 1, 5])
def test_so_many_configurations_are_told_apart(more: int) -> None:
    """The busiest have series of their own, all others one together; nothing is lost, and what is gone goes."""
    registry = CollectorRegistry()
    metrics = EscalationMetrics(registry)
    names = [f"m{number:03}" for number in range(MAX_LABEL_VALUES + more)]
    counts = [
        Fitness(fitness_id=name, model=name, partition=0, tasks=9 - (number >= MAX_LABEL_VALUES), updated_at=NOW)
        for number, name in enumerate(names)
    ]
    metrics.fare(counts)
    (family,) = [each for each in ours(registry) if each.name == "traction_fitness_tasks"]
    tried = {sample.labels["model"]: sample.value for sample in family.samples if sample.labels["result"] == "tried"}
    assert tried.keys() == {*names[:MAX_LABEL_VALUES], *([OTHER] if more else [])}
    assert sum(tried.values()) == sum(each.tasks for each in counts)
    metrics.fare(counts[:1])
    (family,) = [each for each in ours(registry) if each.name == "traction_fitness_tasks"]
    assert {sample.labels["model"] for sample in family.samples} == {"m000"}


def test_a_partition_that_is_given_up_leaves_the_page() -> None:
    """Two processes must not both show a partition's lag."""
    registry = CollectorRegistry()
    metrics = EscalationMetrics(registry)
    metrics.lag_records.labels("t", "0").set(3)
    metrics.lag_records.labels("t", "1").set(4)
    metrics.forget_partition("t", 0)
    assert registry.get_sample_value("traction_consumer_lag_records", {"topic": "t", "partition": "0"}) is None
    assert registry.get_sample_value("traction_consumer_lag_records", {"topic": "t", "partition": "1"}) == 4


@pytest.mark.parametrize("over", [0, 1])
def test_names_of_tasks_are_bounded(over: int) -> None:
    """So many repositories are told apart, and so many combinations; what is beyond is `other`, and counted."""
    metrics, registry = escalation_metrics()
    for number in range(MAX_NAMES + over):
        metrics.tasks.labels(f"acme/r{number}", "code", "bugfix").inc()
    told = {sample.labels["repo"]: sample.value for sample in samples(registry, "traction_tasks_total")}
    assert told == {f"acme/r{number}": 1 for number in range(MAX_NAMES)} | ({OTHER: 1} if over else {})
    metrics, registry = escalation_metrics()
    rows = [(f"r{number % 20}", f"a{number // 20}", "t") for number in range(MAX_COMBINATIONS + over)]
    for names in rows:
        metrics.flapping.labels(*names).inc()
    found = [tuple(sample.labels.values()) for sample in samples(registry, "traction_flapping_tasks_total")]
    assert found == [*rows[:MAX_COMBINATIONS], *([(OTHER, OTHER, OTHER)] if over else [])]


def escalation_metrics() -> tuple[EscalationMetrics, CollectorRegistry]:
    """Give the metrics of the escalation consumer, with nothing counted."""
    registry = CollectorRegistry()
    return EscalationMetrics(registry), registry


def samples(registry: CollectorRegistry, name: str) -> list[Any]:
    """Give the samples of a name."""
    return [sample for family in registry.collect() for sample in family.samples if sample.name == name]


def test_health_is_shown_as_it_is_at_the_scrape() -> None:
    """What the pages of health say can be alerted on."""
    registry, health = CollectorRegistry(), Health(("broker",), clock=lambda: now, stall_seconds=10)
    ConsumerMetrics(registry).watch_health(health)
    now = 0.0

    def shown() -> tuple[float | None, float | None]:
        return registry.get_sample_value("traction_ready"), registry.get_sample_value("traction_healthy")

    assert shown() == (0, 1)
    health.hold("broker")
    assert shown() == (1, 1)
    for _ in range(6):
        health.progress("calls-0", 3, 9)
        now += 2.4
    assert shown() == (0, 0)


def test_room_on_a_disk_that_is_gone_is_not_known(tmp_path: Path) -> None:
    """A page is served all the same; where states are in memory there is no disk on it."""
    registry = CollectorRegistry()
    metrics = WorkerMetrics(registry)
    assert registry.get_sample_value("traction_state_disk_free_bytes") is None
    directory = tmp_path / "states"
    directory.mkdir()
    metrics.watch_disk(directory)
    free, size = (registry.get_sample_value(f"traction_state_disk_{of}_bytes") for of in ("free", "size"))
    assert free is not None
    assert size is not None
    assert 0 < free < size
    directory.rmdir()
    assert "traction_state_disk_free_bytes NaN" in generate_latest(registry).decode()


@pytest.mark.tools
@each_process
def test_promtool_finds_nothing_to_say_about_the_pages(process: Process) -> None:
    """Prometheus' own linter accepts the page of each process."""
    promtool = shutil.which("promtool")
    assert promtool is not None, "promtool is missing: run make test-tools, which installs it"
    text = generate_latest(page_of(process)).decode()
    assert "traction_build_info" in text
    verdict = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (verdict.returncode, verdict.stdout, verdict.stderr) == (0, "", "")
