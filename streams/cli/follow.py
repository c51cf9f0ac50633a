"""`traction follow`: transcripts as they grow, for agents without hooks. Only words and options here."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click
from aiokafka.errors import KafkaError

from streams.cli.looking import Duration
from streams.cli.loop import run
from streams.cli.options import (
    FILE,
    Number,
    kafka_options,
    log_options,
    policy_option,
    shared,
    weights_option,
    with_policy,
)
from streams.cli.output import json_text
from streams.cli.recordings import PAGE, Progress, limits_option, paths_argument, read_limits
from streams.cli.secrets import secret
from streams.emitter.settings import EmitterSettings
from streams.follow import FollowSettings, Notes, NotesUnusable, Told
from streams.follow.judging import Judging
from streams.follow.process import serve
from streams.follow.sinks import GatewaySink, kafka_sink
from streams.kafka import KafkaUnavailable, unavailable
from streams.privacy import Level
from streams.timeline import COLOURS, counted, plain
from streams.topics import TopicsError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager
    from datetime import timedelta

    from streams.follow.sinks import Sink
    from streams.kafka import KafkaSettings

EXIT_REFUSED = 1

_GATEWAY_SECONDS = 30.0


@click.command(
    epilog=f"""\b
Examples:
  traction follow ~/.claude/projects ~/.codex/sessions
  traction follow --dry-run --since 1h ~/.claude/projects
  traction follow --gateway http://127.0.0.1:8321 --privacy digests ~/.claude/projects
  traction follow --bootstrap kafka:9092 --state /var/lib/traction/follow --json /srv/agents

\b
When all files that there were are known it prints one line:
  follow ready: 214 files; events go to Kafka at localhost:9092
SIGTERM and Ctrl-C end it within seconds, with what was read sent and noted.
{PAGE} says which formats can be followed, and what happens to files that are renamed, cut or removed.

\b
Exit codes:
  0  told to stop
  1  Kafka or the state directory cannot be used, or some events were refused for good
  2  wrong use
