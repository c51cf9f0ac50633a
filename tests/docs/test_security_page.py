"""The page about closed doors: its settings are accepted, its messages are ours, its example names every role."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING

import click

from streams.access.roles import roles
from streams.cli import COMMANDS, traction
from streams.config import load
from tests.cluster import Security

if TYPE_CHECKING:
    from pathlib import Path

    from tests.docs.conftest import Find


def test_the_settings_are_accepted(block: Find, tmp_path: Path) -> None:
    """Every key is an option that every command with brokers has."""
    text = block("security-settings").text
    for name in ("kafka-password", "ca.pem"):
        (tmp_path / name).write_text("x")
        text = re.sub(rf'"[^"]*/{re.escape(name)}"', f'"{tmp_path / name}"', text)
    file = tmp_path / "traction.toml"
    file.write_text(text)
    config, shown = load(file, COMMANDS), set(tomllib.loads(text)["traction"])
    for name in ("worker", "escalate", "fitness"):
        command = traction.get_command(click.Context(traction), name)
        assert command
        assert set(config.defaults(name, command)) >= shown


def test_the_brokers_settings_are_those_of_the_tests(block: Find) -> None:
    """The authorizer that is named is the one that the roles are tried on."""
    shown = dict(line.split("=", 1) for line in block("security-brokers").text.splitlines())
    tried = Security(authorizer=True).properties()
    assert shown["authorizer.class.name"] == tried["authorizer.class.name"]
    assert shown["super.users"] in tried["super.users"]
    assert shown["allow.everyone.if.no.acl.found"] == "false"


def test_the_messages_are_ours(pages: dict[str, str], root: Path) -> None:
    """What is looked up in the table is what is said."""
    part = pages["docs/security.md"].partition("| message |")[2]
    told = [
        words for line in part.splitlines() for words in re.findall(r"`([^`]+)`", line.split(" | ")[0]) if "|" in line
    ]
    assert len(told) > 10
    files = ("refused.py", "tokens.py", "token_server.py", "access/rights.py")
    code = "".join((root / "streams" / name).read_text("utf-8") for name in files)
    for words in told:
        for piece in words.split(" ... "):
            assert piece in code, piece


def test_the_example_names_every_role(root: Path) -> None:
    """And none that is none."""
    example = tomllib.loads((root / "deploy" / "kafka.toml").read_text("utf-8"))["principals"]
    assert set(example) == set(roles())
