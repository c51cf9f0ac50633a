# ruff: noqa: INP001 - run as a file, no part of a package
"""Fills the generated parts of the pages from the code: limits, commands, topics, metrics, variables, a replay.

`python docs/generate.py` writes them, `--check` tells whether the committed ones are what the code says. A part stands
between two comments that name it; what stands outside of them is written by hand and never touched.
"""

from __future__ import annotations

import argparse
import functools
import inspect
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click
import msgspec
from click.testing import CliRunner

from detectors import Limits
from detectors.features import FEATURES
from detectors.use import KINDS
from detectors.weights import DEFAULT_MODEL
from docs.limit_tables import detectors, ladder, limits, meanings, table, task_detectors
from docs.role_tables import role_table
from docs.sink_tables import common_keys, http_keys, type_keys
from docs.skew_tables import skew
from schemas.invalid import InvalidEvent, Reason
from schemas.topics import TOPICS
from streams.cli import COMMANDS, traction
from streams.cli.broker import default_data
from streams.cli.fixes import default_store
from streams.cli.secrets import SECRETS
from streams.cli.sections import SharedOption
from streams.config import flag
from streams.kafka import KafkaSettings
from streams.kafka_broker.jars import default_cache
from streams.metric_list import listed
from streams.sinks.settings import TYPES as SINK_TYPES
from streams.topics import (
    DEFAULT_APP_ID,
    DEFAULT_PARTITIONS,
    MS_PER_HOUR,
    SESSIONS_TABLE,
    TASK_EVENTS,
    TASKS_TABLE,
    changelog_name,
    default_group,
    ladders_name,
    plan,
    task_events_name,
)
from tests.detectors import evasion_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from streams.topics import Plan

ROOT = Path(__file__).resolve().parent.parent
COMMAND = "python docs/generate.py"
HOURS_PER_DAY = 24

DIRECTORIES = {
    str(default_data()): "`traction/broker` in the user's data directory",
    str(default_cache()): "`traction/kafka` in the user's cache directory",
    str(default_store()): "`traction/fixes.sqlite3` in the user's state directory",
}
"""Defaults that differ from machine to machine."""

_WRAPPED = re.compile(r"(?<!\n)\n(?!\n)")
_NOTES = re.compile(r"\s*\[(default|env): ([^\]]*)\]")


def features() -> str:
    """Write every feature of the spin score with its weight and its typical value in healthy sessions."""
    rows = []
    for feature in FEATURES:
        weight, typical = DEFAULT_MODEL.source.features[feature.name]
        rows.append((f"`{feature.name}`", feature.about, f"{weight:+.2f}" if weight else "0", f"{typical:.2f}"))
    return table(("feature", "what it is", "weight", "typical"), rows)


def learned() -> str:
    """Write the limits that were learned with the weights, and what they were learned from."""
    source, of = DEFAULT_MODEL.source, DEFAULT_MODEL.source.trained
    rows = [(f"`{name}`", f"{getattr(source, name):g}") for name in ("weak_needs", "notice", "warn")]
    rows += [
        ("learned from", f"{of.sessions} sessions, {of.loops} of them loops, {of.calls:,} calls, {of.sources} sources")
    ]
    rows += [("of sources left out: AUC of the calls, of the sessions", f"{of.call_auc}, {of.session_auc}")]
    rows += [("loops among these that reach `warn`", f"{of.found} of {of.loops}")]
    return table(("", ""), rows)


def tools() -> str:
    """Write which tools, words of tools' names and commands are of which kind by default."""
    catalogue = Limits().tools
    rows = []
    for kind in KINDS:
        of = [
            _codes(sorted(name for name, its in known.items() if its == kind))
            for known in (catalogue.names, catalogue.words, catalogue.commands)
        ]
        rows.append((f"`{kind}`", *(names or "-" for names in of)))
    return table(("kind", "tools", "words in names of other tools", "commands"), rows)


def arguments() -> str:
    """Write the other settings of the catalogue that are lists."""
    catalogue = Limits().tools
    rows = []
    for field in msgspec.structs.fields(catalogue):
        value = getattr(catalogue, field.name)
        if isinstance(value, tuple):
            rows.append((f"`tools.{field.name}`", _codes(value)))
        elif field.name == "labels":
            rows += [(f"`tools.labels.{tool}`", _codes(names)) for tool, names in value.items()]
    return table(("setting", "default"), rows)


