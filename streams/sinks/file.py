"""Writes notifications to a file or to standard output, as lines of JSON or pages of Markdown.

In a file each is one write, appended under a lock and on the disk before it counts as delivered. A write that did not
fit is taken back, so that the next one does not begin within its line. Neither may be waited for without an end.
"""

from __future__ import annotations

import asyncio
import os
import select
import stat
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from streams.escalation.text import clean_page, line, markdown_text
from streams.sinks.base import Sent, Sink
from streams.sinks.errors import Unavailable
from streams.sinks.settings import FileSettings, StdoutSettings
from streams.sinks.words import MOST_MARKDOWN, MOST_TEXT, as_lines

if TYPE_CHECKING:
    from typing import Literal

    from schemas.outputs import Notification

if sys.platform != "win32":
    import fcntl

MODE = 0o640
"""A new file's: what agents wrote is not everybody's to read."""

PATIENCE_SECONDS = 2.0
"""How long another process's lock, or a reader that has stopped reading, is waited for. A thread that waits cannot be
broken off: it would keep the process from ending."""

LOOK_SECONDS = 0.01
"""Between two looks whether a file is still locked."""

AT_ONCE_BYTES = 4_096
"""What a pipe takes without waiting when it takes anything (PIPE_BUF on Linux)."""


class File(Sink[FileSettings]):
    """A file."""

    async def send(self, notification: Notification) -> Sent:
        """Append it.

        Raises:
            Unavailable: it cannot be written, for example since the disk is full.
        """
        content = written(notification, self.settings.format)
        try:
            await asyncio.to_thread(append, Path(self.settings.path), content)
        except OSError as problem:
            raise Unavailable(f"{self.settings.path} cannot be written ({problem.strerror or problem})") from None
        return Sent(f"{len(content)} bytes")


class Stdout(Sink[StdoutSettings]):
    """Standard output."""

    _torn = False

    async def send(self, notification: Notification) -> Sent:
        """Print it.

        Raises:
            Unavailable: it cannot be written.
        """
        content = written(notification, self.settings.format)
        try:
            await asyncio.to_thread(self._print, content)
        except OSError as problem:
            raise Unavailable(f"standard output cannot be written to ({problem.strerror or problem})") from None
        return Sent(f"{len(content)} bytes")

    def _print(self, content: bytes) -> None:
        """Write to standard output, past Python's buffer: that has a lock, which a reader that has stopped would hold.

        Raises:
            OSError: it is closed, or nobody reads it.
        """
        if sys.stdout is None:
            raise OSError("it is closed")
        descriptor, end = sys.stdout.fileno(), time.monotonic() + PATIENCE_SECONDS
        left = memoryview(b"\n" + content if self._torn else content)
        while left:
            if not _takes_more(descriptor, end - time.monotonic()):
                raise OSError("nobody reads it")
            left = left[os.write(descriptor, left[:AT_ONCE_BYTES]) :]
            self._torn = bool(left)


def written(notification: Notification, form: Literal["jsonl", "markdown"]) -> bytes:
    """Give what is written of a notification."""
    if form == "jsonl":
        return as_lines(notification)
    when = notification.issued_at.isoformat(timespec="seconds")
    sentence = markdown_text(line(notification.text, MOST_TEXT))
    page = clean_page(notification.report.markdown, MOST_MARKDOWN)
    return f"{when} {notification.kind}: {sentence}\n\n{page}\n\n---\n\n".encode()


def append(path: Path, content: bytes) -> None:
    """Append to a file with one write, and see it to the disk.

    Raises:
        OSError: it is no regular file, or cannot be written; then it is as it was.
    """
    # Without O_NONBLOCK, a named pipe that nobody reads would hold the open for good.
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0), MODE)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("it is no regular file")
        if sys.platform != "win32":
            _lock(descriptor)
        end = os.fstat(descriptor).st_size
        if end and _last_byte(descriptor, end) != b"\n":
            content = b"\n" + content  # what a crash of the machine left of a line stays one
        if os.write(descriptor, content) < len(content):
            os.ftruncate(descriptor, end)
            raise OSError("there is no room for it")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _last_byte(descriptor: int, end: int) -> bytes:
    os.lseek(descriptor, end - 1, os.SEEK_SET)
    return os.read(descriptor, 1)


def _lock(descriptor: int) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise OSError("another process has it locked") from None
            time.sleep(LOOK_SECONDS)
        else:
            return


def _takes_more(descriptor: int, seconds: float) -> bool:
    if sys.platform == "win32":  # there only sockets can be waited for
        return True
    return bool(select.select([], [descriptor], [], max(0.0, seconds))[1])
