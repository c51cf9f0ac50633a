"""Agents' hooks: what they hand over becomes events of the contract, and a verdict becomes the agent's own answer.

Pure: nothing is sent, stored or asked here, and no clock is read. One module an agent; what it does not know of a
payload is passed by, and the answer to it is empty, which every agent takes for "go on".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, get_args

import msgspec
from msgspec import UNSET

from schemas.common import as_observed
from schemas.events import ToolCall
from streams.hooks import claude_code, codex, gemini_cli, openhands
from streams.hooks.observed import MAX_PAYLOAD_BYTES, Agents, Moment, NotRead, Observed, denied
from streams.importers.mend import NotJson, parse
from streams.privacy import reduce
from streams.verdicts.model import call_key, outcome_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from schemas.events import SessionInput
    from streams.privacy import Level
    from streams.verdicts.model import Verdict

AGENTS: Final[tuple[Agents, ...]] = get_args(Agents)
"""Names of the agents whose hooks are read."""

_SHORT_CHARS: Final = 1_000
"""Of a result that may say so; detectors look at fewer."""

_READERS: Final[dict[Agents, Callable[[object, datetime], Observed | NotRead]]] = {
    claude_code.NAME: claude_code.read,
    codex.NAME: codex.read,
    gemini_cli.NAME: gemini_cli.read,
    openhands.NAME: openhands.read,
}
_ANSWERS: Final[dict[Agents, Callable[[Observed, Verdict], dict[str, Any]]]] = {
    claude_code.NAME: claude_code.answer,
    codex.NAME: codex.answer,
    gemini_cli.NAME: gemini_cli.answer,
    openhands.NAME: openhands.answer,
}


def read(
    agent: Agents, payload: bytes, *, at: datetime, privacy: Level, key: bytes = b"", watched: bool = False
) -> Observed | NotRead:
    """Read what an agent handed to its hook.

    Args:
        agent: which agent.
        payload: the JSON, as the agent gave it.
        at: when it was handed over: by the sender's clock where it says so, so that a payload which is sent twice
            gives the same ``event_id`` also where nothing in it is one.
        privacy: how much of a call's content may be published.
        key: see `streams.privacy.reduce`.
        watched: whether the agent is only watched, which its events then say as its role.
    """
    if len(payload) > MAX_PAYLOAD_BYTES:
        return NotRead("too_large", f"{len(payload)} bytes, more than {MAX_PAYLOAD_BYTES}; the call is not counted")
    try:
        seen = _READERS[agent](parse(payload).value, at)
        if isinstance(seen, NotRead):
            return seen
        waits = any(_waits(event) for event in seen.events if isinstance(event, ToolCall))
        events = [reduce(event, privacy, key) if isinstance(event, ToolCall) else event for event in seen.events]
        if watched:
            events = [_watched(event) for event in events]
        call = next((call_key(event) for event in events if isinstance(event, ToolCall)), None)
    except NotJson:
        return NotRead("malformed", "the payload is no JSON; send what the agent gives to its hooks")
    except RecursionError:
        return NotRead("too_deep", "the payload is nested too deeply; the call is not counted")
    return msgspec.structs.replace(seen, events=events, call=call, waits=waits)


def _watched(event: SessionInput) -> SessionInput:
    return msgspec.structs.replace(event, agent=as_observed(event.agent))


def _waits(event: ToolCall) -> bool:
    """Tell whether a call waits for something; a long result never says that something is still going on."""
    short = isinstance(event.result, str) and len(event.result) <= _SHORT_CHARS
    return outcome_of(event if short else msgspec.structs.replace(event, result=UNSET)).waits


def answer(agent: Agents, observed: Observed, verdict: Verdict, *, enforce: bool) -> dict[str, Any]:
    """Say in the agent's own protocol what a verdict means at this moment.

    Args:
        agent: which agent.
        observed: what it handed over.
        verdict: what holds for its session.
        enforce: whether the agent is to be told; else every answer is empty.

    Returns:
        The JSON to give to the agent. Empty also where the verdict has no text, which agents do not take, or this hook
        has no way to say it; guidance then was not handed out.
    """
    if not enforce or verdict.action == "go_on" or not verdict.text.strip():
        return {}
    return _ANSWERS[agent](observed, verdict)


def denies(said: dict[str, Any]) -> bool:
    """Tell whether an answer to a hook before a call keeps it from being made, so that `denied` is to be published."""
    decision = said.get("decision") or said.get("hookSpecificOutput", {}).get("permissionDecision")
    return said.get("continue") is False or decision == "deny"


__all__ = [
    "AGENTS",
    "MAX_PAYLOAD_BYTES",
    "Agents",
    "Moment",
    "NotRead",
    "Observed",
    "answer",
    "denied",
    "denies",
    "read",
]
