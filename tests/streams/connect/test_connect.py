"""`traction connect` writes hooks into an agent's settings, and takes out exactly what it wrote."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streams import cli
from streams.connect import AGENTS, Backups, apply, hook_command, plan_connect, plan_undo
from streams.connect.agents import is_ours
from streams.connect.edit import without_ours
from streams.connect.files import MAX_BYTES
from streams.connect.json_text import parse
from tests.streams.connect.test_json_text import INDENTS, VALUES, written

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.testing import Result

    from streams.connect import Agent

FILES = {"claude-code": ".claude/settings.json", "codex": ".codex/hooks.json", "gemini-cli": ".gemini/settings.json"}
OTHER = {"type": "command", "command": "echo mine"}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A user's home with nothing in it, which also is the directory at hand."""
    for name in [*os.environ]:
        if name.startswith("TRACTION_") or name in {"CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"}:
            monkeypatch.delenv(name)
    place = tmp_path / "home"
    place.mkdir()
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(place)
    return place


@pytest.fixture
def connect(home) -> Callable[..., Result]:  # noqa: ARG001 - it makes the environment
    """Run the command."""

    def run(*words: str, **options: Any) -> Result:
        return CliRunner().invoke(cli.traction, ["connect", *words], prog_name="traction", **options)

    return run


def commands(text: str) -> dict[str, str]:
    """Give the commands of ours in settings, by the hook."""
    found = {}
    for event, groups in parse(text, comments=True).value["hooks"].items():
        for group in filter(is_object, groups):
            for handler in group.get("hooks") or []:
                if is_ours(handler):
                    assert event not in found
                    found[event] = handler["command"]
    return found


