"""Forks processes of ours off one that has imported everything, since importing takes a second of processor each time.

    python -m tests.zygote NUMBER_OF_A_SOCKET

What is forked is a process like any other: it has its own environment and output, and is signalled and reaped on its
own. This one only forks and tells who ended; it must start no thread and no event loop: forked, these are broken.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
from typing import Any

PRELOADED = (
    "traction", "streams.cli.worker", "streams.cli.escalate", "streams.cli.ingest", "streams.cli.bridge",
    "faust.transport.drivers.aiokafka", "rocksdict",
)  # fmt: skip

MAX_MESSAGE_BYTES = 1 << 20


class Zygote:
    """Forks what it is asked for over a socket, until that is closed; then it kills what is left.

    Args:
        control: the socket.
    """

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._children: set[int] = set()
        self._told: set[int] = set()
        self._woken, self._wake = os.pipe()
        for end in (self._woken, self._wake):
            os.set_blocking(end, False)

    def serve(self) -> list[str] | None:
        """Serve; give the command to run in each process that was forked, and None in this one."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake)
        while True:
            ready, _, _ = select.select([self._control.fileno(), self._woken], [], [])
            if self._woken in ready:
                os.read(self._woken, 4_096)
                self._tell()
            if self._control.fileno() not in ready:
                continue
            message, files, _, _ = socket.recv_fds(self._control, MAX_MESSAGE_BYTES, 2)
            if not message:
                for pid in self._children:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                return None
            asked = json.loads(message)
            if "reap" in asked:
                self._children.remove(asked["reap"])
                os.waitpid(asked["reap"], 0)
                continue
            pid = os.fork()
            if not pid:
                return self._become(asked, files)
            for file in files:
                os.close(file)
            self._children.add(pid)
            self._send({"begun": pid})

    def _tell(self) -> None:
        """Tell of each that has ended how; it is reaped when that was heard: until then its number is nobody else's."""
        for pid in self._children - self._told:
            found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is not None:
                self._told.add(pid)
                killed = found.si_code != os.CLD_EXITED
                self._send({"ended": pid, "code": -found.si_status if killed else found.si_status})

    def _send(self, message: dict[str, Any]) -> None:
        self._control.send(json.dumps(message).encode())

    def _become(self, asked: dict[str, Any], files: list[int]) -> list[str]:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL if number == signal.SIGCHLD else signal.default_int_handler)
        for file, place in zip(files, (1, 2), strict=True):
            os.dup2(file, place)
            os.close(file)
        for file in (self._woken, self._wake):
            os.close(file)
        self._control.close()
        os.environ.clear()
        os.environ.update(asked["environment"])
        command: list[str] = asked["command"]
        return command


def run(command: list[str]) -> None:
    """Run a command in this process, as Python would: `traction ...`, or `-m` with a module."""
    if command[1:2] == ["-m"]:
        sys.argv = command[2:]
        runpy.run_module(command[2], run_name="__main__", alter_sys=True)
    else:
        sys.argv = command
        sys.exit(importlib.import_module("traction").main())


if __name__ == "__main__":
    for name in PRELOADED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # what is shared stays shared
    wanted = Zygote(socket.socket(fileno=int(sys.argv[1]))).serve()
    if wanted is not None:
        run(wanted)
