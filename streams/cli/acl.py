"""`traction acl`: shows, creates and compares who may do what on the brokers.

Only words and options here; `streams.access` does it.
"""

from __future__ import annotations

import asyncio
import functools
import shlex
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeVar

import click
import orjson
from aiokafka.errors import KafkaError

from streams.access import brokers
from streams.access.brokers import NoRules
from streams.access.compared import Difference, compare
from streams.access.roles import (
    DEFAULT_LOGS_TOPIC,
    DEFAULT_ORCHESTRATOR_GROUP,
    DEFAULT_SPANS_TOPIC,
    Names,
    roles,
    rules,
)
from streams.cli.layout import layout_option, with_layout
from streams.cli.options import kafka_options, log_options
from streams.kafka import KafkaUnavailable, admin, running, unavailable
from streams.layout import principal_problem
from streams.topics import DEFAULT_APP_ID, default_group
from streams.topics import bridge_group as default_bridge_group

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping
    from pathlib import Path

    from streams.access.rules import Rule
    from streams.cli.options import Command
    from streams.kafka import KafkaSettings

T = TypeVar("T")

EXIT_NO_RULES = 3

Principals = dict[str, tuple[str, ...]]


class Held(click.ParamType):
    """A role, and a principal that has it: ROLE=TYPE:NAME."""

    name = "role and principal"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Check a value; whether brokers know the principal they alone can tell."""
        if isinstance(value, tuple):
            return value
        role, _, principal = str(value).partition("=")
        problem = principal_problem(role, principal)
        if problem:
            self.fail(problem, param, ctx)
        return role, principal


class Name(click.ParamType):
    """What a group is called, and after it topics and transactional ids; or a topic."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check a value."""
        name = str(value)
        if not name or "*" in name or not name.isprintable():  # brokers take * for everything that there is
            self.fail(f"{name!r} is no name: give it whole, without *", param, ctx)
        return name


def acl_options(command: Command) -> Command:
    """Give a command the principals and names, as its arguments `principals` and `names`."""

    @layout_option
    @click.option(
        "--principal",
        "held",
        multiple=True,
        type=Held(),
        metavar="ROLE=User:NAME",
        help=f"Who has which role, besides what the layout says; several times. Roles: {', '.join(roles())}.",
    )
    @click.option("--app-id", type=Name(), default=DEFAULT_APP_ID, help="The workers' application id.")
    @click.option("--group", type=Name(), help="Group of traction escalate.  [default: APP_ID-escalation]")
    @click.option(
        "--orchestrator-group",
        type=Name(),
        default=DEFAULT_ORCHESTRATOR_GROUP,
        help="Consumer group of orchestrators.",
    )
    @click.option("--bridge-group", type=Name(), help="Group of traction bridge.  [default: APP_ID-bridge]")
    @click.option("--spans-topic", type=Name(), default=DEFAULT_SPANS_TOPIC, help="The collector's topic of traces.")
    @click.option("--logs-topic", type=Name(), default=DEFAULT_LOGS_TOPIC, help="The collector's topic of log records.")
    @click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
    @kafka_options
    @log_options
    @functools.wraps(command)
    def with_acl(
        *,
        held: tuple[tuple[str, str], ...],
        layout_file: Path | None,
        app_id: str,
        group: str | None,
        orchestrator_group: str,
        bridge_group: str | None,
        spans_topic: str,
        logs_topic: str,
        kafka: KafkaSettings,
        **others: Any,
    ) -> Any:
        principals: Principals = dict(with_layout(layout_file).principals)
        for role, principal in held:
            principals[role] = (*principals.get(role, ()), principal)
        names = Names(
            kafka.prefix,
            app_id,
            group or default_group(app_id),
            orchestrator_group,
            bridge_group or default_bridge_group(app_id),
            spans_topic,
            logs_topic,
        )
        return command(kafka=kafka, principals=principals, names=names, **others)

    return with_acl


@click.group(
    epilog="""\b
Exit codes:
  0  all is well
  1  the brokers' rules are not what is needed, or Kafka cannot be used
  2  wrong use
  3  the brokers check no rights: there is nothing to compare, and no right can be missing
""",
)
def acl() -> None:
    """See, create and compare who may do what on the brokers (ACLs).

    Each role has the rights that it needs and no more: agents' harness cannot write alerts, workers cannot write what
    agents did, sinks can only read notifications. Creating and comparing rules needs the right to alter and describe
    the cluster.
    """


@acl.command(
    epilog="""\b
Examples:
  traction acl show                                     all roles, each held by a user of its name
  traction acl show --principal worker=User:tw-1 --principal worker=User:tw-2
  traction acl show --kafka-acls --bootstrap kafka:9093 > rules.sh
""",
)
@click.option("--kafka-acls", is_flag=True, help="Print them as commands of Kafka's own kafka-acls.sh.")
@acl_options
def show(*, kafka: KafkaSettings, principals: Principals, names: Names, as_json: bool, kafka_acls: bool) -> None:
    """Print the rules, without asking brokers for anything."""
    wanted = rules(principals or {role: (f"User:{role}",) for role in roles()}, names)
    if as_json:
        _print({"ok": True, "rules": [_builtins(rule) for rule in wanted]})
    elif kafka_acls:
        for line in _commands(kafka.bootstrap, wanted):
            click.echo(line)
    else:
        for rule in wanted:
            click.echo(str(rule))


