"""The layout is read as it is meant, and what is wrong in one is told with its place and what to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.topics import DEFAULT_PREFIX, TOPICS
from streams.access.roles import Names
from streams.layout import OWN, InvalidLayout, Layout, read_layout
from tests.doors.kit import command

EXAMPLE = Path(__file__).parents[2] / "deploy" / "kafka.toml"


def layout(directory: Path, text: str) -> Path:
    """Write a layout."""
    file = directory / "kafka.toml"
    file.write_text(text)
    return file


def test_the_example_changes_nothing_of_the_topics() -> None:
    """It says what is so without it, so that whoever copies it has nothing by accident."""
    assert read_layout(EXAMPLE).configs(Names()) == {}
    assert read_layout(EXAMPLE).topics.partitions == 8


def test_topics_are_named_without_their_prefix(tmp_path: Path) -> None:
    """Each topic of the contract, and the processes' own, whatever the installation calls them."""
    lines = [f'"{name}" = {{ "retention.ms" = 1, "unclean.leader.election.enable" = false }}' for name in OWN]
    lines += [f'{topic.name} = {{ "retention.ms" = "1" }}' for topic in TOPICS]
    names = Names(prefix="p.", app_id="a", group="g")
    found = read_layout(layout(tmp_path, "[topics.config]\n" + "\n".join(lines))).configs(names)
    assert found.keys() == set(names.topics)
    assert found["g-ladders"] == {"retention.ms": "1", "unclean.leader.election.enable": "false"}
    assert found["p.alerts"] == {"retention.ms": "1"}


def test_an_empty_layout_is_one(tmp_path: Path) -> None:
    """What it leaves out is as by default."""
    assert read_layout(layout(tmp_path, "")) == Layout()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[topics]\npartition = 8", "partition"),
        ("[topics]\npartitions = 0", r"partitions is 0; write a number from 1 to 10000"),
        ("[topics]\npartitions = 10001", r"partitions is 10001"),
        ("[topics]\nreplication = 101", r"replication is 101; write a number from 1 to 100"),
        ('[topics]\npartitions = "8"', "partitions"),
        ('[topics.config]\nalert = { "retention.ms" = 1 }', "no topic 'alert'; did you mean `alerts`"),
        ('[topics.config]\n"agent.alerts" = { "retention.ms" = 1 }', "no topic 'agent.alerts'"),
        ('[topics.config]\nalerts = { "cleanup.policy" = "compact" }', "cleanup.policy of alerts"),
        ('[topics.config]\nalerts = { "message.timestamp.type" = "CreateTime" }', "message.timestamp.type of alerts"),
        ('[principals]\nboss = ["User:b"]', "no role 'boss'"),
        ('[principals]\nworker = ["w"]', "worker=User:worker"),
        ('[principals]\nworker = ["User:*"]', "no one's principal"),
        ("[principals", "write a table"),
        ('[names]\nprefix = "x."', "names"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, text: str, said: str) -> None:
    """The table, the key and the remedy, by the command that was given it."""
    file = layout(tmp_path, text)
    with pytest.raises(InvalidLayout, match=said):
        read_layout(file)
    done = command("topics", "diff", "--layout", str(file))
    assert done.code == 2
    assert str(file) in done.output


def test_the_most_is_allowed(tmp_path: Path) -> None:
    """Limits are where the messages say."""
    found = read_layout(layout(tmp_path, "[topics]\npartitions = 10000\nreplication = 100"))
    assert (found.topics.partitions, found.topics.replication) == (10_000, 100)


def test_what_is_no_text_is_told(tmp_path: Path) -> None:
    """Bytes that are no UTF-8 end in words too."""
    file = tmp_path / "kafka.toml"
    file.write_bytes(b"\xff")
    with pytest.raises(InvalidLayout, match="utf-8"):
        read_layout(file)


def test_numbers_said_twice_and_otherwise_are_refused(tmp_path: Path) -> None:
    """An option may say what the layout says, and nothing else; no broker is asked."""
    file = layout(tmp_path, "[topics]\npartitions = 3")
    done = command("topics", "create", "--layout", str(file), "--partitions", "4", "--bootstrap", "127.0.0.1:1")
    assert done.code == 2
    assert "--partitions is 4, and the layout says 3" in done.output


def test_settings_show_where_the_layout_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Named by a variable, as in a container: its path is shown, and what is wrong in it is told."""
    monkeypatch.setenv("TRACTION_LAYOUT", str(EXAMPLE))
    assert str(EXAMPLE) in command("settings", "topics", "create").output
    monkeypatch.setenv("TRACTION_LAYOUT", str(layout(tmp_path, "[topic]")))
    assert command("settings", "topics", "create").code == 2


def test_the_default_prefix_is_the_contracts() -> None:
    """What the layout's names become without options is what processes read."""
    assert Names().named("alerts") == (f"{DEFAULT_PREFIX}alerts",)
