"""The demo: all of it as a user runs it, its interruption, the failure of a part, and that nothing is left behind."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from streams.demo.cast import ROLES, Part, Role, load
from streams.demo.story import Account
from streams.policy.policy import Policy
from streams.replay import play
from tests.waiting import SOON_SECONDS

pytestmark = pytest.mark.timeout(180)

COMMAND = [sys.executable, "-P", "-m", "traction", "demo", "--speed", "4"]
MARK = "TRACTION_TEST_MARK"


class Show:
    """A running demo whose processes all carry a mark in their environment, so that they can be found."""

    def __init__(self) -> None:
        self._mark = uuid.uuid4().hex
        self.process = subprocess.Popen(
            COMMAND,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {MARK: self._mark, "COLUMNS": "100"},
        )
        self.said = ""

    def until(self, words):
        """Read its output until a line has these words."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said += line
            if words in line:
                return
        pytest.fail(f"the demo never said {words!r}:\n{self.said}")

    def end(self):
        """Read the rest of its output, and give its exit code."""
        assert self.process.stdout is not None
        self.said += self.process.stdout.read()
        return self.process.wait(60)

    def processes(self, words=""):
        """Give the numbers of its running processes whose command line has these words."""
        found = []
        for directory in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                marked = f"{MARK}={self._mark}".encode() in (directory / "environ").read_bytes()
                if marked and words.encode() in (directory / "cmdline").read_bytes().replace(b"\0", b" "):
                    found.append(int(directory.name))
        return found

    def left_behind(self):
        """Give what still runs or listens some seconds after its end."""
        deadline = time.monotonic() + SOON_SECONDS
        while (left := [*self.processes(), *self.listening()]) and time.monotonic() < deadline:
            time.sleep(0.1)
        return left

    def listening(self):
        """Give the broker's address if something listens there."""
        address = re.search(r"listens on (127\.0\.0\.1):(\d+)", self.said)
        assert address is not None, self.said
        with contextlib.suppress(OSError), socket.create_connection((address[1], int(address[2])), timeout=1):
            return [address[0]]
        return []


@pytest.fixture
def show():
    """Start a demo, and see to it that it ends."""
    show = Show()
    yield show
    for process in show.processes():
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    show.process.wait()


def test_what_the_audience_sees(show):
    """Each loop is warned about and its terminations obeyed, the healthy session stays silent, and all is stopped."""
    assert show.end() == 0, show.said
    rows = {line.split()[0]: line for line in show.said.splitlines() if re.search(r" (NOT )?as expected$", line)}
    assert set(rows) == {role.name for role in ROLES}
    assert "NOT as expected" not in show.said
    assert rows["pagination"].split()[2:4] == ["silence", "silence"]
    for role in ROLES:
        assert bool(re.findall(rf"{role.name} +>>> WARN", show.said)) == role.warned
        assert len(re.findall(rf"{role.name} +==> termination published", show.said)) == role.terminated
        assert len(re.findall(rf"{role.name} +==> its orchestrator stops it", show.said)) == role.terminated
    assert re.search(r"made|directive `inject_guidance`, for the agent to read:\n +Traction noticed", show.said)
    assert "\x1b" not in show.said
    assert show.left_behind() == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interruption_leaves_nothing_behind(show, number, code):
    """Ctrl-C and SIGTERM in the middle of the play stop all processes, without a stack trace."""
    show.until("#2 ")
    assert len(show.processes()) >= 4
    show.process.send_signal(number)
    assert show.end() == code, show.said
    assert "Traceback" not in show.said
    assert show.left_behind() == []


def test_an_interruption_while_it_starts(show):
    """Ctrl-C before the processes are ready stops what has been started."""
    show.until("topics")
    show.process.send_signal(signal.SIGINT)
    assert show.end() == 130, show.said
    assert "Traceback" not in show.said
    assert show.left_behind() == []


@pytest.mark.parametrize("part", ["worker", "escalate"])
def test_a_part_that_dies_is_named_with_its_last_words(show, part):
    """When a process dies, the demo says which, shows its log's end, exits with 1 and stops the rest."""
    show.until("#2 ")
    (process,) = show.processes(f"traction {part}")
    os.kill(process, signal.SIGKILL)
    assert show.end() == 1, show.said
    assert f"the {'worker' if part == 'worker' else 'escalation'} ended by itself with exit code -9" in show.said
    assert "  | " in show.said
    assert "Traceback" not in show.said
    assert show.left_behind() == []


@pytest.mark.parametrize("words", ["listens on", "#2 "])
def test_a_reader_that_goes_away_ends_it(show, words):
    """With `| head` everything is stopped, without a word, and the code is that of a closed pipe."""
    show.until(words)
    assert show.process.stdout is not None
    show.process.stdout.close()
    assert show.process.wait(60) == 141
    assert show.left_behind() == []


def test_a_killed_demo_takes_its_processes_along(show):
    """Even when the demo itself is killed, its processes end."""
    show.until("#2 ")
    show.process.kill()
    show.end()
    assert show.left_behind() == []


@pytest.mark.parametrize("part", load(), ids=lambda part: part.role.name)
def test_the_sessions_are_what_their_roles_say(part):
    """In-process, each session brings about exactly what the demo expects of it."""
    levels = {alert.level for alert in play(part.session, Policy()).alerts} - {"recovered"}
    assert levels == ({"warn"} if part.role.warned else set()) | ({"terminate"} if part.role.terminated else set())
    assert part.session.session_id == part.role.name
    assert 10 <= part.calls <= 40


def test_the_play_keeps_the_recorded_order():
    """Cues rise in time, begin with the first call, and hold every event that is not in the opening."""
    for part in load():
        cues = part.cues()
        assert cues[0][0] == 0
        assert [seconds for seconds, _, _ in cues] == sorted(seconds for seconds, _, _ in cues)
        assert len(part.opening) + len(cues) == len(part.session.events)


def account_of(**changes):
    """Give the account of a session that was warned about, terminated and stopped, with changes."""
    account = Account()
    account.alerts["s"] = changes.get("alerts", [("warn", 2), ("terminate", 4)])
    account.directives["s"] = changes.get("directives", ["inject_guidance"])
    account.terminations["s"] = changes.get("terminations", 1)
    account.stopped = changes.get("stopped", {"s"})
    return account


@pytest.mark.parametrize(
    "changes",
    [
        {"alerts": [("terminate", 4)]},
        {"alerts": [("warn", 2)]},
        {"directives": []},
        {"terminations": 0},
        {"terminations": 2},
        {"stopped": set()},
    ],
    ids=str,
)
def test_anything_else_is_not_as_expected(changes):
    """A missing warning, verdict or stop, and a verdict given twice, are noticed."""
    role = Role("s", "", warned=True, terminated=True)
    assert account_of().as_expected(role)
    assert not account_of(**changes).as_expected(role)


def test_a_healthy_session_that_is_spoken_of_is_not_as_expected():
    """Any alert of a healthy session is noticed, and recovery alone is none."""
    role = Role("s", "")
    assert Account().as_expected(role)
    noticed = Account()
    noticed.alerts["s"].append(("notice", 1))
    assert not noticed.as_expected(role)


def test_a_part_knows_its_length():
    """A session's length counts from its first call."""
    part = next(part for part in load() if part.role.name == "deploy-config")
    assert isinstance(part, Part)
    assert part.seconds == part.cues()[-1][0] > 60
