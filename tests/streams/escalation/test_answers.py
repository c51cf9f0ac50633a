"""What orchestrators and people answer, on its way through the real worker."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from schemas import topics
from schemas.common import Task
from schemas.encode import encode
from schemas.events import Control, ToolCall
from schemas.outputs import Directive, Notification, Termination
from streams.kafka import producer, running
from tests.processes import TRACTION, TractionProcess
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from schemas.events import Event
    from streams.kafka import KafkaSettings
    from tests.streams.escalation.conftest import Inside, Wire


async def publish(kafka: KafkaSettings, events: list[Event]) -> None:
    """Write what agents and orchestrators say."""
    async with running(producer(kafka), kafka) as client:
        for event in events:
            topic = topics.CONTROL if isinstance(event, Control) else topics.TOOL_CALLS
            await client.send_and_wait(kafka.topic(topic), key=event.session_id.encode(), value=encode(event))


def loop(session: str, first: int, last: int) -> list[Event]:
    """Give calls of one tool with one result."""
    return [
        ToolCall(
            event_id=f"{session}-{number}",
            session_id=session,
            occurred_at=datetime.now(UTC),
            tool="read",
            arguments={"path": "a.py"},
            result="x",
            status="ok",
            task=Task(id=f"task of {session}"),
        )
        for number in range(first, last)
    ]


def answer(session: str, action: str, answers: str) -> Control:
    """Give an orchestrator's answer."""
    return Control(
        event_id=f"{session} {action} {answers}",
        session_id=session,
        occurred_at=datetime.now(UTC),
        action=action,  # type: ignore[arg-type]
        answers=answers,
    )


async def test_answers_find_their_way_through_the_worker(wire: Wire, inside: Callable[..., Inside]) -> None:
    """A refused directive brings the next rung at once; an obeyed termination is not repeated, another one is."""
    now = datetime.now(UTC)
    kafka = wire.settings
    place = ("--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix, "--port", "0")
    worker = TractionProcess(TRACTION, "worker", *place, "--app-id", wire.app_id)
    try:
        await worker.ready()
        async with inside(clock=lambda: now):
            await publish(kafka, [*loop("one", 0, 3), *loop("two", 0, 3)])
            first = {each.session_id: each for each in await wire.until_outputs(Directive, 2)}
            await publish(kafka, [answer("one", "refused", first["one"].directive_id)])
            *_, second = await wire.until_outputs(Directive, 3)
            assert (second.session_id, second.alert_id) == ("one", first["one"].alert_id)
            assert (first["one"].action, second.action) == ("inject_guidance", "cooldown")
            await publish(kafka, [*loop("one", 3, 5), *loop("two", 3, 5)])
            verdicts = {each.session_id: each for each in await wire.until_outputs(Termination, 2)}
            await publish(kafka, [answer("one", "obeyed", verdicts["one"].termination_id)])

            async def ended() -> bool:
                return "ended" in {each.kind for each in await wire.outputs(Notification)}

            await until(ended)
            now += timedelta(minutes=2)
            *_, repeated = await wire.until_outputs(Termination, 3)
            assert (repeated.session_id, repeated.attempt) == ("two", 2)
            now += timedelta(minutes=2)
            *_, repeated = await wire.until_outputs(Termination, 4)
            assert (repeated.session_id, repeated.attempt) == ("two", 3), "nobody asks the first one again"
    finally:
        worker.kill()
