"""The certificate of the pages, read anew when its files have changed: certificates are renewed every few weeks.

It keeps the old one while the new files make no sense, since they are seldom written both at once.
"""

from __future__ import annotations

import logging
import math
import ssl
from typing import TYPE_CHECKING

from streams.expiry import expiry

if TYPE_CHECKING:
    from pathlib import Path

logger = logging.getLogger(__name__)


class InvalidCertificate(Exception):
    """The certificate or its key cannot be used: the message says which files, why, and what to do."""


class Certificate:
    """A certificate and its key, read anew once the files have changed.

    Args:
        certfile: the certificate, with those between it and the authority after it, PEM.
        keyfile: its private key, PEM, without a passphrase.

    Raises:
        InvalidCertificate: they cannot be read, or do not belong together.
    """

    def __init__(self, certfile: Path, keyfile: Path) -> None:
        self._files = certfile, keyfile
        self.expiry = math.nan
        """When the one in use runs out, in seconds since 1970; NaN where that cannot be told."""
        self._seen = self._look()
        self._context = self._load()

    def context(self) -> ssl.SSLContext:
        """Give the settings for a new connection; while new files make no sense, those from before."""
        seen = self._look()
        if seen != self._seen:
            self._seen = seen
            try:
                self._context = self._load()
            except InvalidCertificate as problem:
                logger.warning("%s; the pages go on with the certificate from before", problem)
            else:
                logger.info("the pages' certificate was read anew")
        return self._context

    def _look(self) -> list[tuple[int, int, int] | None]:
        """Tell one state of the files from another; called before they are read, so that no change is missed."""
        seen: list[tuple[int, int, int] | None] = []
        for file in self._files:
            try:
                stat = file.stat()
            except OSError:
                seen.append(None)
            else:
                seen.append((stat.st_ino, stat.st_mtime_ns, stat.st_size))
        return seen

    def _load(self) -> ssl.SSLContext:
        certfile, keyfile = self._files
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        try:
            # Without a way to get a passphrase OpenSSL would ask for it on the terminal.
            context.load_cert_chain(certfile, keyfile, password=lambda: "")
        except ssl.SSLError as problem:
            what = "do not belong together" if "MISMATCH" in str(problem.reason) else "cannot be used"
            raise InvalidCertificate(
                f"the pages' certificate {certfile} and key {keyfile} {what} ({problem.reason or problem}): give a PEM "
                "file with the certificate and its chain, and one with its private key without a passphrase"
            ) from None
        except OSError as problem:
            raise InvalidCertificate(
                f"the pages' certificate {certfile} or key {keyfile} cannot be read ({problem.strerror}): give files "
                "that are there and that this process may read"
            ) from None
        self.expiry = expiry(certfile)
        return context
