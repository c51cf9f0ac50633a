"""What is read arrives at the gateway in order; what it never takes is named, and what it does not take now is kept."""

from __future__ import annotations

from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import pytest

from detectors import Limits
from schemas.encode import encode
from schemas.events import SessionEvent, SessionInput
from streams.emitter.settings import EmitterSettings
from streams.follow.judging import Judging
from streams.follow.sinks import Away, GatewaySink, KafkaSink, Outgoing
from streams.gateway.refused import away
from streams.policy.policy import Policy
from tests.kit import outcome, spinning, tool_call
from tests.streams.emitter.kit import GatewayStub

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def outgoing(events: Iterable[SessionInput]) -> list[Outgoing]:
    """Make a batch."""
    return [Outgoing("a.jsonl", event, encode(event)) for event in events]


def said(number: int) -> SessionEvent:
    """Make a word of a person."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return SessionEvent(event_id=f"said{number}", session_id="s", occurred_at=at, kind="user_message")


@pytest.fixture
def gateway() -> Iterator[GatewayStub]:
    """Give a gateway that runs."""
    with GatewayStub() as stub:
        yield stub


@pytest.fixture
def sink(gateway: GatewayStub) -> Iterator[GatewaySink]:
    """Give what sends to it."""
    made = GatewaySink(EmitterSettings(url=gateway.url))
    yield made
    made.close()


async def test_gateway(gateway: GatewayStub, sink: GatewaySink) -> None:
    """Events arrive in their order, also where they change from one kind to another."""
    events: list[SessionInput] = [tool_call("s", 0), tool_call("s", 1), said(0), tool_call("s", 2)]
    assert await sink.send(outgoing(events)) == []
    assert [event.event_id for event in gateway.events] == ["s:0", "s:1", "said0", "s:2"]


async def test_gateway_away(gateway: GatewayStub, sink: GatewaySink) -> None:
    """A gateway that is not there takes events later."""
    gateway.__exit__(None, None, None)
    with pytest.raises(Away, match="gateway does not take events"):
        await sink.send(outgoing([tool_call("s", 0)]))


async def test_kafka_away() -> None:
    """Brokers that do not acknowledge take events later."""

    class Sender:
        async def send(self, _: Any) -> Any:
            raise away("the brokers do not answer")

    with pytest.raises(Away, match="brokers do not answer"):
        await KafkaSink(Sender()).send(outgoing([tool_call("s", 0)]))  # type: ignore[arg-type]
    assert away("").status is HTTPStatus.SERVICE_UNAVAILABLE


async def test_judging() -> None:
    """Alerts are those of the detectors over all of a session, however its events come."""
    told: list[dict[str, Any]] = []
    judging = Judging(Policy(Limits()), told.append)
    events = list(spinning("s", 2))
    for event in events:
        assert await judging.send(outgoing([event])) == []
    assert {alert["alert_id"] for alert in told} == set(outcome(events).alerts)
    assert {alert["source"] for alert in told} == {"a.jsonl"}


@pytest.mark.parametrize(("most", "alerts"), [(3, True), (2, False)])
async def test_judging_is_bounded(most: int, alerts: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """Of more sessions than are remembered the one that was silent longest is judged anew."""
    told: list[dict[str, Any]] = []
    judging = Judging(Policy(Limits()), told.append, most=most)
    for number, session in enumerate(("s", "s", "t", "u", "s")):
        same = {"event_id": f"e{number}", "arguments": {"path": "a"}, "result": "the same"}
        await judging.send(outgoing([tool_call(session, 0, **same)]))
    assert bool(told) is alerts
