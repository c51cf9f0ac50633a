"""How clients log in to brokers, where aiokafka 0.14 leaves things out; what failed is kept for those who tell it.

1. A client learns only that no broker could be used; why goes to the log. `noting` keeps it.
2. A token that the broker refuses is taken for accepted: the broker's answer is an error as JSON, which the client
   has to acknowledge (RFC 7628, section 3.2.3) before the broker says no.
3. What a broker makes of SCRAM that is wrong, its signature for example, is raised as a `ValueError`.
4. With the log at level debug, passwords and tokens are logged.

Importing this module puts its class in place of aiokafka's, for every client of the process, Faust's included. It must
not decide who logs in.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from aiokafka import conn
from aiokafka.conn import AIOKafkaConnection, OAuthAuthenticator
from aiokafka.errors import KafkaError, SaslAuthenticationFailed
from aiokafka.protocol.admin import (
    SaslAuthenticateRequest,
    SaslAuthenticateRequest_v0,
    SaslAuthenticateRequest_v1,
    SaslAuthenticateResponse_v0,
    SaslAuthenticateResponse_v1,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

KVSEP = b"\x01"
"""The client's acknowledgement of an error."""


class Noted:
    """What went wrong last with a connection that is being made.

    Attributes:
        problem: what was raised; None when nothing was.
    """

    def __init__(self) -> None:
        self.problem: BaseException | None = None


_NOTED: ContextVar[Noted | None] = ContextVar("noted", default=None)


@contextmanager
def noting() -> Iterator[Noted]:
    """Note what goes wrong with connections that are made meanwhile, here and in tasks that are begun here."""
    noted = Noted()
    token = _NOTED.set(noted)
    try:
        yield noted
    finally:
        _NOTED.reset(token)


class BearerLogin(OAuthAuthenticator):  # type: ignore[misc]  # published without types
    """The login with a token, as RFC 7628 has it."""

    async def step(self, payload: bytes | None) -> tuple[bytes, bool] | None:
        """Give the next message; None when the broker accepts us."""
        if self._token_sent and payload:
            self._sasl_oauth_token_provider.refused()
            return KVSEP, True
        step: tuple[bytes, bool] | None = await super().step(payload)
        return step


class _Masked:
    def __repr__(self) -> str:
        return f"{type(self).__name__}(masked)"


class MaskedResponse_v0(_Masked, SaslAuthenticateResponse_v0):  # type: ignore[misc]  # noqa: N801 - named as aiokafka's
    """The broker's answer: with what SCRAM has in it, passwords could be tried without asking the broker."""


class MaskedResponse_v1(_Masked, SaslAuthenticateResponse_v1):  # type: ignore[misc]  # noqa: N801 - named as aiokafka's
    """The same, of the version that tells how long the login holds."""


class MaskedRequest_v0(_Masked, SaslAuthenticateRequest_v0):  # type: ignore[misc]  # noqa: N801 - named as aiokafka's
    """A message of the login that does not show itself."""

    RESPONSE_TYPE = MaskedResponse_v0


class MaskedRequest_v1(_Masked, SaslAuthenticateRequest_v1):  # type: ignore[misc]  # noqa: N801 - named as aiokafka's
    """The same, of the version whose answer tells how long the login holds."""

    RESPONSE_TYPE = MaskedResponse_v1


class MaskedRequest(SaslAuthenticateRequest):  # type: ignore[misc]  # published without types
    """A message of the login, in whatever version the broker knows."""

    def build(self, request_struct_class: Any) -> Any:
        """Build it."""
        masked = {SaslAuthenticateRequest_v0: MaskedRequest_v0, SaslAuthenticateRequest_v1: MaskedRequest_v1}
        return masked[request_struct_class](self._payload)


class Connection(AIOKafkaConnection):  # type: ignore[misc]  # published without types
    """A connection that tells why it could not be made."""

    async def connect(self) -> Any:
        """Connect and log in."""
        noted = _NOTED.get()
        try:
            return await super().connect()
        except Exception as problem:
            if noted is not None:
                noted.problem = problem
            raise

    def close(self, reason: Any = None, exc: BaseException | None = None) -> Any:
        """Close the connection; also the broker may have."""
        noted = _NOTED.get()
        if noted is not None and exc is not None:
            noted.problem = exc
        return super().close(reason=reason, exc=exc)

    def send(self, request: Any, expect_response: bool = True) -> Any:  # noqa: FBT001, FBT002 - as aiokafka calls it
        """Send a request."""
        if isinstance(request, SaslAuthenticateRequest):
            request = MaskedRequest(request._payload)  # noqa: SLF001 - it has no other way to be read
        return super().send(request, expect_response)

    async def _do_sasl_handshake(self) -> None:
        try:
            await super()._do_sasl_handshake()
        except (KafkaError, OSError):
            raise
        except Exception as problem:
            raise SaslAuthenticationFailed(f"the broker's answer is wrong ({type(problem).__name__})") from problem

    def authenticator_oauth(self) -> BearerLogin:
        """Give what logs in with a token."""
        return BearerLogin(sasl_oauth_token_provider=self._sasl_oauth_token_provider)


conn.AIOKafkaConnection = Connection
