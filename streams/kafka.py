"""The one place that makes Kafka clients: where the brokers are, how to log in, and what every client of ours has set.

Clients are returned unstarted; `running` starts and stops one and turns a failure to reach the brokers into words. It
must not decide what is read or written.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaConnectionError, KafkaError
from aiokafka.helpers import create_ssl_context

import streams.coordinator  # noqa: F401 - it puts its class in aiokafka's place
from schemas.topics import DEFAULT_PREFIX, Topic
from streams.fetching import UnreadableBatch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

logger = logging.getLogger(__name__)

SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
"""Where `traction broker` listens by default."""

MAX_INPUT_BYTES = 12 * 2**20
"""Largest batch of records (in the broker's sense: compressed, one record at least) that the input topics take. A tool
call carries whole results, some of 10 MB; with the 1 MiB of the brokers' default the long ones would not get in."""

MAX_DEAD_LETTER_BYTES = 32 * 2**20
"""The same for dead letters, which are written uncompressed with more headers. Every value that came uncompressed fits,
and a broker with a small heap can still take it; what was compressed more than that is kept in part."""

Client = TypeVar("Client", bound=Any)


class KafkaUnavailable(Exception):
    """The brokers cannot be reached, refuse us, or give what cannot be read: the message says which and what to do."""


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """Where the brokers are and how to log in.

    Attributes:
        bootstrap: `host:port`, several separated by commas.
        prefix: what every topic's name starts with.
        security_protocol: whether connections are encrypted (`SSL`) and log in (`SASL`).
        sasl_mechanism: how to log in.
        username: for SASL.
        password: for SASL; never printed.
        cafile: certificates of the authorities that signed the brokers', PEM; the system's when None.
        certfile: our own certificate, PEM, for brokers that want one.
        keyfile: its private key, PEM, without a passphrase.

    Raises:
        ValueError: the settings contradict each other; the message names the setting and the remedy.
    """

    bootstrap: str = DEFAULT_BOOTSTRAP
    prefix: str = DEFAULT_PREFIX
    security_protocol: SecurityProtocol = "PLAINTEXT"
    sasl_mechanism: SaslMechanism = "SCRAM-SHA-512"
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    cafile: Path | None = None
    certfile: Path | None = None
    keyfile: Path | None = None

    def __post_init__(self) -> None:
        if self.security_protocol not in get_args(SecurityProtocol):
            raise ValueError(f"the security protocol is one of {', '.join(get_args(SecurityProtocol))}")
        if self.sasl_mechanism not in get_args(SaslMechanism):
            raise ValueError(f"the SASL mechanism is one of {', '.join(get_args(SaslMechanism))}")
        if not self.hosts:
            raise ValueError("no broker is named: give host:port, for example localhost:9092")
        if self.sasl and not (self.username and self.password):
            raise ValueError(f"{self.security_protocol} needs a user name and a password")
        if not self.sasl and (self.username or self.password):
            raise ValueError(
                f"a user name or password is given, but {self.security_protocol} does not log in: "
                "choose SASL_SSL (or SASL_PLAINTEXT in a trusted network)"
            )
        if not self.tls and (self.cafile or self.certfile or self.keyfile):
            raise ValueError(
                f"certificates are given, but {self.security_protocol} does not encrypt: choose SSL or SASL_SSL"
            )
        if bool(self.certfile) != bool(self.keyfile):
            raise ValueError("a certificate of our own needs both the certificate file and the key file")

    @property
    def hosts(self) -> list[str]:
        """The brokers' addresses, one by one."""
        return [host.strip() for host in self.bootstrap.split(",") if host.strip()]

    @property
    def tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.security_protocol in {"SSL", "SASL_SSL"}

    @property
    def sasl(self) -> bool:
        """Whether clients log in with a user name and password."""
        return self.security_protocol in {"SASL_PLAINTEXT", "SASL_SSL"}

    def topic(self, topic: Topic) -> str:
        """Give a topic's name on the brokers."""
        return f"{self.prefix}{topic.name}"

    def client_arguments(self) -> dict[str, Any]:
        """Give the arguments that every aiokafka client takes: addresses, encryption, login.

        Raises:
            ValueError: a certificate or key file cannot be read; the message names the files.
        """
        arguments: dict[str, Any] = {
            "bootstrap_servers": self.hosts,
            "client_id": "traction",
            "security_protocol": self.security_protocol,
        }
        if self.tls:
            try:
                arguments["ssl_context"] = create_ssl_context(
                    cafile=self.cafile, certfile=self.certfile, keyfile=self.keyfile
                )
            except OSError as problem:
                files = ", ".join(str(file) for file in (self.cafile, self.certfile, self.keyfile) if file)
                raise ValueError(f"the certificates cannot be read ({problem}); look at {files}") from problem
        if self.sasl:
            arguments |= {
                "sasl_mechanism": self.sasl_mechanism,
                "sasl_plain_username": self.username,
                "sasl_plain_password": self.password,
            }
        return arguments


def producer(settings: KafkaSettings, **overrides: Any) -> AIOKafkaProducer:
    """Make a producer: idempotent, acknowledged by all in-sync replicas, keys hashed with murmur2 (aiokafka's own).

    Args:
        settings: where and how to connect.
        overrides: further arguments of aiokafka's producer, or other values for ours.
    """
    arguments = {
        "enable_idempotence": True,
        "max_request_size": MAX_DEAD_LETTER_BYTES,  # per record; each topic's own limit decides
    }
    return AIOKafkaProducer(**settings.client_arguments() | arguments | overrides)


def consumer(settings: KafkaSettings, **overrides: Any) -> AIOKafkaConsumer:
    """Make a consumer: committed records only, from the earliest one, its offsets committed by us alone.

    Args:
        settings: where and how to connect.
        overrides: further arguments of aiokafka's consumer, or other values for ours.
    """
    arguments = {
        "isolation_level": "read_committed",
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
    }
    return AIOKafkaConsumer(**settings.client_arguments() | arguments | overrides)


def admin(settings: KafkaSettings, **overrides: Any) -> AIOKafkaAdminClient:
    """Make an administration client.

    Args:
        settings: where and how to connect.
        overrides: further arguments of aiokafka's client.
    """
    return AIOKafkaAdminClient(**settings.client_arguments() | overrides)


async def start_client(client: Client, settings: KafkaSettings) -> None:
    """Start a client.

    Raises:
        KafkaUnavailable: it cannot be started.
    """
    try:
        await client.start()
    except (KafkaError, OSError) as problem:
        raise unavailable(settings, problem) from problem
    except AssertionError as problem:  # aiokafka 0.14 takes it for sure that metadata name a broker
        raise unavailable(settings, KafkaConnectionError("a broker that is starting knows of none yet")) from problem


@asynccontextmanager
async def running(client: Client, settings: KafkaSettings) -> AsyncIterator[Client]:
    """Start a client, and stop it at the end.

    Raises:
        KafkaUnavailable: it cannot be started.
    """
    stop = client.close if isinstance(client, AIOKafkaAdminClient) else client.stop
    try:
        await start_client(client, settings)
        yield client
    finally:
        try:
            await stop()
        except asyncio.CancelledError:
            # aiokafka 0.14 cancels its own fetches at the stop, and lets that escape while a broker is away.
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise


def unavailable(settings: KafkaSettings, problem: Exception) -> KafkaUnavailable:
    """Say in words that the brokers cannot be used, or what they gave, and what to look at."""
    if isinstance(problem, UnreadableBatch):
        return KafkaUnavailable(str(problem))
    login = f", logging in as {settings.username} with {settings.sasl_mechanism}" if settings.sasl else ""
    return KafkaUnavailable(
        f"Kafka at {', '.join(settings.hosts)} cannot be used ({settings.security_protocol}{login}): "
        f"{str(problem) or type(problem).__name__}. Is it running and reachable from here, and do the security "
        "settings match its listener?"
    )
