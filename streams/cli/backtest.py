"""`traction backtest`: scores the detectors on recorded sessions that a person has labelled. Only words and options."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from streams import backtest as scoring
from streams.backtest.folds import BOTH, CONFIGURATIONS, RULES, play_folds
from streams.cli.backtest_result import Result
from streams.cli.facts import assumed_options
from streams.cli.options import FILE, policy_option, weights_option, with_policy
from streams.cli.recordings import (
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
from streams.config import Config
from streams.timeline import counted, plain
from streams.training import Untrainable, check_library

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from detectors import Limits
    from streams.policy.conditions import Facts
    from streams.policy.policy import Policy

LEAVES_OUT = "--folds learns the weights, each time without the source that it scores"
"""Why some options do not go with it."""


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
  traction backtest --labels labels.jsonl --policy policy.toml --against-policy new.toml recordings/
  traction backtest --labels labels.jsonl --min-found 20 --max-terminated 0 recordings/
  traction backtest --labels labels.jsonl --folds source recordings/

\b
With --folds source, each source is left out in turn: what a source is scored with was learned from the labelled
sessions of all others, so that the spin score meets nothing that it has seen. Shown are the rules alone, the spin
score alone and both; which sessions both together change; how many calls of each score spin; and where the score
errs most. Gates and lists concern both together. Needs scikit-learn: pip install 'traction[train]'

\b
Exit codes: 0 scored; 1 something could not be read, a labelled session is not among the recordings, or
            its first_loop_seq is beyond its last call (also when a gate failed), with --folds also when there
            is too little to learn from or scikit-learn is missing; 2 wrong use; 3 a gate failed; 130 interrupted

docs/recordings.md says more of recordings and labels, docs/policy.md of trying a policy on them.
""",
)
@paths_argument
@click.option("--labels", "labels_file", required=True, type=FILE, metavar="FILE", help="What a person said of them.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with everything, and nothing else.")
@click.option("--unlabelled", is_flag=True, help="List the sessions without a label that are warned, too.")
@limits_option
@weights_option
@policy_option
@assumed_options
@click.option(
    "--against",
    "other_file",
    type=FILE,
    metavar="FILE.toml",
    help="Play the limits of this file too, in place of --limits, and show both and what differs by session.",
)
@click.option(
    "--against-policy",
    "other_policy_file",
    type=FILE,
    metavar="FILE.toml",
    help="Play this policy too, in place of --policy, and show both and what differs by session.",
)
@click.option(
    "--folds",
    type=click.Choice(["source"]),
    metavar="source",
    help="Learn the spin score's weights without each source, score that one, and show what the score is worth. "
    "Not with --against, --spin-weights or a policy, nor with limits that switch spin_score off.",
)
@click.option(
    "--plot",
    "plot_file",
    type=OUTPUT,
    metavar="FILE.svg",
    help="Draw how soon loops are found, with --folds also how well the score is calibrated.",
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
    weights_file: Path | None,
    policy_file: Path | None,
    facts: Facts,
    other_file: Path | None,
    other_policy_file: Path | None,
    folds: str | None,
    plot_file: Path | None,
    jobs: int | None,
    **bounds: int | None,
) -> int:
    """Score the detectors on recorded sessions that a person has labelled.

    Tells which loops are found and how soon, and which healthy sessions are warned, by detector and by source; lists
    loops missed or found late and false alarms. Of two configurations, gates and lists concern the first.
    """
    if plot_file is not None:
        check_output(ctx, "--plot", plot_file, paths)
    limits = read_limits(ctx, limits_file, weights_file=weights_file)
    configurations = [with_policy(limits, policy_file)]
    names = [name_of(ctx, limits_file, policy_file)]
    if folds is not None:
        check_folds(limits, weights_file, other_file, policy_file or other_policy_file)
    elif other_file is not None or other_policy_file is not None:
        if other_file is not None:
            limits = read_limits(ctx, other_file, "--against", weights_file)
        option = "--policy" if other_policy_file is None else "--against-policy"
        configurations.append(with_policy(limits, other_policy_file or policy_file, option))
        names.append(name_of(ctx, other_file or limits_file, other_policy_file or policy_file))
    try:
        labels = scoring.read_labels(labels_file)
    except scoring.InvalidLabels as problem:
        raise click.UsageError(str(problem)) from problem
    reader = Reader(paths, facts)
    jobs = jobs or os.cpu_count() or 1
    if folds is not None:
        result = leave_out(reader, limits, labels, jobs, bounds)
    else:
        cases = scoring.match(play(reader, configurations, jobs), labels)
        scores = [scoring.score(cases.cases, place, name) for place, name in enumerate(names)]
        differing = scoring.changes(cases.cases) if len(scores) > 1 else []
        result = Result(scores, cases, differing, scoring.gates(scores[0], bounds), reader.unreadable, None)
    if as_json:
        click.echo(result.as_json())
    else:
        colour = False if os.environ.get("NO_COLOR") else None
        for line in (*result.lines(unlabelled=unlabelled), *reader.remarks()):
            click.echo(line, color=colour)
    if plot_file is not None:
        write_output("--plot", plot_file, result.svg().encode())
    tell_unmatched(result.cases, labels_file)
    tell_gates(result)
    return result.exit_code


