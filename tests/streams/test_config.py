"""Settings from flags, environment and the TOML file: which one wins, and what a mistake in the file is told like."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeGuard

import click
import pytest
from aiokafka.conn import collect_hosts
from click.testing import CliRunner, Result

from streams import cli
from streams.cli.options import Brokers, Number, shared
from streams.cli.sections import SharedOption
from streams.config import SHARED_KEYS, Config, flag
from streams.kafka import KafkaSettings
from tests.waiting import SOON_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

COMMAND = [sys.executable, "-m", "traction"]

WITH_ID = (
    "sessions show", "sessions resume", "sessions mute", "sessions terminate", "tasks show", "tasks clear",
    "alerts wrong",
)  # fmt: skip
SEEN = {"sessions", "tasks", "alerts", "forget", "fitness", "dead-letters"}
"""Commands that look things up on the topics."""

UNDERSCORES = str.maketrans(" -", "__")
LETTERS = {"dead-letters list": [], "dead-letters show": ["0@0"], "dead-letters replay": ["0@0"]}
PATHS = {
    "replay": ["--to-kafka", "recordings"],
    "follow": ["recordings"],
    "forget": ["session", "an-id"],
    "topics plan-partitions": ["8"],
    **{name: ["an-id"] for name in WITH_ID},
    **LETTERS,
}
"""What a command cannot do without."""


def leaves(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """Give the commands that do something, with their names as they are typed."""
    if isinstance(command, click.Group):
        for inner_name, subcommand in command.commands.items():
            yield from leaves(f"{name} {inner_name}", subcommand)
    else:
        yield name, command


def every_command() -> Iterator[tuple[str, click.Command]]:
    """Give all commands that do something."""
    for name in cli.COMMANDS:
        command = cli.traction.get_command(click.Context(cli.traction), name)
        assert command is not None
        yield from leaves(name, command)


def is_number(option: click.Parameter) -> TypeGuard[click.Option]:
    """Tell whether an option takes a number that need not be whole."""
    return isinstance(option, click.Option) and isinstance(option.type, click.types.FloatParamType)


LEAVES = list(every_command())


@click.group(invoke_without_command=True)
@shared("--bootstrap", "Where.", default="default:1", type=Brokers())
@click.option("--port", type=click.IntRange(0, 65535), default=1)
@click.option("--wait", "seconds", type=Number(0), default=0.0)
@click.option("--loud/--quiet")
@click.option("--kind", type=click.Choice(["red", "green"]), default="red")
@click.option("--topic-name", "topics", multiple=True)
@click.pass_context
def probe(ctx: click.Context, /, **settings: object) -> None:
    """Print the settings."""
    if ctx.invoked_subcommand is None:
        click.echo(json.dumps(settings))


@probe.command()
@shared("--bootstrap", "Where.", default="default:1", type=Brokers())
@click.option("--partitions", type=int, default=1)
@click.pass_obj
def inner(config: Config, /, **settings: object) -> None:
    """Print the settings and the limits."""
    click.echo(json.dumps({**settings, "limits": dict(config.limits)}))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Result]:
    """Give a way to run the probe with a configuration file, arguments and an environment."""
    module = ModuleType("probe_of_the_settings")
    vars(module)["probe"] = probe
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(cli.COMMANDS, "probe", cli.Entry(f"{module.__name__}:probe", "Print the settings."))

    def invoke(toml: str | None, *arguments: str, environment: dict[str, str] | None = None) -> Result:
        file = tmp_path / "traction.toml"
        file.write_text(toml or "")
        options = [] if toml is None else ["--config", str(file)]
        return CliRunner().invoke(cli.traction, [*options, "probe", *arguments], env=environment)

    return invoke


def settings(result: Result) -> dict[str, Any]:
    """Read what the probe printed."""
    assert result.exit_code == 0, result.output
    printed: dict[str, Any] = json.loads(result.stdout)
    return printed


def test_each_source_wins_over_the_next(run: Callable[..., Result]) -> None:
    """Flag, the command's variable, the shared variable, the command's table, the shared table, the default."""
    toml = '[traction]\nbootstrap = "shared-table:1"\n'
    own = f'{toml}[probe]\nbootstrap = "own-table:1"\n'
    for_all = {"TRACTION_BOOTSTRAP": "shared-variable:1"}
    both = {**for_all, "TRACTION_PROBE_BOOTSTRAP": "own-variable:1"}
    assert settings(run(None))["bootstrap"] == "default:1"
    assert settings(run(toml))["bootstrap"] == "shared-table:1"
    assert settings(run(own))["bootstrap"] == "own-table:1"
    assert settings(run(own, environment=for_all))["bootstrap"] == "shared-variable:1"
    assert settings(run(own, environment=both))["bootstrap"] == "own-variable:1"
    assert settings(run(own, "--bootstrap", "flag:1", environment=both))["bootstrap"] == "flag:1"


def test_a_subcommand_has_its_own_table(run: Callable[..., Result]) -> None:
    """`[probe.inner]` sets what `probe inner` takes; the shared table reaches it too; limits are handed on."""
    toml = '[traction]\nbootstrap = "b:1"\n[probe.inner]\npartitions = 7\n[limits]\n"identical.warn" = 3\n'
    assert settings(run(toml, "inner")) == {"bootstrap": "b:1", "partitions": 7, "limits": {"identical.warn": 3}}
    variable = {"TRACTION_PROBE_INNER_PARTITIONS": "8"}
    assert settings(run(toml, "inner", environment=variable))["partitions"] == 8


def test_every_type_of_option_can_be_set(run: Callable[..., Result]) -> None:
    """Integers, numbers, flags, choices and lists come through; keys are the flags' names with _ for -."""
    toml = '[probe]\nport = 2\nwait = 3\nloud = true\nkind = "green"\ntopic_name = ["a", "b"]\n'
    printed = settings(run(toml))
    assert (printed["port"], printed["seconds"], printed["loud"], printed["kind"]) == (2, 3.0, True, "green")
    assert printed["topics"] == ["a", "b"]


