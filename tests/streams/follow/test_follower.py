"""What is written is sent once and in order: growth, rotation, cuts, half lines, restarts, files that come and go."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from schemas.events import SessionEvent, ToolCall
from streams.follow import NotesUnusable
from streams.follow.batch import MOST_EVENTS
from streams.follow.follower import MOST_FAULTS
from tests.streams.follow.kit import Killed, answers, asks, call, calls, name, names, neutral

if TYPE_CHECKING:
    from tests.streams.follow.kit import World


async def test_growth(world: World) -> None:
    """A file that appears is sent whole, then what is added to it, and a call is sent when its result is there."""
    await world.started()
    world.write("a.jsonl", calls([0, 1]) + asks(2))
    await world.turns()
    assert world.sink.ids == names([0, 1])
    world.write("a.jsonl", answers(2) + call(3))
    world.write("deep/er/b.jsonl", call(7, "s2"))
    await world.turns()
    assert [each for each in world.sink.ids if each != name(7, "s2")] == names([0, 1, 2, 3])
    assert world.sink.ids.count(name(7, "s2")) == 1
    assert {type(event) for event in world.sink.events} == {ToolCall}


async def test_what_was_there(world: World) -> None:
    """Of a file that is there at the first start only what comes is sent, its call with the number that it has."""
    world.write("a.jsonl", b"".join(neutral(number) for number in range(3)) + neutral(3)[:-5])
    await world.started()
    assert world.sink.ids == []
    world.write("a.jsonl", neutral(3)[-5:] + neutral(4))
    await world.turns()
    assert world.sink.ids == ["s1#3", "s1#4"]


async def test_since(world: World) -> None:
    """With a time, of files that are there what happened since then is sent too, but nothing before it."""
    world.write("a.jsonl", calls([1, 2, 3]))
    await world.started(since=datetime(2026, 3, 2, 0, 0, 2, tzinfo=UTC))
    await world.turns()
    assert world.sink.ids == names([2, 3])


async def test_restart(world: World) -> None:
    """A new start goes on where it was, also with files that came or grew in between, and sends nothing twice."""
    await world.started()
    world.write("a.jsonl", calls([0, 1]) + asks(2))
    await world.turns()
    world.end()
    world.write("a.jsonl", answers(2) + call(3))
    world.write("b.jsonl", call(0, "s2"))
    await world.started()
    await world.turns()
    assert sorted(world.sink.ids) == sorted([*names([0, 1, 2, 3]), name(0, "s2")])
    world.end()
    await world.started()
    await world.turns()
    assert len(world.sink.ids) == 5


async def test_kill_before_it_is_noted(world: World) -> None:
    """What was sent and could not be noted is sent again with the same identifiers, in batches that a session knows."""
    await world.started()
    world.write("a.jsonl", calls(range(100)))
    world.sink.killed = True
    with pytest.raises(Killed):
        await world.turns()
    assert world.sink.ids == names(range(MOST_EVENTS))
    await world.started()
    await world.turns()
    assert world.sink.ids == [*names(range(MOST_EVENTS)), *names(range(100))]
    assert max(map(len, world.sink.batches)) == MOST_EVENTS < 64


@pytest.mark.parametrize("cut", [1, 30, 200])
async def test_half_lines(world: World, cut: int) -> None:
    """A half-written last line waits for the rest of it, over a restart too; it is told as no fault."""
    await world.started()
    data = calls([0, 1])
    world.write("a.jsonl", data[:-cut])
    await world.turns()
    await world.started()
    world.write("a.jsonl", data[-cut:])
    await world.turns()
    assert sorted(set(world.sink.ids)) == names([0, 1])
    assert len(world.sink.ids) == 2
    assert world.happened("fault") == []


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
async def test_a_last_line_without_an_end(world: World, end: bytes) -> None:
    """A last line that is a whole object counts as it stands; its end, when that comes, is no line."""
    await world.started()
    world.write("a.jsonl", call(0).rstrip())
    await world.turns()
    assert world.sink.ids == names([0])
    world.write("a.jsonl", end + call(1) + b"{broken\n")
    await world.turns()
    assert world.sink.ids == names([0, 1])
    assert [told.line for told in world.happened("fault")] == [5]


async def test_rotation_in_the_folder(world: World) -> None:
    """What stands in a file that was renamed is sent before what stands in the one in its place, and none twice."""
    await world.started()
    path = world.write("a.jsonl", call(0))
    await world.turns()
    world.write("a.jsonl", calls([1, 2]))
    path.rename(path.with_name("a.jsonl.1"))
    world.write("a.jsonl", calls([3, 4]))
    await world.turns()
    world.write("a.jsonl.1", b"")
    await world.started()
    world.write("a.jsonl", call(5))
    await world.turns()
    assert world.sink.ids == names(range(6))


async def test_rotation_out_of_sight(world: World) -> None:
    """The end of a file that is renamed out of the folder is read, also where the file itself is what is followed."""
    path = world.folder / "a.jsonl"
    await world.started(roots=(str(path),))
    world.write("a.jsonl", call(0))
    await world.turns()
    world.write("a.jsonl", call(1) + asks(2))
    path.rename(world.folder.parent / "elsewhere")
    world.write("a.jsonl", call(3))
    await world.turns(6)
    assert world.sink.ids[:2] == names([0, 1])
    assert sorted(world.sink.ids) == names([0, 1, 2, 3])


async def test_cut(world: World) -> None:
    """After a cut the new content is sent, also a call that has the number of an earlier one; what is equal is not."""
    await world.started()
    world.write("a.jsonl", b"".join(neutral(number) for number in range(3)))
    await world.turns()
    world.write("a.jsonl", neutral(7) + neutral(1), "wb")
    await world.turns()
    *old, new = world.sink.ids
    assert old == ["s1#0", "s1#1", "s1#2"]
    assert new.startswith("s1#0~")
    assert [told.what for told in world.told if told.path][-1] == "rewritten"
    await world.started()
    world.write("a.jsonl", neutral(7) + neutral(1), "wb")
    await world.turns()
    assert world.sink.ids == [*old, new]


@pytest.mark.parametrize("followed", [True, False])
async def test_cut_behind_its_beginning(world: World, followed: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """A file that loses its end, as where an agent goes back, sends what comes after that, and nothing before it."""
    data, kept = calls(range(20)), calls(range(10))
    if not followed:
        world.write("a.jsonl", data)
    await world.started()
    if followed:
        world.write("a.jsonl", data)
    await world.turns()
    world.write("a.jsonl", kept[:-7], "wb")
    await world.turns()
    world.write("a.jsonl", kept[-7:] + calls([30, 31]))
    await world.turns()
    assert world.sink.ids == names([*(range(20) if followed else []), *([] if followed else [9]), 30, 31])


async def test_cut_while_a_call_waits(world: World) -> None:
    """A call whose result was cut away before it could be read is sent without one."""
    await world.started()
    world.write("a.jsonl", asks(0))
    await world.turns()
    world.write("a.jsonl", b"", "wb")
    await world.turns()
    world.write("a.jsonl", call(1))
    await world.turns()
    assert world.sink.ids == names([0, 1])


async def test_written_anew_in_place(world: World) -> None:
    """An agent that writes the whole file anew under its name sends only what is new, from the first start on."""
    old = world.write("a.jsonl", calls([0, 1]))
    await world.started()
    for end in range(3, 6):
        world.write("new", calls(range(end)))
        (world.folder / "new").rename(old)
        await world.turns()
    assert world.sink.ids == names([2, 3, 4])


async def test_removal(world: World) -> None:
    """With a file that is removed its session ends: what waited for a result is sent without, and it is forgotten."""
    await world.started()
    path = world.write("a.jsonl", call(0) + asks(1))
    await world.turns()
    path.unlink()
    await world.turns(6)
    assert world.sink.ids == names([0, 1])
    assert [told.path for told in world.happened("removed")] == [str(path)]
    assert world.follower._tails == {}
    await world.follower.turn()
    assert len(world.follower._files) == 0


async def test_an_inode_that_is_used_again(world: World) -> None:
    """A file that has the inode of one that is gone is another file, and names its session by its own name."""
    await world.started(idle_seconds=-1.0)
    path = world.write("a.jsonl", asks(0, session=None) + answers(0, session=None))  # type: ignore[arg-type]
    await world.turns()
    data = json.dumps({"type": "assistant", "uuid": "u", "sessionId": "other", "message": {"id": "m"}}).encode()
    path.rename(path.with_name("b.jsonl"))
    world.write("b.jsonl", data + b"\n" + call(4, "s4"), "wb")  # the same inode, under another name
    await world.turns()
    known = world.follower._files.at(str(path.with_name("b.jsonl")))
    assert known is not None
    assert known.source == str(path.with_name("b.jsonl"))
    assert world.sink.ids[-1] == name(4, "s4")


async def test_many_files(world: World) -> None:
    """Of many files that grow few are open at a time, and what was closed goes on under the same identifiers."""
    await world.started(tails=3, entries=5, turn_bytes=2_000)
    for number in range(12):
        for session in range(10):
            world.write(f"{session}.jsonl", call(number, f"s{session}"))
        await world.turns(25)
        assert len(world.follower._tails) <= 3
    assert sorted(world.sink.ids) == sorted(name(n, f"s{s}") for n in range(12) for s in range(10))
    for session in range(10):
        assert [each for each in world.sink.ids if each.startswith(f"s{session}/")] == names(range(12), f"s{session}")


async def test_silent_files_are_closed(world: World) -> None:
    """A file that does not grow for some time is closed, not before, and read again when it does."""
    await world.started()
    world.write("a.jsonl", call(0))
    await world.turns()
    assert len(world.follower._tails) == 1
    await world.started(idle_seconds=0.0)
    world.write("a.jsonl", call(1))
    await world.turns()
    assert len(world.follower._tails) == 0
    world.write("a.jsonl", call(2))
    await world.turns()
    assert world.sink.ids == names([0, 1, 2])


async def test_bounded_turns(world: World) -> None:
    """A turn reads so many bytes and the line that goes beyond, so that a large file holds up no other."""
    await world.started(turn_bytes=1_000)
    world.write("large.jsonl", calls(range(30)))
    world.write("small.jsonl", call(0, "s2"))
    await world.turns(2)
    assert name(0, "s2") in world.sink.ids
    assert 0 < len([each for each in world.sink.ids if each.startswith("s1")]) < 30
    await world.turns(60)
    assert len(world.sink.ids) == 31


async def test_away(world: World) -> None:
    """While events are not taken nothing more is read; they are sent again, in order, and both is told once."""
    await world.started()
    world.write("a.jsonl", calls(range(90)))
    world.sink.away = 3
    await world.turns()
    assert world.sink.ids == names(range(90))
    assert (len(world.happened("away")), len(world.happened("back"))) == (1, 1)


async def test_an_end_while_events_are_not_taken(world: World) -> None:
    """Told to stop, a follower whose events are not taken ends, and sends them at the next start."""
    await world.started()
    world.write("a.jsonl", calls([0, 1]))
    world.sink.away = 10**6
    running = asyncio.create_task(world.follower.run())
    await world.until("away")
    world.stop.set()
    await running
    assert world.told[-1].what == "ended"
    world.stop.clear()
    world.sink.away = 0
    await world.started()
    await world.turns()
    assert world.sink.ids == names([0, 1])


async def test_an_end_in_order(world: World) -> None:
    """Told to stop, it ends with what it read sent and noted."""
    world.start()
    running = asyncio.create_task(world.follower.run())
    await world.until("ready")
    world.write("a.jsonl", calls(range(50)))
    await world.until("progress")
    world.stop.set()
    await running
    assert world.told[-1].sent == len(world.sink.ids)
    world.stop.clear()
    await world.started()
    await world.turns()
    assert world.sink.ids == names(range(50))


async def test_refused_events(world: World) -> None:
    """An event that is never taken is told with the reason, counted, not sent again, and holds up no other."""
    await world.started()
    world.sink.refuse = (name(1),)
    world.write("a.jsonl", calls(range(3)))
    await world.turns()
    await world.started()
    await world.turns()
    assert world.sink.ids == names([0, 2])
    assert [told.event_id for told in world.happened("refused")] == [name(1)]


async def test_privacy(world: World) -> None:
    """Only what the level allows leaves the follower."""
    await world.started(privacy="digests")
    world.write("a.jsonl", asks(0) + answers(0, text="something private"))
    await world.turns()
    (event,) = world.sink.events
    assert isinstance(event, ToolCall)
    assert event.result_digest is not None
    assert "private" not in str(event)
    assert "0.py" not in str(event)


async def test_events_of_the_session(world: World) -> None:
    """What a person said is sent in its place among the calls."""
    await world.started()
    said = json.loads(asks(1)) | {"type": "user", "message": {"role": "user", "content": "Go on"}}
    world.write("a.jsonl", call(0) + json.dumps(said).encode() + b"\n" + call(2))
    await world.turns()
    assert world.sink.ids == [name(0), "s1#user_message-0", name(2)]
    assert isinstance(world.sink.events[1], SessionEvent)


async def test_faults(world: World) -> None:
    """Lines that cannot be read are told by number, some of each file, once; what stands beside them is sent."""
    await world.started()
    world.write("a.jsonl", call(0) + b"{broken}\n" * (MOST_FAULTS + 1) + call(1))
    await world.turns()
    assert world.sink.ids == names([0, 1])
    assert [told.line for told in world.happened("fault")] == list(range(3, 3 + MOST_FAULTS))
    await world.started()
    world.write("a.jsonl", call(2))
    await world.turns()
    assert len(world.happened("fault")) == MOST_FAULTS


async def test_one_at_a_time(world: World) -> None:
    """A second process with the same state is refused, and told what to do."""
    await world.started()
    first, world.notes = world.notes, None
    with pytest.raises(NotesUnusable, match="another traction follow uses it; give --state"):
        world.start()
    world.notes = first
