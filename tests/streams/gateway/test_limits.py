"""How much is taken of a request and of all at once, who may send, and what is answered when it is too much."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from schemas import topics
from schemas.decode import MAX_VALUE_BYTES
from streams.expiry import expiry
from streams.gateway import gateway, hooks, items
from streams.gateway.refused import too_large
from streams.gateway.settings import LEAST_TOKEN_CHARS, MAX_BODY_BYTES, GatewaySettings
from streams.page_settings import PageSettings
from tests.streams.gateway.conftest import Client, Opening, Since, published
from tests.streams.gateway.test_events import CALLS, NDJSON, call
from tests.waiting import until

MEBIBYTE = 2**20
TOKEN = "t" * 64


def sized(total: int, **fields: Any) -> bytes:
    """Build one call of so many bytes."""
    empty = len(json.dumps(call(0, result="", **fields)))
    return json.dumps(call(0, result="x" * (total - empty), **fields)).encode()


async def test_longest_body(opening: Opening, wire: Since) -> None:
    """A body of the most bytes is taken, one more is not, whether it says its length, comes in pieces, or packed."""
    most = 100_000
    async with opening(max_body_bytes=most) as client:
        for padding, status in ((0, 200), (1, 413)):
            body = json.dumps(call(0)).encode().ljust(most + padding)

            async def pieces(body: bytes = body) -> Any:
                for begin in range(0, len(body), 7_000):
                    yield body[begin : begin + 7_000]

            assert (await client.post(CALLS, body)).status == status
            assert (await client.post(CALLS, body, packed=True)).status == status
            deflated = {"Content-Encoding": "deflate"}
            assert (await client.post(CALLS, zlib.compress(body), headers=deflated)).status == status
            kind = {"Content-Type": "application/json"}
            async with client.session.post(client.url + CALLS, data=pieces(), headers=kind) as given:
                assert given.status == status
    assert len(await published(wire, topics.TOOL_CALLS)) == 4


async def test_packed_bodies(client: Client) -> None:
    """A few bytes that become very many are refused when the limit is reached, and what is not packed as it says."""
    bomb = gzip.compress(bytes(200 * MEBIBYTE))
    for body, coding, status in (
        (bomb, "gzip", 413),
        (b"{}", "gzip", 400),
        (gzip.compress(b"{}")[:-4], "gzip", 400),
        (gzip.compress(b"{}") * 2, "gzip", 400),
        (b"", "gzip", 400),
        (b"{}", "br", 415),
        (json.dumps(call(0)).encode(), "identity", 200),
    ):
        answer = await client.post(CALLS, body, headers={"Content-Encoding": coding})
        assert (answer.status, coding, len(body)) == (status, coding, len(body))
    assert client.serving.registry.get_sample_value("traction_gateway_in_flight_bytes") == 0


async def test_longest_event(client: Client, wire: Since) -> None:
    """An event of the contract's most bytes is taken, one more is refused, also when it grows as it is sent."""
    assert (await client.post(CALLS, sized(MAX_VALUE_BYTES - 100))).status == 200
    longer = await client.post(CALLS, b"[" + sized(MAX_VALUE_BYTES + 1) + b"," + json.dumps(call(1)).encode() + b"]")
    assert (longer.status, longer.json["accepted"]) == (200, 1)
    assert str(MAX_VALUE_BYTES) in longer.json["refused"][0]["reason"]
    numbers = json.dumps(call(2, arguments=[])).replace("[]", f"[{','.join(['1E15'] * 180_000)}]").encode()
    assert len(numbers) < MAX_VALUE_BYTES
    assert (await client.post(CALLS, numbers)).status == 422
    assert len(await published(wire, topics.TOOL_CALLS)) == 2


