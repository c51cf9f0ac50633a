"""Settings of the Kafka clients, and the options that make them."""

from __future__ import annotations

import asyncio
import logging
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest
from aiokafka.errors import KafkaError, TopicAuthorizationFailedError
from click.testing import CliRunner

from schemas.topics import ALERTS
from streams.cli.options import PlainFormatter, Throttle, kafka_options, log_options, page_options
from streams.kafka import (
    KafkaSettings,
    KafkaUnavailable,
    admin,
    consumer,
    producer,
    running,
    start_client,
    unavailable,
)

if TYPE_CHECKING:
    from collections.abc import Callable

SECRET = "s3cret"  # noqa: S105 - of these tests
LOGIN: dict[str, Any] = {"security_protocol": "SASL_SSL", "username": "agent", "password": SECRET}


def test_topics_get_the_prefix() -> None:
    """Several installations share a cluster by their prefix."""
    assert KafkaSettings(prefix="staging.").topic(ALERTS) == "staging.alerts"
    assert KafkaSettings().topic(ALERTS) == "agent.alerts"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"bootstrap": " , "}, "host:port"),
        ({"security_protocol": "SASL_SSL"}, "user name and a password"),
        ({"security_protocol": "SASL_SSL", "username": "a"}, "user name and a password"),
        ({"username": "a", "password": "b"}, "choose SASL_SSL"),
        ({"cafile": Path("ca.pem")}, "choose SSL or SASL_SSL"),
        ({"security_protocol": "SSL", "certfile": Path("c.pem")}, "both the certificate file and the key file"),
        ({"security_protocol": "TLS"}, "PLAINTEXT, SSL"),
        ({"sasl_mechanism": "GSSAPI"}, "SCRAM-SHA-512"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(fields: dict[str, Any], said: str) -> None:
    """A password that would go out in clear, or certificates that would be ignored, are told with the remedy."""
    with pytest.raises(ValueError, match=said):
        KafkaSettings(**fields)


def test_the_password_is_never_printed() -> None:
    """Neither the settings nor a failure that is logged show it."""
    settings = KafkaSettings(**LOGIN)
    assert SECRET not in repr(settings)
    assert SECRET not in str(settings)


def test_arguments_say_how_to_connect_and_log_in() -> None:
    """Encryption checks the broker's name and certificate."""
    arguments = KafkaSettings(bootstrap="a:1, b:2", **LOGIN).client_arguments()
    assert arguments["bootstrap_servers"] == ["a:1", "b:2"]
    assert arguments["sasl_plain_username"] == "agent"
    assert arguments["sasl_plain_password"] == SECRET
    context = arguments["ssl_context"]
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert "ssl_context" not in KafkaSettings().client_arguments()


def test_certificates_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    """A wrong file is told by its name, before any connection is tried."""
    wrong = tmp_path / "ca.pem"
    wrong.write_text("no certificate")
    with pytest.raises(ValueError, match=str(wrong)):
        KafkaSettings(security_protocol="SSL", cafile=wrong).client_arguments()


async def test_clients_have_what_correctness_needs() -> None:
    """Readers see committed records only and commit nothing by themselves; writers are idempotent."""
    reader, writer = consumer(KafkaSettings()), producer(KafkaSettings())
    assert reader._isolation_level == "read_committed"
    assert reader._enable_auto_commit is False
    assert reader._auto_offset_reset == "earliest"
    assert writer._txn_manager is not None
    assert consumer(KafkaSettings(), isolation_level="read_uncommitted")._isolation_level == "read_uncommitted"


@pytest.mark.parametrize("make", [admin, consumer, producer])
async def test_brokers_out_of_reach_are_told_in_words(make: Callable[[KafkaSettings], Any]) -> None:
    """Whatever client it is: the address and what to look at, and nothing is left running."""
    settings = KafkaSettings(bootstrap="127.0.0.1:1")
    before = asyncio.all_tasks()
    with pytest.raises(KafkaUnavailable, match=r"Kafka at 127\.0\.0\.1:1 cannot be used \(PLAINTEXT\)"):
        async with running(make(settings), settings):
            raise AssertionError("it cannot have started")
    assert asyncio.all_tasks() == before


def shown(arguments: list[str], environment: dict[str, str] | None = None) -> Any:
    """Run a command that has the shared options, and give what it was handed, or the result when it failed."""
    handed: dict[str, Any] = {}

    @click.command()
    @kafka_options
    @page_options(9401)
    def show(**settings: Any) -> None:
        handed.update(settings)

    group = click.Group("traction", commands={"show": show}, context_settings={"auto_envvar_prefix": "TRACTION"})
    result = CliRunner().invoke(group, ["show", *arguments], env=environment)
    return handed if result.exit_code == 0 else result


def test_options_come_from_flags_then_the_commands_variable_then_the_shared_one() -> None:
    """The more special one wins."""
    environment = {"TRACTION_BOOTSTRAP": "all:1", "TRACTION_SHOW_BOOTSTRAP": "one:1"}
    assert shown(["--bootstrap", "flag:1"], environment)["kafka"].bootstrap == "flag:1"
    assert shown([], environment)["kafka"].bootstrap == "one:1"
    assert shown([], {"TRACTION_BOOTSTRAP": "all:1"})["kafka"].bootstrap == "all:1"
    assert shown([])["kafka"] == KafkaSettings()


def test_the_password_comes_from_a_file_or_the_environment(tmp_path: Path) -> None:
    """There is no flag for it, which other users of the machine could read."""
    flags = ["--security-protocol", "SASL_SSL", "--sasl-username", "agent"]
    file = tmp_path / "password"
    file.write_text(f"{SECRET}\n")
    assert shown(flags, {"TRACTION_SASL_PASSWORD": SECRET})["kafka"].password == SECRET
    assert shown([*flags, "--sasl-password-file", str(file)])["kafka"].password == SECRET
    refused = shown([*flags, "--sasl-password", SECRET])
    assert refused.exit_code == 2
    file.write_text(" \n")
    assert "is empty" in shown([*flags, "--sasl-password-file", str(file)]).output


def test_contradictions_are_wrong_use() -> None:
    """Exit code 2 and the remedy."""
    refused = shown(["--security-protocol", "SASL_PLAINTEXT"])
    assert refused.exit_code == 2
    assert "needs a user name and a password" in refused.output


def test_the_token_of_the_pages_comes_from_a_file_or_the_environment(tmp_path: Path) -> None:
    """Likewise; without one, none is asked for."""
    file = tmp_path / "token"
    file.write_text(SECRET)
    assert shown([])["pages"].token is None
    assert shown([], {"TRACTION_PAGE_TOKEN": SECRET})["pages"].token == SECRET
    assert shown(["--page-token-file", str(file)])["pages"].token == SECRET


def test_pages_that_are_half_encrypted_are_wrong_use(tmp_path: Path) -> None:
    """Exit code 2 and the remedy, as for a token that no request can carry."""
    file = tmp_path / "tls.crt"
    file.touch()
    for refused, words in (
        (shown(["--page-certfile", str(file)]), "need both the certificate file and the key file"),
        (shown([], {"TRACTION_PAGE_TOKEN": f"{SECRET} {SECRET}"}), "make one with openssl rand -hex 32"),
    ):
        assert refused.exit_code == 2
        assert words in " ".join(refused.output.split())
        assert SECRET not in refused.output


def test_a_message_repeated_in_a_row_is_logged_once_in_a_while(make_record: Callable[..., logging.LogRecord]) -> None:
    """A broker that is away does not fill the disk; other messages still come through."""
    throttle = Throttle(10)
    assert throttle.filter(make_record("broker %s is away", at=100.0))
    assert not throttle.filter(make_record("broker %s is away", at=109.0))
    assert throttle.filter(make_record("something else", at=109.0))
    assert throttle.filter(make_record("broker %s is away", at=111.0))


@pytest.mark.parametrize("level", ["debug", "info", "error"])
def test_the_client_never_logs_whole_records(caplog: pytest.LogCaptureFixture, level: str) -> None:
    """At no level of ours do its lines below a warning come through: at level debug they have payloads in them."""

    @click.command()
    @log_options
    def probe() -> None:
        """Do nothing."""

    client = logging.getLogger("aiokafka.producer.producer")
    with caplog.at_level(logging.DEBUG), caplog.at_level(logging.NOTSET, "aiokafka"):
        assert client.isEnabledFor(logging.DEBUG)
        assert CliRunner().invoke(probe, ["--log-level", level]).exit_code == 0
        assert not client.isEnabledFor(logging.INFO)
        assert client.isEnabledFor(logging.WARNING) == (level != "error")


@pytest.fixture
def make_record() -> Callable[..., logging.LogRecord]:
    """Give a builder of log records at a time."""
    import logging  # noqa: PLC0415 - only here

    def make(message: str, *, at: float) -> logging.LogRecord:
        record = logging.LogRecord("aiokafka", logging.ERROR, __file__, 1, message, (), None)
        record.created = at
        return record

    return make


class Starting:
    """A client of a broker that answers and knows of no broker yet, not even of itself."""

    async def start(self) -> None:
        """Fail as aiokafka does then."""
        raise AssertionError("Did we not perform bootstrap?")


async def test_a_broker_that_is_starting_is_unavailable() -> None:
    """What its client cannot do without is told in words, and is no defect of ours."""
    with pytest.raises(KafkaUnavailable, match="a broker that is starting knows of none yet"):
        await start_client(Starting(), KafkaSettings())


def test_brokers_that_keep_silent_are_told_so() -> None:
    """An error without words would say nothing to people."""
    assert "no answer in time. Is it running" in str(unavailable(KafkaSettings(), TimeoutError()))


def test_a_failure_that_is_its_own_cause_is_told() -> None:
    """Errors are raised anew by those who wait; a circle of them must not hold up who looks for the reason."""
    problem, other = KafkaError("first"), TopicAuthorizationFailedError("t")
    problem.__cause__, other.__cause__ = other, problem
    assert "no right to read or write the topic t" in str(unavailable(KafkaSettings(), problem))
    other.__cause__ = problem.__cause__ = problem
    assert "first" in str(unavailable(KafkaSettings(), problem))


def test_a_log_line_is_one_line_without_control_characters() -> None:
    """Whatever an id has in it, it neither forges a line nor acts on a terminal; a traceback stays whole."""
    record = logging.LogRecord(
        "x", logging.INFO, "x.py", 1, "override for %s", ("s\x1b[31m\u202e\nERROR forged",), None
    )
    shown = PlainFormatter("%(levelname)s %(message)s").format(record)
    assert shown == "INFO override for s[31m ERROR forged"
    problem = ValueError("first\nsecond")
    record.exc_info = (type(problem), problem, None)
    assert PlainFormatter("%(message)s").format(record).endswith("ValueError: first\nsecond")
