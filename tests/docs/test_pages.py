"""What the pages say is there: links, commands, options, limits, topics, metrics, variables and generated parts."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from typing import TYPE_CHECKING, Any

import click
import pytest
from click.testing import CliRunner

from detectors import limits_from
from detectors.catalogue import Tools
from detectors.weights import read_weights
from schemas.decode import decode
from schemas.topics import (
    CONTROL,
    DIRECTIVES,
    FITNESS,
    FIX_ATTEMPTS,
    KNOWN_FLAPPING,
    TERMINATIONS,
    TOOL_CALLS,
    TOPICS,
)
from streams.cli import COMMANDS, traction
from streams.cli.inforce import OF_AGENTS
from streams.config import flag, load
from streams.importers import neutral
from tests.streams.backtest_kit import ALERT, label, line, spinning, write

if TYPE_CHECKING:
    from pathlib import Path

    from tests.docs.conftest import Block, Find

LINK = re.compile(r"(?<!!)\[[^\]]+\]\((?P<target>[^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
GENERATED = re.compile(r"<!-- generated: .*?<!-- end of [^>]*-->", re.DOTALL)

RUN = {
    "day-two-beside", "day-two-forget", "day-two-forget-task", "day-two-plan", "day-two-rebuild",
    "dead-letters", "first-event", "first-event-js", "first-event-kcat", "in-process", "obey", "obey-js",
    "orchestrator", "orchestrator-js", "override", "replay", "start", "tasks",
}  # fmt: skip
"""Blocks that test_examples.py, test_dead_letters_page.py and test_day_two_page.py run."""

SHOWN = {
    "answer": CONTROL, "attempt": FIX_ATTEMPTS, "directive": DIRECTIVES, "fitness": FITNESS,
    "known-flapping": KNOWN_FLAPPING, "termination": TERMINATIONS,
}  # fmt: skip
"""Records shown as JSON, by their block's name, and their topic; those without a name are tool calls."""

CHECKED = {
    *SHOWN, "adapter-emitter", "adapter-langchain", "backtest-neutral", "boundaries", "connect-claude-code",
    "connect-codex", "connect-gemini-cli", "connect-http", "connect-ingest", "connect-observe-all",
    "connect-observed", "connect-otlp", "dashboards",
    "dashboards-drawn", "decide", "deployment-compose", "deployment-image", "deployment-kubernetes",
    "deployment-layout", "deployment-layout-applied", "deployment-overlay", "deployment-production",
    "deployment-systemd", "emitter", "emitter-settings",
    "fixes-config", "fixes-library", "fixes-library-output", "fixes-orchestrator", "fixes-shell",
    "flow", "follow", "formula", "fuzz", "gateway-answer", "gateway-bridge", "guard", "guard-output",
    "gateway-events", "gateway-open", "gateway-otel", "gateway-start", "in-process-output", "labels", "language-go",
    "language-java", "language-javascript", "language-kcat", "language-rust", "locks", "make", "metrics",
    "neutral", "people", "performance", "policy", "policy-backtest", "policy-check", "policy-explain",
    "policy-explain-output", "rekey", "replay-neutral", "replay-neutral-output", "security-acl", "security-brokers",
    "security-certificate", "security-settings", "security-token-file", "security-token-server", "set-up", "settings",
    "settings-explore", "settings-fleet", "settings-shown", "settings-spin-off", "settings-tools", "sinks",
    "sinks-try", "sinks-verify", "state-worker", "tasks-output", "torture", "train", "types-go",
    "types-typescript", "weights",
}  # fmt: skip
"""Blocks that are compared or parsed, here or there."""

ELSEWHERE = {"docs/runbooks.md"}
"""Pages whose every block other tests look at: tests/deploy/test_runbooks.py."""


def slug(heading: str) -> str:
    """Give the anchor of a heading, as code forges make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def leaf(words: list[str]) -> tuple[click.Command, list[str]]:
    """Give the command that words name, and the words after its name."""
    command: click.Command = traction
    rest = list(words)
    while isinstance(command, click.Group):
        # Options of the group itself come before the name of the command.
        while rest[:1] == ["--config"]:
            rest = rest[2:]
        found = command.get_command(click.Context(command), rest[0]) if rest else None
        if found is None:
            break
        command, rest = found, rest[1:]
    return command, rest


def parse(line: str) -> None:
    """Parse a command line of ours; fail when there is no such command or option."""
    words = shlex.split(line, comments=True)
    assert words[0] == "traction"
    command, rest = leaf(words[1:])
    if isinstance(command, click.Group):
        assert not [word for word in rest if not word.startswith("-") and word.islower()], line
    command.make_parser(click.Context(command)).parse_args([word for word in rest if word not in {">", "|"}])


def options() -> set[str]:
    """Give every option of every command."""

    def of(command: click.Command) -> set[str]:
        found = {"--help", *(name for param in command.params for name in param.opts)}
        if isinstance(command, click.Group):
            found |= {
                name for child in command.list_commands(click.Context(command)) for name in of(leaf_of(command, child))
            }
        return found

    return of(traction)


def leaf_of(group: click.Group, name: str) -> click.Command:
    """Give a group's command."""
    command = group.get_command(click.Context(group), name)
    assert command
    return command


