"""Tells when the certificates that a process uses run out, from their files, and shows it among its metrics.

It reads of a certificate nothing but its last moment, and trusts nobody for it: whether one is good OpenSSL decides.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from cryptography import x509

if TYPE_CHECKING:
    from pathlib import Path

    from streams.kafka import KafkaSettings
    from streams.metrics import ProcessMetrics
    from streams.pages import Pages


def watch_certificates(metrics: ProcessMetrics, kafka: KafkaSettings, pages: Pages) -> None:
    """Show when the certificates run out that a process has: as a client of the brokers, and of its pages.

    That for the brokers is the one that was read at the start, since clients go on with it; that of the pages is the
    one in use, asked at each scrape.
    """
    if kafka.certfile is not None:
        metrics.watch_certificate("kafka", partial(float, expiry(kafka.certfile)))
    if pages.encrypted:
        metrics.watch_certificate("pages", pages.expiry)


def expiry(file: Path) -> float:
    """Give when the first certificate of a file runs out: our own, or one between it and its authority.

    Args:
        file: certificates, PEM.

    Returns:
        Seconds since 1970; NaN where it cannot be told, which is for whoever uses the certificate to complain about.
    """
    try:
        found = x509.load_pem_x509_certificates(file.read_bytes())
    except (OSError, ValueError):
        return math.nan
    return min(each.not_valid_after_utc.timestamp() for each in found)
