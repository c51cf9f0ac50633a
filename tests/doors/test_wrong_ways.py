"""What is wrong with a login or certificate is told at once, by what to look at, and without a secret."""

from __future__ import annotations

import logging
import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest
import trustme

from streams.kafka import KafkaSettings, admin, consumer, producer, running
from tests.doors.conftest import PASSWORDS
from tests.doors.kit import Job, command, flags
from tests.doors.token_server import SECRET

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.doors.conftest import Doors

WRONG = "wrong-pass-8150"
TOKEN_LOGIN: dict[str, Any] = {"mechanism": "OAUTHBEARER", "username": None, "password": None}

Make = "Callable[[Doors, Path], KafkaSettings]"


def token(doors: Doors, path: Path, text: str) -> KafkaSettings:
    """Give settings for a token in a file."""
    file = path / "token"
    file.write_text(text)
    return doors.settings(**TOKEN_LOGIN, token_file=file)


def server(doors: Doors, *, secret: str = SECRET, url: str | None = None, scope: str | None = None) -> KafkaSettings:
    """Give settings for the token server."""
    return doors.settings(
        mechanism="OAUTHBEARER", password=secret, token_url=url or doors.tokens.url, token_scope=scope
    )


def encrypted(doors: Doors, listener: str, **files: Any) -> KafkaSettings:
    """Give settings for a listener that encrypts and takes no password."""
    where = doors.cluster.listener(listener)
    return KafkaSettings(bootstrap=where, security_protocol="SSL", **{"cafile": doors.certificates.ca} | files)


def foreign(path: Path) -> dict[str, Path]:
    """Give a certificate of an authority that nobody knows."""
    signed = trustme.CA().issue_cert("root", common_name="root")
    signed.private_key_pem.write_to_path(path / "foreign.key")
    signed.cert_chain_pems[0].write_to_path(path / "foreign.pem")
    return {"certfile": path / "foreign.pem", "keyfile": path / "foreign.key"}


def another_authority(path: Path) -> Path:
    """Give an authority that did not sign the brokers' certificates."""
    file = path / "another.pem"
    trustme.CA().cert_pem.write_to_path(file)
    return file


CASES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "password of PLAIN": (
        lambda d, _: d.settings(password=WRONG),
        ("refuses the login", "--sasl-password-file", "root"),
    ),
    "password of SCRAM-SHA-256": (
        lambda d, _: d.settings(mechanism="SCRAM-SHA-256", password=WRONG),
        ("refuses the login", "--sasl-username"),
    ),
    "user of SCRAM-SHA-512": (
        lambda d, _: d.settings("stranger", "SCRAM-SHA-512", password=WRONG),
        ("refuses the login", "stranger"),
    ),
    "mechanism": (
        lambda d, _: d.settings(bootstrap=d.cluster.listener("EXPIRING")),
        ("does not know that mechanism", "--sasl-mechanism"),
    ),
    "expired token": (lambda d, p: token(d, p, d.issuer.token(seconds=-90)), ("has expired at 20", "still run")),
    "token for others": (lambda d, p: token(d, p, d.issuer.token(aud="another")), ("refuses the login", "audience")),
    "token of nobody": (lambda d, p: token(d, p, "e30.e30.e30"), ("refuses the login", "signature")),
    "no token": (lambda d, p: token(d, p, "two tokens"), ("is no bearer token",)),
    "client's secret": (lambda d, _: server(d, secret=WRONG), ("401 invalid_client", "secret", "root")),
    "token server away": (
        lambda d, _: server(d, url="http://127.0.0.1:1/token"),
        ("token server 127.0.0.1:1 cannot be used", "refused"),
    ),
    "authority": (
        lambda d, p: d.settings(cafile=another_authority(p)),
        ("certificate is not trusted", "--ssl-cafile"),
    ),
    "host name": (lambda d, _: encrypted(d, "MISNAMED"), ("for another name", "advertised.listeners")),
    "no certificate of ours": (lambda d, _: encrypted(d, "MUTUAL"), ("asks for a certificate", "--ssl-certfile")),
    "foreign certificate": (
        lambda d, p: encrypted(d, "MUTUAL", **foreign(p)),
        ("refuses our certificate", "--ssl-certfile"),
    ),
    "no encryption": (
        lambda d, _: KafkaSettings(bootstrap=d.cluster.bootstrap),
        ("closed the connection", "--security-protocol"),
    ),
    "login where there is none": (
        lambda d, _: d.settings(bootstrap=d.cluster.listener("ENCRYPTED")),
        ("takes no login", "--security-protocol"),
    ),
    "encryption where there is none": (
        lambda d, _: encrypted(d, "INSIDE"),
        ("--security-protocol",),
    ),
}


