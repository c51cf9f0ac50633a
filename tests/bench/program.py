"""What the programs that measure share: help with examples, progress on standard error, figures as a table or as JSON.

They are run by hand, as `python -m tests.bench.NAME`; nothing of the product may depend on them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from typing import TYPE_CHECKING, Any

from streams.cli.output import OutputError, guard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

EXIT_INTERRUPTED = 130
"""What shells expect of a program that Ctrl-C ended."""


def parser(doc: str | None, name: str) -> argparse.ArgumentParser:
    """Make a parser whose help is a module's docstring, with `--json`.

    Args:
        doc: the docstring, whose second paragraph has the examples.
        name: of the program, as `python -m tests.bench.NAME` starts it.
    """
    first, _, rest = (doc or "").partition("\n\n")
    made = argparse.ArgumentParser(
        prog=f"python -m tests.bench.{name}",
        description=first,
        epilog=rest,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--json", action="store_true", help="print one JSON object in place of the table")
    return made


def say(text: str) -> None:
    """Tell on standard error how far it is."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def show(found: Any, text: Callable[[Any], str], *, as_json: bool) -> None:
    """Print what was found."""
    sys.stdout.write((json.dumps(found) if as_json else text(found)) + "\n")
    sys.stdout.flush()


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Give a table: the first column to the left, the others to the right."""
    lines = [list(head), *([str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def run(main: Callable[[], int]) -> None:
    """End the process with what a program gives.

    Without a traceback end Ctrl-C, and a full disk or a closed pipe where the figures should go: with the same exit
    codes as Traction's commands, and always with a line that says why.
    """
    guard()
    code: int | str | None
    try:
        try:
            code = main()
        except SystemExit as ended:  # the parser's, for help and wrong options
            code = ended.code
        except KeyboardInterrupt:
            say("interrupted")
            code = EXIT_INTERRUPTED
        sys.stdout.flush()
    except OutputError as problem:
        code = problem.exit_code
        with contextlib.suppress(OSError):
            say(str(problem))
    sys.exit(code)
