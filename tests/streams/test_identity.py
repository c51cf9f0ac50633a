"""Sessions, sub-agents and records have one name, wherever they are observed."""

from __future__ import annotations

import subprocess
import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.common import MAX_ID_CHARS
from streams.identity import identifier, record_id, sub_session

PARTS = st.lists(st.text(max_size=4), max_size=3)


@settings(deadline=None)
@given(st.sampled_from(["hook", "log"]), PARTS, st.sampled_from(["hook", "log"]), PARTS)
def test_records_share_an_id_only_if_they_are_the_same(source, parts, other_source, other_parts):
    """An id depends on source and every part, and on where one part ends and the next begins."""
    same = (source, parts) == (other_source, other_parts)
    assert (record_id(source, "s", *parts) == record_id(other_source, "s", *other_parts)) == same
    assert record_id(source, "s", *parts) != record_id(source, "t", *parts)
    assert len(record_id(source, "s" * 1000, *parts)) <= MAX_ID_CHARS


def test_a_sub_agent_is_a_session_of_its_own():
    """Named as the contract says, within its bound; without an agent's id it is the session itself."""
    assert sub_session("s", "a") == ("s:a", "s")
    assert sub_session("s", None) == sub_session("s", "") == ("s", None)
    long = "s" * (MAX_ID_CHARS - 2)
    assert sub_session(long, "a") == (f"{long}:a", long)
    child, parent = sub_session(f"{long}ss", "a")
    assert (len(child), parent) == (MAX_ID_CHARS, f"{long}ss")
    assert sub_session(f"{long}ss", "b")[0] != child
    assert sub_session(f"{long}sss", None)[0] == identifier(f"{long}sss")


def test_it_is_quick_to_import():
    """A hook that is started for each call loads no detectors, no HTTP, no Kafka for a name."""
    loaded = "import sys, streams.identity; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    names = subprocess.run([sys.executable, "-c", loaded], check=True, capture_output=True, text=True).stdout.split()
    assert "streams" in names
    assert not {"aiohttp", "aiokafka", "asyncio", "click", "detectors", "faust", "orjson"} & set(names)
