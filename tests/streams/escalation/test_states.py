"""What is kept of tasks on Kafka: timers, restarts, moves between processes, clocks and policies that change."""

from __future__ import annotations

import asyncio
import signal
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest

from detectors import TaskEvent
from detectors.tasks.facts import Attempt, Spent
from schemas import topics
from schemas.common import Agent
from schemas.outputs import Directive, Fitness, KnownFlapping, Notification, Termination
from streams.escalation.restore import UnreadableLadder
from streams.escalation.state import LADDER_VERSION
from streams.kafka import producer, running
from streams.policy.policy import Policy
from streams.topics import ladders_name
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.streams.escalation.conftest import Inside, MakeAlert, Process, Wire

TASK = "task of s1"


class Clock:
    """A clock that stands where it is put."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        """Read it."""
        return self.now

    def go(self, seconds: float) -> None:
        """Go on, or back."""
        self.now += timedelta(seconds=seconds)


def said(event_id: str, word: str, answers: str = "", session: str = "s1") -> TaskEvent:
    """Give a control record's word as a worker forwards it."""
    return TaskEvent(event_id, session, f"task of {session}", 1_000, word=word, answers=answers)  # type: ignore[arg-type]


async def test_an_unanswered_termination_is_repeated_and_then_a_person_is_told(
    wire: Wire, alert: MakeAlert, inside: Callable[..., Inside]
) -> None:
    """By time alone, also across a restart: attempts 1, 2, 3 of one id, then one notification, then nothing."""
    clock = Clock()
    await wire.send([alert("t", level="terminate")])
    async with inside(clock=clock):
        await wire.until_outputs(Termination, 1)
        clock.go(61)
        await wire.until_outputs(Termination, 2)
        clock.go(30)
    async with inside(clock=clock) as second:
        assert second.measured("traction_pending_terminations") in {0, 1}
        clock.go(31)
        await wire.until_outputs(Termination, 3)
        clock.go(61)

        async def told() -> bool:
            return [each.kind for each in await wire.outputs(Notification)] == ["terminate", "unanswered"]

        await until(told)
        assert second.measured("traction_terminations_total", attempt="repeated", reason="identical") == 1
        assert second.measured("traction_unanswered_terminations_total") == 1
    terminations = await wire.outputs(Termination)
    assert [each.attempt for each in terminations] == [1, 2, 3]
    assert len({each.termination_id for each in terminations}) == 1
    assert {each.issued_at for each in terminations} == {terminations[0].issued_at}


async def test_a_cooldown_goes_on_over_a_restart_and_ends(
    wire: Wire, alert: MakeAlert, inside: Callable[..., Inside]
) -> None:
    """While it runs further alerts ask nothing, whoever has the partition; after it the next rung is taken."""
    clock = Clock()

    async def actions(*expected: str) -> None:
        async def there() -> bool:
            return [each.action for each in await wire.outputs(Directive)] == list(expected)

        await until(there)

    async with inside(clock=clock) as first:
        await wire.send([alert("a1"), alert("a2")])
        await actions("inject_guidance", "cooldown")
        await until(lambda: measured(first, "traction_open_cooldowns", 1))
    async with inside(clock=clock) as second:
        await wire.send([alert("a3"), alert("mark", session_id="s2", task_id=TASK)])
        await actions("inject_guidance", "cooldown", "inject_guidance")
        clock.go(301)
        await until(lambda: measured(second, "traction_open_cooldowns", 0))
        await wire.send([alert("a4")])
        await actions("inject_guidance", "cooldown", "inject_guidance", "rotate_strategy")
        assert second.measured("traction_timers_fired_total") == 1


async def measured(consumer: Inside, name: str, value: float) -> bool:
    """Tell whether a metric has a value."""
    return consumer.measured(name) == value


async def test_a_clock_that_is_set_back_delays_no_longer_than_the_time_itself(
    wire: Wire, alert: MakeAlert, inside: Callable[..., Inside]
) -> None:
    """Set back by a day while a termination waits: it is repeated a minute later, not a day and a minute."""
    clock = Clock()
    await wire.send([alert("t", level="terminate")])
    async with inside(clock=clock):
        await wire.until_outputs(Termination, 1)
        clock.go(-86_400)
        await until(lambda: due_within(wire, clock, 60))
        clock.go(61)
        assert [each.attempt for each in await wire.until_outputs(Termination, 2)] == [1, 2]


