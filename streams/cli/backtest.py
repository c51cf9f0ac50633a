"""`traction backtest`: scores the detectors on recorded sessions that a person has labelled. Only words and options."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from streams import backtest as scoring
from streams.backtest.plot import bar_lines, svg
from streams.backtest.words import change_lines, detector_lines, entry_lines, source_lines, total_lines
from streams.cli.options import FILE
from streams.cli.recordings import EXIT_UNREADABLE, Reader, limits_option, paths_argument, read_limits
from streams.config import Config
from streams.timeline import counted, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from detectors import Limits

EXIT_GATE = 3


@dataclass(frozen=True, slots=True)
class Result:
    """All that came of a backtest.

    Attributes:
        scores: one for each configuration.
        cases: the sessions, and those that are not scored.
        changes: how the second configuration differs by session; none without one.
        gates: held against the first configuration.
        unreadable: files and lines that could not be read.
    """

    scores: list[scoring.Score]
    cases: scoring.Cases
    changes: list[scoring.Change]
    gates: list[scoring.Gate]
    unreadable: int

    @property
    def exit_code(self) -> int:
        """What the command ends with: a score of less than everything is worse than a bad score."""
        if self.unreadable or self.cases.incomplete:
            return EXIT_UNREADABLE
        return 0 if all(gate.passed for gate in self.gates) else EXIT_GATE

    def as_json(self) -> bytes:
        """Give everything as one object."""
        rest = {name: getattr(self.cases, name) for name in ("ambiguous", "missing", "repeated")}
        rest["misplaced"] = [case.session_id for case in self.cases.misplaced]
        whole = {
            "sessions": len(self.cases.cases),
            "scores": self.scores,
            "changes": self.changes,
            "gates": self.gates,
            "unreadable": self.unreadable,
        }
        return msgspec.json.format(msgspec.json.encode(whole | rest), indent=2)


def bound(name: str, text: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Make an option that sets a gate.

    Args:
        name: the flag.
        text: its help.
    """
    return click.option(name, type=click.IntRange(min=0), metavar="N", help=f"Exit with 3 {text}.")


@click.command(
    epilog="""\b
Labels are JSON lines, further fields are passed by:
  {"session_id": "a", "label": "loop", "first_loop_seq": 12, "pattern": "cycle", "source": "nightly"}
  {"session_id": "b", "label": "healthy", "why": "hard: runs the tests after every edit"}
  {"session_id": "c", "label": "ambiguous"}
first_loop_seq is the position, from 0, of the call at which a person would first say that it loops. A reason that
begins with hard:, in whatever case, marks a healthy session that repeats a lot. Ambiguous sessions are left out.
Without a source, the part of session_id before its first slash stands for it, else the folder of the file.

\b
A loop is found when its session has a warn or terminate at any call, in time when the first of these comes no later
than 5 calls after first_loop_seq. Delays are counted from there and negative before. Notices do not count. The
levels count whatever the mode.

\b
Examples:
  traction backtest --labels labels.jsonl recordings/
  traction backtest --labels labels.jsonl --against stricter.toml --plot delays.svg recordings/
  traction backtest --labels labels.jsonl --min-found 20 --max-terminated 0 recordings/

\b
Exit codes: 0 scored; 1 something could not be read, a labelled session is not among the recordings, or
            its first_loop_seq is beyond its last call (also when a gate failed); 2 wrong use;
            3 a gate failed; 130 interrupted

docs/recordings.md says more of recordings and labels.
""",
)
@paths_argument
@click.option("--labels", "labels_file", required=True, type=FILE, metavar="FILE", help="What a person said of them.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with everything, and nothing else.")
@click.option("--unlabelled", is_flag=True, help="List the sessions without a label that are warned, too.")
@limits_option
@click.option(
    "--against",
    "other_file",
    type=FILE,
    metavar="FILE.toml",
    help="Play the limits of this file too, and show both and what differs by session.",
)
@click.option(
    "--plot",
    "plot_file",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE.svg",
    help="Draw how soon loops are found as a picture, too.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 1_024),
    metavar="N",
    help="Processes that play sessions.  [default: the number of CPUs]",
)
@bound("--min-found", "when fewer loops are found")
@bound("--min-prompt", "when fewer loops are found in time")
@bound("--max-warned-easy", "when more healthy sessions, hard ones aside, are warned")
@bound("--max-warned-hard", "when more of the hard healthy sessions are warned")
@bound("--max-terminated", "when more healthy sessions are to be terminated")
@click.pass_context
def backtest(
    ctx: click.Context,
    /,
    *,
    paths: tuple[Path, ...],
    labels_file: Path,
    as_json: bool,
    unlabelled: bool,
    limits_file: Path | None,
    other_file: Path | None,
    plot_file: Path | None,
    jobs: int | None,
    **bounds: int | None,
) -> int:
    """Score the detectors on recorded sessions that a person has labelled.

    Tells which loops are found and how soon, and which healthy sessions are warned, by detector and by source; lists
    loops missed or found late and false alarms. Of two configurations, gates and lists concern the first.
    """
    configurations = [read_limits(ctx, limits_file)]
    names = [name_of(ctx, limits_file)]
    if other_file is not None:
        configurations.append(read_limits(ctx, other_file, "--against"))
        names.append(plain(str(other_file)))
    try:
        labels = scoring.read_labels(labels_file)
    except scoring.InvalidLabels as problem:
        raise click.UsageError(str(problem)) from problem
    reader = Reader(paths)
    cases = scoring.match(play(reader, configurations, jobs or os.cpu_count() or 1), labels)
    scores = [scoring.score(cases.cases, place, name) for place, name in enumerate(names)]
    differing = scoring.changes(cases.cases) if len(scores) > 1 else []
    result = Result(scores, cases, differing, scoring.gates(scores[0], bounds), reader.unreadable)
    if as_json:
        click.echo(result.as_json())
    else:
        colour = False if os.environ.get("NO_COLOR") else None
        for line in (*lines(result, unlabelled=unlabelled), *reader.remarks()):
            click.echo(line, color=colour)
    if plot_file is not None:
        draw(plot_file, scores)
    tell_faults(result, labels_file)
    return result.exit_code


