"""The main job behind closed doors: a worker and an escalation consumer as processes, a sink, and an orchestrator."""

from __future__ import annotations

import asyncio
import json
import re
import urllib.request
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from click import ClickException
from click.testing import CliRunner

from schemas.encode import encode, record_key
from schemas.outputs import Termination
from schemas.topics import TOOL_CALLS
from streams.cli import traction
from streams.client.orchestrator import Orchestrator
from streams.expiry import expiry
from streams.kafka import KafkaSettings, producer, running
from streams.topics import create_topics
from tests.kit import tool_call
from tests.processes import TRACTION, TractionProcess
from tests.waiting import SOON_SECONDS, until

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

ROLES = (
    "admin", "escalation", "harness", "letters", "operator", "orchestrator", "rekey", "reviews", "selection", "sinks",
    "worker",
)  # fmt: skip
"""Users with the rights of the role that they are named after."""

POLICY = """
[sinks.file]
type = "file"
path = "{path}"
"""


def flags(settings: KafkaSettings, root: Path) -> list[str]:
    """Give the options of a command for settings; the password goes into a file."""
    given = {
        "--bootstrap": settings.bootstrap,
        "--prefix": settings.prefix,
        "--security-protocol": settings.security_protocol,
        "--sasl-mechanism": settings.sasl_mechanism,
        "--sasl-username": settings.username,
        "--sasl-token-file": settings.token_file,
        "--sasl-token-url": settings.token_url,
        "--sasl-token-scope": settings.token_scope,
        "--ssl-cafile": settings.cafile,
        "--ssl-certfile": settings.certfile,
        "--ssl-keyfile": settings.keyfile,
    }
    if settings.password is not None:
        file = root / f"password-of-{settings.username}"
        file.write_text(settings.password)
        given["--sasl-password-file"] = file
    return [word for name, value in given.items() if value is not None for word in (name, str(value))]


@dataclass
class Job:
    """Topics of one installation, and the processes that work on them.

    Attributes:
        root: settings of who may do everything.
        path: a directory.
        name: the application id; begins the topics' names too.
    """

    root: KafkaSettings
    path: Path
    name: str

    def __post_init__(self) -> None:
        self.processes: list[TractionProcess] = []
        self.root = replace(self.root, prefix=f"{self.name}.")
        self.told = self.path / "told.jsonl"
        self.policy = self.path / "policy.toml"
        self.policy.write_text(POLICY.format(path=self.told))

    async def __aenter__(self) -> Self:
        await create_topics(self.root, partitions=1, app_id=self.name)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self.processes:
            process.kill()

    def settings(self, settings: KafkaSettings) -> KafkaSettings:
        """Give the same settings for the topics of this job."""
        return replace(settings, prefix=self.root.prefix)

    def command(self, name: str, settings: KafkaSettings, *more: str) -> list[str]:
        """Give a command line."""
        return [TRACTION, name, *flags(self.settings(settings), self.path), *more]

    def worker(self, settings: KafkaSettings, *options: str) -> TractionProcess:
        """Start a worker."""
        return self._start(*self.command("worker", settings, "--app-id", self.name, "--port", "0", *options))

    def escalate(self, settings: KafkaSettings) -> TractionProcess:
        """Start an escalation consumer with one sink, a file."""
        more = ("--app-id", self.name, "--port", "0", "--policy", str(self.policy))
        return self._start(*self.command("escalate", settings, *more))

    def _start(self, *command: str) -> TractionProcess:
        process = TractionProcess(*command)
        self.processes.append(process)
        return process

    async def send_loop(self, settings: KafkaSettings, session: str) -> None:
        """Tell of a session that makes the same call again and again."""
        where = self.settings(settings)
        async with running(producer(where), where) as client:
            for number in range(8):
                event = tool_call(session, number, arguments={"path": "same"}, result="same")
                await client.send_and_wait(where.topic(TOOL_CALLS), key=record_key(event), value=encode(event))

    async def obey(self, settings: KafkaSettings, session: str) -> None:
        """Take what an orchestrator is asked until that is the session's end, and say that it is done."""
        async with (
            asyncio.timeout(SOON_SECONDS),
            Orchestrator(self.settings(settings), group=f"{self.name}-orchestrator") as asked,
        ):
            async for item in asked:
                if isinstance(item, Termination) and item.session_id == session:
                    await asked.answer(item, "obeyed")
                    return
                await asked.done(item)

    async def done(
        self, *, worker: KafkaSettings, escalation: KafkaSettings, harness: KafkaSettings, orchestrator: KafkaSettings
    ) -> None:
        """Have it done once: a loop is told, detected, ended by the orchestrator, and people are told by the sink."""
        working, escalating = self.worker(worker), self.escalate(escalation)
        pages = await asyncio.gather(working.ready(1), escalating.ready(1))
        await self.send_loop(harness, "loop")
        await self.obey(orchestrator, "loop")

        async def told() -> bool:
            lines = self.told.read_text().splitlines() if self.told.exists() else []
            return any("terminat" in json.dumps(json.loads(line)) for line in lines)

        await until(told)
        for page, settings in zip(pages, (worker, escalation), strict=True):
            text = await asyncio.to_thread(_read, f"{page}/metrics")
            ends = expiry(settings.certfile) if settings.certfile is not None else None
            found = re.search(
                r'^traction_certificate_expiry_timestamp_seconds{certificate="kafka"} (.+)', text, re.MULTILINE
            )
            assert (found and float(found[1])) == ends
        for process in (working, escalating):
            assert await process.end() == 0, process.log


def _read(url: str) -> str:
    with urllib.request.urlopen(url) as answer:  # noqa: S310 - our own page
        text: str = answer.read().decode()
    return text


@dataclass(frozen=True)
class Done:
    """What became of a command: its exit code, and what it printed."""

    code: int
    output: str


def command(*words: str) -> Done:
    """Run a command of ours to its end, here."""
    result = CliRunner().invoke(traction, words, prog_name="traction", standalone_mode=False)
    if isinstance(result.exception, ClickException):
        return Done(result.exception.exit_code, f"{result.output}{result.exception.format_message()}")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Done(result.exit_code or result.return_value or 0, result.output)


def run(job: Job, settings: KafkaSettings, *words: str) -> Done:
    """Run a command of ours on the topics of a job."""
    return command(*words, *flags(job.settings(settings), job.path))


def acl(settings: KafkaSettings, path: Path, app: str, *words: str, code: int = 0) -> Any:
    """Run `traction acl` for an installation, and give what it printed as JSON."""
    names = ("--app-id", app, "--orchestrator-group", f"{app}-orchestrator", "--json")
    done = run(Job(settings, path, app), settings, "acl", *words, *names)
    assert done.code == code, done.output
    return json.loads(done.output)


def held(*, but: str | None = None) -> list[str]:
    """Name the principals: one for each role, and one with two."""
    pairs = [(role, role) for role in ROLES] + [("escalation", "escalate"), ("sinks", "escalate")]
    return [word for role, user in pairs if role != but for word in ("--principal", f"{role}=User:{user}")]
