"""When certificates run out is read from real ones, and shown on the page of whoever uses them."""

from __future__ import annotations

import asyncio
import math
import ssl
import urllib.request
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
import trustme
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from streams.expiry import expiry, watch_certificates
from streams.health import Health
from streams.kafka import KafkaSettings
from streams.metrics import ProcessMetrics
from streams.page_settings import PageSettings
from streams.pages import Pages

if TYPE_CHECKING:
    from pathlib import Path

SOON = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=2)
LATER = SOON + timedelta(days=90)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Give an authority."""
    return trustme.CA()


def write(authority: trustme.CA, folder: Path, ends: datetime) -> tuple[Path, Path]:
    """Write a certificate that ends then, with its chain, and its key."""
    begins = min(ends, datetime.now(UTC)) - timedelta(days=1)
    made = authority.issue_cert("localhost", not_before=begins, not_after=ends)
    cert, key = folder / "tls.crt", folder / "tls.key"
    cert.write_bytes(b"".join(blob.bytes() for blob in made.cert_chain_pems))
    made.private_key_pem.write_to_path(str(key))
    return cert, key


@pytest.mark.parametrize(
    "ends",
    [
        pytest.param(SOON, id="soon"),
        pytest.param(datetime(2020, 2, 29, 23, 59, 59, tzinfo=UTC), id="long ago"),
        pytest.param(datetime(2049, 12, 31, 23, 59, 59, tzinfo=UTC), id="the last of two digits"),
        pytest.param(datetime(2050, 1, 1, tzinfo=UTC), id="the first of four digits"),
    ],
)
def test_the_end_is_that_of_the_certificate(authority: trustme.CA, tmp_path: Path, ends: datetime) -> None:
    """To the second, in both forms that X.509 writes times in, with a key in the same file or without."""
    cert, key = write(authority, tmp_path, ends)
    assert expiry(cert) == ends.timestamp()
    cert.write_bytes(key.read_bytes() + cert.read_bytes())
    assert expiry(cert) == ends.timestamp()


def test_the_first_of_a_chain_to_end_counts(authority: trustme.CA, tmp_path: Path) -> None:
    """A certificate between ours and the authority that ends before ours ends both."""
    ours = write(authority, tmp_path, LATER)[0].read_bytes()
    between = write(authority, tmp_path, SOON)[0].read_bytes()
    (tmp_path / "chain.pem").write_bytes(ours + between)
    assert expiry(tmp_path / "chain.pem") == SOON.timestamp()


def test_what_is_no_certificate_has_no_end(authority: trustme.CA, tmp_path: Path) -> None:
    """No file, none in it, and one that is cut short anywhere are told as not known, and raise nothing."""
    cert, key = write(authority, tmp_path, SOON)
    assert math.isnan(expiry(tmp_path / "none.pem"))
    assert math.isnan(expiry(key))
    whole = cert.read_text().splitlines()
    for kept in range(len(whole) - 2):
        cert.write_text("\n".join([*whole[: 1 + kept], whole[-1]]))
        assert math.isnan(expiry(cert)) or expiry(cert) == SOON.timestamp()
    cert.write_text(f"{whole[0]}\n{whole[1]}\n{whole[-1]}\n")
    assert math.isnan(expiry(cert))


async def test_pages_show_the_certificate_in_use(authority: trustme.CA, tmp_path: Path) -> None:
    """That of the pages once they serve it, also when it is renewed; that for the brokers as it was at the start."""
    cert, key = write(authority, tmp_path, SOON)
    registry = CollectorRegistry()
    pages = Pages(PageSettings(certfile=cert, keyfile=key), registry, Health(()))
    kafka = KafkaSettings(security_protocol="SSL", certfile=cert, keyfile=key)
    watch_certificates(ProcessMetrics(registry), kafka, pages)
    await pages.start()
    try:
        assert await shown(pages, authority) == {"pages": SOON.timestamp(), "kafka": SOON.timestamp()}
        write(authority, tmp_path, LATER)
        assert await shown(pages, authority) == {"pages": LATER.timestamp(), "kafka": SOON.timestamp()}
        key.unlink()
        cert.write_text("")
        assert await shown(pages, authority) == {"pages": LATER.timestamp(), "kafka": SOON.timestamp()}
    finally:
        await pages.stop()


def test_who_has_no_certificate_shows_none() -> None:
    """No series is there, so that no alert has to leave it out."""
    registry = CollectorRegistry()
    watch_certificates(ProcessMetrics(registry), KafkaSettings(), Pages(PageSettings(), registry, Health(())))
    (family,) = [each for each in registry.collect() if each.name == "traction_certificate_expiry_timestamp_seconds"]
    assert family.samples == []


async def shown(pages: Pages, authority: trustme.CA) -> dict[str, float]:
    """Scrape the pages over TLS, and give when the certificates end."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    url = pages.url.replace("127.0.0.1", "localhost") + "/metrics"
    text = await asyncio.to_thread(lambda: urllib.request.urlopen(url, context=context).read().decode())  # noqa: S310
    return {
        sample.labels["certificate"]: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "traction_certificate_expiry_timestamp_seconds"
    }