def name_of(ctx: click.Context, limits_file: Path | None) -> str:
    """Name the first configuration: the file that sets its limits, if one does."""
    if limits_file is not None:
        return plain(str(limits_file))
    return plain(str(ctx.obj.path)) if isinstance(ctx.obj, Config) and ctx.obj.limits else "defaults"


def play(reader: Reader, configurations: list[Limits], jobs: int) -> list[scoring.Heard]:
    """Play all sessions and say how far it is."""
    played = calls = 0

    def tell(heard: scoring.Heard) -> None:
        nonlocal played, calls
        played, calls = played + 1, calls + heard.calls
        reader.progress.show(f"{counted(played, 'session')}, {counted(calls, 'call')}")

    try:
        return scoring.play_all(reader.sessions(), configurations, jobs, tell)
    except scoring.WorkersLost as problem:
        raise click.ClickException(f"{problem}; try --jobs 1") from problem
    finally:
        reader.progress.clear()


def lines(result: Result, *, unlabelled: bool) -> Iterator[str]:
    """Give what people read: the sessions first, the totals last, where a terminal stops."""
    yield from entry_lines(result.scores[0], unlabelled=unlabelled)
    yield from change_lines(result.changes, unlabelled=unlabelled)
    for table in (detector_lines(result.scores), source_lines(result.scores), bar_lines(result.scores)):
        yield ""
        yield from table
    yield ""
    yield from total_lines(result.scores, result.cases)


def draw(file: Path, scores: list[scoring.Score]) -> None:
    """Write the picture."""
    try:
        file.write_text(svg(scores), "utf-8")
    except OSError as problem:
        raise click.ClickException(f"--plot {file}: cannot be written ({problem.strerror})") from problem


def tell_faults(result: Result, labels_file: Path) -> None:
    """Say on standard error which labelled sessions are missing or end too early, and which gates failed."""
    for name in result.cases.missing:
        click.echo(f"error: labelled session {plain(name)} is not among the recordings", err=True)
    for case in result.cases.misplaced:
        click.echo(
            f"error: {plain(str(labels_file))}: session {plain(case.session_id)}: field `first_loop_seq` is beyond its "
            f"last call, #{case.heard.calls - 1}; write the position, from 0, of the call at which it loops, or give "
            "the whole recording",
            err=True,
        )
    for gate in result.gates:
        if not gate.passed:
            than = "fewer than" if gate.least else "more than"
            option = f"--{gate.name.replace('_', '-')} {gate.bound}"
            click.echo(f"error: {gate.words}: {gate.figure}, {than} {option}", err=True)
