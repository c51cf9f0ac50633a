"""What a process that follows a policy file measures of it, on the registry of its other metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from prometheus_client import Counter, Gauge

from streams.labels import create

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

Result = Literal["applied", "refused"]
"""What became of a file: it is in force; or it cannot be used, and the one before it stays."""


class PolicyMetrics:
    """Counts what became of the policy file.

    Args:
        registry: where the metrics are registered.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self.reloads = Counter(
            "traction_policy_reloads_total",
            "Times that the policy file was read since it was new or had changed, by what became of it.",
            ["result"],
            registry=registry,
        )
        create(self.reloads, get_args(Result))
        self.refused = Gauge(
            "traction_policy_refused",
            "1 while the policy file as it is now cannot be used, and the policy before it is in force; else 0.",
            registry=registry,
        )
        self.loaded = Gauge(
            "traction_policy_loaded_timestamp_seconds",
            "When the policy in force was read, in seconds since 1970; 0 without a policy file.",
            registry=registry,
        )
