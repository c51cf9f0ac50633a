"""The whole road in separate processes: recordings published, two workers, the escalation consumer, the verdicts."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streams.demo
from schemas import topics
from tests.kit import WorkerProcess
from tests.processes import TRACTION, TractionProcess
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.kit import Wire

RECORDINGS = Path(streams.demo.__file__).parent / "sessions"
"""Hand-written: one healthy session, two loops that are to be terminated, and one that is warned about."""

SHOWN = ("session_id", "seq", "level", "detector", "loop_id", "count", "reasoning", "alert_id")


def run(*arguments: str) -> str:
    """Run a command of ours to its end, and give what it printed."""
    done = subprocess.run([TRACTION, *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def told(alerts: Iterable[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """What replay tells of alerts, in an order of its own."""
    return sorted(tuple(alert[name] for name in SHOWN) for alert in alerts)


async def test_recordings_in_verdicts_out(wire: Wire, start: Callable[..., WorkerProcess]) -> None:
    """Alerts equal those of a replay of the same files; each loop that goes on is terminated once, nobody else is."""
    # Given two workers that share the partitions, and an escalation consumer
    workers = [start(), start()]
    escalation = TractionProcess(
        *(TRACTION, "escalate", "--bootstrap", wire.settings.bootstrap, "--prefix", wire.settings.prefix),
        *("--app-id", wire.app_id, "--port", "0"),
    )
    try:
        for worker in workers:
            await worker.ready(wire.partitions // 2)
        await escalation.ready()
        # When another process publishes the recordings
        target = ("--bootstrap", wire.settings.bootstrap, "--prefix", wire.settings.prefix)
        await asyncio.to_thread(run, "replay", str(RECORDINGS), "--to-kafka", *target)
        await wire.until_applied()
        wanted = [json.loads(line) for line in run("replay", "--json", str(RECORDINGS)).splitlines()]
        # Then the alerts are those of a replay
        alerts = [json.loads(record.value) for record in await wire.alert_records()]
        assert told(alerts) == told(wanted)
        # And there is one termination for each session to be terminated, and a directive for each that was warned about
        ended = {alert["session_id"] for alert in wanted if alert["level"] == "terminate"}
        assert len(ended) == 2

        async def answered() -> bool:
            return len(await wire.records(wire.settings.topic(topics.DIRECTIVES))) >= 3 and len(
                await wire.records(wire.settings.topic(topics.TERMINATIONS))
            ) >= len(ended)

        await until(answered)
        terminations = [json.loads(r.value) for r in await wire.records(wire.settings.topic(topics.TERMINATIONS))]
        directives = [json.loads(r.value) for r in await wire.records(wire.settings.topic(topics.DIRECTIVES))]
        assert sorted(record["session_id"] for record in terminations) == sorted(ended)
        warnings = {alert["alert_id"]: alert["session_id"] for alert in wanted if alert["level"] == "warn"}
        answered_ids = [record["alert_id"] for record in directives]
        assert len(answered_ids) == len(set(answered_ids))
        assert set(answered_ids) <= warnings.keys()
        assert {warnings[each] for each in answered_ids} == set(warnings.values())
        assert await escalation.end() == 0
        for worker in workers:
            assert await worker.end() == 0
    finally:
        escalation.kill()
