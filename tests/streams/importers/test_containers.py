"""Databases and archives with anything in them: reading goes on, or says what it could not read."""

from __future__ import annotations

import random

import pytest

from schemas.encode import encode
from streams.importers import Session, read_path
from tests.streams.importers.making import WHOLE, Step

ROUNDS = 80
STEPS = [Step("read", {"path": f"{n}.py"}, f"line {n} " * 9) for n in range(6)]


@pytest.mark.parametrize("form", ["crush", "opencode-database", "inspect-eval", "inspect-zstd"])
def test_a_spoilt_container_never_stops_the_reading(form, tmp_path):
    """Bytes changed anywhere, most in the heads and tails that say where all is, give sessions or faults."""
    chance = random.Random(form)  # noqa: S311 - the same spoilt files each time
    path = WHOLE[form][1](tmp_path, STEPS)
    whole = path.read_bytes()
    read = 0
    for _ in range(ROUNDS):
        spoilt = bytearray(whole)
        for _ in range(chance.randint(1, 6)):
            near = chance.choice([len(whole), 400])
            at = chance.choice([chance.randrange(near), len(whole) - 1 - chance.randrange(near)])
            spoilt[at] = chance.randrange(256)
        path.write_bytes(spoilt)
        found = list(read_path(path))
        read += sum(bool(encode(event)) for each in found if isinstance(each, Session) for event in each.events)
    assert read  # some are hurt where it matters little
