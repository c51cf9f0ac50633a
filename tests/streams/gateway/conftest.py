"""A gateway on a real broker, requests to it, and what came onto the topics."""

from __future__ import annotations

import asyncio
import dataclasses
import gzip
import json
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
from aiokafka import ConsumerRecord

from schemas.decode import check_key, decode
from schemas.topics import Topic
from streams.gateway.process import Serving, serving
from streams.gateway.settings import GatewaySettings
from streams.kafka import KafkaSettings
from streams.page_settings import PageSettings
from streams.topics import create_topics
from tests.streams.escalation.conftest import Wire

PARTITIONS = 2


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back.

    Attributes:
        status: of the answer.
        headers: of the answer.
        body: as it came.
    """

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class Client:
    """Sends requests to one gateway."""

    def __init__(self, serving: Serving, session: aiohttp.ClientSession) -> None:
        self.serving = serving
        self.url = serving.pages.url
        self.session = session

    async def post(
        self,
        path: str,
        body: Any,
        kind: str | None = "application/json",
        *,
        packed: bool = False,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Post a body: bytes as they are, anything else as JSON."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = dict(headers or {})
        if packed:
            data, sent["Content-Encoding"] = gzip.compress(data), "gzip"
        if kind is not None:
            sent["Content-Type"] = kind
        skip = () if kind is not None else ("Content-Type",)
        async with self.session.post(self.url + path, data=data, headers=sent, skip_auto_headers=skip) as given:
            return await _answer(given)

    async def get(self, path: str, **headers: str) -> Answer:
        """Get something."""
        async with self.session.get(self.url + path, headers=headers) as given:
            return await _answer(given)

    def measured(self, name: str, **labels: str) -> float | None:
        """Give a metric's value."""
        return self.serving.registry.get_sample_value(name, labels)


async def _answer(given: aiohttp.ClientResponse) -> Answer:
    headers = {name.lower(): value for name, value in given.headers.items()}
    return Answer(given.status, headers, await given.read())


Opening = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture(scope="module")
def kafka(bootstrap: str) -> KafkaSettings:
    """Give a broker with all topics, under a prefix of the module's own."""
    settings = KafkaSettings(bootstrap=bootstrap, prefix=f"t{uuid.uuid4().hex[:12]}.")
    with asyncio.Runner() as runner:
        runner.run(create_topics(settings, partitions=PARTITIONS, replication=1, app_id=settings.prefix.rstrip(".")))
    return settings


class Since(Wire):
    """Reads what came onto the topics since the test began."""

    def __init__(self, settings: KafkaSettings) -> None:
        super().__init__(settings)
        self._begun = time.time() * 1000 - 1

    async def records(self, topic: Topic | str) -> list[ConsumerRecord]:
        """Read what is on a topic now and came since the test began."""
        return [record for record in await super().records(topic) if record.timestamp >= self._begun]


@pytest.fixture
def wire(kafka: KafkaSettings) -> Since:
    """Give a way to read what is on the topics."""
    return Since(kafka)


@pytest.fixture
def opening(kafka: KafkaSettings) -> Opening:
    """Give a way to serve a gateway with settings, and to talk to it."""

    @asynccontextmanager
    async def open_one(pages: PageSettings | None = None, **settings: Any) -> AsyncIterator[Client]:
        made = dataclasses.replace(GatewaySettings(), **settings)
        async with serving(kafka, made, pages or PageSettings()) as running, aiohttp.ClientSession() as session:
            yield Client(running, session)

    return open_one


@pytest.fixture
async def client(opening: Opening) -> AsyncIterator[Client]:
    """Give a gateway with the settings that it has by default."""
    async with opening() as one:
        yield one


async def published(wire: Wire, topic: Topic) -> list[Any]:
    """Give the events on a topic, each of which workers could read."""
    found = []
    for record in await wire.records(topic):
        event = decode(topic, record.value, record.headers)
        check_key(topic, event, record.key)
        found.append(event)
    return found