def is_object(value: object) -> bool:
    """Tell whether a value is an object whose hooks, if there are any, are an array."""
    return isinstance(value, dict) and isinstance(value.get("hooks", []), list)


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("mode", ["observe", "enforce"])
def test_an_agent_is_connected_and_is_not(connect, home, agent, mode):
    """Every hook that the mode needs starts the command with what was asked for; undone, no file is left."""
    done = connect(agent, f"--{mode}", "--privacy", "excerpts", "--gateway", "http://gate:8321", "--yes")
    assert done.exit_code == 0, done.output
    found = commands((home / FILES[agent]).read_text("utf-8"))
    assert set(found) == set(AGENTS[agent].events(mode))
    (command,) = set(found.values())
    words = shlex.split(command.removesuffix(" 2>/dev/null || true"))
    assert Path(words[0]).name == "traction-hook"
    assert words[1:] == [agent, f"--{mode}", "--privacy", "excerpts", "--gateway", "http://gate:8321"]
    assert connect(agent, "--undo", "--yes").exit_code == 0
    assert not (home / FILES[agent]).exists()


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_command_that_is_gone_is_no_trouble(agent, shell):
    """When Traction is uninstalled and its hooks are left behind, agents see success and not a word."""
    command = hook_command(
        agent, "/nowhere/traction-hook", mode="enforce", privacy="full", gateway=None, token_file=None
    )
    done = subprocess.run([shell, "-c", command], input=b"{}", capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("agent", AGENTS)
def test_twice_is_once(connect, home, agent):
    """What is connected already is not changed, and said to be so."""
    assert connect(agent, "--yes").exit_code == 0
    text = (home / FILES[agent]).read_text("utf-8")
    again = connect(agent, "--yes")
    assert (again.exit_code, "nothing to change" in again.output) == (0, True)
    assert (home / FILES[agent]).read_text("utf-8") == text


def test_another_mode_takes_the_place_of_the_first(connect, home):
    """From enforcing to observing, the hook before a call goes, and undoing still leads back to the beginning."""
    file = home / FILES["codex"]
    file.parent.mkdir()
    file.write_text('{"hooks": {"Stop": []}}', "utf-8")
    connect("codex", "--enforce", "--yes")
    connect("codex", "--observe", "--yes")
    assert set(commands(file.read_text("utf-8"))) == set(AGENTS["codex"].observing)
    connect("codex", "--undo", "--yes")
    assert file.read_text("utf-8") == '{"hooks": {"Stop": []}}'


def test_what_others_have_put_in_stays(connect, home):
    """Hooks of others, changed after ours were put in, are left alone, and so are their words."""
    file = home / FILES["claude-code"]
    file.parent.mkdir()
    file.write_text('{"model": "opus", "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": []}]}}', "utf-8")
    connect("claude-code", "--enforce", "--yes")
    settings_now = json.loads(file.read_text("utf-8"))
    settings_now["hooks"]["PreToolUse"][1]["hooks"].append(OTHER)
    settings_now["hooks"]["SessionStart"].append({"hooks": [OTHER]})
    settings_now["model"] = "sonnet"
    file.write_text(json.dumps(settings_now), "utf-8")
    assert connect("claude-code", "--undo", "--yes").exit_code == 0
    assert json.loads(file.read_text("utf-8")) == {
        "model": "sonnet",
        "hooks": {
            "PreToolUse": [{"matcher": "Bash", "hooks": []}, {"hooks": [OTHER]}],
            "SessionStart": [{"hooks": [OTHER]}],
        },
    }


def test_comments_stay(connect, home):
    """Gemini CLI allows comments in its settings; they are still there, before and after."""
    file = home / FILES["gemini-cli"]
    file.parent.mkdir()
    text = '{\n  // the theme\n  "theme": "dark", /* it is */\n}\n'
    file.write_text(text, "utf-8")
    assert connect("gemini-cli", "--yes").exit_code == 0
    assert "// the theme" in file.read_text("utf-8")
    assert "/* it is */" in file.read_text("utf-8")
    connect("gemini-cli", "--undo", "--yes")
    assert file.read_text("utf-8") == text


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("text", ["", " \n"])
def test_a_file_with_nothing_in_it_has_no_settings(connect, home, agent, text):
    """It is connected, and gets back the nothing that it had."""
    file = home / FILES[agent]
    file.parent.mkdir()
    file.write_text(text, "utf-8")
    assert connect(agent, "--undo", "--yes").exit_code == 0
    for mode in ("--enforce", "--observe"):
        assert connect(agent, mode, "--yes").exit_code == 0
        assert commands(file.read_text("utf-8"))
    assert connect(agent, "--undo", "--yes").exit_code == 0
    assert file.read_text("utf-8") == text


def test_directories_that_were_made_are_taken_away(connect, home, tmp_path, monkeypatch):
    """All that connecting made goes, as long as nobody has put anything there; what was there before stays."""
    deep = home / "work" / "agents"
    monkeypatch.setenv("CODEX_HOME", str(deep / "codex"))
    (home / ".claude").mkdir()
    for agent in ("codex", "claude-code", "gemini-cli"):
        connect(agent, "--yes")
        connect(agent, "--enforce", "--yes")
    (deep / "mine").touch()
    (home / ".gemini" / "history").touch()
    for agent in ("codex", "claude-code", "gemini-cli"):
        assert connect(agent, "--undo", "--yes").exit_code == 0
    left = {str(each.relative_to(home)) for each in home.rglob("*")}
    assert left == {"work", "work/agents", "work/agents/mine", ".claude", ".gemini", ".gemini/history"}
    assert list((tmp_path / "state").iterdir()) == []


GROUPS: st.SearchStrategy[list[Any]] = st.lists(
    st.just({"matcher": "Bash", "hooks": [OTHER]}) | st.just({"hooks": []}) | VALUES.filter(lambda v: v != "x"),
    max_size=3,
)
SETTINGS = st.builds(
    lambda others, hooks, has: {**others, **({"hooks": hooks} if has else {})},
    st.dictionaries(st.text(max_size=4).filter(lambda key: key != "hooks"), VALUES, max_size=3),
    st.dictionaries(st.sampled_from(["PreToolUse", "PostToolUse", "AfterTool", "SessionStart", "Else"]), GROUPS),
    st.booleans(),
)
TEXTS = st.builds(lambda value, indent, spread: written(value, indent, spread=spread), SETTINGS, INDENTS, st.booleans())


def there_and_back(agent: Agent, text: str, folder: Path, *, modes: list[Any]) -> tuple[str, str]:
    """Connect, in several modes one after the other, and undo; give what stood in between and at the end."""
    path, backups = folder / agent.file, Backups({"XDG_STATE_HOME": str(folder / "state")})
    path.write_bytes(text.encode())
    between = ""
    for mode in modes:
        command = hook_command(agent.name, "traction-hook", mode=mode, privacy="full", gateway=None, token_file=None)
        apply(plan_connect(path, agent, mode=mode, command=command, backups=backups), backups)
        between = path.read_bytes().decode()
    apply(plan_undo(path, agent, backups=backups), backups)
    return between, path.read_bytes().decode()


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=TEXTS, agent=st.sampled_from(list(AGENTS.values())), data=st.data())
def test_undone_is_as_it_was(tmp_path_factory, text, agent, data):
    """Whatever valid settings there are, connecting and undoing gives back each byte, and the rest stays in between."""
    modes = data.draw(st.lists(st.sampled_from(["observe", "enforce"]), min_size=1, max_size=3))
    between, after = there_and_back(agent, text, tmp_path_factory.mktemp("settings"), modes=modes)
    assert after == text
    assert set(commands(between)) == set(agent.events(modes[-1]))
    kept = parse(text).value
    assert {**parse(between).value, "hooks": 0} == {**kept, "hooks": 0}
    for event, groups in kept.get("hooks", {}).items():
        assert parse(between).value["hooks"][event][: len(groups)] == groups
    # Also when somebody has changed the file since: all that is not ours is there.
    had = ["hooks", *kept["hooks"]] if "hooks" in kept else []
    assert parse(without_ours(between + " ", agent, had)).value == kept


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{\n  "hooks": [\n}', ":3:1: a value is missing"),
        ('{\n  "hooks": 1\n}', ":2:12: `hooks` is no object"),
        ('{"hooks": {"PreToolUse": {}}}', ":1:26: `hooks.PreToolUse` is no array"),
        ("[]", ":1:1: the settings are no object"),
        ('{"a": 1,}', ":1:9: there is a comma before }"),
    ],
)
@pytest.mark.parametrize("undo", [[], ["--undo"]])
def test_damaged_settings_are_left_alone(connect, home, text, place, undo):
    """Settings that cannot be read are not touched; the message says where, and what to do."""
    file = home / FILES["claude-code"]
    file.parent.mkdir()
    file.write_text(text, "utf-8")
    done = connect("claude-code", "--yes", *undo)
    assert done.exit_code == 1
    assert f"{file}{place}" in done.output
    assert "mend it" in done.output
    assert file.read_text("utf-8") == text


