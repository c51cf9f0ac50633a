"""Dead letters are listed and shown without what they hold, and are put back after a look and a question."""

from __future__ import annotations

import asyncio
import json
import re
import stat
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from schemas import topics
from schemas.invalid import InvalidEvent
from streams.cli import traction
from streams.cli.letter_options import Progress
from streams.kafka import producer, running
from streams.letters.letter import ATTEMPT
from tests.streams.asking_kit import ask, told
from tests.streams.asking_kit import lines as ask_lines
from tests.streams.letters.kit import came, records, refused, write
from tests.streams.outputs_kit import now

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

    from streams.kafka import KafkaSettings

SECRET = "T0ps3cret"  # noqa: S105 - opens nothing
NASTY = b"\x1b[31m\x9b \\x00 " + SECRET.encode()

NOT_JSON = InvalidEvent("not_json", "not JSON, or cut short", "send one JSON object per record")
SINK = InvalidEvent("delivery_failed", "sink chat: given up", "see that it is up, then replay the dead letter")


async def some(kafka: KafkaSettings) -> list[str]:
    """Write five letters over two partitions, by time; the last is of a sink."""
    calls, reviews = kafka.topic(topics.TOOL_CALLS), kafka.topic(topics.REVIEWS)
    headers = (("authorization", SECRET.encode()),)
    made = [
        refused(came(calls, NASTY, key=SECRET.encode(), headers=headers), NOT_JSON),
        refused(came(reviews, NASTY, offset=9)),
        refused(came(calls, NASTY, offset=8, headers=((ATTEMPT, b"2"),))),
        refused(came(kafka.topic(topics.OVERRIDES), NASTY), NOT_JSON),
        refused(came(kafka.topic(topics.NOTIFICATIONS), NASTY), SINK, "sink-chat"),
    ]
    at = round(now().timestamp() * 1_000) - 10_000
    names = []
    for number, letter in enumerate(made):
        names += await write(kafka, [letter], partition=number % 2, timestamps=[at + number])
    return names


async def letters(kafka: KafkaSettings, *words: str, **more: Any) -> list[Any]:
    """Run a command on dead letters with --json."""
    return await ask_lines(kafka, "dead-letters", *words, ladders=False, **more)


async def shown(kafka: KafkaSettings, *words: str) -> Result:
    """Run a command on dead letters."""
    return await ask(kafka, "dead-letters", *words, ladders=False)


