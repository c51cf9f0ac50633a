"""While the gateway is away nothing is held up or lost: it is kept within bounds, and delivered later, each once."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from detectors.state import MAX_SEEN
from streams.emitter import Emitter, EmitterSettings, Verdict, sending
from tests.streams.emitter.kit import GatewayStub
from tests.waiting import SOON_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Make = Callable[..., Emitter]


MANY = 10_000


def test_ten_thousand_events_without_a_gateway_are_delivered_later_each_once(
    emitter: Make, gateway: GatewayStub, record_property: Any
) -> None:
    """They are taken at once, kept on disk, and sent in order when the gateway is back, also by another emitter."""
    gateway.status = 503
    made = emitter()
    began = time.perf_counter()
    ids = [made.tool_call(f"s{n % 7}", "Bash", {"command": f"run {n}"}, "done") for n in range(MANY)]
    record_property("figures", f"handing over {MANY} events without a gateway: {time.perf_counter() - began:.2f} s")
    assert made.flush(60)
    assert (made.counts.kept, made.counts.dropped, gateway.events) == (MANY, 0, [])
    made.close()
    gateway.status = 200
    other = emitter()
    last = other.tool_call("s0", "Bash", {"command": "new"}, "done")
    gateway.arrived(MANY + 1)
    assert Counter(gateway.ids) == Counter([*ids, last])
    assert gateway.ids[:MANY] == ids, "what was kept goes first, in order"
    assert other.counts.dropped == 0


def test_an_answer_that_is_lost_repeats_no_more_than_a_session_remembers(emitter: Make, gateway: GatewayStub) -> None:
    """The gateway took them and said nothing: they come again with the same ids, a few at a time."""
    gateway.status = 0
    made = emitter()
    ids = [made.tool_call("s1", "Bash", {"command": str(n)}) for n in range(200)]
    gateway.arrived(1)
    gateway.status = 200
    gateway.arrived(200)
    assert set(gateway.ids) == set(ids)
    assert len(gateway.ids) > 200, "some came twice"
    places = {name: [place for place, each in enumerate(gateway.ids) if each == name] for name in ids}
    assert max(later - sooner for each in places.values() for sooner, later in itertools.pairwise(each)) < MAX_SEEN


@pytest.mark.parametrize("disk", [True, False])
def test_answers_wait_for_the_gateway(emitter: Make, gateway: GatewayStub, disk: bool) -> None:  # noqa: FBT001 - a case
    """What an agent has done about a verdict is said when it can be, in order and once: else it is asked again."""
    gateway.status = 503
    made = emitter() if disk else emitter(spool=None)
    for name in ("d1", "x1"):
        made.answer(Verdict(action="stop", session_id="s1", answers=name), "obeyed")
    assert not made.flush(0.1)
    assert gateway.said == []
    gateway.status = 200
    with gateway.came:
        assert gateway.came.wait_for(lambda: len(gateway.said) >= 2, 60)
    made.close()
    assert [each["answers"] for each in gateway.said] == ["d1", "x1"]


def test_of_too_many_answers_the_oldest_go(
    emitter: Make, gateway: GatewayStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gateway that stays away does not fill the memory."""
    monkeypatch.setattr(sending, "MOST_ANSWERS", 3)
    gateway.status = 503
    made = emitter()
    for n in range(5):
        made.answer(Verdict(action="stop", session_id="s1", answers=f"x{n}"), "obeyed")
    while made.counts.dropped < 2:
        assert not made.flush(0.01)
    gateway.status = 200
    with gateway.came:
        assert gateway.came.wait_for(lambda: len(gateway.said) >= 3, 60)
    made.close()
    assert [each["answers"] for each in gateway.said] == ["x2", "x3", "x4"]
    assert made.counts.dropped == 2


def test_answers_that_were_not_said_by_the_end_are_counted(emitter: Make, gateway: GatewayStub) -> None:
    """They are not kept on disk: who asks again is not answered by a process of another day."""
    gateway.status = 503
    made = emitter()
    for n in range(3):
        made.answer(Verdict(action="stop", session_id="s1", answers=f"x{n}"), "obeyed")
    made.close(0.2)
    assert (made.counts.dropped, gateway.said) == (3, [])