@pytest.mark.parametrize(
    ("content", "problem"), [(b"\xff{}", "not UTF-8 at byte 0"), (b" " * (MAX_BYTES + 1), "larger")]
)
def test_what_are_no_settings(connect, home, content, problem):
    """A file that is no text, or larger than any settings, is not touched."""
    file = home / FILES["codex"]
    file.parent.mkdir()
    file.write_bytes(content)
    done = connect("codex", "--yes")
    assert (done.exit_code, problem in done.output) == (1, True)
    assert file.read_bytes() == content


def test_the_largest_settings(connect, home):
    """Up to the limit they are read."""
    file = home / FILES["codex"]
    file.parent.mkdir()
    file.write_bytes(b"{}" + b" " * (MAX_BYTES - 2))
    assert connect("codex", "--yes").exit_code == 0


def test_permissions_and_links_stay(connect, home, tmp_path):
    """A link stays a link, what it points to is changed, and with its permissions; a new file is the user's own."""
    real = tmp_path / "dotfiles.json"
    real.write_text("{}", "utf-8")
    real.chmod(0o640)
    file = home / FILES["claude-code"]
    file.parent.mkdir()
    file.symlink_to(real)
    assert connect("claude-code", "--yes").exit_code == 0
    assert file.is_symlink()
    assert commands(real.read_text("utf-8"))
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert [each.name for each in tmp_path.iterdir() if "dotfiles" in each.name] == ["dotfiles.json"]
    connect("codex", "--yes")
    assert stat.S_IMODE((home / FILES["codex"]).stat().st_mode) == 0o600


