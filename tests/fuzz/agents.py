"""What agents bring in, from any bytes: the payloads of their hooks, and their settings files.

Payloads give valid events at every level of privacy, and answers to every verdict. Settings are refused as damaged, or
are after connecting and undoing what they were.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from schemas.decode import decode
from schemas.encode import encode
from schemas.topics import TOPICS
from streams.connect import AGENTS as CONNECTED
from streams.connect.edit import connected, events_in, without_ours
from streams.connect.json_text import Damaged, parse
from streams.hooks import AGENTS, Observed, answer, denied, read
from streams.privacy import Level
from streams.verdicts.model import Step, Verdict

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LEVELS: tuple[Level, ...] = ("digests", "excerpts", "full")
STEPS: tuple[Step, ...] = ("guide", "deny", "ask", "stop")

Target = Callable[[bytes], None]

_TOPICS = {topic.record: topic for topic in TOPICS}


def _hooks(data: bytes) -> None:
    for agent in AGENTS:
        for level in LEVELS:
            seen = read(agent, data, at=NOW, privacy=level)
            if not isinstance(seen, Observed):
                continue
            for event in (*seen.events, *denied(seen, "other")):
                decode(_TOPICS[type(event)], encode(event))
            for step in STEPS:
                answer(agent, seen, Verdict(action=step, text="stop"), enforce=True)


def _agent_settings(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    for agent in CONNECTED.values():
        try:
            had = events_in(text, agent)
            without = without_ours(text, agent, had) if text.strip() else "{}"
            between = connected(text, agent, agent.events("enforce"), "traction-hook x", had)
        except Damaged:
            continue
        after = parse(without_ours(between, agent, had), comments=agent.comments)
        assert after.value == parse(without, comments=agent.comments).value


TARGETS: dict[str, Target] = {"hooks": _hooks, "agent-settings": _agent_settings}
