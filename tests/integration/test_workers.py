"""Workers as people run them, on a real broker: sharing, restarting, stopping, and what they tell of themselves."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from collections import Counter
from typing import TYPE_CHECKING

from schemas import topics
from schemas.encode import encode
from streams.kafka import KafkaSettings
from streams.metric_list import listed
from tests.kit import Wire, WorkerProcess, assert_same, metrics_on, outcome, tool_call, traffic
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


async def test_two_workers_share_the_partitions(wire: Wire, start: Callable[..., WorkerProcess]) -> None:
    """Together they make of the events what the detectors make of them in-process: each alert once, states equal."""
    one, two = start(), start()
    await asyncio.gather(one.ready(2), two.ready(2))
    assert one.partitions | two.partitions == {0, 1, 2, 3}
    events = traffic(sessions=60, episodes=3)
    await wire.send(events)
    await wire.until_applied()
    await assert_same(wire, outcome(events))
    counted: Counter[str] = Counter()
    for worker in (one, two):
        metrics = await worker.metrics()
        assert metrics["traction_applied_twice_total",] == 0
        assert sum(value for name, value in metrics.items() if name[0] == "traction_alerts_total") > 0
        for (name, *_), value in metrics.items():
            counted[name] += int(value)
    alerts, forwarded = len(await wire.alerts()), len(await wire.records(wire.task_events))
    assert counted["traction_alerts_total"] == alerts, "whoever applied and committed it"
    assert counted["traction_task_events_total"] == forwarded
    assert counted["traction_events_total"] == len(events) + forwarded
    assert counted["traction_stored_states"] == counted["traction_live_sessions"] + counted["traction_live_tasks"] > 0


async def test_a_restarted_worker_goes_on_where_it_stopped(wire: Wire, start: Callable[..., WorkerProcess]) -> None:
    """State survives SIGTERM, which ends a worker within seconds and with exit code 0, and loops go on over it."""
    events = traffic(sessions=40, episodes=4)
    half = len(events) // 2 + 120  # in the middle of an episode
    first = start()
    await first.ready(4)
    await wire.send(events[:half])
    await until(lambda: _some(wire))  # stop it at work
    began = time.monotonic()
    assert await first.end() == 0
    assert time.monotonic() - began < 5
    await wire.send(events[half:])
    second = start()
    await second.ready(4)
    await wire.until_applied()
    await assert_same(wire, outcome(events))
    assert await second.end() == 0


async def _some(wire: Wire) -> bool:
    return len(await wire.alert_records()) > 0


async def test_partitions_move_back_and_forth(wire: Wire, start: Callable[..., WorkerProcess]) -> None:
    """What went to another worker and came back is read anew: nothing of the former ownership is left."""
    events = traffic(sessions=40, episodes=6)
    third = len(events) // 3
    stays = start()
    await stays.ready(4)
    await wire.send(events[:third])
    goes = start()
    await goes.ready(2)
    await wire.send(events[third : 2 * third], rate=2_000)
    assert await goes.end() == 0
    await stays.ready(4, after=2)
    await wire.send(events[2 * third :])
    await wire.until_applied()
    await assert_same(wire, outcome(events))


async def test_few_sessions_in_memory(wire: Wire, start: Callable[..., WorkerProcess]) -> None:
    """A worker that may keep 8 states decoded gives the same answers, from the bytes it keeps of the others."""
    worker = start("--live-sessions", "8", "--commit-interval", "0.05")
    await worker.ready(4)
    events = traffic(sessions=80, episodes=2)
    await wire.send(events, rate=2_000)
    await wire.until_applied()
    await assert_same(wire, outcome(events))
    metrics = await worker.metrics()
    assert metrics["traction_live_sessions",] + metrics["traction_live_tasks",] <= 8


async def test_a_worker_with_a_lasting_name(wire: Wire, start: Callable[..., WorkerProcess]) -> None:
    """With --instance-id a worker that restarts within the session timeout has its partitions back; no other moves."""
    events = traffic(sessions=40, episodes=4)
    half = len(events) // 2 + 40
    stays = start("--instance-id", "one", "--session-timeout", "20")
    await stays.ready(4)
    goes = start("--instance-id", "two", "--session-timeout", "20")
    await asyncio.gather(stays.ready(2), goes.ready(2))
    owned, rebalances = goes.partitions, len(stays.lines)
    await wire.send(events[:half])
    assert await goes.end() == 0
    await wire.send(events[half:])
    comes = start("--instance-id", "two", "--session-timeout", "20")
    await comes.ready(2)
    await wire.until_applied()
    assert comes.partitions == owned
    assert len(stays.lines) == rebalances
    await assert_same(wire, outcome(events))


async def test_an_alert_comes_at_once(wire: Wire, start: Callable[..., WorkerProcess]) -> None:
    """An alert does not wait for the commit interval, and says where its event stands and which trace it belongs to."""
    worker = start("--commit-interval", "30")
    await worker.ready(4)
    trace = ("traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    calls = [tool_call("s", number, arguments={"path": "a"}, result="the same") for number in range(3)]
    await wire.send(calls[:2])
    sent = await wire.raw(topics.TOOL_CALLS, encode(calls[2]), key=b"s", headers=[trace])
    began = time.monotonic()
    await until(lambda: _some(wire))
    assert time.monotonic() - began < 5
    (record,) = await wire.alert_records()
    (alert,) = await wire.alerts()
    assert alert.evidence.position is not None
    assert (alert.evidence.position.topic, alert.evidence.position.offset) == (sent.topic, sent.offset)
    assert record.key == b"s"
    named = dict(record.headers)
    assert named["traceparent"] == trace[1]
    assert named["ce_id"].decode() == alert.alert_id


async def test_limits_of_the_configuration_file(
    wire: Wire, start: Callable[..., WorkerProcess], tmp_path: Path
) -> None:
    """Limits in the table [limits] hold, and the alert says that the file set them."""
    config = tmp_path / "traction.toml"
    config.write_text("[limits.identical]\nwarn = 4\n", "utf-8")
    await start(config=config).ready(4)
    await wire.send(tool_call("s", number, tool="quote", result="the same", arguments={}) for number in range(4))
    await wire.until_applied()
    (alert,) = await wire.alerts()
    assert (alert.count, alert.limits[0].layer) == (4, f"file:{config}")


async def test_pages(wire: Wire, start: Callable[..., WorkerProcess]) -> None:
    """A worker at work is alive and ready, and tells the lag of each input partition and the misrouted events."""
    worker = start("--live-sessions", "123")
    url = await worker.ready(4)
    await wire.raw(topics.TOOL_CALLS, encode(tool_call("s", 0)), key=b"s", partition=0)
    await wire.raw(topics.TOOL_CALLS, encode(tool_call("s", 1)), key=b"s", partition=1)
    await wire.until_applied()
    metrics = await worker.metrics()
    name = wire.settings.topic(topics.TOOL_CALLS)
    assert metrics["traction_misrouted_events_total", name] >= 1
    assert metrics["traction_stored_states", "own", "sessions"] == 2, "one in each partition"
    assert metrics["traction_stored_state_bytes", "own", "sessions"] > 100
    assert ("traction_state_disk_free_bytes",) not in metrics
    assert metrics["traction_live_states_limit",] == 123
    assert (metrics["traction_ready",], metrics["traction_healthy",], metrics["traction_brokers_reachable",]) == (
        1,
        1,
        1,
    )
    assert metrics["traction_events_total", "applied", name] == 2

    async def told() -> bool:
        return ("traction_consumer_lag_records", "3", name) in await worker.metrics()

    await until(told)
    text = await asyncio.to_thread(lambda: urllib.request.urlopen(f"{url}/metrics").read().decode())  # noqa: S310
    wanted = {one.name for one in listed("worker")}
    assert metrics_on(text) == {name for name in wanted if "state_disk" not in name}, "as the list says"
    for page in ("healthz", "readyz"):
        answer = json.loads(await asyncio.to_thread(lambda: urllib.request.urlopen(f"{url}/{page}").read()))  # noqa: B023, S310
        assert answer["ok"], answer


async def test_without_topics(bootstrap: str) -> None:
    """A worker whose topics are missing ends with exit code 1, says which, and how to create them."""
    worker = WorkerProcess(Wire(KafkaSettings(bootstrap=bootstrap, prefix="none."), "none", 4))
    try:
        assert await worker.exit() == 1
        assert "none.tool-calls" in worker.log
        assert "traction topics create" in worker.log
        assert "Traceback" not in worker.log
    finally:
        worker.kill()