def test_a_link_whose_target_was_not_there_stays(connect, home):
    """The file that was made where it points to goes again, with its directory; the link is the user's own."""
    file, target = home / FILES["claude-code"], home / "dot" / "settings.json"
    file.parent.mkdir()
    file.symlink_to("../dot/settings.json")
    assert connect("claude-code", "--yes").exit_code == 0
    assert commands(target.read_text("utf-8"))
    assert connect("claude-code", "--undo", "--yes").exit_code == 0
    assert (file.is_symlink(), str(file.readlink())) == (True, "../dot/settings.json")
    assert not target.parent.exists()


def test_a_copy_is_kept(connect, home):
    """What the settings were is kept for the user alone, and named; once undone it is gone."""
    file = home / FILES["claude-code"]
    file.parent.mkdir()
    file.write_text('{"model": "opus"}', "utf-8")
    told = json.loads(connect("claude-code", "--yes", "--json").output)
    assert told["changed"] is True
    backup = Path(told["backup"])
    assert backup.read_text("utf-8") == '{"model": "opus"}'
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert json.loads(connect("claude-code", "--undo", "--yes", "--json").output)["undone"] is True
    assert not backup.exists()


def test_undo_without_connect(connect, home):
    """There is nothing to undo, and nothing happens."""
    done = connect("codex", "--undo", "--yes")
    assert (done.exit_code, "nothing to change" in done.output) == (0, True)
    assert list(home.iterdir()) == []


def test_undo_where_the_copy_is_lost(connect, home, tmp_path):
    """Without what was kept, ours are taken out all the same, and what is left empty with them."""
    file = home / FILES["claude-code"]
    file.parent.mkdir()
    file.write_text('{\n  "model": "opus"\n}\n', "utf-8")
    connect("claude-code", "--yes")
    for kept in (tmp_path / "state" / "traction" / "connect").iterdir():
        kept.unlink()
    connect("claude-code", "--undo", "--yes")
    assert file.read_text("utf-8") == '{\n  "model": "opus"\n}\n'


def test_nobody_is_asked_without_a_terminal(connect, home):
    """The change is shown; where no answer comes nothing is done unless that was said before."""
    done = connect("codex")
    assert done.exit_code == 1
    assert "say --yes" in done.output
    assert '+    "PostToolUse": [' in done.output
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(("said", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1)])
def test_a_person_is_asked(connect, home, said, code):
    """It is asked, on a terminal or through a pipe, and no is no."""
    done = connect("codex", input=said, standalone_mode=False)
    assert done.return_value == code
    assert (home / FILES["codex"]).exists() is (code == 0)


@pytest.mark.parametrize(
    "words",
    [
        ["someone"],
        ["codex", "--gateway", "gate:8321"],
        ["codex", "--gateway", "http://user:secret@gate"],
        ["codex", "--json"],
        ["codex", "--privacy", "none"],
        ["codex", "--token-file", "missing"],
    ],
)
def test_wrong_use(connect, home, words):
    """What cannot be meant is refused, and nothing is written."""
    assert connect(*words).exit_code == 2
    assert list(home.iterdir()) == []


def test_no_token_gets_into_the_settings(connect, home, monkeypatch):
    """A token stays where it is: settings name its file at most, and those that are checked in not even that."""
    token = home / "token"
    token.write_text("hush-4711", "utf-8")
    monkeypatch.setenv("TRACTION_GATEWAY_TOKEN", "hush-4711")
    assert connect("codex", "--token-file", "token", "--yes").exit_code == 0
    text = (home / FILES["codex"]).read_text("utf-8")
    assert (str(token) in text, "hush" in text) == (True, False)
    refused = connect("codex", "--token-file", "token", "--scope", "project", "--yes")
    assert (refused.exit_code, "TRACTION_GATEWAY_TOKEN_FILE" in refused.output) == (2, True)


