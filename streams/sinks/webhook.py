"""Sends notifications to any receiver of webhooks: signed as Standard Webhooks 1.0 says, or as Alertmanager would.

The idempotency key is the notification's id: the same for all tries, whatever crashes between them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from typing import TYPE_CHECKING

import msgspec

from streams.sinks.alertmanager import webhook_body
from streams.sinks.base import HttpSink, Sent
from streams.sinks.errors import InvalidSinks
from streams.sinks.http import Request
from streams.sinks.settings import WebhookSettings
from streams.sinks.words import key, within

if TYPE_CHECKING:
    from collections.abc import Callable

    from schemas.outputs import Notification
    from streams.sinks.secrets import Secret

SECRET_PREFIX = "whsec_"  # noqa: S105 - what secrets begin with
SECRET_BYTES = range(24, 65)
"""Sizes of a signing key ("Standard Webhooks", Signature scheme)."""

MOST_BYTES = 20_000
"""Largest body ("Standard Webhooks", Payload structure)."""

EVENT_PREFIX = "traction.notification."

_ENVELOPE_BYTES = 200
"""Room for what stands around the notification in the body."""


class Webhook(HttpSink[WebhookSettings]):
    """A receiver of webhooks.

    Args:
        settings: its settings.
        place: file and table of the settings, for messages.
        now: seconds since 1970.

    Raises:
        InvalidSinks: the secret is missing, or not what it should be.
    """

    def __init__(self, settings: WebhookSettings, place: str, now: Callable[[], float] = time.time) -> None:
        super().__init__(settings, place)
        self._keys = signing_keys(self.secrets["secret"], place) if "secret" in self.secrets else ()
        self._now = now

    async def send(self, notification: Notification) -> Sent:
        """Post it, signed anew at each try.

        Raises:
            Undelivered: it was not taken.
        """
        if self.settings.format == "alertmanager":
            body = webhook_body(notification, self.settings.name)
        else:
            body = standard_body(notification)
        identifier, timestamp = key(notification.notification_id), int(self._now())
        headers = {"webhook-id": identifier, "webhook-timestamp": str(timestamp)}
        if self._keys:
            headers["webhook-signature"] = signatures(self._keys, identifier, timestamp, body)
        answer = await self.http.send(Request(self.url, body, headers))
        return Sent(f"answered {answer.status}")


def standard_body(notification: Notification) -> bytes:
    """Give the body as Standard Webhooks recommends it, below `MOST_BYTES`."""
    return msgspec.json.encode(
        {
            "type": f"{EVENT_PREFIX}{notification.kind}",
            "timestamp": notification.issued_at,
            "data": within(notification, MOST_BYTES - _ENVELOPE_BYTES),
        }
    )


def signatures(keys: tuple[bytes, ...], identifier: str, timestamp: int, body: bytes) -> str:
    """Sign with each key: HMAC-SHA256 over ``id.timestamp.body`` ("Standard Webhooks", Signature scheme)."""
    signed = b".".join((identifier.encode(), str(timestamp).encode(), body))
    return " ".join(f"v1,{base64.b64encode(hmac.digest(each, signed, hashlib.sha256)).decode()}" for each in keys)


def signing_keys(secret: Secret, place: str) -> tuple[bytes, ...]:
    """Give the keys of a secret: one, or several with blanks between them while they are being rotated.

    Raises:
        InvalidSinks: one of them is not ``whsec_`` and base64 of 24 to 64 bytes.
    """
    keys = []
    for each in secret.reveal.split():
        try:
            decoded = base64.b64decode(each.removeprefix(SECRET_PREFIX), validate=True)
        except binascii.Error:
            decoded = b""
        if not each.startswith(SECRET_PREFIX) or len(decoded) not in SECRET_BYTES:
            raise InvalidSinks(
                f"{place}: the secret is not {SECRET_PREFIX} and base64 of 24 to 64 random bytes; make one with: "
                f'echo "{SECRET_PREFIX}$(openssl rand -base64 32)"'
            )
        keys.append(decoded)
    return tuple(keys)
