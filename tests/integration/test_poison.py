"""Poison and floods among good work: what is bad is set aside as it came, what is good is done, and nobody starves."""

from __future__ import annotations

import asyncio
import json
import random
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from schemas import topics
from schemas.decode import check_key, decode
from schemas.encode import encode, record_key
from schemas.events import Control, ToolCall
from schemas.invalid import InvalidEvent
from schemas.outputs import Alert
from streams.kafka import producer, running
from streams.reading import partition_of
from tests.fuzz.targets import seeds
from tests.fuzz.test_bounds import REFUSED
from tests.kit import WorkerInside, assert_same, attempt, outcome, terminal_alert, tool_call, traffic
from tests.processes import TRACTION, TractionProcess
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiokafka import ConsumerRecord

    from schemas.topics import Topic
    from tests.kit import Wire, WorkerProcess

SEED = 8
"""Of the order in which poison comes; a failure prints it."""

FLOOD = 30_000
"""Events of one session, written before the worker starts: seconds of work, where the others have a handful."""

MOST_TIMES = 20
"""Bytes of memory that a worker may need more, for each byte of the largest record that it was sent."""

ROOM_BYTES = 96 * 2**20
"""What it needs anyway once it works: fetched batches of four partitions, codecs, allocator."""

MOST_BYTES = 1_000_000
"""Of a record on a topic of ours: brokers take no larger ones there."""

POLICY = """
[sinks.out]
type = "file"
path = "{path}"
"""

Poison = tuple["Topic", bytes, bytes]


def refusal(topic: Topic, value: bytes, key: bytes) -> str | None:
    """Say why a record is refused, as the dead letters have it; None when it is not."""
    try:
        event = decode(topic, value)
        if topic is not topics.NOTIFICATIONS:  # a sink tells what it reads, whatever its key
            check_key(topic, event, key)
    except InvalidEvent as problem:
        return f"{problem.stage}:{problem.reason}"
    return None


def poison(*of: Topic, most: int = 2**30) -> list[Poison]:
    """Give all seeds of the fuzz suite for some topics that are refused, and monsters, in any order.

    Args:
        of: the topics.
        most: bytes of the largest.
    """
    names = {topics.ALERTS: "alert", topics.NOTIFICATIONS: "notification"}
    found = [(topic, path.read_bytes(), b"s") for topic in of for path in seeds(names.get(topic, topic.name))]
    found += [(of[number % len(of)], value, b"s") for number, (value, _) in enumerate(REFUSED.values())]
    kept = [each for each in found if 0 < len(each[1]) <= most and refusal(*each)]
    random.Random(SEED).shuffle(kept)  # noqa: S311 - the same order each time
    return kept