async def answered(kafka: KafkaSettings, answer: str, *words: str) -> Result:
    """Run one that asks, and answer."""
    command = ["dead-letters", *words, "--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix]
    run = CliRunner()
    return await asyncio.to_thread(lambda: run.invoke(traction, command, input=answer, standalone_mode=False))


async def test_the_list(kafka: KafkaSettings) -> None:
    """Newest last over all partitions, by every choice, and never a key, value or header."""
    names = await some(kafka)
    rows = await letters(kafka, "list")
    assert [row["letter"] for row in rows] == names
    assert rows[2]["attempts"] == 2
    text = (await shown(kafka, "list")).stdout
    assert [line.split()[0] for line in text.splitlines()] == ["LETTER", *names]
    for each in (text, json.dumps(rows)):
        assert SECRET not in each
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", each)
    for words, wanted in (
        (("--topic", "tool-calls"), [0, 2]),
        (("--topic", kafka.topic(topics.REVIEWS), "--topic", "overrides"), [1, 3]),
        (("--topic", "traction-task-events"), []),
        (("--reason", "not_json"), [0, 3]),
        (("--stage", "deliver"), [4]),
        (("--group", "g", "--stage", "detect"), [1, 2]),
        (("--since", "1h"), [0, 1, 2, 3, 4]),
        (("--since", "5s"), []),
        (("--limit", "2"), [3, 4]),
        (("--limit", "5"), [0, 1, 2, 3, 4]),
    ):
        assert [row["letter"] for row in await letters(kafka, "list", *words)] == [names[at] for at in wanted], words
    ran = await shown(kafka, "list", "--limit", "2")
    assert "the newest 2 of 5" in ran.stderr
    assert (await shown(kafka, "list", "--limit", "5")).stderr == ""


async def test_the_summary(kafka: KafkaSettings) -> None:
    """By reason and topic, with what was put back; other records on the topic are told of and left out."""
    await some(kafka)
    async with running(producer(kafka), kafka) as client:
        await client.send_and_wait(kafka.topic(topics.DEAD_LETTERS), b"not ours", partition=0)
    ran = await shown(kafka, "replay", "--topic", "tool-calls", "--reason", "not_json", "--yes")
    assert (ran.return_value, ran.stdout) == (0, "put back 1 record\n")
    await records(kafka, topics.DEAD_LETTERS)
    sums = {
        (each["topic"].removeprefix(kafka.prefix), each["reason"]): each
        for each in await letters(kafka, "list", "--summary")
    }
    assert {kind: (each["letters"], each["replayed"]) for kind, each in sums.items()} == {
        ("tool-calls", "not_json"): (1, 1),
        ("tool-calls", "detector_error"): (1, 0),
        ("reviews", "detector_error"): (1, 0),
        ("overrides", "not_json"): (1, 0),
        ("notifications", "delivery_failed"): (1, 0),
    }
    assert sums["reviews", "detector_error"]["bytes"] == len(NASTY) + 1
    ran = await shown(kafka, "list", "--summary")
    assert len(ran.stdout.splitlines()) == 6
    assert "1 record on" in ran.stderr
    rows = (await shown(kafka, "list")).stdout
    assert rows.count(" yes ") == 1


async def test_no_letters(kafka: KafkaSettings) -> None:
    """That is said, and is no failure."""
    assert (await shown(kafka, "list")).stdout == "no dead letter fits\n"
    ran = await shown(kafka, "replay", "--all")
    assert (ran.return_value, ran.stdout) == (0, "to be put back: 0\n")


async def test_showing(kafka: KafkaSettings) -> None:
    """Why and what to do, and what would hinder a replay; what it holds only when asked for, unable to act."""
    first, _, third, override, _ = await some(kafka)
    text = (await shown(kafka, "show", first)).stdout
    assert SECRET not in text
    assert "problem     not JSON, or cut short\n" in text
    assert "what to do  send one JSON object per record\n" in text
    assert "authorization (9 bytes)" in text
    assert "replay      possible" in text
    assert "put back 2 times before" in (await shown(kafka, "show", third)).stdout
    assert "not possible: workers read overrides again by themselves" in (await shown(kafka, "show", override)).stdout
    text = (await shown(kafka, "show", first, "--value")).stdout
    assert f"--- key\n{SECRET}\n--- header authorization\n{SECRET}\n" in text
    assert text.endswith(f"--- value\n\\x1b[31m\\x9b \\\\x00 {SECRET}\n")
    (row,) = await letters(kafka, "show", first, "--value")
    assert (row["key"], row["hindrance"], row["headers"]) == (
        SECRET,
        None,
        [{"name": "authorization", "value": SECRET}],
    )
    (row,) = await letters(kafka, "show", first)
    assert SECRET not in json.dumps(row)


@pytest.mark.parametrize(("size", "cut"), [(4_096, False), (4_097, True)])
async def test_a_long_value_is_cut(kafka: KafkaSettings, size: int, *, cut: bool) -> None:
    """Only when it is longer than is shown, and then it says how long it is."""
    (name,) = await write(kafka, [refused(came(kafka.topic(topics.REVIEWS), b"v" * size))])
    value = (await shown(kafka, "show", name, "--value")).stdout.rpartition("--- value\n")[2].strip()
    assert value == "v" * 4_096 + (" ... of 4,097 bytes; see --raw" if cut else "")


async def test_the_bytes_as_they_came(kafka: KafkaSettings, tmp_path: Path) -> None:
    """On standard output or in a new file that only its owner can read; an existing file is left alone."""
    first = (await some(kafka))[0]
    assert (await shown(kafka, "show", first, "--raw")).stdout_bytes == NASTY
    file = tmp_path / "value"
    await shown(kafka, "show", first, "--raw", "--output", str(file))
    assert file.read_bytes() == NASTY
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_bytes(b"mine")
    assert "name a new file" in await told(
        kafka, "dead-letters", "show", first, "--raw", "--output", str(file), ladders=False
    )
    assert file.read_bytes() == b"mine"


@pytest.mark.parametrize("name", ["0@99", "7@0", "0@3"])
async def test_no_such_letter(kafka: KafkaSettings, name: str) -> None:
    """A place beyond the end, a partition that is not there, and a receipt are no letters."""
    await some(kafka)
    await shown(kafka, "replay", "0@0", "--yes")
    assert f"there is no dead letter at {name}" in await told(kafka, "dead-letters", "show", name, ladders=False)
    ran = await shown(kafka, "replay", name, "--yes")
    assert (ran.return_value, ran.stdout) == (3, f"put back 0 records\nno dead letter is at {name}\n")


async def test_a_forged_topic(kafka: KafkaSettings) -> None:
    """Brokers are not asked for what a letter calls a topic: it can be shown whatever that is."""
    (name,) = await write(kafka, [refused(came("no topic's name"))])
    ran = await shown(kafka, "show", name)
    assert "not possible: its topic is not one that records are put back onto" in ran.stdout
    ran = await shown(kafka, "replay", "--all", "--yes")
    assert ran.return_value == 3
    assert ran.stdout.startswith("put back 0 records\nnot put back: 1: its topic is not")


async def test_replay_shows_and_asks(kafka: KafkaSettings) -> None:
    """What would go back and what not and why; nothing happens on --dry-run or no, and all that may go back on yes."""
    names = await some(kafka)
    ran = await shown(kafka, "replay", "--all", "--dry-run")
    assert ran.return_value == 3
    assert ran.stdout.startswith("to be put back: 4\n")
    assert f"  1 to {kafka.topic(topics.REVIEWS)}, refused as detector_error\n" in ran.stdout
    assert "not put back: 1: workers read overrides again" in ran.stdout
    outcomes = await letters(kafka, "replay", "--all", "--dry-run", code=3)
    assert {each["letter"]: each["outcome"] for each in outcomes} == {
        name: "refused" if name == names[3] else "would_replay" for name in names
    }
    ran = await answered(kafka, "n\n", "replay", "--all")
    assert (ran.return_value, "nothing was put back" in ran.stderr) == (1, True)
    ran = await answered(kafka, "", "replay", "--all")
    assert "say --yes" in str(ran.exception)
    assert await records(kafka, topics.TOOL_CALLS) == []
    ran = await answered(kafka, "y\n", "replay", "--all", "--limit", "3")
    assert ran.return_value == 3
    assert "to be put back: 3 of 4\n" in ran.stdout
    assert ran.stdout.endswith("put back 3 records\n")
    ran = await answered(kafka, "y\n", "replay", "--all")
    assert "put back before, and not again: 3; name them" in ran.stdout
    assert ran.stdout.endswith("put back 1 record\n")
    back = [await records(kafka, topic) for topic in (topics.TOOL_CALLS, topics.REVIEWS, topics.NOTIFICATIONS)]
    assert [len(each) for each in back] == [2, 1, 1]
    assert ("__traction.replay.group", b"sink-chat") in back[2][0].headers
    assert await records(kafka, topics.OVERRIDES, 1) == []


async def test_named_letters_come_again_only_when_told(kafka: KafkaSettings) -> None:
    """Named once more they are left, with a code that says so; with --again they come twice."""
    first = (await some(kafka))[0]
    (outcome,) = await letters(kafka, "replay", first, "--yes")
    assert (outcome["outcome"], outcome["topic"], outcome["offset"]) == ("replayed", kafka.topic(topics.TOOL_CALLS), 0)
    (outcome,) = await letters(kafka, "replay", first, "--yes", code=3)
    assert outcome["outcome"] == "already"
    ran = await shown(kafka, "replay", first, "--yes")
    assert "put back before, and not again: 1; say --again" in ran.stdout
    (outcome,) = await letters(kafka, "replay", first, "--yes", "--again")
    assert outcome["outcome"] == "replayed"
    assert len(await records(kafka, topics.TOOL_CALLS)) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "name letters as PARTITION@OFFSET, or choose some"),
        (("0@1", "--all"), "one of them"),
        (("--all", "--topic", "reviews"), "one of them"),
        (("--all", "--again"), "--again wants the letters named"),
        (("--all", "--json"), "--json asks nothing"),
        (("--all", "--by", ""), "--by has 1 to"),
        (("--all", "--by", "\udcff"), "--by has 1 to"),
        (("agent.dead-letters-0",), "names no letter"),
        (("1@-1",), "names no letter"),
        (("--reason", "odd"), "is not one of"),
        (("--topic", "tool-cals"), "did you mean `tool-calls`?"),
        (("--topic", "agent.review"), "did you mean `reviews`?"),
        (("--topic", "nowhere"), "known are: "),
    ],
)
def test_what_cannot_be_meant(words: tuple[str, ...], said: str) -> None:
    """Nothing is asked of the brokers, and it is said what to do."""
    ran = CliRunner().invoke(traction, ["dead-letters", "replay", *words])
    assert ran.exit_code == 2
    assert said in ran.stderr


@pytest.mark.parametrize("words", [("--output", "x"), ("--raw", "--value"), ("--raw", "--json")])
def test_what_cannot_be_shown(words: tuple[str, ...]) -> None:
    """Options that contradict each other are refused."""
    ran = CliRunner().invoke(traction, ["dead-letters", "show", "0@1", *words])
    assert ran.exit_code == 2
    assert "--raw" in ran.stderr


def test_progress_is_told_when_it_takes_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is said at first, then how far it is, on standard error."""
    at = 100.0
    monkeypatch.setattr("streams.cli.letter_options.time.monotonic", lambda: at)
    progress = Progress()
    at = 104.9
    progress(came("t", bytes(2**20)))
    assert capsys.readouterr().err == ""
    at = 105.0
    progress(came("t", bytes(2**20)))
    assert capsys.readouterr() == ("", "read 2 records, 2 MiB so far\n")
