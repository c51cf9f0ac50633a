"""Tokens for the login: from a file, and from a token server, whatever that answers."""

from __future__ import annotations

import asyncio
import base64
import logging
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trustme

from streams import token_server, tokens
from streams.kafka import KafkaSettings
from streams.token_server import ClientCredentials
from streams.tokens import FileTokens, TokenUnavailable, expiry
from tests.doors.token_server import CLIENT, SECRET, Issuer, TokenServer

if TYPE_CHECKING:
    from collections.abc import Iterator

FILE = Path("/run/token")
LOGIN: dict[str, Any] = {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"}
SERVER: dict[str, Any] = {"token_url": "https://login.example/token", "username": "id", "password": SECRET}


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    """Give who signs tokens."""
    return Issuer()


@pytest.fixture
def server(issuer: Issuer) -> Iterator[TokenServer]:
    """Run a token server."""
    with TokenServer(issuer) as running:
        yield running


def asking(server: TokenServer, *, scope: str | None = None, **clock: Any) -> ClientCredentials:
    """Give what asks a token server."""
    return ClientCredentials(server.url, CLIENT, SECRET, scope=scope, cafile=None, **clock)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "needs a token"),
        ({"token_file": FILE, **SERVER}, "one of the two"),
        ({"token_file": FILE, "username": "u"}, "leave user name, password and scope out"),
        ({"token_file": FILE, "token_scope": "s"}, "leave user name, password and scope out"),
        ({"token_url": "https://login.example/token"}, "client id as user name"),
        ({**SERVER, "password": None}, "its secret as password"),
        ({**SERVER, "token_url": "http://login.example/token"}, "begins with https://"),
        ({**SERVER, "token_url": "https://u:p@login.example/token"}, "without a user name"),
        ({**SERVER, "token_url": "https://login.example:99999/"}, "https://HOST/PATH"),
        ({**SERVER, "token_url": "login.example"}, "https://HOST/PATH"),
        ({"sasl_mechanism": "PLAIN", "username": "u", "password": "p", "token_file": FILE}, "PLAIN does not use one"),
        ({"security_protocol": "SSL", "token_file": FILE}, "SSL does not use one"),
        ({"sasl_mechanism": "PLAIN", "username": "u", "password": "p", "token_scope": "s"}, "does not use one"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(fields: dict[str, Any], said: str) -> None:
    """With the remedy; a secret would else go to nobody, or in clear."""
    with pytest.raises(ValueError, match=said):
        KafkaSettings(**LOGIN | fields)


def test_clients_share_what_gives_tokens() -> None:
    """So that not each connection asks the token server; and a message says who logs in."""
    settings = KafkaSettings(**LOGIN | SERVER)
    one, two = (settings.client_arguments()["sasl_oauth_token_provider"] for _ in range(2))
    assert one is two is settings.tokens
    assert "sasl_plain_password" not in settings.client_arguments()
    assert settings.who == "id"
    assert KafkaSettings(**LOGIN, token_file=FILE).who == f"the bearer of the token in {FILE}"
    assert SECRET not in repr(settings)


async def test_a_file_is_read_at_each_login(tmp_path: Path) -> None:
    """Whoever keeps it fresh needs to tell nobody."""
    file = tmp_path / "token"
    for text in ("one.two.three", "four.five.six\n"):
        file.write_text(text)
        assert await FileTokens(file).token() == text.strip()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read"),
        (b" \n", "holds nothing"),
        (b"two tokens", "is no bearer token"),
        (b"one\x01auth=Bearer other", "is no bearer token"),
        (b"\xff\xfe", "is no text"),
        (b"x" * (tokens.MOST_TOKEN_BYTES + 1), "is no bearer token"),
    ],
)
async def test_what_is_no_token_is_not_sent(tmp_path: Path, content: bytes | None, said: str) -> None:
    """The message names the file and quotes nothing of it."""
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(TokenUnavailable, match=said) as caught:
        await FileTokens(file).token()
    assert str(file) in str(caught.value)
    assert "Bearer" not in str(caught.value)


async def test_the_longest_token_is_taken(tmp_path: Path) -> None:
    """One that is just short enough, and the end of its line."""
    file = tmp_path / "token"
    file.write_bytes(b"x" * tokens.MOST_TOKEN_BYTES + b"\r\n")
    assert len(await FileTokens(file).token()) == tokens.MOST_TOKEN_BYTES


async def test_a_token_is_asked_for_once_and_again_before_it_expires(server: TokenServer) -> None:
    """Many clients at once ask once; after four fifths of its time the next login has a new one."""
    now = 1_000.0
    asked = asking(server, scope="kafka read", clock=lambda: now)
    first = set(await asyncio.gather(*(asked.token() for _ in range(20))))
    assert (len(first), server.asked[200], server.scopes) == (1, 1, ["kafka read"])
    now += 479.0
    await asked.token()
    assert server.asked[200] == 1
    now += 1.0
    await asked.token()
    assert server.asked[200] == 2
    now += token_server.PAUSE_SECONDS
    asked.refused()
    await asked.token()
    assert server.asked[200] == 3