def test_without_a_disk_events_wait_in_memory_and_the_oldest_goes(emitter: Make, gateway: GatewayStub) -> None:
    """The queue is bounded in events; what is dropped is counted."""
    gateway.status = 503
    made = emitter(spool=None, queue=100)
    ids = [made.session("s1", "turn") for _ in range(250)]
    assert not made.flush(0.1)
    gateway.status = 200
    gateway.arrived(100)
    assert made.flush(20)
    assert gateway.ids == ids[-len(gateway.ids) :]
    assert len(gateway.ids) + made.counts.dropped == 250


@pytest.mark.parametrize(("limit", "fits"), [(30_000, True), (15_000, False)])
def test_the_queue_is_bounded_in_bytes(emitter: Make, gateway: GatewayStub, limit: int, *, fits: bool) -> None:
    """Few long events are as much as many short ones: ten of them have some 22,000 bytes."""
    gateway.status = 503
    made = emitter(spool=None, queue_bytes=limit)
    for _ in range(10):
        made.tool_call("s1", "t", {"text": "x" * 2_000})
    assert not made.flush(0.1)
    assert (made.counts.dropped == 0) == fits


def test_the_disk_is_bounded_and_the_oldest_goes(emitter: Make, gateway: GatewayStub) -> None:
    """What is kept of a topic is bounded in bytes; the newest is still there."""
    gateway.status = 503
    made = emitter(spool_bytes=64 * 1024)
    ids = [made.tool_call("s1", "t", {"text": f"{n} " + "x" * 1_000}) for n in range(200)]
    assert made.flush(20)
    gateway.status = 200
    gateway.has(ids[-1])
    assert gateway.ids == ids[-len(gateway.ids) :]
    assert 30 < len(gateway.ids) < 70


