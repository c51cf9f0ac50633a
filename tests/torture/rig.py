"""One run: processes, load and faults on a cluster, then quiet, and what came of it against the oracle.

In three parts: the load, with faults all the time; then answers to a part of what was asked, words to forget some of
what went on before, and more load; then the policy is changed so that what nobody answered is due. In each of the
later parts processes are killed in flight.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import signal
import time
import urllib.request
import uuid
from collections import Counter
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families

from detectors import limits_from
from schemas import topics
from schemas.outputs import Alert
from streams import config
from streams.kafka import KafkaSettings
from streams.policy.load import read_policy
from streams.topics import create_topics
from tests.torture import ladders, oracle
from tests.torture.faults import Faults
from tests.torture.figures import Figures
from tests.torture.fleet import Fleet
from tests.torture.forgetting import Forgetter
from tests.torture.later import answers, due, mixed, read
from tests.torture.ledger import Ledger, Place
from tests.torture.load import Load
from tests.torture.publisher import Publisher
from tests.torture.stories import LIMITS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from detectors import Limits
    from streams.policy.model import Ladder
    from tests.cluster import Cluster
    from tests.torture.fleet import Kind

logger = logging.getLogger(__name__)

PARTITIONS = 4

POLICY = """
[ladder]
order = ["inject_guidance", "rotate_strategy", "force_implementation", "escalate_human", "abandon", "terminate"]
answer_seconds = {seconds}
answer_attempts = 2
"""

LONG_SECONDS, SHORT_SECONDS = 604_800, 2
"""How long an answer is waited for: at first without an end, at last briefly."""

SETTLE_SECONDS = 120.0

FORGOTTEN_TASKS = 60
"""Tasks of which something is forgotten; some hundred words, while processes are killed."""

MORE_SESSIONS = 60
"""Sessions that work meanwhile, besides those with which they begin."""

HIT_SECONDS = 10.0
"""In which a process comes to its next transaction while there is work; else the next one is hit."""

NEVER = frozenset(("traction_applied_twice_total", "traction_deleted_unread_records_total"))
"""Metrics that stay at zero."""


@dataclass(frozen=True)
class Run:
    """What a run is like.

    Attributes:
        seed: gives the load and the faults.
        seconds: how long the load lasts at least; it goes on until each fault did bite once.
        rate: records a second.
        most: seconds after which the load ends in any case.
    """

    seed: int
    seconds: float
    rate: float
    most: float


@dataclass
class Rig:
    """What a run works with.

    Attributes:
        cluster: the brokers.
        place: where the topics are.
        files: a directory for settings, policy and states.
        limits: what detectors go by.
    """

    cluster: Cluster
    place: Place
    files: Path
    limits: Limits

    def set_policy(self, seconds: int) -> Ladder:
        """Write the policy, with how long an answer is waited for, and give its ladder."""
        path = self.files / "policy.toml"
        whole = path.with_suffix(".new")
        whole.write_text(POLICY.format(seconds=seconds))
        whole.replace(path)
        return read_policy(path, self.limits).ladder(None, None)


async def prepare(cluster: Cluster, files: Path) -> Rig:
    """Make topics of a run's own, and its files."""
    name = f"t{uuid.uuid4().hex[:8]}"
    kafka = KafkaSettings(bootstrap=cluster.bootstrap, prefix=f"{name}.")
    await create_topics(kafka, partitions=PARTITIONS, app_id=name)
    settings = files / "settings.toml"
    settings.write_text(LIMITS)
    layers = config.load(settings, ()).layers
    return Rig(cluster, Place(kafka, cluster.proxied_bootstrap, name, PARTITIONS), files, limits_from(layers))


@contextlib.asynccontextmanager
async def running(fleet: Fleet) -> AsyncIterator[Fleet]:
    """Keep a fleet running, and let none of it outlive the context."""
    supervising = asyncio.create_task(fleet.supervise())
    try:
        yield fleet
    finally:
        supervising.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await supervising
        fleet.kill()


