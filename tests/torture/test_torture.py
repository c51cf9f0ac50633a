"""Whatever dies, freezes or comes twice: what is written equals what one uninterrupted pass would have written.

The short form takes some two minutes. `make torture` is the long one; `TORTURE_MINUTES` says how long its load lasts,
`TORTURE_SEED` repeats a run's load and choice of faults.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from tests.torture.rig import Run, torture

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cluster import Cluster

MINUTES = float(os.environ.get("TORTURE_MINUTES", "1"))
SEED = int(os.environ.get("TORTURE_SEED", "1"))

EVENTS_PER_SECOND = 200.0

MOST_SECONDS = 120.0
"""How much longer the load may last until each fault did bite."""

REST_SECONDS = 600.0
"""For starting, settling and comparing, however slow the machine is."""


@pytest.mark.timeout(MINUTES * 80 + MOST_SECONDS + REST_SECONDS)
async def test_everything_is_written_once_whatever_dies(
    cluster: Cluster,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    record_property: Callable[[str, object], None],
) -> None:
    """Alerts, what is forwarded, states, ladders, directives, terminations and dead letters are the oracle's."""
    how = f"TORTURE_MINUTES={MINUTES:g} TORTURE_SEED={SEED} make torture; the logs of its processes are in {tmp_path}"
    record_property("figures", how)  # first of all: a run that fails has to be repeated
    with capsys.disabled():
        sys.stdout.write(f"\n{how}\n")
    run = Run(SEED, MINUTES * 60, EVENTS_PER_SECOND, MINUTES * 60 + MOST_SECONDS)
    figures = await torture(cluster, tmp_path, run)
    record_property("figures", f"{figures.table}\n{figures.line}")
    assert not figures.differences, "\n".join(figures.differences[:20])
    assert not figures.failures, "\n".join(figures.failures[:5])
    assert not list(figures.toothless), figures.table
