"""The metrics keep Prometheus' conventions, and no label grows without a bound."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from detectors.limits import DetectorName
from detectors.tasks.facts import Word
from schemas.outputs import Action, Fitness, NotificationKind
from streams.escalation.metrics import ANSWERED, ATTEMPTS, SECONDS_OF_RESTORE, EscalationMetrics
from streams.kafka import KafkaSettings
from streams.metrics import (
    EVENT_RESULTS,
    MAX_LABEL_VALUES,
    OTHER,
    RECORDS_OF_BATCH,
    SECONDS_OF_COMMIT,
    SECONDS_TO_ALERT,
    SPIN_SCORES,
    Bounded,
    TaskEventKind,
    WorkerMetrics,
)
from streams.sinks.metrics import SinkMetrics
from streams.topics import create_topics

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

    from prometheus_client import Metric

NOW = datetime(2026, 3, 1, tzinfo=UTC)

TOPICS = ("agent.tool-calls", "agent.control")

CLOSED_LABELS = {
    *("topic", "partition", "result", "kind", "level", "detector", "reason", "action", "version", "python"),
    *("word", "answered", "attempt", "model", "config", "outcome", "sink", "copy"),
}
"""Labels whose values a deployment or the code limits. Sessions, agents, tools and texts are not among them."""

NOT_BASE_UNITS = re.compile(r"_(ms|millis|milliseconds|micros|minutes|hours|days|kb|mb|kilobytes|percent)(_|$)")


def worker() -> CollectorRegistry:
    """Give a registry with the worker's metrics."""
    registry = CollectorRegistry()
    WorkerMetrics(registry, TOPICS)
    return registry


def escalation() -> CollectorRegistry:
    """Give a registry with the escalation consumer's metrics."""
    registry = CollectorRegistry()
    EscalationMetrics(registry)
    SinkMetrics(registry).add("team")
    return registry


both = pytest.mark.parametrize("make", [worker, escalation])


def ours(registry: CollectorRegistry) -> Iterable[Metric]:
    """List the metrics of a page that are ours."""
    text = generate_latest(registry).decode()
    return [family for family in text_string_to_metric_families(text) if family.name.startswith("traction_")]


@both
def test_names_and_helps_keep_the_conventions(make: Callable[[], CollectorRegistry]) -> None:
    """Prefix, snake case, base units, `_total` on counters and on nothing else, a help that is a sentence."""
    families = list(ours(make()))
    assert len(families) >= 15
    for family in families:
        assert re.fullmatch(r"traction(_[a-z0-9]+)+", family.name)
        assert not NOT_BASE_UNITS.search(family.name)
        assert family.documentation.endswith(".")
        for sample in family.samples:
            assert sample.name.endswith("_total") == (family.type == "counter")
            assert not sample.name.endswith("_created"), "doubles the series for nothing"


@both
def test_labels_are_of_closed_sets(make: Callable[[], CollectorRegistry]) -> None:
    """No label can take whatever somebody sends."""
    for family in ours(make()):
        for sample in family.samples:
            assert set(sample.labels) - {"le"} <= CLOSED_LABELS


@both
def test_the_process_and_the_build_are_shown(make: Callable[[], CollectorRegistry]) -> None:
    """Memory, processor time and version are on the page, from our own registry."""
    text = generate_latest(make()).decode()
    assert "process_resident_memory_bytes" in text
    assert "python_info" in text
    assert re.search(r'traction_build_info\{python="3[^"]*",version="[^"]+"\} 1\.0', text)


def test_what_can_be_counted_begins_at_0() -> None:
    """A rate over a counter is right from the first event on, for every closed label."""
    registry = worker()
    for topic in TOPICS:
        for result in EVENT_RESULTS:
            assert registry.get_sample_value("traction_events_total", {"topic": topic, "result": result}) == 0
    for level in ("notice", "warn", "terminate", "recovered"):
        for detector in get_args(DetectorName):
            labels = {"level": level, "detector": detector}
            assert registry.get_sample_value("traction_alerts_total", labels) == 0
    assert registry.get_sample_value("traction_dead_letters_total", {"reason": "not_json"}) == 0
    for kind in get_args(TaskEventKind):
        assert registry.get_sample_value("traction_task_events_total", {"kind": kind}) == 0
    for name, label, values in (
        ("traction_directives_total", "action", get_args(Action)),
        ("traction_notifications_total", "kind", get_args(NotificationKind)),
        ("traction_terminations_total", "attempt", ATTEMPTS),
    ):
        for value in values:
            assert escalation().get_sample_value(name, {label: value}) == 0
    for word in get_args(Word):
        for answered in ANSWERED:
            labels = {"word": word, "answered": answered}
            assert escalation().get_sample_value("traction_answers_total", labels) == 0


