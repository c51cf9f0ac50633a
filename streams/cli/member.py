"""The options of commands that share partitions with others of their group, and fence who had them before.

Only words and options here.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import click

from streams.cli.options import Number

if TYPE_CHECKING:
    from streams.cli.options import Command


def member_options(command: Command) -> Command:
    """Give a command the times of its group, as its arguments `session_timeout_ms` and `transaction_timeout_ms`."""

    @click.option(
        "--session-timeout",
        default=30.0,
        type=Number(1, 1800),
        metavar="SECONDS",
        help="Without a sign of life for that long, its partitions go to others.",
    )
    @click.option(
        "--transaction-timeout",
        default=30.0,
        type=Number(1, 900),
        metavar="SECONDS",
        help="After that long the brokers abort a transaction that was left open.",
    )
    @functools.wraps(command)
    def with_times(*, session_timeout: float, transaction_timeout: float, **others: Any) -> Any:
        return command(
            session_timeout_ms=round(session_timeout * 1000),
            transaction_timeout_ms=round(transaction_timeout * 1000),
            **others,
        )

    return with_times
