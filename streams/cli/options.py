"""Options that several commands share: how to reach Kafka, the pages, the log, the spin score; types of options.

Each decorator turns its options into one settings object. None takes a secret: see `streams.cli.secrets`.
"""

from __future__ import annotations

import functools
import ipaddress
import logging
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click
import msgspec

from detectors.weights import InvalidWeights, read_weights
from schemas.topics import DEFAULT_PREFIX
from streams.cli.secrets import secret
from streams.cli.sections import CONNECTION, PAGES, SharedOption
from streams.escalation.text import line
from streams.health import STALL_BOUNDS, STALL_SECONDS
from streams.kafka import DEFAULT_BOOTSTRAP, KafkaSettings, SaslMechanism, SecurityProtocol
from streams.masking import MaskingFormatter
from streams.page_settings import PageSettings
from streams.policy.load import InvalidPolicy, UnreadablePolicy, read_policy
from streams.policy.policy import Policy
from streams.tokens import url_problem

if TYPE_CHECKING:
    from detectors import Limits

Command = Callable[..., Any]

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class Number(click.FloatRange):
    """A finite number in a range. `nan` would pass any range, being neither below nor above a bound."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Convert and check a value."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is no finite number.", param, ctx)
        return number


class Brokers(click.ParamType):
    """Addresses of brokers, `host:port` with commas between them; IPv6 addresses stand in brackets."""

    name = "brokers"

    _ADDRESS = re.compile(r"(?:\[(?P<ipv6>[^\[\]]+)\]|[^\s:/@\[\]]+):(?P<port>[0-9]{1,5})")
    _PORTS = range(1, 65536)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check the addresses; which of them answers is found out when they are used."""
        addresses = [address.strip() for address in str(value).split(",") if address.strip()]
        if not addresses:
            self.fail("no broker is named; give host:port, for example kafka-1:9092,kafka-2:9092", param, ctx)
        for address in addresses:
            match = self._ADDRESS.fullmatch(address)
            if match is None or (match["ipv6"] is not None and not _is_ipv6(match["ipv6"])):
                self.fail(
                    f"{address!r} is not host:port; give for example kafka-1:9092,kafka-2:9092 or [::1]:9092",
                    param,
                    ctx,
                )
            if int(match["port"]) not in self._PORTS:
                self.fail(f"{address!r} has no port from 1 to 65535; give for example kafka-1:9092", param, ctx)
        return ",".join(addresses)


