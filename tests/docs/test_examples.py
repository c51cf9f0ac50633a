"""Runs the code of the pages as it stands, against a broker with a worker and an escalation consumer at work.

Two things are put in: the broker's address, and a prefix of this run's own for the topics' names.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
import uuid
import zlib
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka.partitioner import murmur2

from schemas import topics
from schemas.common import Task
from schemas.decode import decode
from schemas.encode import encode, record_key
from schemas.testing import tool_call
from streams.kafka import KafkaSettings, consumer, producer, running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from schemas.topics import Topic
    from tests.docs.conftest import Block, Find

ADDRESS = "127.0.0.1:9092"
SECONDS = 60.0
VENV = Path(sys.executable).parent
TOOLS = Path(__file__).resolve().parents[1] / "tools"


class Process:
    """A process whose output is kept line by line."""

    def __init__(self, command: list[str], cwd: Path, environment: dict[str, str]) -> None:
        self.popen = subprocess.Popen(
            command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.popen.stdout
        self.lines.extend(line.rstrip("\n") for line in self.popen.stdout)

    def wait_for(self, text: str) -> str:
        """Wait for a line with a text in it, and give the line."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            for line in list(self.lines):
                if text in line:
                    return line
            assert self.popen.poll() is None, f"ended with {self.popen.returncode}: {self.lines}"
            time.sleep(0.05)
        raise AssertionError(f"no line with {text!r} in {self.lines}")

    def finish(self) -> list[str]:
        """Wait until it ends by itself, well, and give its output."""
        assert self.popen.wait(SECONDS) == 0, self.lines
        self._reader.join(SECONDS)
        return self.lines

    def end(self) -> None:
        """End it."""
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGTERM)
            try:
                self.popen.wait(20)
            except subprocess.TimeoutExpired:
                self.popen.kill()
                self.popen.wait()


