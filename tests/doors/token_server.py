"""A token server of the tests' own: signs JWTs, and gives them for a client's id and secret, by HTTP on loopback."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, unquote_plus

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

AUDIENCE = "kafka"
CLIENT = "root"
SECRET = "client-secret-0815"  # noqa: S105 - of these tests


def _encoded(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


class Issuer:
    """Signs tokens with a key of its own.

    Attributes:
        keys: its public key, as brokers read it (JWKS).
    """

    def __init__(self) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        numbers = self._key.public_key().public_numbers()
        key = {
            name: _encoded(number.to_bytes((number.bit_length() + 7) // 8, "big"))
            for name, number in (("n", numbers.n), ("e", numbers.e))
        }
        self.keys = json.dumps({"keys": [{"kty": "RSA", "kid": "one", "use": "sig", "alg": "RS256"} | key]}).encode()

    def token(self, subject: str = CLIENT, seconds: float = 600.0, **claims: Any) -> str:
        """Sign a token that is good for so many seconds from now; below 0 it has expired."""
        now = time.time()
        body = {"sub": subject, "aud": AUDIENCE, "iat": int(now - 3_600), "exp": int(now + seconds)} | claims
        signed = ".".join(
            _encoded(json.dumps(part).encode()) for part in ({"alg": "RS256", "kid": "one", "typ": "JWT"}, body)
        )
        return f"{signed}.{_encoded(self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


class _Quiet(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Say nothing of clients that do not trust the certificate."""


class TokenServer:
    """The server, in a thread; with a context it encrypts.

    Attributes:
        asked: how often it gave an answer, by status.
        scopes: what it was asked for.
        seconds: for how long its tokens are good.
        expires_in: what it says of that.
        answer: sent instead of what is right, status and body.
        pause: it answers while this is set.
    """

    def __init__(self, issuer: Issuer, context: ssl.SSLContext | None = None) -> None:
        self.issuer = issuer
        self.asked: Counter[int] = Counter()
        self.scopes: list[str | None] = []
        self.seconds = 600.0
        self.expires_in: object = ...
        self.answer: tuple[int, bytes] | None = None
        self.pause = threading.Event()
        self.pause.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                status, body = outer.reply(
                    self.headers["Authorization"] or "", self.rfile.read(int(self.headers["Content-Length"]))
                )
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Keep quiet."""

        self._server = _Quiet(("127.0.0.1", 0), Handler)
        self._scheme = "http" if context is None else "https"
        if context is not None:
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    @property
    def url(self) -> str:
        """Where it gives tokens."""
        return f"{self._scheme}://127.0.0.1:{self._server.server_port}/token"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def reply(self, authorization: str, form: bytes) -> tuple[int, bytes]:
        """Answer a request."""
        self.pause.wait(10)
        name, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        asked = parse_qs(form.decode())
        self.scopes.append(asked.get("scope", [None])[0])
        if self.answer is not None:
            status, body = self.answer
        elif (unquote_plus(name), unquote_plus(secret)) != (CLIENT, SECRET):
            status, body = 401, b'{"error": "invalid_client"}'
        elif asked.get("grant_type") != ["client_credentials"]:
            status, body = 400, b'{"error": "unsupported_grant_type"}'
        else:
            told = self.seconds if self.expires_in is ... else self.expires_in
            answer = {"access_token": self.issuer.token(seconds=self.seconds), "expires_in": told}
            status, body = 200, json.dumps(answer | {"token_type": "Bearer"}).encode()
        self.asked[status] += 1
        return status, body
