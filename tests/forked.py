"""Starts processes of ours by forking them off one that has imported everything; see `tests.zygote`."""

from __future__ import annotations

import atexit
import functools
import json
import os
import queue
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, TextIO

from tests.waiting import SOON_SECONDS
from tests.zygote import MAX_MESSAGE_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Forked:
    """A process, with what tests use of `subprocess.Popen`.

    Attributes:
        args: the command.
        pid: its number.
        stdout: what it writes there.
        stderr: likewise.
        returncode: how it ended; None while it runs. A negative one is that of the signal that killed it.
    """

    def __init__(self, args: Sequence[str], pid: int, stdout: TextIO, stderr: TextIO) -> None:
        self.args = args
        self.pid = pid
        self.stdout = stdout
        self.stderr = stderr
        self.returncode: int | None = None
        self.ended = threading.Event()

    def poll(self) -> int | None:
        """Say how it ended; None while it runs."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended."""
        if not self.ended.wait(timeout):
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it runs."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Tell it to end."""
        self.send_signal(15)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(9)


class Nursery:
    """The process that forks, and those that it forked."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TRACTION_")}
        self._zygote = subprocess.Popen(
            [sys.executable, "-m", "tests.zygote", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=environment,
        )
        theirs.close()
        self._running: dict[int, Forked] = {}
        self._begun = queue.SimpleQueue[Forked]()
        self._wanted: tuple[Sequence[str], TextIO, TextIO] | None = None
        self._starting = threading.Lock()
        threading.Thread(target=self._hear, daemon=True).start()
        atexit.register(self._end)

    def start(self, command: Sequence[str], environment: Mapping[str, str]) -> Forked:
        """Start a command; see `tests.zygote.run` for which ones can be."""
        ends = [os.pipe() for _ in range(2)]
        message = json.dumps({"command": [*command], "environment": dict(environment)}).encode()
        stdout, stderr = (os.fdopen(read, encoding="utf-8") for read, _ in ends)
        with self._starting:
            self._wanted = command, stdout, stderr
            socket.send_fds(self._control, [message], [write for _, write in ends])
            found = self._begun.get(timeout=SOON_SECONDS)
        for _, write in ends:
            os.close(write)
        return found

    def _end(self) -> None:
        self._control.shutdown(socket.SHUT_RDWR)
        self._zygote.wait(SOON_SECONDS)

    def _hear(self) -> None:
        while message := self._control.recv(MAX_MESSAGE_BYTES):
            told = json.loads(message)
            if "begun" in told:
                assert self._wanted is not None
                command, stdout, stderr = self._wanted
                found = self._running[told["begun"]] = Forked(command, told["begun"], stdout, stderr)
                self._begun.put(found)
                continue
            found = self._running.pop(told["ended"])
            found.returncode = told["code"]
            self._control.send(json.dumps({"reap": told["ended"]}).encode())
            found.ended.set()


@functools.cache
def nursery() -> Nursery:
    """Give the one of this process."""
    return Nursery()
