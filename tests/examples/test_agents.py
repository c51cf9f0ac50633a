"""Agents in other languages: what they publish is what one in Python would, and they stop when they are told to."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from schemas import topics
from schemas.decode import decode
from schemas.events import Control, ToolCall
from schemas.outputs import Alert, Directive, Termination
from streams.kafka_broker.jars import digest, read_lock
from streams.reading import partition_of
from tests.examples.conftest import PARTITIONS, PROGRAMS, WORKPLACE

if TYPE_CHECKING:
    from pathlib import Path

    from schemas.topics import Topic
    from tests.examples.conftest import Ran, System

pytestmark = [pytest.mark.tools, pytest.mark.timeout(900)]


@pytest.mark.parametrize("name", PROGRAMS)
async def test_an_agent_stops_when_it_is_told_to(system: System, ran: dict[str, Ran], name: str) -> None:
    """Its calls are where its key belongs, its loop is found, and it obeys guidance and termination, once each."""
    program = ran[name]
    assert program.code == 0, program.told + program.log
    key = program.session.encode()

    async def of(topic: Topic) -> list[object]:
        records = [each for each in await system.wire.inputs(topic) if each.key == key]
        assert {each.partition for each in records} == {partition_of(key, PARTITIONS)}
        return [decode(topic, each.value, each.headers) for each in records]

    calls = cast("list[ToolCall]", await of(topics.TOOL_CALLS))
    assert len(calls) >= 5
    assert len({call.event_id for call in calls}) == len(calls)
    alerts = cast("list[Alert]", await of(topics.ALERTS))
    found = [(alert.detector, alert.level) for alert in alerts]
    # On a busy machine more calls are made until the word to stop is there, and the loop is told of again.
    assert found[:2] == [("identical", "warn"), ("identical", "terminate")]
    assert len({alert.alert_id for alert in alerts}) == len(alerts)
    asked = cast("list[Directive]", await of(topics.DIRECTIVES))
    termination, *_ = cast("list[Termination]", await of(topics.TERMINATIONS))
    answers = [(each.action, each.answers, each.actor) for each in cast("list[Control]", await of(topics.CONTROL))]
    assert answers[0] == ("obeyed", asked[0].directive_id, name)
    assert answers[-1] == ("obeyed", termination.termination_id, name)
    assert len(set(answers)) == len(answers)
    assert program.told.startswith(f"session {program.session}\nshown: {asked[0].text}\n")
    assert program.told.endswith(f"\nstopped: {termination.reason}\n")


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_agent_outlives_a_broker_that_restarts(outlived: dict[str, Ran], name: str) -> None:
    """It works on when the broker is back, and stops on a termination that comes long after its loop."""
    program = outlived[name]
    assert program.code == 0, program.told + program.log
    assert program.told.startswith(f"session {program.session}\n")
    assert "\nstopped: the same call with the same result" in program.told


async def test_nothing_of_theirs_is_refused_or_in_the_wrong_place(system: System, ran: dict[str, Ran]) -> None:
    """No record is a dead letter, and none is counted as misrouted."""
    assert ran
    assert not await system.wire.dead_letters()
    counted = {name: value for name, value in (await system.worker.metrics()).items() if "misrouted" in name[0]}
    assert counted
    assert not any(counted.values())


def test_the_jars_are_those_that_are_locked(ran: dict[str, Ran]) -> None:
    """What Java's program runs with has the sums of the project's own lock of jars, transitive ones included."""
    assert ran["java"].code is not None
    sums = {jar.filename: jar.sha256 for jar in read_lock()}
    used = [_path(each) for each in (WORKPLACE / "java" / "target" / "classpath").read_text("utf-8").split(":")]
    assert "kafka-clients" in " ".join(each.name for each in used)
    assert {each.name: digest(each) for each in used} == {each.name: sums.get(each.name) for each in used}


def _path(text: str) -> Path:
    return WORKPLACE / text.strip()
