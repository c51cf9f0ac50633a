"""Who may do what on the brokers: a table of the tests' own, asked of a real authorizer role by role."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import (
    GroupAuthorizationFailedError,
    GroupCoordinatorNotAvailableError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
)

from schemas import topics as contract
from streams.kafka import admin, consumer, producer, running
from streams.topics import create_topics
from tests.doors.kit import Job, acl, held, run

if TYPE_CHECKING:
    from pathlib import Path

    from streams.kafka import KafkaSettings
    from tests.doors.conftest import Doors

APP = "acl"

COLUMNS = (
    "harness", "reviews", "orchestrator", "selection", "operator", "letters", "worker", "rekey", "escalation", "sinks",
    "admin", "nobody",
)  # fmt: skip

TABLE = """
acl.tool-calls             w   -   -   -   -   w   r   w   -   -   -   -
acl.fix-attempts           w   -   -   -   -   w   r   w   -   -   -   -
acl.sessions               w   -   -   -   -   w   r   w   -   -   -   -
acl.reviews                -   w   -   -   -   w   r   w   -   -   -   -
acl.control                -   -   w   -   rw  w   r   w   -   -   -   -
acl.overrides              -   -   -   -   rw  -   r   -   -   -   -   -
acl.alerts                 -   -   -   -   r   w   w   -   r   -   -   -
acl.directives             -   -   r   -   r   -   -   -   w   -   -   -
acl.terminations           -   -   r   -   r   -   -   -   w   -   -   -
acl.known-flapping         -   -   r   r   r   -   -   -   w   -   -   -
acl.notifications          -   -   -   -   r   w   -   -   w   r   -   -
acl.fitness                -   -   r   r   r   -   -   -   rw  -   -   -
acl.dead-letters           -   -   -   -   -   rw  w   -   w   w   -   -
acl-task-events            -   -   -   -   -   -   rw  -   r   -   -   -
acl-sessions-changelog     -   -   -   -   r   -   rw  -   -   -   -   -
acl-tasks-changelog        -   -   -   -   r   -   rw  -   -   -   -   -
acl-escalation-ladders     -   -   -   -   r   -   -   -   rw  -   -   -
group acl                  -   -   -   -   -   -   u   -   -   -   -   -
group acl-escalation       -   -   -   -   -   -   -   -   u   -   -   -
group acl-escalation-sink-file -   -   -   -   -   -   -   -   -   u   -   -
group acl-orchestrator     -   -   u   -   -   -   -   -   -   -   -   -
group acl-else             -   -   -   -   -   -   -   -   -   -   -   -
id acl-0                   -   -   -   -   -   -   u   -   -   -   -   -
id acl-31                  -   -   -   -   -   -   u   -   -   -   -   -
id acl-escalation-0        -   -   -   -   -   -   -   -   u   -   -   -
id acl-escalation-17       -   -   -   -   -   -   -   -   u   -   -   -
id acl.dead-letters-replay -   -   -   -   -   u   -   -   -   -   -   -
id else-0                  -   -   -   -   -   -   -   -   -   -   -   -
"""
"""What each role may do: read, write, use. Nothing of it comes from the program."""


def cells(kind: str) -> dict[str, dict[str, str]]:
    """Give the rows of one kind: by name, then by role."""
    found = {}
    for line in TABLE.strip().splitlines():
        *named, tail = (
            line.split(maxsplit=2) if line.startswith(("group ", "id ")) else ("topic", *line.split(maxsplit=1))
        )
        if named[0] == kind:
            found[named[1]] = dict(zip(COLUMNS, tail.split(), strict=True))
    return found


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a directory for this file's tests."""
    return tmp_path_factory.mktemp("rights")


@pytest.fixture(scope="module")
def granted(doors: Doors, path: Path) -> Job:
    """Make the topics with a record each, and give every role its rights, as an administrator would."""
    job = Job(doors.settings(), path, APP)

    async def fill() -> None:
        await create_topics(job.root, partitions=1, app_id=APP)
        async with running(producer(job.root), job.root) as client:
            for name in cells("topic"):
                await client.send_and_wait(name, b"{}", key=b"k")

    asyncio.run(fill())
    acl(doors.settings(), path, APP, "apply", *held())
    return job


async def test_all_of_the_contract_is_in_the_table() -> None:
    """A topic that is added cannot be left out."""
    assert {name.removeprefix("acl.") for name in cells("topic") if name.startswith("acl.")} == {
        topic.name for topic in contract.TOPICS
    }


