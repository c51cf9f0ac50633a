"""Follows a policy file while a process runs: what changes in it holds from then on, and what cannot be used does not.

It looks at the content, every few seconds and at once on SIGHUP, so that a file that is replaced by a link, as
Kubernetes does, is seen; one that is just being written is waited for. It reads in a thread, ends for nothing, and
decides nothing that a policy says.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import signal
import time
from typing import TYPE_CHECKING, Final

from streams.policy.load import InvalidPolicy, UnreadablePolicy, parse_policy, read_bytes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from detectors import Limits
    from streams.policy.metrics import PolicyMetrics
    from streams.policy.policy import Policy

logger = logging.getLogger(__name__)

POLL_SECONDS: Final = 2.0
"""Between two looks: soon enough for who changes a file and waits, and nothing beside the work of a process."""

SETTLE_SECONDS: Final = 0.25
"""How long a new content must have stayed the same: a file that is copied is there in part for a moment."""

_GONE: Final = b""


class PolicyWatch:
    """Follows one policy file.

    Args:
        path: the file; None when there is none, then a SIGHUP is told to do nothing.
        base: the limits that the policy lies over.
        apply: puts a policy in force; called on the event loop, at the beginning and after each change. What it raises,
            such as `InvalidPolicy`, refuses the policy.
        metrics: counts.
        interval: seconds between two looks.
    """

    def __init__(
        self,
        path: Path | None,
        base: Limits,
        apply: Callable[[Policy], None],
        metrics: PolicyMetrics,
        *,
        interval: float = POLL_SECONDS,
    ) -> None:
        self._path = path
        self._base = base
        self._apply = apply
        self._metrics = metrics
        self._interval = interval
        self._asked = asyncio.Event()
        self._seen: bytes | None = None
        """Digest of the content that was judged last, usable or not; None before the first."""
        self._met: bytes | None = None
        """Digest of the content that the latest look met."""

    async def run(self) -> None:
        """Follow the file until cancelled; never returns."""
        loop = asyncio.get_running_loop()
        if hasattr(signal, "SIGHUP"):  # not on Windows
            loop.add_signal_handler(signal.SIGHUP, self._asked.set)
        try:
            while True:
                asked, soon = self._asked.is_set(), False
                self._asked.clear()
                if self._path is not None:
                    soon = await self._look(self._path, asked=asked)
                elif asked:
                    logger.warning("SIGHUP: there is no policy file to read; start with --policy FILE to have one")
                await self._pause(min(SETTLE_SECONDS, self._interval) if soon else self._interval)
        finally:
            if hasattr(signal, "SIGHUP"):
                loop.remove_signal_handler(signal.SIGHUP)

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(None if self._path is None else seconds):
                await self._asked.wait()
        except TimeoutError:
            pass

    async def _look(self, path: Path, *, asked: bool) -> bool:
        """Look at the file; tell whether to look again soon, since it has just changed."""
        try:
            content = await asyncio.to_thread(read_bytes, path)
            digest = hashlib.blake2b(content, digest_size=16).digest()
            if not self._is_due(digest, asked=asked):
                return digest != self._seen
            policy = await asyncio.to_thread(parse_policy, path, content, self._base)
            self._apply(policy)
        except UnreadablePolicy as problem:
            if not self._is_due(_GONE, asked=asked):
                return self._seen != _GONE
            self._refuse(problem)
        except InvalidPolicy as problem:
            self._refuse(problem)
        except Exception:  # whatever is wrong with a file, the process goes on by the one before
            logger.exception("%s: cannot be put in force, please report it; the policy before it stays", path)
            self._count_refused()
        else:
            self._metrics.reloads.labels("applied").inc()
            self._metrics.refused.set(0)
            self._metrics.loaded.set(time.time())
            logger.info("%s: the policy is in force, rules: %d", path, len(policy.rules))
        return False

    def _is_due(self, digest: bytes, *, asked: bool) -> bool:
        """Tell whether a content is to be judged: another one than before, that has stayed the same for two looks."""
        stays, self._met = digest == self._met, digest
        due = asked or self._seen is None or (digest != self._seen and stays)
        if due:
            self._seen = digest
        return due

    def _refuse(self, problem: Exception) -> None:
        self._count_refused()
        logger.error("the policy is not taken, the one before it stays: %s", problem)

    def _count_refused(self) -> None:
        self._metrics.reloads.labels("refused").inc()
        self._metrics.refused.set(1)
