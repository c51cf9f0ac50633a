"""One cluster for all tests in here: three brokers, each with a proxy before it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from tests.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Keep the rig's own clients from telling each time that a broker is away."""
    logger = logging.getLogger("aiokafka")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(before)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Give three brokers."""
    with Cluster(3, proxied=True) as cluster:
        yield cluster
