"""Looks at the topics with their configuration, and compares them with what they should be.

For `traction topics list`, `check` and `diff`. It changes nothing on the brokers: what differs may have been changed
for a reason.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, for_code

from streams.kafka import KafkaSettings, admin, running
from streams.topics import DEFAULT_APP_ID, DEFAULT_PARTITIONS, Found, configured, copies, describe, plan

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from aiokafka.admin import AIOKafkaAdminClient

    from streams.topics import Plan

PARTITIONS = "partitions"
REPLICATION = "replication"

SET_FOR_TOPIC = 1
"""Kafka's number for a value that was set for the topic itself (`ConfigSource`)."""


@dataclass(frozen=True, slots=True)
class Different:
    """One thing in which a topic is not as it should be.

    Attributes:
        topic: its name on the brokers.
        setting: `partitions`, `replication`, or the broker's name of a configuration.
        wanted: what it should be; None for a configuration that should not be set.
        found: what it is.
    """

    topic: str
    setting: str
    wanted: str | None
    found: str

    @property
    def configured(self) -> bool:
        """Tell whether it is a configuration, which can be set at any time."""
        return self.setting not in {PARTITIONS, REPLICATION}

    def __str__(self) -> str:
        """Say it in words."""
        wanted = "and should not be set" if self.wanted is None else f"not {self.wanted}"
        return f"{self.topic}: {self.setting} is {self.found}, {wanted}"


@dataclass(frozen=True, slots=True)
class Difference:
    """How the topics differ from what they should be.

    Attributes:
        missing: names of those that are not there, or not shown to us.
        different: what the others have otherwise.
    """

    missing: list[str]
    different: list[Different]

    @property
    def any(self) -> bool:
        """Tell whether something is not as it should be."""
        return bool(self.missing or self.different)

    def remedies(self, bootstrap: str) -> list[str]:
        """Give what makes the topics as they should be: commands, and words where no command does.

        Args:
            bootstrap: the brokers, for the commands.
        """
        told = ["create what is missing: traction topics create, with the same options"] if self.missing else []
        told += [
            shlex.join(_altering(bootstrap, topic, [each for each in self.different if each.topic == topic]))
            for topic in sorted({each.topic for each in self.different if each.configured})
        ]
        if any(each.setting == REPLICATION for each in self.different):
            told.append("replication: kafka-reassign-partitions.sh, with a list of the brokers that are to have copies")
        if any(each.setting == PARTITIONS for each in self.different):
            told.append(
                "partitions: correct the layout, or stop what reads and writes the topic, delete it and create it "
                "anew; do not add partitions: keys would move, and sessions be split"
            )
        return told


def _altering(bootstrap: str, topic: str, different: Iterable[Different]) -> list[str]:
    setting = [each for each in different if each.configured]
    added = [f"{each.setting}={_bracketed(each.wanted)}" for each in setting if each.wanted is not None]
    deleted = [each.setting for each in setting if each.wanted is None]
    words = ["kafka-configs.sh", "--bootstrap-server", bootstrap, "--alter", "--topic", topic]
    words += ["--add-config", ",".join(added)] if added else []
    return words + (["--delete-config", ",".join(deleted)] if deleted else [])


def _bracketed(value: str) -> str:
    """Write a value as Kafka's tool takes it: what has commas in it stands in brackets."""
    return f"[{value}]" if "," in value else value


async def find_topics(
    settings: KafkaSettings, *, app_id: str = DEFAULT_APP_ID, group: str | None = None
) -> dict[str, Found | None]:
    """Look at what there is of our topics, with their configuration.

    Args:
        settings: where and how to connect.
        app_id: the worker's.
        group: the escalation consumer's; None for `default_group`.

    Returns:
        Each topic that should be there, by name, None for those that are not.

    Raises:
        KafkaUnavailable: the brokers cannot be reached.
    """
    names = [each.name for each in plan(settings, partitions=1, app_id=app_id, group=group)]
    async with running(admin(settings), settings) as client:
        found = await _found(client, names)
    return {name: found.get(name) for name in names}


async def diff_topics(
    settings: KafkaSettings,
    *,
    partitions: int = DEFAULT_PARTITIONS,
    replication: int | None = None,
    app_id: str = DEFAULT_APP_ID,
    group: str | None = None,
    config: Mapping[str, Mapping[str, str]] | None = None,
) -> Difference:
    """Compare the topics with those that `create_topics` would make with the same arguments.

    Raises:
        KafkaUnavailable: the brokers cannot be reached.
    """
    wanted = plan(settings, partitions=partitions, app_id=app_id, group=group, config=config)
    async with running(admin(settings), settings) as client:
        found = await _found(client, [each.name for each in wanted])
        brokers = len((await client.describe_cluster())["brokers"])
    return compare(wanted, found, copies(replication, brokers))


async def message_limits(settings: KafkaSettings, names: Collection[str]) -> dict[str, int]:
    """Say how many bytes topics take at once (`max.message.bytes`); those that are not there are left out.

    Raises:
        KafkaUnavailable: the brokers cannot be reached.
        KafkaError: a configuration may not be read.
    """
    async with running(admin(settings), settings) as client:
        found = await _found(client, names)
    return {name: int(each.config["max.message.bytes"]) for name, each in found.items()}


def compare(wanted: Iterable[Plan], found: Mapping[str, Found], replication: int) -> Difference:
    """Compare topics as they should be with those that there are.

    Args:
        wanted: as they should be.
        found: by name, with their configuration.
        replication: how many copies each partition should have.
    """
    missing, different = [], []
    for each in wanted:
        is_ = found.get(each.name)
        if is_ is None:
            missing.append(each.name)
            continue
        for setting, number, there in (
            (PARTITIONS, each.partitions, is_.partitions),
            (REPLICATION, replication, is_.replication),
        ):
            if number != there:
                different.append(Different(each.name, setting, str(number), str(there)))
        should = configured(each, replication)
        different += [
            Different(each.name, setting, value, is_.config.get(setting, "not known to the brokers"))
            for setting, value in should.items()
            if _parts(is_.config.get(setting, "")) != _parts(value)
        ]
        different += [
            Different(each.name, setting, None, is_.config[setting]) for setting in sorted(is_.chosen - should.keys())
        ]
    return Difference(missing, different)


def _parts(value: str) -> set[str]:
    """Give what a list is made of, since brokers may list in another order."""
    return set(value.split(","))


async def _found(client: AIOKafkaAdminClient, names: Collection[str]) -> dict[str, Found]:
    found = await describe(client, names)
    if not found:
        return {}
    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in found]
    for response in await client.describe_configs(resources):
        for code, message, _, name, entries in response.resources:
            if code:
                raise KafkaError(f"the configuration of {name} cannot be read: {message or for_code(code).__name__}")
            config = {entry[0]: entry[1] for entry in entries if entry[1] is not None}
            chosen = frozenset(entry[0] for entry in entries if entry[3] == SET_FOR_TOPIC)
            found[name] = replace(found[name], config=config, chosen=chosen)
    return found