async def due_within(wire: Wire, clock: Clock, seconds: float) -> bool:
    """Tell whether the one termination that waits is due in so many seconds, at the latest."""
    (state,) = (await wire.ladders()).values()
    held = state.climbs["s1"].pending
    return held is not None and held.due_ms <= (clock.now.timestamp() + seconds) * 1000


async def test_answers_that_came_while_nobody_was_there_are_heard_before_what_is_due(
    wire: Wire, alert: MakeAlert, inside: Callable[..., Inside]
) -> None:
    """A termination that was obeyed during a stop is not repeated after it, though its time was up long ago."""
    clock = Clock()
    await wire.send([alert("t", level="terminate")])
    async with inside(clock=clock):
        (termination,) = await wire.until_outputs(Termination, 1)
    clock.go(3_600)
    await wire.send([said("e", "obeyed", termination.termination_id)])
    async with inside(clock=clock) as second:

        async def ended() -> bool:
            return [each.kind for each in await wire.outputs(Notification)] == ["terminate", "ended"]

        await until(ended)
        assert second.measured("traction_answers_total", word="obeyed", answered="termination") == 1
    assert len(await wire.outputs(Termination)) == 1


async def test_a_task_that_may_be_tried_again_is_no_longer_listed(
    wire: Wire, alert: MakeAlert, inside: Callable[..., Inside]
) -> None:
    """Its entry is removed by an empty record, at a word or when it expires; its ladder goes when nothing is left."""
    clock = Clock()
    await wire.send([alert("t", level="terminate"), alert("u", level="terminate", session_id="s2")])
    async with inside(clock=clock):
        await wire.until_outputs(KnownFlapping, 2)
        await wire.send([said("e", "clear")])

        async def left(*tasks: str) -> bool:
            entries = {each.key.decode(): each.value for each in await wire.records(topics.KNOWN_FLAPPING)}
            listed = {task for task, value in entries.items() if value is not None}
            return listed == set(tasks) and (await wire.ladders()).keys() == set(tasks)

        await until(lambda: left("task of s2"))
        await wire.send([said("f", "ended", session="s2")])
        await wire.until_outputs(Notification, 4)
        clock.go(8 * 86_400)
        await until(left)


async def test_a_partition_takes_its_ladders_along(wire: Wire, alert: MakeAlert, inside: Callable[..., Inside]) -> None:
    """A second process that takes its part, and a first that gets it back, know what was done, and go on from there."""
    sessions = [f"s{number}" for number in range(6)]  # of both partitions

    async def climbed(*expected: str) -> None:
        """Have each session alerted about once more, and see what each was told by now."""
        count = len(expected)
        await wire.send([alert(f"{session}-{count}", session_id=session) for session in sessions])
        directives = await wire.until_outputs(Directive, len(sessions) * count)
        for session in sessions:
            assert tuple(each.action for each in directives if each.session_id == session) == expected

    policy = Policy(ladder={"order": ["inject_guidance", "rotate_strategy", "escalate_human"]})
    async with inside(policy) as first:
        await climbed("inject_guidance")
        async with inside(policy) as second:

            async def shared() -> bool:
                held = [each.measured("traction_ladders") or 0 for each in (first, second)]
                return all(held) and sum(held) == len(sessions)

            await until(shared)
            assert (second.measured("traction_restored_records_total") or 0) > 0
            await climbed("inject_guidance", "rotate_strategy")
        await until(lambda: measured(first, "traction_ladders", len(sessions)))
        await climbed("inject_guidance", "rotate_strategy", "rotate_strategy")


