"""What installs the tools looks whether those that are there can be used; here with stand-ins for all of them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "install.sh"
VERSIONS = {"node": "v22.0.0", "go": "go1.24.0", "javac": "javac 21.0.1", "cargo": "cargo 1.90.0 (abc 2026-01-01)"}
OTHERS = (
    *("promtool", "amtool", "kcat", "jq", "npm", "mvn", "cc", "make", "systemd-analyze"),
    *("kustomize", "python3.12"),
)
BASIC = ("cut", "dirname", "grep", "head", "id", "sort", "tr")
PYTHON = SCRIPT.with_name("python.sh")


def install(folder: Path, *, without: str = "", **scripts: str) -> subprocess.CompletedProcess[str]:
    """Run it where every tool but one is a stand-in, which tells a version or is another script, and no real one is."""
    found = {name: f"echo '{VERSIONS.get(name, name)}'" for name in (*VERSIONS, *OTHERS)} | scripts
    found.pop(without, None)
    for name, script in found.items():
        file = folder / name
        file.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
        file.chmod(0o755)
    for name in BASIC:
        there = shutil.which(name)
        assert there is not None
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(there)
    environment = {"PATH": str(folder), "HOME": str(folder)}
    return subprocess.run(["/bin/sh", SCRIPT], env=environment, capture_output=True, text=True, check=False, timeout=60)


NONE_CHOSEN = "[ -e $HOME/chosen ] && echo 'cargo 1.90.0' || { echo 'rustup could not choose a version' >&2; exit 1; }"


def test_tools_that_are_there_will_do(tmp_path: Path) -> None:
    """Where all are there and new enough, nothing is done; one that is too old is named with what is needed."""
    done = install(tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    old = install(tmp_path, cargo="echo 'cargo 1.84.1'")
    assert (old.returncode, "Rust is 1.84.1, and 1.85" in old.stderr) == (1, True)


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("promtool", "prometheus"),
        ("amtool", "prometheus-alertmanager"),
        ("node", "nodejs"),
        ("systemd-analyze", "systemd"),
    ],
)
def test_a_tool_that_is_missing(tmp_path: Path, name: str, package: str) -> None:
    """Where nothing can be installed, its package is named, and no other."""
    done = install(tmp_path, without=name)
    told = f"test-tools: install {package} (or run make test-tools as root on Debian or Ubuntu)\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", told)


@pytest.mark.parametrize(
    ("listed", "code"), [("stable-x86_64-unknown-linux-gnu (active)", 0), ("no installed toolchains", 1)]
)
def test_rustup_without_a_default(tmp_path: Path, listed: str, code: int) -> None:
    """A toolchain that rustup has is made the default; where it has none, it is said what to do."""
    rustup = f"[ $1 = toolchain ] && echo '{listed}'; [ $1 = default ] && echo $2 >$HOME/chosen || true"
    done = install(tmp_path, cargo=NONE_CHOSEN, rustup=rustup)
    assert done.returncode == code
    if code:
        assert all(part in done.stderr for part in ("rustup default stable", "RUSTUP_HOME"))
    else:
        assert (tmp_path / "chosen").read_text("utf-8") == "stable-x86_64-unknown-linux-gnu\n"
        assert "stable-x86_64-unknown-linux-gnu" in done.stdout


def newer(folder: Path, **scripts: str) -> subprocess.CompletedProcess[str]:
    """Look for a newer Python where each of these is a stand-in, and every other that it may be does not start."""
    for name in ("python3.14", "python3.13", "python3.12", "apt-get"):
        (folder / name).write_text(f"#!/bin/sh\n{scripts.get(name, 'exit 1')}\n", "utf-8")
        (folder / name).chmod(0o755)
    environment = {"PATH": f"{folder}:/usr/bin:/bin"}
    return subprocess.run(
        ["/bin/sh", PYTHON], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=60
    )


def test_a_newer_python_that_is_there_will_do(tmp_path: Path) -> None:
    """The newest that starts is told, and nothing is fetched; where there is none to be had, it is said what to do."""
    found = newer(tmp_path, **{"python3.13": "exit 0", "python3.12": "exit 0"})
    assert (found.returncode, found.stdout, found.stderr) == (0, f"{tmp_path}/python3.13\n", "")
    none = newer(tmp_path)
    assert (none.returncode, none.stdout) == (1, "")
    assert "install Python 3.12 or newer" in none.stderr