class TokenUrl(click.ParamType):
    """The URL of a token server. One with a password in it is refused before it is shown anywhere."""

    name = "url"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check a URL; whether a server answers there is found out at the login."""
        wrong = url_problem(str(value))
        if wrong:
            self.fail(wrong, param, ctx)
        return str(value)


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def shared(name: str, text: str, argument: str | None = None, **attributes: Any) -> Callable[[Command], Command]:
    """Make an option of several commands, whose help names its environment variable.

    Args:
        name: the flag.
        text: its help.
        argument: the command's argument; None when it is named like the flag.
        attributes: further attributes of the option.
    """
    variable = f"TRACTION_{name.removeprefix('--').replace('-', '_').upper()}"
    names = [name] if argument is None else [name, argument]
    return click.option(*names, cls=SharedOption, help=f"{text}  [env: {variable}]", **attributes)


def kafka_options(command: Command) -> Command:
    """Give a command the options to reach Kafka, as its argument `kafka`, a `KafkaSettings`."""
    connecting = functools.partial(shared, section=CONNECTION)

    @connecting(
        "--bootstrap",
        "Kafka brokers to connect to first.",
        metavar="HOST:PORT[,...]",
        default=DEFAULT_BOOTSTRAP,
        type=Brokers(),
    )
    @connecting("--prefix", "What every topic's name starts with.", default=DEFAULT_PREFIX)
    @connecting(
        "--security-protocol",
        "How connections are encrypted and log in.",
        default="PLAINTEXT",
        type=click.Choice(get_args(SecurityProtocol)),
    )
    @connecting(
        "--sasl-mechanism", "How to log in.", default="SCRAM-SHA-512", type=click.Choice(get_args(SaslMechanism))
    )
    @connecting("--sasl-username", "User name to log in with; with a token server the client id.")
    @connecting(
        "--sasl-password-file",
        "File with the password, or the client's secret; else the variable TRACTION_SASL_PASSWORD is read.",
        type=FILE,
    )
    @connecting(
        "--sasl-token-file",
        "File with the token for OAUTHBEARER, which somebody keeps fresh; read at each login.",
        type=FILE,
    )
    @connecting(
        "--sasl-token-url",
        "Token server that gives one for the client id and secret.",
        metavar="URL",
        type=TokenUrl(),
    )
    @connecting("--sasl-token-scope", "Scope that it is asked for.", metavar="SCOPE")
    @connecting("--ssl-cafile", "Authorities that signed the brokers' certificates, PEM; else the system's.", type=FILE)
    @connecting("--ssl-certfile", "Our own certificate, PEM, for brokers that ask for one.", type=FILE)
    @connecting("--ssl-keyfile", "Its private key, PEM, without a passphrase.", type=FILE)
    @functools.wraps(command)
    def with_kafka(
        *,
        bootstrap: str,
        prefix: str,
        security_protocol: SecurityProtocol,
        sasl_mechanism: SaslMechanism,
        sasl_username: str | None,
        sasl_password_file: Path | None,
        sasl_token_file: Path | None,
        sasl_token_url: str | None,
        sasl_token_scope: str | None,
        ssl_cafile: Path | None,
        ssl_certfile: Path | None,
        ssl_keyfile: Path | None,
        **others: Any,
    ) -> Any:
        try:
            kafka = KafkaSettings(
                bootstrap=bootstrap,
                prefix=prefix,
                security_protocol=security_protocol,
                sasl_mechanism=sasl_mechanism,
                username=sasl_username,
                password=secret("TRACTION_SASL_PASSWORD", sasl_password_file, "--sasl-password-file"),
                token_file=sasl_token_file,
                token_url=sasl_token_url,
                token_scope=sasl_token_scope,
                cafile=ssl_cafile,
                certfile=ssl_certfile,
                keyfile=ssl_keyfile,
            )
            kafka.client_arguments()  # reads the certificates, so that a wrong file is told here
        except ValueError as problem:
            raise click.UsageError(str(problem)) from problem
        return command(kafka=kafka, **others)

    return with_kafka


def page_options(
    default_port: int, what: str = "the pages /metrics, /healthz and /readyz"
) -> Callable[[Command], Command]:
    """Give a command the options of its HTTP pages, as its argument `pages`, a `PageSettings`.

    Args:
        default_port: differs between commands, so that all run on one machine as they are.
        what: is served there, for the help.
    """

    def decorate(command: Command) -> Command:
        @click.option(
            "--host",
            default="127.0.0.1",
            metavar="ADDRESS",
            help=f"Address of {what}; 0.0.0.0 opens them to the network.",
        )
        @click.option(
            "--port",
            default=default_port,
            type=click.IntRange(0, 65535),
            help="Their port; 0 takes a free one, which the ready line tells.",
        )
        @shared(
            "--page-token-file",
            "File with the token that /metrics and details of health ask for; else the variable TRACTION_PAGE_TOKEN "
            "is read.",
            type=FILE,
            section=PAGES,
        )
        @shared(
            "--page-certfile",
            "Certificate to encrypt the pages with, and its chain, PEM; read anew when it is renewed.",
            type=FILE,
            section=PAGES,
        )
        @shared("--page-keyfile", "Its private key, PEM, without a passphrase.", type=FILE, section=PAGES)
        @shared(
            "--stall-seconds",
            "Seconds that work may wait untouched before /healthz says that the process hangs; longer than a "
            "rebalance takes.",
            default=STALL_SECONDS,
            type=Number(*STALL_BOUNDS),
            section=PAGES,
        )
        @functools.wraps(command)
        def with_pages(
            *,
            host: str,
            port: int,
            page_token_file: Path | None,
            page_certfile: Path | None,
            page_keyfile: Path | None,
            stall_seconds: float,
            **others: Any,
        ) -> Any:
            token = secret("TRACTION_PAGE_TOKEN", page_token_file, "--page-token-file")
            try:
                pages = PageSettings(host, port, token, page_certfile, page_keyfile, stall_seconds)
            except ValueError as problem:
                raise click.UsageError(str(problem)) from problem
            return command(pages=pages, **others)

        return with_pages

    return decorate


def gateway_token_option(command: Command) -> Command:
    """Give a command the gateway's tokens, as its argument `tokens`; none where there are none."""

    @shared(
        "--gateway-token-file",
        "File with the tokens that the gateway takes, any of them, one a line; else the variable "
        "TRACTION_GATEWAY_TOKEN is read.",
        type=FILE,
    )
    @functools.wraps(command)
    def with_tokens(*, gateway_token_file: Path | None, **others: Any) -> Any:
        text = secret("TRACTION_GATEWAY_TOKEN", gateway_token_file, "--gateway-token-file")
        return command(tokens=tuple((text or "").split()), **others)

    return with_tokens


