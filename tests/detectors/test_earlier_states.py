"""States that earlier releases wrote: a session or task goes on from one as if it had never been stored."""

import base64
import gzip
import json
from pathlib import Path
from typing import cast

import msgspec
import pytest

from detectors import (
    Limits,
    SessionState,
    TaskState,
    UnsupportedState,
    decode_state,
    decode_task,
    encode_state,
    encode_task,
    observe_task,
    step,
)
from detectors.state import STATE_VERSION, VERSIONS
from detectors.tasks.state import VERSIONS as TASK_VERSIONS
from detectors.versions import Versions
from schemas.decode import decode
from schemas.events import SessionInput
from schemas.topics import TOPICS

FOLDERS = sorted(path for path in (Path(__file__).parent / "earlier").iterdir() if path.is_dir())
BY_NAME = {topic.name: topic for topic in TOPICS}


class Earlier:
    """What an earlier release left."""

    def __init__(self, folder):
        self.before: list[SessionInput] = []
        self.after: list[SessionInput] = []
        into = self.before
        for line in gzip.decompress((folder / "events.jsonl.gz").read_bytes()).splitlines():
            found = json.loads(line)
            if found == "cut":
                into = self.after
            else:
                event = decode(BY_NAME[found[0]], json.dumps(found[1]).encode(), ())
                into.append(cast("SessionInput", event))
        stored = json.loads((folder / "states.json").read_text())
        self.sessions = {name: base64.b64decode(value) for name, value in stored["sessions"].items()}
        self.tasks = {name: base64.b64decode(value) for name, value in stored["tasks"].items()}
        self.alerts = stored["alerts"]


@pytest.fixture(scope="module", params=FOLDERS, ids=lambda folder: folder.name)
def earlier(request):
    """Give what one earlier release left."""
    return Earlier(request.param)


def play(events, sessions, tasks):
    """Play events on states, and give the alerts."""
    alerts = []
    for event in events:
        found, told = step(sessions.setdefault(event.session_id, SessionState()), event, Limits())
        alerts += found
        if told is not None:
            alerts += observe_task(tasks.setdefault(told.task_id, TaskState()), told, Limits())
    return alerts


def test_sessions_and_tasks_go_on_from_earlier_states(earlier):
    """The alerts are those of an uninterrupted run, and of the release that wrote the states; so is what is kept."""
    straight: dict[str, SessionState] = {}
    straight_tasks: dict[str, TaskState] = {}
    play(earlier.before, straight, straight_tasks)
    expected = play(earlier.after, straight, straight_tasks)
    sessions = {name: decode_state(state) for name, state in earlier.sessions.items()}
    tasks = {name: decode_task(state, TaskState) for name, state in earlier.tasks.items()}
    assert play(earlier.after, sessions, tasks) == expected
    assert sorted(alert.alert_id for alert in expected) == earlier.alerts
    for state in (*sessions.values(), *straight.values()):
        state.room = 0  # until it is measured again, which depends on when that was done last
    for task in (*tasks.values(), *straight_tasks.values()):
        for attempt in task.attempts:
            attempt.passing_count = None  # versions 5 and 2 had no such number
    assert {name: encode_state(state) for name, state in sessions.items()} == {
        name: encode_state(state) for name, state in straight.items()
    }
    assert {name: encode_task(state) for name, state in tasks.items()} == {
        name: encode_task(state) for name, state in straight_tasks.items() if not state.empty
    }


def test_they_are_written_anew_in_today_s_version(earlier):
    """Once an event was applied, nothing of the older form is left."""
    for state in earlier.sessions.values():
        assert encode_state(decode_state(state))[:2] == bytes((0x92, STATE_VERSION))
        assert decode_state(encode_state(decode_state(state))) == decode_state(state)


def test_they_have_something_in_each_part(earlier):
    """A part that is empty in all of them would not show that it is read."""
    states = [decode_state(state) for state in earlier.sessions.values()]
    never = {
        name
        for name, empty in msgspec.structs.asdict(SessionState()).items()
        if all(getattr(state, name) == empty for state in states)
    }
    # Numbers: calls in a row that only look, up to a session's cut; and what version 5 had not.
    assert never == {"looks", "look_notices", "opened", "room"}
    tasks = [decode_task(state, TaskState) for state in earlier.tasks.values()]
    assert {
        name
        for name, empty in msgspec.structs.asdict(TaskState()).items()
        if all(getattr(task, name) == empty for task in tasks)
    } == {"outdated"}


