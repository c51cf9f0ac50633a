"""State: compact, bounded, versioned, and the same after a round trip at any moment."""

from typing import get_args

import msgspec
import pytest

from detectors import Limits, SessionState, UnsupportedState, decode_state, encode_state, limits_from, observe
from detectors.facts import Call, Mark
from detectors.fitting import fit
from detectors.limits import MAX_WINDOW_CALLS
from detectors.state import MAX_SEEN, MAX_STATE_BYTES, STATE_VERSION, holds_print
from detectors.watch import MAX_LOOPS, Loop
from schemas.common import Agent, ErrorInfo, Task, Usage
from schemas.testing import at, session_event, tool_call
from tests.detectors.traces import edit, shell, work


def test_a_session_goes_on_from_its_encoded_state():
    """Encoding and decoding between any two events changes no alert."""
    events = [tool_call(n, error=1 if n % 4 == 0 else None, arguments={"command": f"c{n % 3}"}) for n in range(60)]
    straight, stored = SessionState(), SessionState()
    for event in events:
        expected = observe(straight, event, Limits())
        stored = decode_state(encode_state(stored))
        assert observe(stored, event, Limits()) == expected
    assert encode_state(stored) == encode_state(straight)


def _parts(kind, within=()):
    """The structs that a type is made of, each with those that it stands in."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield kind, within
        for field in msgspec.structs.fields(kind):
            yield from _parts(field.type, (*within, kind))
    for part in get_args(kind):
        yield from _parts(part, within)


def test_states_are_trees():
    """What the garbage collector does not look at must end by itself: no part may come to hold what it stands in."""
    parts = list(_parts(SessionState))
    assert {Call, Mark, Loop} <= {kind for kind, _ in parts if not kind.__struct_config__.gc}
    assert not [kind for kind, within in parts if kind in within]


@pytest.mark.parametrize("version", [4, STATE_VERSION + 1])
def test_other_versions_are_refused_by_name(version):
    """A state of a release that wrote another form is never guessed at."""
    _, fields = msgspec.msgpack.decode(encode_state(SessionState()))
    with pytest.raises(UnsupportedState, match=f"version {version}.*reads versions 5 to {STATE_VERSION}"):
        decode_state(msgspec.msgpack.encode([version, fields]))


@pytest.mark.parametrize(
    "data", [b"", b"\xc1", b"null", msgspec.msgpack.encode({"a": 1}), encode_state(SessionState())[:-3]]
)
def test_damaged_states_are_refused(data):
    """Damage is an error of its own kind, not a crash."""
    with pytest.raises(UnsupportedState):
        decode_state(data)


def adversary(n, letter):
    """An event of a producer that makes everything as long, as many and as different as the contract allows."""
    long = letter * 255
    who = {
        "agent": Agent(id=long, role=long, name=long, model=long, config=long),
        "task": Task(id=long, type=long, repo=long, ref=long, paths=tuple(f"{place}{long * 3}" for place in range(99))),
        "session_id": long,
        "event_id": f"{n:05}{long}"[:256],
        "call_id": f"toolu_{n:020}",
        "usage": Usage(input_tokens=2**40 + n, cost_usd=n / 7),
    }
    told = ErrorInfo(code=f"E{n % 17}", message=f"Error: {long[:80]} in part {letter * (n % 19)}")
    kinds = (
        (f"tool{n % 40}{long}"[:256], {"command": f"prog{n % 23} {n}{long * 40}"}, long * 100, told),
        ("read", {"path": f"{n % 11}{long}", "offset": 1_000 * n, "limit": 900}, f"{n}{long}", None),
        ("edit", {"path": f"{n % 11}{long}", "new": f"{n}{long}"}, "refused", told),
        ("search", {"query": " ".join(f"{letter}{n}word{place}" for place in range(30))}, "no matches", None),
        ("bash", {"command": f"pytest tests/{n % 13} {long}"}, f"{n} failed {long}", told),
        ("edit", {"path": f"{n % 7}{long}", "new": f"{n % 3}"}, "done", None),
        (f"denied{n % 3}{long}"[:256], {"n": n}, "not allowed", told),
    )
    if n % 29 == 0:
        return session_event(n, "user_message", occurred_at=at(10**6 + n), session_id=long, event_id=who["event_id"])
    # Now and then one call comes several times, so that there are loops under watch as well.
    tool, arguments, result, error = kinds[(n // 9) % len(kinds)] if n % 2 else kinds[n % len(kinds)]
    return tool_call(n, tool, arguments, result, error=error, **who)


@pytest.mark.parametrize("letter", ["x", "語", "\U00020000"])
def test_size_is_bounded_whatever_comes(letter):
    """The longest identifiers and texts, in any script, many tools, targets, failures and loops: one bound for all."""
    limits = limits_from([("test", {"decision.excerpt_chars": 200, "decision.rearm_after": 1_000})])
    state, sizes = SessionState(), []
    for n in range(240):
        event = adversary(n, letter)
        for each in (event, patch(n, letter)) if n % 10 == 0 else (event,):
            observe(state, each, limits)
            sizes.append(len(encode_state(state)))
    assert 0.95 * MAX_STATE_BYTES < max(sizes) <= MAX_STATE_BYTES


def patch(n, letter):
    """An edit of as many places as are remembered, each in lines of its own."""
    text = "".join(
        f"--- a/{n}{place // 4}.py\n+++ b/{n}{place // 4}.py\n"
        f"@@ -{10**8 + 999 * place} +{10**8 + 999 * place} @@\n-old {n} {place}\n+new {n} {place}\n+more {n} {place}\n"
        for place in range(64)
    )
    long = letter * 255
    return tool_call(n, "apply_patch", {"patch": text}, session_id=long, event_id=f"p{n:05}{long}"[:256])


def test_what_is_left_out_is_the_same_after_a_round_trip():
    """A session near the bound that is stored between any two events gives the same alerts, and is left the same."""
    limits = limits_from([("test", {"decision.excerpt_chars": 200, "decision.rearm_after": 1_000})])
    straight, stored, near = SessionState(), SessionState(), 0
    for n in range(60):
        for each in (adversary(n, "語"), patch(n, "語")) if n % 5 == 0 else (adversary(n, "語"),):
            assert observe(stored, each, limits) == observe(straight, each, limits)
            stored = decode_state(encode_state(stored))
            assert encode_state(stored) == encode_state(straight)
            near += len(encode_state(straight)) > 0.9 * MAX_STATE_BYTES
    assert near


def test_fitting_takes_first_what_only_people_read():
    """Texts of earlier calls are cut, then edits thinned out; all that is counted stays as it is with less text."""
    limits = limits_from([("test", {"decision.excerpt_chars": 200, "decision.rearm_after": 1_000})])
    short = limits_from([("test", {"decision.excerpt_chars": 0, "decision.rearm_after": 1_000})])
    full, spare, cut_short, letter = SessionState(), SessionState(), 0, "語"
    for n in range(80):
        for each in (adversary(n, letter), patch(n, letter)) if n % 5 == 0 else (adversary(n, letter),):
            observe(full, each, limits)
            observe(spare, each, short)
            cut_short += max((len(call.text.encode()) for call in full.recent[:-1]), default=99) <= 64
    assert cut_short
    assert len(full.recent[-1].text.encode()) > 64
    for name in ("seen", "seen_calls", "areas", "edits", "searches", "checks", "reads", "loops", "told", "spin"):
        assert getattr(full, name) == getattr(spare, name), name
    assert [call.key for call in full.recent] == [call.key for call in spare.recent]


def test_what_fits_is_left_as_it_is():
    """A state just below the bound keeps all of it, one above it does not; nothing is left out unmeasured."""
    for size, cuts in ((MAX_STATE_BYTES - 900, False), (MAX_STATE_BYTES, True)):
        state = SessionState()
        for n in range(12):
            observe(state, shell(n, f"./tool_{n} {'y' * 300}"), limits_from([]))
        texts = [call.text for call in state.recent]
        state.known = b"k" * (size - len(encode_state(state)))
        state.room = 0
        fit(state)
        assert ([call.text for call in state.recent] != texts) is cuts
        assert len(encode_state(state)) <= MAX_STATE_BYTES


@pytest.mark.parametrize("events", [1, 40])
def test_repeated_and_late_events_stay_within_the_room_left_for_them(events):
    """They are not measured: a state just below the bound has room for all that they may add, few events or many."""
    state, limits = SessionState(), limits_from([])
    for n in range(events):
        observe(state, shell(n, f"./tool_{n}", event_id=f"e{n}"), limits)
    state.known, state.room = b"k" * 1_000, 0
    fit(state)
    state.known, state.room = b"k" * (1_000 + state.room), 0  # as large as can be without anything to be left out
    fit(state)
    assert (state.room, len(state.recent)) == (0, min(events, MAX_WINDOW_CALLS))
    before, counted = len(encode_state(state)), state.calls
    for n in range(2 * MAX_SEEN):
        again = shell(n, "ls", event_id=f"again{n}", occurred_at=at(-(10**6)), sequence=10**15 if n == 0 else 1)
        observe(state, again, limits)
    assert state.calls == counted
    assert before < len(encode_state(state)) <= MAX_STATE_BYTES


def test_edits_stay_within_the_room_that_is_taken_for_them():
    """Whatever is edited between two checks, a state never grows by more than is noted, and not each edit is measured.

    A state that was measured has more room than before, or as much as there can be.
    """
    state, limits, measured = SessionState(), limits_from([]), 0
    for n in range(90):
        code = "\n".join(f"value_{n}_{line} = {line}" for line in range(5 + 7 * (n % 13)))
        path = f"src/{'x' * (n % 4 * 20)}/file_{n % 30}.py"
        before = state.room
        observe(state, shell(n, "pytest -q", "1 failed", error=1) if n % 25 == 24 else edit(n, path, code), limits)
        assert len(encode_state(state)) + state.room <= MAX_STATE_BYTES
        measured += state.room >= before
    assert 0 < measured < 60


def test_a_session_that_only_thinks_stays_within_the_bound():
    """Calls that are not kept among the latest are remembered to be recognised, and are measured like others."""
    state = SessionState()
    state.known = b"k" * (MAX_STATE_BYTES - 2_500)
    fit(state)
    for n in range(300):
        observe(state, tool_call(n, "think", {"thought": f"step {n}"}, call_id=f"toolu_{n:020}"), Limits())
        assert len(encode_state(state)) <= MAX_STATE_BYTES
    assert (state.calls, len(state.recent)) == (300, 0)


def test_the_older_half_goes_where_nothing_else_helps():
    """More than can come in at once still ends below the bound, with the latest of everything."""
    state = SessionState()
    for n in range(12):
        observe(state, shell(n, f"./tool_{n} {'y' * 300}", event_id=f"e{n}"), limits_from([]))
    state.known = b"k" * (MAX_STATE_BYTES - 3_000)
    state.room = 0
    fit(state)
    assert len(encode_state(state)) <= MAX_STATE_BYTES
    assert state.recent[-1].event_id == "e11"
    assert 1 <= len(state.recent) < 12


def test_arguments_and_results_are_never_kept():
    """Ten megabytes of arguments, results and differences leave what as many bytes less leave: digests and excerpts."""
    sizes = []
    for length in (10_000, 10_000_000):
        state = SessionState()
        text, lines = "x" * length, "+a line of a file\n" * (length // 18)
        for n, call in enumerate(
            (
                shell(0, f"echo {text}", text),
                tool_call(1, "write", {"path": "a.py", "content": text}, text),
                tool_call(
                    2, "apply_patch", {"patch": f"--- a/a.py\n+++ b/a.py\n@@ -1 +1,9 @@\n{lines}"}, text, error="E1"
                ),
            )
        ):
            observe(state, msgspec.structs.replace(call, event_id=f"e{n}"), Limits())
        sizes.append(len(encode_state(state)))
    assert abs(sizes[1] - sizes[0]) < 50
    assert max(sizes) < 4_000


def test_size_is_bounded_with_as_many_loops_as_there_is_room_for():
    """Loops under watch, as many as there are, take no more."""
    state, n = SessionState(), 0
    limits = limits_from([("test", {"decision.rearm_after": 1_000})])
    for loop in range(40):
        for _ in range(3):
            call = shell(n, f"./tool_{loop} {'x' * 200}", f"{loop} {'y' * 99}", event_id=f"{n}{'z' * 250}"[:256])
            observe(state, call, limits)
            n += 1
    assert len(state.loops) == MAX_LOOPS
    assert len(encode_state(state)) <= MAX_STATE_BYTES


def test_what_is_remembered_of_healthy_work_is_small():
    """The sessions that there are thousands of: a few kilobytes each, and no more after a day than after an hour."""
    state, sizes = SessionState(), []
    for n in range(2_000):
        observe(state, work(n), Limits())
        if n % 500 == 499:
            sizes.append(len(encode_state(state)))
    assert max(sizes) < 6_000
    assert max(sizes) < 1.1 * min(sizes)


def test_prints_are_found_where_they_begin_only():
    """Bytes that straddle two prints are neither of them."""
    ring = b"abcdefghcdefijkl"
    assert holds_print(ring, b"efgh")
    assert holds_print(ring, b"cdef")
    assert holds_print(ring, b"ijkl")
    assert not holds_print(ring, b"bcde")
    assert not holds_print(ring, b"defg")
    assert not holds_print(b"", b"abcd")


def test_a_new_state_is_empty():
    """Nothing is known of a session before its first event, and that takes next to nothing."""
    assert decode_state(encode_state(SessionState())) == SessionState()
    assert len(encode_state(SessionState())) < 400