@pytest.mark.parametrize("value", [b"junk", msgspec.msgpack.encode([LADDER_VERSION + 1, []])])
async def test_a_ladder_that_cannot_be_read_ends_the_process(
    wire: Wire, inside: Callable[..., Inside], value: bytes
) -> None:
    """Damaged or of another release: it says where and what to do, and nothing is answered; a later record mends it."""
    name = ladders_name(wire.group)
    async with running(producer(wire.settings), wire.settings) as client:
        await client.send_and_wait(name, key=b"a task", value=value, partition=1)
        with pytest.raises(UnreadableLadder, match=rf"{name}-1@0: a task's ladder .*empty record.*\(a task\)"):
            async with inside():
                pass
        await client.send_and_wait(name, key=b"a task", value=None, partition=1)
    async with inside():
        pass


async def test_fitness_is_counted_once_over_restarts(
    wire: Wire, alert: MakeAlert, inside: Callable[..., Inside]
) -> None:
    """Attempts, tokens and what came of tasks, by configuration and partition, go on from what was committed."""
    agent = Agent(name="a", role="coder", model="m", config="c")

    def attempt(number: int, outcome: str) -> TaskEvent:
        tried = Attempt(f"x{number}", 0, f"e{number}", 1_000, outcome)  # type: ignore[arg-type]
        return TaskEvent(f"e{number}", "s1", TASK, 1_000, agent=agent, spent=Spent(tokens=10), attempt=tried)

    async def fitness() -> list[tuple[int, ...]]:
        found = {each.key: each for each in await wire.records(topics.FITNESS)}
        values = [msgspec.json.decode(each.value, type=Fitness) for each in found.values()]
        return [(each.tasks, each.attempts, each.converged, each.flapped, each.tokens) for each in values]

    async def comes_to(*expected: int) -> bool:
        return await fitness() == [expected]

    async with inside():
        await wire.send([attempt(1, "failed"), alert("t", level="terminate", agent=agent)])
        await until(lambda: comes_to(1, 1, 0, 1, 10))
    async with inside():
        await wire.send([attempt(2, "success"), attempt(3, "success")])
        await until(lambda: comes_to(1, 3, 1, 1, 30))


async def test_another_policy_holds_from_the_next_turn_on(
    wire: Wire, alert: MakeAlert, inside: Callable[..., Inside]
) -> None:
    """What was begun goes on by the new one: times are cut to its lengths, and the next rung is its next."""
    clock = Clock()
    async with inside(clock=clock) as consumer:
        await wire.send([alert("t", level="terminate")])
        await wire.until_outputs(Termination, 1)
        consumer.escalation.replace(Policy(ladder={"answer_seconds": 5.0, "order": ["escalate_human"]}))
        await until(lambda: due_within(wire, clock, 5))
        clock.go(6)
        await wire.until_outputs(Termination, 2)
        await wire.send([alert("w", session_id="s2")])
        assert [each.action for each in await wire.until_outputs(Directive, 1)] == ["escalate_human"]


async def test_the_policy_file_is_followed(
    wire: Wire, alert: MakeAlert, start: Callable[..., Process], tmp_path: Path
) -> None:
    """SIGHUP puts a changed file in force; one that cannot be used is refused, its sinks too; the old one stays."""
    file, out = tmp_path / "policy.toml", tmp_path / "told.jsonl"
    good = f'[ladder]\norder = ["escalate_human"]\n[sinks.log]\ntype = "file"\npath = "{out}"\n'
    file.write_text('[ladder]\norder = ["cooldown"]\n')
    process = start("--policy", str(file))
    await process.ready(2)
    await wire.send([alert("a")])
    await wire.until_outputs(Directive, 1)

    async def logged(words: str) -> bool:
        return any(words in line for line in process.errors)

    file.write_text('[sinks.log]\ntype = "pigeon"\n')
    process.send(signal.SIGHUP)
    await until(lambda: logged("the one before it stays"))
    file.write_text(good)
    process.send(signal.SIGHUP)
    await until(lambda: logged("the policy is in force"))
    await wire.send([alert("b", session_id="s2")])
    directives = await wire.until_outputs(Directive, 2)
    assert {each.session_id: each.action for each in directives} == {"s1": "cooldown", "s2": "escalate_human"}

    async def told() -> bool:
        return out.exists() and "escalate_human" in await asyncio.to_thread(out.read_text)

    await until(told)
    assert await process.end() == 0, process.log