def _codes(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def commands() -> str:
    """Write every command: usage, what it does, its options, and what its help says below them."""
    context = click.Context(traction, info_name="traction")
    parts = []
    for name in COMMANDS:
        command = _named(name)
        parts += list(_command(command, click.Context(command, context, info_name=name, show_default=True)))
    return "\n\n".join(parts)


def _named(name: str) -> click.Command:
    command = traction.get_command(click.Context(traction), name)
    if command is None:
        raise KeyError(name)
    return command


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    yield f"## {context.command_path}"
    yield f"`{' '.join([context.command_path, *command.collect_usage_pieces(context)])}`"
    yield _WRAPPED.sub(" ", inspect.cleandoc(command.help or ""))
    own = [option for option in _options(command) if not isinstance(option, SharedOption)]
    if own:
        head = ("option", "setting", "default", "meaning")
        yield table(head, [_option(option, context) for option in own])
    common = [option for option in _options(command) if isinstance(option, SharedOption)]
    if common:
        yield f"And, [as for other commands](#shared-options): {_codes(option.opts[0] for option in common)}."
    if command.epilog:
        shown = command.epilog.replace("\b\n", "").strip()
        yield f"```text\n{shown}\n```"
    if isinstance(command, click.Group):
        for name, subcommand in command.commands.items():
            yield from _command(subcommand, click.Context(subcommand, context, info_name=name, show_default=True))


def shared_options() -> str:
    """Write the options that several commands have."""
    context = click.Context(traction, show_default=True)
    rows = {option.name: _option(option, context) for option, _ in _shared()}
    return table(("option", "setting", "default", "meaning"), rows.values())


def _shared() -> Iterator[tuple[SharedOption, str]]:
    """Give each shared option of each command, with the command's name."""
    for name in COMMANDS:
        command = _named(name)
        for leaf in command.commands.values() if isinstance(command, click.Group) else (command,):
            for option in _options(leaf):
                if isinstance(option, SharedOption):
                    yield option, name


def _options(command: click.Command) -> list[click.Option]:
    return [option for option in command.params if isinstance(option, click.Option)]


def _option(option: click.Option, context: click.Context) -> tuple[str, ...]:
    extra = option.get_help_extra(context)
    notes = dict(_NOTES.findall(option.help or ""))
    default = notes.get("default") or extra.get("default", "")
    default = DIRECTORIES.get(default) or (f"`{default}`" if default and " " not in default else default)
    metavar = "" if option.is_flag else f" {option.make_metavar(context).removesuffix(' RANGE')}"
    allowed = f" May be {extra['range']}." if "range" in extra else ""
    text = _NOTES.sub("", option.help or "")
    return f"`{', '.join(option.opts)}{metavar}`", f"`{flag(option)}`", default, f"{text}{allowed}"


def variables() -> str:
    """Write the variables of the environment that mean the same to several commands."""
    rows = {"TRACTION_CONFIG": ("`--config`", "Settings file.")}
    readers = {"TRACTION_CONFIG": list(COMMANDS)}
    for option, command in _shared():
        variable = f"TRACTION_{flag(option).upper()}"
        rows[variable] = f"`{option.opts[0]}`", _NOTES.sub("", option.help or "")
        if command not in readers.setdefault(variable, []):
            readers[variable].append(command)
    for variable, (text, file) in SECRETS.items():
        rows[variable], readers[variable] = ("", text), readers[f"TRACTION_{file.upper()}"]
    head = ("variable", "option", "meaning", "read by")
    return table(head, [(f"`{name}`", *rows[name], ", ".join(readers[name])) for name in sorted(rows)])


def topics() -> str:
    """Write the topics as `traction topics create` makes them."""
    settings = KafkaSettings()
    plans = {each.name: each for each in plan(settings, partitions=DEFAULT_PARTITIONS)}
    rows: list[tuple[str, ...]] = []
    for topic in TOPICS:
        made = plans.pop(settings.topic(topic))
        way = "read" if topic.direction == "in" else "written"
        rows.append((f"`{made.name}`", way, topic.key, *_shape(made), topic.description))
    own = {
        task_events_name(DEFAULT_APP_ID): (TASK_EVENTS.key, TASK_EVENTS.description),
        changelog_name(DEFAULT_APP_ID, SESSIONS_TABLE): ("session_id", "The state of the sessions."),
        changelog_name(DEFAULT_APP_ID, TASKS_TABLE): ("task_id", "The state of the tasks."),
        ladders_name(default_group(DEFAULT_APP_ID)): ("task_id", "What was done about each task."),
    }
    for made in plans.values():
        key, text = own[made.name]
        rows.append((f"`{made.name}`", "both", key, *_shape(made), text))
    return table(("topic", "by us", "key", "partitions", "cleanup", "kept", "what it carries"), rows)


def _shape(made: Plan) -> tuple[str, str, str]:
    kept = "the latest of each key"
    if "retention.ms" in made.config:
        kept = f"{int(made.config['retention.ms']) // MS_PER_HOUR // HOURS_PER_DAY} days"
    return f"{made.partitions}{' =' if made.same_partitions else ''}", made.config["cleanup.policy"], kept


def reasons() -> str:
    """Write the reasons for which records become dead letters."""
    of = meanings("reasons", get_args(Reason))
    rows = [(f"`{reason}`", InvalidEvent(reason, "", "").stage, of[reason]) for reason in get_args(Reason)]
    return table(("reason", "stage", "what is wrong"), rows)


def metrics() -> str:
    """Write all metrics of all processes."""
    rows = [
        (f"`{one.name}`", one.type, _codes(one.labels), one.unit, ", ".join(one.pages), one.help) for one in listed()
    ]
    return table(("metric", "type", "labels", "unit", "on the page of", "meaning"), rows)


def replay() -> str:
    """Write what a replay of the demo's sessions says."""
    before = Path.cwd()
    os.chdir(ROOT)
    try:
        result = CliRunner().invoke(traction, ["replay", "streams/demo/sessions"], prog_name="traction")
    finally:
        os.chdir(before)
    if result.exit_code:
        raise RuntimeError(result.output)
    return f"```text\n{result.output.rstrip()}\n```"


PARTS: dict[str, dict[str, Callable[[], str]]] = {
    "README.md": {"replay": replay},
    "SECURITY.md": {
        "evasions": evasion_table.summary,
        "evasions of calls": evasion_table.calls_table,
        "evasions of attempts": evasion_table.attempts_table,
    },
    "docs/commands.md": {"commands": commands, "shared options": shared_options},
    "docs/detectors.md": {"detectors": detectors, "limits": limits},
    "docs/tasks.md": {"task detectors": task_detectors},
    "docs/policy.md": {"ladder": ladder},
    "docs/sinks.md": {
        "common keys": common_keys,
        "HTTP keys": http_keys,
        **{f"{name} keys": functools.partial(type_keys, name) for name in SINK_TYPES},
    },
    "docs/spin-score.md": {"features": features, "learned": learned},
    "docs/tools.md": {"tools": tools, "arguments": arguments},
    "docs/security.md": {"roles": role_table},
    "docs/sizing.md": {"skew": skew},
    "docs/operating.md": {"topics": topics, "reasons": reasons, "metrics": metrics, "variables": variables},
}
"""For each page its generated parts by name."""


def filled(page: str, text: str) -> str:
    """Give a page's text with its generated parts as the code says.

    Raises:
        ValueError: a part has no place in the text.
    """
    for name, part in PARTS[page].items():
        begin, end = f"<!-- generated: {name}, by {COMMAND} -->", f"<!-- end of {name} -->"
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not (found and closed):
            raise ValueError(f"{page}: there is no place for {name}; write the lines\n{begin}\n{end}")
        text = f"{before}{begin}\n\n{part()}\n\n{end}{after}"
    return text


def differences(root: Path = ROOT) -> list[str]:
    """List the pages whose generated parts are not what the code says.

    Args:
        root: where the pages are.
    """
    return [page for page in PARTS if filled(page, text := (root / page).read_text("utf-8")) != text]


def main() -> None:
    """Write the pages, or check them and exit with 1 when one differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 when a page differs")
    if parser.parse_args().check:
        stale = differences()
        if stale:
            sys.exit(f"not what the code says: {', '.join(stale)}; run: {COMMAND}")
        return
    for page in PARTS:
        path = ROOT / page
        path.write_text(filled(page, path.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
