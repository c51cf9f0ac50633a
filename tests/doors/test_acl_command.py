"""`traction acl` on brokers that check rights, and on some that do not."""

from __future__ import annotations

import asyncio
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streams.access import brokers
from streams.access.rules import Kind, Operation, Pattern, Rule
from streams.cli.acl import EXIT_NO_RULES
from streams.kafka import admin, running
from tests.doors.kit import acl, command, held

if TYPE_CHECKING:
    from tests.doors.conftest import Doors

APP = "command"
TWO = ("--principal", "worker=User:w-command", "--principal", "harness=User:h-command")


def create(doors: Doors, *rules: Rule) -> None:
    """Create rules as an administrator."""

    async def work() -> None:
        async with running(admin(doors.settings()), doors.settings()) as client:
            await brokers.create(client, rules)

    asyncio.run(work())


def said(rules: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Give what matters of rules."""
    return [(rule["principal"], rule["operation"], rule["name"]) for rule in rules]


def test_what_is_missing_is_created_once(doors: Doors, tmp_path: Path) -> None:
    """A dry run creates nothing; then all is created; then nothing is missing, and nothing is too much."""
    root = doors.settings()
    before = acl(root, tmp_path, APP, "diff", *TWO, code=1)
    dry = acl(root, tmp_path, APP, "apply", "--dry-run", *TWO)
    assert dry["dry_run"]
    assert dry["created"] == before["missing"] != []
    assert acl(root, tmp_path, APP, "diff", *TWO, code=1)["missing"] == before["missing"]
    assert acl(root, tmp_path, APP, "apply", *TWO)["created"] == before["missing"]
    assert acl(root, tmp_path, APP, "apply", *TWO)["created"] == []
    assert acl(root, tmp_path, APP, "diff", *TWO) == {
        "ok": True,
        "missing": [],
        "denied": [],
        "more": [],
        "others": [],
    }


def test_what_is_too_much_denied_or_somebody_elses_is_told(doors: Doors, tmp_path: Path) -> None:
    """Agents that may write alerts, a right that is denied, everybody who may read, and a stranger who may write."""
    app, root = "much", doors.settings()
    acl(root, tmp_path, app, "apply", *TWO)
    create(
        doors,
        Rule("User:h-command", Kind.TOPIC, "much.alerts", Pattern.LITERAL, Operation.WRITE),
        Rule("User:w-command", Kind.TOPIC, "much.", Pattern.PREFIXED, Operation.READ),
        Rule("User:w-command", Kind.TOPIC, "much.control", Pattern.LITERAL, Operation.READ, deny=True),
        Rule("User:stranger", Kind.TOPIC, "much.control", Pattern.LITERAL, Operation.WRITE),
        Rule("User:stranger", Kind.TOPIC, "much.alerts", Pattern.LITERAL, Operation.READ),
        Rule("User:stranger", Kind.TOPIC, "something.else", Pattern.LITERAL, Operation.WRITE),
    )
    found = acl(root, tmp_path, app, "diff", *TWO, code=1)
    assert found["missing"] == []
    assert said(found["more"]) == [("User:h-command", "Write", "much.alerts"), ("User:w-command", "Read", "much.")]
    assert said(found["denied"]) == [("User:w-command", "Read", "much.control")]
    assert said(found["others"]) == [("User:stranger", "Write", "much.control")]


def test_who_may_not_see_or_alter_rules_is_told_so(doors: Doors, tmp_path: Path) -> None:
    """Exit code 1, with who lacks what."""
    for name in ("apply", "diff"):
        found = acl(doors.settings("worker"), tmp_path, APP, name, *TWO, code=1)
        assert found["ok"] is False
        assert "worker has no right to administer the cluster" in found["problems"][0]


def test_brokers_that_check_no_rights_are_told(bootstrap: str) -> None:
    """Everybody may do everything there: a code of its own, what to set, and nothing seems to be well."""
    for name in ("apply", "diff"):
        done = command("acl", name, "--bootstrap", bootstrap, *TWO)
        assert done.code == EXIT_NO_RULES
        assert "check no rights" in done.output
        assert "authorizer.class.name" in done.output
    found = command("acl", "diff", "--bootstrap", bootstrap, "--json", *TWO)
    assert (found.code, json.loads(found.output)["ok"]) == (EXIT_NO_RULES, False)


def test_rules_are_shown_without_brokers() -> None:
    """As sentences, as JSON, and as commands of Kafka's own tool; all say the same."""
    names = ("--bootstrap", "127.0.0.1:1", "--prefix", "p.", "--app-id", "a", "--group", "g", *held())
    shown = command("acl", "show", *names).output.splitlines()
    rules = json.loads(command("acl", "show", "--json", *names).output)["rules"]
    commands = command("acl", "show", "--kafka-acls", *names).output.splitlines()
    assert len(shown) == len(rules) == sum(line.count("--operation ") for line in commands)
    assert "User:worker may Write the topic p.alerts" in shown
    assert "User:escalate may Read the group everything beginning with g-sink-" in shown
    assert (
        "kafka-acls.sh --bootstrap-server 127.0.0.1:1 --command-config admin.properties --add --allow-principal "
        "User:worker --operation Write --transactional-id a-0 --resource-pattern-type prefixed"
    ) in commands
    subject = 'User:CN=it\'s "one", O=A $B; C'
    (first, *_) = command("acl", "show", "--kafka-acls", "--principal", f"worker={subject}").output.splitlines()
    assert shlex.split(first)[7] == subject


def test_wrong_use_is_told() -> None:
    """A role that is none, a principal that is none or everybody, and nobody at all."""
    for words, said_of in (
        (["show", "--principal", "boss=User:b"], "no role 'boss'"),
        (["show", "--principal", "worker=b"], "worker=User:worker"),
        (["show", "--principal", "worker=User:*"], "no one's principal"),
        (["show", "--app-id", "*"], "give it whole"),
        (["show", "--orchestrator-group", "*"], "give it whole"),
        (["show", "--group", ""], "give it whole"),
        (["diff", "--bootstrap", "127.0.0.1:1"], "--principal worker=User:NAME"),
    ):
        done = command("acl", *words)
        assert done.code == 2
        assert said_of in done.output


def test_principals_are_in_the_layout(tmp_path: Path) -> None:
    """As in the one that is given to begin with, and with further ones; what is wrong in one is told with its name."""
    example = Path(__file__).parents[2] / "deploy" / "kafka.toml"
    more = ("--principal", "worker=User:one-more")
    shown = json.loads(command("acl", "show", "--json", "--layout", str(example), *more).output)["rules"]
    assert {"User:traction-worker", "User:orchestrator", "User:one-more"} < {rule["principal"] for rule in shown}
    wrong = tmp_path / "wrong.toml"
    for text, said_of in (
        ('boss = ["User:b"]', "no role 'boss'"),
        ('worker = "User:w"', "a line for each role"),
        ("worker = [", "cannot be used"),
        ('worker = ["w"]', "worker=User:worker"),
    ):
        wrong.write_text(f"[principals]\n{text}\n")
        done = command("acl", "show", "--layout", str(wrong))
        assert done.code == 2
        assert str(wrong) in done.output
        assert said_of in done.output
