"""Events that repeat, come late or in two parts count once; accounts and modes are kept."""

import re

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from detectors import Limits, SessionState, decode_state, encode_state, limits_from, observe
from detectors.canonical import digest
from detectors.state import MAX_CLEARS, MAX_SEEN, MAX_SEEN_CALLS, MAX_SEEN_IDS, holds_print, print_of
from schemas.common import Usage
from schemas.testing import at, control, session_event, tool_call
from tests.detectors.traces import shell


def play_into(state, events):
    """The alerts of these events on this state."""
    return [alert for event in events for alert in observe(state, event, Limits())]


def test_redelivered_events_count_once():
    """A producer's retry is no repetition."""
    state = SessionState()
    assert play_into(state, [tool_call(0)] * 50) == []
    assert (state.calls, state.duplicates) == (1, 49)


@pytest.mark.parametrize(("between", "repeats"), [(MAX_SEEN - 1, 1), (MAX_SEEN, 0)])
def test_event_ids_are_remembered_up_to_the_bound(between, repeats):
    """As many events as remembered may lie between, one more is forgotten."""
    state = SessionState()
    others = [tool_call(1 + n, arguments={"command": f"c{n}"}) for n in range(between)]
    play_into(state, [tool_call(0), *others, tool_call(0, occurred_at=at(90))])
    assert state.duplicates == repeats


def test_a_sequence_at_or_below_the_highest_is_a_repeat():
    """The producer's own counter recognises what the ring has forgotten, per kind of event."""
    state = SessionState()
    events = [tool_call(n, sequence=n) for n in range(2)]
    again = [tool_call(50 + n, sequence=n, occurred_at=at(n)) for n in range(2)]
    other_kind = session_event(60, "turn", sequence=0)
    assert play_into(state, [*events, *again, other_kind]) == []
    assert (state.calls, state.duplicates) == (2, 2)


def test_a_producer_may_count_from_the_start_again():
    """A sequence that begins anew comes with newer times, whether or not a new run was announced, or read."""
    state = SessionState()
    events = [*[tool_call(n, sequence=n) for n in range(9)], *[tool_call(20 + n, sequence=n) for n in range(3)]]
    play_into(state, events)
    assert (state.calls, state.duplicates) == (12, 0)
    play_into(state, [tool_call(40, sequence=2, occurred_at=at(22))])
    assert (state.calls, state.duplicates) == (12, 1)


def test_a_hook_and_a_span_for_one_call_count_once():
    """Two records with one call id and the same action are one call."""
    state = SessionState()
    events = []
    for n in range(4):
        events += [tool_call(n, call_id=f"toolu_{n}"), tool_call(n, call_id=f"toolu_{n}", event_id=f"span-{n}")]
    alerts = play_into(state, events)
    assert [(alert.level, alert.seq) for alert in alerts] == [("warn", 2)]
    assert (state.calls, state.duplicates) == (4, 4)


@pytest.mark.parametrize(
    "arrive",
    [
        lambda poor, rich: [each for pair in zip(rich, poor, strict=True) for each in pair],
        lambda poor, rich: [each for pair in zip(poor, rich, strict=True) for each in pair],
        lambda poor, rich: [*poor, *rich],
        lambda poor, rich: [*rich, *poor],
    ],
    ids=["rich, poor", "poor, rich", "all poor first", "all rich first"],
)
def test_a_record_without_arguments_and_one_with_them_are_one_call(arrive):
    """Whichever record of a call comes first, it is counted once and its loop is seen as if only the full one came."""
    full = [tool_call(n, call_id=f"toolu_{n:022d}", arguments={"command": "make"}, result="err 1") for n in range(4)]
    bare = [
        tool_call(n, event_id=f"span-{n}", call_id=call.call_id, arguments=None, result=UNSET)
        for n, call in enumerate(full)
    ]
    alone, state = SessionState(), SessionState()
    wanted = [alert.level for alert in play_into(alone, full)]
    assert wanted
    assert [alert.level for alert in play_into(state, arrive(bare, full))] == wanted
    again = [
        tool_call(n, event_id=f"log-{n}", call_id=call.call_id, arguments=call.arguments, result="err 1")
        for n, call in enumerate(full)
    ]
    assert play_into(state, again) == []
    assert (state.calls, state.duplicates, state.reuses_call_ids) == (4, 8, False)


def test_a_record_without_arguments_may_come_with_another_time():
    """A call that took long has other times in other records; an id that is unique is enough."""
    state = SessionState()
    full = tool_call(0, call_id="toolu_0123456789abcdef")
    bare = tool_call(600, call_id="toolu_0123456789abcdef", arguments=None, result=None)
    play_into(state, [full, bare])
    assert (state.calls, state.reuses_call_ids) == (1, False)


