"""How long states are kept, on a real broker: the changelog is bounded, and earlier states are taken over."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec
from aiokafka.partitioner import murmur2

from detectors import limits_from
from detectors.state import STATE_VERSION
from schemas import topics
from schemas.decode import decode
from schemas.testing import session_event
from streams.kafka import admin, running
from streams.policy.policy import Policy
from streams.worker.records import HEARTBEAT_KEY, HEARTBEAT_VALUE, SESSION, decode_stored
from tests.kit import WorkerInside, outcome, tool_call
from tests.topic_config import compact_at_once
from tests.waiting import until

if TYPE_CHECKING:
    from aiokafka.structs import ConsumerRecord

    from schemas.events import ToolCall
    from tests.kit import Wire

ENDED_SECONDS = 1.0
SHORT, LIVING = 300, 12
EARLIER = Path(__file__).parents[1] / "detectors" / "earlier" / "session-5-task-2"


async def states_written(wire: Wire) -> list[ConsumerRecord]:
    """Give the records of the sessions' changelog as they are, but for heartbeats."""
    return [record for record in await wire.records(wire.changelog) if record.key != HEARTBEAT_KEY]


async def test_the_changelog_holds_what_lives_and_little_more(wire: Wire) -> None:
    """Hundreds of sessions end and expire: compaction leaves a record for each that lives, and recovery is right.

    What is read back ends in tombstones and in gaps where they were. A late call of one that expired begins it anew.
    """
    limits = limits_from([("test", {"sessions.ended_hours": ENDED_SECONDS / 3_600})])
    living = [tool_call(f"lives{number}", call) for call in range(3) for number in range(LIVING)]
    for number, event in enumerate(living):
        living[number] = msgspec.structs.replace(event, arguments={"path": "a"}, result="the same each time")
    later = living[2 * LIVING :]
    short = [tool_call(f"s{number}", call) for number in range(SHORT) for call in range(2)]
    ends = [session_event(number, "ended", session_id=f"s{number}") for number in range(SHORT)]
    async with running(admin(wire.settings), wire.settings) as client:
        await compact_at_once(client, wire)
        async with WorkerInside(wire, policy=Policy(limits), sweep_interval=0.2, commit_interval=0.05) as inside:
            await wire.send([*living[: 2 * LIVING], *short])
            await wire.until_applied()
            await wire.send(ends)

            async def expired() -> bool:
                return inside.value("traction_sessions_expired_total") == SHORT

            await until(expired)
            assert inside.value("traction_tasks_expired_total") == 0
            await wire.send([tool_call("s0", 9)])
            await wire.until_applied()
        left = {f"lives{number}" for number in range(LIVING)} | {"s0"}
        assert (await wire.states()).keys() == left

        async def compacted() -> bool:
            # Segments are closed, and tombstones dropped, when more is written.
            for number in range(wire.partitions):
                await wire.put(wire.changelog, HEARTBEAT_VALUE, key=HEARTBEAT_KEY, partition=number)
            return len(await states_written(wire)) <= len(left) + wire.partitions

        await until(compacted)
    async with WorkerInside(wire) as again:
        assert again.value("traction_sessions_expired_total") == 0
        await wire.send(later)
        await wire.until_applied()
    states = await wire.states()
    assert states.keys() == left
    assert states["s0"].calls == 1
    wanted = outcome([*living, tool_call("s0", 9)])
    assert states == wanted.states
    assert {alert.alert_id for alert in await wire.alerts()} == wanted.alerts.keys() != set()


async def test_states_of_an_earlier_release_are_taken_over(wire: Wire) -> None:
    """A worker that finds what the release before wrote goes on from it, and writes it in today's version."""
    stored = json.loads((EARLIER / "states.json").read_text())
    after = _events_after_the_cut("loop")
    for name, state in stored["sessions"].items():
        record = msgspec.msgpack.encode([1, {}, base64.b64decode(state)])
        place = (murmur2(name.encode()) & 0x7FFFFFFF) % wire.partitions
        await wire.put(wire.changelog, record, key=name.encode(), partition=place)
    async with WorkerInside(wire):
        await wire.send(after)
        await wire.until_applied()
    found = {alert.alert_id for alert in await wire.alerts()}
    assert found
    assert found <= set(stored["alerts"])
    values = {key: value for (_, key), value in (await wire.stored(wire.changelog)).items()}
    assert values.keys() == {name.encode() for name in stored["sessions"]}
    assert (decode_stored(values[b"loop"]).kind, decode_stored(values[b"loop"]).version) == (SESSION, STATE_VERSION)
    assert decode_stored(values[b"rich"]).version == int(EARLIER.name.split("-")[1])


def _events_after_the_cut(session_id: str) -> list[ToolCall]:
    """Give what followed of a session that has tool calls alone: between topics there is no order."""
    lines = gzip.decompress((EARLIER / "events.jsonl.gz").read_bytes()).splitlines()
    found = [json.loads(line) for line in lines[lines.index(b'"cut"') + 1 :]]
    calls = [decode(topics.TOOL_CALLS, json.dumps(each).encode(), ()) for name, each in found if name == "tool-calls"]
    return [call for call in cast("list[ToolCall]", calls) if call.session_id == session_id]
