"""Keeps the secrets of this process out of what it logs and says, whoever wrote the line: a client, a library, we.

Whoever reads a secret tells it here. Only what people and log collectors read goes through here, never what is sent.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
import traceback
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    from types import TracebackType

MASK = "…"

KEPT = 3
"""How many values of one secret are known: while it is rotated, the one before is still in use here and there."""

LEAST_PART = 8
"""Characters from which on a word of a secret, or the path of an address that is one, is masked by itself. Shorter ones
are everyday words, and most of the log would be masked with them."""

_hidden: dict[str, tuple[str, ...]] = {}
_pattern: list[re.Pattern[str]] = []
_lock = threading.Lock()


def hide(name: str, secret: str) -> None:
    """Have a secret masked from now on.

    Args:
        name: of the setting that it is the value of; a few earlier values of it stay masked.
        secret: the value.
    """
    with _lock:  # the worker's consumer logs in on a thread of its own
        known = _hidden.get(name, ())
        if not secret or secret in known:
            return
        _hidden[name] = (*known, secret)[-KEPT:]
        shapes = {shape for values in _hidden.values() for value in values for shape in _shapes(value)}
        longest_first = sorted(shapes, key=lambda shape: (-len(shape), shape))
        _pattern[:] = [re.compile("|".join(map(re.escape, longest_first)))]


def masked(text: str) -> str:
    """Give a text with all secrets of this process masked, also where they are escaped or quoted in it."""
    return _pattern[0].sub(MASK, text) if _pattern else text


class MaskingFormatter(logging.Formatter):
    """Formats a record as usual, and masks the secrets in its message, its traceback and its stack."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is logging's
        """Format a record but for its traceback; who cuts the message afterwards cannot cut through a secret."""
        return masked(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        """Format a whole record."""
        return masked(super().format(record))


def mask_failures() -> None:
    """Mask what ends the process with a traceback too, and what is logged before or without a handler of ours."""
    sys.excepthook = _tell
    threading.excepthook = _tell_of_thread
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(MaskingFormatter())


def _tell(kind: type[BaseException], problem: BaseException, trace: TracebackType | None) -> None:
    sys.stderr.write(masked("".join(traceback.format_exception(kind, problem, trace))))


def _tell_of_thread(failed: threading.ExceptHookArgs) -> None:
    if failed.exc_value is not None and not isinstance(failed.exc_value, SystemExit):
        _tell(failed.exc_type, failed.exc_value, failed.exc_traceback)


def _shapes(secret: str) -> set[str]:
    """Give the forms in which a secret may stand in a text."""
    parts = {secret, *(word for word in secret.split() if len(word) >= LEAST_PART)}
    for part in list(parts):
        path = part.partition("://")[2].partition("/")[2]
        parts |= {piece for piece in (path, path.partition("?")[0]) if len(piece) >= LEAST_PART}
    shapes: set[str] = set()
    for part in parts:
        escaped = {repr(part)[1:-1], ascii(part)[1:-1], repr(part.encode("utf-8", "surrogateescape"))[2:-1]}
        shapes |= {part, json.dumps(part)[1:-1], json.dumps(part, ensure_ascii=False)[1:-1]}
        shapes |= escaped | {each.replace("'", "\\'") for each in escaped}
        shapes |= {quoted(part, errors="surrogateescape") for quoted in (quote, quote_plus)}
        shapes.add(quote(part, safe="", errors="surrogateescape"))
    return shapes
