"""The broker that tests talk to, and topic names of their own on it. Nothing here stands in for Kafka."""

from __future__ import annotations

import gc
import os
import signal
import uuid
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from streams.kafka_broker import KafkaBroker
from tests.spread import Units, place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _pytest.terminal import TerminalReporter
    from xdist.remote import Producer


FIGURES = "figures"
"""Name of the property with which a test has figures shown at the end of a run; see `record_property`."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where tests are spread over processes, have the longest begin first."""
    if hasattr(config, "workerinput"):
        items.sort(key=place)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Units | None:
    """Spread whole units, in order, unless another way is asked for."""
    return Units(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_configure() -> None:
    """Let what tests start be interrupted, also where the test run was itself started with Ctrl-C ignored.

    No property is timed: machines are shared.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    settings.register_profile("untimed", settings(), deadline=None)
    settings.load_profile("untimed")


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Show what tests recorded as the property `FIGURES`; what processes of xdist print is lost."""
    for report in (each for kind in ("passed", "failed") for each in terminalreporter.getreports(kind)):
        told = [str(value) for name, value in report.user_properties if name == FIGURES and report.when == "call"]
        if told:
            terminalreporter.write_sep("=", f"figures of {report.nodeid}")
            terminalreporter.write_line("\n".join(told))


@pytest.fixture(scope="session")
def broker() -> Iterator[KafkaBroker]:
    """Give a broker that runs for this test run only; a test may freeze it, and has it go on afterwards."""
    with KafkaBroker() as running:
        yield running


@pytest.fixture(scope="session")
def bootstrap(request: pytest.FixtureRequest) -> str:
    """Give a broker's address: the one that TRACTION_TEST_KAFKA names, else that of `broker`."""
    return os.environ.get("TRACTION_TEST_KAFKA") or request.getfixturevalue("broker").bootstrap


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
