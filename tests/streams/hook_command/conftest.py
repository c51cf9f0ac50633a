"""A stand-in for the gateway on a real socket, that does what a test tells it, and the command in its own processes."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme

HOOK = str(Path(sys.executable).parent / "traction-hook")
PAYLOAD = {"session_id": "s-1", "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}}
DENIAL = {
    "hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": "Déjà vu",
    }
}


class StandIn(ThreadingHTTPServer):
    """Answers every POST with `status` and `answer`, after `wait` is set, and remembers what it was asked.

    What was kept is answered as the gateway does, where no answer is set; it refuses lines that have `bad` in them.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = 200
        self.answer = b"{}"
        self.raw: bytes | None = None
        self.bad = b"\0"
        self.wait = threading.Event()
        self.wait.set()
        self.asked: list[tuple[str, dict[str, str], bytes]] = []

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def kept(self) -> list[dict[str, Any]]:
        """Give the payloads that came later, of all requests that were taken."""
        bodies = [body for path, _, body in self.asked if path == "/v1/hooks"]
        return [json.loads(line) for body in bodies for line in body.splitlines()]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that left."""


class _Handler(BaseHTTPRequestHandler):
    server: StandIn

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append((self.path, dict(self.headers), body))
        self.server.wait.wait(30)
        if self.server.raw is not None:
            self.wfile.write(self.server.raw)
            return
        answer = self.server.answer
        if self.path == "/v1/hooks" and answer == b"{}":
            refused = [n for n, line in enumerate(body.splitlines()) if self.server.bad in line]
            answer = json.dumps({"accepted": len(body.splitlines()) - len(refused), "refused": refused}).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Keep still."""


@pytest.fixture
def gateway():
    """A stand-in that listens."""
    server = StandIn()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield server
    server.wait.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def secure(gateway, tmp_path):
    """The stand-in behind TLS: its address, and the file with the authority that signed its certificate."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    gateway.socket = context.wrap_socket(gateway.socket, server_side=True)
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    return f"https://localhost:{gateway.server_address[1]}", str(tmp_path / "authority.pem")


@pytest.fixture
def nowhere():
    """A port at which nobody listens, and nobody will while the test runs."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}"


class Counts(dict[str, int]):
    """Counts by name, of which those that are not there are 0."""

    def __missing__(self, name: str) -> int:
        return 0


class Hook:
    """Runs the command with a spool of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "spool"

    def environment(self, **more: str) -> dict[str, str]:
        """Give the environment that it runs in; nothing of the tester's settings is in it.

        Its time-out is so long that a busy machine changes nothing, unless a test is about time-outs.
        """
        own = {name: value for name, value in os.environ.items() if not name.startswith("TRACTION_")}
        return {**own, "TRACTION_SPOOL_DIR": str(self.folder), "TRACTION_HOOK_TIMEOUT_MS": "10000", **more}

    def run(
        self, *arguments: str, stdin: bytes | None = None, seconds: float = 60, **more: str
    ) -> subprocess.CompletedProcess[bytes]:
        """Run it to its end."""
        given = json.dumps(PAYLOAD).encode() if stdin is None else stdin
        command = [HOOK, *arguments]
        return subprocess.run(
            command, input=given, capture_output=True, timeout=seconds, env=self.environment(**more), check=False
        )

    def flushed(self, url: str) -> dict[str, int]:
        """Send what is kept, and give what is told of that and is not zero."""
        told = self.run("--flush", "--gateway", url).stdout.decode().removesuffix("\n").split("; ")
        counts = {name: int(count.removesuffix(" bytes")) for name, _, count in (each.partition(": ") for each in told)}
        return Counts({name: count for name, count in counts.items() if count})

    def lines(self) -> list[dict[str, Any]]:
        """Give what is kept."""
        files = sorted((self.folder / "hooks").glob("*.ndjson")) + sorted((self.folder / "hooks").glob("current"))
        return [json.loads(line) for file in files for line in file.read_bytes().splitlines()]


@pytest.fixture
def hook(tmp_path):
    """The command, with a spool of its own."""
    return Hook(tmp_path)
