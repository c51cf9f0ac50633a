"""Sets the stage, lets the story run and clears up: broker, topics, worker, escalation consumer.

Whatever happens, an interruption or the failure of a part, no process is left behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import sys
from typing import TYPE_CHECKING

from streams.demo.cast import load
from streams.demo.processes import Process, start
from streams.demo.story import Story
from streams.kafka import KafkaSettings
from streams.kafka_broker import KafkaBroker
from streams.topics import create_topics

if TYPE_CHECKING:
    from streams.demo.screen import Screen

PARTITIONS = 4


class Ended(BaseException):
    """SIGTERM or SIGHUP came: unwinds like Ctrl-C, so that everything is stopped on the way out."""


def perform(screen: Screen, *, speed: float) -> bool:
    """Give the demo, from the broker's start to its end.

    Args:
        screen: where the audience looks.
        speed: how many times faster than usual the sessions are played.

    Returns:
        Whether everything happened as expected.

    Raises:
        BrokerError: the broker cannot be started.
        ProcessFailed: a process did not start or did not last.
        KafkaUnavailable: the broker stopped answering.
        Ended: SIGTERM or SIGHUP came.
    """
    for number in (signal.SIGTERM, *((signal.SIGHUP,) if sys.platform != "win32" else ())):
        signal.signal(number, _end)
    screen.say(
        "Traction at work: recorded agent sessions, played through Kafka, the worker and the escalation consumer."
    )
    screen.say()
    with KafkaBroker(tell=lambda text: screen.step("broker", text)) as broker:
        screen.step("broker", f"Apache Kafka listens on {broker.bootstrap}")
        return asyncio.run(_on_stage(screen, broker.bootstrap, speed))


def _end(number: int, frame: object) -> None:
    del number, frame
    raise Ended


def _cancelled_by_signals() -> asyncio.Event:
    """Have the running task cancelled by SIGTERM and SIGHUP; give what tells that this was why."""
    ended = asyncio.Event()
    task = asyncio.current_task()

    def end() -> None:
        ended.set()
        if task is not None:
            task.cancel()

    if sys.platform != "win32":
        for number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, end)
    return ended


async def _on_stage(screen: Screen, bootstrap: str, speed: float) -> bool:
    kafka = KafkaSettings(bootstrap=bootstrap)
    parts = load()
    ended = _cancelled_by_signals()
    try:
        created = await create_topics(kafka, partitions=PARTITIONS)
        screen.step("topics", f"{len(created)} created, {PARTITIONS} partitions each for what is kept by session")
        async with (
            start("worker", "worker", "--bootstrap", bootstrap, "--port", "0") as worker,
            start("escalation", "escalate", "--bootstrap", bootstrap, "--port", "0") as escalation,
        ):
            for process in (worker, escalation):
                await process.until_ready()
                screen.step(process.name, re.sub(r"^\w+ ", "", process.ready))
            screen.cast(parts)
            story = Story(kafka, parts, screen, speed=speed)
            await _while_they_last(story, [worker, escalation])
    except asyncio.CancelledError:
        if ended.is_set():
            raise Ended from None
        raise
    screen.table(parts, story.account)
    return all(story.account.as_expected(part.role) for part in parts)


async def _while_they_last(story: Story, processes: list[Process]) -> None:
    """Let the story run; the end of a process ends it."""
    tasks = [asyncio.create_task(story.run()), *(asyncio.create_task(process.lasts()) for process in processes)]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in reversed(tasks):  # a process's end first: it explains what the story says of Kafka
            if task in done:
                task.result()
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task