def test_a_directory_that_cannot_be_written_loses_events_and_says_so(
    emitter: Make, gateway: GatewayStub, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The agent goes on; what is lost is counted."""
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool" / "sessions").mkdir()
    (tmp_path / "spool" / "sessions" / "current").mkdir()
    gateway.status = 503
    made = emitter()
    for _ in range(5):
        made.session("s1", "turn")
    assert made.flush(20)
    assert (made.counts.dropped, made.counts.kept) == (5, 0)
    assert "events are lost" in caplog.text


def test_one_event_that_nobody_takes_holds_up_no_other(emitter: Make, gateway: GatewayStub) -> None:
    """A batch that is refused as a whole is sent one by one, also from the disk."""
    made = emitter()
    gateway.status = 413
    for _ in range(3):
        made.session("s1", "turn")
    assert made.flush(20)
    assert made.counts.refused == 3
    gateway.status = 503
    made.session("s1", "turn")
    assert made.flush(20)
    gateway.status = 413
    made.session("s1", "turn")
    assert made.flush(20)
    gateway.status = 200
    last = made.session("s1", "ended")
    gateway.arrived(1)
    assert made.flush(20)
    assert gateway.ids[-1] == last


def test_closing_does_not_wait_for_a_gateway_that_hangs(emitter: Make, gateway: GatewayStub) -> None:
    """After its time what is left is on disk, what is under way included."""
    hanging = threading.Event()
    gateway.before = lambda: hanging.wait(60)
    made = emitter()
    ids = [made.session("s1", "turn") for _ in range(100)]
    made.close(0.05)
    assert made.counts.kept == 100
    late = made.session("s1", "ended")
    hanging.set()
    gateway.before = lambda: None
    other = emitter()
    other.session("s2", "started")
    gateway.arrived(102)
    assert {*ids, late} <= set(gateway.ids)


SCRIPT = """
import sys
from streams.emitter import Emitter, EmitterSettings
emitter = Emitter(EmitterSettings(url=sys.argv[1], spool=sys.argv[2], exit_seconds=0.2))
for n in range(int(sys.argv[3])):
    print(emitter.tool_call("s1", "t", {"n": n}), flush=True)
{end}
"""


def run(end: str, gateway: GatewayStub, directory: Path, count: int = 50) -> subprocess.Popen[str]:
    """Run a process that emits."""
    words = [sys.executable, "-c", SCRIPT.replace("{end}", end), gateway.url, str(directory), str(count)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("status", [200, 503])
def test_the_end_of_a_process_loses_nothing(emitter: Make, gateway: GatewayStub, tmp_path: Path, status: int) -> None:
    """A process that just ends, or by an error, has sent or kept what it told."""
    gateway.status = status
    ran = run("raise SystemExit(3)", gateway, tmp_path / "spool")
    said = ran.communicate(timeout=SOON_SECONDS)[0].split()
    assert ran.returncode == 3
    gateway.status = 200
    emitter().session("s2", "started")
    gateway.arrived(51)
    assert set(said) <= set(gateway.ids)


def test_a_process_that_is_killed_loses_nothing_that_was_kept(
    emitter: Make, gateway: GatewayStub, tmp_path: Path
) -> None:
    """After SIGKILL another process sends what is on disk, each once."""
    gateway.status = 503
    ran = run(
        "assert emitter.flush(30); print('kept', flush=True); import time; time.sleep(60)", gateway, tmp_path / "spool"
    )
    assert ran.stdout is not None
    said = [line.strip() for line in iter(ran.stdout.readline, "kept\n")]
    ran.send_signal(signal.SIGKILL)
    ran.wait(30)
    gateway.status = 200
    emitter().session("s2", "started")
    gateway.arrived(51)
    assert Counter(each for each in gateway.ids if each in set(said)) == Counter(said)


def test_several_processes_send_what_is_kept_once(gateway: GatewayStub, tmp_path: Path) -> None:
    """Emitters that start together do not send the same twice."""
    gateway.status = 503
    with Emitter(EmitterSettings(url=gateway.url, spool=str(tmp_path))) as made:
        ids = [made.session("s1", "turn") for _ in range(1_000)]
        assert made.flush(30)
    gateway.status = 200
    others = [run("assert emitter.flush(30); import time; time.sleep(1)", gateway, tmp_path, 1) for _ in range(3)]
    gateway.arrived(1_003)
    assert [each.wait(60) for each in others] == [0, 0, 0]
    assert Counter(each for each in gateway.ids if each in set(ids)) == Counter(ids)


def test_a_forked_child_sends_its_own_and_not_its_parents(emitter: Make, gateway: GatewayStub) -> None:
    """After a fork both go on, each with what it is told."""
    slow = threading.Event()
    gateway.before = lambda: slow.wait(60)
    made = emitter()
    own = [made.session("parent", "turn") for _ in range(20)]

    def child() -> None:
        made.session("child", "turn", event_id="child")
        os._exit(0 if made.flush(30) else 1)

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    slow.set()
    process.join(60)
    assert process.exitcode == 0
    assert made.flush(30)
    assert Counter(gateway.ids) == Counter([*own, "child"])


def test_a_child_of_a_fork_does_not_keep_others_from_sending(emitter: Make, gateway: GatewayStub) -> None:
    """One that was forked while its parent sent what was kept, and lives on, holds up nobody."""
    gateway.status = 503
    made = emitter()
    made.session("s1", "started")
    assert made.flush(20)
    sending_now, go_on = threading.Event(), threading.Event()

    def hang() -> None:
        sending_now.set()
        go_on.wait(60)

    gateway.before = hang
    assert sending_now.wait(20)
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
    child.start()
    try:
        gateway.before = lambda: None
        go_on.set()
        last = made.session("s1", "ended")
        assert made.flush(20)
        gateway.status = 200
        gateway.has(last, 20)
        assert len(gateway.ids) == 2
    finally:
        child.kill()
        child.join()


def test_what_other_processes_leave_is_looked_for_again(
    emitter: Make, gateway: GatewayStub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that runs on sends what another kept after it had looked."""
    monkeypatch.setattr(sending, "LOOK_SECONDS", 0.05)
    made = emitter()
    made.session("s1", "started")
    gateway.arrived(1)
    with GatewayStub() as none:
        none.status = 503
        with Emitter(EmitterSettings(url=none.url, spool=str(tmp_path / "spool"))) as other:
            other.session("s2", "started")
            assert other.flush(20)
    gateway.arrived(2)