@acl.command(
    epilog="""\b
Examples:
  traction acl apply --dry-run --principal worker=User:traction-worker
  traction acl apply --layout deploy/kafka.toml
  traction acl apply --principal escalation=User:traction-e --principal sinks=User:traction-e
""",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be created.")
@acl_options
def apply(*, kafka: KafkaSettings, principals: Principals, names: Names, as_json: bool, dry_run: bool) -> None:
    """Create the rules that are missing on the brokers; what is there already stays as it is."""
    wanted = rules(_some(principals), names)

    async def work() -> list[Rule]:
        async with running(admin(kafka), kafka) as client:
            missing = compare(wanted, await brokers.there(client), names).missing
            if not dry_run:
                await brokers.create(client, missing)
            return missing

    created = _run(kafka, work, as_json=as_json)
    if as_json:
        _print({"ok": True, "dry_run": dry_run, "created": [_builtins(rule) for rule in created]})
        return
    for rule in created:
        click.echo(f"{'would create' if dry_run else 'created'}: {rule}")
    click.echo(f"{len(wanted) - len(created)} of {len(wanted)} rules were there")


@acl.command(
    epilog="""\b
Examples:
  traction acl diff --layout deploy/kafka.toml
  traction acl diff --principal worker=User:traction-worker --principal harness=User:agents --json
""",
)
@acl_options
def diff(*, kafka: KafkaSettings, principals: Principals, names: Names, as_json: bool) -> int:
    """Tell what is missing on the brokers, and what our principals may do beyond their roles.

    Also names others who may change what is ours; that is not counted as wrong, since they may have to. Super users of
    the brokers are in no rule, and not seen here.
    """
    wanted = rules(_some(principals), names)

    async def work() -> Difference:
        async with running(admin(kafka), kafka) as client:
            return compare(wanted, await brokers.there(client), names)

    found = _run(kafka, work, as_json=as_json)
    parts = {"missing": found.missing, "denied": found.denied, "more": found.more, "others": found.others}
    if as_json:
        listed = {name: [_builtins(rule) for rule in part] for name, part in parts.items()}
        _print({"ok": not found.any, **listed})
        return int(found.any)
    words = {
        "missing": "missing",
        "denied": "denied, although it is needed",
        "more": "more than is needed",
        "others": "somebody else",
    }
    for name, part in parts.items():
        for rule in part:
            click.echo(f"{words[name]}: {rule}", err=name != "others")
    if found.any:
        click.echo("traction acl apply creates what is missing; what is too much remove with kafka-acls.sh", err=True)
    else:
        click.echo(f"all {len(wanted)} rules are there, and nothing beyond them")
    return int(found.any)


def _some(principals: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
    if not principals:
        raise click.UsageError(
            "nobody is named: say who has which role by --layout FILE.toml, or --principal worker=User:NAME"
        )
    return principals


def _run(kafka: KafkaSettings, work: Callable[[], Coroutine[Any, Any, T]], *, as_json: bool) -> T:
    code = 1
    try:
        return asyncio.run(work())
    except NoRules as problem:
        said, code = str(problem), EXIT_NO_RULES
    except KafkaUnavailable as problem:
        said = str(problem)
    except (KafkaError, TimeoutError) as problem:
        said = str(unavailable(kafka, problem))
    if as_json:
        _print({"ok": False, "problems": [said]})
    else:
        click.echo(f"Error: {said}", err=True)
    raise click.exceptions.Exit(code)


def _commands(bootstrap: str, wanted: Iterable[Rule]) -> Iterable[str]:
    """Give the rules as commands of Kafka's own tool, one for each principal and name."""
    for (principal, kind, name, pattern), group in groupby(
        wanted, key=lambda rule: (rule.principal, rule.kind, rule.name, rule.pattern)
    ):
        words = ["kafka-acls.sh", "--bootstrap-server", bootstrap, "--command-config", "admin.properties", "--add"]
        words += ["--allow-principal", principal]
        words += [word for rule in group for word in ("--operation", rule.operation.word)]
        words += [f"--{kind.name.lower().replace('_', '-')}", name]
        words += ["--resource-pattern-type", pattern.name.lower()]
        yield shlex.join(words)


def _builtins(rule: Rule) -> dict[str, Any]:
    return {
        "principal": rule.principal,
        "host": rule.host,
        "permission": "deny" if rule.deny else "allow",
        "operation": rule.operation.word,
        "resource": rule.kind.name.lower().replace("_", "-"),
        "name": rule.name,
        "pattern": rule.pattern.name.lower(),
    }


def _print(value: dict[str, Any]) -> None:
    click.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())