def test_what_is_cut_short_is_damaged(earlier):
    """An earlier state that ends too soon is refused as damage, wherever it was cut."""
    whole = min(earlier.sessions.values(), key=len)
    for end in range(0, len(whole), 7):
        with pytest.raises(UnsupportedState, match="damaged"):
            decode_state(whole[:end])


class Form(msgspec.Struct, array_like=True):
    """A kind of state for tests."""

    name: str
    count: int = 0


def _counted(fields):
    (name,) = fields
    return [[name, 1]]


def _renamed(fields):
    ((name, count),) = fields
    return [[name.upper(), count]]


def _picky(fields):
    return [fields[0][7]]


def frame(*fields):
    """Give an encoded state of any version."""
    return msgspec.msgpack.encode(fields)


def test_each_step_is_taken_once_and_in_order():
    """From the oldest version through all in between; from a later one only what is left."""
    versions = Versions("a state", Form, 4, {2: _counted, 3: _renamed})
    assert versions.decode(frame(2, "a")) == Form("A", 1)
    assert versions.decode(frame(3, ["a", 5])) == Form("A", 5)
    assert versions.decode(frame(4, ["a", 5])) == Form("a", 5)
    assert versions.encode(Form("a", 5)) == frame(4, ["a", 5])


def test_the_version_of_today_is_read_however_its_frame_is_written():
    """The same array with a longer head, as other encoders write it, or with more behind the fields."""
    versions = Versions("a state", Form, 4, {3: _renamed})
    body = msgspec.msgpack.encode(["a", 5])
    assert versions.decode(b"\xdc\x00\x02\x04" + body) == Form("a", 5)
    assert versions.decode(b"\x92\xcc\x04" + body) == Form("a", 5)
    assert versions.decode(frame(4, ["a", 5], "more")) == Form("a", 5)
    with pytest.raises(UnsupportedState, match="damaged"):
        versions.decode(frame(4, ["a", 5]) + b"\x00")
    with pytest.raises(UnsupportedState, match="damaged"):
        versions.decode(frame(4))


@pytest.mark.parametrize(
    ("version", "told"),
    [
        (
            5,
            "^a state has version 5, of a newer release; this one reads versions 2 to 4. Run the release",
        ),
        (
            1,
            "^a state has version 1, of an older release; this one reads versions 2 to 4. Run a release first",
        ),
    ],
)
def test_other_versions_are_refused_with_what_to_do(version, told):
    """Just beyond what is read, on either side: what was found, what is read, and the remedy."""
    with pytest.raises(UnsupportedState, match=told):
        Versions("a state", Form, 4, {2: _counted, 3: _renamed}).decode(frame(version, "a"))


@pytest.mark.parametrize("data", [frame(2), frame(2, "a", "b"), frame(3, ["a", "five"]), frame(3, 7), b"", b"\xc1"])
def test_a_step_that_finds_other_fields_tells_of_damage(data):
    """And quotes nothing of them."""
    with pytest.raises(UnsupportedState, match=r"^a state is damaged: "):
        Versions("a state", Form, 4, {2: _counted, 3: _renamed}).decode(data)
    with pytest.raises(UnsupportedState, match="damaged: IndexError when it was migrated"):
        Versions("a state", Form, 4, {3: _picky}).decode(frame(3, ["secret"]))


@pytest.mark.parametrize(("current", "steps"), [(4, {2: _counted}), (4, {4: _counted}), (200, {})])
def test_a_missing_step_is_noticed_when_the_program_starts(current, steps):
    """A developer who forgets one learns it at once, as of a version that does not fit into its byte."""
    with pytest.raises(ValueError, match="needs its step"):
        Versions("a state", Form, current, steps)


def test_the_versions_that_are_read_have_files():
    """Each older version that is read is tested with what a release wrote."""
    told = {folder.name for folder in FOLDERS}
    assert {int(name.split("-")[1]) for name in told} >= set(range(VERSIONS.oldest, VERSIONS.current))
    assert {int(name.split("-")[3]) for name in told} >= set(range(TASK_VERSIONS.oldest, TASK_VERSIONS.current))