def test_links_lead_somewhere(pages: dict[str, str], root: Path) -> None:
    """Every relative link of every page names a file that is there, and a heading that is in it."""
    wrong = []
    for page, text in pages.items():
        for found in LINK.finditer(text):
            path, _, anchor = found["target"].partition("#")
            if path.startswith(("http:", "https:")):
                continue
            target = ((root / page).parent / path).resolve() if path else root / page
            if not target.exists():
                wrong.append(f"{page}: {found['target']}")
            elif anchor and anchor not in {slug(heading) for heading in HEADING.findall(target.read_text("utf-8"))}:
                wrong.append(f"{page}: {found['target']} has no such heading")
    assert not wrong


def test_commands_are_there(pages: dict[str, str], blocks: list[Block]) -> None:
    """Every command line of ours, in a block or in a sentence, names a command and options that exist."""
    lines = [line for block in blocks if block.language == "sh" for line in block.text.splitlines()]
    lines += [
        line.strip()
        for block in blocks
        if block.language == "text"
        for line in block.text.splitlines()
        if line.startswith("  traction ")
    ]
    for page in pages.values():
        lines += CODE.findall(GENERATED.sub("", re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)))
    ours = [re.split(r"\s{2,}", line)[0] for line in lines if re.match(r"traction( [a-z-]|$)", line)]

    assert len(ours) > len(COMMANDS)
    for each in ours:
        parse(each.replace("COMMAND ", ""))


@pytest.mark.parametrize("line", ["traction fly", "traction worker --fast", "traction topics fly"])
def test_a_wrong_command_would_be_noticed(line: str) -> None:
    """The check of command lines can fail."""
    with pytest.raises((click.UsageError, AssertionError)):
        parse(line)


def test_make_targets_are_there(pages: dict[str, str], root: Path) -> None:
    """Every target that a page names is in the Makefile."""
    targets = set(re.findall(r"^([a-z-]+):", (root / "Makefile").read_text("utf-8"), re.MULTILINE))
    written = [GENERATED.sub("", page) for page in pages.values()]
    named = {target for page in written for target in re.findall(r"(?:^|`)make ([a-z-]+)", page, re.MULTILINE)}
    assert {"demo", "test"} <= named
    assert named <= targets


def test_every_block_is_tested(blocks: list[Block]) -> None:
    """No page shows code that no test looks at: a block is plain text, JSON, or named and known."""
    named = [block for block in blocks if block.language not in {"text", "json"} or block.name]
    named = [block for block in named if block.page not in ELSEWHERE]
    unknown = [f"{block.page}: {block.language} {block.name}" for block in named if block.name not in RUN | CHECKED]
    names = [block.name for block in named]

    assert not unknown
    assert len(names) == len(set(names))
    assert set(names) == RUN | CHECKED


def test_json_is_an_event(blocks: list[Block]) -> None:
    """A record shown as JSON is one that is accepted."""
    shown = [block for block in blocks if block.language == "json"]
    assert shown
    for block in shown:
        decode(SHOWN.get(block.name, TOOL_CALLS), block.text.encode())


def test_the_flow_has_every_topic(block: Find) -> None:
    """The picture names all topics of the contract, and no other."""
    assert set(re.findall(r"agent\.([a-z-]+)", block("flow").text)) == {topic.name for topic in TOPICS}


def test_names_are_there(pages: dict[str, str], generate: Any) -> None:
    """Options, topics, metrics and variables that sentences name exist."""
    topics = {f"agent.{topic.name}" for topic in TOPICS}
    metrics = set(re.findall(r"`(traction_\w+)`", generate.metrics()))
    variables = {
        *re.findall(r"`(TRACTION_\w+)`", generate.variables()),
        "TRACTION_TEST_KAFKA",
        *OF_AGENTS,
        *own_variables(),
    }
    known = options() | {"--check", "--fix", "--flush"}
    for page, text in pages.items():
        sentences = CODE.findall(GENERATED.sub("", text))
        words = {word for sentence in sentences for word in re.split(r"[\s=,]", sentence)}
        assert {word for word in words if re.fullmatch(r"agent\.[a-z-]+", word)} <= topics, page
        assert {word for word in words if re.fullmatch(r"traction_\w+", word)} <= metrics, page
        assert {word for word in words if re.fullmatch(r"TRACTION_\w+[A-Z]", word)} <= variables, page
        if page != "CONTRIBUTING.md":
            assert {word for word in words if re.fullmatch(r"--[a-z][a-z-]+", word)} <= known, page


