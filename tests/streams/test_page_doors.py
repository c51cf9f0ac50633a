"""Who may read the pages, how much strangers can take of the process, and that what is read is encrypted."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import trustme
from aiohttp import web
from prometheus_client import CollectorRegistry, Counter

from streams.certificate import Certificate, InvalidCertificate
from streams.health import Health
from streams.page_server import MAX_FIELD_BYTES, MAX_FIELDS, MAX_LINE_BYTES, Bounds, Handler, answer
from streams.page_settings import MAX_TOKEN_CHARS, PageError, PageSettings
from streams.pages import Pages

TOKEN = "s3cret-of-the-pages"  # noqa: S105 - of these tests
ANYWHERE = "0.0.0.0"  # noqa: S104 - what these tests are about

Serving = Callable[..., AbstractAsyncContextManager[Pages]]

PATHS = ["/metrics", "/healthz", "/readyz"]


@pytest.fixture
def serving() -> Serving:
    """Give a way to serve pages, of a process that is alive and not ready."""
    registry = CollectorRegistry()
    Counter("traction_things", "Things.", registry=registry).inc()

    @asynccontextmanager
    async def serve(
        bounds: Bounds | None = None, others: Handler | None = None, **settings: Any
    ) -> AsyncIterator[Pages]:
        pages = Pages(PageSettings(**settings), registry, Health(("taken",)), bounds=bounds, others=others)
        await pages.start()
        try:
            yield pages
        finally:
            await pages.stop()

    return serve


def address(pages: Pages) -> tuple[str, int]:
    """Give where to connect to."""
    return "127.0.0.1", int(pages.url.rpartition(":")[2])


async def close_nothing(request: web.BaseRequest) -> web.StreamResponse:
    """Answer whatever is no page, leave the connection open, and do not look at what was sent."""
    return answer(HTTPStatus.OK, request.path, close=False)


async def get(pages: Pages, path: str, sent: str | None = None) -> tuple[int, str]:
    """Read a page, with something in the header for tokens or without: status and text."""
    host, port = address(pages)
    headers = {} if sent is None else {"Authorization": sent}
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://{host}:{port}{path}", headers=headers) as answer,
    ):
        return answer.status, await answer.text()


async def talk(pages: Pages, *said: bytes) -> bytes:
    """Say something to the pages, word for word, and give all that comes back until they hang up."""
    reader, writer = await asyncio.open_connection(*address(pages))
    try:
        for each in said:
            writer.write(each)
            await writer.drain()
        return await reader.read()
    finally:
        writer.close()


def head(answer: bytes) -> tuple[int, dict[str, str]]:
    """Take status and headers out of an answer."""
    first, *lines = answer.partition(b"\r\n\r\n")[0].decode().split("\r\n")
    return int(first.split()[1]), {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}


WRONG = [None, "Bearer wrong", f"Basic {TOKEN}", "bearer", f"Bearer {TOKEN.upper()}", TOKEN, f"Bearer {TOKEN}x"]


@pytest.mark.parametrize("sent", WRONG)
async def test_without_the_token_strangers_learn_only_whether_all_is_well(serving: Serving, sent: str | None) -> None:
    """The metrics are refused; the probes, which have no token, are answered without a word of the state."""
    async with serving(token=TOKEN) as pages:
        status, text = await get(pages, "/metrics", sent)
        assert (status, "traction_" in text) == (401, False)
        assert [
            (status, json.loads(text)) for status, text in [await get(pages, path, sent) for path in PATHS[1:]]
        ] == [
            (200, {"ok": True}),
            (503, {"ok": False}),
        ]


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_with_the_token_everything_is_told(serving: Serving, scheme: str) -> None:
    """One token opens all pages, also from afar."""
    async with serving(token=TOKEN, host=ANYWHERE) as pages:
        status, text = await get(pages, "/metrics", f"{scheme} {TOKEN}")
        assert (status, "traction_things_total 1.0" in text) == (200, True)
        status, text = await get(pages, "/readyz", f"{scheme} {TOKEN}")
        assert (status, json.loads(text)) == (503, {"ok": False, "checks": {"taken": "not yet"}})


@pytest.mark.parametrize(
    ("host", "token", "warns", "details"),
    [
        ("127.0.0.1", None, False, True),
        ("localhost", None, False, True),
        (ANYWHERE, None, True, False),
        (ANYWHERE, TOKEN, False, False),
    ],
)
async def test_pages_open_to_the_network_without_a_token_are_warned_of(
    serving: Serving, caplog: pytest.LogCaptureFixture, *, host: str, token: str | None, warns: bool, details: bool
) -> None:
    """By default only this machine can read them; who opens them without a token is told, and details stay inside."""
    caplog.set_level(logging.WARNING, "streams")
    async with serving(host=host, token=token) as pages:
        _, text = await get(pages, "/readyz")
    assert bool(caplog.records) == warns
    assert ("checks" in json.loads(text)) == details


@pytest.mark.parametrize(
    ("token", "taken"),
    [
        ("x" * MAX_TOKEN_CHARS, True),
        ("x" * (MAX_TOKEN_CHARS + 1), False),
        ("", False),
        ("two words", False),
        ("l\ne", False),
        ("schlüssel", False),
    ],
)
async def test_a_token_that_no_request_can_carry_is_refused(serving: Serving, token: str, *, taken: bool) -> None:
    """It is told at the start, without being quoted; the longest one does open the pages."""
    if not taken:
        with pytest.raises(ValueError, match="openssl rand -hex 32") as refused:
            PageSettings(token=token)
        assert not token or token not in str(refused.value)
        return
    async with serving(token=token) as pages:
        assert (await get(pages, "/metrics", f"Bearer {token}"))[0] == 200


def test_the_token_is_never_printed() -> None:
    """Settings that end up in a log do not tell the token."""
    assert TOKEN not in repr(PageSettings(token=TOKEN))


REQUESTS = {
    "metrics": (b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 401),
    "well": (b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 200),
    "not well": (b"HEAD /readyz HTTP/1.1\r\nHost: x\r\n\r\n", 503),
    "no page": (b"GET /secret HTTP/1.1\r\nHost: x\r\n\r\n", 404),
    "other method": (b"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 405),
    "no HTTP": (b"hello\r\n\r\n", 400),
    "bad header": (b"GET /healthz HTTP/1.1\r\nHost x\r\n\r\n", 400),
    "long line": (b"GET /healthz?" + b"x" * MAX_LINE_BYTES + b" HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "long header": (b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + b"x" * (MAX_FIELD_BYTES + 1) + b"\r\n\r\n", 400),
    "many headers": (b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"X: x\r\n" * MAX_FIELDS + b"\r\n", 400),
    "almost too long": (
        b"GET /healthz?" + b"x" * (MAX_LINE_BYTES - 40) + b" HTTP/1.1\r\nHost: x\r\nX: " + b"x" * (MAX_FIELD_BYTES - 8)
        + b"\r\n" + b"X: x\r\n" * (MAX_FIELDS - 2) + b"\r\n",
        200,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REQUESTS)
async def test_every_answer_has_the_headers(serving: Serving, name: str) -> None:
    """Refusals and errors too: nothing is stored, run or framed, nothing of the server is told, and it hangs up."""
    said, wanted = REQUESTS[name]
    async with serving(token=TOKEN) as pages:
        status, headers = head(await talk(pages, said))
    assert status == wanted
    assert (
        headers.items()
        >= {
            "x-content-type-options": "nosniff",
            "cache-control": "no-store",
            "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
            "referrer-policy": "no-referrer",
        }.items()
    )
    assert not {"server", "strict-transport-security"} & headers.keys()


@pytest.mark.parametrize("path", [*PATHS, "/nothing"])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "BREW"])
async def test_the_pages_can_only_be_read(serving: Serving, method: str, path: str) -> None:
    """Every other method is refused, with or without the token."""
    async with serving(token=TOKEN) as pages:
        said = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
        status, headers = head(await talk(pages, said.encode()))
    assert status == (400 if method == "BREW" else 405)
    assert status != 405 or headers["allow"] == "GET, HEAD"


async def test_a_failure_of_ours_tells_nothing(serving: Serving, caplog: pytest.LogCaptureFixture) -> None:
    """A metric that cannot be read is an error without details on the page, and told in the log."""

    class Broken:
        def collect(self) -> None:
            raise RuntimeError("of the inside")

    async with serving() as pages:
        pages._registry.register(Broken())  # type: ignore[arg-type]
        answer = await talk(pages, REQUESTS["metrics"][0])
    status, headers = head(answer)
    assert (status, headers["cache-control"]) == (500, "no-store")
    assert b"inside" not in answer
    assert "of the inside" in caplog.text


BEGINNINGS = [b"", b"GET /healthz HTTP/1.1\r\n", b"GET /healthz HTTP/1.1\r\nX-Slow: "]


@pytest.mark.parametrize("encrypted", [False, True])
async def test_connections_that_are_held_open_keep_nobody_out(
    serving: Serving, files: Files, *, encrypted: bool
) -> None:
    """However many say nothing or half of something, a probe is answered, and the oldest has to go."""
    bounds = Bounds(connections=4, seconds=3600)
    async with serving(bounds, **(files() if encrypted else {})) as pages:
        held = []
        for number in range(3 * bounds.connections):
            reader, writer = await asyncio.open_connection(*address(pages))
            writer.write(BEGINNINGS[number % len(BEGINNINGS)] if not encrypted else b"")
            held.append((reader, writer))
        for number in range(bounds.connections):
            tls = trusting(files.ca) if encrypted else None
            reader, writer = await asyncio.open_connection(
                *address(pages), ssl=tls, server_hostname="localhost" if tls else None
            )
            writer.write(REQUESTS["well"][0])
            assert head(await reader.read())[0] == 200, number
            writer.close()
        assert await held[0][0].read() == b"", "the oldest is closed"
        still = sum(not reader.at_eof() for reader, _ in held)
        assert still <= bounds.connections
        for _, writer in held:
            writer.close()


async def test_many_at_once_are_all_answered(serving: Serving) -> None:
    """Connections that lie ready are taken one by one: each is looked at before others take its place."""
    loop, count = asyncio.get_running_loop(), Bounds().connections + 32
    asked = []
    async with serving() as pages:
        for _ in range(count):  # without a turn of the loop
            asked.append(socket.create_connection(address(pages)))
            asked[-1].sendall(REQUESTS["well"][0])
            asked[-1].settimeout(0)
        got = [head(await loop.sock_recv(each, 4096))[0] for each in asked]
    for each in asked:
        each.close()
    assert got == [200] * count


@pytest.mark.parametrize("said", BEGINNINGS)
async def test_whoever_is_slow_is_cut_off(serving: Serving, said: bytes) -> None:
    """A request that does not come to its end in its time is dropped; one that does is answered before."""
    async with serving(Bounds(seconds=0.2)) as pages:
        assert await talk(pages, said) == b""
        assert head(await talk(pages, REQUESTS["well"][0]))[0] == 200


async def test_a_body_without_end_is_not_read(serving: Serving) -> None:
    """It is refused as any other method's, and does not keep the connection."""
    async with serving(Bounds(seconds=3600)) as pages:
        begun = b"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\nx"
        assert head(await talk(pages, begun))[0] == 405


