"""Whatever bytes a record is made of, it stops no reader: any codec, headers that are not text, no content, huge."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka.record.default_records import _DefaultRecordBatchBuilderPy

from schemas import topics
from schemas.encode import encode, record_key
from schemas.events import Override
from streams.kafka import MAX_DEAD_LETTER_BYTES, producer, running
from streams.received import MAX_KEPT_BYTES, MAX_KEPT_KEY_BYTES
from tests.kit import BEGIN, WorkerInside, terminal_alert, tool_call
from tests.processes import TRACTION, TractionProcess
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from aiokafka import ConsumerRecord
    from aiokafka.structs import RecordMetadata

    from schemas.topics import Topic
    from tests.kit import Wire, WorkerProcess

CODECS = ("gzip", "snappy", "lz4", "zstd")

WITHOUT_ZSTD = """
import aiokafka.codec
aiokafka.codec.has_zstd = lambda: False
from streams.cli import main
main()
"""
"""A command on a machine that lacks a codec."""


class Escalation(TractionProcess):
    """An escalation consumer on a test's topics."""

    def __init__(self, wire: Wire, *command: str) -> None:
        settings = wire.settings
        super().__init__(
            *(command or (TRACTION,)),
            *("escalate", "--bootstrap", settings.bootstrap, "--prefix", settings.prefix),
            *("--port", "0", "--app-id", wire.app_id),
        )


@pytest.fixture
async def escalation(wire: Wire) -> AsyncIterator[Escalation]:
    """Give a running escalation consumer."""
    process = Escalation(wire)
    await process.ready()
    yield process
    process.kill()


class Name(str):
    """A header's name of any bytes."""

    __slots__ = ()

    def encode(self, *_: str) -> bytes:
        """Give the bytes."""
        return super().encode("latin-1")


async def put_named(
    wire: Wire, topic: Topic, records: Sequence[tuple[bytes, bytes | None, str]], codec: int = 0
) -> int:
    """Write one batch of records (key, value, name of a header) to partition 0, and give its first offset."""
    async with running(producer(wire.settings, enable_idempotence=False), wire.settings) as client:
        batch = client.create_batch()
        batch._builder = _DefaultRecordBatchBuilderPy(2, codec, 0, -1, -1, -1, 2**20)
        for key, value, name in records:
            batch.append(timestamp=None, key=key, value=value, headers=[("plain", b"1"), (Name(name), b"2")])
        sent = await (await client.send_batch(batch, wire.settings.topic(topic), partition=0))
        return int(sent.offset)


async def letters(wire: Wire, count: int) -> list[dict[str, bytes]]:
    """Wait for so many dead letters, and give their headers."""

    async def there() -> bool:
        return len(await wire.dead_letters()) >= count

    await until(there)
    return [dict(record.headers) for record in await wire.dead_letters()]


async def terminated(wire: Wire, count: int) -> set[str]:
    """Wait for so many terminations, and give the sessions they are for."""

    async def there() -> bool:
        return len(await wire.records(wire.settings.topic(topics.TERMINATIONS))) >= count

    await until(there)
    return {record.key.decode() for record in await wire.records(wire.settings.topic(topics.TERMINATIONS))}


async def test_every_codec_is_read(wire: Wire, escalation: Escalation) -> None:
    """Records packed by each of Kafka's codecs are read from inputs, overrides and alerts."""
    del escalation
    for codec in CODECS:
        pad = "x" * 500
        override = Override(scope=f"session:muted by {codec}", mute=True, reason=pad, set_at=BEGIN)
        await wire.raw(topics.OVERRIDES, encode(override), key=record_key(override), compression_type=codec)
    async with WorkerInside(wire):
        for codec in CODECS:
            for session in (f"muted by {codec}", codec):
                calls = [tool_call(session, n, arguments={"path": "a"}, result="the same" * 99) for n in range(3)]
                await wire.send(calls, compression_type=codec)
            alert = terminal_alert(codec)
            await wire.raw(topics.ALERTS, encode(alert), key=record_key(alert), compression_type=codec)
        await wire.until_applied()
    muted = {alert.session_id: alert.muted for alert in await wire.alerts() if alert.detector == "identical"}
    assert {name: muted[name] for name in CODECS} == dict.fromkeys(CODECS, False)
    assert {name: muted[f"muted by {name}"] for name in CODECS} == dict.fromkeys(CODECS, True)
    assert {f"session of {codec}" for codec in CODECS} <= await terminated(wire, 4)
    assert await wire.dead_letters() == []


