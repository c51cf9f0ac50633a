"""What an agent that wants to escape detection can do, measured: what finds it all the same, and what escapes.

The tables of SECURITY.md are made of the same runs; `python docs/generate.py --check` holds them to the code.
"""

import pytest

from detectors import Limits, limits_from
from schemas.decode import MAX_VALUE_BYTES, InvalidEvent, decode
from schemas.events import ToolCall
from schemas.topics import TOOL_CALLS
from tests.detectors.evasion_loops import ATTEMPTS, LOOPS
from tests.detectors.evasion_table import (
    BUDGET_CALLS,
    attempts_table,
    calls_table,
    of_attempts,
    of_calls,
    watch,
)
from tests.detectors.evasions import EVASIONS, EVASIONS_OF_ATTEMPTS, Evasion, evaded, forged, in_sessions

UNSEEN_CALLS = {
    "session of 4 calls, other tasks": set(LOOPS),
    "one event id": set(LOOPS),
    "one sequence number and time": set(LOOPS),
    "one call id": {"same call", "polling"},
}
"""Ways, and loops of them, that no terminate and no budget ends. All need write access to the input topics."""

UNSEEN_ATTEMPTS = {"new task each", "one attempt id", "`success`, every 3rd", "`success`, every 2nd"}


def test_without_evasion_every_loop_is_found():
    """What is evaded below would be found: each loop is warned about within 17 calls or 3 attempts."""
    assert {loop: seen.warn for loop, seen in of_calls()["none"].items() if not 0 < seen.warn <= 17} == {}
    assert {loop: seen.terminate for loop, seen in of_attempts()["none"].items()} == {
        "to and fro": 4,
        "the same again": 4,
    }


@pytest.mark.parametrize("way", EVASIONS)
def test_what_no_detector_ends_a_budget_ends(way):
    """Whatever the agent calls: each loop ends by a detector or by an account, but for what only a writer can do."""
    unseen = {loop for loop, seen in of_calls()[way].items() if not (seen.terminate or seen.account)}
    assert unseen == UNSEEN_CALLS.get(way, set())
    assert not unseen or EVASIONS[way].by == "writer"


@pytest.mark.parametrize("way", EVASIONS_OF_ATTEMPTS)
def test_attempts_end_by_a_detector_or_by_the_task_s_budget(way):
    """But for what the harness must not believe of an agent: its word of success, of its task, of an attempt's id."""
    for seen in of_attempts()[way].values():
        assert bool(seen.terminate or seen.account) == (way not in UNSEEN_ATTEMPTS)


@pytest.mark.parametrize("every", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("name", ["s{}", "s1:{}"])
def test_a_task_s_budget_counts_sessions_however_short(every, name):
    """Sessions of fewer calls than between two reports tell at least half of what they spend."""
    limits = limits_from([("test", {"task_budget": {"calls": BUDGET_CALLS, "soft_share": 1.0}})])
    most = 2 * BUDGET_CALLS
    assert watch(evaded("cycle of 8", Evasion("writer", (in_sessions(every, name),))), most, limits).account == "task"


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("every", [1, 2, 4])
def test_messages_clear_nothing_where_no_person_writes(loop, every):
    """With `decision.user_message_clears` off, a flood of `user_message` changes nothing of what is found."""
    limits = limits_from([("fleet", {"decision": {"user_message_clears": False}})])
    plain = watch(evaded(loop, Evasion()), 40, limits)
    seen = watch(evaded(loop, Evasion("writer", (forged("user_message", every),))), 40 * 2, limits)
    assert plain.warn
    assert (seen.warn - seen.warn // (every + 1), seen.by) == (plain.warn, plain.by)


def test_by_default_nothing_is_a_budget():
    """They are to be set: a loop that no rule sees goes on for ever until then."""
    ways = EVASIONS["words in arguments and results"], EVASIONS["session of 4 calls, same task"]
    for way in ways:
        assert watch(evaded("cycle of 8", way), 400, Limits()).warn == 0


def test_the_tables_have_a_row_for_each_way_and_a_column_for_each_loop():
    """Nothing is left out of what is shown."""
    for table, ways, loops in ((calls_table(), EVASIONS, LOOPS), (attempts_table(), EVASIONS_OF_ATTEMPTS, ATTEMPTS)):
        head, _, *rows = table.splitlines()
        assert head.split(" | ")[2:-2] == list(loops)
        assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == list(ways)


UNREADABLE = {
    "half a surrogate pair": ('"\\ud800"', "not_json", '"\ufffd"'),
    "no number": ("NaN", "not_json", "null"),
    "beyond a double": ("1e400", "invalid_value", "null"),
    "65 levels": ("[" * 65 + "]" * 65, "too_deep", "[" * 64 + "]" * 64),
    "over 1 MiB": (f'"{"x" * MAX_VALUE_BYTES}"', "too_large", f'"{"x" * (MAX_VALUE_BYTES - 1_000)}"'),
}
"""What an agent can put where its words go, the reason by which its record is refused, and the same cleaned."""


@pytest.mark.parametrize("place", ["arguments", "result"])
@pytest.mark.parametrize("name", UNREADABLE)
def test_a_call_made_unreadable_is_refused_and_one_cleaned_is_taken(name, place):
    """What a refused record would have told reaches no detector and no budget; cleaning it first is enough."""
    given, reason, cleaned = UNREADABLE[name]
    head = '{"event_id":"1","session_id":"s","occurred_at":"2026-01-01T00:00:00Z","tool":"t",'
    with pytest.raises(InvalidEvent) as refused:
        decode(TOOL_CALLS, f'{head}"{place}":{given}}}'.encode())
    assert refused.value.reason == reason
    assert isinstance(decode(TOOL_CALLS, f'{head}"{place}":{cleaned}}}'.encode()), ToolCall)