@pytest.mark.parametrize(("call_id", "calls"), [("call_Xq3vT8mLr2Yd9wKp", 1), ("1", 2)])
def test_records_that_name_a_call_otherwise_are_one_call_if_its_id_is_unique(call_id, calls):
    """A log may call a tool by another name than the hook; where ids are used again, other actions are other calls."""
    state = SessionState()
    hook = tool_call(0, "Bash", {"command": "ls"}, call_id=call_id)
    log = tool_call(0, "shell", {"command": ["ls"]}, event_id="log", call_id=call_id, occurred_at=at(9))
    play_into(state, [hook, log])
    assert (state.calls, state.reuses_call_ids) == (calls, calls > 1)


def test_calls_of_which_nothing_is_known_are_booked_and_not_compared():
    """Records without arguments and results are never equal calls, nor one run of failures, but use the budget up."""
    unknown = [tool_call(n, call_id=f"toolu_{n:022d}", arguments=None, result=UNSET, status="error") for n in range(30)]
    state = SessionState()
    assert not play_into(state, unknown)
    assert (state.calls, state.duplicates, state.recent) == (30, 0, [])
    limits, spent = limits_from([("test", {"budget": {"calls": 30}})]), SessionState()
    assert {alert.detector for event in unknown for alert in observe(spent, event, limits)} == {"budget"}


@pytest.mark.parametrize("ids", [["call_0"], ["call_0", "call_1"]])
def test_agents_that_use_ids_again_are_still_watched(ids):
    """Positions within a response, or one id for all, hide no loop: a few records later ids are not believed."""
    state = SessionState()
    commands = ["./sync.sh", "./convert.sh"][: len(ids)]
    events = [tool_call(n, call_id=ids[n % len(ids)], arguments={"command": commands[n % len(ids)]}) for n in range(30)]
    assert [alert.level for alert in play_into(state, events)][:2] == ["warn", "terminate"]
    assert state.duplicates <= 4


def test_an_id_that_comes_with_another_action_says_nothing():
    """From then on every record of the session is a call."""
    state = SessionState()
    play_into(state, [tool_call(0, call_id="1"), tool_call(1, call_id="1", arguments={"command": "pwd"})])
    play_into(state, [tool_call(2, call_id="1", arguments={"command": "pwd"})])
    assert (state.calls, state.duplicates) == (3, 0)


@pytest.mark.parametrize(("later_s", "calls"), [(10, 1), (10.001, 2)])
def test_another_record_of_a_call_comes_soon(later_s, calls):
    """Ten seconds after the first, a short id may be that of another call."""
    state = SessionState()
    play_into(state, [tool_call(0, call_id="c1"), tool_call(1, call_id="c1", occurred_at=at(later_s))])
    assert state.calls == calls


@pytest.mark.parametrize(
    ("call_id", "calls"),
    [
        ("toolu_01AbCdEfGhIjKlMn", 1),
        ("call_9f8e7d6c5b4a3210", 1),
        ("550e8400-e29b-41d4-a716-446655440000", 1),
        ("call_9f8e7d6c5b4a321", 2),
        ("functions.read_file_contents:0", 2),
        ("call_0", 2),
    ],
)
def test_ids_that_look_random_are_unique(call_id, calls):
    """Copies of old calls keep their provider's id, whenever they come; 16 random characters are enough, 15 are not."""
    state = SessionState()
    play_into(state, [tool_call(0, call_id=call_id), tool_call(1, call_id=call_id, occurred_at=at(3_000))])
    assert state.calls == calls


@settings(deadline=None)
@given(st.text("aZ09-_ .é١", min_size=1, max_size=60))
def test_an_id_looks_random_by_any_long_word_with_a_digit(call_id):
    """Wherever the word stands: the pattern looks where words begin only, and misses none."""
    state = SessionState()
    play_into(state, [tool_call(0, call_id=call_id), tool_call(1, call_id=call_id, occurred_at=at(3_000))])
    words = re.findall("[A-Za-z0-9-]+", call_id)
    unique = any(len(word) >= 16 and set(word) & set("0123456789") for word in words)
    assert state.calls == (1 if unique else 2)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 60), min_size=MAX_SEEN_CALLS, max_size=90), st.integers(0, 60))