async def test_a_codec_that_is_not_there(wire: Wire, start: Callable[..., WorkerProcess]) -> None:
    """What came before is applied and committed; then the worker ends, and says where, why, and what to do."""
    calls = [tool_call("s", number, arguments={"path": "a"}, result="the same" * 999) for number in range(3)]
    await wire.send(calls)
    partition = max(each.partition for each in await wire.inputs(topics.TOOL_CALLS))
    sent = await wire.raw(topics.TOOL_CALLS, encode(calls[0]), partition=partition, compression_type="zstd")
    worker = start(program=WITHOUT_ZSTD)
    assert await worker.exit() == 1
    assert_says_where(worker, sent)
    assert len(await wire.alerts()) == 1
    assert await wire.lag() == 1


async def test_an_alert_in_a_codec_that_is_not_there(wire: Wire) -> None:
    """The alerts before are answered; then the escalation consumer ends, and says where, why, and what to do."""
    _, sent = [
        await wire.raw(topics.ALERTS, encode(terminal_alert(codec)), key=b"t", partition=0, compression_type=codec)
        for codec in ("gzip", "zstd")
    ]
    process = Escalation(wire, sys.executable, "-c", WITHOUT_ZSTD)
    try:
        assert await process.exit() == 1
    finally:
        process.kill()
    assert_says_where(process, sent)
    assert await terminated(wire, 1) == {"session of gzip"}


async def test_an_override_in_a_codec_that_is_not_there(wire: Wire, start: Callable[..., WorkerProcess]) -> None:
    """No worker starts without the overrides; it says where, why, and what to do."""
    override = Override(scope="session:s", mute=True, reason="x" * 500, set_at=BEGIN)
    sent = await wire.raw(topics.OVERRIDES, encode(override), key=record_key(override), compression_type="zstd")
    worker = start(program=WITHOUT_ZSTD)
    assert await worker.exit() == 1
    assert_says_where(worker, sent)


def assert_says_where(process: TractionProcess, sent: RecordMetadata) -> None:
    """See that a process says which record it cannot read, and no more."""
    place = f"{sent.topic}-{sent.partition} cannot be read from offset {sent.offset} on (UnsupportedCodecError"
    assert place in process.log
    assert "install that codec" in process.log
    assert "security" not in process.log
    assert "Traceback" not in process.log


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
async def test_header_names_that_are_not_text(wire: Wire, escalation: Escalation, codec: int) -> None:
    """Exactly the records that have them are set aside, the bytes in the name kept readable; their neighbours count."""
    del escalation
    good = [(b"s", encode(tool_call("s", number, result="r" * 300)), "n\u00c3\u00a4me") for number in range(3)]
    bad = (b"s", encode(tool_call("s", 9, result="r" * 300)), "n\xff\\me")
    first = await put_named(wire, topics.TOOL_CALLS, [good[0], bad, good[1]], codec)
    await put_named(wire, topics.TOOL_CALLS, [bad, good[2]], codec)
    await put_named(wire, topics.OVERRIDES, [(b"session:s", b"{}", "\xfe")], codec)
    async with WorkerInside(wire) as inside:
        await wire.until_applied()
        assert inside.value("traction_dead_letters_total", reason="not_utf8") == 3
    assert (await wire.states())["s"].calls == 3
    alerts = [terminal_alert(name) for name in ("before", "bad", "after")]
    names = ("plain", "\xff", "plain")
    records = [(record_key(alert), encode(alert), name) for alert, name in zip(alerts, names, strict=True)]
    await put_named(wire, topics.ALERTS, records, codec)
    assert await terminated(wire, 2) == {"session of before", "session of after"}
    found = await letters(wire, 4)
    assert {headers["__traction.errors.reason"] for headers in found} == {b"not_utf8"}
    calls = [each for each in found if each["__traction.errors.topic"].endswith(b"tool-calls")]
    assert {int(each["__traction.errors.offset"]) for each in calls} == {first + 1, first + 3}
    assert all(each["plain"] == b"1" and each["n\\xff\\me"] == b"2" for each in calls)