def test_variables_are_named_after_flags(run: Callable[..., Result]) -> None:
    """TRACTION_COMMAND_FLAG works for every option, also where the code calls its value something else."""
    assert settings(run(None, environment={"TRACTION_PROBE_WAIT": "4"}))["seconds"] == 4.0
    assert settings(run(None, environment={"TRACTION_PROBE_TOPIC_NAME": "a b"}))["topics"] == ["a", "b"]


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ("[prob]", "there is no table [prob]; did you mean `probe`?"),
        ("[zzzz]", "there is no table [zzzz]; known are: "),
        ("port = 3", "`port` stands outside of any table; put it under [traction] or a command"),
        ("probe = 3", "`probe` is a value; make it a table, [probe]"),
        ("[traction]\nport = 3", "table [traction] has no key `port`; known are: "),
        ("[traction]\nbootstrap = 3", 'table [traction] wants a string for `bootstrap`; write bootstrap = "..."'),
        ('[traction]\nstall_seconds = "3"', "table [traction] wants a number for `stall_seconds`; write "),
        ("[traction]\nstall_seconds = true", "table [traction] wants a number for `stall_seconds`; write "),
        ("[probe]\nprot = 3", "table [probe] has no key `prot`; did you mean `port`?"),
        ("[probe]\ntopic-name = []", "table [probe] has no key `topic-name`; did you mean `topic_name`?"),
        ("[probe]\nhelp = true", "table [probe] has no key `help`; known are: "),
        ('[probe]\nport = "3"', "table [probe] wants an integer for `port`, not '3'; write port = 1"),
        ("[probe]\nport = true", "table [probe] wants an integer for `port`, not True; write port = 1"),
        ("[probe]\nport = 70000", "table [probe] has a wrong `port`; 70000 is not in the range 0<=x<=65535."),
        ('[probe]\nwait = "long"', "table [probe] wants a number for `wait`, not 'long'; write wait = 0.5"),
        ("[probe]\nloud = 1", "table [probe] wants true or false for `loud`, not 1; write loud = true"),
        ('[probe]\nkind = "blue"', "table [probe] has a wrong `kind`; 'blue' is not one of 'red', 'green'."),
        ('[probe]\ntopic_name = "a"', 'table [probe] wants an array for `topic_name`; write topic_name = ["..."]'),
        ("[probe]\ntopic_name = [1]", "table [probe] wants a string for `topic_name`, not 1; "),
        ("[probe]\ninner = 1", "table [probe] has `inner` as a value; make it a table, [probe.inner]"),
        ("[probe.inner]\nport = 1", "table [probe.inner] has no key `port`; "),
        ("[probe", "is not TOML: "),
        ("[probe]\nwait = nan", "table [probe] has a wrong `wait`; nan is no finite number."),
        ('[probe]\nbootstrap = "b"', "table [probe] has a wrong `bootstrap`; 'b' is not host:port; "),
        ('[traction]\nbootstrap = "b"', "table [traction] has a wrong `bootstrap`; 'b' is not host:port; "),
        ("[limits.identical]\nwran = 2", "table [limits]: there is no limit 'identical.wran'"),
        ('[limits]\nidentical.warn = "two"', "table [limits]: identical.warn: "),
        ("[limits.identical]\nwarn = 9\nterminate = 8", "table [limits]: "),
    ],
)
def test_mistakes_in_the_file_are_named(run: Callable[..., Result], tmp_path: Path, toml: str, words: str) -> None:
    """The message names the file, the table, the key and the way out; exit code 2; nothing is run."""
    result = run(toml)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"Error: {tmp_path / 'traction.toml'}: {words}"), result.stderr