def test_unique_ids_among_the_latest_calls_are_among_the_long_remembered_ones(numbers, short):
    """So that a unique id that is not remembered for long need not be looked for among the latest calls."""
    state = SessionState()
    ids = [f"c{n}" if n < short else f"toolu_{n:020d}" for n in numbers]
    play_into(state, [tool_call(n, call_id=each, arguments={"command": f"./c{each}"}) for n, each in enumerate(ids)])
    latest = {seen.call_id for seen in state.seen_calls}
    unique = {digest("call id", each) for each in ids if each.startswith("toolu_")} & latest
    assert all(holds_print(state.seen_ids, print_of(each)) for each in unique)


@pytest.mark.parametrize(("records", "calls"), [(3, 1), (4, 2)])
def test_few_records_are_of_one_call(records, calls):
    """A hook, a log and a span are three; more are calls of their own."""
    state = SessionState()
    play_into(state, [tool_call(0, event_id=f"e{n}", call_id="c1") for n in range(records)])
    assert state.calls == calls


@pytest.mark.parametrize(
    ("call_id", "others", "calls"),
    [
        ("c", MAX_SEEN_CALLS - 1, 0),
        ("c", MAX_SEEN_CALLS, 1),
        ("toolu_01AbCdEfGhIjKlMn", MAX_SEEN_CALLS, 0),
        ("toolu_01AbCdEfGhIjKlMn", MAX_SEEN_IDS - 1, 0),
        ("toolu_01AbCdEfGhIjKlMn", MAX_SEEN_IDS, 1),
    ],
)
def test_call_ids_are_remembered_up_to_the_bound(call_id, others, calls):
    """As many calls as remembered may lie between, one more is forgotten; unique ids are remembered for longer."""
    state = SessionState()
    noise = [tool_call(1 + n, call_id=f"{call_id}{n}", arguments={"command": f"./c{n}"}) for n in range(others)]
    play_into(state, [tool_call(0, call_id=call_id), *noise])
    before = state.calls
    assert before == others + 1
    play_into(state, [tool_call(1_000, call_id=call_id, occurred_at=at(9))])
    assert state.calls == before + calls


@pytest.mark.parametrize("calls", [40, 255])
def test_copies_of_old_calls_in_a_compacted_transcript_count_nothing(calls):
    """A whole history comes again, with new event ids and times and the provider's old ids: no call, no loop."""
    state = SessionState()
    history = [tool_call(n, call_id=f"toolu_{n:022d}", arguments={"command": f"make t{n % 6}"}) for n in range(calls)]
    play_into(state, history)
    before = encode_state(state)
    copies = [
        msgspec.structs.replace(call, event_id=f"copy-{n}", occurred_at=at(calls + n)) for n, call in enumerate(history)
    ]
    assert play_into(state, copies) == []
    assert (state.calls, state.duplicates) == (calls, calls)
    again = decode_state(before)
    for field in ("recent", "streak", "cycles", "areas", "stretch", "looks", "loops", "tokens", "known", "reads"):
        assert getattr(state, field) == getattr(again, field)
    fresh = [tool_call(900 + n, call_id=f"toolu_new{n:019d}", occurred_at=at(900 + n)) for n in range(3)]
    assert [alert.detector for alert in play_into(state, fresh)] == ["identical"]


@pytest.mark.parametrize("kind", ["user_message", "started"])
@pytest.mark.parametrize("ahead_s", [1_800, 10**9])
def test_a_message_dated_ahead_blinds_nobody(kind, ahead_s):
    """What clears takes effect when calls reach its time; until then they count."""
    state = SessionState()
    events = [session_event(0, kind, occurred_at=at(ahead_s)), *[shell(n, "./sync.sh") for n in range(40)]]
    assert [(alert.level, alert.seq) for alert in play_into(state, events)] == [
        ("warn", 2), ("terminate", 4), ("terminate", 9), ("terminate", 19), ("terminate", 39)
    ]  # fmt: skip


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(("extra", "levels"), [(MAX_CLEARS - 1, ["warn"]), (MAX_CLEARS, ["warn", "terminate"])])
def test_clearing_events_still_to_come_are_bounded(extra, levels, order):
    """The earliest gives way when there are more than remembered, in whatever order they were read."""
    state = SessionState()
    clears = [session_event(n, "user_message", occurred_at=at(3.5 if n == 0 else 100 + n)) for n in range(1 + extra)]
    events = [*clears[::order], *[tool_call(n) for n in range(7)]]
    assert [alert.level for alert in play_into(state, events)] == levels


@pytest.mark.parametrize(("pause_s", "levels"), [(14_400, ["warn"]), (14_401, [])])
def test_a_long_pause_begins_a_new_stretch(pause_s, levels):
    """Looking once a day is no loop."""
    state = SessionState()
    events = [tool_call(n, occurred_at=at(n * pause_s)) for n in range(3)]
    limits = limits_from([("test", {"identical.patient_s": 10**9})])
    assert [alert.level for event in events for alert in observe(state, event, limits)] == levels


