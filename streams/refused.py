"""Says in words why brokers could not be used: what a client raised, and what to look at.

Names settings, topics and groups; quotes no password, token or certificate. It must not decide what is done about it.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    IllegalSaslStateError,
    KafkaConnectionError,
    SaslAuthenticationFailed,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
    UnsupportedSaslMechanismError,
)

from streams.tokens import TokenUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

USUAL = "Is it running and reachable from here, and do the security settings match its listener?"

WRONG_NAME = (62, 64)
"""OpenSSL's codes for a certificate that is for another host name (X509_V_ERR_HOSTNAME_MISMATCH) or address."""

EXPIRED = 10
"""OpenSSL's code for a certificate that has expired (X509_V_ERR_CERT_HAS_EXPIRED)."""

RIGHTS = "`traction acl diff` tells what is missing, `traction acl apply` grants it (docs/security.md)"


@dataclass(frozen=True, slots=True)
class Cause:
    """Why brokers could not be used.

    Attributes:
        what: what is wrong.
        remedy: sentences that say what to look at.
        login: whether brokers refuse who we say that we are.
        right: whether they know us, and we lack a right.
    """

    what: str
    remedy: str
    login: bool = False
    right: bool = False


def cause(problem: BaseException, who: str) -> Cause:
    """Say why brokers could not be used.

    Args:
        problem: what was raised; what it came from is looked at too.
        who: who logs in, in words.
    """
    chain = list(causes(problem))
    for each in chain:
        found = _right(each, who) or _login(each) or _encryption(each)
        if found is not None:
            return found
    if any(isinstance(each, EOFError | ConnectionResetError) for each in chain):
        remedy = (
            "So do listeners that want encryption (SSL, SASL_SSL) or a login (SASL_PLAINTEXT, SASL_SSL), or that take "
            "neither: does --security-protocol match? Else the broker is just stopping"
        )
        return Cause("the broker closed the connection", f"{remedy}.")
    said = str(problem) if not isinstance(problem, KafkaConnectionError) else ", ".join(map(str, problem.args))
    silent = "no answer in time" if isinstance(problem, TimeoutError) else type(problem).__name__
    return Cause(said or silent, USUAL)


def causes(problem: BaseException | None) -> Iterator[BaseException]:
    """Give a failure, and one by one what it came from."""
    seen: set[int] = set()  # a failure that was told twice may be its own cause
    while problem is not None and id(problem) not in seen:
        seen.add(id(problem))
        yield problem
        problem = problem.__cause__ or problem.__context__


def _right(problem: BaseException, who: str) -> Cause | None:
    named = ", ".join(sorted(problem.args[0])) if _is_set(problem) else ", ".join(map(str, problem.args))
    if isinstance(problem, TopicAuthorizationFailedError):
        what, rights = f"the topic {named}" if named else "a topic", "read or write"
    elif isinstance(problem, GroupAuthorizationFailedError):
        what, rights = f"the consumer group {named}" if named else "the consumer group", "read with"
    elif isinstance(problem, TransactionalIdAuthorizationFailed):
        what, rights = f"the transactional id {named}" if named else "its transactional id", "write with"
    elif isinstance(problem, ClusterAuthorizationFailedError):
        what, rights = "the cluster, nor to write any topic", "administer"
    else:
        return None
    return Cause(f"{who} has no right to {rights} {what}", f"{RIGHTS[0].upper()}{RIGHTS[1:]}.", right=True)


def _is_set(problem: BaseException) -> bool:
    return bool(problem.args) and isinstance(problem.args[0], set | frozenset)


def _login(problem: BaseException) -> Cause | None:
    if isinstance(problem, TokenUnavailable):
        return Cause(str(problem.args[0]), "")
    if isinstance(problem, UnsupportedSaslMechanismError):
        return Cause(
            "the listener does not know that mechanism",
            "Give --sasl-mechanism one that it knows, or have the brokers know this one.",
        )
    if isinstance(problem, IllegalSaslStateError):
        return Cause(
            "that listener takes no login", "Give --security-protocol without SASL, or the port of one that takes it."
        )
    if isinstance(problem, SaslAuthenticationFailed):
        return Cause(
            "the broker refuses the login",
            "Look at the user name and the password (--sasl-username, --sasl-password-file), and whether the brokers "
            "know that user for that mechanism.",
            login=True,
        )
    return None


def _encryption(problem: BaseException) -> Cause | None:
    if isinstance(problem, ssl.SSLCertVerificationError):
        return _certificate(problem)
    if not isinstance(problem, ssl.SSLError):
        return None
    reason = str(problem.reason or "")
    if "CERTIFICATE_REQUIRED" in reason:
        return Cause("the broker asks for a certificate of ours", "Give one: --ssl-certfile and --ssl-keyfile.")
    if "ALERT" in reason and ("CERTIFICATE" in reason or "UNKNOWN_CA" in reason):
        return Cause(
            f"the broker refuses our certificate ({reason})",
            "Is it signed by an authority that the brokers trust, and not expired? See --ssl-certfile.",
        )
    return Cause(
        f"no encrypted connection comes about ({reason or type(problem).__name__})",
        "Does that listener encrypt, and with TLS 1.2 or newer? Else give another --security-protocol, or port.",
    )


def _certificate(problem: ssl.SSLCertVerificationError) -> Cause:
    if problem.verify_code in WRONG_NAME:
        return Cause(
            f"the broker's certificate is for another name ({problem.verify_message})",
            "Connect by a name that is in it: in --bootstrap, and in the brokers' advertised.listeners.",
        )
    if problem.verify_code == EXPIRED:
        return Cause("the broker's certificate has expired", "Have it renewed, and look at the clock here.")
    return Cause(
        f"the broker's certificate is not trusted ({problem.verify_message})",
        "Give the certificate of the authority that signed it: --ssl-cafile.",
    )
