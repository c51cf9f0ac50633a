"""Fleets of one worker each that a test breaks and mends, with what a runbook says to look at. It expects nothing."""

from __future__ import annotations

import asyncio
import json
import re
import urllib.error
import urllib.request
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner

from streams.cli import traction
from streams.kafka import KafkaSettings
from streams.topics import create_topics
from tests.deploy.monitoring import free_port
from tests.kit import Wire
from tests.processes import TRACTION, TractionProcess
from tests.waiting import until

if TYPE_CHECKING:
    from tests.deploy.monitoring import Webhook

RUNBOOKS = Path(__file__).resolve().parents[2] / "docs" / "runbooks.md"

STALL_SECONDS = 5.0
"""The workers' stall limit, so that a hung one is told of in seconds."""

WAIT_SECONDS = 60.0


class Fleet:
    """One worker and its topics.

    Args:
        name: label of the fleet.
        bootstrap: where the worker finds the brokers.
        folder: where its settings file goes.
        settings: further settings of the worker.
    """

    def __init__(self, name: str, bootstrap: str, folder: Path, **settings: str | float) -> None:
        app_id = f"t{uuid.uuid4().hex[:12]}"
        self.name = name
        self.wire = Wire(KafkaSettings(bootstrap=bootstrap, prefix=f"{app_id}."), app_id, 1)
        self.address = f"127.0.0.1:{free_port()}"
        tables: dict[str, dict[str, str | float]] = {
            "traction": {"bootstrap": bootstrap, "prefix": self.wire.settings.prefix, "log_level": "warning"},
            "worker": {"instance_id": name, "port": int(self.address.rpartition(":")[2]), **settings}
            | {"stall_seconds": STALL_SECONDS},
        }
        self._config = folder / f"{name}.toml"
        self._config.write_text(
            "".join(
                f"[{table}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())
                for table, values in tables.items()
            )
        )
        self.worker: TractionProcess | None = None

    async def topics(self) -> None:
        """Make the topics."""
        await create_topics(self.wire.settings, partitions=1, replication=1, app_id=self.wire.app_id)

    def start(self) -> TractionProcess:
        """Start the worker, in the place of the one before; it keeps its name in the group, and its address."""
        command = (TRACTION, "--config", str(self._config), "worker", "--app-id", self.wire.app_id)
        self.worker = TractionProcess(*command)
        return self.worker

    def kill(self) -> None:
        """End the worker, if there is one."""
        if self.worker is not None:
            self.worker.kill()

    async def told(self, webhook: Webhook, alert: str, status: str = "firing") -> tuple[str, dict[str, Any]]:
        """Wait until the webhook is told of an alert of this fleet, and give the path and the alert."""

        async def told() -> bool:
            return bool(webhook.of(alert, status, self.name))

        await until(told, WAIT_SECONDS)
        return webhook.of(alert, status, self.name)[-1]

    async def look(self, alert: dict[str, Any]) -> str:
        """Do what the commands of an alert's runbook say, and give all that they print, errors too."""
        said = []
        for line in _commands(alert):
            if line.startswith("curl "):
                said.append(await asyncio.to_thread(self._page, line.rpartition("/")[2]))
            else:
                said.append(await asyncio.to_thread(self._run, line))
        return "\n".join(said)

    def _page(self, name: str) -> str:
        try:
            with urllib.request.urlopen(f"http://{self.address}/{name}", timeout=2) as answer:
                text: str = answer.read().decode()
        except urllib.error.HTTPError as problem:
            text = problem.read().decode()
        except OSError as problem:
            text = f"{self.address} does not answer: {problem}"
        return text

    def _run(self, line: str) -> str:
        ran = CliRunner().invoke(traction, ["--config", str(self._config), *line.split()[1:]])
        return f"{line}: exit {ran.exit_code}\n{ran.output}"


def _commands(alert: dict[str, Any]) -> list[str]:
    """Give the lines of the commands of the section that an alert's link leads to."""
    section = alert["annotations"]["runbook_url"].rpartition("#")[2]
    flags = re.MULTILINE | re.DOTALL | re.IGNORECASE
    found = re.search(rf"^```sh {section}-commands\n(.*?)^```", RUNBOOKS.read_text("utf-8"), flags)
    assert found is not None, section
    return found[1].splitlines()