def check_folds(limits: Limits, weights_file: Path | None, other_file: Path | None, policy_file: Path | None) -> None:
    """See that nothing else is asked for that does not go with learning, and that it can be learned."""
    if other_file is not None:
        raise click.UsageError("--folds shows three configurations already; leave out --against")
    if policy_file is not None:
        raise click.UsageError(
            "--folds plays all sessions under the same limits; leave out --policy, --against-policy, TRACTION_POLICY "
            "and `policy` in the settings file"
        )
    if weights_file is not None:
        raise click.UsageError(
            f"{LEAVES_OUT}; leave out --spin-weights, TRACTION_SPIN_WEIGHTS and `spin_weights` in the settings file"
        )
    if not limits.scores_spin:
        raise click.UsageError(f"{LEAVES_OUT}, and the limits switch spin_score off; take it out of `off`")
    try:
        check_library()
    except ModuleNotFoundError as problem:
        raise click.ClickException(str(problem)) from problem


def name_of(ctx: click.Context, limits_file: Path | None, policy_file: Path | None) -> str:
    """Name a configuration: the files that set its limits, if any does."""
    files = [plain(str(file)) for file in (limits_file, policy_file) if file is not None]
    if files:
        return " + ".join(files)
    return plain(str(ctx.obj.path)) if isinstance(ctx.obj, Config) and ctx.obj.limits else "defaults"


def play(reader: Reader, configurations: list[Policy], jobs: int) -> list[scoring.Heard]:
    """Play all sessions and say how far it is."""
    played = calls = 0

    def tell(heard: scoring.Heard) -> None:
        nonlocal played, calls
        played, calls = played + 1, calls + heard.calls
        reader.progress.show(f"{counted(played, 'session')}, {counted(calls, 'call')}")

    with worked(reader):
        return scoring.play_all(reader.sessions(), configurations, jobs, tell)


def leave_out(
    reader: Reader, limits: Limits, labels: Mapping[str, scoring.Label], jobs: int, bounds: Mapping[str, int | None]
) -> Result:
    """Leave out each source in turn, and say how far it is."""
    try:
        with worked(reader):
            heard, folds = play_folds(reader.sessions(), labels, limits, jobs, reader.progress.show)
    except Untrainable as problem:
        raise click.ClickException(f"--folds: {plain(str(problem))}") from problem
    cases = scoring.match(heard, labels)
    scores = [scoring.score(cases.cases, place, name) for place, name in enumerate(CONFIGURATIONS)]
    differing = scoring.changes(cases.cases, RULES, BOTH)
    return Result(scores, cases, differing, scoring.gates(scores[BOTH], bounds), reader.unreadable, folds)


def tell_gates(result: Result) -> None:
    """Say on standard error which gates failed."""
    for gate in result.gates:
        if not gate.passed:
            than = "fewer than" if gate.least else "more than"
            option = f"--{gate.name.replace('_', '-')} {gate.bound}"
            click.echo(f"error: {gate.words}: {gate.figure}, {than} {option}", err=True)
