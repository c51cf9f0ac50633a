"""What the gateway takes: whose requests, how large, how many at once. Values only; nothing is read or judged here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from streams.page_settings import check_token

if TYPE_CHECKING:
    from streams.privacy import Level

MEBIBYTE: Final = 2**20

MAX_BODY_BYTES: Final = 16 * MEBIBYTE
"""The longest body that can be allowed: as long as requests of OpenTelemetry's exporters are read."""

LEAST_TOKEN_CHARS: Final = 16
"""Of a token: as many as nobody guesses over a network, even where they are hexadecimal digits (64 bits)."""

MAX_ITEMS: Final = 10_000
"""Most events of one request, as many as OTLP's spans of one: what answers name is bounded with it."""

ACK_SECONDS: Final = 5.0
"""How long the brokers may take to acknowledge a request's events. Longer than the election of a leader takes on a
quiet cluster; whoever posts is told to try again, and OpenTelemetry's exporters wait for 10 s."""


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """What the gateway takes.

    Attributes:
        tokens: any of which a request must have as its bearer token; none are asked for where there are none.
        names: by which requests may name this host, besides those of this machine, where only that can reach it.
        reviews: whether reviews are taken. Not by default: whoever may post agents' calls could approve them.
        privacy: how much of tool calls' content goes on from here, at most.
        max_body_bytes: longest body, as it came and unpacked.
        max_requests: most requests at once.
        max_bytes: most bytes of all requests at once, with those that brokers have not acknowledged yet.
        ack_seconds: how long the brokers may take to acknowledge.

    Raises:
        ValueError: no request could carry a token, or it is too short, or the longest body could never be taken.
    """

    tokens: tuple[str, ...] = field(default=(), repr=False)
    names: tuple[str, ...] = ()
    reviews: bool = False
    privacy: Level = "full"
    max_body_bytes: int = MAX_BODY_BYTES
    max_requests: int = 256
    max_bytes: int = 128 * MEBIBYTE
    ack_seconds: float = ACK_SECONDS

    def __post_init__(self) -> None:
        for number, token in enumerate(self.tokens, 1):
            which = f" (number {number} of the {len(self.tokens)} is none)" if len(self.tokens) > 1 else ""
            try:
                check_token(token, "the gateway's", least=LEAST_TOKEN_CHARS)
            except ValueError as problem:
                raise ValueError(f"{problem}{which}") from None
        if 2 * self.max_body_bytes > self.max_bytes:
            raise ValueError(
                "a packed body needs room twice, as it came and unpacked: give more bytes in flight, or shorter bodies"
            )
