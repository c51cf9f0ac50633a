"""How a request is sent on a connection that was cut a moment ago, where aiokafka 0.14 knows of one way to fail only.

A closed transport of asyncio's own loop takes a write and drops it; one of uvloop raises RuntimeError, of which nobody
in aiokafka thinks: whatever asked the brokers something ended, and the process with it. Here that is a lost connection
like any other, and is made anew. It must not decide what is sent again.

Importing this module puts its class in place of aiokafka's, for every client of the process, Faust's included.
"""

from __future__ import annotations

from typing import Any

from aiokafka import conn
from aiokafka.conn import AIOKafkaConnection, CloseReason
from aiokafka.errors import KafkaConnectionError


class Connection(AIOKafkaConnection):  # type: ignore[misc]  # published without types
    """A connection to a broker."""

    def send(self, request: Any, expect_response: bool = True) -> Any:  # noqa: FBT001, FBT002 - aiokafka's signature
        """Send a request, and give what waits for the answer.

        Raises:
            KafkaConnectionError: the connection is gone.
        """
        try:
            return super().send(request, expect_response)
        except RuntimeError as problem:
            self.close(reason=CloseReason.CONNECTION_BROKEN)
            raise KafkaConnectionError(f"Connection at {self.host}:{self.port} broken: {problem}") from problem


conn.AIOKafkaConnection = Connection
