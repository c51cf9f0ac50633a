"""State: compact, bounded, versioned, and the same after a round trip at any moment."""

import msgspec
import pytest

from detectors import Limits, SessionState, UnsupportedState, decode_state, encode_state, observe
from detectors.state import STATE_VERSION
from schemas.testing import tool_call


def test_a_session_goes_on_from_its_encoded_state():
    """Encoding and decoding between any two events changes no alert."""
    events = [tool_call(n, error=1 if n % 4 == 0 else None, arguments={"command": f"c{n % 3}"}) for n in range(60)]
    straight, stored = SessionState(), SessionState()
    for event in events:
        expected = observe(straight, event, Limits())
        stored = decode_state(encode_state(stored))
        assert observe(stored, event, Limits()) == expected
    assert encode_state(stored) == encode_state(straight)


@pytest.mark.parametrize("version", [STATE_VERSION - 1, STATE_VERSION + 1])
def test_other_versions_are_refused_by_name(version):
    """A state of another release is never guessed at."""
    fields = msgspec.msgpack.decode(encode_state(SessionState()))
    with pytest.raises(UnsupportedState, match=f"version {version}.*reads version {STATE_VERSION}"):
        decode_state(msgspec.msgpack.encode([version, *fields[1:]]))


@pytest.mark.parametrize(
    "data", [b"", b"\xc1", b"null", msgspec.msgpack.encode({"a": 1}), encode_state(SessionState())[:-3]]
)
def test_damaged_states_are_refused(data):
    """Damage is an error of its own kind, not a crash."""
    with pytest.raises(UnsupportedState):
        decode_state(data)


def test_size_is_bounded_whatever_comes():
    """The longest identifiers and texts, many programs and loops: under 16 kB."""
    state, long = SessionState(), "x" * 255
    for n in range(2_000):
        call = tool_call(
            n,
            session_id=long,
            event_id=f"{n:04d}{long}"[:256],
            tool=f"tool{n % 40}{long}"[:256],
            arguments={"command": f"prog{n % 23} {long * 40}"},
            result=long * 100,
            error=f"E{n % 17}",
            call_id=f"call {n}",
        )
        observe(state, call, Limits())
        if n % 100 == 99:
            assert len(encode_state(state)) < 16_000
