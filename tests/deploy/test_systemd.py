"""The units: systemd takes them, they are closed as far as can be, and what they start is ours."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from streams.escalation import process as escalation
from streams.gateway import bridge_process
from streams.gateway import process as gateway
from streams.worker.settings import WorkerSettings
from tests.deploy.composed import DEPLOY
from tests.deploy.test_compose import leaf, variables

FOLDER = DEPLOY / "systemd"
UNITS = {
    "traction-worker@.service": WorkerSettings().away_timeout,
    "traction-escalate.service": 1.5 * escalation.STOP_SECONDS,
    "traction-bridge.service": 1.5 * bridge_process.STOP_SECONDS,
    "traction-ingest.service": gateway.STOP_SECONDS + gateway.CLOSE_SECONDS,
}
"""Each unit, and how many seconds what it starts may take to end."""

EXPOSURE = 20
"""The most that `systemd-analyze security` may give, of 100: a service without any protection has 96."""


def keys(unit: str) -> list[tuple[str, str]]:
    """Give the lines of a unit that set something."""
    lines = (FOLDER / unit).read_text("utf-8").splitlines()
    return [(key, value) for line in lines if line[:1] not in {"#", "", "["} for key, _, value in [line.partition("=")]]


def one(unit: str, key: str) -> str:
    """Give a value that is set once."""
    (value,) = [its for name, its in keys(unit) if name == key]
    return value


def set_for_all() -> dict[str, str]:
    """Give the variables of the example of settings."""
    lines = (FOLDER / "traction.env").read_text("utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line[:1] not in {"#", ""})


def test_no_unit_is_forgotten() -> None:
    """All that there are are looked at here."""
    assert {file.name for file in FOLDER.glob("*.service")} == set(UNITS)


@pytest.mark.parametrize("unit", UNITS)
def test_commands_and_variables_are_ours(unit: str) -> None:
    """A command that is there, with options and variables that it reads; a directory and passwords that it is given."""
    started = one(unit, "ExecStart").replace("%i", "1").replace("%H", "host")
    program, *words = shlex.split(started)
    assert program == "/opt/traction/bin/traction", "as docs/deployment.md installs it"
    own = dict(value.split("=", 1) for key, value in keys(unit) if key == "Environment")
    known = variables(leaf(words))
    assert set(own) <= known
    assert set(set_for_all()) - known <= {"TRACTION_POLICY"}, "of workers and the escalation consumer"
    given = {value.split(":", 1)[0] for key, value in keys(unit) if key == "LoadCredential"}
    assert {value.removeprefix("%d/") for value in own.values() if value.startswith("%d/")} == given
    options = dict(word.split("=", 1) for word in words if "=" in word)
    if "--state-dir" in options:
        assert Path(options["--state-dir"]).parent == Path("/var/lib") / one(unit, "StateDirectory").replace("%i", "1")


@pytest.mark.parametrize("unit", UNITS)
def test_there_is_time_to_end(unit: str) -> None:
    """It is killed later than the process needs at the longest, and starts it again but for wrong settings."""
    assert int(one(unit, "TimeoutStopSec")) > UNITS[unit] + 5
    assert (one(unit, "Restart"), one(unit, "RestartPreventExitStatus")) == ("always", "2")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Give a directory that looks like a machine on which it is installed."""
    units = tmp_path / "etc" / "systemd" / "system"
    units.mkdir(parents=True)
    for program in ("opt/traction/bin/traction", "bin/kill"):
        (tmp_path / program).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy("/bin/true", tmp_path / program)
    for unit in UNITS:
        shutil.copy(FOLDER / unit, units / unit)
    return tmp_path


def analyze(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Ask systemd about all units."""
    units = [unit.replace("@.", "@1.") for unit in UNITS]
    command = ["systemd-analyze", *words, f"--root={root}", *units]
    return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.mark.tools
def test_systemd_takes_them(root: Path) -> None:
    """Without a word; a misspelt key would be one."""
    done = analyze(root, "verify", "--recursive-errors=no")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    unit = root / "etc" / "systemd" / "system" / "traction-ingest.service"
    unit.write_text(unit.read_text("utf-8").replace("PrivateTmp", "PrivateTemp"))
    assert "PrivateTemp" in analyze(root, "verify", "--recursive-errors=no").stderr


@pytest.mark.tools
def test_they_may_do_nothing_more_than_they_must(root: Path) -> None:
    """By systemd's own count."""
    done = analyze(root, "security", "--offline=true", f"--threshold={EXPOSURE}")
    assert done.returncode == 0, done.stdout[-500:]
    unit = root / "etc" / "systemd" / "system" / "traction-ingest.service"
    unit.write_text(unit.read_text("utf-8").partition("DynamicUser")[0])
    assert analyze(root, "security", "--offline=true", f"--threshold={EXPOSURE}").returncode != 0