async def spread(wire: Wire, bad: list[Poison], good: list[Any]) -> dict[tuple[str, int, int], tuple[bytes, str]]:
    """Write poison with good events in between, and give where each poison stands: its bytes and its reason."""
    sent = {}
    step = max(1, len(good) // len(bad) + 1)
    async with running(producer(wire.settings, linger_ms=5), wire.settings) as client:
        for number, (topic, value, key) in enumerate(bad):
            for event in good[number * step : (number + 1) * step]:
                name = wire.settings.topic(TOPIC_OF[type(event)])
                await client.send(name, key=record_key(event), value=encode(event))
            there = await client.send_and_wait(wire.settings.topic(topic), key=key, value=value)
            sent[there.topic, there.partition, there.offset] = value, str(refusal(topic, value, key))
    return sent


def told(letters: list[ConsumerRecord]) -> dict[tuple[str, int, int], tuple[bytes, str]]:
    """Give by place what dead letters hold and say; none may be there twice."""
    found = {}
    for letter in letters:
        said = {name.rpartition(".")[2]: value.decode() for name, value in letter.headers if "errors" in name}
        place = said["topic"], int(said["partition"]), int(said["offset"])
        assert place not in found, "a dead letter was written twice"
        found[place] = letter.value, f"{said['stage']}:{said['reason']}"
    return found


def most_memory(process: TractionProcess) -> int:
    """Read the most memory that a process ever had, in bytes."""
    status = Path(f"/proc/{process.popen.pid}/status").read_text("utf-8")
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024


async def test_poison_among_good_sessions(wire: Wire, start: Callable[..., WorkerProcess]) -> None:
    """Every bad record of every input is a dead letter with its bytes and reason; the sessions come out as alone."""
    worker = start()
    await worker.ready(4)
    before = most_memory(worker)
    bad, good = poison(*topics.SESSION_INPUTS), traffic(sessions=20, episodes=2)
    assert {topic for topic, _, _ in bad} == set(topics.SESSION_INPUTS)
    sent = await spread(wire, bad, good)
    await wire.until_applied()
    assert told(await wire.dead_letters()) == sent, f"seed {SEED}"
    await assert_same(wire, outcome(good))
    assert worker.popen.poll() is None
    largest = max(len(value) for value, _ in sent.values())
    assert most_memory(worker) - before <= MOST_TIMES * largest + ROOM_BYTES


async def test_poison_for_those_who_answer_and_tell(wire: Wire, tmp_path: Path) -> None:
    """Escalation and a sink set theirs aside likewise, and answer and tell what is good before, between and behind."""
    policy, written = tmp_path / "policy.toml", tmp_path / "told.jsonl"
    policy.write_text(POLICY.format(path=written), "utf-8")
    settings = wire.settings
    process = TractionProcess(
        *(TRACTION, "escalate", "--bootstrap", settings.bootstrap, "--prefix", settings.prefix),
        *("--port", "0", "--app-id", wire.app_id, "--policy", str(policy)),
    )
    try:
        await process.ready()
        alerts = [terminal_alert(f"a{number}", f"task of a{number}") for number in range(10)]
        sent = await spread(wire, poison(topics.ALERTS, topics.NOTIFICATIONS, most=MOST_BYTES), alerts)

        async def done() -> bool:
            lines = written.read_text("utf-8").splitlines() if written.exists() else []
            told_of = {json.loads(each)["alert_id"] for each in lines}
            return len(await wire.dead_letters()) >= len(sent) and told_of >= {each.alert_id for each in alerts}

        await until(done, 90)
        assert told(await wire.dead_letters()) == sent, f"seed {SEED}"
        ended = await wire.records(settings.topic(topics.TERMINATIONS))
        assert {record.key.decode() for record in ended} == {each.session_id for each in alerts}
        assert process.popen.poll() is None
    finally:
        process.kill()


async def flood(wire: Wire, session: str) -> None:
    """Write very many calls of one session, each another one, and a loop at their end."""
    name, key = wire.settings.topic(topics.TOOL_CALLS), session.encode()
    one = encode(tool_call(session, 0, event_id="event-0-", arguments={"path": "file-0-"}, result="line 0-"))
    async with running(producer(wire.settings, linger_ms=20), wire.settings) as client:
        sent = [await client.send(name, key=key, value=one.replace(b"0-", b"%d-" % number)) for number in range(FLOOD)]
        for number in range(3):
            call = tool_call(session, FLOOD + number, arguments={"path": "a"}, result="the same")
            sent.append(await client.send(name, key=key, value=encode(call)))
        await asyncio.gather(*sent)


@pytest.mark.timeout(240)
async def test_a_flood_from_one_session(wire: Wire) -> None:
    """Sessions of other partitions, and of other topics of the same one, have their alerts while it is worked off."""
    home = partition_of(b"flood", wire.partitions)
    names = [f"s{number}" for number in range(40)]
    others = [name for name in names if partition_of(name.encode(), wire.partitions) != home][:8]
    beside = [name for name in names if partition_of(name.encode(), wire.partitions) == home][:3]
    await flood(wire, "flood")
    for name in others:
        await wire.send(tool_call(name, number, arguments={"path": "a"}, result="the same") for number in range(3))
    for name in beside:
        await wire.send(attempt(name, number, f"task of {name}") for number in range(8))
    async with WorkerInside(wire) as inside:
        await wire.until_applied(120)
        assert inside.value("traction_dead_letters_total", reason="detector_error") == 0
    times: dict[str, list[int]] = {}
    for record in await wire.alert_records():
        alert = decode(topics.ALERTS, record.value)
        assert isinstance(alert, Alert)
        times.setdefault(alert.session_id, []).append(record.timestamp)
    assert {"flood", *others, *beside} <= times.keys()
    end = max(times.pop("flood"))
    assert {name for name, each in times.items() if max(each) >= end} == set(), "they were served after the flood"


TOPIC_OF: dict[type, Topic] = {topic.record: topic for topic in (*topics.SESSION_INPUTS, topics.ALERTS) if topic.record}
assert {ToolCall, Control, Alert} <= TOPIC_OF.keys()
