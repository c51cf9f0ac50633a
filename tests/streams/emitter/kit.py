"""A gateway for tests: a real HTTP server that reads events as the gateway does, and keeps what it was told."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

from schemas.decode import decode
from schemas.invalid import InvalidEvent
from schemas.topics import SESSION_INPUTS

if TYPE_CHECKING:
    from collections.abc import Callable

TOPICS = {topic.name: topic for topic in SESSION_INPUTS}


class GatewayStub:
    """Takes events until told otherwise.

    Attributes:
        events: each that was taken, in order, repeated ones included.
        batches: how many events each request had.
        headers: those of the latest request.
        said: answers to verdicts.
        verdicts: what to tell of sessions.
        status: in the place of 200; 0 takes the events and gives no answer.
        token: that requests must bear.
    """

    def __init__(self, port: int = 0) -> None:
        self.events: list[Any] = []
        self.batches: list[int] = []
        self.headers: dict[str, str] = {}
        self.said: list[dict[str, Any]] = []
        self.verdicts: dict[str, dict[str, Any]] = {}
        self.status = 200
        self.token = ""
        self.before: Callable[[], object] = lambda: None
        self.came = threading.Condition()
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                stub.answer(self)

            def do_GET(self) -> None:
                stub.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def ids(self) -> list[str]:
        """The ids of what was taken."""
        return [event.event_id for event in self.events]

    def arrived(self, count: int, seconds: float = 60) -> None:
        """Wait until so many different events were taken."""
        with self.came:
            assert self.came.wait_for(lambda: len(set(self.ids)) >= count, seconds), f"{len(self.ids)} of {count} came"

    def has(self, event_id: str, seconds: float = 60) -> None:
        """Wait until this event was taken."""
        with self.came:
            assert self.came.wait_for(lambda: event_id in self.ids, seconds), f"it is not among {len(self.ids)}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        self.headers = dict(request.headers)
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        self.before()
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            self.tell(request, 401, {"error": "send the gateway's token"})
        elif request.path.endswith("/verdict"):
            session = request.path.split("/")[3]
            self.tell(request, self.status, self.verdicts.get(session, {"action": "go_on"}))
        elif self.status not in {0, 200}:
            self.tell(request, self.status, {"error": "not now"})
        elif request.path == "/v1/answers":
            with self.came:
                self.said.append(json.loads(body))
                self.came.notify_all()
            self.tell(request, 200, {})
        else:
            self.take(request, request.path.removeprefix("/v1/events/"), body)

    def take(self, request: BaseHTTPRequestHandler, topic: str, body: bytes) -> None:
        """Take events."""
        lines = body.splitlines()
        refused, sessions = [], set()
        for index, line in enumerate(lines):
            try:
                event = decode(TOPICS[topic], line)
            except InvalidEvent as problem:
                refused.append({"index": index, "field": problem.field, "reason": str(problem)})
            else:
                with self.came:
                    self.events.append(event)
                    self.came.notify_all()
                sessions.add(event.session_id)  # type: ignore[attr-defined]
        self.batches.append(len(lines))
        if not self.status:
            request.close_connection = True
            return
        verdicts = {session: self.verdicts[session] for session in sessions if session in self.verdicts}
        told = {"accepted": len(lines) - len(refused), "refused": refused, "verdicts": verdicts}
        self.tell(request, 200 if told["accepted"] else 422, told)

    def tell(self, request: BaseHTTPRequestHandler, status: int, told: dict[str, Any]) -> None:
        """Write an answer."""
        data = json.dumps(told).encode()
        request.send_response(status)
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)
