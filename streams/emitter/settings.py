"""Where the emitter sends to, what it may send, and how much it keeps: from arguments, else from the environment.

The environment is the one that agents' hooks read too. Opens nothing but the file of a token.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args
from urllib.parse import urlsplit

from streams.privacy import Level
from streams.spool import default_directory

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_URL: Final = "http://127.0.0.1:8321"
"""Where `traction ingest` listens by default."""


MAX_KEY_BYTES: Final = 64
"""Of a key: as many as BLAKE2b takes."""


@dataclass(frozen=True, slots=True)
class EmitterSettings:
    """How an emitter is set up.

    Attributes:
        url: the gateway's address, `http` or `https`, without a path of its own or with the one that a proxy adds.
        token: what it wants to see; None for none. Never printed.
        token_file: where the token is read from, again when the gateway refuses it.
        privacy: what is sent of arguments, results and errors.
        key: secret mixed into digests, see `streams.privacy.reduce`. Never printed.
        spool: directory in which is kept what the gateway does not take; None keeps nothing on disk.
        spool_bytes: most kept there of each topic. Of more the oldest is dropped.
        queue: most events in memory; of more the oldest is dropped.
        queue_bytes: most bytes of them.
        timeout_seconds: how long the gateway may take for an answer.
        exit_seconds: how long the end of the process may be held up to send what is left; what is not sent by then is
            kept on disk.

    Raises:
        ValueError: a setting cannot be used; the message names it.
    """

    url: str = DEFAULT_URL
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    privacy: Level = "full"
    key: bytes = field(default=b"", repr=False)
    spool: str | None = None
    spool_bytes: int = 32 * 2**20
    queue: int = 10_000
    queue_bytes: int = 32 * 2**20
    timeout_seconds: float = 10.0
    exit_seconds: float = 2.0

    def __post_init__(self) -> None:
        url: object = self.url
        key: object = self.key
        parts = urlsplit(url if isinstance(url, str) else "")
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError("url: the gateway's address begins with http:// or https://, for example " + DEFAULT_URL)
        if parts.username is not None:
            raise ValueError("url: give the token as token, not in the address")
        if self.privacy not in get_args(Level):
            raise ValueError(f"privacy: one of {', '.join(get_args(Level))}")
        if not isinstance(key, bytes) or len(key) > MAX_KEY_BYTES:
            raise ValueError(f"key: at most {MAX_KEY_BYTES} bytes")
        if self.token is not None and self.token_file is not None:
            raise ValueError("token, token_file: give one of the two")
        if self.token is not None and not (self.token.isascii() and self.token.isprintable()):
            raise ValueError("token: printable ASCII characters only")
        for name in ("spool_bytes", "queue", "queue_bytes", "timeout_seconds", "exit_seconds"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not 0 < value < math.inf:
                raise ValueError(f"{name}: must be a number above 0")


def from_environment(environ: Mapping[str, str] | None = None, **given: object) -> EmitterSettings:
    """Give the settings of the environment, with those that are given in their place.

    `TRACTION_GATEWAY_URL`, `TRACTION_GATEWAY_TOKEN`, `TRACTION_GATEWAY_TOKEN_FILE` and `TRACTION_SPOOL_DIR` are read.

    Args:
        environ: the environment; that of the process when not given.
        given: settings by name; None counts as not given.

    Raises:
        ValueError: a setting cannot be used.
    """
    found = os.environ if environ is None else environ
    settings: dict[str, object] = {"spool": default_directory(dict(found))}
    names = {"TRACTION_GATEWAY_URL": "url"}
    if given.get("token") is None and given.get("token_file") is None:
        names |= (
            {"TRACTION_GATEWAY_TOKEN": "token"}
            if found.get("TRACTION_GATEWAY_TOKEN")
            else {"TRACTION_GATEWAY_TOKEN_FILE": "token_file"}
        )
    settings |= {name: found[variable] for variable, name in names.items() if found.get(variable)}
    settings |= {name: value for name, value in given.items() if value is not None}
    if isinstance(settings.get("token_file"), str):
        settings["token_file"] = Path(str(settings["token_file"]))
    return EmitterSettings(**settings)  # type: ignore[arg-type]
