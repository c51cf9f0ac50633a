"""Sessions can be seen as they stand and decided for; what is written is for the session that was meant."""

from __future__ import annotations

import asyncio
import getpass
from typing import cast

import msgspec
import pytest
from click.testing import CliRunner

from schemas import topics
from schemas.events import Control, Override
from streams.cli import traction
from streams.kafka import KafkaSettings
from tests.streams.asking_kit import ask, group, ladder, lines, make_ladders, pending, put_ladder, told
from tests.streams.outputs_kit import (
    alert,
    answers,
    directive,
    found,
    known_flapping,
    now,
    put,
    put_raw,
    soon,
    termination,
)


async def overrides(kafka: KafkaSettings) -> list[Override | None]:
    """Read all exceptions."""
    return [cast("Override | None", each) for each in await found(kafka, topics.OVERRIDES)]


async def test_sessions_are_listed_as_they_stand(kafka: KafkaSettings) -> None:
    """From alerts and ladders, the latest first, as a table and as objects; none where there is none."""
    ran = await ask(kafka, "sessions", "list")
    assert ran.stdout.startswith("no session was alerted about")
    await put(kafka, alert("a1"), alert("a2", level="terminate", task_id="t1"))
    await make_ladders(kafka)
    await put_ladder(kafka, ladder(pending=pending(), rung="terminate"))
    await put_ladder(kafka, ladder("s2", "t2", cooldown_ms=round(soon(minutes=5).timestamp() * 1_000)), "t2")

    rows = {row["session_id"]: row for row in await lines(kafka, "sessions", "list")}
    assert (rows["s1"]["state"], rows["s1"]["attempt"], rows["s1"]["alerts"]) == ("waiting", 2, 2)
    assert (rows["s1"]["level"], rows["s1"]["alert_id"]) == ("terminate", "a2")
    assert (rows["s2"]["state"], rows["s2"]["task_id"], rows["s2"]["alerts"]) == ("cooling_down", "t2", 0)

    ran = await ask(kafka, "sessions", "list")
    head, *shown = ran.stdout.splitlines()
    assert head.split()[0] == "SESSION"
    assert {line.split()[0] for line in shown} == {"s1", "s2"}
    assert "nobody has answered yet: asked 2 times" in ran.stdout
    waited_for = await lines(kafka, "sessions", "list", "--since", "0.001s")
    assert {row["session_id"] for row in waited_for} == {"s1", "s2"}


async def test_a_refusal_is_told_as_one(kafka: KafkaSettings) -> None:
    """In the list and where the session is shown; asked once is worded so, and nobody waits any more."""
    await put(kafka, alert("a1"))
    await make_ladders(kafka)
    await put_ladder(kafka, ladder(pending=msgspec.structs.replace(pending(), attempt=1)))
    assert "asked once, next at" in (await ask(kafka, "sessions", "list")).stdout
    await put_ladder(kafka, ladder(unstopped=pending()))
    assert [row["state"] for row in await lines(kafka, "sessions", "list")] == ["unanswered"]
    await put(kafka, Control(event_id="c1", session_id="s1", occurred_at=now(), action="refused", answers="x1"))
    assert [row["state"] for row in await lines(kafka, "sessions", "list")] == ["refused"]
    assert "\nnot stopped: refused" in (await ask(kafka, "sessions", "show", "s1")).stdout


