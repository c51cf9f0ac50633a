"""Tokens that clients log in to Kafka with (SASL OAUTHBEARER): what gives them, and those from a file.

Tokens are never logged and stand in no message. Whether a token is good the brokers decide, not this.
"""

from __future__ import annotations

import abc
import asyncio
import base64
import binascii
import re
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec
from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaError

from streams.masking import hide
from streams.sinks.addresses import is_loopback_name

if TYPE_CHECKING:
    from pathlib import Path

MOST_TOKEN_BYTES = 2**18
"""Longest token: half of what brokers take as a login by default (`sasl.server.max.receive.size`, 512 KiB)."""

END_OF_TIME = 253_402_300_800
"""The year 10000, in seconds since 1970: beyond it there are no dates to tell."""

_TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
"""What a bearer token consists of (RFC 6750, section 2.1); nothing else may get into the message of the login."""


class TokenUnavailable(KafkaError):  # type: ignore[misc]  # published without types
    """There is no token to log in with: the message says why, and what to do."""

    retriable = True


class Tokens(AbstractTokenProvider, abc.ABC):  # type: ignore[misc]  # published without types
    """Gives clients the token of each login. Serves any number of clients, on any event loop."""

    @property
    @abc.abstractmethod
    def whose(self) -> str:
        """Say who logs in, for messages."""

    @property
    @abc.abstractmethod
    def remedy(self) -> str:
        """Say what to look at when brokers refuse the token that was given last."""

    def refused(self) -> None:
        """Take note that brokers refuse the token that was given last: it is not given again if it can be helped."""


class FileTokens(Tokens):
    """The token in a file, read anew at each login; whoever writes the file keeps it fresh.

    Args:
        file: the file.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    @property
    def whose(self) -> str:
        """Say who logs in, for messages."""
        return f"the bearer of the token in {self._file}"

    @property
    def remedy(self) -> str:
        """Say what to look at when brokers refuse the token: whether it has expired, above all."""
        try:
            until = expiry(self._read())
        except TokenUnavailable:
            until = None
        if until is not None and until <= time.time():
            when = datetime.fromtimestamp(until, UTC).isoformat(timespec="seconds")
            return f"The token in {self._file} has expired at {when}: does whatever writes the file still run?"
        return f"Is the token in {self._file} made for these brokers (issuer, audience, scope, signature)?"

    async def token(self) -> str:
        """Give the token.

        Raises:
            TokenUnavailable: the file cannot be read, or holds no token.
        """
        return await asyncio.to_thread(self._read)

    def _read(self) -> str:
        try:
            with self._file.open("rb") as file:
                text = file.read(MOST_TOKEN_BYTES + 2).decode()  # and a line's end
        except OSError as problem:
            raise TokenUnavailable(
                f"the token file {self._file} cannot be read ({problem.strerror}): see that it is there and that this "
                "user may read it"
            ) from problem
        except UnicodeDecodeError as problem:
            raise TokenUnavailable(
                f"the token file {self._file} is no text: write the token alone into it"
            ) from problem
        return checked(text.strip(), f"the token file {self._file}")


class Claims(msgspec.Struct, frozen=True):
    """What a token says of itself (RFC 7519, section 4.1).

    Attributes:
        exp: until when it is good, seconds since 1970.
    """

    exp: float | None = None


def expiry(token: str) -> float | None:
    """Tell until when a token says that it is good, seconds since 1970; None when it does not say, or is no JWT."""
    parts = token.split(".")
    if len(parts) != 3:  # noqa: PLR2004 - header, claims, signature
        return None
    try:
        body = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        until = msgspec.json.decode(body, type=Claims).exp
    except (binascii.Error, msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return until if until is not None and 0 <= until < END_OF_TIME else None


def url_problem(url: str) -> str | None:
    """Say what is wrong with the URL of a token server; None when nothing is."""
    wrong = "the URL of the tokens is https://HOST/PATH, without a user name, password or fragment"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return wrong
    if not host or parts.username is not None or parts.fragment:
        return wrong
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback_name(host)):
        return (
            "the URL of the tokens begins with https://, since the secret is sent there (http:// on this machine only)"
        )
    return None


def checked(token: str, where: str) -> str:
    """Give a token that may be sent.

    Args:
        token: the token.
        where: where it comes from, for the message.

    Raises:
        TokenUnavailable: it is none.
    """
    if not token or len(token) > MOST_TOKEN_BYTES or _TOKEN.fullmatch(token) is None:
        what = (
            "holds nothing" if not token else "is no bearer token (letters, digits and -._~+/ alone, 256 KiB at most)"
        )
        raise TokenUnavailable(f"{where} {what}: a token alone is needed, as the token server gives it")
    hide(where, token)
    return token
