"""Environments of their own for the frameworks, beside the project's: locked, and built when their lock changes."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NEEDS_NEWER = {"openhands"}
"""What needs Python 3.12, which need not be the one of the project's environment."""


def python_for(name: str) -> str:
    """Give the Python to make an environment with."""
    if name not in NEEDS_NEWER:
        return sys.executable
    told = subprocess.run(
        [ROOT / "tests" / "tools" / "python.sh"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    return str(ROOT / told.stdout.strip())


def build(name: str) -> Path:
    """Give the Python of an environment with what an extra needs."""
    lock = HERE / "locks" / f"{name}.lock"
    place = Path(sys.prefix).with_name(f".venv-{name}")
    python, stamp = place / "bin" / "python", place / "lock.sha256"
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()
    # What it was made with may have gone (`make clean`).
    if not python.exists() or not stamp.exists() or stamp.read_text("ascii") != digest:
        uv = [str(Path(sys.executable).with_name("uv")), "--no-config", "--quiet"]
        subprocess.run([*uv, "venv", "--clear", "--python", python_for(name), str(place)], check=True)
        wanted = ["--require-hashes", "--requirement", str(lock)]
        subprocess.run([*uv, "pip", "install", "--python", str(python), *wanted], check=True)
        stamp.write_text(digest, "ascii")
    return python


@pytest.fixture(scope="session")
def run_in() -> Callable[[str, str], str]:
    """Give what runs a script of this folder in an environment, and gives what it prints."""

    def run(name: str, script: str) -> str:
        quiet = {
            "PYTHONPATH": str(ROOT), "OPENAI_AGENTS_DISABLE_TRACING": "1", "LANGSMITH_TRACING": "false",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENHANDS_SUPPRESS_BANNER": "1",
        }  # fmt: skip
        ran = subprocess.run(
            [build(name), str(HERE / script)],
            env={**os.environ, **quiet},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr[-2_000:]
        return ran.stdout

    return run
