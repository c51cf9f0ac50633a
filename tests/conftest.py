"""The broker that tests talk to, and topic names of their own on it. Nothing here stands in for Kafka."""

from __future__ import annotations

import os
import signal
import uuid
from typing import TYPE_CHECKING

import pytest

from streams.kafka_broker import KafkaBroker

if TYPE_CHECKING:
    from collections.abc import Iterator


def pytest_configure() -> None:
    """Let what tests start be interrupted, also where the test run was itself started with Ctrl-C ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


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