@pytest.mark.parametrize("wrong", CASES)
def test_what_is_wrong_is_told_with_what_to_look_at(doors: Doors, tmp_path: Path, wrong: str) -> None:
    """Exit code 1, one message, no secret in it, and no traceback."""
    make, said = CASES[wrong]
    settings = make(doors, tmp_path)
    done = command("topics", "list", *flags(settings, tmp_path))
    assert done.code == 1, done.output
    assert "Kafka at " in done.output
    for words in said:
        assert words in done.output, (words, done.output)
    for secret in (WRONG, SECRET, "e30.e30", "eyJ", *PASSWORDS.values()):
        assert secret not in done.output


@pytest.mark.parametrize("name", ["worker", "escalate"])
async def test_processes_end_with_it(doors: Doors, tmp_path: Path, name: str) -> None:
    """Likewise those that run for long: they end with 1, and do not try for ever what cannot work."""
    async with Job(doors.settings(), tmp_path, "wrong") as job:
        wrong = doors.settings("worker", "SCRAM-SHA-512", password=WRONG)
        process = job.worker(wrong) if name == "worker" else job.escalate(wrong)
        assert await process.exit() == 1
        assert "refuses the login" in process.log
        assert WRONG not in process.log
        assert "Traceback" not in process.log


@pytest.mark.parametrize("way", ["PLAIN", "SCRAM-SHA-512", "token"])
async def test_nothing_logged_has_a_secret_in_it(
    doors: Doors, tmp_path: Path, caplog: pytest.LogCaptureFixture, way: str
) -> None:
    """Not even at level debug, where the client logs every request, the login's among them."""
    text = doors.issuer.token()
    settings = token(doors, tmp_path, text) if way == "token" else doors.settings(mechanism=way)
    with caplog.at_level(logging.DEBUG), caplog.at_level(logging.DEBUG, "aiokafka"):
        for make in (admin, consumer, producer):
            async with running(make(settings), settings):
                pass
    for masked in ("MaskedRequest", "MaskedResponse"):
        assert masked in caplog.text
    assert ",i=" not in caplog.text, "with the broker's part of SCRAM passwords could be tried"
    assert PASSWORDS["root"] not in caplog.text
    assert text not in caplog.text


@pytest.fixture
def liar() -> Iterator[int]:
    """Run a broker that takes SCRAM and answers with a signature that is not its own; give its port."""
    answers = (
        # ApiVersions (v0): metadata, SASL handshake and authenticate in their first versions
        b"\0\0" + b"\0\0\0\x04" + b"".join(key.to_bytes(2) + b"\0\0" + b"\0\0" for key in (3, 17, 18, 36)),
        b"\0\0" + b"\0\0\0\x01" + b"\0\x0dSCRAM-SHA-512",
    )
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def reply(client: socket.socket, request: bytes, body: bytes) -> None:
            client.sendall((len(body) + 4).to_bytes(4) + request[4:8] + body)

        def request(client: socket.socket) -> bytes:
            size = int.from_bytes(client.recv(4, socket.MSG_WAITALL))
            return client.recv(size, socket.MSG_WAITALL)

        def serve() -> None:
            with listening.accept()[0] as client:
                for body in answers:
                    reply(client, request(client), body)
                asked = request(client)
                nonce = asked[asked.index(b"r=") + 2 :]
                for text in (b"r=" + nonce + b"x,s=c2FsdA==,i=4096", b"v=bGllcw=="):
                    reply(client, asked, b"\0\0" + b"\xff\xff" + len(text).to_bytes(4) + text)
                    asked = request(client) if text.startswith(b"r=") else asked

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        thread.join(10)


async def test_a_broker_that_does_not_know_the_password_itself_is_not_believed(liar: int) -> None:
    """SCRAM is mutual: whoever stands in for a broker is found out, and it is told like any other refusal."""
    settings = KafkaSettings(
        bootstrap=f"127.0.0.1:{liar}", security_protocol="SASL_PLAINTEXT", username="root", password=PASSWORDS["root"]
    )
    with pytest.raises(Exception, match="refuses the login"):
        async with running(admin(settings), settings):
            raise AssertionError("it cannot have started")
