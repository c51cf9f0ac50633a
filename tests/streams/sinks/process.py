"""Runs one sink in a process of its own, to be killed: `python process.py BOOTSTRAP PREFIX URL`."""

from __future__ import annotations

import asyncio
import sys

from prometheus_client import CollectorRegistry

from streams.kafka import KafkaSettings
from streams.metrics import dead_letters
from streams.sinks.metrics import SinkMetrics
from streams.sinks.run import Sinks
from streams.sinks.settings import read_sinks

SESSION_TIMEOUT_MS = 6_000
"""The shortest that brokers allow by default."""


async def main(bootstrap: str, prefix: str, url: str) -> None:
    """Run until killed."""
    kafka = KafkaSettings(bootstrap=bootstrap, prefix=prefix)
    registry = CollectorRegistry()
    metrics = SinkMetrics(registry, dead_letters(registry))
    sinks = Sinks(kafka, f"{prefix}g", metrics, session_timeout_ms=SESSION_TIMEOUT_MS)
    table = {"type": "webhook", "url": url, "format": "alertmanager", "per_second": 1_000, "timeout_seconds": 5}
    sinks.replace(read_sinks({"hooks": table}, "p"))
    await sinks.run(asyncio.Event())


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
