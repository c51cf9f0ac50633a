"""Addresses and ports: whether one can be had, which are free, and whether a broker answers there."""

from __future__ import annotations

import asyncio
import ipaddress
import random
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaError

from streams.kafka_broker.errors import BrokerError
from streams.kafka_broker.patience import eventually

if TYPE_CHECKING:
    from collections.abc import Collection

PICKED_PORTS = (20000, 29999)
"""Below the ports for outgoing connections of Linux (32768), macOS and Windows (49152)."""


class PortTakenError(BrokerError):
    """Somebody else listens on a port.

    Attributes:
        port: the port.
    """

    def __init__(self, host: str, port: int) -> None:
        """Word the message.

        Args:
            host: the address.
            port: the port.
        """
        super().__init__(
            f"port {port} on {host} is taken; stop what listens there (another broker?), "
            "or give --port another one (0: any)"
        )
        self.port = port


def bracketed(host: str) -> str:
    """Write a host as it stands before a port: IPv6 addresses in brackets."""
    return f"[{host}]" if ":" in host else host


def require_reachable(host: str) -> None:
    """See to it that clients can be told the address.

    Raises:
        BrokerError: it is a wildcard, or no address of this machine.
    """
    try:
        with bound(host, 0) as probe:
            address = ipaddress.ip_address(probe.getsockname()[0])
    except OSError as problem:
        raise BrokerError(f"{host}: no address of this machine ({problem.strerror}); give --host one") from problem
    if address.is_unspecified:
        raise BrokerError(f"{host}: clients are told this address and cannot connect to it; give --host a real one")


def require_free(host: str, port: int) -> None:
    """See to it that nobody listens on a port.

    Raises:
        BrokerError: somebody does, or this user may not.
    """
    if not eventually(lambda: is_free(host, port)):
        raise PortTakenError(host, port)


def is_free(host: str, port: int) -> bool:
    """Tell whether nobody listens on a port.

    Raises:
        BrokerError: this user may not.
    """
    try:
        with bound(host, port):
            return True
    except PermissionError as problem:
        raise BrokerError(f"port {port}: this user may not listen there; give --port one above 1023") from problem
    except OSError:
        return False


def pick_port(host: str, preferred: int | None = None, *, given: Collection[int] = ()) -> int:
    """Pick a free port below those that systems give to outgoing connections, which could take it at any time.

    Args:
        host: the address to be free on.
        preferred: the port to take if it is free.
        given: ports that are not free any more, though nobody listens there yet.
    """
    if preferred is not None and eventually(lambda: is_free(host, preferred)):
        return preferred
    while (port := random.randint(*PICKED_PORTS)) in given or not is_free(host, port):  # noqa: S311 - not a secret
        pass
    return port


def bound(host: str, port: int) -> socket.socket:
    """Bind a socket as Java would bind its own.

    Raises:
        OSError: that is not possible.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    probe = socket.socket(family, kind, protocol)
    try:
        if sys.platform != "win32":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(address)
    except OSError:
        probe.close()
        raise
    return probe


def answers(host: str, port: int) -> bool:
    """Tell whether a broker answers a client's question for the cluster's brokers."""
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    with ThreadPoolExecutor(1) as pool:  # the caller's thread may be running a loop of its own
        return pool.submit(lambda: asyncio.run(_answers_client(f"{bracketed(host)}:{port}"))).result()


async def _answers_client(bootstrap: str) -> bool:
    client = AIOKafkaClient(bootstrap_servers=bootstrap, request_timeout_ms=5000)
    try:
        await client.bootstrap()
        return bool(client.cluster.brokers())
    except KafkaError:
        return False
    finally:
        await client.close()