""",
)
@paths_argument
@click.option("--gateway", metavar="URL", help="Send to this gateway (traction ingest) instead of Kafka.")
@shared("--gateway-token-file", "File with its token; else the variable TRACTION_GATEWAY_TOKEN is read.", type=FILE)
@click.option("--dry-run", is_flag=True, help="Send nothing, note nothing: run the detectors here and print alerts.")
@click.option(
    "--state",
    "state_directory",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIRECTORY",
    help="Where it is noted what was sent, one directory for each target and process.  "
    "[default: traction/follow in $XDG_STATE_HOME or ~/.local/state]",
)
@click.option(
    "--since",
    type=Duration(),
    metavar="DURATION",
    help="Of files that are there at the first start, send what happened since then too, for example 2h. "
    "Without it only what is written from now on.",
)
@click.option(
    "--privacy",
    default="full",
    type=click.Choice(get_args(Level)),
    help="How much of tool calls' content leaves this process.",
)
@click.option(
    "--interval", default=1.0, type=Number(0.05, 3600), metavar="SECONDS", help="Time between two looks at the files."
)
@click.option("--json", "as_json", is_flag=True, help="Print what happens as one JSON object a line, and nothing else.")
@limits_option
@weights_option
@policy_option
@kafka_options
@log_options
@click.pass_context
def follow(
    ctx: click.Context,
    *,
    paths: tuple[Path, ...],
    gateway: str | None,
    gateway_token_file: Path | None,
    dry_run: bool,
    state_directory: Path | None,
    since: timedelta | None,
    privacy: Level,
    interval: float,
    as_json: bool,
    limits_file: Path | None,
    weights_file: Path | None,
    policy_file: Path | None,
    kafka: KafkaSettings,
) -> int:
    """Send the events of transcripts as they are written, for agents without hooks.

    Follows files, and folders with all below them. Each event counts once, also when this process is killed: it goes on
    where it was.
    """
    _check(ctx, gateway=gateway, dry_run=dry_run)
    settings = FollowSettings(
        roots=tuple(dict.fromkeys(os.path.abspath(path) for path in paths)),  # noqa: PTH100 - links stay as they are named
        since=None if since is None else datetime.now(UTC) - since,
        privacy=privacy,
        interval=interval,
    )
    connect: AbstractAsyncContextManager[Sink]
    if dry_run:
        policy = with_policy(read_limits(ctx, limits_file, weights_file=weights_file), policy_file)
        tell = _teller("the detectors, here", as_json=as_json)
        connect = _here(Judging(policy, lambda alert: tell(Told("alert", alert=alert))))
    elif gateway is not None:
        tell = _teller(f"the gateway at {plain(gateway)}", as_json=as_json)
        connect = _gateway(gateway, gateway_token_file)
    else:
        tell = _teller(f"Kafka at {plain(kafka.bootstrap)}", as_json=as_json)
        connect = kafka_sink(kafka)
    try:
        with Notes(None if dry_run else state_directory or _default_state()) as notes:
            refused = run(serve(settings, notes, connect, tell))
    except (KafkaUnavailable, TopicsError, NotesUnusable) as problem:
        raise click.ClickException(str(problem)) from problem
    except KafkaError as problem:  # refused for good: what can be retried is retried
        raise click.ClickException(str(unavailable(kafka, problem))) from problem
    return EXIT_REFUSED if refused else 0


def _check(ctx: click.Context, *, gateway: str | None, dry_run: bool) -> None:
    """See that the options make sense together.

    Raises:
        click.UsageError: they do not.
    """
    given = {
        name
        for name in ("state_directory", "limits_file", "weights_file", "policy_file", "gateway_token_file")
        if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    }
    if dry_run and gateway is not None:
        raise click.UsageError("--dry-run sends nothing: drop --gateway")
    if dry_run and "state_directory" in given:
        raise click.UsageError("--dry-run notes nothing: drop --state")
    if gateway is None and "gateway_token_file" in given:
        raise click.UsageError("--gateway-token-file goes with --gateway")
    if not dry_run and given & {"limits_file", "weights_file", "policy_file"}:
        raise click.UsageError("--limits, --spin-weights and --policy go with --dry-run: else the worker judges")


def _default_state() -> Path:
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "traction" / "follow"


def _gateway(url: str, token_file: Path | None) -> AbstractAsyncContextManager[Sink]:
    token = secret("TRACTION_GATEWAY_TOKEN", token_file, "--gateway-token-file")
    try:
        return _posting(GatewaySink(EmitterSettings(url=url, token=token, timeout_seconds=_GATEWAY_SECONDS)))
    except ValueError as problem:
        raise click.UsageError(f"--gateway: {problem}") from problem


@asynccontextmanager
async def _posting(sink: GatewaySink) -> AsyncIterator[Sink]:
    try:
        yield sink
    finally:
        sink.close()


@asynccontextmanager
async def _here(sink: Judging) -> AsyncIterator[Sink]:
    yield sink


def _teller(target: str, *, as_json: bool) -> Callable[[Told], None]:
    """Make what prints what happens: as JSON, or in words, what is wrong on standard error."""
    progress = Progress()
    colour = False if os.environ.get("NO_COLOR") else None

    def in_json(told: Told) -> None:
        click.echo(json_text(told))

    def in_words(told: Told) -> None:
        if told.what == "progress":
            progress.show(f"{counted(told.sent or 0, 'event')} so far, of {counted(told.files or 0, 'file')}")
            return
        progress.clear()
        if told.what == "ready":
            click.echo(f"follow ready: {counted(told.files or 0, 'file')}; events go to {target}")
        elif told.what == "alert":
            click.echo(_alert_line(told.alert or {}), color=colour)
        elif told.what == "ended":
            click.echo(f"follow ended: {counted(told.sent or 0, 'event')}")
        else:
            click.echo(_remark(told), err=True)

    return in_json if as_json else in_words


def _alert_line(alert: dict[str, object]) -> str:
    level = str(alert["level"])
    return (
        f"{click.style(level.upper(), fg=COLOURS[level])}  {plain(str(alert['session_id']))}  call #{alert['seq']}  "
        f"{alert['detector']}: {plain(str(alert['reasoning']))}"
    )


def _remark(told: Told) -> str:
    path = plain(told.path or "")
    reason = plain(told.reason or "")
    return {
        "fault": f"error: {path}:{told.line}: {reason}",
        "not_followed": f"error: {path}: {reason}",
        "rewritten": f"note: {path}: was cut or written anew; read from its beginning",
        "removed": f"note: {path}: is gone",
        "refused": f"error: event {plain(told.event_id or '')} was not taken: {reason}",
        "away": f"warning: {reason}; trying on",
        "back": "note: events are taken again",
    }[told.what]
