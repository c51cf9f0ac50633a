"""No secret of ours is in a log, on a page, in a dead letter, or in what settings look like when they are printed."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import aiohttp
import pytest
from aiohttp import web
from aiokafka import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from schemas import topics
from schemas.encode import encode
from streams import masking
from streams.cli.options import PlainFormatter
from streams.kafka import KafkaSettings, consumer, producer, running
from streams.masking import KEPT, LEAST_PART, MASK, hide, masked
from streams.page_settings import PageSettings
from streams.sinks.run import make
from streams.sinks.secrets import Secret
from streams.sinks.settings import read_sinks
from streams.tokens import FileTokens
from streams.topics import create_topics
from tests.processes import TRACTION
from tests.streams.sinks.conftest import build
from tests.waiting import SOON_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

SECRET = "Tr0ub4dor'&\"3\\ü"  # noqa: S105 - of these tests; it has all that is escaped somewhere

ENVIRONMENT = {
    "TRACTION_PAGE_TOKEN": "page-7d41c2",
    "SLACK_URL": "http://127.0.0.1:PORT/services/T0/B0/slack-9a4e11",
    "HOOK_URL": "http://127.0.0.1:PORT/hook-5b1f03?key=hook-5b1f03",
    "HOOK_SECRET": "whsec_c2lnbmluZy1zZWNyZXQtb2YtdGhlLWhvb2stNDcxMQ==",
    "PAGER_KEY": "0123456789abcdefpager00a7c3e8d51",
    "FORGE_TOKEN": "ghp_forge30e6bb",
    "ALERTS_URL": "http://127.0.0.1:PORT/alerts-6c20fd",
}
"""Every secret that a process of ours may have besides a password."""

MARKS = {
    "page-7d41c2", "slack-9a4e11", "hook-5b1f03", "c2lnbmluZy1zZWNyZXQtb2YtdGhlLWhvb2stNDcxMQ", "pager00a7c3e8d51",
    "forge30e6bb", "alerts-6c20fd",
}  # fmt: skip
"""What must not be seen of them."""

POLICY = """
[sinks]
team = { type = "slack", url_env = "SLACK_URL", per_second = 100 }
hook = { type = "webhook", url_env = "HOOK_URL", secret_env = "HOOK_SECRET" }
pager = { type = "pagerduty", url = "http://127.0.0.1:PORT/v2/enqueue", routing_key_env = "PAGER_KEY" }
forge = { type = "github", api_url = "http://127.0.0.1:PORT", token_env = "FORGE_TOKEN", repo = "acme/shop" }
alerts = { type = "alertmanager", url_env = "ALERTS_URL" }
"""

SINKS = 5


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Have no secret known before and after."""
    masking._hidden.clear()
    masking._pattern.clear()
    yield
    masking._hidden.clear()
    masking._pattern.clear()


