"""What clients make of a connection that was cut a moment ago."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
import uvloop
from aiokafka.conn import create_conn
from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.metadata import MetadataRequest

import streams.connections  # noqa: F401 - it puts its class in aiokafka's place
from tests.waiting import SOON_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

TURNS = 5
"""Turns of the loop within which everybody has heard of the cut."""


@pytest.mark.parametrize("factory", [uvloop.new_event_loop, asyncio.new_event_loop])
def test_a_request_on_a_connection_that_was_just_cut_is_a_lost_connection(
    bootstrap: str, factory: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    """Whichever loop runs: never a RuntimeError, which would end the process."""
    host, _, port = bootstrap.rpartition(":")

    async def ask(turns: int) -> None:
        connection = await create_conn(host, int(port))
        connection._writer.transport.abort()
        for _ in range(turns):
            await asyncio.sleep(0)
        async with asyncio.timeout(SOON_SECONDS):
            with pytest.raises(KafkaConnectionError):
                await connection.send(MetadataRequest([]))

    with asyncio.Runner(loop_factory=factory) as runner:
        for turns in range(TURNS):
            runner.run(ask(turns))
