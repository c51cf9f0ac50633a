"""Lists the metrics of every process from the code that makes them, for the command line, the docs and the tests.

It makes each process's metrics on a registry that nobody scrapes, so that the list cannot say otherwise than the pages.
Metrics of Python and of the process itself (`python_…`, `process_…`) are not ours and not listed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeVar, get_args

from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase

from schemas.topics import ALERTS
from streams.escalation.metrics import EscalationMetrics
from streams.gateway.bridge import BridgeSettings
from streams.gateway.metrics import BridgeMetrics, GatewayMetrics
from streams.kafka import KafkaSettings
from streams.metrics import Certificate, ProcessMetrics
from streams.policy.metrics import PolicyMetrics
from streams.sinks.metrics import SinkMetrics
from streams.topics import DEFAULT_APP_ID, task_events_name
from streams.worker.metrics import WorkerMetrics
from streams.worker.settings import WorkerSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from prometheus_client.registry import Collector

Process = Literal["worker", "escalate", "ingest", "bridge"]
"""The commands that serve a page of metrics."""

UNITS: Final = {"seconds": "seconds", "bytes": "bytes", "records": "records", "tokens": "tokens", "usd": "US dollars"}
"""What the last word of a name but for `_total` says of the unit; any other is the noun that is counted."""

OPEN: Final = frozenset({"code", "sink", "version", "python"})
"""Labels whose values are bounded, but not by us: HTTP's codes, the policy's sinks, what is installed."""


@dataclass(frozen=True, slots=True)
class Listed:
    """One metric.

    Attributes:
        name: as queries name it; of a histogram without `_bucket`, `_sum` and `_count`.
        type: counter, gauge or histogram.
        labels: with their values by default settings; None where these are not known before.
        unit: a base unit; empty for a plain number.
        help: what it measures.
        pages: on whose page it is.
        buckets: upper edges of a histogram, but for the infinite one.
    """

    name: str
    type: str
    labels: Mapping[str, tuple[str, ...] | None]
    unit: str
    help: str
    pages: tuple[Process, ...]
    buckets: tuple[float, ...] = ()


class _Listing(CollectorRegistry):
    """A registry that remembers the metrics in the order in which they were made."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[MetricWrapperBase] = []

    def register(self, collector: Collector) -> None:
        """Take a collector in."""
        super().register(collector)
        if isinstance(collector, MetricWrapperBase):
            self.made.append(collector)


Metrics = TypeVar("Metrics", bound=ProcessMetrics)


def _certified(metrics: Metrics) -> Metrics:
    """Have all certificates that a process may have."""
    for each in get_args(Certificate):
        metrics.watch_certificate(each, float)
    return metrics


def _worker(registry: CollectorRegistry) -> None:
    _certified(WorkerMetrics(registry, WorkerSettings().inputs)).watch_disk(Path())
    PolicyMetrics(registry)


def _escalate(registry: CollectorRegistry) -> None:
    topics = (KafkaSettings().topic(ALERTS), task_events_name(DEFAULT_APP_ID))
    SinkMetrics(registry, _certified(EscalationMetrics(registry, topics)).dead_letters).add("")
    PolicyMetrics(registry)


def _ingest(registry: CollectorRegistry) -> None:
    _certified(GatewayMetrics(registry, KafkaSettings()))


def _bridge(registry: CollectorRegistry) -> None:
    _certified(BridgeMetrics(registry, KafkaSettings(), BridgeSettings().topics))


PROCESSES: Final[Mapping[Process, Callable[[CollectorRegistry], None]]] = {
    "worker": _worker,
    "escalate": _escalate,
    "ingest": _ingest,
    "bridge": _bridge,
}
"""For each process what makes its metrics on a registry."""


def listed(process: Process | None = None) -> list[Listed]:
    """List the metrics in the order of the code; what several processes have is listed once, with the values of all.

    Args:
        process: only those on its page, with its own values; None for all.
    """
    found: dict[str, Listed] = {}
    for name, make in PROCESSES.items():
        registry = _Listing()
        make(registry)
        for metric in registry.made:
            one = _listed(metric, name)
            known = found.get(one.name)
            if known is None or name == process:
                found[one.name] = replace(one, pages=(*(known.pages if known else ()), name))
            else:
                labels = one.labels if process is None else {}
                found[one.name] = replace(known, pages=(*known.pages, name), labels=_both(known.labels, labels))
    return [one for one in found.values() if process is None or process in one.pages]


def _both(
    some: Mapping[str, tuple[str, ...] | None], others: Mapping[str, tuple[str, ...] | None]
) -> dict[str, tuple[str, ...] | None]:
    return {
        label: None if values is None else tuple(dict.fromkeys((*values, *(others.get(label) or ()))))
        for label, values in some.items()
    }


def _listed(metric: MetricWrapperBase, process: Process) -> Listed:
    (family,) = metric.collect()
    names: tuple[str, ...] = metric._labelnames  # noqa: SLF001 - there is no public way
    values = {label: tuple(dict.fromkeys(sample.labels[label] for sample in family.samples)) for label in names}
    return Listed(
        name=f"{family.name}_total" if family.type == "counter" else family.name,
        type=family.type,
        labels={label: None if label in OPEN else found or None for label, found in values.items()},
        unit=UNITS.get(family.name.rpartition("_")[2], ""),
        help=family.documentation,
        pages=(process,),
        buckets=tuple(getattr(metric, "_upper_bounds", ()))[:-1],
    )
