"""How the worker ends when it must not go on: exit codes, and leaving at once.

Going on after another worker took a partition over would write over its work, so these ends skip all tidying up: what
was not committed is read again by whoever owns the partition next. Ordinary errors do not come here, they propagate.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import NoReturn

logger = logging.getLogger(__name__)

EXIT_FAILED = 1
"""Something failed that starting again may mend; the log says what."""

EXIT_LOST = 3
"""Another worker owns a partition now, or the brokers were away for too long."""

EXIT_GAP = 4
"""Input would have been passed over: a defect; starting again reads from what is committed."""


def abandon(code: int, message: str) -> NoReturn:
    """End the process now, since it must not go on.

    Args:
        code: the exit code.
        message: why, for the log.
    """
    logger.critical("%s", message)
    _exit(code)


def end_now(code: int, message: str) -> NoReturn:
    """End the process now, since there is nothing left to do that is worth waiting for.

    Args:
        code: the exit code.
        message: why, for the log.
    """
    logger.warning("%s", message)
    _exit(code)


def _exit(code: int) -> NoReturn:
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