async def test_a_server_is_not_asked_again_at_once(server: TokenServer) -> None:
    """Brokers that refuse each token, and a server that gives none, meet clients that try ten times a second."""
    now = 1_000.0
    asked = asking(server, clock=lambda: now)
    await asked.token()
    now += token_server.PAUSE_SECONDS - 0.1
    asked.refused()
    await asked.token()
    assert server.asked == {200: 1}
    now += 0.1
    asked.refused()
    server.answer = (503, b"")
    failed = await asyncio.gather(*(asked.token() for _ in range(20)), return_exceptions=True)
    assert {type(each) for each in failed} == {TokenUnavailable}
    assert len({str(each) for each in failed}) == 1
    server.answer = None
    now += token_server.PAUSE_SECONDS - 0.1
    with pytest.raises(TokenUnavailable, match="503"):
        await asked.token()
    assert server.asked == {200: 1, 503: 1}
    now += 0.1
    await asked.token()
    assert server.asked == {200: 2, 503: 1}


def test_a_token_serves_clients_of_several_event_loops(server: TokenServer) -> None:
    """The worker's consumer has a loop and thread of its own; commands have one loop after the other."""
    asked = asking(server)
    assert asyncio.run(asked.token()) == asyncio.run(asked.token())
    assert server.asked[200] == 1


async def test_the_token_servers_certificate_is_checked(issuer: Issuer, tmp_path: Path) -> None:
    """By the authorities in the CA file too; from one that nobody signed no token is taken, and it gets no secret."""
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    cafile = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(cafile)
    with TokenServer(issuer, context) as server:
        with pytest.raises(TokenUnavailable, match=r"cannot be used .*certificate.*--ssl-cafile"):
            await asking(server).token()
        assert server.asked.total() == 0
        trusting = ClientCredentials(server.url, CLIENT, SECRET, scope=None, cafile=cafile)
        assert (await trusting.token()).count(".") == 2


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((401, b'{"error": "invalid_client"}'), r"\(401 invalid_client\): look at the client id"),
        ((400, b'{"error": "invalid_scope"}'), r"\(400 invalid_scope\): look at the scope"),
        ((400, b'{"error": "<b>\\u001b[31m"}'), r"\(400\): is this the URL"),
        ((404, b"<html>"), r"\(404\): is this the URL"),
        ((302, b""), r"\(302\): is this the URL"),
        ((200, b"{}"), r"\(200\): is this the URL"),
        ((200, b'{"more": ' + b"[" * 200_000), r"\(200\): is this the URL"),
        ((200, b'{"access_token": "two tokens"}'), "is no bearer token"),
        ((200, b'{"access_token": "' + b"x" * token_server.MOST_ANSWER_BYTES + b'"}'), r"\(200\): is this the URL"),
    ],
)
async def test_what_a_token_server_says_instead_is_told(
    server: TokenServer, caplog: pytest.LogCaptureFixture, answer: tuple[int, bytes], said: str
) -> None:
    """By status and, where it is one, error code; nothing else of the answer is quoted, and no secret logged."""
    server.answer = answer
    with caplog.at_level(logging.DEBUG), pytest.raises(TokenUnavailable, match=said) as caught:
        await asking(server).token()
    assert "\x1b" not in str(caught.value)
    assert SECRET not in f"{caught.value}{caplog.text}"


async def test_a_token_server_that_does_not_answer_is_given_up(
    server: TokenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The login fails and is tried again; it does not hang."""
    monkeypatch.setattr(token_server, "TIMEOUT_SECONDS", 0.2)
    server.pause.clear()
    try:
        with pytest.raises(TokenUnavailable, match=r"no answer within 0\.2 s"):
            await asking(server).token()
    finally:
        server.pause.set()


@pytest.mark.parametrize(
    ("expires_in", "seconds"),
    [(None, 48), (100, 80), ("100", 80), ("soon", 48), (0, 48), (-5, 48), (1e12, 48)],
)
async def test_how_long_a_token_is_good_is_read_with_care(
    server: TokenServer, expires_in: object, seconds: int
) -> None:
    """Without a number that makes sense, a minute."""
    now = 1_000.0
    server.expires_in = expires_in
    asked = asking(server, clock=lambda: now)
    await asked.token()
    now += seconds - 0.5
    await asked.token()
    assert server.asked[200] == 1
    now += 1
    await asked.token()
    assert server.asked[200] == 2


def test_the_time_of_a_token_is_read_where_it_has_one(issuer: Issuer) -> None:
    """It says why brokers refuse a token; what is no JWT has none."""
    assert expiry(issuer.token(seconds=10)) is not None
    for text in ("opaque", "a.b", "a.!!.c", "e30.e30.e30", "e30.MQ.e30", "e30.eyJleHAiOiJ4In0.e30"):
        assert expiry(text) is None


@pytest.mark.parametrize("claims", ['{"exp": -1e20}', '{"exp": 1' + "0" * 400 + "}", '{"a": ' + "[" * 100_000])
def test_a_token_that_brokers_refuse_is_told_of_whatever_it_says_of_itself(tmp_path: Path, claims: str) -> None:
    """A time before all calendars, a number that no float holds, lists without an end: none ends the process."""
    file = tmp_path / "token"
    file.write_text(f"e30.{base64.urlsafe_b64encode(claims.encode()).decode().rstrip('=')}.e30")
    assert FileTokens(file).remedy.startswith(f"Is the token in {file} made for these brokers")
