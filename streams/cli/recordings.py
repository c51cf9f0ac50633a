"""What the commands that read recordings share: the reading, how far it is, the limits of files, and files to write.

Tells on standard error what cannot be read, and counts it; judges no session.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from detectors import InvalidLimits, Limits, limits_from
from streams.cli import COMMANDS
from streams.cli.options import FILE, with_weights
from streams.config import Config, flag, load
from streams.importers import Damaged, Session, Skipped, Unreadable, is_read, read_path
from streams.policy.conditions import Facts
from streams.pool import WorkersLost
from streams.replay import assume
from streams.timeline import counted, damaged_line, plain, unreadable_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streams.backtest import Cases

EXIT_UNREADABLE = 1

FORMATS = """\
  Claude Code transcripts and stream-json, Codex rollouts and codex exec --json,
  Gemini CLI chats and stream-json, Cursor stream-json and transcripts, pi,
  Antigravity transcripts and stream-json,
  OpenCode (database, folders, export, run --format json), Crush, Cline and Roo Code tasks,
  SWE-agent .traj, mini-swe-agent .traj.json, OpenHands output.jsonl, ATIF trajectories,
  Inspect .eval and .json, OpenAI chat messages with tool calls, and lines of the
  neutral form {session_id, seq, ts, tool, args, result, error}"""
"""The formats that are read, for people."""

PAGE = "docs/recordings.md"
"""The page that says what the formats are."""

paths_argument = click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH...")
"""The recordings that a command reads, as its argument `paths`."""

limits_option = click.option(
    "--limits",
    "limits_file",
    type=FILE,
    metavar="FILE.toml",
    help="Take the detectors' limits from the table [limits] of this file.",
)
"""The limits that a command plays them under, as its argument `limits_file`, for `read_limits`."""

OUTPUT = click.Path(dir_okay=False, writable=True, path_type=Path)
"""A file that a command writes, for `check_output` and `write_output`."""

OTHER_FILE = "name one in a directory that has space and that you may write to"

PROGRESS_AFTER_S = 1.0
PROGRESS_EVERY_S = 0.2


class Progress:
    """One line on standard error that says how far it is: on a terminal only, and only when it takes long."""

    def __init__(self) -> None:
        self._on = sys.stderr.isatty()
        self._next = time.monotonic() + PROGRESS_AFTER_S
        self._shown = False

    def show(self, text: str, *, at_once: bool = False) -> None:
        """Show where it is, at most some times a second; at once before something that takes long."""
        if self._on and (at_once or time.monotonic() >= self._next):
            self._next = time.monotonic() + PROGRESS_EVERY_S
            self._shown = True
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()

    def clear(self) -> None:
        """Take the line away before something else is written."""
        if self._shown:
            self._shown = False
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


@dataclass(slots=True)
class Reader:
    """Reads all paths, tells on standard error what could not be read, and counts.

    Attributes:
        paths: files and directories.
        facts: what is taken for true of sessions whose recording does not say it.
        progress: the line to clear before something is told.
        unreadable: how many faults there were.
        skipped: files in directories that are no recordings.
        found: sessions that were read.
        repeats: records of them that were left out as repeats.
        differing: those of the repeats that are not equal to what they repeat.
    """

    paths: tuple[Path, ...]
    facts: Facts = Facts()  # noqa: RUF009 - immutable
    progress: Progress = field(default_factory=Progress)
    unreadable: int = 0
    skipped: int = 0
    found: int = 0
    repeats: int = 0
    differing: int = 0

    @property
    def failed(self) -> bool:
        """Whether there was something that could not be read, or nothing to read at all."""
        return bool(self.unreadable) or not self.found

    def sessions(self) -> Iterator[Session]:
        """Give the sessions one by one; in the end tell what was left out, and when there were none."""
        for path in self.paths:
            for found in read_path(path):
                if isinstance(found, Session):
                    self.found += 1
                    self.repeats += found.repeats
                    self.differing += found.differing
                    yield found if self.facts == Facts() else assume(found, self.facts)
                elif isinstance(found, Skipped):
                    self.skipped += 1
                else:
                    self._tell(found)
        self._tell_whole()

    def _tell(self, found: Unreadable | Damaged) -> None:
        self.progress.clear()
        if isinstance(found, Damaged):
            click.echo(f"note: {damaged_line(found)}", err=True)
        else:
            self.unreadable += 1
            click.echo(f"error: {unreadable_line(found)}", err=True)

    def _tell_whole(self) -> None:
        self.progress.clear()
        if self.repeats:
            other = f", {self.differing:,} of them another call than that one" if self.differing else ""
            remedy = ": give every call of a session a seq of its own" if self.differing else ""
            click.echo(
                f"note: left out {counted(self.repeats, 'record')} as repeats, with the seq of a call that their "
                f"session had before{other}{remedy}",
                err=True,
            )
        if not self.found and not self.unreadable:
            places = ", ".join(plain(str(path)) for path in self.paths)
            click.echo(
                f"error: {places}: nothing was found: no session in a format that is read here, which are\n{FORMATS}\n"
                f"  {PAGE} says more of them",
                err=True,
            )

    def remarks(self) -> Iterator[str]:
        """Give what the summary says of the reading."""
        if self.skipped:
            yield f"  skipped {counted(self.skipped, 'file')} of no known format"
        if self.unreadable:
            places = "1 file or line" if self.unreadable == 1 else f"{self.unreadable:,} files or lines"
            yield f"  could not read {places}: told above"


@contextlib.contextmanager
def worked(reader: Reader) -> Iterator[None]:
    """Take the line of progress away in the end, and say what to do when a process was lost."""
    try:
        yield
    except WorkersLost as problem:
        raise click.ClickException(f"{problem}; try --jobs 1") from problem
    finally:
        reader.progress.clear()


def tell_unmatched(cases: Cases, labels_file: Path) -> None:
    """Say on standard error which labelled sessions are missing or end before they loop."""
    for name in cases.missing:
        click.echo(f"error: labelled session {plain(name)} is not among the recordings", err=True)
    for case in cases.misplaced:
        click.echo(
            f"error: {plain(str(labels_file))}: session {plain(case.session_id)}: field `first_loop_seq` is beyond its "
            f"last call, #{case.heard.calls - 1}; write the position, from 0, of the call at which it loops, or give "
            "the whole recording",
            err=True,
        )


def read_limits(
    ctx: click.Context, file: Path | None, option: str = "--limits", weights_file: Path | None = None
) -> Limits:
    """Put the limits together: those of `--config`, over them those of a file; and the weights of the spin score.

    Args:
        ctx: the command's context.
        file: the file with the table `[limits]`; None when the option was not given.
        option: the option that named the file, for messages.
        weights_file: the file of weights, see `weights_option`; None for those that come with Traction.

    Raises:
        click.UsageError: a limit does not exist or has a value it cannot have, or the weights cannot be used.
    """
    config = ctx.obj if isinstance(ctx.obj, Config) else Config()
    layers = config.layers
    if file is not None:
        table = load(file, COMMANDS).limits
        if not table:
            raise click.UsageError(f"{option} {file}: there is no table [limits] in it; write one, or leave the option")
        layers.append((f"file:{file}", table))
    try:
        limits = limits_from(layers)
    except InvalidLimits as problem:
        raise click.UsageError(str(problem)) from problem
    return with_weights(limits, weights_file)


def check_output(ctx: click.Context, option: str, file: Path, paths: tuple[Path, ...]) -> None:
    """Refuse, before anything is read, a file that `write_output` cannot write, or that the command reads itself.

    Whether there is space, only `write_output` finds out.

    Args:
        ctx: the command's context; its options of the type `FILE` are what it reads beside the recordings.
        option: the option that named the file, for messages.
        file: the file.
        paths: the recordings.

    Raises:
        click.UsageError: it is a device, its name is too long, its directory is not there or may not be written to,
            or it would be overwritten though it is read.
    """
    target = Path(os.path.realpath(file))
    try:
        special, homeless = file.exists() and not file.is_file(), not target.parent.is_dir()
    except OSError as problem:
        raise click.UsageError(f"{option} {file}: cannot be written ({problem.strerror}); {OTHER_FILE}") from problem
    if special:
        raise click.UsageError(f"{option} {file}: is no regular file; name one, or leave the option")
    if homeless:
        raise click.UsageError(f"{option} {file}: there is no directory {target.parent}; make it first")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise click.UsageError(f"{option} {file}: cannot be written to {target.parent}; {OTHER_FILE}")
    reads = _what_reads(ctx, target, paths) if target.exists() else None
    if reads is not None:
        raise click.UsageError(f"{option} {file}: would overwrite what {reads} reads; name another file")


def _what_reads(ctx: click.Context, file: Path, paths: tuple[Path, ...]) -> str | None:
    """Name the option or the path by which a command reads a file."""
    read = {
        f"--{flag(option).replace('_', '-')}": ctx.params[str(option.name)]
        for option in ctx.command.params
        if isinstance(option, click.Option) and option.type is FILE
    }
    if isinstance(ctx.obj, Config):
        read["--config"] = ctx.obj.path
    for option, named in read.items():
        if named is not None and named.samefile(file):
            return option
    return next((f"PATH {plain(str(path))}" for path in paths if is_read(file, path)), None)


def write_output(option: str, file: Path, data: bytes) -> None:
    """Write a file: all or nothing, so that nobody reads a part of it.

    Args:
        option: the option that named the file, for messages.
        file: the file; a link stays one.
        data: its content.

    Raises:
        click.ClickException: it cannot be written; what was there before is as it was.
    """
    target = Path(os.path.realpath(file))
    part = target.with_name(f".traction-{secrets.token_hex(4)}")
    try:
        with part.open("xb") as stream:
            stream.write(data)
        part.replace(target)
    except OSError as problem:
        raise click.ClickException(
            f"{option} {file}: cannot be written ({problem.strerror}); {OTHER_FILE}"
        ) from problem
    finally:
        part.unlink(missing_ok=True)