def test_two_sets_of_metrics_live_side_by_side() -> None:
    """Nothing is registered globally: a test, a demo and two workers in one interpreter do not clash."""
    worker()
    worker()
    escalation()


@pytest.mark.parametrize(
    "buckets", [SECONDS_TO_ALERT, SECONDS_OF_COMMIT, SECONDS_OF_RESTORE, RECORDS_OF_BATCH, SPIN_SCORES]
)
def test_buckets_are_few_and_rising(buckets: tuple[float, ...]) -> None:
    """Each bucket is a series for each process."""
    assert list(buckets) == sorted(set(buckets))
    assert len(buckets) <= 14


def test_the_objective_is_an_edge() -> None:
    """The share of alerts within 0.1 s can be read off, and the range reaches from 10 ms to 60 s."""
    assert 0.1 in SECONDS_TO_ALERT
    assert (SECONDS_TO_ALERT[0], SECONDS_TO_ALERT[-1]) == (0.01, 60)


def test_spin_scores_are_counted_by_tenths_below_1() -> None:
    """A shift of the scores shows before any limit is reached; 1 would be the bucket of all a second time."""
    assert set(SPIN_SCORES) >= {tenths / 10 for tenths in range(1, 10)}
    assert (SPIN_SCORES[0] > 0, SPIN_SCORES[-1] < 1) == (True, True)
    buckets = [sample for family in ours(worker()) for sample in family.samples if "spin_score_bucket" in sample.name]
    assert [sample.labels for sample in buckets] == [{"le": str(edge)} for edge in (*SPIN_SCORES, "+Inf")]


@given(values=st.lists(st.text(min_size=1, max_size=5), max_size=60), limit=st.integers(0, 5))
def test_a_capped_label_takes_so_many_values_and_loses_nothing(values: list[str], limit: int) -> None:
    """Beyond the limit values count as `other`; the sum is what was counted."""
    registry = CollectorRegistry()
    counter = Bounded(Counter("traction_x", "X.", ["fixed", "name"], registry=registry), limit)
    for value in values:
        counter.labels("f", value).inc()
    (family,) = [each for each in registry.collect() if each.name == "traction_x"]
    counted: dict[Any, float] = {
        sample.labels["name"]: sample.value for sample in family.samples if sample.name == "traction_x_total"
    }
    assert sum(counted.values()) == len(values)
    assert len(counted.keys() - {OTHER}) <= limit
    for value in list(dict.fromkeys(each for each in values if each != OTHER))[:limit]:
        assert counted[value] == values.count(value)


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


@pytest.fixture
async def serving(bootstrap: str, prefix: str) -> AsyncIterator[Callable[[str], Awaitable[str]]]:
    """Give a starter of processes, which returns the address of their pages; none outlives the test."""
    name = prefix.rstrip(".")
    await create_topics(KafkaSettings(bootstrap=bootstrap, prefix=prefix), partitions=2, app_id=name)
    started: list[subprocess.Popen[str]] = []

    async def begin(command: str) -> str:
        place = ["--bootstrap", bootstrap, "--prefix", prefix, "--port", "0", "--app-id", name]
        process = subprocess.Popen(  # noqa: ASYNC220 - returns at once
            [str(Path(sys.executable).parent / "traction"), command, *place],
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        line = await asyncio.to_thread(process.stdout.readline)
        assert "ready" in line
        return line.split()[-1]

    yield begin
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.parametrize("command", ["worker", "escalate"])
async def test_running_processes_show_their_pages(serving: Callable[[str], Awaitable[str]], command: str) -> None:
    """Each process says where its pages are once it is ready, and all three are there."""
    url = await serving(command)
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{url}/healthz") as answer:
            assert answer.status == 200
        async with session.get(f"{url}/readyz") as answer:
            assert answer.status in {200, 503}, "the brokers may not have been asked yet"
        async with session.get(f"{url}/metrics") as answer:
            text = await answer.text()
    names = {family.name for family in text_string_to_metric_families(text)}
    assert {"traction_assigned_partitions", "traction_consumer_lag_records", "traction_dead_letters"} <= names
    assert "traction_build_info 1.0" in re.sub(r"\{.*\}", "", text)


@pytest.mark.tools
@pytest.mark.parametrize("command", ["worker", "escalate"])
async def test_promtool_finds_nothing_to_say_about_the_pages(
    serving: Callable[[str], Awaitable[str]], command: str
) -> None:
    """Prometheus' own linter accepts the page of each running process."""
    promtool = shutil.which("promtool")
    assert promtool is not None, "promtool is missing: run make test-tools, which installs it"
    url = await serving(command)
    async with aiohttp.ClientSession() as session, session.get(f"{url}/metrics") as answer:
        text = await answer.text()
    assert "traction_build_info" in text
    verdict = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)  # noqa: ASYNC221 - nothing else runs meanwhile
    assert (verdict.returncode, verdict.stdout, verdict.stderr) == (0, "", "")
