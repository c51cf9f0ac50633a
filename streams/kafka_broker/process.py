"""Starts, watches and stops one broker.

The command `traction broker`, the demo and the tests all run it through `KafkaBroker`. It touches no topic and no
data of the broker; whether it is ready is asked as any client would ask.
"""

from __future__ import annotations

import base64
import re
import time
import uuid
from typing import TYPE_CHECKING, Self

from streams.kafka_broker.directory import DataDirectory
from streams.kafka_broker.errors import BrokerError
from streams.kafka_broker.jars import class_path, default_cache
from streams.kafka_broker.java import JavaProcess, class_options, find_java
from streams.kafka_broker.ports import (
    PortTakenError,
    answers,
    bracketed,
    pick_port,
    require_free,
    require_reachable,
)
from streams.kafka_broker.settings import CONTROLLER_HOST, java_options, properties

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

START_TIMEOUT = 60.0
"""Seconds that a broker may take until it answers; it takes 2 to 4 on an idle machine."""

STOP_TIMEOUT = 15.0
"""Seconds that a broker may take to flush and close its files before it is killed; normally 1."""

RECORD_TIMEOUT = 60.0
"""Seconds that a broker may take to end when it keeps its classes as well; normally 5."""

PORT_TRIES = 5
"""How often a port that was picked here may turn out to be taken by somebody else in the meantime."""

FAILURES = re.compile(
    r"^(?:Caused by: |Error: |Error occurred during initialization of VM\n|Terminating due to |Exception in .*?: "
    r"|\S+ (?:ERROR|FATAL) )(.*)$",
    re.MULTILINE,
)
"""Lines of Java's and Kafka's logs that say why."""


class KafkaBroker:
    """One Apache Kafka process, broker and controller in one.

    As a context manager it starts on entry and stops on exit. It may be started from any thread, but not where an
    event loop would be held up.
    """

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        data: Path | None = None,
        cache: Path | None = None,
        heap: str = "256m",
        tell: Callable[[str], None] = lambda _: None,
        record: Path | None = None,
    ) -> None:
        """Describe a broker; nothing happens yet.

        Args:
            host: the address to listen on; clients must be able to reach it by this name.
            port: the port for clients; 0 picks a free one, with data that are kept the same one again if it can.
            data: the directory to keep its data in; None throws it away in the end.
            cache: the directory of Kafka's jars; None for the user's cache directory.
            heap: Java's largest heap, as Java writes it.
            tell: is called with a sentence before anything slow.
            record: the file to keep the classes in that Java loaded; written when it is stopped, which takes seconds.
        """
        self.host = host
        self.port = port
        self._picks = port == 0
        self._data = data
        self._cache = default_cache() if cache is None else cache
        self._heap = heap
        self._tell = tell
        self._record = record
        self._directory: DataDirectory | None = None
        self._process: JavaProcess | None = None

    @property
    def bootstrap(self) -> str:
        """The address for clients, host:port."""
        return f"{bracketed(self.host)}:{self.port}"

    @property
    def pid(self) -> int | None:
        """The Java process; None when there is none."""
        return None if self._process is None else self._process.pid

    @property
    def log(self) -> Path | None:
        """The broker's log file; None when it does not run."""
        return None if self._directory is None else self._directory.log

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the broker and wait until it answers clients.

        Raises:
            BrokerError: it cannot be started; nothing is left running.
        """
        java = find_java()
        require_reachable(self.host)
        if not self._picks:
            require_free(self.host, self.port)
        jars = class_path(self._cache, tell=self._tell)
        self._directory = directory = DataDirectory(self._data)
        command = [str(java), *java_options(heap=self._heap, log=directory.log, temporary=directory.temporary)]
        command += class_options(java, jars)
        try:
            self._start(directory, command)
        except BaseException:
            self.stop()
            raise

    def wait(self) -> None:
        """Wait as long as the broker runs.

        Raises:
            BrokerError: the broker ended by itself.
        """
        if self._process is not None and self._directory is not None:
            code = self._process.wait()
            self._directory.keep()
            raise BrokerError(f"the broker ended by itself (exit code {code}); its log: {self._directory.log}")

    def stop(self) -> None:
        """Stop the broker, and throw its data away if it is ephemeral. Does nothing when it does not run."""
        process, self._process = self._process, None
        directory, self._directory = self._directory, None
        try:
            if process is not None:
                thrown_away = directory is None or directory.ephemeral
                patience = 0 if thrown_away else STOP_TIMEOUT
                process.stop(patience=RECORD_TIMEOUT if self._record else patience)
        finally:
            if directory is not None:
                directory.release()

    def _start(self, directory: DataDirectory, command: list[str]) -> None:
        for attempt in range(1, PORT_TRIES + 1):
            if self._picks:
                self.port = pick_port(self.host, directory.last_port if attempt == 1 else None)
            controller_port = pick_port(CONTROLLER_HOST, given=(self.port,))
            try:
                self._launch(directory, command, controller_port)
            except PortTakenError as problem:
                if attempt == PORT_TRIES or (problem.port == self.port and not self._picks):
                    raise
            else:
                return

    def _launch(self, directory: DataDirectory, command: list[str], controller_port: int) -> None:
        settings = properties(
            host=self.host, port=self.port, controller_port=controller_port, partitions=directory.partitions
        )
        directory.begin("".join(f"{key}={value}\n" for key, value in settings.items()))
        if not directory.formatted:
            arguments = ["kafka.tools.StorageTool", "format", "--standalone", "-t", cluster_id()]
            if self._run(directory, [*command, *arguments, "-c", str(directory.settings)]).wait() != 0:
                raise failure(self.host, controller_port, directory)
        record = [f"-XX:AOTCacheOutput={self._record}"] if self._record else []
        broker = self._run(directory, [*command, *record, "kafka.Kafka", str(directory.settings)])
        deadline = time.monotonic() + START_TIMEOUT
        while broker.poll() is None:
            if answers(self.host, self.port):
                return
            if time.monotonic() > deadline:
                directory.keep()
                raise BrokerError(
                    f"the broker does not answer on {self.bootstrap} after {START_TIMEOUT:.0f} seconds; "
                    f"its log: {directory.log}"
                )
            time.sleep(0.05)
        raise failure(self.host, controller_port, directory)

    def _run(self, directory: DataDirectory, command: list[str]) -> JavaProcess:
        if self._process is not None:
            self._process.stop(patience=0)
        self._process = JavaProcess(command, console=directory.console, inherits=directory.lock)
        return self._process


def failure(host: str, controller_port: int, directory: DataDirectory) -> BrokerError:
    """Say why Java ended, from what it left in its logs.

    Args:
        host: the address that it should listen on.
        controller_port: the port that is taken when it does not say which one is.
        directory: where the logs are.
    """
    reason, log = "it said nothing", directory.console
    for log in (directory.console, directory.log):
        said = log.read_text("utf-8", "replace") if log.is_file() else ""
        if "Address already in use" in said:
            named = re.search(r"bind to \S+?:(\d+): Address already in use", said)
            return PortTakenError(host, controller_port if named is None else int(named[1]))
        causes = FAILURES.findall(said)
        if causes:
            reason = causes[-1]
            break
    directory.keep()
    return BrokerError(f"the broker did not start: {reason}; its log: {log}")


def cluster_id() -> str:
    """Make an id for a new cluster: a UUID as Kafka writes it, which must not look like an option."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text
