"""The broker that tests talk to, and topic names of their own on it. Nothing here stands in for Kafka."""

from __future__ import annotations

import gc
import os
import signal
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from streams.kafka_broker import KafkaBroker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _pytest.terminal import TerminalReporter


HERE = Path(__file__).parent

FIGURES = "figures"
"""Name of the property with which a test has figures shown at the end of a run; see `record_property`."""

PURE = (
    *(HERE / name for name in ("detectors", "fuzz", "recordings", "schemas")),
    *(HERE / "streams" / name for name in ("importers", "inspection", "training", "sinks/test_injection.py")),
    *HERE.glob("streams/escalation/test_ladder_*.py"),
    *(HERE / f"bench/test_{name}.py" for name in ("growth", "micro", "skew", "texts")),
    *(HERE / f"streams/worker/test_{name}.py" for name in ("apply", "engine", "keeping", "live", "records", "states")),
    *(HERE / f"streams/worker/test_{name}.py" for name in ("partition", "sweep", "sweep_order", "tasks")),
)
"""Folders and files of tests that start no process of ours and need no broker: they may run beside the others."""

APART = tuple(HERE / name for name in ("bench", "doors", "streams/test_broker.py", "streams/test_demo.py", "torture"))
"""Likewise of tests that wait most of their time for brokers of their own: they run beside those that do not."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests that start processes in two rows, so that few of these wait for each other's processor time."""
    for item in items:
        if any(item.path.is_relative_to(folder) for folder in PURE):
            continue
        apart = any(item.path.is_relative_to(folder) for folder in APART)
        item.add_marker(pytest.mark.xdist_group("brokers" if apart else "processes"))


def pytest_configure() -> None:
    """Let what tests start be interrupted, also where the test run was itself started with Ctrl-C ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Show what tests recorded as the property `FIGURES`; what processes of xdist print is lost."""
    for report in (each for kind in ("passed", "failed") for each in terminalreporter.getreports(kind)):
        told = [str(value) for name, value in report.user_properties if name == FIGURES and report.when == "call"]
        if told:
            terminalreporter.write_sep("=", f"figures of {report.nodeid}")
            terminalreporter.write_line("\n".join(told))


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    """Give a broker's address: the one that TRACTION_TEST_KAFKA names, else one that runs for this test run only."""
    named = os.environ.get("TRACTION_TEST_KAFKA")
    if named:
        yield named
    else:
        with KafkaBroker() as broker:
            yield broker.bootstrap


@pytest.fixture
def prefix() -> str:
    """Give a topic prefix that nobody else has, so that tests share the broker and nothing on it."""
    return f"t{uuid.uuid4().hex[:12]}."


@pytest.fixture
def collector() -> Iterator[None]:
    """Have the garbage collector afterwards as it was before."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()