@pytest.mark.parametrize(
    ("table", "toml", "words"),
    [
        *((name.replace(" ", "."), "no_such_key = 1", "has no key `no_such_key`; ") for name, _ in LEAVES),
        ("worker", "commit_interval = nan", "has a wrong `commit_interval`; "),
        ("worker", 'bootstrap = "b"', "has a wrong `bootstrap`; "),
        ("broker", "port = true", "wants an integer for `port`, "),
        ("broker", 'heap = "1k"', "has a wrong `heap`; "),
        ("topics.create", "partitions = 0", "has a wrong `partitions`; "),
    ],
)
def test_mistakes_in_other_commands_tables_are_named(
    run: Callable[..., Result], tmp_path: Path, table: str, toml: str, words: str
) -> None:
    """A file is checked as a whole, whatever command is run: what is wrong in it is not found when it is needed."""
    result = run(f"[{table}]\n{toml}\n")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"Error: {tmp_path / 'traction.toml'}: table [{table}] {words}"), result.stderr


def test_files_of_other_commands_may_be_elsewhere(run: Callable[..., Result], tmp_path: Path) -> None:
    """Machines may share a settings file: what a command does not read need not be there."""
    toml = f"""
[worker]
ssl_cafile = "{tmp_path / "nowhere"}"
[topics.create]
partitions = 3
ssl_cafile = "{tmp_path / "nowhere"}"
[probe]
port = 2
"""
    assert settings(run(toml))["port"] == 2
    result = CliRunner().invoke(cli.traction, ["--config", str(tmp_path / "traction.toml"), "topics", "list"])
    assert result.exit_code == 2
    assert "table [topics.create] has a wrong `ssl_cafile`" in result.stderr