async def test_records_without_key_and_value(wire: Wire, escalation: Escalation) -> None:
    """They cannot be written again as they are: their dead letters have an empty value."""
    del escalation
    written = set()
    for topic in (*topics.SESSION_INPUTS, topics.ALERTS):
        name = wire.settings.topic(topic)
        async with running(producer(wire.settings, enable_idempotence=False), wire.settings) as client:
            batch = client.create_batch()
            batch.append(timestamp=None, key=None, value=None)
            await (await client.send_batch(batch, name, partition=0))
            written.add(name.encode())
    async with WorkerInside(wire):
        await wire.until_applied()
    found = await letters(wire, len(written))
    assert {each["__traction.errors.topic"] for each in found} == written
    assert {record.value for record in await wire.dead_letters()} == {b""}


async def test_records_that_are_huge_when_unpacked(wire: Wire, escalation: Escalation) -> None:
    """Of a key, value or headers that no dead letter can take a part is kept, and the dead letter says so."""
    del escalation
    size = MAX_DEAD_LETTER_BYTES + 2**22
    cases: dict[str, dict[str, Any]] = {
        "key": {"key": bytes(size), "value": b"{"},
        "value": {"key": b"s", "value": bytes(size)},
        "both": {"key": bytes(size // 2), "value": bytes(size // 2)},
        "headers": {"key": b"s", "value": b"{", "headers": [("h", bytes(size))]},
    }
    options = {"compression_type": "gzip", "max_request_size": 2 * size, "max_batch_size": 2 * size}
    for topic in (topics.TOOL_CALLS, topics.ALERTS):
        name = wire.settings.topic(topic)
        async with running(producer(wire.settings, **options), wire.settings) as client:
            for case in cases.values():
                await client.send_and_wait(name, partition=0, **case)
    async with WorkerInside(wire):
        await wire.until_applied()
    found = await letters(wire, 2 * len(cases))
    told = [each["__traction.errors.message"].decode() for each in found]
    assert sum(f"key {MAX_KEPT_KEY_BYTES} of" in each for each in told) == 4
    assert sum(f"value {MAX_KEPT_BYTES} of {size}" in each for each in told) == 2
    assert sum(f"headers 0 of {size + 1}" in each for each in told) == 2


async def test_only_a_valid_trace_context_goes_on(wire: Wire, escalation: Escalation) -> None:
    """Whatever else is in that header, and however long, does not get into alerts, directives and terminations."""
    del escalation
    valid = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    sent = {"long": b"0" * 900_000, "upper": valid.upper(), "none": b"", "more": valid + b"-x", "valid": valid}
    async with WorkerInside(wire):
        for session, header in sent.items():
            for number in range(3):
                call = tool_call(session, number, arguments={"path": "a"}, result="the same")
                headers = [("traceparent", header)]
                await wire.raw(topics.TOOL_CALLS, encode(call), key=record_key(call), headers=headers)
            alert = terminal_alert(session)
            headers = [("traceparent", header)]
            await wire.raw(topics.ALERTS, encode(alert), key=record_key(alert), headers=headers)
        await wire.until_applied()
    records = [each for each in await wire.alert_records() if each.key != b"t"]
    assert traces(records) == {name.encode(): valid if name == "valid" else None for name in sent}
    await terminated(wire, len(sent))
    found = traces(await wire.records(wire.settings.topic(topics.TERMINATIONS)))
    assert found == {f"session of {name}".encode(): valid if name == "valid" else None for name in sent}


def traces(records: list[ConsumerRecord]) -> dict[bytes, bytes | None]:
    """Give each record's trace context by its key."""
    return {record.key: dict(record.headers).get("traceparent") for record in records}
