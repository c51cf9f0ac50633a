"""Every query of the dashboards, asked of a real Prometheus that has watched real processes, and drawn to pictures.

Grafana itself is not run: what is shown is that it would get answers. The pictures go where TRACTION_PICTURES names a
folder, and are to be looked at after a change.
"""

from __future__ import annotations

import os
import urllib.parse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.deploy.dashboards_kit import Asked, asked, boards, choices, filled
from tests.deploy.monitoring import get

if TYPE_CHECKING:
    from tests.deploy.conftest import Monitored

pytestmark = [pytest.mark.tools, pytest.mark.timeout(300)]

BOARDS = boards()

STEP_SECONDS = 1.0

QUIET = {
    ("Terminations, by reason", "B"): "repeated ones: each was answered",
    ("Answers", "B"): "all answered something",
    ("Partitions furthest behind now", "A"): "at the end nothing lags, on a fast machine",
    ("Certificates", "A"): "nothing is encrypted here",
    ("OpenTelemetry: passed over, lacking, refused", "A"): "no spans were sent",
    ("OpenTelemetry: passed over, lacking, refused", "B"): "no spans were sent",
    ("OpenTelemetry: passed over, lacking, refused", "C"): "no spans were sent",
}
"""Queries without an answer, by their panel's title and their letter, and why."""


def ask(monitored: Monitored, each: Asked) -> list[dict[str, Any]]:
    """Ask one query as Grafana would, of the time in which agents were played; fail when Prometheus refuses it."""
    span = monitored.ended - monitored.began
    expr = filled(each.expr, __rate_interval="10s", __range=f"{span + 5:.0f}s")
    times = {"start": f"{monitored.began:.3f}", "end": f"{monitored.ended:.3f}", "step": f"{STEP_SECONDS}"}
    kind, when = ("query", {"time": times["end"]}) if each.instant else ("query_range", times)
    answer = get(f"{monitored.prometheus.url}/api/v1/{kind}?{urllib.parse.urlencode({'query': expr} | when)}")
    result: list[dict[str, Any]] = answer["data"]["result"]
    return result


@pytest.mark.parametrize("name", BOARDS)
def test_dashboards_have_data(name: str, monitored: Monitored, tmp_path: Path) -> None:
    """Each query of a dashboard is answered, and with data but for what did not happen; the answers make a picture."""
    from tests.deploy.picture import draw  # noqa: PLC0415 - needs what only `make test-tools` installs

    board = BOARDS[name]
    answers: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for each in asked(board):
        answers.setdefault(each.title, {})[each.ref] = ask(monitored, each)
    folder = Path(os.environ.get("TRACTION_PICTURES") or tmp_path)
    draw(board, answers, folder / f"{board['uid']}.png")
    empty = {(each.title, each.ref) for each in asked(board) if not answers[each.title][each.ref]}
    assert empty <= QUIET.keys()
    assert (folder / f"{board['uid']}.png").stat().st_size > 100_000


@pytest.mark.parametrize("name", BOARDS)
def test_variables_have_values(name: str, monitored: Monitored) -> None:
    """Each variable of a dashboard has something to choose, but for labels that this Prometheus does not set."""
    for variable, (query, label) in choices(BOARDS[name]).items():
        match = urllib.parse.urlencode({"match[]": filled(query)})
        values = get(f"{monitored.prometheus.url}/api/v1/label/{label}/values?{match}")["data"]
        assert bool(values) == (variable not in {"fleet", "namespace"}), variable
