"""Alerts are printed as they come, as chosen, and one that was wrong is said to be, to the session it was about."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from schemas import topics
from schemas.common import Task
from schemas.decode import decode
from streams.cli import traction
from streams.cli.alerts import Wanted
from tests.processes import TRACTION, TractionProcess
from tests.streams.asking_kit import ask, told
from tests.streams.asking_kit import lines as ask_lines
from tests.streams.outputs_kit import alert, answers, now, put, put_raw, soon
from tests.waiting import until

if TYPE_CHECKING:
    from streams.kafka import KafkaSettings

PAST = ("alerts", "tail", "--since", "1h", "--no-follow")

SOME = (
    alert("a1", task=Task(repo="acme/shop")),
    alert("a2", level="terminate", task_id="t2", session_id="s2"),
    alert("a3", level="recovered", task_id="t3", session_id="s3", detector="alternation", task=Task(repo="acme/docs")),
)


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({}, "a1 a2 a3"),
        ({"levels": ("terminate", "recovered")}, "a2 a3"),
        ({"detectors": ("alternation",)}, "a3"),
        ({"session_id": "s2"}, "a2"),
        ({"task_id": "t3"}, "a3"),
        ({"repo": "acme/shop"}, "a1"),
        ({"repo": "acme/shop", "levels": ("terminate",)}, ""),
    ],
)
def test_alerts_are_chosen(fields: dict[str, Any], wanted: str) -> None:
    """Each choice lets through what fits it; several of one kind what fits any."""
    everything: dict[str, Any] = {"levels": (), "detectors": (), "session_id": None, "task_id": None, "repo": None}
    chosen = Wanted(**everything | fields)
    assert " ".join(each.alert_id for each in SOME if chosen.passes(each)) == wanted


async def test_nothing_on_a_topic_steers_the_terminal(kafka: KafkaSettings) -> None:
    """Printed or as JSON, control and invisible characters of a record do not get out, and a line is one line."""
    nasty = "\x1b[31m \x9b31m \x07 \x7f \u202e \u061c \u2066 \u200b \u2028 \x85 \r\n x"
    names = {"session_id": nasty, "task_id": nasty, "detector": nasty, "loop_id": nasty}
    await put(kafka, alert(nasty, **names, reasoning=nasty, guidance=nasty))
    (printed, as_json) = [(await ask(kafka, *PAST, *more, ladders=False)).stdout for more in ((), ("--json",))]
    for text in (printed, as_json):
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b\u202e\u2028\u2066]", text)
        assert len(text.splitlines()) == 1
    assert json.loads(as_json)["session_id"] == nasty


async def test_what_was_is_printed_by_time(kafka: KafkaSettings) -> None:
    """One line each, oldest first over all partitions, with the alert's id; with --json the alert as it is."""
    for each in SOME:
        await put(kafka, each)
        await asyncio.sleep(0.002)
    await put_raw(kafka, kafka.topic(topics.ALERTS), "t1", b"{}")
    ran = await ask(kafka, *PAST, ladders=False)
    printed = ran.stdout.splitlines()
    assert [line.rpartition("alert ")[2] for line in printed] == ["a1]", "a2]", "a3]"]
    assert "\x1b" not in ran.stdout
    assert ran.stderr == ""
    assert [each["alert_id"] for each in await ask_lines(kafka, *PAST, ladders=False)] == ["a1", "a2", "a3"]
    only = (await ask(kafka, *PAST, "--task", "t3", "--repo", "acme/docs", "--json", ladders=False)).stdout
    assert decode(topics.ALERTS, only.encode()) == SOME[2]
    assert (await ask(kafka, *PAST, "--level", "notice", ladders=False)).stdout == ""


async def test_alerts_are_followed_until_interrupted(kafka: KafkaSettings) -> None:
    """Those written from now on are printed at once, earlier ones are not, and Ctrl-C ends it with 130."""
    await put(kafka, alert("before"))
    process = TractionProcess(
        TRACTION, "alerts", "tail", "--bootstrap", kafka.bootstrap, "--prefix", kafka.prefix, "--level", "warn"
    )
    try:
        await until(lambda: "following" in process.log)
        await put(kafka, alert("other", level="notice"), alert("after"))
        await until(lambda: bool(process.lines))
        assert await process.end(signal.SIGINT) == 130
        assert [line.rpartition("alert ")[2] for line in process.lines] == ["after]"]
        assert "Traceback" not in process.log
    finally:
        process.kill()


async def test_an_alert_is_said_to_be_wrong(kafka: KafkaSettings) -> None:
    """The record goes to the alert's session, answers it, and holds as long as was said, or without an end."""
    await put(kafka, *SOME)
    ran = await ask(kafka, "alerts", "wrong", "a2", "--quiet-for", "2h", "--reason", "meant", ladders=False)
    assert "identical says nothing of this loop until" in ran.stdout
    await ask(kafka, "alerts", "wrong", "a3", "--by", "dana", ladders=False)
    first, second = sorted(await answers(kafka), key=lambda each: each.session_id)
    assert (first.action, first.session_id, first.answers, first.reason) == ("false_alarm", "s2", "a2", "meant")
    assert [each.task and each.task.id for each in (first, second)] == [
        each.task_id for each in SOME if each.alert_id in {"a2", "a3"}
    ]
    assert first.expires_at is not None
    assert soon(hours=1, minutes=59) < first.expires_at < soon(hours=2, minutes=1)
    assert first.occurred_at < now()
    assert (second.session_id, second.answers, second.actor, second.expires_at) == ("s3", "a3", "dana", None)


async def test_an_alert_that_is_not_there(kafka: KafkaSettings) -> None:
    """Nothing is written, and ids that begin so are named."""
    await put(kafka, *SOME)
    said = await told(kafka, "alerts", "wrong", "a", ladders=False)
    assert said.startswith("nothing is known of alert a. ")
    assert said.endswith("Did you mean a1 or a2 or a3?")
    assert await answers(kafka) == []


def test_not_following_needs_a_beginning() -> None:
    """It would print nothing and end."""
    ran = CliRunner().invoke(traction, ["alerts", "tail", "--no-follow"])
    assert ran.exit_code == 2
    assert "--no-follow goes with --since" in ran.stderr
