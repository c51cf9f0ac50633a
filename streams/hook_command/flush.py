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

MAX_ANSWER_BYTES = 4 * 1024 * 1024
"""Largest answer to a batch: a thousand lines, each with the reason why it is refused."""

_JUDGED = (200, 422)  # with what became of each line
_REFUSED = (400, 413, 422)
_BARRED = (401, 403)


class Sending:
    """What became of what was kept.

    Attributes:
        drained: what the spool says of it.
        refused: how many of the lines that were sent the gateway refused by themselves.
        barred: whether the gateway takes nothing from us.
    """

    __slots__ = ("barred", "drained", "refused")

    def __init__(self) -> None:
        self.drained: Drained
        self.refused = 0
        self.barred = False


def send(kept: Spool, gateway: Gateway, *, most_bytes: int = DETACHED_BYTES) -> Sending:
    """Send what was kept, and count what is refused of it.

    Args:
        kept: where it is.
        gateway: where it goes.
        most_bytes: where to stop.

    Raises:
        OSError: the directory cannot be read or written.
    """
    from streams.hook_command.exchange import post  # noqa: PLC0415

    sending = Sending()
    lines_json = {"Content-Type": "application/x-ndjson"}

    def give(lines: bytes) -> Sent:
        status, body = post(gateway, "/v1/hooks", lines, seconds=REQUEST_S, headers=lines_json, most=MAX_ANSWER_BYTES)
        sending.barred = status in _BARRED
        accepted = _accepted(body) if status in _JUDGED else None
        if accepted is None:
            return "refused" if status in _REFUSED else "away"  # 200 without it is no gateway's answer
        sending.refused += max(0, lines.count(b"\n") - accepted)
        return "sent"

    sending.drained = kept.drain(give, most_bytes=most_bytes)
    refused = sending.refused + sending.drained.refused
    if refused:
        kept.count("refused", refused)
    return sending


def _accepted(body: bytes) -> int | None:
    """Read how many lines the gateway has taken; None where that is no answer of a gateway."""
    import json  # noqa: PLC0415

    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    accepted = found.get("accepted") if isinstance(found, dict) else None
    return accepted if isinstance(accepted, int) and not isinstance(accepted, bool) else None


def flush(options: Options) -> int:
    """Send all that was kept, and say how much it was, and what was lost since that was said last.

    Returns:
        The exit code: 0, or 1 when something is left.
    """
    from streams.hook_command import gateway_of, spool  # noqa: PLC0415

    kept = spool()
    try:
        sending = send(kept, gateway_of(options), most_bytes=sys.maxsize)
        left = kept.size()
        lost = kept.forget_counts()
    except (OSError, ValueError) as problem:
        return _failed(f"{options.gateway}: {problem}")
    drained = sending.drained
    sys.stdout.write(
        f"sent: {drained.sent - sending.refused}; refused: {lost['refused']}; left: {left} bytes; "
        f"dropped: {lost['dropped']} bytes; too large: {lost['too-large']}; cut short: {lost['cut-short']}\n"
    )
    sys.stdout.flush()
    if drained.busy:
        return _failed("another process is sending what is left; try again in a moment")
    if sending.barred:
        from streams.hook_command.barred import words  # noqa: PLC0415

        return _failed(words(options.gateway))
    return _failed(f"the gateway at {options.gateway} does not take what is left") if left else 0


def _failed(problem: str) -> int:
    sys.stderr.write(f"traction-hook: {problem}\n")
    sys.stderr.flush()
    return 1
