"""Engine a: Traction's worker, as the command runs it, but for detectors that note what they are given.

    python -m tests.bench.engines.traction_worker PLAN

States are kept in memory and in the changelogs. Nothing of the worker is changed or left out.
"""

from __future__ import annotations

import asyncio
from functools import partial

import uvloop

import streams.worker.run
from streams.kafka import KafkaSettings
from streams.page_settings import PageSettings
from streams.worker.app import build
from streams.worker.judge import Detection
from streams.worker.settings import WorkerSettings
from tests.bench.engines.job import Meter, take_plan


def main() -> int:
    """Work until told to stop."""
    plan = take_plan()
    meter = Meter(plan)
    settings = WorkerSettings(kafka=KafkaSettings(plan.bootstrap, plan.prefix), app_id=plan.app_id)
    detection = Detection(meter.step, meter.observe_task)
    streams.worker.run.build = partial(build, detection=detection)  # type: ignore[attr-defined] # imported, not meant so
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(streams.worker.run.run(settings, PageSettings(), lambda line: meter.owns(_owned(line))))


def _owned(line: str) -> int:
    """Count the partitions that a ready line names."""
    named = line.partition("partitions ")[2].partition(" of ")[0]
    return sum(number.isdigit() for number in named.split(", "))


if __name__ == "__main__":
    raise SystemExit(main())
