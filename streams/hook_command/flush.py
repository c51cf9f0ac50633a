"""Sends what `traction-hook` had to keep: a bounded part after a hook that found the gateway, all of it on `--flush`.

What is sent again after a crash has the same identifiers and counts once.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from streams.hook_command import Options
    from streams.hook_command.exchange import Gateway
    from streams.spool import Drained, Sent, Spool

DETACHED_BYTES = 8 * 1024 * 1024
"""How much one detached process sends: what is there more, the one after the next hook does."""

REQUEST_S = 10.0
"""How long a request may take: the gateway answers after the brokers have acknowledged."""

_TAKEN = 200
_REFUSED = (400, 413, 422)


def send(kept: Spool, gateway: Gateway, *, most_bytes: int = DETACHED_BYTES) -> Drained:
    """Send what was kept.

    Args:
        kept: where it is.
        gateway: where it goes.
        most_bytes: where to stop.

    Raises:
        OSError: the directory cannot be read or written.
    """
    from streams.hook_command.exchange import post  # noqa: PLC0415

    def give(lines: bytes) -> Sent:
        status, _ = post(
            gateway, "/v1/hooks", lines, seconds=REQUEST_S, headers={"Content-Type": "application/x-ndjson"}
        )
        return "sent" if status == _TAKEN else "refused" if status in _REFUSED else "away"

    return kept.drain(give, most_bytes=most_bytes)


def flush(options: Options) -> int:
    """Send all that was kept, and say how much it was.

    Returns:
        The exit code: 0, or 1 when something is left.
    """
    from streams.hook_command import gateway_of, spool  # noqa: PLC0415

    kept = spool()
    try:
        drained = send(kept, gateway_of(options), most_bytes=sys.maxsize)
        left = kept.size()
    except (OSError, ValueError) as problem:
        return _failed(f"{options.gateway}: {problem}")
    counts = f"sent: {drained.sent}; refused: {drained.refused}; left: {left} bytes; dropped: {kept.dropped()} bytes"
    sys.stdout.write(counts + "\n")
    sys.stdout.flush()
    if drained.busy:
        return _failed("another process is sending what is left; try again in a moment")
    return _failed(f"the gateway at {options.gateway} does not take what is left") if left else 0


def _failed(problem: str) -> int:
    sys.stderr.write(f"traction-hook: {problem}\n")
    sys.stderr.flush()
    return 1
