"""The broker's data directory: what lies where in it, and that only one broker uses it at a time.

Knows nothing of Java. The lock is on an open file that the broker's process inherits, so it lasts exactly as long
as anything that could write there.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

from streams.kafka_broker.errors import BrokerError
from streams.kafka_broker.patience import eventually

if sys.platform != "win32":
    import fcntl

EPHEMERAL_PREFIX = "traction-broker-"

EPHEMERAL_LOCK = "ephemeral.lock"
"""Tells a throw-away directory from one that a user chose to name like one."""

STALE_AFTER = 3600.0
"""Seconds after which an unlocked throw-away directory is one that a killed process left behind."""


class DataDirectory:
    """A directory that is this broker's alone.

    Attributes:
        path: the directory.
        ephemeral: whether it goes when it is released.
    """

    def __init__(self, path: Path | None) -> None:
        """Take a directory.

        Args:
            path: the directory, made if need be; None for one that is thrown away.

        Raises:
            BrokerError: it cannot be used, or another broker has it.
        """
        self.ephemeral = path is None
        if path is None:
            sweep()
            path = Path(tempfile.mkdtemp(prefix=EPHEMERAL_PREFIX))
        self.path = path.absolute()
        try:
            self.temporary.mkdir(parents=True, exist_ok=True)
            self.lock = os.open(
                self.path / (EPHEMERAL_LOCK if self.ephemeral else "lock"), os.O_RDWR | os.O_CREAT, 0o644
            )
        except OSError as problem:
            raise BrokerError(
                f"{self.path}: cannot keep data there ({problem.strerror}); give --data a directory, or use --ephemeral"
            ) from problem
        if not eventually(lambda: lock(self.lock)):
            os.close(self.lock)
            raise BrokerError(
                f"{self.path}: another broker uses this data directory; stop it, or give --data another directory"
            )

    @property
    def partitions(self) -> Path:
        """The directory of Kafka's own files."""
        return self.path / "kafka"

    @property
    def temporary(self) -> Path:
        """The directory for what Java unpacks."""
        return self.path / "tmp"

    @property
    def settings(self) -> Path:
        """Kafka's settings file, written at every start."""
        return self.path / "server.properties"

    @property
    def log(self) -> Path:
        """Kafka's log."""
        return self.path / "broker.log"

    @property
    def console(self) -> Path:
        """What Java itself says, normally nothing."""
        return self.path / "console.log"

    @property
    def formatted(self) -> bool:
        """Whether Kafka has laid its files out already."""
        return (self.partitions / "meta.properties").is_file()

    @property
    def last_port(self) -> int | None:
        """The port of the last run; None before the first.

        A broker that was killed with a transaction to finish looks for itself at its last address when it is back.
        """
        if not self.settings.is_file():
            return None
        found = re.search(r"^listeners=PLAINTEXT://\S+?:(\d+),", self.settings.read_text("utf-8"), re.MULTILINE)
        return None if found is None else int(found[1])

    def begin(self, settings: str) -> None:
        """Write the settings and clear the last run's logs away.

        Args:
            settings: the content of the settings file.
        """
        self.settings.write_text(settings, "utf-8")
        self.log.unlink(missing_ok=True)
        self.console.unlink(missing_ok=True)

    def keep(self) -> None:
        """Keep a throw-away directory, for somebody to read the log in it, until a start much later sweeps it."""
        self.ephemeral = False

    def release(self) -> None:
        """Give the directory up, and throw it away if it is ephemeral."""
        os.close(self.lock)
        if self.ephemeral:
            shutil.rmtree(self.path, ignore_errors=True)


def lock(descriptor: int) -> bool:
    """Lock an open file for this process and its heirs; False when another has it.

    On Windows there is no such lock, and Kafka's own, inside of the directory, has to do.
    """
    if sys.platform != "win32":
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def sweep() -> None:
    """Remove throw-away directories whose broker was killed together with what would have removed them."""
    if sys.platform == "win32":
        return
    for path in Path(tempfile.gettempdir()).glob(f"{EPHEMERAL_PREFIX}*/{EPHEMERAL_LOCK}"):
        try:
            details = path.stat()
            if details.st_uid != os.getuid() or time.time() - details.st_mtime < STALE_AFTER:
                continue
            descriptor = os.open(path, os.O_RDWR)
        except FileNotFoundError:  # somebody else swept
            continue
        if lock(descriptor):
            shutil.rmtree(path.parent, ignore_errors=True)
        os.close(descriptor)
