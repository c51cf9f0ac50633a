"""A right that is missing is told: by whom, for what, and how to grant it; nothing hangs or starts over for it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from streams.access import brokers
from streams.access.rights import MissingRights, check_rights
from streams.access.roles import Names, rules
from streams.access.rules import Kind, Operation, Pattern, Rule
from streams.client.orchestrator import Orchestrator
from streams.kafka import admin, producer, running
from streams.topics import create_topics
from tests.doors.kit import Job, run
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from streams.kafka import KafkaSettings
    from tests.doors.conftest import Doors


def of(kind: Kind, name: str = "") -> Callable[[Rule], bool]:
    """Give what finds rules of a kind, about a name that ends so."""
    return lambda rule: rule.kind is kind and rule.name.endswith(name)


LACKING = {
    ("worker", "topic"): (of(Kind.TOPIC, "alerts"), "Write lack0.alerts"),
    ("worker", "group"): (of(Kind.GROUP), "Read the group lack1"),
    ("worker", "id"): (of(Kind.TRANSACTIONAL_ID), "Write the transactional ids lack2-0"),
    ("escalation", "topic"): (of(Kind.TOPIC, "terminations"), "Write lack3.terminations"),
    ("escalation", "group"): (of(Kind.GROUP), "Read the group lack4-escalation"),
    ("escalation", "id"): (of(Kind.TRANSACTIONAL_ID), "Write the transactional ids lack5-escalation-0"),
}


async def grant(settings: KafkaSettings, wanted: Iterable[Rule]) -> None:
    """Create rules as an administrator."""
    async with running(admin(settings), settings) as client:
        await brokers.create(client, list(wanted))


@pytest.mark.parametrize(("role", "what"), LACKING)
async def test_what_is_missing_is_told_at_the_start(doors: Doors, role: str, what: str) -> None:
    """Whichever right is lacking: it is said which, whose, and which command repairs it; with it, all is well."""
    number = list(LACKING).index((role, what))
    lacking, said = LACKING[role, what]
    app = f"lack{number}"
    names = Names(f"{app}.", app, f"{app}-escalation")
    needed = rules({role: ("User:nobody",)}, names)
    root, nobody = (replace(doors.settings(user), prefix=names.prefix) for user in ("root", "nobody"))
    await create_topics(root, partitions=1, app_id=app)
    await grant(root, [rule for rule in needed if not lacking(rule)])
    with pytest.raises(MissingRights) as caught:
        await check_rights(nobody, role, app_id=app)
    told = str(caught.value)
    assert told.startswith(f"nobody lacks rights that the role {role} needs: {said}")
    assert f"traction acl apply --bootstrap {doors.cluster.bootstrap} --prefix {app}. --app-id {app}" in told
    assert told.endswith(f"--principal {role}=User:NAME")
    await grant(root, needed)
    await check_rights(nobody, role, app_id=app)


async def test_processes_end_with_what_is_missing(doors: Doors, tmp_path: Path) -> None:
    """They end with 1 and the same words, and without a traceback."""
    async with Job(doors.settings(), tmp_path, "poor") as job:
        working, escalating = job.worker(doors.settings("nobody")), job.escalate(doors.settings("nobody"))
        for process, role in ((working, "worker"), (escalating, "escalation")):
            assert await process.exit() == 1, process.log
            assert f"nobody lacks rights that the role {role} needs: Read" in process.log
            assert "Traceback" not in process.log


async def test_a_worker_that_writes_again_needs_the_right_to(doors: Doors, tmp_path: Path) -> None:
    """With a worker's rights only it is said at the start, not with the first misrouted event."""
    async with Job(doors.settings(), tmp_path, "again") as job:
        await grant(doors.settings(), rules({"worker": ("User:nobody",)}, Names("again.", "again", "again-escalation")))
        working = job.worker(doors.settings("nobody"), "--rekey")
        assert await working.exit() == 1, working.log
        assert "nobody lacks rights that the role rekey needs: Write again.tool-calls" in working.log


async def test_processes_end_with_a_right_that_is_taken_away(doors: Doors, tmp_path: Path) -> None:
    """A worker does not go on without its alerts, nor an escalation consumer wait for its group for ever."""
    async with Job(doors.settings(), tmp_path, "taken") as job:
        names = Names("taken.", "taken", "taken-escalation")
        await grant(doors.settings(), rules({"worker": ("User:nobody",), "escalation": ("User:nobody",)}, names))
        working, escalating = job.worker(doors.settings("nobody")), job.escalate(doors.settings("nobody"))
        await asyncio.gather(working.ready(1), escalating.ready(1))
        denied = [
            Rule("User:nobody", Kind.TOPIC, "taken.alerts", Pattern.LITERAL, Operation.WRITE, deny=True),
            Rule("User:nobody", Kind.GROUP, "taken-escalation", Pattern.LITERAL, Operation.READ, deny=True),
        ]
        await grant(doors.settings(), denied)
        await job.send_loop(doors.settings(), "loop")
        assert await working.exit() == 3, working.log
        assert "nobody has no right to read or write the topic taken.alerts" in working.log
        assert await escalating.exit() == 1, escalating.log
        assert "nobody has no right to read with the consumer group taken-escalation" in escalating.log