def test_only_commands_with_tables_are_imported(tmp_path: Path) -> None:
    """A settings file does not make a small command load what it does not need."""
    (tmp_path / "traction.toml").write_text("[topics.create]\npartitions = 3\n")
    code = "import sys, streams.cli\ntry:\n streams.cli.main()\nfinally:\n print(sorted(sys.modules), file=sys.stderr)"
    command = [sys.executable, "-c", code, "--config", str(tmp_path / "traction.toml"), "broker", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    loaded = set(json.loads(done.stderr.replace("'", '"')))
    assert {"streams.cli.topics", "streams.cli.broker"} <= loaded
    assert not {"faust", "streams.cli.worker", "streams.cli.escalate"} & loaded


NUMBERS = [(name, option) for name, command in LEAVES for option in command.params if is_number(option)]
NO_NUMBERS = ["nan", "NaN", "-nan", "inf", "-inf", "Infinity", "1e999"]


def variable(name: str, option: click.Option) -> str:
    """Name an option's variable in the environment."""
    return f"TRACTION_{name} {flag(option)}".upper().translate(UNDERSCORES)


@pytest.mark.parametrize("number", NO_NUMBERS)
@pytest.mark.parametrize(("name", "option"), NUMBERS, ids=[f"{name} {option.opts[0]}" for name, option in NUMBERS])
def test_what_is_no_finite_number_is_refused(tmp_path: Path, name: str, option: click.Option, number: str) -> None:
    """Of every command, by flag, variable and file: wrong use that names the option, never a time that nothing ends."""
    for arguments, environment in ([f"{option.opts[0]}={number}"], {}), ([], {variable(name, option): number}):
        result = CliRunner().invoke(cli.traction, [*name.split(), *arguments, *PATHS.get(name, [])], env=environment)
        assert result.exit_code == 2
        assert f"Invalid value for '{option.opts[0]}': " in result.stderr
        assert "no finite number" in result.stderr or "not in the range" in result.stderr
    file = tmp_path / "traction.toml"
    toml = {"-nan": "-nan", "1e999": "1e999"}.get(number, number.lower().replace("infinity", "inf"))
    file.write_text(f"[{name.replace(' ', '.')}]\n{flag(option)} = {toml}\n")
    result = CliRunner().invoke(cli.traction, ["--config", str(file), *name.split(), *PATHS.get(name, [])])
    assert result.exit_code == 2
    assert f"{file}: table [{name.replace(' ', '.')}] has a wrong `{flag(option)}`; " in result.stderr


def test_every_number_is_of_the_type_that_refuses_these() -> None:
    """A new option cannot bring the other type back."""
    looking = {name for name, _ in NUMBERS if name.partition(" ")[0] in SEEN}
    assert len(looking) == 15
    assert {name for name, _ in NUMBERS} - looking == {
        *("worker", "escalate", "ingest", "bridge", "follow"),
        *("policy explain", "topics plan-partitions", "replay", "demo"),
    }  # fmt: skip
    assert [(name, option.name) for name, option in NUMBERS if not isinstance(option.type, Number)] == []


WITH_KAFKA = [name for name, command in LEAVES if any(option.name == "bootstrap" for option in command.params)]


@pytest.mark.parametrize("name", WITH_KAFKA)
@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1:notaport", "127.0.0.1", "kafka", "kafka:", ":9092", "kafka:0", "kafka:65536", "kafka:-1",
        "kafka:1.5", "kafka:9092:1", "kafka:٩٠٩٢", "kafka: 9092", "PLAINTEXT://kafka:9092", "me@kafka:9092",
        "::1", "::1:9092", "[::1]", "[::1]:", "[::1]:0", "[kafka]:9092", "[::g]:9092", "::1]:9092", "[::1:9092",
        "kafka-1:9092,kafka-2", "kafka-1:9092;kafka-2:9092", ",", " ",
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused(name: str, address: str) -> None:
    """Of every command, by flag and by variables: wrong use that names the option and shows an address."""
    arguments = [*name.split(), *PATHS.get(name, [])]
    for given, environment in (
        ([f"--bootstrap={address}"], {}),
        ([], {"TRACTION_BOOTSTRAP": address}),
        ([], {f"TRACTION_{name.upper().translate(UNDERSCORES)}_BOOTSTRAP": address}),
    ):
        result = CliRunner().invoke(cli.traction, [*arguments, *given], env=environment)
        assert result.exit_code == 2
        assert "Invalid value for '--bootstrap': " in result.stderr
        assert "for example kafka-1:9092" in result.stderr


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1:1",
        "kafka_1.internal:65535",
        "[::1]:9092",
        "[fe80::1%eth0]:9092",
        "a:1,b:2",
        "a:1,[::1]:2,",
        " a:1 , b:2",
    ],
)
def test_addresses_are_taken(run: Callable[..., Result], address: str) -> None:
    """One or several, by name or by number, with room around the commas; the client can take them apart."""
    hosts = [host for host in address.replace(" ", "").split(",") if host]
    assert settings(run(None, "--bootstrap", address))["bootstrap"] == ",".join(hosts)
    assert len(collect_hosts(KafkaSettings(bootstrap=address).hosts)) == len(hosts)


@pytest.mark.parametrize(
    ("content", "words"), [(None, "cannot be read (No such file or directory)"), (b"\xff", "is not UTF-8")]
)
def test_unreadable_file(tmp_path: Path, content: bytes | None, words: str) -> None:
    """A file that is not there or not text is named, whether a flag or the environment told of it."""
    file = tmp_path / "c.toml"
    if content is not None:
        file.write_bytes(content)
    for arguments, environment in [(["--config", str(file)], {}), ([], {"TRACTION_CONFIG": str(file)})]:
        result = CliRunner().invoke(cli.traction, [*arguments, "broker", "--port", "0"], env=environment)
        assert result.exit_code == 2
        assert result.stderr.startswith(f"Error: {file}: {words}")


