"""Keeps on disk what could not be sent, as lines in files of bounded size, until somebody sends them.

For agents' hooks and the emitter, which may not wait: standard library only, quick to load, and every step is a few
system calls. What is kept outlives the process but not a power cut in the second before. When the bound is reached the
oldest file goes, since the newest calls say most about a loop. Sends nothing itself.
"""

from __future__ import annotations

import os
import time

try:
    import fcntl
except ImportError:  # Windows: several processes that append at once may then tear a line, which its reader refuses
    fcntl = None  # type: ignore[assignment]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    Sent = Literal["sent", "refused", "away"]

MAX_BYTES = 64 * 1024 * 1024
"""Most that is kept: some ten thousand calls of 5 KiB, or a working day of one agent."""

SEGMENT_BYTES = 1024 * 1024
"""When a file is full. It is sent in one request, and dropped as a whole when the bound is reached."""

MAX_LINE_BYTES = 8 * 1024 * 1024 + 4096
"""Longest line: the largest payload of a hook that is read, and what it is wrapped in."""

_CURRENT = "current"
_ENDING = ".ndjson"
_LOCK = "sending"
COUNTED = ("dropped", "refused", "too-large", "cut-short")
"""What is counted of what nobody gets: bytes for which there was no room, and lines or payloads that were refused, were
too large to be kept, or never came to their end."""

_PRIVATE = 0o600
_TRIES = 50
_BETWEEN_TRIES_S = 0.001
_MOST_LINES = 1_000  # of a request
_sending: set[int] = set()  # locks that are held: a child of a fork has them too, as long as it lives


def default_directory(environ: dict[str, str] | None = None) -> str:
    """Give the directory that `TRACTION_SPOOL_DIR` names, else that of the user's state (XDG Base Directory)."""
    found = os.environ if environ is None else environ
    state = found.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")  # noqa: PTH111, PTH118
    return found.get("TRACTION_SPOOL_DIR") or os.path.join(state, "traction", "spool")  # noqa: PTH118


