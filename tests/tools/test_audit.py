"""The audit of dependencies: what is known is told, what could not be asked is no success."""

from __future__ import annotations

import datetime as dt
import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.tools.audit import (
    EXIT_FOUND,
    EXIT_NOT_ASKED,
    IGNORED,
    LOCKS,
    NotAsked,
    Weakness,
    _first,
    audit,
    ignored,
    of_npm,
    of_python,
)

HASH = "0" * 64

TODAY = dt.date(2026, 3, 1)


class Register(BaseHTTPRequestHandler):
    """A register of weaknesses that knows one, of one package."""

    def do_POST(self) -> None:
        """Answer as OSV does."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        known = {
            "id": "GHSA-aaaa-bbbb-cccc",
            "aliases": ["CVE-2026-0001"],
            "summary": "It leaks.",
            "details": "It leaks.",
            "affected": [
                {
                    "package": {"name": "leaky", "ecosystem": "PyPI"},
                    "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "2.0"}]}],
                }
            ],
        }
        body = json.dumps({"vulns": [known]} if asked["package"]["name"] == "leaky" else {}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is http.server's
        """Say nothing."""


@contextmanager
def register() -> Iterator[str]:
    """Run the register, and give its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Register)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/query"
    finally:
        server.shutdown()
        server.server_close()


def pip_audit(url: str) -> list[str]:
    """Give the real tool, which asks a register of ours."""
    return [sys.executable, "-m", "pip_audit", "--vulnerability-service", "osv", "--osv-url", url, "--timeout", "10"]


@pytest.fixture
def lock(tmp_path: Path) -> Callable[..., Path]:
    """Give a writer of locks."""

    def write(*names: str) -> Path:
        file = tmp_path / "requirements.lock"
        file.write_text("".join(f"{name}==1.0 \\\n    --hash=sha256:{HASH}\n" for name in names))
        return file

    return write


def test_what_is_known_of_a_package_is_told(lock: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Package, version, ids and the version that mends it; the other one is no reason to fail."""
    with register() as url:
        found = of_python(pip_audit(url), lock("sound", "leaky"))
    assert audit({"a.lock": lambda: found}, {}) == EXIT_FOUND
    told = capsys.readouterr().out
    assert "a.lock: leaky 1.0: CVE-2026-0001, GHSA-aaaa-bbbb-cccc: fixed in 2.0" in told
    assert "a.lock: 1 known weakness\n" in told
    assert audit({"a.lock": lambda: found}, {"GHSA-aaaa-bbbb-cccc": "not used"}) == 0
    told = capsys.readouterr().out
    assert "let pass, not used" in told
    assert "a.lock: no known weakness\n" in told


def test_a_register_that_cannot_be_reached_is_no_success(
    lock: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """One line says so, without a stack of Python's."""
    asking = {"a.lock": lambda: of_python(pip_audit("http://127.0.0.1:1/v1/query"), lock("sound"))}
    assert audit(asking, {}) == EXIT_NOT_ASKED
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("audit: could not run: a.lock: ")
    assert "Connection refused" in line


@pytest.fixture
def saying(tmp_path: Path) -> Callable[..., list[str]]:
    """Give a maker of stand-ins for a tool, which says something and ends with a code."""

    def make(said: object, code: int = 0, errors: str = "") -> list[str]:
        text = said if isinstance(said, str) else json.dumps(said)
        file = tmp_path / "tool.py"
        file.write_text(f"import sys\nprint({text!r})\nsys.stderr.write({errors!r})\nsys.exit({code})\n")
        return [sys.executable, str(file)]

    return make


def test_a_mirror_without_answers_is_no_success(lock: Callable[..., Path], saying: Callable[..., list[str]]) -> None:
    """pip-audit calls a package that the index does not know skipped, and ends with 0 when it has skipped them all."""
    skipped = {"dependencies": [{"name": "sound", "skip_reason": "Dependency not found on PyPI"}], "fixes": []}
    with pytest.raises(NotAsked, match="no answer for 1 of 1 packages, sound"):
        of_python(saying(skipped), lock("sound"))


def test_a_tool_that_fails_is_no_success(lock: Callable[..., Path], saying: Callable[..., list[str]]) -> None:
    """Its last words are told; a tool that is not there is named."""
    with pytest.raises(NotAsked, match=r"ended with 3: it is late$"):
        of_python(saying("", 3, "well\nit is late\n"), lock("sound"))
    with pytest.raises(NotAsked, match="no-such-tool is missing"):
        of_npm(["no-such-tool"], LOCKS[0].parent)


def test_what_npm_knows_is_told_once(saying: Callable[..., list[str]], tmp_path: Path) -> None:
    """A package that only needs one with a weakness is not counted; npm ends with 1 then, which is no failure."""
    via = {"title": "It leaks", "url": "https://github.com/advisories/GHSA-dddd-eeee-ffff", "severity": "low"}
    said = {"vulnerabilities": {"a": {"range": "<2", "via": [via]}, "b": {"range": "*", "via": ["a"]}}}
    assert of_npm(saying(said, 1), tmp_path) == [Weakness("a <2", ("GHSA-dddd-eeee-ffff",), "It leaks")]
    assert of_npm(saying({"vulnerabilities": {}}), tmp_path) == []
    with pytest.raises(NotAsked, match="405 Method Not Allowed"):
        of_npm(saying({"message": "405 Method Not Allowed"}, 1), tmp_path)


def none() -> list[Weakness]:
    """Know of nothing."""
    return []


def one() -> list[Weakness]:
    """Know of a weakness."""
    return [Weakness("x 1", ("GHSA-x",), "fixed in 2")]


def unknown() -> list[Weakness]:
    """Reach nobody."""
    raise NotAsked("nobody is there")


@pytest.mark.parametrize(
    ("asking", "code"),
    [
        ([none, none], 0),
        ([none, unknown], EXIT_NOT_ASKED),
        ([unknown, none], EXIT_NOT_ASKED),
        ([one, unknown], EXIT_FOUND),
        ([unknown, one], EXIT_FOUND),
        ([none, one], EXIT_FOUND),
    ],
)
def test_the_worst_answer_decides(asking: list[Callable[[], list[Weakness]]], code: int) -> None:
    """A weakness that is known fails, whatever else could not be asked."""
    assert audit({str(number): ask for number, ask in enumerate(asking)}, {}) == code


def test_what_is_let_pass_has_a_reason_and_an_end(tmp_path: Path) -> None:
    """On its last day it is still let pass, on the next it counts again; without either it is an error."""
    file = tmp_path / "audit.toml"
    file.write_text(f'[GHSA-x]\nreason = "not used"\nuntil = {TODAY}\n')
    assert ignored(file, TODAY) == {"GHSA-x": "not used (until 2026-03-01)"}
    assert ignored(file, TODAY + dt.timedelta(days=1)) == {}
    for entry in ('reason = "not used"', f"until = {TODAY}", f'reason = ""\nuntil = {TODAY}'):
        file.write_text(f"[GHSA-x]\n{entry}\n")
        with pytest.raises(ValueError, match="GHSA-x"):
            ignored(file, TODAY)


def test_the_files_of_this_checkout_can_be_read() -> None:
    """The list of what is let pass is well-formed, and the lock has requirements with hashes."""
    assert isinstance(ignored(IGNORED, dt.datetime.now(dt.UTC).date()), dict)
    assert "--hash=sha256:" in _first(LOCKS[0].read_text("utf-8"))
