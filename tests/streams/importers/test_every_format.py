"""What holds for every format: one taker, calls in order, loops found, nothing stops the reading, growing as whole."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.events import ToolCall
from streams.importers import Growing, NotFollowed, Session, read_path
from streams.importers.containers import contents
from streams.importers.detect import FORMATS, REST
from streams.policy.policy import Policy
from streams.replay import play
from tests.streams.importers import making
from tests.streams.importers.making import ALL, LINED, Step

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)
FILES = ["cart.py", "basket.py", "till.py", "stock.py", "order.py", "price.py", "tax.py", "user.py", "mail.py"]
LOOPING = [Step("list_files", {"path": "src"}, "cart.py\nbasket.py")] * 14
HEALTHY = [Step("read_file", {"path": name}, f"def {name[:-3]}():\n    return {n}") for n, name in enumerate(FILES)]


def sessions_in(path):
    """Read a path that has no faults."""
    found = list(read_path(path))
    assert all(isinstance(each, Session) for each in found), found
    return found


def calls_of(session):
    """Give a session's calls."""
    return [event for event in session.events if isinstance(event, ToolCall)]


@pytest.mark.parametrize("form", ALL)
def test_the_calls_as_they_were_made(form, tmp_path):
    """Every format gives the calls in their order, with arguments and results, under its own name and one session."""
    name, write = ALL[form]
    steps = [Step("read_file", {"path": f"{n}.py"}, f"line {n}") for n in range(5)]
    (session,) = sessions_in(write(tmp_path, steps))
    assert session.format == name
    found = calls_of(session)
    assert [call.result for call in found] == [step.result for step in steps]
    if form == "mini-swe-agent":
        commands = [{"command": json.dumps({"tool": step.tool} | step.arguments)} for step in steps]
        assert [call.arguments for call in found] == commands
        return
    assert [call.arguments for call in found] == [step.arguments for step in steps]
    tool = "mcp__s__read_file" if form == "codex-exec" else "read_file"
    assert {call.tool for call in found} == {tool}


@pytest.mark.parametrize("form", ALL)
def test_a_loop_is_terminated_and_a_healthy_session_is_not_touched(form, tmp_path):
    """The same call with the same result, again and again, is ended; reading one file after the other is nothing."""
    _, write = ALL[form]
    (looping,) = sessions_in(write(tmp_path, LOOPING))
    assert "terminate" in {alert.level for alert in play(looping, Policy()).alerts}
    shutil.rmtree(tmp_path / "storage", ignore_errors=True)
    for file in tmp_path.glob("*.db"):
        file.unlink()
    (healthy,) = sessions_in(write(tmp_path, HEALTHY))
    assert play(healthy, Policy()).alerts == []


def values_in(path):
    """Give what detection looks at: the lines or documents of all files, and what is in containers."""
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if not file.is_file():
            continue
        held = contents(file)
        if held is not None:
            yield held
            continue
        try:
            yield json.loads(file.read_bytes())
        except json.JSONDecodeError:
            yield from (json.loads(line) for line in file.read_bytes().splitlines())


@pytest.mark.parametrize("form", ALL)
def test_no_two_formats_take_one_value_for_theirs(form, tmp_path):
    """Of all detectors at most one knows a line, a document or a container of a format, and it is the right one."""
    name, write = ALL[form]
    claims = [
        [known.NAME for known in FORMATS if known.recognise(value)] for value in values_in(write(tmp_path, HEALTHY))
    ]
    assert [name] in claims
    assert all(claim in ([], [name]) for claim in claims)


def test_no_two_formats_take_a_sample_for_theirs(data):
    """Nor do any of the recordings beside these tests have two takers."""
    for path in sorted(data.iterdir()):
        claims = [{known.NAME for known in FORMATS if known.recognise(value)} for value in values_in(path)]
        taken = set().union(*claims)
        assert len(taken) <= 1, (path.name, taken)
        assert taken or any(REST.recognise(value) for value in values_in(path)), path.name


