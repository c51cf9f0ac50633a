"""One POST to the gateway within a deadline that covers everything, the look-up of the host's name included.

Standard library only, and as little of it as will do: this is loaded at every call of a tool. Raises nothing for what
the other side does; what it cannot understand is an answer without a status.
"""

from __future__ import annotations

import _thread
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    import ssl
    from collections.abc import Mapping

    Connection = ssl.SSLSocket | _socket.socket

MAX_ANSWER_BYTES = 64 * 1024
"""Largest answer taken at a hook, head included: a sentence or two for an agent."""

_HTTP_PORT = 80
_HTTPS_PORT = 443
_SHORTEST_S = 0.001  # a time-out of 0 would mean: do not wait at all


class Gateway:
    """Where the gateway is, and what it is told of who asks.

    Attributes:
        secure: whether it speaks TLS.
        host: its name or address.
        port: its port.
        path: what stands before each path.
        token: bearer token; empty for none.
    """

    __slots__ = ("host", "path", "port", "secure", "token")

    def __init__(self, url: str, token: str = "") -> None:
        """Take a URL apart.

        Args:
            url: `http://host:port` or `https://host:port`, with a path if there is one.
            token: bearer token; one with line ends or other control characters is none.

        Raises:
            ValueError: it is no such URL.
        """
        scheme, found, rest = url.strip().partition("://")
        if not found or scheme.lower() not in {"http", "https"}:
            raise ValueError("write it as http://host:port or https://host:port")
        place, _, path = rest.partition("/")
        if "@" in place or not place.isascii() or not place.isprintable() or " " in place:
            raise ValueError("write host and port only; a token has a setting of its own")
        if not path.isascii() or not path.isprintable() or " " in path or "?" in path or "#" in path:
            raise ValueError("write no query, and percent-encode what is not plain")
        self.secure = scheme.lower() == "https"
        self.host, self.port = _place(place, _HTTPS_PORT if self.secure else _HTTP_PORT)
        self.path = ("/" + path).rstrip("/")
        self.token = token if token.isascii() and token.isprintable() else ""


def _place(place: str, port: int) -> tuple[str, int]:
    host, found, number = place.rpartition(":")
    if place.startswith("["):  # an IPv6 address
        host, closed, number = place[1:].partition("]")
        found, number = (":", number[1:]) if number.startswith(":") else ("", number)
        if not closed or (number and not found):
            raise ValueError("write an IPv6 address as [address]:port")
    elif not found:
        host, number = place, ""
    if not host or (found and not number.isdecimal()):
        raise ValueError("write it as http://host:port or https://host:port")
    port = int(number) if found else port
    if not 0 < port < 1 << 16:
        raise ValueError("a port is a number from 1 to 65535")
    return host, port


def post(
    gateway: Gateway,
    path: str,
    body: bytes,
    *,
    seconds: float,
    headers: Mapping[str, str] | None = None,
    most: int = MAX_ANSWER_BYTES,
) -> tuple[int, bytes]:
    """Send a body and give the status and the body of the answer; 0 and nothing where there is none in time.

    Args:
        gateway: where to.
        path: path and query.
        body: what to send.
        seconds: the time for everything together.
        headers: in addition to those that HTTP needs.
        most: largest answer taken, head included; of a larger one only the status is given.
    """
    ended = time.monotonic() + seconds
    found: list[tuple[int, bytes]] = []
    done = _thread.allocate_lock()
    done.acquire()

    def ask() -> None:
        try:
            found.append(_ask(gateway, path, body, ended, headers=headers or {}, most=most))
        except Exception:  # noqa: BLE001, S110 - whatever went wrong, there is no answer
            pass
        finally:
            done.release()

    _thread.start_new_thread(ask, ())  # a look-up of a name cannot be ended; the process does not wait for it
    if done.acquire(timeout=max(seconds, _SHORTEST_S)) and found:
        return found[0]
    return 0, b""


def _ask(
    gateway: Gateway, path: str, body: bytes, ended: float, *, headers: Mapping[str, str], most: int
) -> tuple[int, bytes]:
    connection = _connect(gateway, ended)
    try:
        connection.settimeout(_left(ended))
        connection.sendall(_head(gateway, path, len(body), headers) + body)
        return _read(connection, ended, most)
    finally:
        connection.close()


def _connect(gateway: Gateway, ended: float) -> Connection:
    """Open a connection.

    Without TLS by the C part of `socket` alone: what the rest of it loads takes as long as all else here together, as
    does giving a host's name as a text, for which an encoding is loaded.
    """
    if gateway.secure:
        import socket  # noqa: PLC0415
        import ssl  # noqa: PLC0415 - takes long to load, and most gateways are on the same machine

        plain = socket.create_connection((gateway.host, gateway.port), timeout=_left(ended))
        return ssl.create_default_context().wrap_socket(plain, server_hostname=gateway.host)
    import _socket  # noqa: PLC0415

    problem: OSError | None = None
    for family, kind, protocol, _, address in _socket.getaddrinfo(
        gateway.host.encode(), gateway.port, 0, _socket.SOCK_STREAM
    ):
        connection = _socket.socket(family, kind, protocol)
        try:
            connection.settimeout(_left(ended))
            connection.connect(address)
        except OSError as refused:
            connection.close()
            problem = refused
        else:
            return connection
    raise problem or OSError


def _head(gateway: Gateway, path: str, length: int, headers: Mapping[str, str]) -> bytes:
    """Ask as HTTP/1.0, to which nobody answers in chunks."""
    host = f"[{gateway.host}]" if ":" in gateway.host else gateway.host
    lines = [f"POST {gateway.path}{path} HTTP/1.0", f"Host: {host}:{gateway.port}", f"Content-Length: {length}"]
    if gateway.token:
        lines.append(f"Authorization: Bearer {gateway.token}")
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join([*lines, "", ""])).encode("ascii")


def _read(connection: Connection, ended: float, most: int) -> tuple[int, bytes]:
    data = b""
    while True:
        connection.settimeout(_left(ended))
        more = connection.recv(MAX_ANSWER_BYTES)
        data += more
        head, found, body = data.partition(b"\r\n\r\n")
        status, length = _told(head) if found else (0, None)
        if found and length is not None and len(body) >= length:
            return status, body[:length]
        if not more:
            return (status, body) if found and length is None else (0, b"")
        if len(data) > most:
            return status, b""  # what it did with the body counts, what it says does not


def _told(head: bytes) -> tuple[int, int | None]:
    """Give status and length of an answer; a length that is none makes the whole answer none."""
    first, *lines = head.split(b"\r\n")
    version, _, rest = first.partition(b" ")
    code = rest[:3]
    status = int(code) if version.startswith(b"HTTP/1.") and code.isdigit() else 0
    for line in lines:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            if not value.strip().isdigit():
                raise ValueError
            return status, int(value)
    return status, None


def _left(ended: float) -> float:
    left = ended - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
