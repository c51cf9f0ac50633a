"""The emitter, the gateway and a broker together: events arrive, a termination stops the agent, it is answered."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from detectors.denial import own_denial
from schemas import topics
from schemas.events import ToolCall
from streams.adapters.watch import EmitterWatch, Enforcer
from streams.emitter import AsyncEmitter, EmitterSettings
from streams.gateway.process import serving
from streams.gateway.settings import GatewaySettings
from streams.page_settings import PageSettings
from tests.streams.outputs_kit import answers, found, kafka, put, termination
from tests.waiting import SOON_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

    from streams.kafka import KafkaSettings
    from streams.verdicts import Verdict

__all__ = ["kafka"]


async def test_an_agent_is_stopped_through_the_gateway(kafka: KafkaSettings, tmp_path: Path) -> None:
    """What the agent told is on the topics, each once, also what was kept on disk; what stops it says so once."""
    stopped = asyncio.Event()
    heard: list[Verdict] = []

    def hear(verdict: Verdict) -> None:
        heard.append(verdict)
        stopped.set()

    async with serving(kafka, GatewaySettings(), PageSettings()) as gateway:
        away = EmitterSettings(url="http://127.0.0.1:9", spool=str(tmp_path))
        async with AsyncEmitter(away) as early:
            kept = [early.tool_call("s1", "Bash", {"command": f"make {n}"}, "done") for n in range(100)]
        settings = EmitterSettings(url=gateway.pages.url, spool=str(tmp_path))
        async with AsyncEmitter(settings, on_verdict=hear) as emitter:
            sent = [emitter.tool_call("s1", "Bash", {"command": "ls"}, "a.py"), emitter.session("s1", "turn")]
            await put(kafka, termination(session_id="s1"))
            async with asyncio.timeout(SOON_SECONDS):
                while not stopped.is_set():
                    sent.append(emitter.session("s1", "turn"))
                    await asyncio.sleep(0.1)
            assert (heard[0].action, emitter.verdict("s1")) == ("stop", heard[0])
            enforcer = Enforcer(EmitterWatch(emitter.emitter, "s1"))
            assert [enforcer.before("Bash", {"command": "ls"}), enforcer.ends()] == [heard[0], heard[0]]
            assert await emitter.flush(30)
    told = await found(kafka, topics.TOOL_CALLS) + await found(kafka, topics.SESSIONS)
    denied = [event for event in told if isinstance(event, ToolCall) and own_denial(event) == "other"]
    assert len(denied) == 1
    assert sorted(event.event_id for event in told if event not in denied) == sorted([*kept, *sent])
    assert [(each.action, each.answers) for each in await answers(kafka)] == [("obeyed", "x1")]
    assert not [each for each in threading.enumerate() if each.name == "traction-emitter"]
