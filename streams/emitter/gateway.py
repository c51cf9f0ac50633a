"""One connection to the gateway, and what its answers mean for what was sent: taken, refused for good, or not now.

Blocks, in a thread of the emitter's own. Whatever goes wrong is an answer, never an error, and no token is logged.
"""

from __future__ import annotations

import contextlib
import http.client
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

import msgspec
import orjson

from streams.verdicts.model import Verdict

if TYPE_CHECKING:
    from streams.emitter.settings import EmitterSettings
    from streams.spool import Sent

logger = logging.getLogger(__name__)

MAX_ANSWER_BYTES: Final = 2**20
"""Of an answer; a verdict has a page of text, and few sessions have one."""

MAX_WAIT_SECONDS: Final = 60.0
"""Longest pause that the gateway may ask for."""

_OK: Final = 200
_REFUSED: Final = frozenset((400, 413, 415, 422))  # the body is not taken, however often it comes
_KEYS: Final = frozenset((401, 403))
_MALFORMED: Final = (http.client.HTTPException, OSError, ValueError)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a request.

    Attributes:
        what: `sent`, which was judged event by event; `refused` for good, as a whole; or `away`: the same may be taken
            later.
        refused: how many of its events were not taken, though it was.
        reason: why something was not, in the gateway's words; empty for none.
        verdicts: what sessions are told.
        wait: seconds that the gateway asks to wait for; 0 for no such word.
    """

    what: Sent
    refused: int = 0
    reason: str = ""
    verdicts: tuple[Verdict, ...] = ()
    wait: float = 0.0


class GatewayClient:
    """Talks to one gateway, over one connection that is kept open; to be used by one thread at a time.

    Args:
        settings: where it is.
    """

    def __init__(self, settings: EmitterSettings) -> None:
        self._settings = settings
        parts = urlsplit(settings.url)
        self._secure, self._host, self._port = parts.scheme == "https", parts.hostname or "", parts.port
        self._path = parts.path.rstrip("/")
        self._token = settings.token
        self._connection: http.client.HTTPConnection | None = None

    def post(self, path: str, body: bytes, *, media_type: str) -> Answer:
        """Send a body.

        Args:
            path: for example `/v1/events/tool-calls`.
            body: what to send.
            media_type: what it is.
        """
        status, data, wait = self._ask("POST", path, body, media_type, self._settings.timeout_seconds)
        told = _object(data)
        refused = [each for each in _list(told.get("refused")) if isinstance(each, dict)]
        if status == _OK or refused:
            reason = f"{refused[0].get('field')}: {refused[0].get('reason')}" if refused else ""
            return Answer("sent", len(refused), reason, _verdicts(told))
        reason = str(told.get("error") or f"status {status}") if status else "no answer"
        return Answer("refused" if status in _REFUSED else "away", 0, reason, _verdicts(told), wait)

    def verdict(self, session_id: str, seconds: float) -> Verdict | None:
        """Ask what a session is told; None where there is no answer in time.

        Args:
            session_id: the session.
            seconds: how long each step of the exchange may take.
        """
        status, data, _ = self._ask("GET", f"/v1/sessions/{quote(session_id, safe='')}/verdict", None, "", seconds)
        return _verdict(_object(data)) if status == _OK else None

    def close(self) -> None:
        """Close the connection; the next request opens one."""
        if self._connection is not None:
            with contextlib.suppress(OSError):
                self._connection.close()
        self._connection = None

    def forget(self) -> None:
        """Leave a connection to another process, without a word on it."""
        self._connection = None

    def _ask(
        self, method: str, path: str, body: bytes | None, media_type: str, seconds: float
    ) -> tuple[int, bytes, float]:
        """Give status, body and the pause asked for; 0 where there is no answer. A connection gone stale is renewed."""
        for fresh in (self._connection is None, True):
            try:
                status, data, wait = self._exchange(method, path, body, media_type, seconds)
            except _MALFORMED as problem:
                self.close()
                if fresh or isinstance(problem, TimeoutError):
                    return 0, b"", 0.0
                continue
            if status in _KEYS and self._settings.token_file is not None:
                self._token = None  # it may have been replaced
            return status, data, wait
        return 0, b"", 0.0

    def _exchange(
        self, method: str, path: str, body: bytes | None, media_type: str, seconds: float
    ) -> tuple[int, bytes, float]:
        if self._connection is None:
            kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
            self._connection = kind(self._host, self._port, timeout=seconds)
        elif self._connection.sock is not None:
            self._connection.sock.settimeout(seconds)
        self._connection.request(method, f"{self._path}{path}", body=body, headers=self._headers(media_type))
        response = self._connection.getresponse()
        data = response.read(MAX_ANSWER_BYTES + 1)
        if len(data) > MAX_ANSWER_BYTES or response.will_close:
            self.close()  # the rest of it would be taken for the next answer
        return response.status, data[:MAX_ANSWER_BYTES], _seconds(response.getheader("Retry-After"))

    def _headers(self, media_type: str) -> dict[str, str]:
        found = {"Content-Type": media_type} if media_type else {}
        if self._token is None and self._settings.token_file is not None:
            self._token = self._settings.token_file.read_text("ascii").strip()
        if self._token:
            found["Authorization"] = f"Bearer {self._token}"
        return found


def _object(data: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(data)
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _verdicts(told: dict[str, Any]) -> tuple[Verdict, ...]:
    found = told.get("verdicts")
    read = (_verdict(each) for each in found.values()) if isinstance(found, dict) else ()
    return tuple(each for each in read if each is not None)


def _verdict(told: Any) -> Verdict | None:
    """Read a verdict; one that this version does not know is none."""
    try:
        return msgspec.convert(told, Verdict)
    except msgspec.ValidationError:
        logger.info("a verdict of the gateway is not understood: is a newer emitter needed?")
        return None


def _seconds(header: str | None) -> float:
    """Read a pause in seconds; for a date our own pause will do."""
    return min(float(header), MAX_WAIT_SECONDS) if header and header.isdecimal() else 0.0
