"""The escalation consumer as a process on a real broker: what it writes, says, shows and how it ends."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp

from detectors import TaskEvent
from schemas import topics
from schemas.common import Agent, Task
from schemas.encode import encode, headers, record_key
from schemas.outputs import Directive, KnownFlapping, Termination
from streams.kafka import KafkaSettings, producer, running
from streams.metric_list import listed
from streams.topics import task_events_name
from tests.kit import metrics_on
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiokafka.structs import ConsumerRecord

    from tests.streams.escalation.conftest import Inside, MakeAlert, Process, Wire

END_SECONDS = 5.0

MEASURED = {
    *("events_total", "dead_letters_total", "terminations_total", "tasks_total", "flapping_tasks_total"),
    *("wasted_tokens_total", "wasted_cost_usd_total", "saved_tokens_total", "saved_cost_usd_total"),
}


async def page(url: str) -> tuple[int, str]:
    """Read a page."""
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status, await answer.text()


async def test_alerts_become_what_the_policy_says(wire: Wire, alert: MakeAlert, start: Callable[..., Process]) -> None:
    """A notice and a warning lead to a directive each, a terminate to a termination and an entry, else nothing."""
    process = start()
    url = await process.ready(2)
    await wire.send(
        [
            alert("n", session_id="s0", level="notice"),
            alert("w", session_id="s1"),
            alert("r", level="recovered"),
            alert("t", session_id="s2", level="terminate", task_id="t2"),
        ]
    )
    (termination,) = await wire.until_outputs(Termination, 1)
    directives = await wire.until_outputs(Directive, 2)
    (entry,) = await wire.until_outputs(KnownFlapping, 1)
    assert {(each.session_id, each.alert_id) for each in directives} == {("s0", "n"), ("s1", "w")}
    assert (termination.session_id, termination.alert_id) == ("s2", "t")
    assert (entry.task_id, entry.termination_id) == ("t2", termination.termination_id)
    assert {each.acknowledge.topic for each in directives} == {wire.settings.topic(topics.CONTROL)}
    (record,) = await wire.records(topics.TERMINATIONS)
    assert record.key == b"s2"
    assert dict(record.headers)["ce_id"] == termination.termination_id.encode()
    (record,) = await wire.records(topics.KNOWN_FLAPPING)
    assert record.key == b"t2"

    async def measured() -> bool:
        text = (await page(f"{url}/metrics"))[1]
        return (
            'traction_terminations_total{attempt="first",reason="identical"} 1.0' in text
            and 'traction_directives_total{action="inject_guidance"} 2.0' in text
        )

    await until(measured)
    assert [line for line in process.errors if termination.termination_id in line], "a termination is logged by its id"


async def test_modes_are_obeyed(wire: Wire, alert: MakeAlert, inside: Callable[..., Inside]) -> None:
    """Observed and muted alerts lead to nothing; in mode warn a terminate becomes guidance."""
    await wire.send(
        [
            alert("observed warn", mode="observe"),
            alert("observed end", mode="observe", level="terminate"),
            alert("muted warn", muted=True),
            alert("muted end", muted=True, level="terminate"),
            alert("warned end", mode="warn", level="terminate"),
            alert("last", level="terminate"),
        ]
    )
    async with inside():
        assert [each.alert_id for each in await wire.until_outputs(Termination, 1)] == ["last"]
    assert [each.alert_id for each in await wire.outputs(Directive)] == ["warned end"]
    assert [each.alert_id for each in await wire.outputs(KnownFlapping)] == ["last"]


async def test_a_trace_goes_on(wire: Wire, alert: MakeAlert, inside: Callable[..., Inside]) -> None:
    """Outputs carry the trace context of the alert that led to them."""
    trace = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    warning = alert()
    async with running(producer(wire.settings), wire.settings) as client:
        await client.send_and_wait(
            wire.settings.topic(topics.ALERTS),
            key=record_key(warning),
            value=encode(warning),
            headers=headers(warning, source="/test", traceparent=trace),
        )
    async with inside():
        await wire.until_outputs(Directive, 1)
    for topic in (topics.DIRECTIVES, topics.NOTIFICATIONS):
        (record,) = await wire.records(topic)
        assert dict(record.headers)["traceparent"] == trace


async def test_what_cannot_be_read_becomes_a_dead_letter(
    wire: Wire, alert: MakeAlert, inside: Callable[..., Inside]
) -> None:
    """The bytes as they came with the reason beside them, and the next alert of the partition is answered."""
    bad = [b"junk", b"", b'{"alert_id": "x"}', b"[" * 5_000, b'{"alert_id": NaN}', b"\xff\xfe", b"null"]
    stray = encode(alert("elsewhere", task_id="other"))
    await wire.send([*bad, stray, alert("after", level="terminate")])
    async with running(producer(wire.settings), wire.settings) as client:
        await client.send_and_wait(wire.settings.topic(topics.ALERTS), key=b"task of s1", value=None)
        await client.send_and_wait(task_events_name(wire.app_id), key=b"task of s1", value=b"junk")
    async with inside() as consumer:
        await wire.until_outputs(Termination, 1)

        async def dead() -> bool:
            return len(await wire.records(topics.DEAD_LETTERS)) == len(bad) + 3

        await until(dead)
        assert consumer.measured("traction_dead_letters_total", reason="key_mismatch") == 1
    records = await wire.records(topics.DEAD_LETTERS)
    assert {record.key for record in records} == {b"task of s1"}
    of_alerts = [record for record in records if origin(record) == wire.settings.topic(topics.ALERTS)]
    assert [record.value for record in of_alerts] == [*bad, stray, None]
    assert {origin(record) for record in records} - {origin(of_alerts[0])} == {task_events_name(wire.app_id)}
    first = dict(of_alerts[0].headers)
    assert first["__traction.errors.reason"] == b"not_json"
    assert first["traceparent"] == b"00-1-2-01", "headers that came are kept"


def origin(record: ConsumerRecord) -> str:
    """Give the topic that a dead letter came from."""
    return str(dict(record.headers)["__traction.errors.topic"], "utf-8")


async def test_repeated_alerts_are_answered_once(wire: Wire, alert: MakeAlert, inside: Callable[..., Inside]) -> None:
    """An alert with an id that was seen is dropped and counted, also when it was seen before a restart."""
    end, other = alert("same", level="terminate"), alert("other", level="terminate", session_id="s2", task_id="t2")
    async with inside() as first:
        await wire.send([end, end])
        await wire.until_outputs(Termination, 1)
        await until(lambda: counted(first, 1))
    async with inside() as second:
        await wire.send([end, other, end])
        await wire.until_outputs(Termination, 2)
        await until(lambda: counted(second, 2))
    assert [each.alert_id for each in await wire.outputs(Termination)] == ["same", "other"]


async def test_what_was_done_is_measured(wire: Wire, alert: MakeAlert, inside: Callable[..., Inside]) -> None:
    """Reasons, savings, tasks that flap and results are counted with the commit, once, also of what comes twice."""
    of: dict[str, Any] = {"agent": Agent(role="code", model="m"), "task": Task(type="bugfix", repo="acme/shop")}
    end = alert("t", level="terminate", task_id="t1", tokens_wasted=7_000, cost_wasted=0.25, **of)
    warned = alert("w", session_id="s2", task_id="t2", tokens_wasted=4_000, wasted_estimated=True, **of)
    over = alert("r", session_id="s2", task_id="t2", level="recovered", **of)
    async with inside() as consumer:
        await wire.send([end, end, warned, over, b"junk"])
        (asked,) = await wire.until_outputs(Termination, 1)
        said: dict[str, Any] = {"word": "obeyed", "answers": asked.termination_id, **of}
        event = TaskEvent(event_id="e", session_id="s1", task_id="t1", at_ms=0, **said)
        await wire.send([event, event])

        async def answered() -> bool:
            return page_of(consumer)["answers_total", "obeyed", "nothing"] == 1

        await until(answered)
        found, alerts, events = page_of(consumer), wire.settings.topic(topics.ALERTS), task_events_name(wire.app_id)
        assert {key: value for key, value in found.items() if key[0] in MEASURED} == {
            ("events_total", alerts, "applied"): 3,
            ("events_total", alerts, "duplicate"): 1,
            ("events_total", alerts, "dead"): 1,
            ("events_total", events, "applied"): 2,
            ("dead_letters_total", "not_json"): 1,
            ("terminations_total", "first", "identical"): 1,
            ("tasks_total", "acme/shop", "code", "bugfix"): 2,
            ("flapping_tasks_total", "acme/shop", "code", "bugfix"): 1,
            ("wasted_tokens_total", "measured"): 7_000,
            ("wasted_cost_usd_total",): 0.25,
            ("saved_tokens_total", "measured", "termination"): 7_000,
            ("saved_tokens_total", "estimated", "directive"): 4_000,
            ("saved_cost_usd_total", "termination"): 0.25,
        }
        owned = ("ladders",), ("assigned_partitions",), ("fitness_tasks", "m", "unknown", "tried")
        assert [found[name] for name in owned[:2]] == [2, 2]
        async with inside() as other:
            pages = page_of(consumer), page_of(other)
            assert [sum(page[name] for page in pages) for name in owned] == [2, 2, 2], "each is shown by its owner"
            assert pages[0]["assigned_partitions",] == 1


def page_of(consumer: Inside) -> Counter[tuple[str, ...]]:
    """Give what a consumer shows, by name and labels, but for what is 0."""
    samples = [each for family in consumer.registry.collect() for each in family.samples if each.value]
    return Counter({(each.name.removeprefix("traction_"), *each.labels.values()): each.value for each in samples})


async def counted(consumer: Inside, duplicates: int) -> bool:
    """Tell whether so many alerts were dropped."""
    return consumer.measured("traction_duplicate_alerts_total") == duplicates


async def test_sigterm_ends_it_soon_and_orderly(wire: Wire, alert: MakeAlert, start: Callable[..., Process]) -> None:
    """SIGTERM and SIGINT end with 0 within seconds, and nothing is answered twice by the next process."""
    for number in (signal.SIGTERM, signal.SIGINT):
        process = start()
        await process.ready()
        await wire.send([alert(f"{number}", level="terminate", session_id=f"s{number}")])
        begun = time.monotonic()
        assert await process.end(number) == 0
        assert time.monotonic() - begun < END_SECONDS
        assert not [line for line in process.errors if "Traceback" in line]
    assert len(await wire.until_outputs(Termination, 2)) == 2


async def test_the_pages_tell_how_it_is(wire: Wire, alert: MakeAlert, start: Callable[..., Process]) -> None:
    """Ready and alive once the partitions are taken; lag goes to 0, although commit markers lie behind the alerts."""
    process = start()
    url = await process.ready(2)
    await wire.send([alert(f"a{n}", session_id=f"s{n}") for n in range(20)])

    async def ready() -> bool:
        return (await page(f"{url}/readyz"))[0] == 200

    await until(ready)
    assert (await page(f"{url}/healthz"))[0] == 200

    async def caught_up() -> bool:
        text = (await page(f"{url}/metrics"))[1]
        lags = [line for line in text.splitlines() if line.startswith("traction_consumer_lag_records{")]
        return (
            len(lags) == 4
            and all(line.endswith(" 0.0") for line in lags)
            and "traction_assigned_partitions 2.0" in text
        )

    await until(caught_up)
    text = (await page(f"{url}/metrics"))[1]
    assert 'traction_alerts_read_total{level="warn"} 20.0' in text
    assert "traction_brokers_reachable 1.0" in text
    assert metrics_on(text) == {one.name for one in listed("escalate")}


async def test_help_says_what_it_does_with_examples() -> None:
    """A person learns from --help what it writes, how to start it, when it is ready, and what its exit codes mean."""
    command = [str(Path(sys.executable).parent / "traction"), "escalate", "--help"]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    said = (await process.communicate())[0].decode()
    assert process.returncode == 0
    for words in (
        "Examples:",
        "escalation ready: partitions",
        "Exit codes:",
        "--session-timeout",
        "TRACTION_BOOTSTRAP",
    ):
        assert words in said


async def test_two_processes_share_the_partitions(start: Callable[..., Process]) -> None:
    """A second process takes over its part, and the first gets it back when the second goes."""
    first = start()
    await first.ready(2)
    second = start()
    await second.ready(1)
    await first.ready(1)
    before = len(first.lines)
    assert await second.end() == 0
    await first.ready(2, after=before)


async def test_missing_topics_are_named_with_the_command_that_creates_them(
    bootstrap: str, prefix: str, launch: Callable[..., Process]
) -> None:
    """Without its topics it does not start, does not create them, and says how to."""
    process = launch(KafkaSettings(bootstrap=bootstrap, prefix=prefix))
    assert await process.exit() == 1
    said = "\n".join(process.errors)
    assert f"{prefix}terminations" in said
    wanted = f"--prefix {prefix} --app-id {prefix.rstrip('.')} --group {prefix}escalation"
    assert f"traction topics create --bootstrap {bootstrap} {wanted}" in said


async def test_a_policy_that_cannot_be_used_is_wrong_use(
    prefix: str, launch: Callable[..., Process], tmp_path: Path
) -> None:
    """Also where only its sinks are wrong, it ends with 2 before it looks for a broker, and names the file and key."""
    file = tmp_path / "policy.toml"
    file.write_text('[sinks.log]\ntype = "pigeon"\n')
    process = launch(KafkaSettings(bootstrap="127.0.0.1:1", prefix=prefix), "--policy", str(file))
    assert await process.exit() == 2
    assert f"{file}: [sinks.log]" in process.log
    assert "Traceback" not in process.log


async def test_without_a_broker_it_says_so(prefix: str, launch: Callable[..., Process]) -> None:
    """A broker that is not there is a sentence and exit code 1, not a stack trace."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
    process = launch(KafkaSettings(bootstrap=address, prefix=prefix))
    assert await process.exit() == 1
    said = "\n".join(process.errors)
    assert f"Kafka at {address} cannot be used" in said
    assert "Traceback" not in said


async def test_a_port_in_use_is_a_clear_error(wire: Wire, start: Callable[..., Process]) -> None:
    """When its pages cannot be served it ends with 1 and the remedy."""
    del wire
    with socket.create_server(("127.0.0.1", 0)) as taken:
        process = start("--port", str(taken.getsockname()[1]))
        assert await process.exit() == 1
    assert "--port" in "\n".join(process.errors)
    assert "in use" in "\n".join(process.errors)