async def test_the_timeout_holds_for_connecting() -> None:
    """What listens and never answers is given up when the time is over, and named."""
    hold = asyncio.Event()

    async def silent(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await hold.wait()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        kafka = KafkaSettings(bootstrap=f"127.0.0.1:{server.sockets[0].getsockname()[1]}")
        said = await told(kafka, "tasks", "show", "t1", "--timeout", "0.5")
        hold.set()
    assert kafka.bootstrap in said
    assert "no answer within 0.5 s" in said


async def test_a_ladder_of_another_release_is_left_out(kafka: KafkaSettings) -> None:
    """The list is made of what can be read."""
    await make_ladders(kafka)
    await put_ladder(kafka, ladder())
    await put_raw(kafka, f"{group(kafka)}-ladders", "t2", b"\x92\x63\x90")
    assert [row["session_id"] for row in await lines(kafka, "sessions", "list")] == ["s1"]


async def test_everything_about_a_session_is_shown(kafka: KafkaSettings) -> None:
    """Its alerts, directives, terminations, answers and exceptions, of no other session, and the latest report."""
    await put(kafka, alert("a1"), alert("other", session_id="s2"), directive(), termination())
    ran = await ask(kafka, "sessions", "resume", "s1", "--by", "dana", "--reason", "the test was wrong")
    assert ran.return_value == 0
    await put(kafka, known_flapping(), Override(scope="session:s1", set_at=now(), mute=True))

    (shown,) = await lines(kafka, "sessions", "show", "s1")
    assert [entry["kind"] for entry in shown["timeline"]] == [
        "alert", "directive", "termination", "control", "known flapping", "override",
    ]  # fmt: skip
    assert shown["tasks"] == ["t1"]
    assert shown["standing"]["state"] == "muted"
    assert shown["report"]["title"] == "identical: 5 times in session s1"

    ran = await ask(kafka, "sessions", "show", "s1")
    assert "resume, by dana: the test was wrong" in ran.stdout
    assert "read(a.py) was called\n\n    read(a.py)\n" in ran.stdout
    assert "other" not in ran.stdout


async def test_a_session_is_found_by_its_alerts_or_answers_alone(kafka: KafkaSettings) -> None:
    """Where nothing else names its task, all alerts are looked at; one that was only decided for is known, too."""
    await put(kafka, alert("a1"))
    (shown,) = await lines(kafka, "sessions", "show", "s1")
    assert (shown["tasks"], len(shown["timeline"])) == (["t1"], 1)
    assert (await ask(kafka, "sessions", "terminate", "never-spoken-of", "--force")).return_value == 0
    (shown,) = await lines(kafka, "sessions", "show", "never-spoken-of")
    assert (shown["tasks"], shown["standing"], shown["report"]) == ([], None, None)


async def test_what_is_not_known_is_said(kafka: KafkaSettings) -> None:
    """Nothing is written for a session that is not known unless forced; ids that look like it are named."""
    await put(kafka, alert("a1", session_id="claude-6f0e2a91"))
    assert "Did you mean claude-6f0e2a91?" in await told(kafka, "sessions", "show", "claude-6f0e2a19")
    for command in (("resume",), ("terminate",), ("mute", "--for", "2h")):
        said = await told(kafka, "sessions", command[0], "claude", *command[1:])
        assert said.startswith("nothing is known of session claude. ")
        assert "--force" in said
    assert await answers(kafka) == []
    assert await overrides(kafka) == []
    for command in (("resume",), ("terminate",), ("mute", "--for", "2h")):
        assert not (await ask(kafka, "sessions", command[0], "claude", *command[1:], "--force")).exception
    assert [each.action for each in await answers(kafka)] == ["resume", "terminate"]
    assert len(await overrides(kafka)) == 1


async def test_decisions_are_control_records(kafka: KafkaSettings) -> None:
    """Keyed by the session, each with an id of its own, who decided and why: the login name where nobody is named."""
    await put(kafka, alert())
    assert "counts anew" in (await ask(kafka, "sessions", "resume", "s1", "--by", "dana", "--reason", "fixed")).stdout
    assert "a termination follows" in (await ask(kafka, "sessions", "terminate", "s1")).stdout
    one, other = await answers(kafka)
    assert (one.action, one.session_id, one.actor, one.reason) == ("resume", "s1", "dana", "fixed")
    assert one.task is not None
    assert one.task.id == alert().task_id, "the task whose ladder it is about"
    assert (other.action, other.session_id, other.actor, other.reason) == ("terminate", "s1", getpass.getuser(), None)
    assert one.event_id != other.event_id


async def test_a_session_is_not_terminated_twice(kafka: KafkaSettings) -> None:
    """While a termination waits for its answer, nothing is written, and it is named."""
    await make_ladders(kafka)
    await put_ladder(kafka, ladder(pending=pending()))
    ran = await ask(kafka, "sessions", "terminate", "s1")
    assert (ran.return_value, await answers(kafka)) == (0, [])
    assert "termination x1, attempt 2, waits for an answer" in ran.stdout


async def test_muting_keeps_what_an_exception_says(kafka: KafkaSettings) -> None:
    """Limits and mode stay when it is muted and when it is heard again; what has expired does not."""
    await put(kafka, alert(), Override(scope="session:s1", set_at=now(), limits={"identical.warn": 9}, mode="explore"))
    until = soon(hours=3).isoformat()
    ran = await ask(kafka, "sessions", "mute", "s1", "--until", until, "--by", "dana")
    assert "other settings are kept" in ran.stdout
    muted = (await overrides(kafka))[-1]
    assert muted is not None
    assert (muted.mute, muted.limits, muted.mode, muted.set_by) == (True, {"identical.warn": 9}, "explore", "dana")
    assert muted.expires_at is not None
    assert muted.expires_at.isoformat() == until

    await ask(kafka, "sessions", "mute", "s1", "--off")
    heard = (await overrides(kafka))[-1]
    assert heard is not None
    assert (heard.mute, heard.limits, heard.expires_at) == (False, {"identical.warn": 9}, muted.expires_at)

    await put(
        kafka, Override(scope="session:s1", set_at=now(), limits={"identical.warn": 9}, expires_at=soon(hours=-1))
    )
    assert "other settings" not in (await ask(kafka, "sessions", "mute", "s1")).stdout
    for_good = (await overrides(kafka))[-1]
    assert for_good is not None
    assert (for_good.mute, for_good.limits, for_good.expires_at) == (True, {}, None)

    assert "removed" in (await ask(kafka, "sessions", "mute", "s1", "--off")).stdout
    written = await overrides(kafka)
    assert written[-1] is None
    assert "nothing was written" in (await ask(kafka, "sessions", "mute", "s1", "--off")).stdout
    assert len(await overrides(kafka)) == len(written)


async def test_waiting_ends_when_the_effect_is_seen(kafka: KafkaSettings) -> None:
    """A termination of this session and no other, a ladder without it; 3 when there is none in time."""
    await put(kafka, alert(), termination("old"))
    await make_ladders(kafka)
    await put_ladder(kafka, ladder())
    for action in ("terminate", "resume"):
        ran = await ask(kafka, "sessions", action, "s1", "--wait", "0.5")
        assert ran.return_value == 3
        assert "not seen within 0.5 s" in ran.stderr

    async def answer(action: str) -> None:
        while sum(each.action == action for each in await answers(kafka)) < 2:  # noqa: ASYNC110 - Kafka tells nobody
            await asyncio.sleep(0.1)
        if action == "terminate":
            await put(kafka, termination("elsewhere", session_id="s3"), termination("new"))
        else:
            await put_ladder(kafka, ladder("s2"))

    for action, seen in (("terminate", "termination new was written"), ("resume", "its ladder is taken down")):
        answering = asyncio.create_task(answer(action))
        ran = await ask(kafka, "sessions", action, "s1", "--wait", "60")
        await answering
        assert ran.return_value == 0
        assert ran.stdout.splitlines()[-1] == f"done: {seen}"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("mute", "s", "--for", "2h", "--off"), "exclude each other"),
        (("mute", "s", "--for", "2 hours"), "number and s, m, h, d or w"),
        (("mute", "s", "--for", "3651d"), "at most 3650d"),
        (("mute", "s", "--for", "0s"), "not above 0"),
        (("mute", "s", "--until", "2026-12-24T18:00:00"), "no time with an offset"),
        (("mute", "s", "--until", "tomorrow"), "no time with an offset"),
        (("mute", "s", "--until", "2020-01-01T00:00:00Z"), "not to come"),
        (("resume", "s" * 257), "1 to 256 characters"),
        (("resume", "s", "--by", "d" * 257), "--by has at most 256"),
        (("resume", "s", "--reason", "d" * 4097), "--reason has at most 4096"),
        (("terminate", "s", "--wait", "0"), "--wait"),
    ],
)
def test_wrong_use_is_told(words: tuple[str, ...], said: str) -> None:
    """Before anything is asked of Kafka: which option, and what it takes."""
    ran = CliRunner().invoke(traction, ["sessions", *words, "--bootstrap", "127.0.0.1:1"])
    assert ran.exit_code == 2
    assert said in ran.stderr


def test_the_longest_that_is_taken(bootstrap: str, prefix: str) -> None:
    """Ids, names and reasons of the contract's lengths get as far as Kafka."""
    words = ["resume", "s" * 256, "--by", "d" * 256, "--reason", "d" * 4096]
    ran = CliRunner().invoke(traction, ["sessions", *words, "--bootstrap", bootstrap, "--prefix", prefix])
    assert ran.exit_code == 1
    assert "missing" in ran.stderr
