"""`traction fixes`: what was tried for a subtask, and whether the next approach goes round in a circle.

Only words and options here; `streams.fixes` does it, and `from streams.fixes import CircularFixDetector` is the same in
one's own process.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from streams.cli.options import FILE, Command, shared
from streams.cli.output import json_text
from streams.fixes import CircularFixDetector, FixesError, FixOutcome, StoreError
from streams.fixes.words import BLOCKS, answer_lines, summary_lines, timeline_lines
from streams.places import user_directory
from streams.timeline import counted, plain

if TYPE_CHECKING:
    from collections.abc import Iterable

EXIT_CIRCULAR = 3
MAX_DIFF_CHARS = 1_000_000  # as the contract has it


def default_store() -> Path:
    """Give the file of the history: in the user's state directory, as the platform has it."""
    return user_directory("state") / "fixes.sqlite3"


def say(lines: Iterable[str]) -> None:
    """Print lines, with a question mark for what the output's encoding does not have."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"  # there may be no output at all
    for line in lines:
        click.echo(line.encode(encoding, "replace").decode(encoding))


def only_ascii() -> bool:
    """Tell whether the output cannot show the blocks of a bar."""
    try:
        BLOCKS.encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        return True
    return False


def common_options(command: Command) -> Command:
    """Give a command the options of all: the detector as its argument `detector`, and `as_json`."""

    @shared(
        "--store",
        f"File of the history; it may be shared by many processes.  [default: {default_store()}]",
        type=click.Path(path_type=Path),
        metavar="FILE",
    )
    @shared("--fix-config", "Configuration; see docs/fixes.md.", type=FILE, metavar="FILE.json")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    @functools.wraps(command)
    def with_detector(*, store: Path | None, fix_config: Path | None, **others: Any) -> Any:
        try:
            with CircularFixDetector(fix_config, store=store or default_store()) as detector:
                return command(detector=detector, **others)
        except StoreError as problem:
            raise click.ClickException(str(problem)) from problem
        except FixesError as problem:
            raise click.UsageError(str(problem)) from problem

    return with_detector


approach_option = click.option("--approach", required=True, metavar="TEXT", help="In words, what is tried.")
files_option = click.option(
    "--file", "files", multiple=True, metavar="PATH", help="A file that it touches; repeatable."
)
diff_option = click.option(
    "--diff",
    type=click.File("r", encoding="utf-8", errors="replace"),
    metavar="FILE",
    help="What it changes, a unified diff; - reads standard input. Only digests of its lines are kept.",
)


@click.group(
    epilog="""\b
Examples:
  traction fixes record fix-login --approach "Updated authentication logic" --outcome failed
  traction fixes check fix-login --approach "Modified authentication" --file src/login.py
  traction fixes timeline fix-login
  traction fixes summary
  traction fixes forget fix-login

\b
Exit codes:
  0  done; of check: go on
  1  the history cannot be read or written
  2  wrong use
  3  of check: circular
""",
)
def fixes() -> None:
    """Record fix attempts, and tell when the next goes round in a circle.

    An approach is circular when it is like attempts that failed: in its words, in its changes, or by failing in the
    same way in the same files; and when the subtask was tried too often.
    """


@fixes.command(
    epilog="""\b
Examples:
  traction fixes record fix-login --approach "Updated the token's check" --file src/login.py --outcome failed
  traction fixes record fix-login --approach "Renew it" --outcome partial --failing test_login --error "expired"
  git diff | traction fixes record fix-login --approach "Renew the token" --outcome success --diff -
""",
)
@click.argument("subtask")
@approach_option
@files_option
@click.option(
    "--outcome", required=True, type=click.Choice([each.value for each in FixOutcome]), help="What became of it."
)
@click.option("--error", metavar="TEXT", help="What failed.")
@diff_option
@click.option("--failing", multiple=True, metavar="NAME", help="A check that fails after it; repeatable.")
@common_options
def record(
    *,
    detector: CircularFixDetector,
    subtask: str,
    approach: str,
    files: tuple[str, ...],
    outcome: str,
    error: str | None,
    diff: TextIO | None,
    failing: tuple[str, ...],
    as_json: bool,
) -> None:
    """Record an attempt, whatever became of it.

    A success clears the subtask's history, unless the configuration says otherwise.
    """
    attempt = detector.record_attempt(
        subtask, approach, files, FixOutcome(outcome), error, diff=_text(diff), failing=failing
    )
    if as_json:
        click.echo(json_text(attempt))
    else:
        say([f"recorded attempt #{attempt.number} of {plain(attempt.subtask_id)}: {attempt.outcome}"])


@fixes.command(
    epilog="""\b
In a shell:
  if traction fixes check fix-login --approach "$next"; then
    apply "$next"
  elif [ $? -eq 3 ]; then
    echo "circular: try something else"
  fi

\b
Exit codes:
  0  go on
  1  the history cannot be read or written
  2  wrong use
  3  circular
""",
)
@click.argument("subtask")
@approach_option
@files_option
@diff_option
@common_options
def check(
    *,
    detector: CircularFixDetector,
    subtask: str,
    approach: str,
    files: tuple[str, ...],
    diff: TextIO | None,
    as_json: bool,
) -> int:
    """Tell whether an approach that is about to be tried is circular. Records no attempt."""
    result = detector.is_circular_fix(subtask, approach, files=files, diff=_text(diff))
    if as_json:
        click.echo(json_text(result))
    else:
        say(answer_lines(result))
    return EXIT_CIRCULAR if result.is_circular else 0


@fixes.command()
@click.argument("subtask")
@common_options
def timeline(*, detector: CircularFixDetector, subtask: str, as_json: bool) -> None:
    """Show the attempts of a subtask, each with how alike its words are to those of the one before."""
    entries = detector.get_timeline(subtask)
    if as_json:
        click.echo(json_text(entries))
    else:
        say(timeline_lines(subtask, entries, ascii_only=only_ascii()))


@fixes.command()
@common_options
def summary(*, detector: CircularFixDetector, as_json: bool) -> None:
    """Print figures over all subtasks, also over what was cleared or has expired since."""
    figures = detector.get_summary()
    if as_json:
        click.echo(json_text(figures))
    else:
        say(summary_lines(figures))


@fixes.command()
@click.argument("subtask", required=False)
@click.option("--all", "everything", is_flag=True, help="Forget all subtasks, and the figures of the summary.")
@click.option("--yes", is_flag=True, help="With --all: yes, all.")
@common_options
def forget(*, detector: CircularFixDetector, subtask: str | None, everything: bool, yes: bool, as_json: bool) -> None:
    """Forget the history of a subtask, and say how many attempts were forgotten. The summary still counts them."""
    if everything == (subtask is not None):
        raise click.UsageError("name the subtask to forget, or give --all")
    if everything != yes:
        raise click.UsageError("--all and --yes go together: they forget every subtask, and the figures of the summary")
    forgotten = detector.cleanup_all() if subtask is None else detector.cleanup_subtask(subtask)
    if as_json:
        click.echo(json_text({"forgotten": forgotten}))
    else:
        say([f"forgot {counted(forgotten, 'attempt')}"])


def _text(file: TextIO | None) -> str | None:
    """Read a diff; of one that is too long enough for it to be refused."""
    return None if file is None else file.read(MAX_DIFF_CHARS + 1)