@pytest.mark.parametrize("form", ALL)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(share=st.floats(0, 1))
def test_a_file_cut_anywhere_never_stops_the_reading(form, tmp_path, share):
    """Of a file that was not written to its end there are sessions or faults; calls before the cut keep their order."""
    _, write = ALL[form]
    for file in tmp_path.rglob("*.db"):
        file.unlink()
    path = write(tmp_path, HEALTHY)
    whole = [call.result for session in sessions_in(path) for call in calls_of(session)]
    files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    cut = files[int(share * (len(files) - 1))]
    text = cut.read_bytes()
    cut.write_bytes(text[: int(share * len(text))])
    found = [
        call.result
        for each in read_path(path)
        if isinstance(each, Session)
        for call in calls_of(each)
        if isinstance(call.result, str)
    ]
    rest = iter(whole)
    assert all(result in rest for result in found if result in whole)


@pytest.mark.parametrize("form", LINED)
def test_a_growing_file_gives_the_events_of_the_whole_one(form, tmp_path):
    """Fed line by line, and asked after each, it gives the same events, each as soon as its result is there."""
    name, write = LINED[form]
    path = write(tmp_path, HEALTHY)
    growing = Growing(str(path))
    taken = []
    for line in path.read_bytes().splitlines():
        growing.feed(line)
        events = growing.take(NOW)
        assert all(event.result is not msgspec.UNSET for event in events if isinstance(event, ToolCall))
        taken += events
    assert len(taken) >= len(HEALTHY)  # the last one too, before anything tells that there is no more
    taken += growing.close(NOW)
    (session,) = sessions_in(path)
    assert growing.format == name
    assert growing.faults == []
    when = {} if session.timed else {"occurred_at": NOW}
    told, whole = (
        [msgspec.structs.replace(each, agent=None, **when) for each in all_] for all_ in (taken, session.events)
    )
    assert told == whole  # but for the model, of which some tell only in the first answer


@pytest.mark.parametrize("form", LINED)
def test_a_growing_file_that_ends_in_a_call(form, tmp_path):
    """A call whose result never came is given when nothing more is to come, without a result, and once."""
    _, write = LINED[form]
    lines = write(tmp_path, HEALTHY[:3]).read_bytes().splitlines()
    growing = Growing("s")
    whole = 0
    for line in lines:
        growing.feed(line)
        whole += sum(isinstance(event, ToolCall) for event in growing.take(NOW))
    last = [event for event in growing.close(NOW) if isinstance(event, ToolCall)]
    assert whole + len(last) == len(HEALTHY[:3])
    assert growing.close(NOW) == []


def test_lines_that_are_no_json_and_forms_that_do_not_grow(tmp_path):
    """Broken lines are told by their number and the rest goes on; a document is refused with what to do."""
    growing = Growing("s")
    lines = making.pi(tmp_path, HEALTHY[:1]).read_bytes().splitlines()
    for line in (b"{broken", b"", *lines):
        growing.feed(line)
    assert [number for number, _ in growing.faults] == [1]
    assert len([event for event in growing.take(NOW) if isinstance(event, ToolCall)]) == 1
    document = json.dumps(json.loads(making.atif(tmp_path, HEALTHY).read_bytes())).encode()
    with pytest.raises(NotFollowed, match="atif is not written line by line"):
        Growing("t").feed(document)


def test_a_growing_neutral_file_tells_wrong_lines():
    """A line that does not keep to our own form is told by its number."""
    growing = Growing("s")
    growing.feed(b'{"session_id": "s", "tool": "t", "args": {}}')
    growing.feed(b'{"session_id": "s", "tool": 7, "args": {}}')
    assert [number for number, _ in growing.faults] == [2]


@pytest.mark.parametrize(("limit", "value"), [("MAX_LINES", 3), ("MAX_HELD_BYTES", 4)])
def test_waiting_for_a_mark_ends(limit, value, monkeypatch):
    """A file in which no line tells a format is given up by lines or by bytes, and not kept for ever."""
    monkeypatch.setattr(f"streams.importers.growing.{limit}", value)
    growing = Growing("s")
    growing.feed(b"{}")
    growing.feed(b"{}")
    with pytest.raises(NotFollowed, match="no line has the marks"):
        growing.feed(b"{}")


def test_a_growing_line_beyond_the_limit_is_passed_by(monkeypatch):
    """A line that is too long is told by its number; one that just fits is read."""
    line = b'{"session_id": "s", "tool": "t", "args": {}}'
    monkeypatch.setattr("streams.importers.growing.MAX_TEXT_BYTES", len(line))
    growing = Growing("s")
    growing.feed(line + b" ")
    growing.feed(line)
    assert [number for number, _ in growing.faults] == [1]
    assert len(growing.take(NOW)) == 1
