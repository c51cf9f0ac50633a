"""Topics are created as the contract says, never twice, and what does not fit is told with its remedy."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from aiokafka.admin import NewTopic
from aiokafka.errors import MessageSizeTooLargeError

from schemas import topics as contract
from streams.kafka import MAX_DEAD_LETTER_BYTES, MAX_INPUT_BYTES, KafkaSettings, admin, consumer, producer, running
from streams.topic_check import judge
from streams.topic_diff import find_topics
from streams.topics import (
    TASK_EVENTS,
    WHOLE,
    Found,
    TopicsError,
    changelog_name,
    check_topics,
    create_topics,
    default_group,
    ladders_name,
    missing_topics,
    plan,
    task_events_name,
    unequal_partitions,
    worker_topics,
)

if TYPE_CHECKING:
    from schemas.topics import Topic


@pytest.fixture
def kafka(bootstrap: str, prefix: str) -> KafkaSettings:
    """Give a broker with nothing of the test's on it yet."""
    return KafkaSettings(bootstrap=bootstrap, prefix=prefix)


@pytest.fixture
def app_id(prefix: str) -> str:
    """Give an application id of the test's own."""
    return f"app-{prefix.rstrip('.')}"


async def make(kafka: KafkaSettings, name: str, partitions: int, **config: str) -> None:
    """Create a topic as somebody else might have."""
    async with running(admin(kafka), kafka) as client:
        await client.create_topics([NewTopic(name, partitions, 1, topic_configs=config)])
        while name not in await client.list_topics():  # noqa: ASYNC110 - a broker learns of it a moment later
            await asyncio.sleep(0.02)


async def test_topics_are_created_as_the_contract_says(kafka: KafkaSettings, app_id: str) -> None:
    """Names, partitions, cleanup, retention, sizes and the clock of the inputs."""
    outcomes = await create_topics(kafka, partitions=3, app_id=app_id)
    assert set(outcomes.values()) == {"created"}
    found = await find_topics(kafka, app_id=app_id)
    ours = {changelog_name(app_id, table) for table in ("sessions", "tasks")} | {ladders_name(default_group(app_id))}
    assert found.keys() == {kafka.topic(topic) for topic in contract.TOPICS} | {task_events_name(app_id)} | ours
    for topic in (*contract.TOPICS, TASK_EVENTS):
        is_ = found[task_events_name(app_id) if topic is TASK_EVENTS else kafka.topic(topic)]
        assert is_ is not None
        assert is_.partitions == (1 if topic in set(WHOLE) else 3)
        assert set(is_.config["cleanup.policy"].split(",")) == set(topic.cleanup.split(","))
        if topic.retention_hours is not None:
            assert is_.config["retention.ms"] == str(topic.retention_hours * 3_600_000)
        clock = "LogAppendTime" if topic.direction == "in" else "CreateTime"
        assert is_.config["message.timestamp.type"] == clock
    for name in ours:
        changelog = found[name]
        assert changelog is not None
        assert (changelog.partitions, changelog.config["cleanup.policy"]) == (3, "compact")
        assert (changelog.config["segment.bytes"], changelog.config["max.compaction.lag.ms"]) == (
            "67108864",
            "43200000",
        )
    assert judge(kafka, found, app_id) == []
    assert await check_topics(kafka, app_id=app_id) == 3


async def test_creating_again_leaves_all_as_it_is(kafka: KafkaSettings, app_id: str) -> None:
    """What exists is reported; only what is missing is created."""
    await make(kafka, kafka.topic(contract.ALERTS), 2, **{"retention.ms": "1000"})
    outcomes = await create_topics(kafka, partitions=2, app_id=app_id)
    assert [name for name, outcome in outcomes.items() if outcome == "exists"] == [kafka.topic(contract.ALERTS)]
    assert set((await create_topics(kafka, partitions=2, app_id=app_id)).values()) == {"exists"}
    alerts = (await find_topics(kafka, app_id=app_id))[kafka.topic(contract.ALERTS)]
    assert alerts is not None
    assert alerts.config["retention.ms"] == "1000", "somebody's own retention is kept"


