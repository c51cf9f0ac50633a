"""What `deploy/compose.yaml` says, with this machine in the place of the containers: addresses, mounts, secrets."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tests.cluster import HOST, Cluster, Security
from tests.processes import TRACTION, TractionProcess

if TYPE_CHECKING:
    from tests.cluster import Node

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"

NO_SETTINGS = {"KAFKA_OPTS"}
"""Variables that the image of Apache Kafka does not make settings of: what it gives to Java."""


def compose() -> dict[str, Any]:
    """Give the file, its anchors resolved."""
    read: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    return read


def ours() -> dict[str, dict[str, Any]]:
    """Give the services that run Traction."""
    return {name: each for name, each in compose()["services"].items() if each["image"].startswith("traction:")}


def settings(environment: dict[str, str]) -> dict[str, str]:
    """Make Kafka's settings of variables, as the image's pages say: `_` is a dot, `__` is `_`, `___` is `-`."""
    written = {"": "", "_": ".", "__": "_", "___": "-"}
    return {
        re.sub("_+", lambda found: written[found[0]], name.removeprefix("KAFKA_").lower()): value
        for name, value in environment.items()
        if name.startswith("KAFKA_") and name not in NO_SETTINGS
    }


class Composed(Cluster):
    """The broker of the file, on ports and in a directory of this machine.

    Args:
        passwords: where they are.
    """

    def __init__(self, passwords: Path) -> None:
        environment = compose()["services"]["kafka"]["environment"]
        self._environment: dict[str, str] = environment
        java = environment["KAFKA_OPTS"].replace("/run/secrets", str(passwords))
        super().__init__(1, security=Security(java=(java,)))

    def _properties(self, node: Node) -> dict[str, str]:
        ports = {"9092": node.clients, "9093": node.controller, "9094": node.proxied, "9095": node.inside}
        found = settings(self._environment)
        for name in ("listeners", "advertised.listeners", "controller.quorum.voters"):
            placed = re.sub(r"(?<=[/@])(?:kafka|localhost)?(?=:\d)", HOST, found[name])
            found[name] = re.sub(r"(?<=:)\d{4}", lambda port: str(ports[port[0]]), placed)
        # The cleaner's buffer is larger than the heap of a test's broker.
        return found | {
            "log.dirs": node.directory.partitions.as_posix(),
            "log.cleaner.dedupe.buffer.size": str(16 << 20),
        }


def environment(service: dict[str, Any], passwords: Path, bootstrap: str) -> dict[str, str]:
    """Give a service's variables as a process on this machine needs them."""
    found = {}
    for name, value in service["environment"].items():
        there = value.replace("/run/secrets", str(passwords)).replace("/etc/traction", str(DEPLOY))
        found[name] = there.replace("kafka:9092", bootstrap)
    return found


def once(service: dict[str, Any], passwords: Path, bootstrap: str, *more: str) -> subprocess.CompletedProcess[str]:
    """Run a service's command to its end.

    Args:
        service: as in the file.
        passwords: where they are.
        bootstrap: the broker.
        more: the command to run in its place.
    """
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TRACTION_")}
    return subprocess.run(
        [TRACTION, *(more or service["command"])],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env=clean | environment(service, passwords, bootstrap),
    )


def start(service: dict[str, Any], passwords: Path, bootstrap: str) -> TractionProcess:
    """Start a service's command, with its pages on a free port."""
    variables = (f"{name}={value}" for name, value in environment(service, passwords, bootstrap).items())
    return TractionProcess("env", *variables, TRACTION, *service["command"], "--port", "0")
