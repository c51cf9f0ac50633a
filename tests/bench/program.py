"""What the programs that measure share: help with examples, progress on standard error, figures as a table or as JSON.

They are run by hand, as `python -m tests.bench.NAME`; nothing of the product may depend on them.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

EXIT_INTERRUPTED = 130
"""What shells expect of a program that Ctrl-C ended."""


def parser(doc: str | None) -> argparse.ArgumentParser:
    """Make a parser whose help is a module's docstring, with `--json`.

    Args:
        doc: the docstring, whose second paragraph has the examples.
    """
    first, _, rest = (doc or "").partition("\n\n")
    made = argparse.ArgumentParser(description=first, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--json", action="store_true", help="print one JSON object in place of the table")
    return made


def say(text: str) -> None:
    """Tell on standard error how far it is."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def show(found: Any, text: Callable[[Any], str], *, as_json: bool) -> None:
    """Print what was found."""
    sys.stdout.write((json.dumps(found) if as_json else text(found)) + "\n")


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
    """End the process with what a program gives; Ctrl-C ends it without a traceback."""
    try:
        code = main()
    except KeyboardInterrupt:
        say("interrupted: nothing was measured to the end")
        code = EXIT_INTERRUPTED
    sys.exit(code)
