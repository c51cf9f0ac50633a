"""`traction policy`: checks a policy file, and explains what it says for a session. Only words and options here."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from detectors import InvalidLimits, Limits, UnsupportedState, limits_from
from schemas.common import Agent, Task
from streams.cli.facts import facts_options
from streams.cli.looking import Id, json_option, reading_options, run, table
from streams.cli.options import policy_option, with_policy
from streams.cli.output import json_text
from streams.config import Config
from streams.policy.conditions import Facts, facts_of
from streams.policy.explaining import Row, ladder_rows, limit_rows
from streams.policy.load import InvalidPolicy, UnreadablePolicy, read_policy
from streams.policy.lookup import Known, look_up
from streams.sinks.errors import InvalidSinks, MissingSecret
from streams.sinks.run import make
from streams.sinks.settings import read_sinks
from streams.timeline import counted, plain
from streams.topics import DEFAULT_APP_ID
from streams.worker.records import UnsupportedRecord

if TYPE_CHECKING:
    from streams.kafka import KafkaSettings
    from streams.policy.policy import Policy

EXIT_UNREADABLE = 1
EXIT_INVALID = 3

MOST_VALUE = 80
"""Characters of a value in a table; whole values are in the JSON."""


@click.group(
    epilog="""\b
Examples:
  traction policy check policy.toml
  traction policy explain --policy policy.toml --repo acme/docs --role code
  traction policy explain --policy policy.toml --session 4f1c

\b
Exit codes:
  0  the policy can be used; told
  1  it cannot be read; of explain: nothing is known of the session, or Kafka cannot be used
  2  wrong use
  3  of check: the policy has faults

docs/policy.md says what stands in a policy.
""",
)
def policy() -> None:
    """Check a policy file, and see what it says for a session."""


@policy.command(
    epilog="""\b
Examples:
  traction policy check policy.toml
  traction policy check --json policy.toml
  traction --config traction.toml policy check policy.toml     over the limits of the settings file

\b
Secrets of sinks that are in this environment, or in files that are here, are checked as traction escalate does at
its start; those that are not here are named, and are no fault.

\b
Exit codes: 0 it can be used; 1 it cannot be read; 2 wrong use; 3 it has faults, all of which are told
""",
)
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def check(config: Config | None, *, file: Path, as_json: bool) -> int:
    """Check a policy file completely, as for a merge: no broker is asked.

    Each fault is told with its key and what to do about it.
    """
    problems: list[str] = []
    unchecked: list[str] = []
    code, found = 0, None
    try:
        found = read_policy(file, _base(config))
        problems, unchecked = _secrets(found, file)
        code = EXIT_INVALID if problems else 0
    except UnreadablePolicy as problem:
        code, problems = EXIT_UNREADABLE, [str(problem)]
    except InvalidPolicy as problem:
        code, problems = EXIT_INVALID, [f"{file}: {told}" for told in problem.problems]
    if as_json:
        whole: dict[str, Any] = {"ok": not code, "file": str(file), "problems": problems, "unchecked": unchecked}
        if found is not None:
            whole |= {"rules": [rule.name for rule in found.rules], "sinks": sorted(found.sinks)}
        click.echo(json_text(whole, indent=2))
        return code
    for told in problems:
        click.echo(f"error: {plain(told)}", err=True)
    for told in unchecked:
        click.echo(f"not checked: {plain(told)}")
    if found is not None and not code:
        holds = f"{counted(len(found.rules), 'rule')}, {counted(len(found.sinks), 'sink')}"
        click.echo(f"{plain(str(file))} can be used: {holds}")
    return code


def _secrets(policy: Policy, file: Path) -> tuple[list[str], list[str]]:
    """Make the sinks as `traction escalate` does, and give what is wrong with secrets, and which are not here."""
    problems, unchecked = [], []
    for each in read_sinks(policy.sinks, str(file)):
        try:
            make(each, str(file))
        except MissingSecret as problem:
            unchecked.append(str(problem))
        except InvalidSinks as problem:
            problems.append(str(problem))
    return problems, unchecked


def _base(config: Config | None) -> Limits:
    try:
        return limits_from((config or Config()).layers)
    except InvalidLimits as problem:  # told when the settings file is read
        raise click.UsageError(str(problem)) from problem


@policy.command(
    epilog="""\b