async def test_another_number_of_partitions_is_an_error_and_creates_nothing(kafka: KafkaSettings, app_id: str) -> None:
    """The topic and both ways out are named, and no half-made set is left behind."""
    name = kafka.topic(contract.SESSIONS)
    await make(kafka, name, 5)
    with pytest.raises(TopicsError, match=rf"{name} exists with 5 partitions, not 2.*--partitions 5.*delete"):
        await create_topics(kafka, partitions=2, app_id=app_id)
    found = await find_topics(kafka, app_id=app_id)
    assert [each for each, topic in found.items() if topic is not None] == [name]


async def test_replication_beyond_the_brokers_is_told_in_words(kafka: KafkaSettings, app_id: str) -> None:
    """Three copies on a single broker cannot be had: each topic that was refused is named."""
    with pytest.raises(TopicsError) as problem:
        await create_topics(kafka, partitions=1, replication=100, app_id=app_id)
    assert len(problem.value.problems) == len(contract.TOPICS) + 4
    assert "replication" in problem.value.problems[0].lower()


@pytest.mark.parametrize("prefix", ["", "a b", "$(x)'\"", "*;"])
@pytest.mark.parametrize("app", ["", "a b", "$(x)'\"", "*;"])
@pytest.mark.parametrize("group", ["", "$(x)'\""])
def test_the_command_that_is_given_can_be_pasted(prefix: str, app: str, group: str) -> None:
    """A shell hands on each value as it is, empty ones too."""
    (said,) = missing_topics(KafkaSettings(bootstrap="a:1, b:2", prefix=prefix), ["t"], app, group)
    command = shlex.split(said.partition("Create what is missing: ")[2])
    wanted = ["--bootstrap", "a:1, b:2", "--prefix", prefix, "--app-id", app, "--group", group]
    assert command == ["traction", "topics", "create", *wanted]


async def test_a_process_does_not_start_on_missing_topics(kafka: KafkaSettings, app_id: str) -> None:
    """Exactly the missing ones are named, with the command that creates them; nothing is created by looking."""
    await make(kafka, kafka.topic(contract.ALERTS), 1)
    with pytest.raises(TopicsError) as problem:
        await check_topics(kafka, app_id=app_id, topics=(contract.ALERTS, contract.CONTROL))
    (said,) = problem.value.problems
    assert kafka.topic(contract.CONTROL) in said
    assert all(name in said for name in worker_topics(app_id))
    assert kafka.topic(contract.ALERTS) not in said
    assert f"--prefix {kafka.prefix} --app-id {app_id}" in said
    found = await find_topics(kafka, app_id=app_id)
    assert sum(topic is not None for topic in found.values()) == 1
    with pytest.raises(TopicsError) as problem:
        await check_topics(kafka, app_id=app_id, group="g", topics=(contract.ALERTS,))
    (said,) = problem.value.problems
    assert said.startswith(f"missing, or not shown to us for want of rights: {task_events_name(app_id)}, g-ladders.")
    assert said.endswith(f"--app-id {app_id} --group g")


async def test_a_process_does_not_start_on_unequal_partitions(kafka: KafkaSettings, app_id: str) -> None:
    """A changelog or input with another partition count would split sessions or tasks: all counts are named."""
    await make(kafka, kafka.topic(contract.TOOL_CALLS), 2)
    await make(kafka, kafka.topic(contract.ALERTS), 7)
    await make(kafka, changelog_name(app_id), 3)
    await make(kafka, task_events_name(app_id), 4)
    needed = (contract.TOOL_CALLS, contract.ALERTS)
    names = {changelog_name(app_id): 3, task_events_name(app_id): 4}
    names |= {kafka.topic(contract.ALERTS): 7, kafka.topic(contract.TOOL_CALLS): 2}
    counts = ", ".join(f"{name} {count}" for name, count in sorted(names.items()))
    with pytest.raises(TopicsError, match=re.escape(counts)):
        await check_topics(kafka, app_id=app_id, topics=needed)
    assert await check_topics(kafka, topics=(contract.TOOL_CALLS,)) == 2
    assert await check_topics(kafka, topics=(contract.ALERTS,)) == 7
    assert await check_topics(kafka, topics=()) == 0
    await make(kafka, ladders_name(app_id), 2)
    with pytest.raises(TopicsError, match=f"{ladders_name(app_id)} 2"):
        await check_topics(kafka, app_id=app_id, group=app_id, topics=(contract.ALERTS,))