@pytest.mark.parametrize(
    ("kind", "name", "told"),
    [
        (Kind.TOPIC, "terminations", "read or write the topic {}.terminations"),
        (Kind.TRANSACTIONAL_ID, "", "write with the transactional id {}-escalation-0"),
    ],
    ids=["topic", "id"],
)
async def test_what_ends_a_transaction_is_told_and_not_what_came_of_it(
    doors: Doors, tmp_path: Path, kind: Kind, name: str, told: str
) -> None:
    """The client then refuses to send more, in words that name no right."""
    app = f"ended{kind}"
    async with Job(doors.settings(), tmp_path, app) as job:
        roles = {"worker": ("User:worker",), "escalation": ("User:nobody",)}
        given = rules(roles, Names(f"{app}.", app, f"{app}-escalation"))
        await grant(doors.settings(), given)
        working, escalating = job.worker(doors.settings("worker")), job.escalate(doors.settings("nobody"))
        await asyncio.gather(working.ready(1), escalating.ready(1))
        await grant(
            doors.settings(),
            [
                replace(rule, deny=True)
                for rule in given
                if rule.principal == "User:nobody" and rule.kind is kind and rule.name.endswith(name)
            ],
        )
        await job.send_loop(doors.settings(), "loop")
        assert await escalating.exit() == 1, escalating.log
        assert f"nobody has no right to {told.format(app)}" in escalating.log
        assert "IllegalOperation" not in escalating.log


async def test_who_may_not_put_a_letter_back_is_told(doors: Doors, tmp_path: Path) -> None:
    """Exit code 1 with the topic, whatever the client makes of the records beside it."""
    async with Job(doors.settings(), tmp_path, "back") as job:
        working = job.worker(doors.settings())
        await working.ready(1)
        async with running(producer(job.root), job.root) as client:
            for _ in range(3):
                await client.send_and_wait("back.tool-calls", b"not JSON")

        async def listed() -> bool:
            found = await asyncio.to_thread(run, job, doors.settings(), "dead-letters", "list")
            return found.output.count("not_json") == 3

        await until(listed)
        given = rules({"letters": ("User:nobody",)}, Names("back.", "back", "back-escalation"))
        await grant(doors.settings(), [rule for rule in given if rule.name != "back.tool-calls"])
        seen = Rule("User:nobody", Kind.TOPIC, "back.tool-calls", Pattern.LITERAL, Operation.DESCRIBE)
        await grant(doors.settings(), [seen])
        done = await asyncio.to_thread(run, job, doors.settings("nobody"), "dead-letters", "replay", "--all", "--yes")
        assert done.code == 1, done.output
        assert "nobody has no right to read or write the topic back.tool-calls" in done.output


async def test_a_sink_without_rights_holds_nobody_up(doors: Doors, tmp_path: Path) -> None:
    """It tells what it lacks and tries again; the escalation beside it works."""
    async with Job(doors.settings(), tmp_path, "mute") as job:
        given = rules({"escalation": ("User:escalation",)}, Names("mute.", "mute", "mute-escalation"))
        await grant(doors.settings(), given)
        process = job.escalate(doors.settings("escalation"))
        await process.ready(1)

        async def told() -> bool:
            return "sink file: Kafka at" in process.log and "escalation has no right to" in process.log

        await until(told)
        assert await process.end() == 0


async def test_clients_tell_what_is_missing(doors: Doors, tmp_path: Path) -> None:
    """An orchestrator at its start, and a person's command."""
    async with Job(doors.settings(), tmp_path, "none") as job:
        with pytest.raises(MissingRights, match=r"nobody lacks .* Read none\.directives.*orchestrator=User:NAME"):
            async with Orchestrator(job.settings(doors.settings("nobody")), group="none-orchestrator"):
                raise AssertionError("it cannot have started")
        done = await asyncio.to_thread(run, job, doors.settings("nobody"), "sessions", "list")
        assert done.code == 1
        assert "missing, or not shown to us for want of rights" in done.output
        may_read = Rule("User:nobody", Kind.TOPIC, "none.", Pattern.PREFIXED, Operation.DESCRIBE)
        await grant(doors.settings(), [may_read, replace(may_read, name="none-")])
        async with running(producer(job.root), job.root) as client:
            await client.send_and_wait("none.alerts", b"{}")
        done = await asyncio.to_thread(run, job, doors.settings("nobody"), "sessions", "list")
        assert done.code == 1
        assert "nobody has no right to read or write the topic none." in done.output
        assert "traction acl diff" in done.output