def own_variables() -> set[str]:
    """Give the variable of every option of every command."""

    def of(command: click.Command, before: str) -> set[str]:
        options = [param for param in command.params if isinstance(param, click.Option)]
        found = {f"{before}_{flag(option).upper()}" for option in options}
        if isinstance(command, click.Group):
            for name in command.list_commands(click.Context(command)):
                found |= of(leaf_of(command, name), f"{before}_{name.upper()}")
        return found

    return of(traction, "TRACTION")


def test_limits_that_are_named_exist(pages: dict[str, str], generate: Any) -> None:
    """A limit that a sentence or an alert shown names is one."""
    limits = set(re.findall(r"^\| `([\w.]+)`", generate.limits(), re.MULTILINE))
    limits |= {f"tools.{field}" for field in Tools.__struct_fields__}
    sections = "|".join({name.partition(".")[0] for name in limits if "." in name})
    for page, text in pages.items():
        named = set(re.findall(rf"`((?:{sections})\.[a-z_]+)`", GENERATED.sub("", text)))
        assert {name for name in named if not name.endswith(".py")} <= limits, page


def test_settings_are_accepted(block: Find, tmp_path: Path) -> None:
    """The settings file that is shown is one: its tables fit the commands, its limits exist and are set."""
    file = tmp_path / "traction.toml"
    file.write_text(block("settings").text, "utf-8")

    config = load(file, COMMANDS)

    for name in COMMANDS:
        config.defaults(name, leaf_of(traction, name))
    limits = limits_from([("file", config.limits)])
    assert (limits.mode, limits.identical.warn) == ("observe", 4)
    assert limits.tools.use("my_poller", {}).kind == "poll"


def test_settings_for_tools_are_accepted(block: Find, tmp_path: Path) -> None:
    """The tools that the page on them adds are known afterwards, beside those that were."""
    file = tmp_path / "traction.toml"
    file.write_text(block("settings-tools").text, "utf-8")

    tools = limits_from([("file", load(file, COMMANDS).limits)]).tools

    assert tools.use("deploy_preview", {}).kind == "check"
    assert tools.use("bash", {"command": "terraform plan -out p"}).kind == "check"
    assert tools.use("bash", {"command": "pytest -q"}).kind == "check"
    assert "comment" in tools.label_arguments("deploy_preview")
    assert [mask.pattern for mask in tools.masks("deploy_preview")][-1] == r"build-\d+"


def test_the_settings_for_a_replay_are_accepted(block: Find, tmp_path: Path) -> None:
    """The table that puts recorded sessions into explore mode does."""
    file = tmp_path / "traction.toml"
    file.write_text(block("settings-explore").text, "utf-8")

    assert limits_from([("file", load(file, COMMANDS).limits)]).session_mode == "explore"


def reading(session: str) -> list[dict[str, Any]]:
    """Give a session in which all but two calls bring something new."""
    files = [seq - 5 if seq in {9, 13} else seq for seq in range(16)]
    return [line(session, seq, f"cat {session}/{name}", f"text {name} of {session}") for seq, name in enumerate(files)]


