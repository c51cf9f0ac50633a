"""Agents that are played through the gateway, and an orchestrator that answers: healthy sessions, loops, broken events.

What is sent is what the demo and other tests send too, under agents, tasks and usage of all kinds, so that whoever
watches the processes has something of each to see.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import aiohttp
import msgspec

from schemas import topics
from schemas.common import Agent, Task, Usage
from schemas.decode import decode
from schemas.encode import encode
from schemas.events import Control, FixAttempt, SessionEvent, ToolCall
from schemas.outputs import Termination
from streams.demo.cast import load
from tests.kit import Wire, tool_call, trying
from tests.waiting import until

if TYPE_CHECKING:
    from schemas.events import SessionInput

ROUTES = {ToolCall: "tool-calls", FixAttempt: "fix-attempts", SessionEvent: "sessions"}

COPIES = 3
"""How often each session of the demo is played."""

ATTEMPTS = 12

SAME_CALLS, NEW_CALLS = 4, 20
"""Of a session that recovers: warned at the third, and recovered once twenty calls were others."""

ROUND_SECONDS = 0.4
"""Between two rounds of posts, so that what happens is spread over several scrapes."""

EVENTS_A_ROUND = 2

AGENTS = (
    Agent(name="claude-code", role="code", model="large", config="careful"),
    Agent(name="claude-code", role="debugger", model="small"),
    Agent(name="codex", role="review", model="medium", config="fast"),
)
REPOS = ("acme/shop", "acme/billing", "acme/docs")
TYPES = ("bugfix", "feature", "docs")


def sessions() -> list[list[SessionInput]]:
    """Give the sessions, each as a list of its events, of which half tell what they spent."""
    found: list[list[SessionInput]] = []
    for copy, part in itertools.product(range(COPIES), load()):
        found.append(_dressed(list(part.session.events), f"{part.role.name}-{copy}", copy))
    found += [_dressed(recovering(f"recovers-{copy}"), f"recovers-{copy}", copy) for copy in range(COPIES)]
    found += [_dressed(list(trying(f"tries-{copy}", ATTEMPTS)), f"tries-{copy}", copy) for copy in range(COPIES)]
    return found


def recovering(name: str) -> list[SessionInput]:
    """Give a session that makes the same call again and again, and finds its way out once it is warned."""
    same = {"arguments": {"path": "src/a.py"}, "result": "the same"}
    return [
        tool_call(name, number, **(same if number < SAME_CALLS else {})) for number in range(SAME_CALLS + NEW_CALLS)
    ]


def _dressed(events: list[SessionInput], name: str, copy: int) -> list[SessionInput]:
    """Give events a session, an agent, a task and times of their own."""
    ahead = datetime.now(UTC) - events[0].occurred_at
    made: list[SessionInput] = []
    for number, event in enumerate(events):
        task = Task(id=f"task of {name}", repo=REPOS[copy], type=TYPES[copy])
        fields: dict[str, Any] = {
            "event_id": f"{name}:{number}",
            "session_id": name,
            "agent": AGENTS[copy],
            "task": task,
        }
        if copy and isinstance(event, ToolCall):
            fields["usage"] = Usage(input_tokens=1500, output_tokens=250, cost_usd=0.012)
        made.append(msgspec.structs.replace(event, occurred_at=event.occurred_at + ahead, **fields))
    return made


async def play(url: str, wire: Wire) -> None:
    """Play everything, and wait until it is applied and terminations are answered.

    Args:
        url: where the gateway is.
        wire: the topics.
    """
    answered: set[str] = set()
    over = asyncio.Event()
    answering = asyncio.create_task(_answer(wire, answered, over))
    async with aiohttp.ClientSession() as client:
        cast = sessions()
        for start in range(0, max(map(len, cast)), EVENTS_A_ROUND):
            await _post(client, url, [event for each in cast for event in each[start : start + EVENTS_A_ROUND]])
            await asyncio.sleep(ROUND_SECONDS)
        await _post(client, url, cast[0][:EVENTS_A_ROUND])  # again, as producers do that had no answer
        async with client.post(f"{url}/v1/events/tool-calls", json=[{"tool": "read"}]) as answer:
            assert len((await answer.json())["refused"]) == 1
    for value in (b"{", b"[]"):
        await wire.raw(topics.TOOL_CALLS, value)
    await wire.until_applied()

    async def obeyed() -> bool:
        return len(answered) >= COPIES

    await until(obeyed, 60)
    over.set()
    await answering
    warned = [each for each in await wire.alerts() if (each.level, each.detector) == ("warn", "identical")]
    await wire.send([_control(each.session_id, "false_alarm", each.alert_id) for each in warned[:1]])
    await wire.until_applied()


async def _post(client: aiohttp.ClientSession, url: str, events: list[SessionInput]) -> None:
    by_route: defaultdict[str, list[bytes]] = defaultdict(list)
    for event in events:
        by_route[ROUTES[type(event)]].append(encode(event))
    for route, lines in by_route.items():
        head = {"Content-Type": "application/x-ndjson"}
        async with client.post(f"{url}/v1/events/{route}", data=b"\n".join(lines), headers=head) as answer:
            assert (await answer.json())["accepted"] == len(lines)


async def _answer(wire: Wire, answered: set[str], over: asyncio.Event) -> None:
    """Obey terminations as they come, but for the first, which is refused."""
    while not over.is_set():
        for record in await wire.records(wire.settings.topic(topics.TERMINATIONS)):
            found = decode(topics.TERMINATIONS, record.value, record.headers)
            if isinstance(found, Termination) and found.termination_id not in answered:
                word = "obeyed" if answered else "refused"
                await wire.send([_control(found.session_id, word, found.termination_id)])
                answered.add(found.termination_id)
        await asyncio.sleep(ROUND_SECONDS)


def _control(session: str, action: Any, answers: str) -> Control:
    return Control(
        event_id=f"{answers}:{action}",
        session_id=session,
        occurred_at=datetime.now(UTC),
        action=action,
        answers=answers,
        actor="the one who plays",
    )
