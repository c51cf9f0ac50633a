"""What could not be sent is kept on disk, within its bound, and sent once somebody takes it."""

from __future__ import annotations

import signal
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streams import spool as module
from streams.spool import Spool, default_directory

if TYPE_CHECKING:
    from streams.spool import Sent

APPENDING = """
import sys
from streams.spool import Spool
spool = Spool(sys.argv[1])
for number in range(int(sys.argv[3])):
    spool.append(f"{sys.argv[2]}-{number} ".encode() + b"x" * 200)
    print(number, flush=True)
"""


@pytest.fixture
def folder(tmp_path):
    """A directory that is not there yet."""
    return tmp_path / "state" / "spool"


def drained(spool: Spool, *answers: Sent, most_bytes: int = 1 << 40) -> tuple[list[bytes], module.Drained]:
    """Drain with the given answers, then with `sent`, and give what was offered."""
    offered: list[bytes] = []
    left = list(answers)

    def send(lines: bytes) -> Sent:
        offered.append(lines)
        return left.pop(0) if left else "sent"

    return offered, spool.drain(send, most_bytes=most_bytes)


def test_lines_come_out_as_they_went_in(folder):
    """What was kept is sent in its order, and then forgotten."""
    spool = Spool(str(folder))
    assert drained(spool)[0] == []
    assert all(spool.append(line) for line in (b"one", b"two", "drei €".encode()))
    offered, done = drained(spool)
    assert offered == ["one\ntwo\ndrei €\n".encode()]
    assert (done.sent, done.refused, done.away, done.busy, spool.size(), spool.counts()["dropped"]) == (
        3,
        0,
        False,
        False,
        0,
        0,
    )
    assert drained(spool)[0] == []


def test_only_the_user_may_read_it(folder):
    """Payloads are nobody else's business."""
    Spool(str(folder)).append(b"one")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}


@pytest.mark.parametrize("line", [b"a\nb", b"x" * 101])
def test_what_is_no_line_is_not_kept(folder, line):
    """A line end within a line, or a line that is larger than the whole bound, is told."""
    assert not Spool(str(folder), max_bytes=100).append(line)
    assert Spool(str(folder), max_bytes=100).append(b"x" * 100)


def test_nothing_is_forgotten_while_nobody_takes_it(folder):
    """As long as nobody is there, all stays, and what was sent before stays away."""
    spool = Spool(str(folder), segment_bytes=10)
    for number in range(6):
        spool.append(b"line-%d-long" % number)
    offered, done = drained(spool, "sent", "away")
    assert (len(offered), done.sent, done.away) == (2, 1, True)
    offered, done = drained(spool)
    assert b"".join(offered).split() == [b"line-%d-long" % number for number in range(1, 6)]
    assert done.sent == 5


def test_one_line_that_nobody_takes_does_not_hold_up_the_others(folder):
    """Of lines that are refused together, each is offered by itself, and only the refused one is dropped."""
    spool = Spool(str(folder))
    for line in (b"good", b"bad", b"better"):
        spool.append(line)
    offered, done = drained(spool, "refused", "sent", "refused", "sent")
    assert offered == [b"good\nbad\nbetter\n", b"good\n", b"bad\n", b"better\n"]
    assert (done.sent, done.refused, spool.size()) == (2, 1, 0)


def test_while_each_is_offered_somebody_may_leave(folder):
    """When nobody is there any more in the midst of that, all are kept: what is sent again counts once."""
    spool = Spool(str(folder))
    for line in (b"one", b"two"):
        spool.append(line)
    _, done = drained(spool, "refused", "sent", "away")
    assert done.away
    assert drained(spool)[0] == [b"one\ntwo\n"]


def test_requests_are_bounded(folder):
    """A request has at most a thousand lines, and no more bytes than a full file unless one line has more."""
    spool = Spool(str(folder))
    for number in range(1_001):
        spool.append(b"%d" % number)
    assert [len(lines.split()) for lines in drained(spool)[0]] == [1_000, 1]
    spool = Spool(str(folder), segment_bytes=100)
    spool.append(b"x" * 98)
    spool.append(b"y" * 300)
    assert [len(lines) for lines in drained(spool)[0]] == [99, 301]


def test_draining_stops_where_it_is_told(folder):
    """A part at a time can be sent, in whole files."""
    spool = Spool(str(folder), segment_bytes=10)
    for number in range(4):
        spool.append(b"line-%d-long" % number)
    assert len(drained(spool, most_bytes=12)[0]) == 1
    assert len(drained(spool, most_bytes=13)[0]) == 2
    assert len(drained(spool)[0]) == 1


def test_when_it_is_full_the_oldest_goes(folder):
    """It never grows above its bound and one line, keeps the newest, and counts what it dropped."""
    spool = Spool(str(folder), max_bytes=1_000, segment_bytes=100)
    for number in range(200):
        spool.append(b"%04d" % number + b"x" * 15)
        assert spool.size() <= 1_000 + 20
    kept = [int(line[:4]) for lines in drained(spool)[0] for line in lines.split()]
    assert kept == list(range(kept[0], 200))
    assert 800 <= len(kept) * 20 <= 1_000
    assert spool.counts()["dropped"] == kept[0] * 20


