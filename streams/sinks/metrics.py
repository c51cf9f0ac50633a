"""What the sinks measure, one value of the label ``sink`` for each sink of the policy.

A sink that is taken out of the policy takes its series with it. Nothing in here decides or logs anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Counter, Gauge, Histogram

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from streams.labels import Bounded

OUTCOMES = ("delivered", "retried", "dead", "skipped")
"""What became of a try, or of a notification: taken; tried again later; set aside; not this sink's to tell."""

SECONDS_TO_DELIVERY = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)
"""From a notification's record to its delivery; half an hour is when it is given up by default."""


class SinkMetrics:
    """What the sinks measure.

    Args:
        registry: where the metrics are registered.
        dead_letters: takes what sinks set aside, beside what the process itself does.
    """

    def __init__(self, registry: CollectorRegistry, dead_letters: Bounded[Counter]) -> None:
        self.dead_letters = dead_letters
        self.deliveries = Counter(
            "traction_sink_deliveries_total",
            "Notifications by sink and what became of them: delivered, dead (set aside as dead letters), skipped (not "
            "for this sink); and tries after which there was another one (retried).",
            ["sink", "outcome"],
            registry=registry,
        )
        self.delivery_seconds = Histogram(
            "traction_sink_delivery_seconds",
            "Time from a notification's record to its delivery.",
            ["sink"],
            buckets=SECONDS_TO_DELIVERY,
            registry=registry,
        )
        self.queue_age_seconds = Gauge(
            "traction_sink_queue_age_seconds",
            "Age of the notification that a sink is trying to deliver, the oldest it has; 0 when it has none.",
            ["sink"],
            registry=registry,
        )
        self.disabled = Gauge(
            "traction_sink_disabled",
            "1 when the receiver said that it is gone (HTTP 410), until the policy is read anew; else 0.",
            ["sink"],
            registry=registry,
        )
        self.restarts = Counter(
            "traction_sink_restarts_total",
            "Times that a sink began anew since Kafka refused it something.",
            ["sink"],
            registry=registry,
        )

        self.deleted_untold = Counter(
            "traction_sink_deleted_untold_records_total",
            "Notifications that retention deleted before a sink came to them, markers between them included: untold.",
            ["sink"],
            registry=registry,
        )

    def add(self, sink: str) -> None:
        """Make the series of a sink, so that they count from 0 on."""
        for outcome in OUTCOMES:
            self.deliveries.labels(sink, outcome)
        self.delivery_seconds.labels(sink)
        self.queue_age_seconds.labels(sink).set(0)
        self.disabled.labels(sink).set(0)
        self.restarts.labels(sink)
        self.deleted_untold.labels(sink)

    def forget(self, sink: str) -> None:
        """Take the series of a sink off the page."""
        metrics = self.deliveries, self.delivery_seconds, self.queue_age_seconds, self.disabled, self.restarts
        for metric in (*metrics, self.deleted_untold):
            metric.remove_by_labels({"sink": sink})
