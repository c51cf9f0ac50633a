"""`traction sinks`: lists the sinks of a policy, and tries one out. Only words and options here."""

from __future__ import annotations

import asyncio
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, get_args

import click
import msgspec
import orjson

from detectors import InvalidLimits, limits_from
from schemas.common import Agent, Task
from schemas.outputs import Notification, NotificationKind, Report
from streams.cli.looking import table
from streams.cli.options import policy_option, with_policy
from streams.config import Config
from streams.sinks.errors import InvalidSinks, Undelivered
from streams.sinks.run import make
from streams.sinks.settings import RESOLVING, read_sinks

if TYPE_CHECKING:
    from pathlib import Path

    from streams.sinks.settings import AnySettings

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


@click.group(
    epilog="""\b
Examples:
  traction sinks list --policy policy.toml
  traction sinks test pager --policy policy.toml

\b
Exit codes:
  0  all is well
  1  a secret is missing, or the notification was not taken
  2  wrong use

docs/sinks.md says what stands in the policy.
""",
)
def sinks() -> None:
    """See who is told, and try it out.

    Sinks stand in the policy as tables [sinks.NAME]; `traction escalate` delivers to them. No broker is asked here.
    """


@sinks.command(
    "list",
    epilog="""\b
Examples:
  traction sinks list --policy policy.toml
  TRACTION_POLICY=policy.toml traction sinks list --json

\b
Exit codes: 0 all secrets are there; 1 one is not; 2 wrong use
""",
)
@policy_option
@json_option
@click.pass_obj
def list_sinks(config: Config | None, *, policy_file: Path | None, as_json: bool) -> int:
    """List the sinks of a policy, and whether their secrets are there as this process sees them."""
    rows, problems = [], []
    for each in _read(config, policy_file):
        try:
            make(each, str(policy_file))
            state = "ready"
        except InvalidSinks as problem:
            problems.append(str(problem))
            state = "not ready"
        rows.append((each.name, _type(each), state, ", ".join(each.kinds)))
    if as_json:
        keys = ("name", "type", "state", "kinds")
        _print({"ok": not problems, "sinks": [dict(zip(keys, row, strict=True)) for row in rows], "problems": problems})
    elif rows:
        table(("sink", "type", "state", "tells"), rows)
    else:
        click.echo("the policy has no sinks; docs/sinks.md says how to add one")
    for told in () if as_json else problems:
        click.echo(told, err=True)
    return 1 if problems else 0


@sinks.command(
    epilog="""\b
Examples:
  traction sinks test pager --policy policy.toml
  traction sinks test pager --policy policy.toml --resolve              and then say that it is over
  traction sinks test forge --policy policy.toml --repo acme/shop --ref '#123'

\b
Exit codes: 0 it was taken, or there was nothing to do; 1 it was not taken, or a secret is missing; 2 wrong use
""",
)
@click.argument("name")
@policy_option
@click.option(
    "--kind",
    default="escalate_human",
    type=click.Choice([kind for kind in get_args(NotificationKind) if kind not in RESOLVING]),
    help="Kind of the notification, whether or not the sink tells it.",
)
@click.option("--repo", metavar="OWNER/NAME", help="Repository of the task.")
@click.option("--ref", help="Pull request or issue of the task, for example '#123'.")
@click.option("--resolve", is_flag=True, help="Send a second one, which says that the incident is over.")
@json_option
@click.pass_obj
def test(
    config: Config | None,
    *,
    name: str,
    policy_file: Path | None,
    kind: NotificationKind,
    repo: str | None,
    ref: str | None,
    resolve: bool,
    as_json: bool,
) -> int:
    """Send a sample notification through one sink, once, and show what came back.

    It says that it is a test. A failure is told and not tried again.
    """
    found = {each.name: each for each in _read(config, policy_file)}
    if name not in found:
        raise click.UsageError(f"the policy has no sink {name!r}; it has: {', '.join(found) or 'none'}")
    first = sample(name, kind, Task(id="traction-test", repo=repo, ref=ref))
    sent = [first, _over(first)] if resolve else [first]
    try:
        told = asyncio.run(_send(found[name], str(policy_file), sent))
    except InvalidSinks as problem:
        told = [{"ok": False, "told": str(problem)}]
    ok = all(each["ok"] for each in told)
    if as_json:
        _print({"ok": ok, "sink": name, "type": _type(found[name]), "sent": told})
        return 0 if ok else 1
    for each in told:
        click.echo(f"{each.get('outcome', 'not taken')}: {each['told']}", err=not each["ok"])
        if each.get("shown"):
            click.echo(f"it said: {each['shown']}", err=True)
    return 0 if ok else 1


def sample(name: str, kind: NotificationKind, task: Task) -> Notification:
    """Give a notification that says that it is a test, with ids of its own.

    Args:
        name: of the sink.
        kind: its kind.
        task: whom it is about.
    """
    said = f"This is a test of the sink {name}: nothing happened, and nothing needs to be done."
    return Notification(
        notification_id=uuid.uuid4().hex,
        kind=kind,
        severity="info",
        incident_id=uuid.uuid4().hex,
        session_id="traction-test",
        task_id="traction-test",
        alert_id=uuid.uuid4().hex,
        loop_id="traction-test",
        detector="test",
        agent=Agent(name="traction"),
        task=task,
        issued_at=datetime.now(UTC),
        text=said,
        report=Report(
            title=f"Test of the sink {name}",
            tried=("traction sinks test",),
            times=1,
            look_at="Nowhere: this is a test.",
            markdown=f"# Test of the sink {name}\n\n{said}\n",
        ),
    )


def _over(first: Notification) -> Notification:
    """Give what resolves the incident of a sample."""
    return msgspec.structs.replace(
        first, notification_id=uuid.uuid4().hex, kind="recovered", resolves=True, issued_at=datetime.now(UTC)
    )


async def _send(settings: AnySettings, where: str, sent: list[Notification]) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = []
    async with make(settings, where) as sink:
        for each in sent:
            try:
                result = await sink.send(each)
            except Undelivered as problem:
                told.append({"ok": False, "told": str(problem), "status": problem.status, "shown": problem.shown})
                break
            told.append({"ok": True, "outcome": result.outcome, "told": result.told})
    return told


def _read(config: Config | None, file: Path | None) -> tuple[AnySettings, ...]:
    if file is None:
        raise click.UsageError("no policy is named; give --policy FILE.toml, or set TRACTION_POLICY")
    try:
        base = limits_from((config or Config()).layers)
        return read_sinks(with_policy(base, file).sinks, str(file))
    except (InvalidLimits, InvalidSinks) as problem:
        raise click.UsageError(str(problem)) from problem


def _type(settings: AnySettings) -> str:
    return str(settings.__struct_config__.tag)


def _print(value: dict[str, Any]) -> None:
    click.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())
