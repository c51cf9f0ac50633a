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

import streams.connections
import streams.coordinator  # noqa: F401 - they put their classes in aiokafka's place
from schemas.topics import DEFAULT_PREFIX, Topic
from streams.fetching import UnreadableBatch
from streams.login import noting
from streams.refused import cause
from streams.tokens import FileTokens, Tokens, url_problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

logger = logging.getLogger(__name__)

SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]

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
        username: for SASL; with a token server the client id.
        password: for SASL; with a token server the client's secret. Never printed.
        token_file: the token to log in with, for OAUTHBEARER.
        token_url: the token server to get one from.
        token_scope: what it is asked for.
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
    token_file: Path | None = None
    token_url: str | None = None
    token_scope: str | None = None
    cafile: Path | None = None
    certfile: Path | None = None
    keyfile: Path | None = None
    tokens: Tokens | None = field(default=None, init=False, repr=False, compare=False)
    """Gives all clients the tokens that they log in with; None for another way to log in."""

    def __post_init__(self) -> None:
        if self.security_protocol not in get_args(SecurityProtocol):
            raise ValueError(f"the security protocol is one of {', '.join(get_args(SecurityProtocol))}")
        if self.sasl_mechanism not in get_args(SaslMechanism):
            raise ValueError(f"the SASL mechanism is one of {', '.join(get_args(SaslMechanism))}")
        if not self.hosts:
            raise ValueError("no broker is named: give host:port, for example localhost:9092")
        if self.sasl and self.sasl_mechanism == "OAUTHBEARER":
            self._check_tokens()
        elif self.token_file or self.token_url or self.token_scope:
            raise ValueError(
                f"a token to log in with is given, but {self.sasl_mechanism if self.sasl else self.security_protocol} "
                "does not use one: choose SASL_SSL and the mechanism OAUTHBEARER"
            )
        elif self.sasl and not (self.username and self.password):
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
        object.__setattr__(self, "tokens", self._tokens())

    def _check_tokens(self) -> None:
        if not (self.token_file or self.token_url):
            raise ValueError("OAUTHBEARER needs a token: name its file (token file) or the server that gives it (URL)")
        if self.token_file and self.token_url:
            raise ValueError("a token comes from a file or from a token server's URL: give one of the two")
        if self.token_file and (self.username or self.password or self.token_scope):
            raise ValueError("the token in the file says who logs in: leave user name, password and scope out")
        if self.token_url and not (self.username and self.password):
            raise ValueError(
                "a token server wants to know who asks: give the client id as user name, and its secret as password"
            )
        wrong = url_problem(self.token_url) if self.token_url else None
        if wrong:
            raise ValueError(wrong)

    def _tokens(self) -> Tokens | None:
        if self.token_file is not None:
            return FileTokens(self.token_file)
        if self.token_url is not None and self.username is not None and self.password is not None:
            from streams.token_server import ClientCredentials  # noqa: PLC0415 - only its users need an HTTP client

            return ClientCredentials(
                self.token_url, self.username, self.password, scope=self.token_scope, cafile=self.cafile
            )
        return None

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
        """Whether clients log in."""
        return self.security_protocol in {"SASL_PLAINTEXT", "SASL_SSL"}

    @property
    def who(self) -> str:
        """Who we are on the brokers, in words."""
        if self.tokens is not None:
            return self.tokens.whose
        if self.username is not None:
            return self.username
        return f"the owner of the certificate {self.certfile}" if self.certfile else "a client that does not log in"

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
        if self.tokens is not None:
            arguments |= {"sasl_mechanism": self.sasl_mechanism, "sasl_oauth_token_provider": self.tokens}
        elif self.sasl:
            arguments |= {
                "sasl_mechanism": self.sasl_mechanism,
                "sasl_plain_username": self.username,
                "sasl_plain_password": self.password,
            }
        return arguments


TRANSACTION_RETRY_MS = 20
"""How soon an answer to a transaction is asked for again, in place of aiokafka's 100. While brokers note that offsets
belong to a transaction they refuse its records, which one commit in twenty meets, and an alert waits for it."""


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
    if overrides.get("transactional_id") is not None:
        arguments["retry_backoff_ms"] = TRANSACTION_RETRY_MS
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
    with noting() as noted:
        try:
            await client.start()
        except (KafkaError, OSError) as problem:
            # That no broker could be used is said of them all; what was noted says why.
            told = noted.problem if isinstance(problem, KafkaConnectionError) and noted.problem else problem
            raise unavailable(settings, told) from problem
        except AssertionError as problem:  # aiokafka 0.14 takes it for sure that metadata name a broker
            told = noted.problem or KafkaConnectionError("a broker that is starting knows of none yet")
            raise unavailable(settings, told) from problem


@asynccontextmanager
async def running(client: Client, settings: KafkaSettings) -> AsyncIterator[Client]:
    """Start a client, and stop it at the end.

    Raises:
        KafkaUnavailable: it cannot be started.
    """
    try:
        await start_client(client, settings)
        yield client
    finally:
        await stop_client(client)


async def stop_client(client: Any) -> None:
    """Stop a client, also while a broker is away.

    Args:
        client: any client of aiokafka, started or not.
    """
    try:
        await (client.close if isinstance(client, AIOKafkaAdminClient) else client.stop)()
    except asyncio.CancelledError:
        # aiokafka 0.14 cancels its own fetches at the stop, and lets that escape while a broker is away.
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise


def unavailable(settings: KafkaSettings, problem: BaseException) -> KafkaUnavailable:
    """Say in words that the brokers cannot be used, or what they gave or refuse, and what to look at."""
    if isinstance(problem, UnreadableBatch):
        return KafkaUnavailable(str(problem))
    found = cause(problem, settings.who)
    if found.right:
        return KafkaUnavailable(f"Kafka at {', '.join(settings.hosts)} refuses: {found.what}. {found.remedy}")
    login = f", logging in as {settings.who} with {settings.sasl_mechanism}" if settings.sasl else ""
    remedy = settings.tokens.remedy if found.login and settings.tokens is not None else found.remedy
    return KafkaUnavailable(
        f"Kafka at {', '.join(settings.hosts)} cannot be used ({settings.security_protocol}{login}): "
        f"{found.what}. {remedy}".rstrip()
    )


def in_words(settings: KafkaSettings, problem: BaseException) -> str:
    """Say what went wrong with a client: what brokers refuse with its remedy, anything else by its name."""
    if isinstance(problem, KafkaUnavailable):
        return str(problem).rstrip(".")
    if isinstance(problem, KafkaError) and cause(problem, settings.who).right:
        return str(unavailable(settings, problem)).rstrip(".")
    return f"{type(problem).__name__}: {problem}"