async def test_many_requests_on_one_connection_get_one_answer(serving: Serving) -> None:
    """Requests sent in advance cost nothing: the connection ends with the first answer."""
    async with serving() as pages:
        answer = await talk(pages, REQUESTS["well"][0] * 100)
    assert answer.count(b"HTTP/1.1 ") == 1


async def test_the_system_may_refuse_connections_for_a_while(
    serving: Serving, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without file descriptors the pages wait, say so once, and go on when there are some again."""
    loop = asyncio.get_running_loop()
    accept, refusals = loop.sock_accept, [errno.EMFILE, errno.ENFILE]

    async def refusing(listener: socket.socket) -> tuple[socket.socket, Any]:
        if refusals:
            number = refusals.pop()
            raise OSError(number, os.strerror(number))
        return await accept(listener)

    monkeypatch.setattr(loop, "sock_accept", refusing)
    monkeypatch.setattr("streams.page_server.REST_SECONDS", 0.01)
    async with serving() as pages:
        assert (await get(pages, "/healthz"))[0] == 200
    assert caplog.text.count("cannot take a connection") == 1


class Files:
    """Writes certificates of a test authority to files, again and again."""

    def __init__(self, folder: Path) -> None:
        self.ca = trustme.CA()
        self._folder = folder

    def __call__(self, *, cert: bool = True, key: bool = True) -> dict[str, Path]:
        """Write a new certificate, its key, or both, and give the settings that name them."""
        made = self.ca.issue_cert("localhost", "127.0.0.1")
        certfile, keyfile = self._folder / "tls.crt", self._folder / "tls.key"
        if cert:
            certfile.write_bytes(b"".join(blob.bytes() for blob in made.cert_chain_pems))
        if key:
            made.private_key_pem.write_to_path(str(keyfile))
        return {"certfile": certfile, "keyfile": keyfile}


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """Give a writer of certificates."""
    return Files(tmp_path)


def trusting(ca: trustme.CA, most: ssl.TLSVersion = ssl.TLSVersion.MAXIMUM_SUPPORTED) -> ssl.SSLContext:
    """Give what a client needs that trusts this authority alone."""
    context = ssl.create_default_context()
    ca.configure_trust(context)
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    context.maximum_version = most
    return context


async def shown(pages: Pages, context: ssl.SSLContext) -> tuple[bytes, dict[str, str]]:
    """Read a page over TLS, and give the certificate that was shown, and the headers."""
    reader, writer = await asyncio.open_connection(*address(pages), ssl=context, server_hostname="localhost")
    writer.write(REQUESTS["well"][0])
    answer = await reader.read()
    certificate: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    status, headers = head(answer)
    assert status == 200
    return certificate, headers


async def test_encrypted_pages(serving: Serving, files: Files) -> None:
    """TLS 1.2 and 1.3, and nothing older nor plain; browsers are told to keep to it."""
    settings = files()
    assert Certificate(**settings).context().minimum_version == ssl.TLSVersion.TLSv1_2
    async with serving(**settings) as pages:
        assert pages.url.startswith("https://127.0.0.1:")
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            _, headers = await shown(pages, trusting(files.ca, version))
            assert headers["strict-transport-security"] == "max-age=31536000"
        assert b"HTTP" not in await talk(pages, REQUESTS["well"][0])
        await shown(pages, trusting(files.ca))


async def test_a_renewed_certificate_is_shown_from_then_on(
    serving: Serving, files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a restart; while only one of the two files is new, or there is none, the one before is shown."""
    caplog.set_level(logging.INFO, "streams")
    settings = files()
    async with serving(**settings) as pages:
        first, _ = await shown(pages, trusting(files.ca))
        assert (await shown(pages, trusting(files.ca)))[0] == first
        files(key=False)
        assert (await shown(pages, trusting(files.ca)))[0] == first
        assert (await shown(pages, trusting(files.ca)))[0] == first
        assert caplog.text.count("do not belong together") == 1
        settings["certfile"].unlink()
        assert (await shown(pages, trusting(files.ca)))[0] == first
        files()
        second, _ = await shown(pages, trusting(files.ca))
        assert second != first
        assert (await shown(pages, trusting(files.ca)))[0] == second
    assert caplog.text.count("read anew") == 1


async def test_a_certificate_swapped_by_link_is_noticed(serving: Serving, files: Files, tmp_path: Path) -> None:
    """Secrets that an orchestrator mounts are renewed so: files stay, and a directory above them is another."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        for file in files().values():
            file.rename(tmp_path / name / file.name)
    link, spare = tmp_path / "data", tmp_path / "spare"
    link.symlink_to("one")
    async with serving(certfile=link / "tls.crt", keyfile=link / "tls.key") as pages:
        first, _ = await shown(pages, trusting(files.ca))
        spare.symlink_to("two")
        spare.rename(link)
        assert (await shown(pages, trusting(files.ca)))[0] != first


def break_key(settings: dict[str, Path]) -> None:
    """Leave something else where the key was."""
    settings["keyfile"].write_text("-----BEGIN PRIVATE KEY-----\n")


def lose_key(settings: dict[str, Path]) -> None:
    """Take the key away."""
    settings["keyfile"].unlink()


def lock_key(settings: dict[str, Path]) -> None:
    """Put a passphrase on the key."""
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - it comes with trustme, for this only

    key = serialization.load_pem_private_key(settings["keyfile"].read_bytes(), None)
    settings["keyfile"].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"passphrase"),
        )
    )


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (break_key, "cannot be used"),
        (lose_key, "cannot be read (No such file or directory)"),
        (lock_key, "without a passphrase"),
    ],
)
async def test_files_that_cannot_be_used_are_told_at_the_start(
    serving: Serving, files: Files, wrong: Callable[[dict[str, Path]], None], words: str
) -> None:
    """Both files are named, with what to do; nobody is asked for a passphrase."""
    settings = files()
    wrong(settings)
    with pytest.raises(PageError) as told:
        async with serving(**settings):
            pass
    assert words in str(told.value)
    assert all(str(file) in str(told.value) for file in settings.values())


async def test_a_key_of_another_certificate_is_told_at_the_start(files: Files) -> None:
    """That is the mistake that is made, and has words of its own."""
    files()
    with pytest.raises(InvalidCertificate, match="do not belong together"):
        Certificate(**files(cert=False))


@pytest.mark.parametrize("given", ["certfile", "keyfile"])
def test_one_file_alone_is_refused(given: str) -> None:
    """Half of it would be plain HTTP where somebody believes otherwise."""
    with pytest.raises(ValueError, match="both the certificate file and the key file"):
        PageSettings(**{given: Path("x")})  # type: ignore[arg-type]


@pytest.mark.skipif(sys.platform == "win32", reason="uvloop is not there")
def test_the_workers_event_loop_serves_them_as_well(serving: Serving, files: Files) -> None:
    """The worker runs on uvloop, whose sockets and TLS are its own."""
    import uvloop  # noqa: PLC0415 - not on every platform

    async def run() -> None:
        bounds = Bounds(connections=2, seconds=3600)
        async with serving(bounds, **files()) as pages:
            held = [await asyncio.open_connection(*address(pages)) for _ in range(5)]
            await shown(pages, trusting(files.ca))
            assert await held[0][0].read() == b""
            for _, writer in held:
                writer.close()
        async with serving(Bounds(seconds=0.2)) as pages:
            assert await talk(pages, BEGINNINGS[1]) == b""
            assert head(await talk(pages, REQUESTS["well"][0]))[0] == 200

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


async def ask(stream: tuple[asyncio.StreamReader, asyncio.StreamWriter], path: str = "/other") -> bytes:
    """Ask for something that is no page on an open connection, and give its body; nothing where it was closed."""
    reader, writer = stream
    writer.write(f"GET {path} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
    head = await reader.read(4_096)
    return head.partition(b"\r\n\r\n")[2]


async def test_connections_that_stay_open(serving: Serving) -> None:
    """Of those that stay open between requests, one more closes that which was at rest for longest, not the oldest."""
    async with serving(Bounds(connections=2), close_nothing) as pages:
        first, second = [await asyncio.open_connection(*address(pages)) for _ in range(2)]
        assert [await ask(each) for each in (first, second, first)] == [b"/other"] * 3
        third = await asyncio.open_connection(*address(pages))
        assert [await ask(each) for each in (third, first)] == [b"/other"] * 2
        assert await second[0].read() == b""
        for _, writer in (first, second, third):
            writer.close()
        assert (await get(pages, "/healthz"))[0] == 200


async def test_a_connection_at_rest_is_closed(serving: Serving) -> None:
    """Its time begins anew with each request and each answer, and is over at some time."""
    async with serving(Bounds(seconds=2.0), close_nothing) as pages:
        stream = await asyncio.open_connection(*address(pages))
        for _ in range(3):
            assert await ask(stream) == b"/other"
            await asyncio.sleep(0.7)
        assert await stream[0].read() == b""
        stream[1].close()


async def test_an_answer_before_the_end_of_a_body(serving: Serving) -> None:
    """Who sends on after the answer is there still hears it, where the rest of a body is taken in."""
    async with serving(Bounds(linger_seconds=5), close_nothing) as pages:
        body = b"x" * 4_000_000
        said = await talk(pages, b"POST /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n", _length(body), body)
    assert (said.startswith(b"HTTP/1.1 200"), said.endswith(b"/a")) == (True, True)


def _length(body: bytes) -> bytes:
    return f"Content-Length: {len(body)}\r\n\r\n".encode()
