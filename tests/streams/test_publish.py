"""Publishing recorded sessions to a real broker: what is on which topic, in which order, at what pace."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from schemas.decode import decode
from schemas.events import SessionEvent, ToolCall
from schemas.topics import SESSIONS, TOOL_CALLS
from streams.importers import Session, read_path
from streams.kafka import KafkaSettings, consumer, running
from streams.publish import publish
from streams.topics import create_topics

DEMO = Path(__file__).parents[2] / "streams" / "demo" / "sessions"
COMMAND = [sys.executable, "-P", "-m", "traction", "replay", "--to-kafka"]


def line(session, seq, **more):
    """Give a line of the neutral form."""
    return {"session_id": session, "seq": seq, "tool": "bash", "args": {"n": seq}, "result": "a", "error": False} | more


def write(path, *values):
    """Write JSON lines."""
    path.write_text("".join(f"{json.dumps(value)}\n" for value in values), "utf-8")
    return path


def sessions(path):
    """Read sessions."""
    return [found for found in read_path(path) if isinstance(found, Session)]


def run(*arguments):
    """Run the command."""
    return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=60)


async def read_back(kafka, topic, wanted):
    """Read records of a topic until there are as many as wanted."""
    client = consumer(kafka)
    client.subscribe([kafka.topic(topic)])
    records: list[Any] = []
    async with running(client, kafka):
        while len(records) < wanted:
            for batch in (await client.getmany(timeout_ms=20_000)).values():
                records += batch
    return records


async def test_events_are_published_as_the_contract_wants_them(bootstrap, prefix):
    """Each event is on its topic once, keyed by its session, readable by the contract's decoder, in its order."""
    kafka = KafkaSettings(bootstrap=bootstrap, prefix=prefix)
    await create_topics(kafka, partitions=3, replication=1, app_id=prefix)
    recorded = sessions(DEMO)
    published = await publish(kafka, recorded)
    events = [event for session in recorded for event in session.events]
    assert (published.sessions, published.total, published.refused) == (4, len(events), [])
    for topic, kind in ((TOOL_CALLS, ToolCall), (SESSIONS, SessionEvent)):
        expected = [event for event in events if isinstance(event, kind)]
        records = await read_back(kafka, topic, len(expected))
        found: list[Any] = [decode(topic, record.value, record.headers) for record in records]
        assert all(record.key.decode() == event.session_id for record, event in zip(records, found, strict=True))
        for session in recorded:
            assert [event for event in found if event.session_id == session.session_id] == [
                event for event in expected if event.session_id == session.session_id
            ]


async def test_speed_keeps_the_recorded_intervals(bootstrap, prefix, tmp_path):
    """With a speed, sessions begin together and their events come interleaved, at that many times the recorded pace."""
    kafka = KafkaSettings(bootstrap=bootstrap, prefix=prefix)
    await create_topics(kafka, partitions=1, replication=1, app_id=prefix)
    a = [line("a", seq, ts=f"2026-01-01T00:00:{10 * seq:02d}Z") for seq in range(3)]
    b = [line("b", seq, ts=f"2020-01-01T00:00:{5 + 10 * seq:02d}Z") for seq in range(2)]
    extra = {"session_id": "b", "kind": "started", "ts": "2020-01-01T00:00:00Z"}
    started = time.monotonic()
    await publish(kafka, sessions(write(tmp_path / "ab.jsonl", *a, extra, *b)), speed=10)
    assert 1.9 < time.monotonic() - started < 10
    records = await read_back(kafka, TOOL_CALLS, 5)
    assert [record.key.decode() for record in records] == ["a", "b", "a", "b", "a"]


async def test_the_command_tells_how_much(bootstrap, prefix, tmp_path):
    """The command prints what it published, names what it could not read, and its exit code tells."""
    kafka = KafkaSettings(bootstrap=bootstrap, prefix=prefix)
    await create_topics(kafka, partitions=1, replication=1, app_id=prefix)
    good = write(tmp_path / "good.jsonl", *(line("s", seq) for seq in range(6)))
    done = run("--bootstrap", bootstrap, "--prefix", prefix, good)
    assert "published 1 session, 6 events" in done.stdout
    assert f"{prefix}tool-calls" in done.stdout
    assert (done.returncode, done.stderr) == (0, "")
    done = run("--bootstrap", bootstrap, "--prefix", prefix, good, tmp_path / "nowhere")
    assert "no such file" in done.stderr
    assert done.returncode == 1


def test_missing_topics_are_not_created(bootstrap, prefix, tmp_path):
    """Topics are never created by the way: missing ones end it with 1 and the remedy."""
    done = run("--bootstrap", bootstrap, "--prefix", prefix, write(tmp_path / "a.jsonl", line("s", 0)))
    assert done.returncode == 1
    assert "traction topics create" in done.stderr


def test_brokers_that_are_not_there(tmp_path):
    """Brokers that cannot be reached end it with 1, in words."""
    done = run("--bootstrap", "127.0.0.1:1", write(tmp_path / "a.jsonl", line("s", 0)))
    assert done.returncode == 1
    assert "127.0.0.1:1" in done.stderr
    assert "Traceback" not in done.stderr
