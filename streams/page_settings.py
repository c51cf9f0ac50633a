"""Where the HTTP pages of a process are and who may read them, for commands that need not serve any themselves."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from streams.health import STALL_BOUNDS, STALL_SECONDS

if TYPE_CHECKING:
    from pathlib import Path


class PageError(Exception):
    """The pages cannot be served: the message says why and what to do."""


MAX_TOKEN_CHARS = 1_024
"""A longer token is not one but a mistake, and would not fit into a request."""


def check_token(token: str, whose: str, *, least: int = 1) -> None:
    """Check that a request can carry a token.

    Args:
        token: the token.
        whose: it is, for the message.
        least: how many characters it must have.

    Raises:
        ValueError: none can, or it is too short.
    """
    if not (least <= len(token) <= MAX_TOKEN_CHARS and token.isascii() and token.isprintable() and " " not in token):
        raise ValueError(
            f"{whose} token must be {least} to {MAX_TOKEN_CHARS} printable ASCII characters without blanks, since it "
            "is sent in a header: make one with openssl rand -hex 32"
        )


@dataclass(frozen=True, slots=True)
class PageSettings:
    """Where the pages are, and who may read them.

    Attributes:
        host: address to listen on.
        port: 0 takes a free one.
        token: what `/metrics` and the details of health ask for as a bearer token. Where it is None, `/metrics` asks
            for nothing, and the details are shown to this machine alone.
        certfile: our certificate and what is between it and its authority, PEM; None for plain HTTP.
        keyfile: its private key, PEM, without a passphrase.
        stall_seconds: see `Health`.

    Raises:
        ValueError: the settings contradict each other, no request could carry the token, or the stall limit is out of
            its bounds.
    """

    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = field(default=None, repr=False)
    certfile: Path | None = None
    keyfile: Path | None = None
    stall_seconds: float = STALL_SECONDS

    def __post_init__(self) -> None:
        if bool(self.certfile) != bool(self.keyfile):
            raise ValueError("encrypted pages need both the certificate file and the key file")
        if self.token is not None:
            check_token(self.token, "the pages'")
        least, most = STALL_BOUNDS
        if not least <= self.stall_seconds <= most:
            raise ValueError(f"the stall limit must be {least:g} to {most:,.0f} seconds, not {self.stall_seconds:g}")

    @property
    def local(self) -> bool:
        """Whether only this machine can reach the pages."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False