def test_a_project_names_no_place_of_one_machine(connect, home, tmp_path, monkeypatch):
    """What is checked in starts the command by its name, in the directory at hand."""
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    assert connect("claude-code", "--scope", "project", "--yes").exit_code == 0
    text = (project / FILES["claude-code"]).read_text("utf-8")
    assert all(command.startswith("traction-hook claude-code ") for command in commands(text).values())
    assert str(home) not in text
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(
    ("agent", "variable", "place"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR", "settings.json"),
        ("codex", "CODEX_HOME", "hooks.json"),
        ("gemini-cli", "GEMINI_CLI_HOME", ".gemini/settings.json"),
    ],
)
def test_agents_may_live_elsewhere(connect, home, agent, variable, place):
    """The variables by which each agent is sent to another directory are followed."""
    assert connect(agent, "--yes", env={variable: str(home / "elsewhere")}).exit_code == 0
    assert (home / "elsewhere" / place).exists()
    assert [each.name for each in home.iterdir()] == ["elsewhere"]


@pytest.mark.parametrize(
    ("agent", "file", "text"),
    [
        ("claude-code", ".claude/settings.json", '{"disableAllHooks": true}'),
        ("codex", ".codex/config.toml", "[features]\nhooks = false\n"),
        ("gemini-cli", ".gemini/settings.json", '{"hooksConfig": {"enabled": false}}'),
    ],
)
def test_it_is_told_when_hooks_are_off(connect, home, agent, file, text):
    """Hooks that will never be started are pointed out, with the setting that says so."""
    (home / file).parent.mkdir()
    (home / file).write_text(text, "utf-8")
    done = connect(agent, "--yes")
    assert (done.exit_code, f"{home / file}: " in done.output, "starts no hooks" in done.output) == (0, True, True)
    assert "starts no hooks" not in connect(next(each for each in AGENTS if each != agent), "--yes").output


@pytest.mark.parametrize(
    ("agent", "telemetry", "told"),
    [
        ("gemini-cli", {"enabled": True, "otlpEndpoint": "http://127.0.0.1:8321"}, True),
        ("gemini-cli", {"enabled": True, "outfile": ".gemini/telemetry.log"}, False),
        ("gemini-cli", {"enabled": False, "otlpEndpoint": "http://127.0.0.1:8321"}, False),
        ("gemini-cli", "on", False),
        ("claude-code", {"enabled": True}, False),
    ],
)
def test_it_is_told_when_telemetry_tells_the_calls_as_well(connect, home, agent, telemetry, told):
    """Where hooks tell no ids, a person is to know through what the calls would count twice."""
    file = home / FILES[agent]
    file.parent.mkdir()
    file.write_text(json.dumps({"telemetry": telemetry}), "utf-8")
    assert ("telemetry is on" in connect(agent, "--yes").output) is told


def test_a_change_in_the_meantime_is_kept(home):
    """What somebody writes between looking and changing is not overwritten."""
    agent, path = AGENTS["codex"], home / "hooks.json"
    backups = Backups({"XDG_STATE_HOME": str(home / "state")})
    change = plan_connect(path, agent, mode="observe", command="traction-hook codex", backups=backups)
    path.write_text('{"theirs": 1}', "utf-8")
    with pytest.raises(Exception, match="changed in the meantime; run the command again"):
        apply(change, backups)
    assert path.read_text("utf-8") == '{"theirs": 1}'


def test_what_cannot_be_written_is_told(connect, home):
    """Where a directory should be is a file: nothing is written, and the message names it."""
    (home / ".codex").write_text("", "utf-8")
    done = connect("codex", "--yes")
    assert (done.exit_code, str(home / ".codex") in done.output) == (1, True)


def test_settings_cannot_steer_the_terminal(connect, home):
    """Control characters in what is shown are replaced."""
    file = home / FILES["codex"]
    file.parent.mkdir()
    file.write_text('{"a":\n"\u202e\x9b"}', "utf-8")
    done = connect("codex", "--yes")
    assert done.exit_code == 0
    assert not {"\u202e", "\x9b"} & set(done.output)
