"""What must make no difference to detection: redelivery, restarts, names, clocks, spelling and the order of topics."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detectors import Limits, SessionState, decode_state, encode_state, limits_from, observe
from detectors.call import read_call
from detectors.facts import WORD_BYTES, Mark
from schemas.events import SessionInput
from schemas.outputs import Alert
from schemas.testing import at, tool_call
from tests.detectors.strategies import CLEARING, WORDS, by_time, gist, is_call, sessions, spending_sessions, words

LIMITS = limits_from([("test", {"budget": {"calls": 60, "tokens": 10**6, "cost_usd": 5}, "analysis.exempt": 5})])
"""With budgets, so that they are judged as well, and a short opening."""

quickly = settings(max_examples=80, deadline=None)


def played(events: list[SessionInput]) -> tuple[list[Alert], SessionState]:
    """Play events through a fresh session."""
    state = SessionState()
    return [alert for event in events for alert in observe(state, event, LIMITS)], state


def test_the_sessions_of_these_tests_have_what_to_find():
    """A property of silence would say nothing: most rules speak in some of them."""
    heard: set[str] = set()

    @settings(max_examples=120, deadline=None, database=None, derandomize=True)
    @given(sessions)
    def listen(calls: list[SessionInput]) -> None:
        heard.update(alert.detector for alert in played(calls)[0])

    listen()
    assert heard >= {"identical", "alternation", "same_failure", "revisits", "rereads", "analysis", "budget"}
    assert len(heard) >= 10


@quickly
@given(spending_sessions(), words(WORDS, 8), st.data())
def test_a_redelivered_event_changes_nothing(calls, said, data):
    """Whatever comes again among the sixty events after it, neither alerts nor state tell."""
    once = by_time(calls, said)
    twice, at_place = [], data.draw(st.lists(st.booleans(), min_size=len(once), max_size=len(once)))
    for place, event in enumerate(once):
        twice.append(event)
        if at_place[place]:
            twice.append(once[data.draw(st.integers(max(0, place - 60), place))])
    expected, state = played(once)
    alerts, again = played(twice)
    assert alerts == expected
    assert again.duplicates == state.duplicates + len(twice) - len(once)
    again.duplicates = state.duplicates
    assert encode_state(again) == encode_state(state)


@quickly
@given(spending_sessions(), words(WORDS, 8), st.lists(st.integers(0, 120), max_size=6))
def test_a_session_cut_anywhere_and_resumed_gives_the_same_alerts(calls, said, cuts):
    """The encoded state is all there is: a worker that takes over goes on where the other one was."""
    events = by_time(calls, said)
    expected, straight = played(events)
    state, alerts = SessionState(), []
    for place, event in enumerate(events):
        if place in cuts:
            state = decode_state(encode_state(state))
        alerts += observe(state, event, LIMITS)
    assert alerts == expected
    assert encode_state(state) == encode_state(straight)


@quickly
@given(sessions, words(WORDS, 4), st.text(min_size=1, max_size=12), st.integers(-(10**8), 10**9))
def test_names_of_sessions_and_clocks_make_no_difference(calls, said, name, shift_s):
    """Another session of the same events, at another time: the same alerts under other ids."""
    events = by_time(calls, said)
    moved = [
        msgspec.structs.replace(
            event,
            session_id=name,
            event_id=f"{name}/{event.event_id}",
            occurred_at=event.occurred_at + (at(shift_s) - at(0)),
        )
        for event in events
    ]
    expected, alerts = played(events)[0], played(moved)[0]
    assert [gist(alert) for alert in alerts] == [gist(alert) for alert in expected]
    for there, here in zip(alerts, expected, strict=True):
        assert there.alert_id != here.alert_id
        assert (there.session_id, there.task_id) == (name, name)
        assert there.occurred_at - here.occurred_at == there.first_seen - here.first_seen == at(shift_s) - at(0)
        assert there.evidence.event_ids == tuple(f"{name}/{each}" for each in here.evidence.event_ids)


def other_way_round(value: Any) -> Any:
    """Give a JSON value with the keys of its objects in the opposite order."""
    if isinstance(value, dict):
        return {key: other_way_round(value[key]) for key in reversed(value)}
    return [other_way_round(item) for item in value] if isinstance(value, list) else value


def meant(alert: Alert) -> dict[str, Any]:
    """Return what an alert says beside the readable form of calls, which shows their arguments as they were sent."""
    said = gist(alert)
    said["evidence"].pop("calls", None)
    return {key: value for key, value in said.items() if key not in {"reasoning", "guidance"}}


@quickly
@given(sessions, st.data())
def test_the_order_of_keys_makes_no_difference(calls, data):
    """Objects have no order: whichever calls spell theirs another way, the findings are the same."""
    turned = [
        msgspec.structs.replace(call, arguments=other_way_round(call.arguments), result=other_way_round(call.result))
        if data.draw(st.booleans())
        else call
        for call in calls
    ]
    expected, alerts = played(calls)[0], played(turned)[0]
    assert [meant(alert) for alert in alerts] == [meant(alert) for alert in expected]
    assert [alert.evidence.event_ids for alert in alerts] == [alert.evidence.event_ids for alert in expected]


def facts(tool: str, arguments: Any) -> dict[str, Any]:
    """Return what detectors compare of a call: all but its readable form, the words of a query without their order."""
    call = tool_call(0, tool, arguments, "as it was")
    known: dict[str, Any] = msgspec.structs.asdict(read_call(call, Mark(), Limits()))
    words = known.pop("words")
    del known["text"]
    return {**known, "words": sorted(words[place : place + WORD_BYTES] for place in range(0, len(words), WORD_BYTES))}


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("get_rows", {"table": "orders", "where": {"b": 1, "a": 2}, "limit": 9}),
        ("read_resource", {"server": "wiki", "section": "intro"}),
        ("search_catalogue", {"colour": "red", "size": "large", "maker": "Acme"}),
        ("get_issue_comment", {"issue_id": 7, "comment_id": 12}),
        ("fill_form", {"name": "Ada", "street": "Long Road", "city": "Leeds"}),
        ("query", {f"option_{n}": f"value number {n}" for n in range(12)}),
    ],
)
def test_the_order_of_keys_makes_no_other_call(tool, arguments):
    """What is read, changed or looked for is the same in whatever order the arguments say so."""
    assert facts(tool, arguments) == facts(tool, other_way_round(arguments))


@quickly
@given(sessions, words(CLEARING, 8))
def test_the_topic_of_words_may_be_read_first(calls, said):
    """What clears waits until the calls reach its time, however far ahead it was read."""
    assert played([*said, *calls])[0] == played(by_time(calls, said))[0]


COUNTED = (
    "calls", "recent", "streak", "cycles", "areas", "failing_calls", "denied", "row", "edits", "searches", "checks",
    "reads", "known", "stretch", "moving", "page", "looks", "look_notices", "opened", "clears", "spin",
)  # fmt: skip


@quickly
@given(sessions, words(CLEARING, 3), st.integers(1, 10))
def test_the_topic_of_words_may_be_read_up_to_ten_calls_late(calls, said, late):
    """What was counted meanwhile is counted anew: the state is that of the order in which it happened.

    Parallel batches and thoughts are left out: they are no calls of work that could be counted anew.
    """
    work = [msgspec.structs.replace(call, batch_id=None) for call in calls if call.tool != "think"]
    events = by_time(work, said)
    waiting: list[tuple[int, SessionInput]] = []
    delayed: list[SessionInput] = []
    for event in events:
        if is_call(event):
            delayed.append(event)
            waiting = [(left - 1, word) for left, word in waiting]
            delayed += [word for left, word in waiting if left == 0]
            waiting = [(left, word) for left, word in waiting if left > 0]
        else:
            waiting.append((late, event))
    delayed += [word for _, word in waiting]
    straight, state = played(events)[1], played(delayed)[1]
    assert {part: getattr(state, part) for part in COUNTED} == {part: getattr(straight, part) for part in COUNTED}