@pytest.mark.parametrize("role", COLUMNS)
async def test_a_role_may_do_what_the_table_says_and_nothing_else(doors: Doors, granted: Job, role: str) -> None:
    """Each cell of each topic, group and transactional id, asked of the brokers by a client of that principal."""
    settings = granted.settings(doors.settings(role))
    wanted = {name: roles[role] for kind in ("topic", "group", "id") for name, roles in cells(kind).items()}
    found: dict[str, str] = {}
    plain = producer(settings, enable_idempotence=False)  # else who may write nothing is not even let in
    async with (
        running(plain, settings) as writer,
        running(consumer(settings, fetch_max_wait_ms=20), settings) as reader,
    ):
        for name in cells("topic"):
            found[name] = (await may_read(reader, name) + await may_write(writer, name)) or "-"
    async with running(admin(settings), settings) as client:
        for name in cells("group"):
            found[name] = "u" if await may(coordinator(client, name), GroupAuthorizationFailedError) else "-"
    for name in cells("id"):
        found[name] = "u" if await may_begin(settings, name) else "-"
    assert found == wanted


async def may(work: Any, refusal: type[Exception]) -> bool:
    """Tell whether something is allowed."""
    try:
        await work
    except refusal:
        return False
    return True


async def coordinator(client: Any, group: str) -> None:
    """Ask who coordinates a group, for which describing it is needed, which comes with every right to it."""
    while True:
        try:
            await client.find_coordinator(group)
        except GroupCoordinatorNotAvailableError:  # the first group of all makes the brokers begin to keep groups
            await asyncio.sleep(0.1)
        else:
            return


async def may_read(reader: Any, name: str) -> str:
    """Tell whether a topic may be read: there is a record in it."""

    async def read() -> None:
        await reader._client._wait_on_metadata(name)  # refused at once where not even its existence may be known
        tp = TopicPartition(name, 0)
        reader.assign([tp])
        reader.seek(tp, 0)
        while True:
            try:
                if await reader.getmany(timeout_ms=1_000):
                    return
            except TopicAuthorizationFailedError as problem:
                if name in problem.args:  # a fetch of the topic before may have been under way still
                    raise

    return "r" if await may(read(), TopicAuthorizationFailedError) else ""


async def may_write(writer: Any, name: str) -> str:
    """Tell whether a topic may be written."""
    return "w" if await may(writer.send_and_wait(name, b"{}", key=b"k"), TopicAuthorizationFailedError) else ""


async def may_begin(settings: KafkaSettings, name: str) -> bool:
    """Tell whether transactions of an id may be begun, which is what fences others."""
    client = producer(settings, transactional_id=name)
    try:
        return await may(client.start(), TransactionalIdAuthorizationFailed)
    finally:
        await client.stop()


async def test_the_whole_job_is_done_with_each_process_under_its_own_principal(doors: Doors, tmp_path: Path) -> None:
    """What the roles have is enough: to detect, escalate, tell, obey, and for people to look up, decide, put back."""
    async with Job(doors.settings(), tmp_path, "own") as job:
        await asyncio.to_thread(acl, doors.settings(), tmp_path, "own", "apply", *held())
        harness = job.settings(doors.settings("harness"))
        async with running(producer(harness), harness) as client:
            await client.send_and_wait("own.tool-calls", b"not JSON")
        await job.done(
            worker=doors.settings("worker", "SCRAM-SHA-512"),
            escalation=doors.settings("escalate", "SCRAM-SHA-256"),
            harness=doors.settings("harness"),
            orchestrator=doors.settings("orchestrator"),
        )
        for words in (
            ("sessions", "show", "loop", "--app-id", "own"),
            ("sessions", "mute", "loop", "--for", "1h"),
            ("tasks", "list", "--app-id", "own"),
            ("alerts", "tail", "--no-follow", "--since", "1h"),
            ("fitness",),
            ("topics", "check", "--app-id", "own"),
            ("policy", "explain", "--session", "loop", "--app-id", "own"),
            ("forget", "session", "loop", "--app-id", "own"),
            ("topics", "plan-partitions", "1", "--app-id", "own"),
        ):
            done = await asyncio.to_thread(run, job, doors.settings("operator"), *words)
            assert done.code == 0, (words, done.output)
        for asked in (["list"], ["replay", "--all", "--yes"]):
            done = await asyncio.to_thread(run, job, doors.settings("letters"), "dead-letters", *asked)
            assert done.code == 0, (asked, done.output)
            assert "not_json" in done.output or "put back" in done.output
