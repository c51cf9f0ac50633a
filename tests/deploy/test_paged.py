"""A looping session, and events that nobody can read, are paged: by real processes, Prometheus and Alertmanager."""

from __future__ import annotations

import json
import urllib.request
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from schemas import topics
from tests.deploy.monitoring import Alertmanager, Prometheus, Webhook, get, patient
from tests.kit import spinning

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.deploy.conftest import Monitored

pytestmark = [pytest.mark.tools, pytest.mark.timeout(300)]

SESSIONS = 25
"""More than the alert on many loops at once wants."""

POISON = 30
"""More dead letters than the alert on them wants."""


@pytest.fixture(scope="module")
def told() -> Iterator[Webhook]:
    """Give a webhook."""
    with Webhook() as webhook:
        yield webhook


@pytest.fixture(scope="module")
def manager(told: Webhook, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alertmanager]:
    """Run an Alertmanager that tells it."""
    with Alertmanager(tmp_path_factory.mktemp("alertmanager"), told.url) as alertmanager:
        yield alertmanager


@pytest.fixture(scope="module")
def prometheus(
    monitored: Monitored, manager: Alertmanager, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    """Run a Prometheus that scrapes the processes and tells Alertmanager what fires."""
    jobs = [
        job["labels"] for job in get(f"{monitored.prometheus.url}/api/v1/targets?state=active")["data"]["activeTargets"]
    ]
    targets = {labels["job"]: [labels["instance"]] for labels in jobs}
    folder: Path = tmp_path_factory.mktemp("prometheus")
    with Prometheus(folder, targets, alertmanager=f"127.0.0.1:{manager.port}") as started:
        patient(lambda: len(started.query("traction_ready == 1")) == len(targets), "all were scraped")
        yield started


async def test_looping_sessions_are_paged(monitored: Monitored, prometheus: Prometheus, told: Webhook) -> None:
    """Sessions that begin to loop at once arrive at the webhook of pages, with the number and the runbook."""
    patient(lambda: prometheus.query("fleet:traction_loops:increase15m"), "rules are evaluated")
    await monitored.wire.send([call for number in range(SESSIONS) for call in spinning(f"paged-{number}", 1)])

    (path, alert), *_ = patient(lambda: told.of("TractionManyLoops"), "the webhook is told")

    assert path == "/pages"
    assert alert["labels"]["severity"] == "page"
    assert alert["annotations"]["runbook_url"].endswith("docs/runbooks.md#tractionmanyloops")
    assert "loops were warned about" in alert["annotations"]["description"]


async def test_poison_is_paged(monitored: Monitored, prometheus: Prometheus, told: Webhook) -> None:
    """Events that cannot be read arrive at the webhook of pages, and are seen to be over when no more come."""
    assert "TractionDeadLetters" not in prometheus.firing()
    for _ in range(POISON):
        await monitored.wire.raw(topics.TOOL_CALLS, b"{")

    (path, alert), *_ = patient(lambda: told.of("TractionDeadLetters"), "the webhook is told")

    assert path == "/pages"
    assert "% of events become dead letters" in alert["annotations"]["description"]
    patient(lambda: told.of("TractionDeadLetters", "resolved"), "the webhook is told that it is over")


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(("TractionBrokersAway", "TractionGatewayUnacknowledged", "TractionDeletedUnread"), id="away"),
        pytest.param(("TractionBrokersWereAway", "TractionTransactionsFailing", "TractionHanging"), id="back"),
    ],
)
def test_brokers_that_are_away_silence_what_follows(
    manager: Alertmanager, told: Webhook, names: tuple[str, ...]
) -> None:
    """While the brokers are away, and a while after, nobody is paged for what follows; another alert is told."""
    ends = (datetime.now(UTC) + timedelta(minutes=5)).isoformat()
    fleet = names[0]
    alerts = [
        {
            "labels": {"alertname": name, "severity": "none" if "Were" in name else "page", "fleet": fleet},
            "endsAt": ends,
        }
        for name in names
    ]
    request = urllib.request.Request(  # noqa: S310 - our own
        f"{manager.url}/api/v2/alerts", json.dumps(alerts).encode(), {"Content-Type": "application/json"}
    )
    urllib.request.urlopen(request, timeout=10).close()  # noqa: S310 - our own

    def states() -> dict[str, str]:
        found = get(f"{manager.url}/api/v2/alerts")
        return {
            each["labels"]["alertname"]: each["status"]["state"]
            for each in found
            if each["labels"].get("fleet") == fleet
        }

    def of_names() -> bool:
        return [states().get(name) for name in names] == ["active", "suppressed", "active"]

    patient(of_names, "what follows is silent")
    patient(lambda: told.of(names[2], fleet=fleet), "the other is told")
    assert not told.of("TractionBrokersWereAway", fleet=fleet)