@pytest.fixture
def logged() -> Iterator[Callable[[], str]]:
    """Log as the commands do, and give what was logged."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(PlainFormatter("%(levelname)s: %(message)s"))
    logging.getLogger("masking.test").addHandler(handler)
    yield stream.getvalue
    logging.getLogger("masking.test").removeHandler(handler)


SHAPES: list[Callable[[str], str]] = [
    str,
    repr,
    ascii,
    json.dumps,
    quote,
    lambda text: json.dumps(text, ensure_ascii=False),
    lambda text: repr(text.encode()),
    lambda text: repr(f"\0agent\0{text}".encode()),
    lambda text: repr({"password": text, "user": "it's"}),
    lambda text: f"https://user:{quote(text, safe='')}@host/",
]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_secret_is_masked_however_it_is_written(shape: Callable[[str], str]) -> None:
    """Libraries write texts as Python, JSON or addresses do: no part of eight characters is left of it."""
    hide("password", SECRET)
    text = masked(f"before {shape(SECRET)} after")
    assert (MASK in text, text.startswith("before "), text.endswith(" after")) == (True, True, True)
    assert "Tr0ub4dor" not in text


AROUND = "ab=:'\" "


@given(
    secret=st.text(st.characters(codec="utf-8", exclude_characters=AROUND + MASK), min_size=1, max_size=12),
    around=st.text(AROUND, max_size=5),
)
def test_no_secret_is_left_in_a_text(secret: str, around: str) -> None:
    """Whatever it consists of and whatever stands around it."""
    masking._hidden.clear()
    hide("any", secret)
    for shape in (str, repr, ascii, json.dumps):
        text = masked(f"{around}{shape(secret)}{around}")
        assert MASK in text
        assert secret not in text


def test_parts_of_a_secret_are_masked_from_so_many_characters_on() -> None:
    """Keys in a list of them, and the path of an address; everyday words stay readable."""
    word, short = "k" * LEAST_PART, "s" * (LEAST_PART - 1)
    hide("keys", f"{word} {short}")
    hide("address", "https://hooks.example.com/services/T0/B0?thread=1")
    assert masked(f"{word}. {short}.") == f"{MASK}. {short}."
    assert masked("GET /services/T0/B0 of hooks.example.com") == f"GET /{MASK} of hooks.example.com"


def test_earlier_values_stay_masked_for_a_while() -> None:
    """A secret that is rotated is known with the values before, and no list grows for ever."""
    values = [f"value-{number}-of-it" for number in range(KEPT + 1)]
    for value in values:
        hide("token", value)
        hide("token", value)
    assert masked(" ".join(values)) == " ".join([values[0], *[MASK] * KEPT])
    hide("nothing", "")
    assert masked("as it is") == "as it is"


async def test_tokens_to_log_in_with_are_masked(tmp_path: Path) -> None:
    """They are read anew at each login, and so is what is masked."""
    file = tmp_path / "token"
    for token in ("eyJ0b2tlbg.one", "eyJ0b2tlbg.two"):
        file.write_text(f"{token}\n")
        assert await FileTokens(file).token() == token
        assert masked(f"with {token}") == f"with {MASK}"


def test_tracebacks_and_stacks_are_masked_too(logged: Callable[[], str]) -> None:
    """In the message, its arguments, the exceptions behind it, at every level; no long line is cut through it."""
    hide("password", SECRET)
    logger = logging.getLogger("masking.test")
    logger.setLevel(logging.DEBUG)
    try:
        try:
            int(SECRET)
        except ValueError as problem:
            raise RuntimeError(SECRET) from problem
    except RuntimeError:
        logger.exception("failed for %r", SECRET)
    logger.debug("%s %s", {"password": SECRET}, SECRET.encode(), stack_info=True)
    logger.info("%s%s", "x" * (PlainFormatter.MOST - 5), SECRET)
    text = logged()
    assert text.count("Traceback") == 2
    assert "Tr0u" not in text
    assert text.count(MASK) >= 6


def test_what_ends_the_process_is_masked_too() -> None:
    """An error that nobody foresaw is printed by Python itself, and a log line before any handler by logging."""
    code = (
        "import logging, streams.cli as c; from streams.masking import hide; import click;"
        "c.COMMANDS['x'] = c.Entry('x:x', 'X.');\n"
        "def fail(*_):\n hide('p', 'hush-4711'); logging.getLogger('y').warning('with hush-4711'); KIND\n"
        "c.run = fail if KINDLESS else c.run\nc.LazyGroup.get_command = fail\n"
        "import sys; sys.argv = ['traction', 'x']; c.main()"
    )
    for kind, kindless in (
        ("raise RuntimeError('of hush-4711')", True),
        ("raise click.UsageError('of hush-4711')", False),
    ):
        done = subprocess.run(
            [sys.executable, "-c", code.replace("KINDLESS", str(kindless)).replace("KIND", kind)],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert done.returncode in {1, 2}
        assert (f"with {MASK}" in done.stderr, f"of {MASK}" in done.stderr) == (True, True), done.stderr
        assert "hush" not in done.stderr + done.stdout


def test_what_ends_a_thread_is_masked_too(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Python prints that by itself as well; a thread that wanted to end says nothing."""
    hide("p", "hush-4711")
    for hooked, name in ((sys, "excepthook"), (threading, "excepthook")):
        monkeypatch.setattr(hooked, name, getattr(hooked, name))
    masking.mask_failures()

    def fail(problem: BaseException) -> None:
        raise problem

    for problem in (ValueError("of hush-4711"), SystemExit("of hush-4711")):
        thread = threading.Thread(target=fail, args=(problem,))
        thread.start()
        thread.join()
    said = capsys.readouterr().err
    assert (said.count("Traceback"), said.count(f"of {MASK}"), "hush" in said) == (1, 1, False)


def test_settings_do_not_tell_their_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of Kafka, of the pages, of every type of sink: neither as text nor as Python shows it."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value.replace("PORT", "1"))
    import tomllib  # noqa: PLC0415 - for this only

    sinks = read_sinks(tomllib.loads(POLICY.replace("PORT", "1"))["sinks"], "p")
    assert len(sinks) == SINKS
    objects: list[Any] = [
        KafkaSettings(security_protocol="SASL_SSL", username="agent", password="page-7d41c2"),  # noqa: S106
        PageSettings(token="page-7d41c2"),  # noqa: S106 - of this test
        Secret("page-7d41c2"),
        *sinks,
        *(make(each, "p") for each in sinks),
    ]
    for each in objects:
        assert not {mark for mark in MARKS if mark in f"{each!r} {each} {[each]}"}


