"""Writes notifications to a file or to standard output, as lines of JSON or pages of Markdown.

Each is one write, appended under a lock and on the disk before it counts as delivered. A write that did not fit is
taken back, so that the next one does not begin within its line.
"""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from streams.escalation.text import clean, line, markdown_text
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

    async def send(self, notification: Notification) -> Sent:
        """Print it.

        Raises:
            Unavailable: it cannot be written.
        """
        text = written(notification, self.settings.format).decode()
        try:
            await asyncio.to_thread(_print, text)
        except (OSError, ValueError) as problem:
            raise Unavailable(f"standard output cannot be written to ({type(problem).__name__})") from None
        return Sent(f"{len(text)} characters")


def written(notification: Notification, form: Literal["jsonl", "markdown"]) -> bytes:
    """Give what is written of a notification."""
    if form == "jsonl":
        return as_lines(notification)
    when = notification.issued_at.isoformat(timespec="seconds")
    sentence = markdown_text(line(notification.text, MOST_TEXT))
    page = clean(notification.report.markdown, MOST_MARKDOWN)
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
            fcntl.flock(descriptor, fcntl.LOCK_EX)
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


def _print(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
