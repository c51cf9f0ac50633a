"""Real processes, watched by a real Prometheus while agents are played: started once for all that look at them."""

from __future__ import annotations

import asyncio
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from streams.kafka import KafkaSettings
from streams.topics import create_topics
from tests.deploy.monitoring import Prometheus, patient
from tests.deploy.played import play
from tests.kit import Wire
from tests.processes import TRACTION, TractionProcess

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PARTITIONS = 2

POLICY = """\
[limits]
mode = "enforce"

[ladder]
order = ["inject_guidance", "escalate_human", "terminate"]

[sinks.journal]
type = "file"
path = "{journal}"

[sinks.nobody-there]
type = "alertmanager"
url = "http://127.0.0.1:9"
give_up_minutes = 0.02
"""
"""A ladder that is climbed fast; a sink that works, and one whose receiver is away: its notifications are given up."""


@dataclass(frozen=True, slots=True)
class Monitored:
    """What was watched.

    Attributes:
        prometheus: it runs still, as the processes do.
        wire: their topics.
        processes: by their command.
        began: when the agents began to be played, in seconds since 1970.
        ended: when all of it had been scraped.
    """

    prometheus: Prometheus
    wire: Wire
    processes: dict[str, TractionProcess]
    began: float
    ended: float


@pytest.fixture(scope="session")
def monitored(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Monitored]:
    """Run a worker, an escalation consumer and a gateway, let Prometheus scrape them, and play agents."""
    folder = tmp_path_factory.mktemp("monitored")
    name = f"t{uuid.uuid4().hex[:12]}"
    settings = KafkaSettings(bootstrap=bootstrap, prefix=f"{name}.")
    asyncio.run(create_topics(settings, partitions=PARTITIONS, replication=1, app_id=name, group=f"{name}-ladder"))
    wire = Wire(settings, name, PARTITIONS)
    processes = _start(settings, name, folder)
    try:
        pages = {command: asyncio.run(process.ready()) for command, process in processes.items()}
        targets = {f"traction-{command}": [url.removeprefix("http://")] for command, url in pages.items()}
        with Prometheus(folder, targets) as prometheus:
            patient(lambda: len(prometheus.query("traction_ready == 1")) == len(targets), "all were scraped")
            began = time.time()
            asyncio.run(play(pages["ingest"], wire))
            last = "traction_false_alarms_total offset 3s > 0"  # so that graphs show it for a while
            patient(lambda: prometheus.query(last), "the last that happened was scraped")
            patient(lambda: prometheus.query('traction_sink_deliveries_total{outcome="dead"} > 0'), "a sink gave up")
            patient(prometheus.firing, "an alert fires")
            yield Monitored(prometheus, wire, processes, began, time.time())
    finally:
        for process in processes.values():
            process.kill()


def _start(settings: KafkaSettings, name: str, folder: Path) -> dict[str, TractionProcess]:
    policy = folder / "policy.toml"
    policy.write_text(POLICY.format(journal=folder / "journal.jsonl"), "utf-8")
    place = ("--bootstrap", settings.bootstrap, "--prefix", settings.prefix, "--port", "0")
    own = {
        "worker": ("--app-id", name, "--state-store", "rocksdb", "--state-dir", str(folder / "state")),
        "escalate": ("--app-id", name, "--group", f"{name}-ladder"),
        "ingest": (),
    }
    ruled = ("--policy", str(policy))
    return {
        command: TractionProcess(TRACTION, command, *place, *(ruled if command != "ingest" else ()), *flags)
        for command, flags in own.items()
    }
