"""What one request comes to, whatever the receiver does: taken, not now, or never; and where no request goes."""

from __future__ import annotations

import functools
import ipaddress
import socket
from email.utils import formatdate
from typing import Any

import pytest

from streams.sinks.addresses import is_public
from streams.sinks.errors import Gone, Refused, Unavailable, Undelivered
from streams.sinks.http import SHOWN_CHARS, Http, Request, retry_after
from streams.sinks.secrets import Secret
from streams.sinks.settings import WebhookSettings
from tests.streams.sinks.conftest import HERE, Receiver, Reply, hang, huge, reset, status, trickle

TOKEN = "tok3n"  # noqa: S105 - opens nothing
SECONDS = 0.3
"""How long a try may take where none is answered."""


def settings(**fields: Any) -> WebhookSettings:
    """Give settings, with a timeout that no busy machine reaches unless a shorter one is wanted."""
    return WebhookSettings(name="x", **{"timeout_seconds": 60, **fields})


async def ask(url: str, *, need: int = 0, **fields: Any) -> bytes:
    """Make one request, and give the body of a good answer."""
    async with Http(settings(**fields), url, [Secret(TOKEN)]) as http:
        answer = await http.send(Request(f"{url}/{TOKEN}?key={TOKEN}", b"{}", need=need))
        return answer.body


async def failure(url: str, **fields: Any) -> Undelivered:
    """Make one request that is not taken, and give the error; it never shows the address."""
    with pytest.raises(Undelivered) as caught:
        await ask(url, **fields)
    assert TOKEN not in f"{caught.value}{caught.value.shown}{caught.value.__cause__}"
    return caught.value


@pytest.mark.parametrize("code", [200, 202, 204])
async def test_a_success_is_one(receiver: Receiver, code: int) -> None:
    """Any 2xx is taken; the request says who sends it and is JSON."""
    receiver.replies = [status(code)]
    await ask(receiver.url)
    (request,) = receiver.received
    assert (request.method, request.path, request.body) == ("POST", f"/{TOKEN}?key={TOKEN}", b"{}")
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["User-Agent"].startswith("traction/")


@pytest.mark.parametrize("code", [408, 425, 429, 500, 502, 503, 504])
async def test_what_may_pass_is_tried_again(receiver: Receiver, code: int) -> None:
    """Limits, timeouts and faults of the receiver are not for good, and say when to come back."""
    receiver.replies = [status(code, f"try later, {TOKEN}", Retry_After="17")]
    problem = await failure(receiver.url)
    assert isinstance(problem, Unavailable)
    assert (problem.status, problem.retry_after, problem.shown) == (code, 17.0, "try later, …")


@pytest.mark.parametrize("code", [400, 401, 403, 404, 413, 422])
async def test_what_does_not_pass_is_refused(receiver: Receiver, code: int) -> None:
    """Other client errors are for good."""
    receiver.replies = [status(code)]
    problem = await failure(receiver.url)
    assert (type(problem), problem.status) == (Refused, code)


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_redirects_are_not_followed(receiver: Receiver, code: int) -> None:
    """A redirect is refused, and what it names is not asked."""
    receiver.replies = [status(code, Location="/elsewhere")]
    problem = await failure(receiver.url)
    assert type(problem) is Refused
    assert "put the new address into the settings" in str(problem)
    assert len(receiver.received) == 1


async def test_gone_is_for_all(receiver: Receiver) -> None:
    """410 says that no notification will ever be taken."""
    receiver.replies = [status(410)]
    assert type(await failure(receiver.url)) is Gone


@pytest.mark.parametrize("headers", [{"Retry-After": "60"}, {"X-RateLimit-Remaining": "0"}])
async def test_a_forbidden_with_a_limit_may_pass(receiver: Receiver, headers: dict[str, str]) -> None:
    """GitHub's limit on requests comes as 403; it is not for good."""
    receiver.replies = [status(403, "", **headers)]
    assert isinstance(await failure(receiver.url), Unavailable)


@pytest.mark.parametrize("reply", [hang, trickle, reset])
async def test_no_answer_may_pass(receiver: Receiver, reply: Reply) -> None:
    """One that hangs, trickles for longer than the timeout, or closes is tried again."""
    receiver.replies = [reply]
    problem = await failure(receiver.url, timeout_seconds=60 if reply is reset else SECONDS)
    assert isinstance(problem, Unavailable)
    told = "closed the connection" if reply is reset else f"did not answer within {SECONDS:g} s"
    assert told in str(problem)


