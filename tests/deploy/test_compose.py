"""The compose file: what it names is there, its commands are ours, and its Kafka lets in who it should and no more."""

from __future__ import annotations

import contextlib
import json
import shlex
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest
import yaml
from aiokafka.admin import NewTopic

from streams.access.roles import DEFAULT_LOGS_TOPIC, DEFAULT_SPANS_TOPIC
from streams.cli import traction
from streams.cli.inforce import variables_of
from streams.cli.secrets import SECRETS
from streams.kafka import KafkaSettings, admin, running
from streams.layout import read_layout
from tests.deploy.composed import DEPLOY, Composed, compose, once, ours, start

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def passwords(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the passwords, as who starts the containers does."""
    directory = tmp_path_factory.mktemp("compose") / "passwords"
    command = [sys.executable, "-S", str(DEPLOY / "passwords.py"), "--directory", str(directory)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("", "")
    return directory


@pytest.fixture(scope="module")
def kafka(passwords: Path) -> Iterator[str]:
    """Run the broker of the file, and what sets it up; give its address."""
    with Composed(passwords) as cluster:
        yield cluster.bootstrap


def variables(context: click.Context) -> set[str]:
    """Give the variables of the environment that a command reads."""
    options = [each for each in context.command.params if isinstance(each, click.Option)]
    return {*SECRETS, *(variable for each in options for variable in variables_of(each, context))}


def leaf(words: list[str]) -> click.Context:
    """Give the context of the command that a service runs, its options parsed; its files need not be there."""
    context = click.Context(traction, info_name="traction", auto_envvar_prefix="TRACTION")
    while isinstance(context.command, click.Group):
        name = words.pop(0)
        command = context.command.get_command(context, name)
        assert command, name
        context = click.Context(command, context, info_name=name)
    context.command.make_parser(context).parse_args(list(words))
    return context


@pytest.mark.parametrize("name", ours())
def test_commands_and_variables_are_ours(name: str) -> None:
    """Each service runs a command that is there, with options and variables that it reads."""
    service = ours()[name]
    assert set(service["environment"]) <= variables(leaf(list(service["command"])))


def test_a_variable_that_is_not_read_would_be_noticed() -> None:
    """The check of variables can fail: a worker reads no layout."""
    assert "TRACTION_LAYOUT" not in variables(leaf(["worker"]))
    with pytest.raises(click.NoSuchOption):
        leaf(["worker", "--fast"])


def test_what_is_mounted_is_there(passwords: Path) -> None:
    """Files of ours, passwords that are made, volumes that are named, and services that are waited for."""
    file = compose()
    for name, service in file["services"].items():
        for mount in service.get("volumes", ()):
            source = mount.partition(":")[0]
            assert (DEPLOY / source).exists() if source.startswith(".") else source in file["volumes"], (name, mount)
        assert set(service.get("secrets", ())) <= set(file["secrets"]), name
        assert set(service.get("depends_on", ())) <= set(file["services"]), name
        used = [value for value in str(service).split("'") if value.startswith("/run/secrets/")]
        assert {value.removeprefix("/run/secrets/") for value in used} <= set(service.get("secrets", ())), name
    for secret in file["secrets"].values():
        assert (passwords / Path(secret["file"]).name).exists()
        assert Path(secret["file"]).parent.name == "passwords"
    assert "/deploy/passwords/" in (DEPLOY.parent / ".gitignore").read_text("utf-8").splitlines()


def test_who_logs_in_is_in_the_layout() -> None:
    """Each service is the principal that has the role of what it runs."""
    principals = read_layout(DEPLOY / "kafka.toml").principals
    users = {name: f"User:{each['environment']['TRACTION_SASL_USERNAME']}" for name, each in ours().items()}
    assert users.pop("access") == "User:kafka-admin"
    assert users == {
        "topics": principals["admin"][0],
        "worker": principals["worker"][0],
        "escalate": principals["escalation"][0],
        "ingest": principals["gateway"][0],
        "bridge": principals["bridge"][0],
    }
    assert principals["escalation"] == principals["sinks"]


def test_only_this_machine_reaches_it() -> None:
    """Every port that is opened is opened on the loopback alone."""
    ports = [port for service in compose()["services"].values() for port in service.get("ports", ())]
    assert len(ports) == 5
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_kafka_is_the_one_that_is_tested() -> None:
    """The image has the version of the jars that the tests run."""
    lock = (DEPLOY.parent / "streams" / "kafka_broker" / "jars.lock").read_text("utf-8")
    version = compose()["services"]["kafka"]["image"].partition(":")[2]
    assert f"org.apache.kafka:kafka-clients:{version} " in lock


def test_the_collectors_topics_are_the_bridges() -> None:
    """They are made by names and with a number of partitions that belong together, where no login is asked for."""
    file = compose()["services"]
    made = file["collector-topics"]
    (script,) = made["command"]
    assert made["profiles"] == file["bridge"]["profiles"] == ["bridge"]
    assert f"for topic in {DEFAULT_SPANS_TOPIC} {DEFAULT_LOGS_TOPIC};" in script
    assert f"--partitions {read_layout(DEPLOY / 'kafka.toml').topics.partitions} " in script
    assert made["image"] == file["kafka"]["image"]
    (address,) = [word for word in shlex.split(script) if word.startswith("localhost:")]
    assert f"BROKER://{address}" in file["kafka"]["environment"]["KAFKA_LISTENERS"]
    others = {name for name, each in file.items() if "profiles" not in each}
    assert all(set(file[name].get("depends_on", ())) <= others for name in others), "they start without a profile"


def test_the_monitoring_finds_the_services() -> None:
    """Prometheus looks for the names of services, on their pages' ports; Grafana's source is Prometheus."""
    services = compose()["services"]
    config = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yaml").read_text("utf-8"))
    ports = {"worker": 9401, "escalate": 9402, "ingest": 8321, "bridge": 9403}
    for job in config["scrape_configs"]:
        (found,) = job["dns_sd_configs"]
        (name,) = found["names"]
        assert found["port"] == ports[name]
        assert name in services
    ((target,),) = [each["targets"] for one in config["alerting"]["alertmanagers"] for each in one["static_configs"]]
    assert target == "alertmanager:9093"
    ((source,),) = [
        yaml.safe_load(file.read_text("utf-8"))["datasources"]
        for file in (DEPLOY / "grafana" / "provisioning" / "datasources").iterdir()
    ]
    assert source["url"] == "http://prometheus:9090"


def test_passwords_stay(passwords: Path, tmp_path: Path) -> None:
    """Made once; the directory is closed; a password that is changed by hand is in the brokers' list afterwards."""
    assert stat.S_IMODE(passwords.stat().st_mode) == 0o700
    directory = tmp_path / "passwords"
    command = [sys.executable, str(DEPLOY / "passwords.py"), "--directory", str(directory)]
    subprocess.run(command, check=True)
    before = {file.name: file.read_text() for file in directory.iterdir()}
    assert len({before[name] for name in before}) == len(before)
    (directory / "traction-worker").unlink()
    (directory / "traction-worker").write_text("mine\n")
    subprocess.run(command, check=True)
    after = {file.name: file.read_text() for file in directory.iterdir()}
    assert {name for name in after if after[name] != before[name]} == {"traction-worker", "kafka-jaas"}
    assert 'user_traction-worker="mine"' in after["kafka-jaas"]


async def make_the_collectors_topics(kafka: str, passwords: Path) -> None:
    """Make them as the service does that has Kafka's own command for it."""
    password = (passwords / "kafka-admin").read_text("utf-8").strip()
    settings = KafkaSettings(
        kafka,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        username="kafka-admin",
        password=password,
    )
    async with running(admin(settings), settings) as client:
        await client.create_topics([NewTopic(name, 8, 1) for name in (DEFAULT_SPANS_TOPIC, DEFAULT_LOGS_TOPIC)])


async def test_the_whole_starts(kafka: str, passwords: Path) -> None:
    """Kafka as configured there, then what runs once, in its order; then each process is ready, with no right more."""
    services = ours()
    early = once(services["topics"], passwords, kafka)
    assert early.returncode == 1, "nobody may create topics before the rules are there"
    for name in ("access", "topics", "topics"):  # again at each start: it must find all as it is
        done = once(services[name], passwords, kafka)
        assert done.returncode == 0, done.stderr
    for name, words in (("access", "acl diff --json"), ("topics", "topics diff --json")):
        done = once(services[name], passwords, kafka, *shlex.split(words))
        assert (done.returncode, json.loads(done.stdout)["ok"]) == (0, True), done.stdout
    await make_the_collectors_topics(kafka, passwords)
    processes = {name: start(services[name], passwords, kafka) for name in ("worker", "escalate", "ingest", "bridge")}
    with contextlib.ExitStack() as stack:
        for process in processes.values():
            stack.callback(process.kill)
        assert (await processes["worker"].ready(8)).startswith("http://0.0.0.0:")
        for process in processes.values():
            await process.ready()
        for process in processes.values():
            assert await process.end() == 0, process.log


def test_a_wrong_password_is_refused(kafka: str, passwords: Path, tmp_path: Path) -> None:
    """And so is none: the rules would be worth nothing otherwise."""
    worker = ours()["worker"]
    (tmp_path / "traction-worker").write_text("wrong")
    assert "refuses the login" in once(worker, tmp_path, kafka, "topics", "list").stderr
    environment: dict[str, Any] = {"environment": {"TRACTION_BOOTSTRAP": "kafka:9092"}}
    assert once(environment, passwords, kafka, "topics", "list").returncode == 1


@pytest.mark.tools
def test_the_file_is_one() -> None:
    """By the Compose specification's own schema; a misspelt key would be found."""
    command = [str(Path(sys.executable).parent / "check-jsonschema"), "--builtin-schema", "vendor.compose-spec"]
    assert subprocess.run([*command, str(DEPLOY / "compose.yaml")], check=False).returncode == 0