def test_the_recordings_shown_are_read(block: Find, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The neutral form shown prints what stands below it, and the labels shown score it."""
    monkeypatch.chdir(tmp_path)
    for name, file in (("neutral", "calls.jsonl"), ("labels", "labels.jsonl")):
        (tmp_path / file).write_text(block(name).text, "utf-8")

    def run(name: str, *more: str) -> str:
        words = [*shlex.split(block(name).text)[1:], *more]
        result = CliRunner().invoke(traction, words, standalone_mode=False)
        assert (result.return_value, result.stderr) == (0, "")
        return result.stdout

    assert run("replay-neutral") == block("replay-neutral-output").text
    assert re.search(r"^loops found +1 of 1$", run("backtest-neutral", "--jobs", "1"), re.MULTILINE)


def test_the_spin_score_is_trained_as_shown(block: Find, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands in their order, on sessions of three sources: the first writes what the last one names."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recordings").mkdir()
    names = [f"{source}/{kind}-{n}" for source in "xyz" for kind in ("loop", "well") for n in range(2)]
    loops = [name for name in names if "loop" in name]
    calls = [call for name in names for call in (spinning(name, times=8) if name in loops else reading(name))]
    write(tmp_path / "recordings" / "calls.jsonl", calls)
    said = [
        label(name, "loop", first_loop_seq=ALERT - 2) if name in loops else label(name, "healthy") for name in names
    ]
    write(tmp_path / "labels.jsonl", said)

    install, train, backtest, worker = block("train").text.splitlines()
    assert install.startswith("pip install 'traction[train]'")
    for command in (train, backtest):
        words = [*shlex.split(command, comments=True)[1:], "--jobs", "1"]
        result = CliRunner().invoke(traction, words, standalone_mode=False)
        assert (result.return_value, result.stderr, result.exception) == (0, "", None)
    file = shlex.split(worker, comments=True)[-1]
    assert read_weights((tmp_path / file).read_bytes()).source.trained.sessions == len(names)


def test_the_settings_that_switch_the_spin_score_off_do(block: Find, tmp_path: Path) -> None:
    """With them nothing is scored."""
    file = tmp_path / "traction.toml"
    file.write_text(block("settings-spin-off").text, "utf-8")

    assert not limits_from([("file", load(file, COMMANDS).limits)]).scores_spin


def test_the_fields_of_the_neutral_form_are_told(pages: dict[str, str]) -> None:
    """Every field that a line may have, and every kind, is on the page."""
    page = pages["docs/recordings.md"]
    _, _, rest = page.partition("## The neutral form")
    told = set(CODE.findall(rest.partition("\n## ")[0]))
    assert set(neutral.Line.__struct_fields__) <= told
    assert set(neutral.KINDS) <= told


def test_generated_parts_are_up_to_date(generate: Any) -> None:
    """Tables of limits, commands, topics, metrics, variables and reasons, and the replay, are what the code says."""
    assert not generate.differences()


def test_drift_is_noticed(generate: Any, root: Path, tmp_path: Path) -> None:
    """A default that is changed by hand in any generated part is found, and named by its page."""
    (tmp_path / "docs").mkdir()
    for page in generate.PARTS:
        (tmp_path / page).write_text(generate.filled(page, (root / page).read_text("utf-8")), "utf-8")
    assert not generate.differences(tmp_path)
    for page, was, now in (
        ("docs/detectors.md", "| `identical.warn` | `3`", "| `identical.warn` | `4`"),
        ("docs/commands.md", "| `commit_interval` | `0.5`", "| `commit_interval` | `0.7`"),
        ("docs/operating.md", "`traction_alerts_total` | counter", "`traction_alerts_total` | gauge"),
        ("README.md", "4 sessions, 9", "5 sessions, 9"),
    ):
        text = (tmp_path / page).read_text("utf-8")
        assert was in text
        (tmp_path / page).write_text(text.replace(was, now), "utf-8")

        assert generate.differences(tmp_path) == [page]

        (tmp_path / page).write_text(text, "utf-8")


def test_every_limit_and_reason_has_a_meaning(generate: Any) -> None:
    """A limit that is added or goes is noticed: each has a sentence, and no sentence is left over."""
    with pytest.raises(KeyError, match=r"identical\.warn"):
        generate.meanings("limits", ["mode"])
    with pytest.raises(KeyError, match=r"identical\.new"):
        generate.meanings("limits", ["identical.new"])


def test_every_dependency_has_its_reason(pages: dict[str, str], root: Path) -> None:
    """CONTRIBUTING lists exactly the dependencies of pyproject.toml and of the tests' package.json."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    wanted = [
        *project["project"]["dependencies"],
        *(each for extra in project["project"]["optional-dependencies"].values() for each in extra),
        *(each for group in project["dependency-groups"].values() for each in group),
    ]
    python = {re.split(r"[<>=~;\[ ]", each)[0] for each in wanted}
    named = [root / "tests" / name / "package.json" for name in ("tools", "examples/types")]
    npm = {name for path in named for name in json.loads(path.read_text("utf-8"))["devDependencies"]}
    listed = re.findall(r"^\| `([^`]+)` \| (.+) \|$", pages["CONTRIBUTING.md"], re.MULTILINE)

    assert {name for name, _ in listed} == python | npm
    assert all(len(reason.split()) >= 3 for _, reason in listed)


def test_the_changelog_has_this_version(pages: dict[str, str], root: Path) -> None:
    """The version that is built has an entry, in the form of Keep a Changelog."""
    version = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert re.search(
        rf"^## \[{re.escape(version)}\] - (Unreleased|\d{{4}}-\d\d-\d\d)$", pages["CHANGELOG.md"], re.MULTILINE
    )
