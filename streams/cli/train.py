"""`traction train`: learns the weights of the spin score from recorded, labelled sessions. Only words and options."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click
import msgspec

from detectors.weights import write_weights
from streams import training
from streams.backtest import InvalidLabels, read_labels_and_digest
from streams.cli.options import FILE
from streams.cli.recordings import (
    EXIT_UNREADABLE,
    OUTPUT,
    Reader,
    check_output,
    limits_option,
    paths_argument,
    read_limits,
    tell_unmatched,
    worked,
    write_output,
)
from streams.timeline import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from detectors import Limits
    from detectors.weights import Weights
    from streams.backtest import Label
    from streams.importers import Session
    from streams.training.examples import Measured


@click.command(
    epilog="""\b
Labels are those of traction backtest, whose help says what they are. Ambiguous sessions are left out, sessions
without a label passed by. The same recordings and labels give the same file, byte for byte, with one version of
scikit-learn, which comes with: pip install 'traction[train]'

\b
Each source is left out in turn and scored by what was learned from the others; the figures and the limits come
from that. The limit of a warn is such that at most one in a hundred of the easy healthy sessions reaches it, and
of the hard ones likewise. A source is what the label says, else the part of session_id before its first slash,
else the folder of the file.

\b
Examples:
  traction train --labels labels.jsonl --output weights.json recordings/
  traction train --labels labels.jsonl recordings/ > weights.json
  traction backtest --labels others.jsonl --spin-weights weights.json others/
  traction worker --spin-weights weights.json

\b
Exit codes: 0 learned; 1 not, and no weights are written: something could not be read, a labelled session is not
            among the recordings, its first_loop_seq is beyond its last call, nothing can be learned from the
            examples, or scikit-learn is missing; 2 wrong use; 130 interrupted
""",
)
@paths_argument
@click.option("--labels", "labels_file", required=True, type=FILE, metavar="FILE", help="What a person said of them.")
@click.option(
    "--output",
    "output_file",
    type=OUTPUT,
    metavar="FILE.json",
    help="Write the weights to this file, in one go.  [default: standard output]",
)
@click.option("--json", "as_json", is_flag=True, help="With --output: print the figures as one JSON object.")
@limits_option
@click.option(
    "--jobs",
    type=click.IntRange(1, 1_024),
    metavar="N",
    help="Processes that measure sessions.  [default: the number of CPUs]",
)
@click.pass_context
def train(
    ctx: click.Context,
    /,
    *,
    paths: tuple[Path, ...],
    labels_file: Path,
    output_file: Path | None,
    as_json: bool,
    limits_file: Path | None,
    jobs: int | None,
) -> int:
    """Learn the weights of the spin score from recorded, labelled sessions.

    Writes the weights file that --spin-weights takes, and tells how well the weights do on sources of sessions that
    they were not learned from.
    """
    if as_json and output_file is None:
        raise click.UsageError("--json goes with --output: without it the weights are printed")
    if output_file is not None:
        check_output(ctx, "--output", output_file, paths)
    try:
        training.check_library()
    except ModuleNotFoundError as problem:
        raise click.ClickException(str(problem)) from problem
    limits = read_limits(ctx, limits_file)
    if not limits.scores_spin:
        raise click.UsageError(
            f"{limits.layer('off')}: spin_score is switched off, and nothing can be measured; take it out of `off`"
        )
    labels, digest = read(labels_file)
    reader = Reader(paths)
    collected = measure(reader, labels, limits, jobs or os.cpu_count() or 1)
    tell_unmatched(collected.cases, labels_file)
    if reader.failed or collected.cases.incomplete:
        click.echo("error: no weights are written; mend or leave out what is told above", err=True)
        return EXIT_UNREADABLE
    weights = learn(reader, collected, digest)
    if output_file is None:
        click.echo(write_weights(weights), nl=False)
    else:
        write_output("--output", output_file, write_weights(weights))
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(training.figures(weights, collected)), indent=2))
    else:
        for line in (*training.lines(weights, collected), *reader.remarks()):
            click.echo(line, err=output_file is None)
    return 0


def read(labels_file: Path) -> tuple[dict[str, Label], str]:
    """Read the labels, and give the digest of their content."""
    try:
        return read_labels_and_digest(labels_file)
    except InvalidLabels as problem:
        raise click.UsageError(str(problem)) from problem


def measure(reader: Reader, labels: Mapping[str, Label], limits: Limits, jobs: int) -> training.Collected:
    """Measure the labelled sessions and say how far it is."""
    measured = 0

    def show() -> None:
        reader.progress.show(f"{counted(reader.found, 'session')} read, {measured:,} labelled ones measured")

    def sessions() -> Iterator[Session]:
        for session in reader.sessions():
            show()
            yield session

    def tell(_: Measured) -> None:
        nonlocal measured
        measured += 1
        show()

    with worked(reader):
        return training.collect(sessions(), labels, limits, jobs, tell)


def learn(reader: Reader, collected: training.Collected, digest: str) -> Weights:
    """Learn the weights."""
    reader.progress.show(f"learning from {counted(len(collected.examples), 'session')}", at_once=True)
    try:
        with worked(reader):
            return training.fit(collected.examples, digest)
    except training.Untrainable as problem:
        raise click.ClickException(str(problem)) from problem
