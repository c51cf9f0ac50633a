"""Standard output and standard error that say in words when they cannot be written to: a full disk, a reader gone.

Python would show a stack trace, and a second one when it exits. What a command was doing is unwound like any failure,
so that nothing is left running; it decides nothing else but the form of JSON.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import logging
import os
import re
import sys
from typing import TYPE_CHECKING, Any

import click
import msgspec

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

logger = logging.getLogger(__name__)

EXIT_UNWRITTEN = 1
EXIT_NO_READER = 141
"""128 + SIGPIPE, as a shell reports a command whose reader (`| head`) went away."""


_STEERING = re.compile(
    "[\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
"""What could steer a terminal, end a line or hide in one, and JSON leaves as it is; control characters it escapes."""


class OutputError(OSError):
    """What was said did not get out. Raised once for a stream: what is written to it afterwards is thrown away.

    Its own `errno` is None: click would take a closed pipe's for its own to handle.

    Attributes:
        exit_code: with which the command ends.
    """

    def __init__(self, stream: str, problem: OSError) -> None:
        super().__init__(f"{stream} cannot be written to: {problem.strerror}")
        self.exit_code = EXIT_NO_READER if problem.errno == errno.EPIPE else EXIT_UNWRITTEN


class _Guarded(io.FileIO):
    """A stream of the process that turns failures into `OutputError`."""

    def __init__(self, number: int, called: str) -> None:
        super().__init__(number, "w", closefd=False)
        self._called = called

    def write(self, data: ReadableBuffer, /) -> int:
        """Write, or see to it that no later write fails and tell of this one."""
        try:
            return super().write(data)
        except OSError as problem:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())  # Python writes what is left when it exits
            os.close(nowhere)
            raise OutputError(self._called, problem) from problem


def guard() -> None:
    """Guard this process's standard output and standard error, as far as it has them."""
    for name, called in (("stdout", "standard output"), ("stderr", "standard error")):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.flush()
            guarded = io.TextIOWrapper(
                io.BufferedWriter(_Guarded(stream.fileno(), called)),
                encoding=stream.encoding,
                errors=stream.errors,
                line_buffering=stream.line_buffering,
                write_through=stream.write_through,
            )
            setattr(sys, name, guarded)


def tell(problem: OutputError) -> None:
    """Say why the command ends, unless nobody is there to be told, as after `| head`."""
    if problem.exit_code != EXIT_NO_READER:
        with contextlib.suppress(OSError):
            click.echo(f"Error: {problem}", err=True)


def json_text(value: Any, *, indent: int = -1) -> bytes:
    """Give a value as JSON for standard output, with escapes for what could steer a terminal or hide from its reader.

    Args:
        value: what msgspec can encode.
        indent: blanks for each level; on one line when negative.
    """
    encoded = msgspec.json.encode(value)
    if indent >= 0:
        encoded = msgspec.json.format(encoded, indent=indent)
    return _STEERING.sub(lambda found: json.dumps(found[0])[1:-1], encoded.decode()).encode()


def agreed(question: str, remedy: str) -> bool:
    """Ask on standard error, and take the answer from standard input.

    Args:
        question: what is asked.
        remedy: what to say on the command line where nobody can be asked.

    Raises:
        click.ClickException: there is no answer.
    """
    try:
        return click.confirm(question, err=True)
    except click.Abort as problem:
        if isinstance(problem.__context__, EOFError):
            raise click.ClickException(f"there is nobody to ask: {remedy}") from None
        raise


def announce(text: str) -> None:
    """Print a line that a process goes on without: who waited for it may be gone, and the work is not."""
    try:
        click.echo(text)
    except OutputError as problem:
        logger.warning("%s; going on without its lines", problem)
