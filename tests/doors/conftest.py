"""One broker with closed doors: encryption, every way to log in, rights; and a server for its tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from streams.kafka import KafkaSettings
from tests.cluster import Certificates, Cluster, Security
from tests.doors.kit import ROLES
from tests.doors.token_server import AUDIENCE, Issuer, TokenServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PASSWORDS = {name: f"{name}-pass-4711" for name in ("root", "nobody", "escalate", *ROLES)}
"""Passwords by user; root may do everything, nobody nothing, and escalate what escalation and sinks may."""

VALIDATOR = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"


@dataclass(frozen=True)
class Doors:
    """The broker, and what its clients need."""

    cluster: Cluster
    certificates: Certificates
    issuer: Issuer
    tokens: TokenServer
    root: Path

    def settings(self, user: str = "root", mechanism: str = "PLAIN", **others: Any) -> KafkaSettings:
        """Give the settings of a client that logs in with a password."""
        given: dict[str, Any] = {
            "bootstrap": self.cluster.bootstrap,
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": mechanism,
            "username": user,
            "password": PASSWORDS.get(user),
            "cafile": self.certificates.ca,
        }
        return KafkaSettings(**given | others)


@pytest.fixture(scope="session")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    """Run the broker, for all tests of this folder."""
    root = tmp_path_factory.mktemp("doors")
    certificates, issuer = Certificates(root), Issuer()
    keys = root / "keys.json"
    keys.write_bytes(issuer.keys)
    oauth = {
        f"listener.name.{name}.oauthbearer.{key}": value
        for name in ("clients", "expiring")
        for key, value in {
            "sasl.jaas.config": MODULE,
            "sasl.server.callback.handler.class": VALIDATOR,
            "connections.max.reauth.ms": "3600000" if name == "clients" else "2000",
        }.items()
    }
    security = Security(
        "SASL_SSL",
        mechanisms=("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"),
        users=PASSWORDS,
        certificates=certificates,
        authorizer=True,
        super_users=("root",),
        java=(f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys.as_uri()}",),
        settings={
            **oauth,
            "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "listener.name.mutual.ssl.client.auth": "required",
            "listener.name.mutual.ssl.principal.mapping.rules": "RULE:CN=([^,]+).*/$1/",
            "listener.name.misnamed.ssl.keystore.location": certificates.other.as_posix(),
            "listener.name.expiring.sasl.enabled.mechanisms": "OAUTHBEARER",
        },
        listeners={"ENCRYPTED": "SSL", "MUTUAL": "SSL", "MISNAMED": "SSL", "EXPIRING": "SASL_SSL"},
    )
    with Cluster(1, security=security) as cluster, TokenServer(issuer) as tokens:
        yield Doors(cluster, certificates, issuer, tokens, root)
