"""What the gateway and the bridge measure, as Prometheus metrics on a registry of their own.

Labels' values come from closed sets: routes and reasons are ours, codes HTTP's. Nothing in here decides or logs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from prometheus_client import Counter, Gauge, Histogram

from schemas.invalid import Reason
from streams.gateway.items import TAKEN
from streams.labels import Bounded, create
from streams.metrics import SECONDS_TO_ALERT, ConsumerMetrics, ProcessMetrics
from streams.otlp.items import RefusalReason
from streams.otlp.mapped import Lacking, Passed
from streams.verdicts.model import Step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from prometheus_client import CollectorRegistry

    from streams.kafka import KafkaSettings
    from streams.otlp import Mapped, Refusal

Signal = Literal["traces", "logs"]
"""OpenTelemetry's signals that are read."""

RESULTS = ("accepted", "refused")

ROUTES = ("events", "traces", "logs", "hooks", "verdict", "answers", "other")


class OtlpMetrics:
    """What is measured of OpenTelemetry's spans and log records, wherever they come from.

    Args:
        registry: where the metrics are registered.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._passed = Counter(
            "traction_otlp_passed_total",
            "Spans and log records that gave no event, by reason.",
            ["signal", "reason"],
            registry=registry,
        )
        create(self._passed, get_args(Signal), get_args(Passed))
        self._lacking = Counter(
            "traction_otlp_lacking_total",
            "Events of spans and log records that came without something: detectors that need it abstain.",
            ["signal", "what"],
            registry=registry,
        )
        create(self._lacking, get_args(Signal), get_args(Lacking))
        self._refused = Counter(
            "traction_otlp_refused_total",
            "Spans and log records that cannot be read, by reason.",
            ["signal", "reason"],
            registry=registry,
        )
        create(self._refused, get_args(Signal), get_args(RefusalReason))

    def count(self, signal: Signal, mapped: Mapped, refused: list[Refusal]) -> None:
        """Count what became of one request or record."""
        for passed, count in mapped.passed.items():
            self._passed.labels(signal, passed).inc(count)
        for lacking, count in mapped.lacking.items():
            self._lacking.labels(signal, lacking).inc(count)
        for each in refused:
            self._refused.labels(signal, each.reason).inc(each.count)


def _events(registry: CollectorRegistry, kafka: KafkaSettings) -> Bounded[Counter]:
    counter = Counter(
        "traction_gateway_events_total",
        "Events by topic: acknowledged by the brokers, or refused.",
        ["topic", "result"],
        registry=registry,
    )
    return Bounded(create(counter, [kafka.topic(topic) for topic in TAKEN], RESULTS))


class GatewayMetrics(ProcessMetrics):
    """What the gateway measures.

    Args:
        registry: where the metrics are registered.
        kafka: gives the topics' names.
    """

    def __init__(self, registry: CollectorRegistry, kafka: KafkaSettings) -> None:
        super().__init__(registry)
        requests = Counter(
            "traction_gateway_requests_total",
            "Requests answered, by route and status.",
            ["route", "code"],
            registry=registry,
        )
        self.requests = Bounded(create(requests, ROUTES, ("200",)))
        self.events = _events(registry, kafka)
        self.refused = Counter(
            "traction_gateway_refused_total", "Events refused, by reason.", ["reason"], registry=registry
        )
        create(self.refused, get_args(Reason))
        self._requests_now = Gauge(
            "traction_gateway_in_flight_requests", "Requests that are not answered yet.", registry=registry
        )
        self._bytes_now = Gauge(
            "traction_gateway_in_flight_bytes",
            "Bytes of requests that are not answered, and of events that are not acknowledged yet.",
            registry=registry,
        )
        self.publish_seconds = Histogram(
            "traction_gateway_publish_seconds",
            "Time from handing a request's events to the Kafka client to the brokers' acknowledgement of the last.",
            buckets=SECONDS_TO_ALERT,
            registry=registry,
        )
        self.unacknowledged = Counter(
            "traction_gateway_unacknowledged_total",
            "Requests whose events brokers did not acknowledge in time, or that were refused since they were away.",
            registry=registry,
        )
        self.verdicts = create(
            Counter(
                "traction_gateway_verdicts_total",
                "Verdicts given to agents, but for those that ask nothing, by what they say and the route.",
                ["action", "route"],
                registry=registry,
            ),
            [step for step in get_args(Step) if step != "go_on"],
            ("events", "hooks", "verdict"),
        )
        self._verdicts_behind = Gauge(
            "traction_verdicts_behind_seconds",
            "How old what is known of directives and terminations may be: since all that was on the topics was known "
            "last, as it was looked at every 5 s.",
            registry=registry,
        )
        self.producer_renewals = Counter(
            "traction_gateway_producer_renewals_total",
            "Times that the Kafka client was made anew since it had given up.",
            registry=registry,
        )
        self.otlp = OtlpMetrics(registry)

    def watch_verdicts(self, behind: Callable[[], float]) -> None:
        """Show how far the verdicts are behind, in seconds, asked at each scrape."""
        self._verdicts_behind.set_function(behind)

    def watch(self, requests: Callable[[], float], held: Callable[[], float]) -> None:
        """Show what is in flight, asked at each scrape."""
        self._requests_now.set_function(requests)
        self._bytes_now.set_function(held)


class BridgeMetrics(ConsumerMetrics):
    """What the bridge measures.

    Args:
        registry: where the metrics are registered.
        kafka: gives the names of the topics that are written.
        topics: those that are read.
    """

    def __init__(self, registry: CollectorRegistry, kafka: KafkaSettings, topics: Iterable[str] = ()) -> None:
        super().__init__(registry, topics)
        self.written = _events(registry, kafka)
        self.otlp = OtlpMetrics(registry)