def test_up_to_the_bound_nothing_is_dropped(folder):
    """As long as there is room for one more file, all is kept."""
    spool = Spool(str(folder), max_bytes=1_000, segment_bytes=100)
    for number in range(45):
        spool.append(b"%04d" % number + b"x" * 15)
    assert (spool.size(), spool.counts()["dropped"]) == (900, 0)


def test_what_is_counted_is_told_once(folder):
    """Counts outlive the process, add up until they are told, and then begin anew; what is kept is not touched."""
    assert set(Spool(str(folder)).forget_counts().values()) == {0}
    Spool(str(folder)).count("refused", 3)
    spool = Spool(str(folder))
    spool.append(b"one")
    spool.count("refused")
    spool.count("too-large")
    told = {"dropped": 0, "refused": 4, "too-large": 1, "cut-short": 0}
    assert spool.counts() == told
    assert spool.forget_counts() == told
    assert set(spool.counts().values()) == {0}
    assert drained(spool)[0] == [b"one\n"]


def test_a_mark_holds_for_its_time(folder):
    """What was marked lately is not new, up to the second; a clock that was set back marks anew."""
    spool = Spool(str(folder))
    spool.append(b"one")
    assert [spool.mark("told", 10, now) for now in (100, 109.9, 110, 115, 105)] == [True, False, True, False, True]


def test_a_torn_line_spoils_no_other(folder):
    """A line whose writer was killed is one line, and the next one another."""
    spool = Spool(str(folder))
    spool.append(b"whole")
    with (folder / "current").open("ab") as file:
        file.write(b"torn")
    spool.append(b"next")
    assert drained(spool)[0] == [b"whole\ntorn\nnext\n"]


def test_many_processes_write_at_once(folder):
    """Lines of several processes, which fill several files, are all there and none is mixed with another."""
    command = [sys.executable, "-c", APPENDING, str(folder)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: subprocess.run([*command, name, "2000"], check=True, capture_output=True), "abcd"))
    lines = b"".join(drained(Spool(str(folder)))[0]).splitlines()
    assert sorted(lines) == sorted(
        f"{name}-{number} ".encode() + b"x" * 200 for name in "abcd" for number in range(2_000)
    )


def test_a_killed_writer_loses_nothing_that_it_kept(folder):
    """What `append` returned for is there after SIGKILL, and others can go on."""
    command = [sys.executable, "-c", APPENDING, str(folder), "a", "1000000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        seen = [next(process.stdout) for _ in range(300)]
        process.send_signal(signal.SIGKILL)
        seen += list(process.stdout)
    whole = [line for line in seen if line.endswith("\n")]
    spool = Spool(str(folder))
    spool.append(b"later")
    lines = b"".join(drained(spool)[0]).splitlines()
    assert [line.split()[0] for line in lines[: len(whole)]] == [b"a-%d" % number for number in range(len(whole))]
    assert lines[-1] == b"later"


def test_a_stopped_process_holds_up_nobody(folder):
    """Another process that stands still while it has the lock keeps nobody from going on."""
    spool = Spool(str(folder))
    spool.append(b"one")
    holding = "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX); print(1, flush=True); input()"
    command = [sys.executable, "-c", holding, str(folder / "current")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        assert spool.append(b"two")
        process.kill()
    assert drained(spool)[0] == [b"one\ntwo\n"]


def test_one_process_sends_at_a_time(folder):
    """While one sends, another finds it busy and does nothing."""
    spool = Spool(str(folder))
    spool.append(b"one")
    others: list[module.Drained] = []

    def send(_: bytes) -> Sent:
        others.append(drained(spool)[1])
        return "sent"

    assert spool.drain(send).sent == 1
    assert [(other.busy, other.sent) for other in others] == [(True, 0)]


def test_what_is_kept_while_it_is_sent_is_kept(folder):
    """A line that comes while others are sent is not forgotten with them."""
    spool = Spool(str(folder))
    spool.append(b"one")

    def send(_: bytes) -> Sent:
        spool.append(b"two")
        return "sent"

    assert spool.drain(send).sent == 1
    assert drained(spool)[0] == [b"two\n"]


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(lines=st.lists(st.binary(min_size=1, max_size=30).filter(lambda line: b"\n" not in line and line.strip())))
def test_any_lines_are_kept(tmp_path, lines):
    """Whatever bytes a line has, it comes out as it went in."""
    spool = Spool(str(tmp_path / f"{time.monotonic_ns()}"), segment_bytes=64)
    for line in lines:
        assert spool.append(line)
    assert b"".join(drained(spool)[0]) == b"".join(line + b"\n" for line in lines)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"TRACTION_SPOOL_DIR": "/a"}, "/a"),
        ({"XDG_STATE_HOME": "/b"}, "/b/traction/spool"),
        ({"XDG_STATE_HOME": ""}, str(Path.home() / ".local/state/traction/spool")),
    ],
)
def test_where_it_is(environ, expected):
    """The directory is the one that is named, else the user's for state."""
    assert default_directory(environ) == expected
