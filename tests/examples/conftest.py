"""The programs of `deploy/examples`, built, and run against a broker with a worker and an escalation consumer.

All are built at once and all run at once, since most of either is waiting. They run twice: as one meets them, and with
a broker that is away for a while, and with verdicts that come late.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import uuid
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from schemas import topics
from streams.kafka import KafkaSettings
from streams.kafka_broker import KafkaBroker
from streams.reading import partition_of
from streams.topics import create_topics
from tests.kit import Wire, WorkerProcess
from tests.processes import TRACTION, TractionProcess
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "deploy" / "examples"
WORKPLACE = ROOT / "build" / "examples"
"""Where the programs are built; kept, so that the next run builds only what changed."""

BUILT = shutil.ignore_patterns("node_modules", "target", "Cargo.lock")
"""What somebody's own builds leave behind."""

BUILD_SECONDS = 600
RUN_SECONDS = 120
PARTITIONS = 8
LOOP_CALLS = 5
"""After so many a loop is to be terminated."""

PROGRAMS = {
    "javascript": ("npm ci", "node agent.js"),
    "go": ("go build -o agent .", "./agent"),
    "java": ("mvn -q compile dependency:build-classpath", 'java -cp "target/classes:$(cat target/classpath)" Agent'),
    "rust": ("cargo build", "target/debug/traction-example"),
    "kcat": ("", "./agent.sh"),
}
"""For each folder how its program is built, if it is, and how it is run: the lines of docs/languages.md."""

QUIET = {"npm_config_ignore_scripts": "true", "npm_config_audit": "false", "npm_config_fund": "false"}
QUICK = {"CFLAGS": "-O0 -g0", "CARGO_PROFILE_DEV_DEBUG": "0"}
"""Has librdkafka built in a third of the time; nobody measures it here."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of a program: its session, its exit code (None: it was not built), what it said, and what its log."""

    session: str
    code: int | None
    told: str
    log: str


@dataclass(frozen=True, slots=True)
class System:
    """A worker at work, the way to read what it and others write, and how an escalation consumer is told where."""

    wire: Wire
    worker: WorkerProcess
    escalation: tuple[str, ...]


def astray(name: str) -> str:
    """Give a session's name of which CRC32, librdkafka's default, makes another partition than murmur2."""
    names = (f"{name}-{number}" for number in range(100))
    return next(
        each for each in names if zlib.crc32(each.encode()) % PARTITIONS != partition_of(each.encode(), PARTITIONS)
    )


def shell(line: str, name: str, **environment: str) -> subprocess.Popen[str]:
    """Begin a line of shell in the place of a program."""
    return subprocess.Popen(
        ["/bin/sh", "-c", line],
        cwd=WORKPLACE / name,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(scope="session")
def builds() -> Iterator[dict[str, subprocess.Popen[str]]]:
    """Give the builds of all programs, under way."""
    for name in PROGRAMS:
        shutil.copytree(EXAMPLES / name, WORKPLACE / name, ignore=BUILT, dirs_exist_ok=True)
    begun = {name: shell(build, name, **QUIET, **QUICK) for name, (build, _) in PROGRAMS.items()}
    yield begun
    for each in begun.values():
        each.kill()
        each.wait()


@contextmanager
def at_work(bootstrap: str) -> Iterator[System]:
    """Have a worker at work on topics of its own."""
    name = f"x{uuid.uuid4().hex[:12]}"
    kafka = KafkaSettings(bootstrap=bootstrap, prefix=f"{name}.")
    group = f"{name}-escalation"
    asyncio.run(create_topics(kafka, partitions=PARTITIONS, replication=1, app_id=name, group=group))
    worker = WorkerProcess(Wire(kafka, name, PARTITIONS))
    where = ("--bootstrap", bootstrap, "--prefix", kafka.prefix, "--app-id", name, "--group", group)
    try:
        asyncio.run(worker.ready())
        yield System(Wire(kafka, name, PARTITIONS), worker, where)
    finally:
        worker.kill()


@contextmanager
def escalating(system: System) -> Iterator[TractionProcess]:
    """Have an escalation consumer at work."""
    process = TractionProcess(TRACTION, "escalate", *system.escalation, "--port", "0")
    try:
        asyncio.run(process.ready())
        yield process
    finally:
        process.kill()


def begin(system: System, names: Iterable[str]) -> dict[str, subprocess.Popen[str]]:
    """Run programs, all at once."""
    kafka = system.wire.settings
    where = {"TRACTION_BOOTSTRAP": kafka.bootstrap, "TRACTION_PREFIX": kafka.prefix}
    return {name: shell(f"exec {PROGRAMS[name][1]} {astray(name)}", name, **where) for name in names}


def ended(running: dict[str, subprocess.Popen[str]]) -> dict[str, Ran]:
    """Give what became of programs."""
    found = {}
    for name, program in running.items():
        try:
            told, log = program.communicate(timeout=RUN_SECONDS)
        except subprocess.TimeoutExpired:
            program.kill()
            told, log = program.communicate()
        found[name] = Ran(astray(name), program.returncode, told, log)
    return found


@pytest.fixture(scope="session")
def system(bootstrap: str) -> Iterator[System]:
    """Give a worker and an escalation consumer at work on topics of their own."""
    with at_work(bootstrap) as system, escalating(system):
        yield system


@pytest.fixture(scope="session")
def built(builds: dict[str, subprocess.Popen[str]]) -> dict[str, Ran]:
    """Give the programs that could not be built."""
    found = {}
    for name, build in builds.items():
        told, log = build.communicate(timeout=BUILD_SECONDS)
        if build.returncode:
            found[name] = Ran(astray(name), None, told, log)
    return found


@pytest.fixture(scope="session")
def ran(built: dict[str, Ran], system: System) -> dict[str, Ran]:
    """Give what became of each program; they run at once, when all are built."""
    return built | ended(begin(system, PROGRAMS.keys() - built))


@pytest.fixture(scope="session")
def outlived(built: dict[str, Ran], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    """Give what became of each where the broker is away after some calls, and who escalates comes after that."""
    with KafkaBroker(data=tmp_path_factory.mktemp("broker")) as broker, at_work(broker.bootstrap) as system:
        running = begin(system, PROGRAMS.keys() - built)

        async def begun() -> bool:
            keys = [each.key for each in await system.wire.inputs(topics.TOOL_CALLS)]
            told = {name: keys.count(astray(name).encode()) for name in running}
            return all(told[name] >= LOOP_CALLS or running[name].poll() is not None for name in running)

        asyncio.run(until(begun, RUN_SECONDS))
        broker.stop()
        broker.start()
        with escalating(system):
            return built | ended(running)
