"""Agents that speak only HTTP, from their first call to the verdict: those that OpenTelemetry's own SDK watches."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import aiohttp
import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from tests.kit import Wire, WorkerProcess
from tests.processes import TRACTION, TractionProcess

MOST_CALLS = 60


@pytest.fixture
def beside(wire: Wire) -> Iterator[Callable[..., TractionProcess]]:
    """Give a starter of other commands on the test's topics; none outlives the test."""
    started: list[TractionProcess] = []
    place = ("--bootstrap", wire.settings.bootstrap, "--prefix", wire.settings.prefix, "--port", "0")

    def begin(command: str, *flags: str) -> TractionProcess:
        started.append(TractionProcess(TRACTION, command, *place, *flags))
        return started[-1]

    yield begin
    for process in started:
        process.kill()


class Agent:
    """An agent whose framework tells OpenTelemetry's SDK of its calls, and nothing else."""

    def __init__(self, url: str, session: str) -> None:
        self._provider = TracerProvider()
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{url}/v1/traces")))
        self._tracer = self._provider.get_tracer("agent")
        self._session = session

    def call(self, arguments: dict[str, Any], result: str) -> None:
        """Call a tool, and have its span exported."""
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "bash",
            "gen_ai.conversation.id": self._session,
            "gen_ai.tool.call.arguments": json.dumps(arguments),
            "gen_ai.tool.call.result": result,
        }
        self._tracer.start_span("execute_tool bash", attributes=attributes).end()
        assert self._provider.force_flush(10_000)

    def end(self) -> None:
        """End the SDK."""
        self._provider.shutdown()


async def test_a_loop_of_spans_is_terminated(
    wire: Wire, start: Callable[..., WorkerProcess], beside: Callable[..., TractionProcess]
) -> None:
    """An agent that spins, seen by OpenTelemetry's SDK and exporter alone, is told to stop; a healthy one is not."""
    worker = start()
    escalation = beside("escalate", "--app-id", wire.app_id)
    gateway = beside("ingest")
    url = await gateway.ready()
    await worker.ready()
    await escalation.ready()
    spinning, healthy = Agent(url, "spinning"), Agent(url, "healthy")
    verdict: dict[str, Any] = {}
    async with aiohttp.ClientSession() as session:
        for number in range(MOST_CALLS):
            await asyncio.to_thread(spinning.call, {"command": "make test"}, "1 failed: test_a")
            await asyncio.to_thread(healthy.call, {"command": f"sed -n {number}p a.py"}, f"line {number}")
            async with session.get(f"{url}/v1/sessions/spinning/verdict") as answer:
                verdict = await answer.json()
            if verdict["action"] == "stop":
                break
            await asyncio.sleep(0.2)
        assert verdict["action"] == "stop"
        async with session.get(f"{url}/v1/sessions/healthy/verdict") as answer:
            assert (await answer.json())["action"] == "go_on"
        said = {"session_id": "spinning", "answers": verdict["answers"], "action": "ended"}
        async with session.post(f"{url}/v1/answers", json=said) as answer:
            assert answer.status == 200
    for agent in (spinning, healthy):
        await asyncio.to_thread(agent.end)
    assert [await process.end() for process in (gateway, worker, escalation)] == [0, 0, 0]
