"""The state of a task and its events survive encoding as they are; what is damaged or of another version is refused."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detectors import TaskEvent, TaskState, UnsupportedState, decode_task, encode_task
from detectors.tasks.facts import Spent
from detectors.tasks.state import MAX_ATTEMPTS, MAX_FINDINGS, MAX_PULLS, MAX_TASK_BYTES, TASK_VERSION
from detectors.watch import MAX_LOOPS
from schemas.common import Task
from schemas.events import Replacement, ReviewFinding
from schemas.testing import at, fix_attempt, review
from tests.detectors.tasks.conftest import Player

KINDS = {TaskState: "state", TaskEvent: "event"}
LONG = "a text that is much too long to be kept " * 100


def eventful():
    """Yield a session's events with everything that can be said."""
    for n in range(MAX_ATTEMPTS + 4):
        yield fix_attempt(
            n,
            f"{LONG} {n % 3}",
            files=[f"src/{LONG[:200]}/{each}.py" for each in range(100)],
            replacements=[
                Replacement(path=f"src/part_{each}.py", old=f"{LONG}\n{n % 2}\n" * 3, new=f"{n % 3}\n{LONG}")
                for each in range(20)
            ],
            failing=[f"tests/{LONG[:200]}.py::test_{each}" for each in range(n % 2, 200)],
            error_message=f"ValueError: {LONG}",
            task=Task(id="T1"),
        )
        yield review(
            n,
            pull_request=f"{'p' * 200}#{n % (MAX_PULLS + 2)}",
            findings=[ReviewFinding(path=f"src/{each}.py", text=f"{LONG[:300]} {each}") for each in range(n % 7, 100)],
            comments_total=20 + n,
            occurred_at=at(60 * n),
        )


@pytest.fixture(scope="module")
def known():
    """Give a state and an event in which everything is known."""
    game = Player()
    game.play(eventful())
    task = game.tasks["T1"]
    assert task.attempts
    assert task.pulls
    assert task.loops
    return task


def examples(known):
    """Return one value of each kind."""
    attempt = known.attempts[-1]
    event = TaskEvent(
        "e1",
        "s1",
        "T1",
        5,
        spent=Spent(1, 2, 3, 0.5, 4),
        attempt=attempt,
        word="resume",
        answers="a1",
        until_ms=9,
        actor="p",
        reason="r",
    )
    return {TaskState: known, TaskEvent: event}


@pytest.mark.parametrize("kind", KINDS)
def test_encoding_changes_nothing(known, kind):
    """An event travels over a topic, and a state waits in a table."""
    value = examples(known)[kind]
    assert decode_task(encode_task(value), kind) == value


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", [0, TASK_VERSION - 1, TASK_VERSION + 1, 2**40])
def test_another_version_is_refused_by_its_number(known, kind, version):
    """Never guessed at."""
    found, body = msgspec.msgpack.decode(encode_task(examples(known)[kind]))
    assert found == TASK_VERSION
    age = "a newer" if version > TASK_VERSION else "an older"
    wanted = f"a task's {KINDS[kind]} has version {version}, of {age} release; this one reads version {TASK_VERSION}"
    with pytest.raises(UnsupportedState, match=f"^{wanted}"):
        decode_task(msgspec.msgpack.encode((version, body)), kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc0",
        b"{}",
        b"\x91\x02",
        b"\x92\x02",
        b"\x92\x02\xc0",
        b"\x92\x02\x90\x00",
        b"\x92\xa11\x90",
        b"\x92\x02" + b"\x91" * 100_000 + b"\xc0",
        b"\x92\x02\xa3\xff\xff\xff",
    ],
)
def test_what_is_no_state_or_event_is_refused(kind, data):
    """With the one error that the worker knows how to take."""
    with pytest.raises(UnsupportedState, match=f"^a task's {KINDS[kind]} is damaged: "):
        decode_task(data, kind)


def test_a_state_is_no_event_and_an_event_no_state(known):
    """Both come from topics with one key."""
    values = examples(known)
    with pytest.raises(UnsupportedState):
        decode_task(encode_task(values[TaskState]), TaskEvent)
    with pytest.raises(UnsupportedState):
        decode_task(encode_task(values[TaskEvent]), TaskState)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_damaged_bytes_are_refused_or_read_and_nothing_else(known, kind, data):
    """Whatever bits flip, wherever it is cut."""
    whole = bytearray(encode_task(examples(known)[kind]))
    for place in data.draw(st.lists(st.integers(0, len(whole) - 1), max_size=3)):
        whole[place] = data.draw(st.integers(0, 255))
    cut = bytes(whole[: data.draw(st.integers(0, len(whole)) | st.just(len(whole)))])
    try:
        assert isinstance(decode_task(cut, kind), kind)
    except UnsupportedState as refused:
        assert str(refused)  # noqa: PT017 - either is right


@pytest.mark.parametrize("letter", ["x", "語"])
def test_the_state_fits_after_each_event(letter):
    """Large attempts in any script: never above the bound, and what is taken away is of the oldest first."""
    game, sizes = Player(), []
    for n in range(MAX_ATTEMPTS):
        lines = "".join(f"-old {letter * 9} {n} {each}\n+new {n} {each}\n" for each in range(60))
        parts = "".join(
            f"--- a/{each}.py\n+++ b/{each}.py\n@@ -{10**8 + 9 * n} +{10**8 + 9 * n} @@\n{lines}" for each in range(20)
        )
        names = [f"{letter * 200}::test_{n}_{each}" for each in range(100)]
        game.play([fix_attempt(n, f"{letter * 300} {n}", diff=parts, failing=names, task=Task(id="T1"))])
        sizes.append(len(encode_task(game.tasks["T1"])))
    assert 0.8 * MAX_TASK_BYTES < max(sizes) <= MAX_TASK_BYTES
    kept = [
        sum(len(region.added) for file in each.change.files for region in file.regions)
        for each in game.tasks["T1"].attempts
    ]
    assert len(kept) == MAX_ATTEMPTS
    assert kept[0] < min(kept[-4:])
    assert len(game.tasks["T1"].attempts[-1].failing_names) > len(game.tasks["T1"].attempts[0].failing_names) > 0
    assert all(each.change.digest for each in game.tasks["T1"].attempts)


def test_whatever_comes_the_state_stays_small(known):
    """Rings, prints and excerpts, however long the texts and however many the files, checks and remarks."""
    assert len(known.attempts) <= MAX_ATTEMPTS
    assert len(known.pulls) <= MAX_PULLS
    assert len(known.loops) <= MAX_LOOPS
    assert all(len(pull.open) <= MAX_FINDINGS and len(pull.fixed) <= MAX_FINDINGS for pull in known.pulls)
    assert 0.9 * MAX_TASK_BYTES < len(encode_task(known)) <= MAX_TASK_BYTES
    assert LONG[:200].encode() not in encode_task(known)


def test_a_new_state_and_one_without_traces_are_empty(known):
    """Who stores them need not; who has spent, tries or is under watch has to be remembered."""
    assert TaskState().empty
    assert TaskState(task_id="T1", first_ms=5, last_ms=9, steps=7, alerts=3).empty
    assert not TaskState(spent=Spent(turns=1)).empty
    assert not TaskState(attempts=known.attempts[:1]).empty
    assert not TaskState(pulls=known.pulls[:1]).empty
    assert not TaskState(loops=known.loops[:1]).empty
