"""What the programs that measure have in common: their help, and how they end when nobody can have their figures."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench import spin_score

ROOT = Path(__file__).parents[2]
SMALL = ["-m", "tests.bench.skew", "--sessions", "10", "--partitions", "2", "--workers", "1", "--trials", "1"]
PROGRAMS = (
    *(
        "burst",
        "flows",
        "growth",
        "hook",
        "micro",
        "partitions",
        "recovery",
        "skew",
        "spin_score",
        "state_bytes",
        "texts",
    ),
    "engines",
)


@pytest.mark.parametrize("name", PROGRAMS)
def test_help_says_how_to_start_it(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Usage begins with what is to be typed."""
    module = importlib.import_module(f"tests.bench.{name}" if name != "engines" else "tests.bench.engines.compare")
    with pytest.raises(SystemExit) as ended:
        module.main(["--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: python -m tests.bench.{name} ")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk that is always full")
@pytest.mark.parametrize("options", [SMALL, [*SMALL[:2], "--help"]])
def test_a_full_disk_is_told(options: list[str]) -> None:
    """Figures and help that cannot be written end with 1 and one line, without a traceback."""
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run([sys.executable, *options], cwd=ROOT, stdout=full, stderr=subprocess.PIPE, check=False)
    assert ended.returncode == 1
    told = [line for line in ended.stderr.decode().splitlines() if not line.startswith("hashing")]
    assert told == ["standard output cannot be written to: No space left on device"]


def test_a_reader_that_left_is_told() -> None:
    """A closed pipe ends with 141 and one line."""
    with subprocess.Popen(
        [sys.executable, *SMALL], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        told = running.stderr.read().decode().splitlines()
    assert running.returncode == 141
    assert told[1:] == ["standard output cannot be written to: Broken pipe"]


def test_no_rounds_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """The score cannot be measured in no rounds."""
    with pytest.raises(SystemExit) as ended:
        spin_score.main(["--rounds", "0"])
    assert ended.value.code == 2
    assert "--rounds" in capsys.readouterr().err.splitlines()[-1]
