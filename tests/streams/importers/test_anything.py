"""Recordings with anything in them: whatever stands where, reading goes on and says what it could not read."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest

from schemas.encode import encode
from streams.importers import Session, read_path
from streams.policy.policy import Policy
from streams.replay import play
from streams.timeline import session_lines

DATA = Path(__file__).parent / "data"
ROUNDS = 60

JUNK: list[Any] = [None, True, -1, 3.5, 10**30, float("nan"), "", "x", "\ud800", [], {}, [1], {"a": 1}, [[]], 1e300]
KEYS = ["id", "type", "content", "role", "session_id"]


def places(value, path=()):
    """Give the paths of all values within a value."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def spoil(value, chance):
    """Give a copy in which something is missing, or something else stands in its place."""
    spoilt = copy.deepcopy(value)
    for _ in range(chance.randint(1, 4)):
        path = chance.choice([path for path in places(spoilt) if path] or [()])
        holder = spoilt
        for key in path[:-1]:
            holder = holder[key]
        kind = chance.random()
        if path and kind < 0.2:
            del holder[path[-1]]
        elif path and isinstance(holder, dict) and kind < 0.4:
            holder[chance.choice(KEYS)] = copy.deepcopy(chance.choice(JUNK))
        elif path:
            holder[path[-1]] = copy.deepcopy(chance.choice(JUNK))
    return spoilt


def spoil_text(text, chance):
    """Change, take out or redact some bytes."""
    spoilt = bytearray(text)
    for _ in range(chance.randint(1, 5)):
        at = chance.randrange(len(spoilt) - 200)
        spoilt[at : at + chance.choice([0, 1, 200])] = chance.choice([b"", b"\xff", b'"', b"\\", b"[REDACTED_X]"])
    return bytes(spoilt)


@pytest.mark.parametrize("name", sorted(path.name for path in DATA.iterdir()))
def test_nothing_in_a_recording_stops_the_reading(name, tmp_path):
    """Spoilt recordings give sessions that can be judged, shown and published, or faults, and never an exception."""
    chance = random.Random(name)  # noqa: S311 - the same spoilt recordings each time
    text = (DATA / name).read_bytes()
    try:
        values, is_document = [json.loads(text)], True
    except json.JSONDecodeError:
        values, is_document = [json.loads(line) for line in text.splitlines()], False
    for number in range(ROUNDS):
        spoilt = [spoil(value, chance) if is_document or chance.random() < 0.3 else value for value in values]
        content = b"\n".join(json.dumps(value).encode() for value in spoilt)
        if number % 3 == 0 and len(content) > 1_000:
            content = spoil_text(content, chance)
        path = tmp_path / "spoilt.jsonl"
        path.write_bytes(content)
        for found in read_path(path):
            if isinstance(found, Session):
                assert all(encode(event) for event in found.events)
                assert list(session_lines(play(found, Policy())))