async def test_most_events(client: Client, wire: Since, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many events are taken in one request and not one more, in an array, as lines and from a spool."""
    monkeypatch.setattr(items, "MAX_ITEMS", 3)
    monkeypatch.setattr(hooks, "MAX_ITEMS", 3)
    line = json.dumps(call(0)).encode()
    kept = json.dumps({"agent": "codex", "at": "2026-01-01T00:00:00Z", "payload": {}}).encode()
    for count, status in ((3, 200), (4, 413)):
        assert (await client.post(CALLS, [call(0)] * count)).status == status
        assert (await client.post(CALLS, b"\n".join([line] * count), NDJSON)).status == status
        spooled = await client.post("/v1/hooks", b"\n".join([kept] * count), NDJSON)
        assert spooled.status == (422 if count == 3 else 413)
    assert len(await published(wire, topics.TOOL_CALLS)) == 6
    monkeypatch.setattr(items, "_MAX_COMMAS", 1)
    assert (await client.post(CALLS, b"[1,2,3]")).status == 413


async def test_too_many_requests(opening: Opening) -> None:
    """So many requests are taken at once; one more is told to come again, and is taken when there is room."""
    async with opening(max_requests=2) as client:
        held = [await _half(client) for _ in range(2)]
        refused = await client.post(CALLS, call(0))
        assert (refused.status, refused.headers["retry-after"]) == (429, "1")
        assert client.measured("traction_gateway_in_flight_requests") == 2
        for writer, rest in held:
            writer.write(rest)
        for writer, _ in held:
            await writer.drain()
        await until(lambda: not client.measured("traction_gateway_in_flight_requests"))
        assert (await client.post(CALLS, call(0))).status == 200
        for writer, _ in held:
            writer.close()


async def test_too_many_bytes(opening: Opening) -> None:
    """Requests of so many bytes are taken at once; more are told to come again."""
    most = 40_000
    async with opening(max_body_bytes=most // 2, max_bytes=most) as client:
        body = json.dumps(call(0)).encode().ljust(most // 2)
        held = [await _half(client, body) for _ in range(2)]
        await until(lambda: (client.measured("traction_gateway_in_flight_bytes") or 0) > 0.9 * most)
        refused = await client.post(CALLS, body)
        assert (refused.status, refused.headers["retry-after"]) == (429, "1")
        for writer, _ in held:
            writer.close()
        await until(lambda: not client.measured("traction_gateway_in_flight_requests"))
        assert (await client.post(CALLS, body)).status == 200
    with pytest.raises(ValueError, match="room twice"):
        GatewaySettings(max_body_bytes=10, max_bytes=19)


async def test_tokens(opening: Opening) -> None:
    """With tokens each request needs one of them; nothing of a body is read before, and pages have their own."""
    first, second = "f" * LEAST_TOKEN_CHARS, "s" * LEAST_TOKEN_CHARS
    async with opening(tokens=(first, second)) as client:
        for given, status in (
            (None, 401), ("Bearer third", 401), (f"Bearer {first} {second}", 401), (f"Basic {first}", 401),
            ("Bearer ", 401), (f"Bearer {first}", 200), (f"bearer  {second}", 200),
        ):  # fmt: skip
            headers = {} if given is None else {"Authorization": given}
            answer = await client.post(CALLS, call(0), headers=headers)
            assert (answer.status, given) == (status, given)
            assert ("www-authenticate" in answer.headers) is (status == 401)
            got = await client.get("/v1/sessions/s/verdict", **headers)
            assert got.status == status
        assert (await client.get("/readyz")).status == 200
        assert (
            await client.post(CALLS, call(0), headers={"Authorization": f"Bearer {first}", "Origin": "x"})
        ).status == 200
    for wrong in ("", "two words of a token", "ü" * 16, "x" * 2_000, first[1:]):
        with pytest.raises(ValueError, match=r"gateway's token.*16.*openssl rand -hex 32$"):
            GatewaySettings(tokens=(wrong,))
        with pytest.raises(ValueError, match="number 2 of the 3"):
            GatewaySettings(tokens=(first, wrong, second))


@pytest.mark.parametrize(
    ("host", "status"),
    [("localhost", 200), ("LOCALHOST.:8321", 200), ("127.0.0.1:80", 200), ("[::1]:8321", 200), ("[::1]", 200),
     ("gate.example:1", 200), ("rebound.example", 421), ("localhost.example", 421), ("[::2]:8321", 421), ("", 421)],
)  # fmt: skip
async def test_names_of_the_host(named: Client, host: str, status: int) -> None:
    """A gateway on its own machine answers to the names of that and those it was given, with a token or without.

    A web page may have its own name lead to this machine; browsers then tell that name.
    """
    answer = await named.post(CALLS, call(0), headers={"Host": host, "Authorization": f"Bearer {TOKEN}"})
    assert (answer.status, answer.json.get("error", "").partition(";")[0]) == (
        status,
        "" if status == 200 else "this gateway has no such name",
    )
    for page in ("/metrics", "/healthz", "/readyz"):  # what they tell is no stranger's to read either
        shown = await named.get(page, Host=host)
        assert (page, shown.status) == (page, status)
        assert (b"no such name" in shown.body) is (status == 421)


async def test_open_to_the_network(opening: Opening, caplog: pytest.LogCaptureFixture) -> None:
    """Where others reach it any name will do, and a warning says that the token goes in clear."""
    async with opening(PageSettings(host="0.0.0.0"), tokens=(TOKEN,)) as client:  # noqa: S104 - what this is about
        port = client.url.rpartition(":")[2]
        place = f"http://127.0.0.1:{port}{CALLS}"
        headers = {"Host": "gate.example", "Authorization": f"Bearer {TOKEN}"}
        async with client.session.post(place, json=call(0), headers=headers) as given:
            assert given.status == 200
    assert [each for each in caplog.messages if "in clear" in each and "--page-certfile" in each]
    caplog.clear()
    async with opening(tokens=(TOKEN,)):
        pass
    assert not [each for each in caplog.messages if "in clear" in each]


def test_what_is_too_long_is_told_what_there_is() -> None:
    """A larger limit is named only where there is one."""
    told = [too_large("the body", most).text for most in (MAX_BODY_BYTES - 1, MAX_BODY_BYTES)]
    assert ["--max-body" in text for text in told] == [True, False]
    assert all("send smaller requests" in text for text in told)


@pytest.fixture
async def named(opening: Opening) -> AsyncIterator[Client]:
    """Give a gateway that was given a name, and a token."""
    async with opening(names=("Gate.Example",), tokens=(TOKEN,)) as one:
        yield one


async def test_web_pages(client: Client) -> None:
    """Without a token, a page that somebody looks at in a browser can send nothing and read nothing."""
    assert (await client.post(CALLS, call(0), headers={"Origin": "https://example.com"})).status == 403
    assert (await client.post(CALLS, call(0), "text/plain")).status == 415


async def test_headers(client: Client) -> None:
    """Answers, refusals and failures of HTTP itself tell nothing to be stored, framed or run."""
    for answer in (await client.post(CALLS, call(0)), await client.post("/nowhere", {})):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "server" not in answer.headers


async def test_end(opening: Opening) -> None:
    """A gateway that ends answers what is in flight, and refuses what comes with a time to try again."""
    async with opening() as client:
        writer, rest = await _half(client)
        await until(lambda: client.measured("traction_gateway_in_flight_requests"))
        ending = asyncio.create_task(client.serving.gateway.end(10))
        await asyncio.sleep(0.05)
        refused = await client.post(CALLS, call(0))
        assert (refused.status, "retry-after" in refused.headers) == (503, True)
        assert not ending.done()
        writer.write(rest)
        await ending
        assert client.measured("traction_gateway_requests_total", route="events", code="200") == 1
        writer.close()


async def test_unexpected_failure(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect of ours is a 500 that quotes nothing, and the connection and the gateway go on."""
    monkeypatch.setattr(gateway, "told", lambda *_, **__: 1 / 0)
    answer = await client.post(CALLS, call(0))
    assert (answer.status, answer.body) == (500, b"internal server error\n")
    monkeypatch.undo()
    assert (await client.post(CALLS, call(0))).status == 200


async def test_expected_continue(client: Client, wire: Since) -> None:
    """Who asks first whether a body is wanted, as curl does with long ones, is told so."""
    body = json.dumps(call(0)).encode()
    port = int(client.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(_head(len(body), "Expect: 100-continue\r\nConnection: close\r\n"))
    assert b"100 Continue" in await reader.readuntil(b"\r\n\r\n")
    writer.write(body)
    assert (await reader.read()).startswith(b"HTTP/1.1 200")
    writer.close()
    assert len(await published(wire, topics.TOOL_CALLS)) == 1


async def test_encrypted(opening: Opening, tmp_path: Any) -> None:
    """The pages' certificate encrypts the gateway."""
    import ssl  # noqa: PLC0415 - of this alone

    import trustme  # noqa: PLC0415

    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    issued.private_key_pem.write_to_path(key)
    for part in issued.cert_chain_pems:
        part.write_to_path(cert, append=True)
    context = ssl.create_default_context()
    authority.configure_trust(context)
    async with opening(PageSettings(certfile=cert, keyfile=key)) as client:
        assert client.url.startswith("https://")
        async with client.session.post(client.url + CALLS, json=call(0), ssl=context) as given:
            assert (given.status, "Strict-Transport-Security" in given.headers) == (200, True)
        assert client.measured("traction_certificate_expiry_timestamp_seconds", certificate="pages") == expiry(cert)


async def _half(client: Client, body: bytes | None = None) -> tuple[asyncio.StreamWriter, bytes]:
    """Send a request but for its last byte, which is given."""
    body = body or json.dumps(call(0)).encode()
    _, writer = await asyncio.open_connection("127.0.0.1", int(client.url.rpartition(":")[2]))
    writer.write(_head(len(body)) + body[:-1])
    await writer.drain()
    before = client.measured("traction_gateway_in_flight_requests") or 0
    await until(lambda: (client.measured("traction_gateway_in_flight_requests") or 0) > before)
    return writer, body[-1:]


def _head(length: int, more: str = "") -> bytes:
    headers = f"Host: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{more}"
    return f"POST {CALLS} HTTP/1.1\r\n{headers}\r\n".encode()