def options_of(command: click.Command) -> Iterator[click.Parameter]:
    """List the options of a command and of its subcommands."""
    yield from command.params
    for subcommand in command.commands.values() if isinstance(command, click.Group) else ():
        yield from options_of(subcommand)


def test_shared_table_knows_the_shared_options() -> None:
    """Every option that the environment can set for all commands can be set for all in the file, and no other."""
    context = click.Context(cli.traction)
    found = set()
    for name in cli.COMMANDS:
        command = cli.traction.get_command(context, name)
        assert command is not None
        found |= {flag(option) for option in options_of(command) if isinstance(option, SharedOption)}
    assert found == set(SHARED_KEYS)


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_explains_itself(name: str) -> None:
    """`traction COMMAND --help` works for each, and begins with what the list of commands says of it."""
    result = CliRunner().invoke(cli.traction, [name, "--help"])
    assert result.exit_code == 0
    assert cli.COMMANDS[name].summary in " ".join(result.stdout.split())


@pytest.mark.parametrize("words", [["ingest"], ["sessions", "resume"], ["connect"]])
def test_help_tells_all_options_and_a_commands_own_first(words: list[str]) -> None:
    """What is alike for all commands stands in sections of its own, behind what this one is about; none is left out."""
    told = CliRunner().invoke(cli.traction, [*words, "--help"]).stdout
    command: click.Command | None = cli.traction
    for word in words:
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), word)
    assert command is not None
    places = {name: told.index(f"  {name} ") for option in command.params for name in option.opts if name[:2] == "--"}
    connection = [
        place for name, place in places.items() if name.startswith(("--bootstrap", "--prefix", "--sasl", "--ssl"))
    ]
    for name, place in places.items():
        if not name.startswith(("--bootstrap", "--prefix", "--s", "--page-")) or name == "--scope":
            assert all(place < other for other in connection), name
    assert ("\nConnection to Kafka:\n" in told, "\nPages:\n" in told) == (bool(connection), words == ["ingest"])


def test_help_imports_no_command() -> None:
    """`traction --help` answers at once: neither Faust nor Kafka's client is loaded for it."""
    code = "import sys, streams.cli\ntry:\n streams.cli.main()\nfinally:\n print(sorted(sys.modules), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code, "--help"], capture_output=True, text=True, timeout=30, check=True
    )
    assert "worker" in done.stdout
    assert not {"faust", "aiokafka", "aiohttp"} & set(json.loads(done.stderr.replace("'", '"')))


def test_commands_that_look_load_no_http() -> None:
    """Who serves nothing and sends nothing over HTTP starts without what that takes."""
    rest = set(cli.COMMANDS) - {"worker", "escalate", "ingest", "bridge", "follow", "policy", "sinks", "metrics"}
    modules = sorted(cli.COMMANDS[name].target.partition(":")[0] for name in rest)
    code = (
        f"import importlib, sys\nfor each in {modules}: importlib.import_module(each)\nprint('aiohttp' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert (len(modules), done.stdout) == (len(rest), "False\n")


def test_unknown_command_is_wrong_use() -> None:
    """A command that does not exist ends with 2 and is named."""
    done = subprocess.run([*COMMAND, "wrker"], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert "No such command 'wrker'" in done.stderr


def test_ctrl_c_ends_with_130_and_no_traceback(tmp_path: Path) -> None:
    """An interrupted command says nothing of Python's insides, and its exit code is the shell's for Ctrl-C."""
    (tmp_path / "sleeper.py").write_text(
        "import click, time\n@click.command()\ndef sleeper():\n    print('asleep', flush=True)\n    time.sleep(60)\n"
    )
    code = (
        "import streams.cli as c; c.COMMANDS['sleeper'] = c.Entry('sleeper:sleeper', 'Sleep.'); "
        "import sys; sys.argv = ['traction', 'sleeper']; c.main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "asleep\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=SOON_SECONDS)
    assert process.returncode == 130
    assert "Traceback" not in errors
