"""Whatever valid events come, in whatever order: no crash, a state that encodes, and repeats that change nothing."""

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from detectors import Limits, SessionState, decode_state, encode_state, observe
from schemas.common import ErrorInfo, Usage
from schemas.testing import at, control, session_event, tool_call

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
arguments = json_values | st.fixed_dictionaries(
    {}, optional={"command": json_values, "action": json_values, "path": st.text(max_size=10)}
)
errors = st.builds(
    ErrorInfo,
    code=st.none() | st.integers() | st.text(max_size=8),
    message=st.none() | st.text(max_size=80),
    type=st.none() | st.text(max_size=8),
)
calls = st.builds(
    tool_call,
    st.integers(0, 30),
    st.sampled_from(["bash", "read", "edit", "mcp__x__wait", "?"]),
    arguments,
    st.one_of(st.just(UNSET), json_values),
    error=st.none() | errors,
    status=st.sampled_from(["ok", "error", "timeout", "denied", None]),
    batch_id=st.sampled_from([None, "b"]),
    call_id=st.sampled_from([None, "c1", "c2"]),
    phase=st.sampled_from([None, None, "start", "end"]),
    sequence=st.none() | st.integers(0, 2**63 - 1),
    usage=st.none() | st.builds(Usage, input_tokens=st.integers(0, 2**63 - 1), cost_usd=st.floats(0, 1e308)),
    occurred_at=st.integers(0, 10**6).map(at),
)
events = st.one_of(
    calls,
    st.builds(session_event, st.integers(0, 9), st.sampled_from(["started", "user_message", "turn", "ended"])),
    st.builds(
        control, st.integers(0, 9), st.sampled_from(["resume", "reset", "force", "false_alarm"]), answers=st.text()
    ),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(events, max_size=40))
def test_any_events_leave_a_state_that_encodes_and_goes_on(stream):
    """No valid event breaks detection, and the encoded state is the whole of it."""
    state = SessionState()
    for event in stream:
        observe(state, event, Limits())
    again = decode_state(encode_state(state))
    assert encode_state(again) == encode_state(state)


@settings(max_examples=100, deadline=None)
@given(st.lists(events, max_size=30), st.data())
def test_redelivery_of_any_event_changes_no_alert(stream, data):
    """Every event may come twice at once; the alerts are those of one delivery."""
    once, twice = SessionState(), SessionState()
    for event in stream:
        alerts = observe(once, event, Limits())
        assert observe(twice, event, Limits()) == alerts
        if data.draw(st.booleans()):
            assert observe(twice, event, Limits()) == []
    assert twice.calls == once.calls


@settings(max_examples=60, deadline=None)
@given(st.lists(events, max_size=40))
def test_one_alert_per_loop_and_level_between_recoveries(stream):
    """A loop is terminated at most once while it goes on, and never before its warning."""
    state, warned = SessionState(), set()
    for event in stream:
        for alert in observe(state, event, Limits()):
            if alert.level == "terminate":
                assert alert.loop_id in warned
                warned.discard(alert.loop_id)
            elif alert.level == "warn":
                warned.add(alert.loop_id)


COUNTED = ("streak", "cycles", "areas", "failing_calls", "denied", "recent", "clears")


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from([None, "x failed badly", "y failed badly"])), max_size=30
    ),
    st.integers(0, 30),
    st.integers(-12, 12),
    st.sampled_from(["user_message", "started", "resume"]),
)
def test_what_clears_may_be_read_before_or_after_the_calls_around_it(moves, place, delay, kind):
    """Topics are read in either order: what is counted afterwards depends on when it happened, not on when it came."""
    stream = [
        tool_call(n, arguments={"command": f"make {name}"}, error=text and ErrorInfo(code=2, message=text))
        for n, (name, text) in enumerate(moves)
    ]
    place = min(place, len(stream))
    build = control if kind == "resume" else session_event
    clearing = build(0, kind, event_id="clears", occurred_at=at(place - 0.5))
    came = max(0, min(len(stream), place + delay))
    states = []
    for index in (place, came):
        state = SessionState()
        for event in [*stream[:index], clearing, *stream[index:]]:
            observe(state, event, Limits())
        states.append([getattr(state, part) for part in COUNTED])
    assert states[0] == states[1]