async def test_nobody_listens() -> None:
    """A port at which nobody listens may have somebody later."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    assert "cannot be connected to" in str(await failure(url))


async def test_a_huge_answer_is_not_read(receiver: Receiver) -> None:
    """Where the status is enough, an answer without an end is a success at once; where it is not, it is refused."""
    receiver.replies = [huge, huge]
    await ask(receiver.url)
    problem = await failure(receiver.url, need=100_000)
    assert type(problem) is Refused
    assert "more than 100000 bytes" in str(problem)


async def test_an_answer_may_have_the_bytes_that_are_needed(receiver: Receiver) -> None:
    """One of as many bytes as are needed at most is given, one with one more is not."""
    receiver.replies = [status(200, "x" * 100), status(200, "x" * 101)]
    assert await ask(receiver.url, need=100) == b"x" * 100
    await failure(receiver.url, need=100)


async def test_an_endless_refusal_is_one(receiver: Receiver) -> None:
    """What a refusal says is read no further than a person would."""
    receiver.replies = [functools.partial(huge, code=400)]
    problem = await failure(receiver.url)
    assert (type(problem), len(problem.shown)) == (Refused, SHOWN_CHARS)


async def test_certificates_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate of an unknown authority or for another name is refused, and may be mended; a good one is taken."""
    async with Receiver(certificate="localhost") as good, Receiver(certificate="other") as wrong:
        problem = await failure(good.url)
        assert isinstance(problem, Unavailable)
        assert "certificate is refused" in str(problem)

        monkeypatch.setenv("SSL_CERT_FILE", str(HERE / "tls" / "ca.pem"))
        await ask(good.url)
        problem = await failure(wrong.url)
        assert "Hostname mismatch" in str(problem)
        assert (len(good.received), len(wrong.received)) == (1, 0)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have every name resolve to the addresses of this list, and count them off one by one."""
    addresses: list[str] = []
    real = socket.getaddrinfo

    def resolve(host: Any, port: Any, *more: Any, **options: Any) -> Any:
        if not str(host).endswith(".test"):
            return real(host, port, *more, **options)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (addresses.pop(0), port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return addresses


async def test_a_name_of_the_inside_is_refused(receiver: Receiver, names: list[str]) -> None:
    """A name that turns into an inner address is not connected to, unless that is allowed."""
    port = receiver.url.rpartition(":")[2]
    url = f"http://hooks.test:{port}"
    for address in ("127.0.0.1", "10.0.0.1", "169.254.169.254", "0.0.0.0"):  # noqa: S104 - nothing is bound
        names.append(address)
        problem = await failure(url)
        assert type(problem) is Refused
        assert "set allow_private = true" in str(problem)
    assert not receiver.received

    names.append("127.0.0.1")
    await ask(url, allow_private=True)
    assert len(receiver.received) == 1


async def test_a_name_that_changes_is_refused(receiver: Receiver, names: list[str]) -> None:
    """What a name was resolved to before does not count: the address that is connected to is what is checked."""
    port = receiver.url.rpartition(":")[2]
    names += ["192.0.2.1", "127.0.0.1"]
    socket.getaddrinfo("hooks.test", port)
    assert type(await failure(f"http://hooks.test:{port}")) is Refused
    assert (names, receiver.received) == ([], [])


@pytest.mark.parametrize("host", ["10.0.0.1", "192.168.1.1", "169.254.169.254", "[fd00::1]", "[::ffff:10.0.0.1]"])
async def test_an_address_of_the_inside_is_refused(host: str) -> None:
    """An address that is written out is checked as well as a name's."""
    assert type(await failure(f"http://{host}:9")) is Refused


async def test_only_this_machine_is_meant_by_its_name() -> None:
    """A sink that names this machine may not be led to another one inside."""
    async with Http(settings(), "http://localhost:1") as http:
        with pytest.raises(Refused):
            await http.send(Request("http://10.0.0.1:9/", b"{}"))


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("1.1.1.1", True),
        ("2606:4700::1", True),
        ("127.0.0.1", False),
        ("100.64.0.1", False),
        ("224.0.1.1", False),
        ("255.255.255.255", False),
        ("::1", False),
        ("fe80::1", False),
        ("::ffff:1.1.1.1", True),
        ("::ffff:127.0.0.1", False),
        ("64:ff9b::1.1.1.1", True),
        ("64:ff9b::127.0.0.1", False),
        ("2002:7f00:1::", False),
        ("ff0e::1", False),
        ("fec0::1", False),
        ("::127.0.0.1", False),
        ("64:ff9b:1::127.0.0.1", False),
        ("5f00::1", False),
    ],
)
def test_which_addresses_are_public(address: str, public: object) -> None:
    """Inner, local, shared and group addresses are not, nor what hides one of them in IPv6."""
    assert is_public(ipaddress.ip_address(address)) is public


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "0"}, 0.0),
        ({"Retry-After": " 120 "}, 120.0),
        ({"Retry-After": "9" * 400}, 999_999_999.0),
        ({"Retry-After": formatdate(1_030, usegmt=True)}, 30.0),
        ({"Retry-After": formatdate(900, usegmt=True)}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-5"}, None),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1060"}, 60.0),
        ({"x-ratelimit-remaining": "5", "x-ratelimit-reset": "1060"}, None),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "x"}, None),
    ],
)
def test_when_to_come_back(headers: dict[str, str], seconds: float | None) -> None:
    """Seconds, dates and GitHub's reset are understood, and nonsense is not."""
    assert retry_after(headers, 1_000.0) == seconds