weights_option = shared(
    "--spin-weights",
    "Weights of the spin score, made by traction train; else those that come with Traction.",
    argument="weights_file",
    type=FILE,
    metavar="FILE.json",
)
"""The weights that a command scores with, as its argument `weights_file`, for `with_weights`."""


def with_weights(limits: Limits, file: Path | None) -> Limits:
    """Have the spin score computed with the weights of a file; with those of the limits when there is none.

    Raises:
        click.UsageError: the file cannot be read or used.
    """
    if file is None:
        return limits
    try:
        model = read_weights(file.read_bytes())
    except OSError as problem:
        raise click.UsageError(
            f"--spin-weights {file}: cannot be read ({problem.strerror}); give it a file made by traction train"
        ) from problem
    except InvalidWeights as problem:
        raise click.UsageError(f"--spin-weights {file}: {problem}") from problem
    return msgspec.structs.replace(limits, model=model)


policy_option = shared(
    "--policy",
    "Policy: limits, the ladder of responses, and for whom they hold; see docs/policy.md.",
    argument="policy_file",
    type=FILE,
    metavar="FILE.toml",
)
"""The policy that a command works by, as its argument `policy_file`, for `with_policy`."""


def with_policy(limits: Limits, file: Path | None, option: str = "--policy") -> Policy:
    """Lay the policy of a file over limits; a policy without rules when there is no file.

    Args:
        limits: those of the settings file, with the weights of the spin score.
        file: the policy file.
        option: the option that named the file, for messages.

    Raises:
        click.UsageError: the file cannot be read, or is no policy; all that is wrong is told.
    """
    if file is None:
        return Policy(limits)
    try:
        return read_policy(file, limits)
    except (UnreadablePolicy, InvalidPolicy) as problem:
        raise click.UsageError(f"{option}: {problem}") from problem


class Throttle(logging.Filter):
    """Lets a message through once in so many seconds: a client logs ten lines a second while a broker is away.

    Args:
        seconds: during which the same message (before its arguments are filled in) is dropped.
    """

    MOST = 1_000
    """Messages remembered; a library has fewer."""

    def __init__(self, seconds: float = 10.0) -> None:
        super().__init__()
        self._seconds = seconds
        self._last: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Decide on one record."""
        key = (record.name, str(record.msg))
        last = self._last.get(key)
        if last is not None and record.created - last < self._seconds:
            return False
        if len(self._last) >= self.MOST:
            self._last.clear()
        self._last[key] = record.created
        return True


class PlainFormatter(MaskingFormatter):
    """Writes each message as one line without control characters: an id may have any, and acts on nobody's terminal."""

    MOST = 8_000
    """Characters of a message; a traceback comes after it and is not cut."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is logging's
        """Format a record but for its traceback."""
        return line(super().formatMessage(record), self.MOST)


def log_options(command: Command) -> Command:
    """Give a command `--log-level`, and log to standard error from then on."""

    @shared(
        "--log-level",
        "What is logged to standard error.",
        default="info",
        type=click.Choice(["debug", "info", "warning", "error"]),
    )
    @functools.wraps(command)
    def with_log(*, log_level: str, **others: Any) -> Any:
        level = logging.getLevelNamesMapping()[log_level.upper()]
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(PlainFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        throttle = Throttle()
        handler.addFilter(lambda record: not record.name.startswith("aiokafka") or throttle.filter(record))
        logging.basicConfig(level=level, handlers=[handler])
        # The libraries log whole records at level debug, with payloads, and each step of each rebalance at level info.
        for name in ("faust", "mode", "aiokafka"):
            logging.getLogger(name).setLevel(max(level, logging.WARNING))
        return command(**others)

    return with_log