def test_equal_partitions_are_no_problem() -> None:
    """Nothing is said when all is well."""
    assert unequal_partitions({"a": 3, "b": 3}) == []
    assert unequal_partitions({}) == []


@pytest.mark.parametrize(
    ("topic", "policy"),
    [(contract.OVERRIDES, "delete"), (contract.TOOL_CALLS, "compact"), (contract.KNOWN_FLAPPING, "compact,delete")],
)
async def test_cleanup_against_the_contract_is_found(
    kafka: KafkaSettings, app_id: str, topic: Topic, policy: str
) -> None:
    """A topic that forgets what must be kept, or merges what must not be, is named with the remedy."""
    await make(kafka, kafka.topic(topic), 1, **{"cleanup.policy": policy})
    await create_topics(kafka, partitions=1, app_id=app_id)
    (problem,) = [
        each for each in judge(kafka, await find_topics(kafka, app_id=app_id), app_id) if "cleanup.policy" in each
    ]
    assert f"topic {kafka.topic(topic)} has cleanup.policy={policy}, not {topic.cleanup}" in problem
    assert "kafka-configs.sh" in problem


async def test_dead_letters_smaller_than_inputs_are_found(kafka: KafkaSettings, app_id: str) -> None:
    """Every input must fit into a dead letter, or a bad one would stop its partition."""
    await make(kafka, kafka.topic(contract.DEAD_LETTERS), 1)
    await create_topics(kafka, partitions=1, app_id=app_id)
    (problem,) = judge(kafka, await find_topics(kafka, app_id=app_id), app_id)
    assert f"topic {kafka.topic(contract.DEAD_LETTERS)} takes 1048588 bytes" in problem


@pytest.mark.parametrize(
    ("key", "off", "told"),
    [
        ("delete.retention.ms", -1, "less than 86400000: a worker's copy on disk may miss what was removed"),
        ("max.compaction.lag.ms", 1, "more than 43200000: it grows, and is read for long"),
    ],
)
def test_topics_of_states_that_are_compacted_too_late_or_too_soon_are_found(key: str, off: int, told: str) -> None:
    """A millisecond off the plan is told with the command that mends it; what is on the safe side is not."""
    kafka = KafkaSettings()
    for name in ("traction-sessions-changelog", "traction-tasks-changelog", "traction-escalation-ladders"):
        for wrong in (True, False):
            found: dict[str, Found | None] = {
                each.name: Found(each.name, each.partitions, 1, dict(each.config)) for each in plan(kafka, partitions=1)
            }
            topic = found[name]
            assert topic is not None
            planned = int(topic.config[key])
            topic.config[key] = str(planned + (off if wrong else -off))
            problems = judge(kafka, found)
            assert len(problems) == wrong
            assert all(told in each and f"--topic {name} --add-config {key}={planned}" in each for each in problems)


@pytest.mark.parametrize(("size", "problems"), [(MAX_DEAD_LETTER_BYTES - 1, 0), (MAX_DEAD_LETTER_BYTES, 1)])
def test_what_is_forwarded_must_fit_into_a_dead_letter_too(size: int, problems: int) -> None:
    """Whoever lets that topic take as much as the dead letters do is told."""
    kafka = KafkaSettings()
    found: dict[str, Found | None] = {
        each.name: Found(each.name, each.partitions, 1, dict(each.config)) for each in plan(kafka, partitions=1)
    }
    forwarded = found["traction-task-events"]
    assert forwarded is not None
    forwarded.config["max.message.bytes"] = str(size)
    assert len(judge(kafka, found)) == problems


