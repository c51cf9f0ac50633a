"""Keeps the sinks of the policy running side by side, and changes them when the policy is read anew.

What is unchanged goes on undisturbed. No error of a sink, nor of Kafka, comes out of here.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from streams.sinks.alertmanager import Alertmanager
from streams.sinks.delivery import Timing
from streams.sinks.file import File, Stdout
from streams.sinks.github import GitHub
from streams.sinks.pagerduty import PagerDuty
from streams.sinks.runner import Runner
from streams.sinks.settings import (
    AlertmanagerSettings,
    FileSettings,
    GitHubSettings,
    PagerDutySettings,
    SlackSettings,
    StdoutSettings,
    WebhookSettings,
)
from streams.sinks.slack import Slack
from streams.sinks.webhook import Webhook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from streams.kafka import KafkaSettings
    from streams.sinks.base import AnySink
    from streams.sinks.metrics import SinkMetrics
    from streams.sinks.settings import AnySettings, SinkSettings

logger = logging.getLogger(__name__)

STOP_SECONDS = 3.0
"""How long a try under way may take when its sink is stopped; a longer one is broken off, and made again by whoever
reads the notification next. Below what the process has for its own end."""

SESSION_TIMEOUT_MS = 30_000

_KINDS: dict[type[SinkSettings], Callable[[Any, str], AnySink]] = {
    WebhookSettings: Webhook,
    SlackSettings: Slack,
    PagerDutySettings: PagerDuty,
    GitHubSettings: GitHub,
    AlertmanagerSettings: Alertmanager,
    FileSettings: File,
    StdoutSettings: Stdout,
}


def make(settings: AnySettings, where: str) -> AnySink:
    """Make a sink, its secrets read.

    Args:
        settings: its settings.
        where: the file, for messages.

    Raises:
        InvalidSinks: a secret is missing, or not what it should be.
    """
    return _KINDS[type(settings)](settings, f"{where}: [sinks.{settings.name}]")


class Sinks:
    """The sinks of one process.

    Args:
        kafka: where and how to connect.
        group: begins the names of the sinks' consumer groups.
        metrics: takes what is measured.
        timing: where time and chance come from.
        session_timeout_ms: without a heartbeat for that long, a process loses its partitions.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        group: str,
        metrics: SinkMetrics,
        *,
        timing: Timing | None = None,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
    ) -> None:
        self._kafka = kafka
        self._group = group
        self._metrics = metrics
        self._timing = timing or Timing()
        self._session_timeout_ms = session_timeout_ms
        self._wanted: dict[str, AnySink] = {}
        self._running: dict[str, tuple[Runner, asyncio.Task[None]]] = {}
        self._changed = asyncio.Event()

    def replace(self, settings: Iterable[AnySettings], where: str = "policy") -> None:
        """Have these sinks and no others, from now on; secrets are read anew, and what was gone is tried again.

        Args:
            settings: of all sinks.
            where: the file, for messages.

        Raises:
            InvalidSinks: a secret is missing or wrong; then everything stays as it is.
        """
        wanted = {each.name: make(each, where) for each in settings}
        for name, sink in wanted.items():
            runner = self._running[name][0] if name in self._running else None
            if runner is not None and runner.sink.same(sink):
                wanted[name] = runner.sink
                runner.enable()
        self._wanted = wanted
        self._changed.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Run them until told to stop; raises nothing but when it is cancelled.

        Args:
            stop: when set, tries under way have a moment to finish.
        """
        stopping = asyncio.create_task(stop.wait(), name="stop of the sinks")
        try:
            while not stop.is_set():
                self._changed.clear()
                await self._settle()
                changed = asyncio.create_task(self._changed.wait())
                await asyncio.wait({stopping, changed}, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
        finally:
            stopping.cancel()
            await self._end(list(self._running))

    async def _settle(self) -> None:
        """Stop what is no longer wanted, then start what is."""
        wanted = self._wanted
        await self._end([name for name, (runner, _) in self._running.items() if runner.sink is not wanted.get(name)])
        for name, sink in wanted.items():
            if name in self._running:
                continue
            self._metrics.add(name)
            runner = Runner(
                sink,
                self._kafka,
                group=f"{self._group}-sink-{name}",
                metrics=self._metrics,
                timing=self._timing,
                session_timeout_ms=self._session_timeout_ms,
            )
            self._running[name] = runner, asyncio.create_task(runner.run(), name=f"sink {name}")
            logger.info("sink %s: started", name)

    async def _end(self, names: list[str]) -> None:
        tasks = {self._running[name][1] for name in names}
        for name in names:
            self._running[name][0].stop()
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=STOP_SECONDS)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)
        for name in names:
            del self._running[name]
            if name not in self._wanted:
                self._metrics.forget(name)