Examples:
  traction policy explain --policy policy.toml --session 4f1c
  traction policy explain --policy policy.toml --repo acme/shop --path src/auth/login.py
  traction policy explain --policy policy.toml --all --json

\b
With --session the workers' topic says of which repository, role and task the session is, and overrides that
are in force now are told, too. Without it no broker is asked, and what is not said matches no rule.

\b
Exit codes: 0 told; 1 nothing is known of the session, or Kafka cannot be used; 2 wrong use, or a policy
            with faults
""",
)
@policy_option
@click.option("--session", "session_id", type=Id(), metavar="ID", help="Tell what holds for this session now.")
@facts_options
@click.option("--all", "everything", is_flag=True, help="Show what nobody set, too.")
@click.option("--app-id", default=DEFAULT_APP_ID, help="The workers' application id, for --session.")
@json_option
@reading_options
@click.pass_obj
def explain(
    config: Config | None,
    *,
    policy_file: Path | None,
    session_id: str | None,
    facts: Facts,
    everything: bool,
    app_id: str,
    as_json: bool,
    timeout: float,
    kafka: KafkaSettings,
) -> None:
    """Say which layer set which limit, and which key of the ladder.

    Shows what is not as by default: the value, and the settings file, the policy, the rule or the override that set it.
    """
    found = with_policy(_base(config), policy_file)
    agent: Agent | None
    task: Task | None
    if session_id is None:
        agent, task = Agent(role=facts.role), Task(repo=facts.repo, type=facts.task_type, paths=facts.paths)
        limits, muted = found.limits(agent, task), False
    elif facts != Facts():
        raise click.UsageError("--session knows repository, role and task; drop --repo, --role, --task-type, --path")
    else:
        known = _look_up(kafka, app_id, session_id, timeout)
        agent, task = known.agent, known.task
        limits, muted = known.limits(found, datetime.now(UTC))
    explained = found.explain(agent, task)
    limit_list = list(limit_rows(limits, everything=everything))
    ladder_list = list(ladder_rows(explained.ladder, explained.ladder_layers, everything=everything))
    told = facts_of(agent, task)
    if as_json:
        whole = {
            "policy": None if policy_file is None else str(policy_file),
            "session_id": session_id,
            **told._asdict(),
            "rules": explained.rules,
            "muted": muted,
            "limits": [row._asdict() for row in limit_list],
            "ladder": [row._asdict() for row in ladder_list],
        }
        click.echo(json_text(whole))
        return
    whom = "" if session_id is None else f"session {plain(session_id)}, "
    click.echo(f"for: {whom}{_whom(told)}")
    click.echo(f"policy: {'none' if policy_file is None else plain(str(policy_file))}")
    click.echo(f"rules that hold: {', '.join(map(plain, explained.rules)) or 'none'}")
    if muted:
        click.echo("muted: alerts are recorded, and nothing is asked of anyone")
    for name, rows in (("limit", limit_list), ("ladder", ladder_list)):
        click.echo()
        if rows:
            table((name, "value", "set by"), [(row.name, _value(row), row.layer) for row in rows])
        else:
            click.echo(f"{name}: everything as by default; --all shows it")


def _look_up(kafka: KafkaSettings, app_id: str, session_id: str, seconds: float) -> Known:
    try:
        known = run(kafka, lambda: look_up(kafka, app_id, session_id, seconds=seconds))
    except (UnsupportedState, UnsupportedRecord) as problem:
        raise click.ClickException(str(problem)) from problem
    if known is None:
        raise click.ClickException(
            f"the workers of {plain(app_id)} have not heard of session {plain(session_id)}: check the id, --app-id and "
            "--prefix; or say for whom with --repo, --role, --task-type and --path"
        )
    return known


def _whom(facts: Facts) -> str:
    said = [
        f"{name} {plain(value)}"
        for name, value in (
            ("repository", facts.repo),
            ("role", facts.role),
            ("kind of task", facts.task_type),
            ("paths", ", ".join(facts.paths)),
        )
        if value
    ]
    return ", ".join(said) or "whoever says nothing of repository, role, task and paths"


def _value(row: Row) -> str:
    if row.name == "notify" and row.value is None:
        return "all sinks"
    return plain(msgspec.json.encode(row.value).decode(), MOST_VALUE)