async def test_the_largest_input_fits_into_a_dead_letter(kafka: KafkaSettings, app_id: str) -> None:
    """As large as its topic takes, with all our headers; nothing larger gets in."""
    await create_topics(kafka, partitions=1, app_id=app_id)
    value = os.urandom(MAX_INPUT_BYTES - 1_000)
    calls, dead = kafka.topic(contract.TOOL_CALLS), kafka.topic(contract.DEAD_LETTERS)
    async with running(producer(kafka), kafka) as client:
        with pytest.raises(MessageSizeTooLargeError):
            await client.send_and_wait(calls, key=b"s", value=value + b"x" * 1_001)
        await client.send_and_wait(calls, key=b"s", value=value)
        await client.send_and_wait(dead, key=b"s", value=value, headers=[("reason", b"r" * 5_000)])
    async with running(consumer(kafka), kafka) as client:
        client.subscribe([dead])
        record = await client.getone()
    assert record.value == value


def test_three_copies_need_two_to_be_written() -> None:
    """The plan leaves replication to the brokers that are there; the config is the contract's alone."""
    plans = plan(KafkaSettings(prefix="p."), partitions=4, app_id="a")
    assert {each.name for each in plans if each.same_partitions} == {
        *(f"p.{topic.name}" for topic in contract.SESSION_INPUTS),
        *("p.alerts", "a-task-events", "a-sessions-changelog", "a-tasks-changelog", "a-escalation-ladders"),
    }
    assert all("min.insync.replicas" not in each.config for each in plans)


def run(kafka: KafkaSettings, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command as people do."""
    place = ["--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix]
    command = [str(Path(sys.executable).parent / "traction"), "topics", arguments[0], *place, *arguments[1:]]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TRACTION_")}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_the_command_creates_checks_and_lists(kafka: KafkaSettings, app_id: str) -> None:
    """A person sees what was done; check fails before and passes after."""
    app = ("--app-id", app_id)
    assert run(kafka, "check", *app).returncode == 1
    created = run(kafka, "create", *app, "--partitions", "2")
    assert (created.returncode, created.stdout.count("created ")) == (0, 17)
    again = run(kafka, "create", *app, "--partitions", "2")
    assert (again.returncode, again.stdout.count("exists ")) == (0, 17)
    other = run(kafka, "create", *app, "--partitions", "3")
    assert other.returncode == 1
    assert "--partitions 2" in other.stderr
    assert run(kafka, "check", *app).returncode == 0
    listed = run(kafka, "list", *app)
    assert listed.returncode == 0
    assert "partitions=2" in listed.stdout


def test_the_command_speaks_json(kafka: KafkaSettings, app_id: str) -> None:
    """Each subcommand prints one object with `ok`, also when it fails."""
    flags = ("--app-id", app_id, "--json")
    failed = run(kafka, "check", *flags)
    assert failed.returncode == 1
    assert json.loads(failed.stdout)["ok"] is False
    assert kafka.topic(contract.ALERTS) in json.loads(failed.stdout)["problems"][0]
    created = json.loads(run(kafka, "create", *flags).stdout)
    assert created["ok"] is True
    assert created["topics"][kafka.topic(contract.ALERTS)] == "created"
    assert json.loads(run(kafka, "check", *flags).stdout) == {"ok": True, "problems": []}
    listed = json.loads(run(kafka, "list", *flags).stdout)
    assert listed["topics"][kafka.topic(contract.ALERTS)]["partitions"] == 8
    refused = run(kafka, "create", *flags, "--partitions", "9")
    assert refused.returncode == 1
    assert json.loads(refused.stdout)["ok"] is False


def test_wrong_use_exits_with_2(kafka: KafkaSettings) -> None:
    """A flag that makes no sense is told apart from brokers that refuse."""
    assert run(kafka, "create", "--partitions", "0").returncode == 2


def test_brokers_out_of_reach_exit_with_1(prefix: str) -> None:
    """The address and what to look at are told, without a stack trace."""
    result = run(KafkaSettings(bootstrap="127.0.0.1:1", prefix=prefix), "check")
    assert result.returncode == 1
    assert "Kafka at 127.0.0.1:1 cannot be used" in result.stderr