class Spool:
    """Lines kept in one directory.

    Args:
        directory: where; made when the first line comes.
        max_bytes: most that is kept.
        segment_bytes: when a file is full.
    """

    __slots__ = ("_directory", "_max_bytes", "_segment_bytes")

    def __init__(self, directory: str, *, max_bytes: int = MAX_BYTES, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._directory = directory
        self._max_bytes = max_bytes
        self._segment_bytes = segment_bytes

    def append(self, line: bytes) -> bool:
        """Keep a line.

        Args:
            line: without line ends.

        Returns:
            False where it is too long, or has a line end.

        Raises:
            OSError: the directory cannot be written.
        """
        if b"\n" in line or len(line) > min(MAX_LINE_BYTES, self._max_bytes):
            return False
        os.makedirs(self._directory, mode=0o700, exist_ok=True)  # noqa: PTH103 - pathlib takes long to load
        file = self._open_current()
        try:
            size = os.fstat(file).st_size
            _write(file, b"\n" + line + b"\n" if _is_torn(file, size) else line + b"\n")
            if size + len(line) >= self._segment_bytes:
                self._close_current()
        finally:
            os.close(file)
        return True

    def size(self) -> int:
        """Give how many bytes are kept."""
        return sum(size for _, size in self._segments()) + self._size_of(_CURRENT)

    def count(self, what: str, by: int = 1) -> None:
        """Count something of `COUNTED`, in a file of as many zeros, which take no room and need no parsing.

        Raises:
            OSError: the directory cannot be written.
        """
        os.makedirs(self._directory, mode=0o700, exist_ok=True)  # noqa: PTH103 - pathlib takes long to load
        file = self._open_count(what)
        try:
            os.ftruncate(file, os.fstat(file).st_size + by)
        finally:
            os.close(file)

    def counts(self) -> dict[str, int]:
        """Give what was counted since it was forgotten last."""
        return {what: self._size_of(what) for what in COUNTED}

    def forget_counts(self) -> dict[str, int]:
        """Give the same, and begin anew.

        Raises:
            OSError: the directory cannot be written.
        """
        found = self.counts()
        for what in [name for name, size in found.items() if size]:
            file = self._open_count(what)
            try:
                found[what] = os.fstat(file).st_size
                os.ftruncate(file, 0)
            finally:
                os.close(file)
        return found

    def mark(self, name: str, seconds: float, now: float) -> bool:
        """Tell whether something was not marked within so many seconds, and mark it.

        Args:
            name: what; no name of `COUNTED`.
            seconds: how long a mark holds.
            now: the time, in seconds since 1970.

        Raises:
            OSError: the directory cannot be written.
        """
        file = os.open(self._path(name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _PRIVATE)
        try:
            found = os.fstat(file)
            if found.st_size and 0 <= now - found.st_mtime < seconds:
                return False
            os.ftruncate(file, 1)
            os.utime(file, (now, now))
        finally:
            os.close(file)
        return True

    def _open_count(self, what: str) -> int:
        file = os.open(self._path(what), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _PRIVATE)
        _lock(file, tries=_TRIES)  # one that is stopped while it holds the lock must not stop the others
        return file

    def drain(self, send: Callable[[bytes], Sent], *, most_bytes: int = MAX_BYTES) -> Drained:
        """Send what is kept, oldest first, and forget what was sent or refused; one process at a time does so.

        What was sent and not forgotten, since the process ended in between, is sent again.

        Args:
            send: takes lines, each with its end, and says what became of them: `sent`; `refused`, which sends each of
                them by itself, and drops one that is refused by itself; `away`, which ends the draining.
            most_bytes: where to stop, apart from the last file.

        Raises:
            OSError: the directory cannot be read or written.
        """
        drained = Drained()
        if not self.size():
            return drained
        lock = os.open(self._path(_LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _PRIVATE)
        _sending.add(lock)
        try:
            if not _lock(lock, tries=1):
                drained.busy = True
                return drained
            self._set_aside()
            for name, size in self._segments():
                if drained.bytes >= most_bytes:
                    break
                if not self._send(self._path(name), send, drained):
                    drained.away = True
                    break
                drained.bytes += size
        finally:
            _sending.discard(lock)
            os.close(lock)
        return drained

    def _send(self, path: str, send: Callable[[bytes], Sent], drained: Drained) -> bool:
        try:
            with open(path, "rb") as file:  # noqa: PTH123 - pathlib takes long to load
                lines = [line for line in file.read().split(b"\n") if line.strip()]
        except FileNotFoundError:
            return True  # it was the oldest, and there was no room
        while lines:
            taken = _first(lines, self._segment_bytes)
            told = send(b"".join(line + b"\n" for line in taken))
            if told == "away":
                return False
            if told == "sent":
                drained.sent += len(taken)
            elif len(taken) == 1:
                drained.refused += 1
            else:
                for line in taken:
                    each = send(line + b"\n")
                    if each == "away":
                        return False  # those before it are sent again, which counts once
                    drained.sent += each == "sent"
                    drained.refused += each == "refused"
            lines = lines[len(taken) :]
        os.unlink(path)  # noqa: PTH108
        return True

    def _open_current(self) -> int:
        """Open the file that is written to, and lock it; again where it was full in the meantime."""
        path = self._path(_CURRENT)
        while True:
            file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, _PRIVATE)
            _lock(file, tries=_TRIES)  # likewise
            try:
                if os.path.samestat(os.fstat(file), os.stat(path)):  # noqa: PTH116
                    return file
            except FileNotFoundError:
                pass
            os.close(file)

    def _set_aside(self) -> None:
        file = self._open_current()
        try:
            if os.fstat(file).st_size:
                self._close_current()
        finally:
            os.close(file)

    def _close_current(self) -> None:
        """Begin a new file, and drop the oldest ones where there is no room for it to grow."""
        name = f"{time.time_ns():020d}-{os.getpid()}{_ENDING}"
        os.rename(self._path(_CURRENT), self._path(name))  # noqa: PTH104
        segments = self._segments()
        size = sum(each for _, each in segments)
        while segments and size > self._max_bytes - self._segment_bytes:
            oldest, gone = segments.pop(0)
            size -= gone
            try:
                os.unlink(self._path(oldest))  # noqa: PTH108
            except FileNotFoundError:
                continue  # it was sent
            self.count("dropped", gone)

    def _segments(self) -> list[tuple[str, int]]:
        try:
            names = [name for name in os.listdir(self._directory) if name.endswith(_ENDING)]  # noqa: PTH208
        except FileNotFoundError:
            return []
        return [(name, self._size_of(name)) for name in sorted(names)]

    def _size_of(self, name: str) -> int:
        try:
            return os.stat(self._path(name)).st_size  # noqa: PTH116
        except FileNotFoundError:
            return 0

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)  # noqa: PTH118


class Drained:
    """What became of what was kept.

    Attributes:
        sent: how many lines were sent.
        refused: how many were dropped, since nobody takes them.
        bytes: how much was read for that.
        away: it ended early, since nobody was there to take it.
        busy: another process was at it, so that nothing was done.
    """

    __slots__ = ("away", "busy", "bytes", "refused", "sent")

    def __init__(self) -> None:
        self.sent = self.refused = self.bytes = 0
        self.away = self.busy = False


def _first(lines: list[bytes], size: int) -> list[bytes]:
    """Take as many lines from the front as one request holds, and one at least."""
    total = 0
    for position, line in enumerate(lines):
        total += len(line) + 1
        if (total > size and position) or position == _MOST_LINES:
            return lines[:position]
    return lines


def _is_torn(file: int, size: int) -> bool:
    """Tell whether the last line has no end: its writer was killed, or the disk was full."""
    if not size:
        return False
    os.lseek(file, size - 1, os.SEEK_SET)
    return os.read(file, 1) != b"\n"


def _lock(file: int, *, tries: int) -> bool:
    """Lock a file against other processes, and tell whether that was done; none is waited for without end."""
    if fcntl is None:
        return True
    for left in range(tries, 0, -1):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if left > 1:
                time.sleep(_BETWEEN_TRIES_S)
        else:
            return True
    return False


def _write(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _let_go() -> None:
    """Leave the locks to the process that holds them."""
    while _sending:
        os.close(_sending.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