async def torture(cluster: Cluster, files: Path, run: Run) -> Figures:
    """Do one run.

    Args:
        cluster: the brokers.
        files: an empty directory.
        run: what it is like.
    """
    began, figures = time.monotonic(), Figures(run.seed)
    rig = await prepare(cluster, files)
    chance = random.Random(run.seed)  # noqa: S311 - no secret
    first = rig.set_policy(LONG_SECONDS)
    fleet = Fleet(rig.place, files)
    states = map(str, count())

    def flags() -> tuple[str, ...]:
        """Give one worker in two its state on disk, with a standby."""
        number = next(states)
        if int(number) % 2:
            return ()
        return ("--state-store", "rocksdb", "--state-dir", str(files / number), "--standby-replicas", "1")

    async with Ledger(rig.place) as ledger, running(fleet):
        await _begin(fleet, flags)
        load, publisher = Load(run.seed, PARTITIONS), Publisher(rig.place.kafka)
        faults = Faults(fleet, cluster, chance, flags)
        lanes = asyncio.create_task(faults.run())
        until, end = time.monotonic() + run.seconds, time.monotonic() + run.most

        def over() -> bool:
            now = time.monotonic()
            return now > end or lanes.done() or (now > until and not faults.left)

        try:
            await publisher.send(load.items(over), run.rate)
            faults.ending = True
            logger.info("the load is over, %s left", faults.left or "nothing is")
            await lanes
        finally:
            lanes.cancel()
        await faults.in_sync()
        await ledger.settle(SETTLE_SECONDS)
        logger.info("answers, and what is to be forgotten")
        forgetter = Forgetter(ledger, dict(load.works), chance)
        said = list(forgetter.words(FORGOTTEN_TASKS))
        begun = count()
        more = load.items(lambda: next(begun) >= MORE_SESSIONS)
        said += [more, answers(ledger, forgetter.sessions)]
        await asyncio.gather(
            publisher.send(mixed(said, chance), run.rate), _hit(fleet, chance, "worker", "escalation", "worker")
        )
        await ledger.settle(SETTLE_SECONDS)
        logger.info("what is due")
        await _hit(fleet, chance, "escalation")
        last = rig.set_policy(SHORT_SECONDS)
        await ledger.settle(SETTLE_SECONDS, lambda: next(iter(due(ledger, forgetter)), ""))
        figures.failures = [text async for text in _told_twice(fleet)]
        await fleet.end()
    logger.info("comparing")
    figures.failures += [*fleet.failures, *(f"did not bite: {name}" for name in faults.left)]
    figures.differences = [*oracle.differences(ledger, rig.limits), *ladders.differences(ledger, first, last)]
    _count(figures, ledger, fleet, faults)
    figures.forgotten = dict(Counter(each.kind for each in forgetter.asked))
    figures.unknown, figures.sessions = publisher.unknown, sum(load.made.values())
    figures.seconds = time.monotonic() - began
    return figures


async def _begin(fleet: Fleet, flags: Callable[[], tuple[str, ...]]) -> None:
    """Start three workers and two escalation consumers, and wait until they share the partitions."""
    for _ in range(3):
        fleet.add("worker", *flags())
    for _ in range(2):
        fleet.add("escalation")
    assert all([await fleet.shared(kind) for kind in ("worker", "escalation")]), _logs(fleet)


async def _hit(fleet: Fleet, chance: random.Random, *kinds: Kind) -> None:
    """Have one process of each kind killed in the middle of its next transaction, one after the other."""
    for kind in kinds:
        process = (await fleet.pick(kind, chance)).process
        process.send(signal.SIGUSR1)
        deadline = time.monotonic() + HIT_SECONDS
        while process.popen.poll() is None and time.monotonic() < deadline:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.1)


async def _told_twice(fleet: Fleet) -> AsyncIterator[str]:
    """Say which workers passed over what they should not have met again, or lost what was deleted."""
    for member in fleet.of("worker"):
        if member.ready:
            address = member.process.lines[-1].rpartition(" ")[2]
            page = await asyncio.to_thread(_page, f"{address}/metrics")
            for family in text_string_to_metric_families(page):
                for sample in family.samples:
                    if sample.name in NEVER and sample.value:
                        yield f"{sample.name} is {sample.value}"


def _page(url: str) -> str:
    text: str = urllib.request.urlopen(url).read().decode()  # noqa: S310 - our own
    return text


def _logs(fleet: Fleet) -> str:
    return "\n".join(f"{member.kind}: {member.process.lines} {member.process.log}" for member in fleet.members)


def _count(figures: Figures, ledger: Ledger, fleet: Fleet, faults: Faults) -> None:
    place = ledger.place
    figures.events = sum(ledger.counts[name] for name in place.inputs)
    figures.tasks = len({record.key for record in ledger.records[place.task_events]})
    figures.faults, figures.rebalances = dict(faults.bitten), dict(faults.rebalances)
    figures.processes = fleet.starts
    figures.fenced = {str(kind): number for kind, number in fleet.fenced.items()}
    figures.ends = {f"{kind} {code}": number for (kind, code), number in fleet.ends.items()}
    short = {name: name.removeprefix(place.kafka.prefix).removeprefix(f"{place.app_id}-") for name in ledger.counts}
    figures.rolled_back = {short.get(name, name): number for name, number in ledger.rolled_back.items()}
    alerts = [alert for alert in read(ledger, topics.ALERTS) if isinstance(alert, Alert)]
    figures.alerts = dict(Counter(alert.detector for alert in alerts))
    figures.levels = dict(Counter(alert.level for alert in alerts))
    figures.dead_letters = dict(Counter(map(oracle.reason, ledger.records[place.kafka.topic(topics.DEAD_LETTERS)])))
    figures.directives = ledger.counts[place.kafka.topic(topics.DIRECTIVES)]
    figures.terminations = ledger.counts[place.kafka.topic(topics.TERMINATIONS)]
    figures.notifications = ledger.counts[place.kafka.topic(topics.NOTIFICATIONS)]