def test_start_and_end_of_a_call_are_one():
    """Producers that send both phases are counted by the end; a start whose end is lost counts nothing."""
    state = SessionState()
    events = []
    for n in range(3):
        events += [
            tool_call(n, event_id=f"a{n}", phase="start", call_id=f"c{n}", result=UNSET, status=None),
            tool_call(n, event_id=f"b{n}", phase="end", call_id=f"c{n}"),
        ]
    lost = [tool_call(9, event_id="z", phase="start", call_id="z", result=UNSET, status=None)]
    assert [(alert.level, alert.seq) for alert in play_into(state, [*events, *lost])] == [("warn", 2)]
    assert state.calls == 3


@pytest.mark.parametrize(("older_s", "late"), [(3_600, 0), (3_600.001, 1)])
def test_much_older_events_are_late(older_s, late):
    """An hour is out of order, more is another time: counted, not applied."""
    state = SessionState()
    play_into(state, [tool_call(0, occurred_at=at(10_000)), tool_call(1, occurred_at=at(10_000 - older_s))])
    assert (state.late, state.calls) == (late, 2 - late)


def test_each_kind_of_event_has_a_time_of_its_own():
    """It comes on a topic of its own, which may be read hours before or after another."""
    ahead = [session_event(18_000 + n, "turn") for n in range(30)]
    behind = [tool_call(n) for n in range(30)]
    for events in (
        [*ahead, *behind],
        [*behind, *ahead],
        [each for pair in zip(ahead, behind, strict=True) for each in pair],
    ):
        state = SessionState()
        play_into(state, events)
        assert (state.late, state.calls, state.turns) == (0, 30, 30)
        assert state.last_ms == int(at(18_029).timestamp() * 1_000)


def test_lateness_is_measured_from_the_newest_event():
    """Two events that are each an hour older than the one before are two hours out of order."""
    state = SessionState()
    play_into(state, [tool_call(n, occurred_at=at(10_000 - 3_000 * n)) for n in range(3)])
    assert (state.late, state.calls) == (1, 2)


@pytest.mark.parametrize(("count", "calls"), [(20, 1), (21, 2)])
def test_one_event_dated_far_ahead_does_not_blind_the_watch(count, calls):
    """Twenty late events in a row are late, the next one's time is believed; a timely one starts the count over."""
    state = SessionState()
    ahead = tool_call(0, occurred_at=at(10**8))
    play_into(state, [ahead, *[tool_call(1 + n, arguments={"command": f"c{n}"}) for n in range(count)]])
    assert (state.calls, state.late) == (calls, 20)
    timely = SessionState()
    events = [ahead, *[tool_call(1 + n) for n in range(20)], tool_call(50, occurred_at=at(10**8 + 1))]
    play_into(timely, [*events, *[tool_call(60 + n) for n in range(20)]])
    assert (timely.calls, timely.late) == (2, 40)


@pytest.mark.parametrize("between", [20, 10, 2])
def test_events_dated_ahead_again_and_again_do_not_blind_the_watch(between):
    """Each hides what comes behind it, until forty were late: then what comes counts as it comes."""
    state = SessionState()
    ahead = {n: at(10**6 * (1 + n)) for n in range(0, 200, between)}
    play_into(state, [tool_call(n, occurred_at=ahead.get(n, at(n))) for n in range(200)])
    assert 40 <= state.late <= max(40, state.calls)
    assert state.calls + state.late == 200


def test_accounts_add_up_over_calls_turns_and_are_capped():
    """Tokens and costs of calls and turns make the session's account; absurd sums stop at a bound."""
    state = SessionState()
    usage = Usage(input_tokens=10, output_tokens=5, cost_usd=0.5)
    play_into(state, [tool_call(0, usage=usage), session_event(1, "turn", usage=usage)])
    assert (state.tokens, state.cost) == (30, 1.0)
    huge = Usage(input_tokens=2**63 - 1, cost_usd=1e300)
    play_into(state, [session_event(2 + n, "turn", usage=huge) for n in range(3)])
    assert (state.tokens, state.cost) == (2**62, 1e15)


def test_modes_and_the_end_are_noted():
    """What orchestrators decide is part of the state."""
    state = SessionState()
    play_into(state, [control(0, "mode", mode="explore")])
    assert state.mode == "explore"
    play_into(state, [control(1, "force")])
    assert state.mode == "implement"
    play_into(state, [session_event(2, "ended")])
    assert state.ended
    play_into(state, [session_event(3, "started")])
    assert not state.ended