class Process:
    """A command of ours with secrets in its environment, all that it says kept."""

    def __init__(self, *words: str, environment: dict[str, str]) -> None:
        own = {name: value for name, value in os.environ.items() if not name.startswith("TRACTION_")}
        self.popen = subprocess.Popen(
            [TRACTION, *words, "--log-level", "debug"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**own, **environment},
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.popen.stdout is not None
        self.lines.extend(self.popen.stdout)

    async def pages(self) -> str:
        """Wait until it is ready, and give the address of its pages."""
        async with asyncio.timeout(SOON_SECONDS):
            while not (found := [line for line in list(self.lines) if " ready: " in line]):
                assert self.popen.poll() is None, "".join(self.lines)
                await asyncio.sleep(0.1)
        return found[-1].split()[-1]

    async def end(self) -> str:
        """Stop it, and give all that it said."""
        if self.popen.poll() is None:
            self.popen.terminate()
        await asyncio.to_thread(self.popen.wait, 30)
        self._reader.join(10)
        return "".join(self.lines)


async def echo(request: web.Request) -> web.Response:
    """Refuse a notification, and say back all that came with it."""
    said = f"{request.path_qs} {dict(request.headers)} {await request.text()}"
    return web.Response(status=400, text=said)


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """Give the port of a receiver that refuses everything and blabs."""
    app = web.Application()
    app.router.add_route("*", "/{any:.*}", echo)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield runner.addresses[0][1]
    await runner.cleanup()


async def refused(url: str, token: str) -> str:
    """Wait until every sink has had its notification refused, and give the page of metrics."""
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as session,
        asyncio.timeout(SOON_SECONDS),
    ):
        while True:
            async with session.get(f"{url}/metrics") as answer:
                text = await answer.text()
            if (
                len(re.findall(r'^traction_sink_deliveries_total\{outcome="dead",.*\} 1\.0$', text, re.MULTILINE))
                == SINKS
            ):
                return text
            await asyncio.sleep(0.2)


async def read(url: str, token: str | None) -> str:
    """Give all pages, and how they are answered, in one text."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    told = ""
    async with aiohttp.ClientSession(headers=headers) as session:
        for path in ("/metrics", "/healthz", "/readyz", "/nothing"):
            async with session.get(f"{url}{path}") as answer:
                told += f"{answer.status} {dict(answer.headers)} {await answer.text()}\n"
    return told


async def test_running_processes_tell_none_of_their_secrets(
    bootstrap: str, prefix: str, port: int, tmp_path: Path
) -> None:
    """Worker, escalation consumer and all sinks, at level debug, each delivery refused by one who says all back."""
    kafka, name = KafkaSettings(bootstrap=bootstrap, prefix=prefix), prefix.rstrip(".")
    await create_topics(kafka, partitions=1, app_id=name)
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY.replace("PORT", str(port)))
    environment = {key: value.replace("PORT", str(port)) for key, value in ENVIRONMENT.items()}
    place = ["--bootstrap", bootstrap, "--prefix", prefix, "--app-id", name, "--port", "0", "--policy", str(policy)]
    token = environment["TRACTION_PAGE_TOKEN"]
    async with running(producer(kafka), kafka) as client:
        await client.send_and_wait(kafka.topic(topics.NOTIFICATIONS), key=b"SHOP-412", value=encode(build()))
    processes = [Process(command, *place, environment=environment) for command in ("worker", "escalate")]
    try:
        urls = [await process.pages() for process in processes]
        told = await refused(urls[1], token)
        told += "".join([await read(url, sent) for url in urls for sent in (token, None)])
    finally:
        said = [await process.end() for process in processes]
    assert all(" DEBUG " in each for each in said)
    assert "sink hook" in said[1]
    letters = consumer(kafka)
    letters.assign([TopicPartition(kafka.topic(topics.DEAD_LETTERS), 0)])
    async with running(letters, kafka), asyncio.timeout(SOON_SECONDS):
        found = [await letters.getone() for _ in range(SINKS)]
    told += "".join(f"{record.key!r} {record.value!r} {record.headers!r}" for record in found)
    assert "delivery_refused" in told
    assert not {mark for mark in MARKS if mark in told or mark in "".join(said)}


@pytest.mark.parametrize(("command", "mechanism"), [("worker", "PLAIN"), ("escalate", "SCRAM-SHA-512")])
async def test_a_login_that_fails_does_not_tell_the_password(
    bootstrap: str, prefix: str, command: str, mechanism: str
) -> None:
    """The broker wants none of it; neither the message nor the client's own lines have it."""
    environment = {
        "TRACTION_SASL_PASSWORD": SECRET,
        "TRACTION_SASL_USERNAME": "agent",
        "TRACTION_SASL_MECHANISM": mechanism,
        "TRACTION_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
    }
    process = Process(command, "--bootstrap", bootstrap, "--prefix", prefix, "--port", "0", environment=environment)
    await asyncio.to_thread(process.popen.wait, 60)
    said = await process.end()
    assert process.popen.returncode == 1, said
    assert f"logging in as agent with {mechanism}" in said
    assert "Tr0ub4dor" not in said
