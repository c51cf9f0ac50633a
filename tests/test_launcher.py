"""The `traction` command refuses to run with somebody else's `schemas`, `detectors` or `streams`, in plain words."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import ModuleType

import pytest

import traction

ROOT = Path(traction.__file__).resolve().parent

COMMAND = Path(sysconfig.get_path("scripts")) / "traction"

SHAPES = ["package", "module"]


def launch(
    *command: str | Path, pythonpath: str | Path | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command with nothing of ours on PYTHONPATH."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    if pythonpath is not None:
        environment["PYTHONPATH"] = str(pythonpath)
    return subprocess.run(
        [str(part) for part in command],
        env=environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def write(directory: Path, name: str, shape: str) -> Path:
    """Write somebody else's package or module, which tells on stdout that it was run."""
    source = f"print('{name} of somebody else was run')\n"
    if shape == "module":
        path = directory / f"{name}.py"
        path.write_text(source)
        return path
    path = directory / name
    path.mkdir()
    (path / "__init__.py").write_text(source)
    return path


def assert_refused(done: subprocess.CompletedProcess[str], name: str, place: Path, ours: Path) -> None:
    """The message names what was found, what should have been, and a remedy; nothing of it was run."""
    assert done.returncode == traction.EXIT_BROKEN_INSTALLATION
    assert done.stdout == ""
    first, second, third = done.stderr.splitlines()
    assert first == f"traction: `import {name}` finds {place}"
    assert second == f"  instead of ours, {ours}"
    assert third.startswith("  remedy: ")


@pytest.fixture(scope="session")
def wheel_installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel and install it, without what it depends on."""
    directory = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(directory)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=100)
    (wheel,) = directory.glob("traction-*.whl")
    site = directory / "site-packages"
    install = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--quiet", "--target", str(site)]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True, timeout=100)
    return site


@pytest.fixture
def installation(tmp_path: Path, wheel_installed: Path) -> Path:
    """Give an installation of one's own to spoil: a directory to put on Python's path."""
    site = tmp_path / "site-packages"
    shutil.copytree(wheel_installed, site)
    return site


def test_wheel_has_everything_that_the_code_reads(wheel_installed: Path) -> None:
    """Data files beside the code (locks, generated schemas, examples) are installed with it, and the tests are not."""
    for name in traction.PACKAGES:
        here = {path.relative_to(ROOT) for path in (ROOT / name).rglob("*") if path.is_file() and path.suffix != ".pyc"}
        there = {path.relative_to(wheel_installed) for path in (wheel_installed / name).rglob("*") if path.is_file()}
        assert {path for path in there if path.suffix != ".pyc"} == here
    assert not (wheel_installed / "tests").exists()


@pytest.mark.parametrize("command", [[COMMAND], [sys.executable, "-m", "traction"]], ids=["command", "module"])
def test_runs_when_nothing_shadows(command: list[str | Path], tmp_path: Path) -> None:
    """The command and `python -m traction` both run, from any directory."""
    done = launch(*command, "--version", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "traction, version 0.1.0\n", "")


def test_ctrl_c_during_the_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever interrupts before the command line is there sees no traceback either."""

    class Interrupted(ModuleType):
        def __getattr__(self, name: str) -> None:
            raise KeyboardInterrupt

    monkeypatch.setattr(traction, "faults", list)
    monkeypatch.setitem(sys.modules, "streams.cli", Interrupted("streams.cli"))
    with pytest.raises(SystemExit) as ended:
        traction.main()
    assert ended.value.code == 130


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", traction.PACKAGES)
def test_shadow_on_pythonpath(tmp_path: Path, name: str, shape: str) -> None:
    """A package or module of the same name on PYTHONPATH is found out, whatever it is."""
    place = write(tmp_path, name, shape)
    done = launch(COMMAND, "--version", pythonpath=tmp_path)
    assert_refused(done, name, place, ROOT / name)
    assert f"take {tmp_path} off PYTHONPATH" in done.stderr


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", traction.PACKAGES)
def test_shadow_in_the_current_directory(tmp_path: Path, name: str, shape: str) -> None:
    """`python -m traction` looks into the current directory first, where a project may have such a package."""
    place = write(tmp_path, name, shape)
    done = launch(sys.executable, "-m", "traction", "--version", cwd=tmp_path)
    assert_refused(done, name, place, ROOT / name)
    assert launch(COMMAND, "--version", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", traction.PACKAGES)
def test_shadow_by_another_distribution(tmp_path: Path, installation: Path, name: str, shape: str) -> None:
    """Another distribution earlier on the path is found out from an installation too, with the remedy for it."""
    other = tmp_path / "dist-packages"
    other.mkdir()
    place = write(other, name, shape)
    done = launch(sys.executable, "-P", "-m", "traction", "--version", pythonpath=f"{other}{os.pathsep}{installation}")
    assert_refused(done, name, place, installation / name)
    assert "uninstall the other distribution" in done.stderr


@pytest.mark.parametrize("name", traction.PACKAGES)
def test_missing_package(installation: Path, name: str) -> None:
    """A package that is not there is named, with the place where it should be; a folder of that name is none."""
    shutil.rmtree(installation / name)
    done = launch(sys.executable, "-P", "-m", "traction", "--version", pythonpath=installation)
    assert done.returncode == traction.EXIT_BROKEN_INSTALLATION
    assert done.stderr.startswith(f"traction: the package `{name}` is missing: it should be in {installation / name}\n")
    (installation / name).mkdir()
    assert launch(sys.executable, "-P", "-m", "traction", pythonpath=installation).stderr == done.stderr


@pytest.mark.parametrize("name", traction.PACKAGES)
def test_folder_without_code_shadows_nothing(tmp_path: Path, name: str) -> None:
    """A mere folder of that name (a project's `schemas/`) comes after any package, and must not stop the command."""
    (tmp_path / name).mkdir()
    assert launch(sys.executable, "-m", "traction", "--version", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("name", traction.PACKAGES)
def test_distribution_installed_over_ours(installation: Path, name: str) -> None:
    """Another distribution that wrote its files over ours is found out by the sums that the installation recorded."""
    command = [sys.executable, "-P", "-m", "traction", "--version"]
    assert launch(*command, pythonpath=installation).returncode == 0
    (installation / name / "__init__.py").write_text("print('of somebody else')\n")
    done = launch(*command, pythonpath=installation)
    assert done.returncode == traction.EXIT_BROKEN_INSTALLATION
    assert done.stderr.startswith(
        f"traction: another distribution has been installed over our package `{name}` in {installation / name}\n"
    )


def test_several_shadows_are_all_named(tmp_path: Path) -> None:
    """Whoever has several of them sees it at once, not one after the other."""
    for name in traction.PACKAGES:
        write(tmp_path, name, "module")
    done = launch(COMMAND, "--version", pythonpath=tmp_path)
    assert [line for line in done.stderr.splitlines() if line.startswith("traction: ")] == [
        f"traction: `import {name}` finds {tmp_path / f'{name}.py'}" for name in traction.PACKAGES
    ]