class System:
    """The commands of the README at work on topics of our own."""

    def __init__(self, bootstrap: str, directory: Path, block: Find) -> None:
        name = f"d{uuid.uuid4().hex[:12]}"
        self.settings = KafkaSettings(bootstrap=bootstrap, prefix=f"{name}.")
        self.directory = directory
        own = {
            "BOOTSTRAP": bootstrap,
            "PREFIX": f"{name}.",
            "TOPICS_CREATE_APP_ID": name,
            "TOPICS_CREATE_GROUP": f"{name}-escalation",
            "WORKER_APP_ID": name,
            "WORKER_PORT": "0",
            "ESCALATE_APP_ID": name,
            "ESCALATE_GROUP": f"{name}-escalation",
            "ESCALATE_PORT": "0",
        }
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TRACTION_")}
        self.environment = kept | {f"TRACTION_{name}": value for name, value in own.items()}
        self.environment["PATH"] = f"{VENV}{os.pathsep}{self.environment['PATH']}"
        self.started: list[Process] = []
        _broker, create, worker, escalate = block("start").text.splitlines()
        self.shell(create).finish()
        self.worker, self.escalation = self.shell(worker), self.shell(escalate)
        self.pages = self.worker.wait_for("worker ready: partitions 0").rpartition(" ")[2]
        self.escalation.wait_for("escalation ready: partitions 0")

    def localise(self, text: str) -> str:
        """Put the broker's address and our prefix into an example."""
        prefixed = re.sub(r"\bagent\.(?=[a-z\"])", self.settings.prefix, text)
        return prefixed.replace(ADDRESS, self.settings.bootstrap)

    def shell(self, text: str, cwd: Path | None = None) -> Process:
        """Start lines of shell."""
        return self._start(["bash", "-ec", f"exec {text}" if "\n" not in text else text], cwd or self.directory)

    def python(self, block: Block) -> Process:
        """Start a program in Python."""
        text = self.localise(block.text)
        assert text != block.text
        return self._start([sys.executable, "-c", text], self.directory)

    def _start(self, command: list[str], cwd: Path) -> Process:
        process = Process(command, cwd, self.environment)
        self.started.append(process)
        return process

    async def read(self, topic: Topic, session: str) -> list[Any]:
        """Read what there is of a session on a topic, as far as it is committed."""
        async with running(consumer(self.settings, group_id=None), self.settings) as client:
            client.subscribe([self.settings.topic(topic)])
            while not client.assignment():
                await client.getmany(timeout_ms=50)
            tps = list(client.assignment())
            ends = await client.end_offsets(tps)
            await client.seek_to_beginning(*tps)
            found = []
            while any([await client.position(tp) < ends[tp] for tp in tps]):
                for records in (await client.getmany(timeout_ms=200)).values():
                    found += [record for record in records if record.key == session.encode()]
        return [decode(topic, record.value, record.headers) if topic.record else record for record in found]

    async def until(self, topic: Topic, session: str, count: int) -> list[Any]:
        """Wait until there are so many records of a session on a topic, and give all there are."""
        deadline = time.monotonic() + SECONDS
        while len(found := await self.read(topic, session)) < count:
            assert time.monotonic() < deadline, f"{len(found)} on {topic.name}, not {count}: {self.worker.lines[-5:]}"
            await asyncio.sleep(0.2)
        return found

    def measured(self, metric: str) -> float:
        """Give the sum of a metric of the worker over its labels."""
        with urllib.request.urlopen(f"{self.pages}/metrics") as page:  # noqa: S310 - our own page
            text: str = page.read().decode()
        return sum(float(value) for value in re.findall(rf"^{metric}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE))

    async def assert_terminated(self, session: str) -> str:
        """See that a session was warned, guided and terminated, each once, and give the termination's id."""
        alerts = await self.until(topics.ALERTS, session, 2)
        assert [alert.level for alert in alerts] == ["warn", "terminate"]
        (termination,) = await self.until(topics.TERMINATIONS, session, 1)
        (directive,) = await self.until(topics.DIRECTIVES, session, 1)
        assert directive.action == "inject_guidance"
        assert directive.text
        self.escalation.wait_for(f"session {session} is to be terminated")
        found: str = termination.termination_id
        return found


@pytest.fixture(scope="module")
def system(bootstrap: str, block: Find, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """Give the commands of the README at work; nothing of it outlives the tests."""
    made = System(bootstrap, tmp_path_factory.mktemp("examples"), block)
    yield made
    for process in reversed(made.started):
        process.end()


@pytest.fixture(scope="module")
def javascript(system: System, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Block], Process]:
    """Give what starts a program in JavaScript, beside the packages that the lock pins."""
    directory = tmp_path_factory.mktemp("javascript")
    node, npm = shutil.which("node"), shutil.which("npm")
    assert node, "node is needed: install Node.js"
    assert npm, "npm is needed: install Node.js"
    for name in ("package.json", "package-lock.json"):
        shutil.copy(TOOLS / name, directory)
    subprocess.run([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=directory, check=True)

    def start(block: Block) -> Process:
        file = directory / f"{block.name}.mjs"
        file.write_text(system.localise(block.text), "utf-8")
        assert file.read_text("utf-8") != block.text
        return system._start([node, str(file)], directory)

    return start


async def test_the_first_event_in_python(system: System, block: Find) -> None:
    """The README's five calls bring one warning with guidance and one termination, and nobody's words are lost."""
    (session,) = system.python(block("first-event")).finish()

    await system.assert_terminated(session)
    assert not await system.read(topics.DEAD_LETTERS, session)


async def test_an_event_id_counts_once(system: System, block: Find) -> None:
    """With one id for all five calls, against the README's advice, they are one call and nothing is noticed."""
    example = block("first-event")
    before = system.measured("traction_events_total")
    text = example.text.replace('"event_id": str(uuid.uuid4())', '"event_id": "one"')
    assert text != example.text
    (session,) = system.python(replace(example, text=text)).finish()

    deadline = time.monotonic() + SECONDS
    while system.measured("traction_events_total") < before + 5:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.2)
    assert not await system.read(topics.ALERTS, session)


async def test_obeying_in_python(system: System, block: Find) -> None:
    """The README's orchestrator stops the session that spins, answers once, and its answer can be read."""
    orchestrator = system.python(block("obey"))
    (session,) = system.python(block("first-event")).finish()

    line = orchestrator.wait_for(f"stopping {session}: ")
    termination = await system.assert_terminated(session)
    (answer,) = await system.until(topics.CONTROL, session, 1)
    orchestrator.end()
    assert "read_file(path=settings.py)" in line
    assert (answer.action, answer.answers) == ("obeyed", termination)
    assert not await system.read(topics.DEAD_LETTERS, session)


async def test_an_orchestrator_in_python(system: System, block: Find) -> None:
    """The program with the client advises, stops, answers each once, and leaves a task that flaps to a person."""
    orchestrator = system.python(block("orchestrator"))
    (session,) = system.python(block("first-event")).finish()

    await _orchestrated(system, session, orchestrator)


async def _orchestrated(system: System, session: str, orchestrator: Process) -> None:
    """See that an orchestrator did what was asked for a session, and that its answers were understood."""
    orchestrator.wait_for(f"show {session}: ")
    orchestrator.wait_for(f"stop {session}: ")
    orchestrator.wait_for(f"leave {session} to a person")  # without a task of its own, a session is its task
    termination = await system.assert_terminated(session)
    (directive,) = await system.read(topics.DIRECTIVES, session)
    answers = await system.until(topics.CONTROL, session, 2)
    orchestrator.end()
    assert {(each.action, each.answers) for each in answers} == {
        ("obeyed", directive.directive_id), ("obeyed", termination),
    }  # fmt: skip
    assert {each.event_id for each in answers} == {f"{each.answers}-1-obeyed" for each in answers}
    assert not await system.read(topics.DEAD_LETTERS, session)


async def test_an_override(system: System, block: Find) -> None:
    """The override shown holds for its repository: only observed, warned at the fourth call, as the alert says."""
    system.python(block("override")).finish()
    system.worker.wait_for("override for repo:acme/shop is in force")
    session = f"override-{uuid.uuid4()}"
    async with running(producer(system.settings), system.settings) as client:
        for n in range(5):
            event = tool_call(
                n,
                session_id=session,
                occurred_at=datetime.now(UTC),
                task=Task(repo="acme/shop"),
            )
            await client.send_and_wait(
                system.settings.topic(topics.TOOL_CALLS), key=record_key(event), value=encode(event)
            )

    warned, terminated = await system.until(topics.ALERTS, session, 2)
    assert (warned.level, warned.count, warned.mode) == ("warn", 4, "observe")
    assert warned.limits[0].layer == "override:repo:acme/shop"
    assert (terminated.level, terminated.mode) == ("terminate", "observe")
    assert not await system.read(topics.TERMINATIONS, session)


def test_the_replay(system: System, block: Find, pages: dict[str, str], root: Path) -> None:
    """The replay shown prints what stands below it."""
    printed = "\n".join(system.shell(block("replay").text.strip(), cwd=root).finish())
    assert f"```text\n{printed}\n```" in pages["README.md"]

    row, *_ = system.shell(f"{block('replay').text.strip()} --json", cwd=root).finish()
    assert all(f"`{key}`" in pages["README.md"] for key in json.loads(row))


def test_in_ones_own_process(block: Find, tmp_path: Path) -> None:
    """The program that calls the detectors itself prints what stands below it."""
    program = block("in-process").text
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout == block("in-process-output").text


@pytest.mark.tools
async def test_the_first_event_in_javascript(
    system: System, block: Find, javascript: Callable[[Block], Process]
) -> None:
    """The README's program for Node does what the one in Python does, its keys hashed as ours."""
    example = block("first-event-js")
    # Of this key kafkajs' old partitioner makes another partition than murmur2; of some keys it makes the same one.
    text = example.text.replace("`javascript-${randomUUID()}`", '"javascript-1"')
    assert text != example.text
    (session,) = javascript(replace(example, text=text)).finish()

    await system.assert_terminated(session)
    assert not await system.read(topics.DEAD_LETTERS, session)
    assert not system.measured("traction_misrouted_events_total")


@pytest.mark.tools
async def test_obeying_in_javascript(system: System, block: Find, javascript: Callable[[Block], Process]) -> None:
    """The README's orchestrator for Node stops the session that spins, and its answer can be read."""
    orchestrator = javascript(block("obey-js"))
    (session,) = javascript(block("first-event-js")).finish()

    orchestrator.wait_for(f"stopping {session}: ")
    termination = await system.assert_terminated(session)
    (answer,) = await system.until(topics.CONTROL, session, 1)
    orchestrator.end()
    assert (answer.action, answer.answers) == ("obeyed", termination)
    assert not await system.read(topics.DEAD_LETTERS, session)


@pytest.mark.tools
async def test_an_orchestrator_in_javascript(
    system: System, block: Find, javascript: Callable[[Block], Process]
) -> None:
    """The program for Node does what the one in Python does."""
    orchestrator = javascript(block("orchestrator-js"))
    (session,) = javascript(block("first-event-js")).finish()

    await _orchestrated(system, session, orchestrator)


@pytest.mark.tools
async def test_the_first_event_with_kcat(system: System, block: Find) -> None:
    """The README's lines of shell do the same; without the partitioner they name, keys go astray and are counted."""
    assert shutil.which("kcat"), "kcat is needed: install it"
    text = system.localise(block("first-event-kcat").text)
    name, astray = "kcat-$(date +%s)", _astray(8)
    assert name in text
    session = f"kcat-{uuid.uuid4()}"

    system.shell(text.replace(name, session)).finish()
    await system.assert_terminated(session)
    assert not system.measured("traction_misrouted_events_total")

    other = text.replace(name, astray).replace(" -X topic.partitioner=murmur2_random", "")
    assert "-X" not in other
    system.shell(other).finish()
    await system.until(topics.ALERTS, astray, 2)
    assert system.measured("traction_misrouted_events_total") == 5


def _astray(partitions: int) -> str:
    """Give a session id which librdkafka's default partitioner sends elsewhere than murmur2."""
    while True:
        session = f"astray-{uuid.uuid4()}"
        key = session.encode()
        if zlib.crc32(key) % partitions != (murmur2(key) & 0x7FFFFFFF) % partitions:
            return session
