"""What each receiver gets fits what it documents, whatever the notification; signatures verify, and nothing acts."""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from standardwebhooks.webhooks import Webhook as Oracle
from standardwebhooks.webhooks import WebhookVerificationError

from schemas.common import Task
from schemas.encode import encode
from schemas.outputs import Notification, NotificationKind, Report
from streams.escalation.text import JOINER, markdown_text
from streams.sinks import alertmanager, file, github, pagerduty, slack, webhook
from streams.sinks.errors import InvalidSinks
from streams.sinks.secrets import Secret
from streams.sinks.settings import KINDS, WebhookSettings
from streams.sinks.words import cleaned, key, title, within
from tests.streams.sinks import shapes
from tests.streams.sinks.conftest import ISSUED, MakeNotification, Receiver, build, hostile
from tests.streams.sinks.shapes import check

FIRST, SECOND = (f"whsec_{base64.b64encode(bytes([number]) * size).decode()}" for number, size in ((1, 24), (2, 64)))
ROUTING_KEY = "R" * 32
WEEK = timedelta(days=7)

BARE = build(agent=None, task=None, text="", report=Report(title="", tried=(), times=0, look_at="", markdown=""))
"""A notification with as little in it as the contract lets there be."""

UNSEEN = build(
    "\u200b",
    **dict.fromkeys(("incident_id", "session_id", "task_id", "alert_id", "loop_id", "detector"), "\u200b"),
    task=Task(repo="\u2800"),
)
"""One whose names show nothing."""

CASES = [
    pytest.param(build(), id="a termination"),
    pytest.param(build(kind="recovered", severity="info", resolves=True), id="it is over"),
    pytest.param(BARE, id="hardly anything"),
    pytest.param(UNSEEN, id="names that show nothing"),
    pytest.param(hostile(), id="everything, and nasty"),
    pytest.param(msgspec.structs.replace(hostile(), kind="ended", resolves=True), id="nasty, and over"),
]


def strings(value: Any) -> list[str]:
    """Give every string in a JSON value."""
    if isinstance(value, dict):
        return [*value, *(each for inner in value.values() for each in strings(inner))]
    if isinstance(value, list):
        return [each for inner in value for each in strings(inner)]
    return [value] if isinstance(value, str) else []


def signed(url: str) -> WebhookSettings:
    """Give the settings of a webhook whose secret is in the variable S."""
    return msgspec.convert({"type": "webhook", "name": "x", "url": url, "secret_env": "S"}, WebhookSettings)


@pytest.mark.parametrize("told", CASES)
def test_standard_webhooks(told: Notification) -> None:
    """The body is as Standard Webhooks has it, below its limit, and its data is a notification again."""
    body = webhook.standard_body(told)

    found = check(shapes.STANDARD, body)

    assert len(body) <= webhook.MOST_BYTES
    assert found["type"] == f"traction.notification.{told.kind}"
    data = msgspec.convert(found["data"], Notification)
    assert (data.notification_id, data.session_id, data.resolves) == (
        told.notification_id, told.session_id, told.resolves
    )  # fmt: skip


def test_the_body_keeps_what_fits() -> None:
    """A long page is shortened before anything else, and what fits is left whole."""
    long = build(report=Report(title="t", tried=("a",), times=1, look_at="l", markdown="é" * 9_000))
    assert within(build(), 20_000) == cleaned(build())
    assert len(within(long, 20_000).report.markdown) == 8_000
    shorter = within(long, 15_000)
    assert (len(shorter.report.markdown), shorter.report.tried) == (2_000, ("a",))
    assert within(long, 3_000).report.markdown == ""
    exact = len(encode(cleaned(long)))
    assert within(long, exact) == cleaned(long)
    assert within(long, exact - 1) != cleaned(long)


async def test_signatures_verify(receiver: Receiver, notification: MakeNotification, monkeypatch: Any) -> None:
    """Each of several keys verifies the request, another does not, nor does one of these a changed body."""
    monkeypatch.setenv("S", f"{FIRST} {SECOND}")
    settings = signed(receiver.url)
    async with webhook.Webhook(settings, "p") as sink:
        await sink.send(notification("n1"))
        await sink.send(notification("n1"))

    for request in receiver.received:
        headers = {name.lower(): value for name, value in request.headers.items()}
        assert headers["webhook-id"] == "n1"
        for secret in (FIRST, SECOND):
            assert Oracle(secret).verify(request.body, headers)["type"] == "traction.notification.terminate"
            with pytest.raises(WebhookVerificationError):
                Oracle(secret).verify(request.body + b" ", headers)
        with pytest.raises(WebhookVerificationError):
            Oracle(base64.b64encode(b"x" * 24).decode()).verify(request.body, headers)


def test_signatures_are_the_oracle_s() -> None:
    """For the same id, time and body our signature is the one of the reference implementation."""
    (signing_key,) = webhook.signing_keys(Secret(FIRST), "p")
    when = datetime(2026, 1, 1, tzinfo=UTC)
    wanted = Oracle(FIRST).sign("n1", when, '{"a":"é"}')
    assert webhook.signatures((signing_key,), "n1", int(when.timestamp()), '{"a":"é"}'.encode()) == wanted


async def test_each_try_has_its_own_time(receiver: Receiver, notification: MakeNotification, monkeypatch: Any) -> None:
    """A repeated try has the same id and the time at which it is made."""
    monkeypatch.setenv("S", FIRST)
    times = iter([100.9, 200.0])
    settings = signed(receiver.url)
    async with webhook.Webhook(settings, "p", now=lambda: next(times)) as sink:
        await sink.send(notification())
        await sink.send(notification())
    assert [each.headers["webhook-timestamp"] for each in receiver.received] == ["100", "200"]
    assert receiver.count() == {"n1": 2}


@pytest.mark.parametrize(("size", "good"), [(23, False), (24, True), (64, True), (65, False)])
def test_sizes_of_signing_keys(size: int, good: object) -> None:
    """Keys of 24 to 64 bytes are taken."""
    secret = Secret(f"whsec_{base64.b64encode(b'k' * size).decode()}")
    if good:
        assert len(webhook.signing_keys(secret, "p")[0]) == size
    else:
        with pytest.raises(InvalidSinks):
            webhook.signing_keys(secret, "p")


@pytest.mark.parametrize("told", CASES)
def test_the_form_of_alertmanager_s_webhook(told: Notification) -> None:
    """A receiver of Alertmanager's webhooks can read ours."""
    found = check(shapes.ALERTMANAGER_WEBHOOK, alertmanager.webhook_body(told, "x"))
    assert found["status"] == ("resolved" if told.resolves else "firing")


async def test_the_form_of_alertmanager_s_webhook_needs_no_secret(
    receiver: Receiver, notification: MakeNotification
) -> None:
    """Without a secret it is sent unsigned, with the idempotency key all the same."""
    async with webhook.Webhook(WebhookSettings(name="x", url=receiver.url, format="alertmanager"), "p") as sink:
        await sink.send(notification())
    (request,) = receiver.received
    check(shapes.ALERTMANAGER_WEBHOOK, request.body)
    assert receiver.count() == {"n1": 1}
    assert "webhook-signature" not in request.headers


@pytest.mark.parametrize("told", CASES)
def test_alerts(told: Notification) -> None:
    """What is posted to Alertmanager fits its API."""
    check(shapes.ALERTMANAGER, alertmanager.posted(told, KINDS, WEEK))


def test_a_graver_alert_takes_the_place_of_a_milder_one(notification: MakeNotification) -> None:
    """Within an incident one severity fires at a time, and when it is over none does."""
    labels: dict[str, dict[str, Any]] = {}

    def post(told: Notification) -> dict[str, bool]:
        for alert in alertmanager.posted(told, KINDS, WEEK):
            begins, ends = (datetime.fromisoformat(alert[each]) for each in ("startsAt", "endsAt"))
            firing = alert["labels"]["severity"] == told.severity and not told.resolves
            # What has ended has by a clock that is a minute behind, too.
            assert (begins, ends) == ((ISSUED, ISSUED + WEEK) if firing else (ISSUED - alertmanager.SKEW,) * 2)
            labels[msgspec.json.encode(alert["labels"]).decode()] = alert
        return {
            each["labels"]["severity"]: datetime.fromisoformat(each["endsAt"]) > told.issued_at + timedelta(days=6)
            for each in labels.values()
        }

    called = notification(kind="escalate_human", severity="error", session_id="s1", detector="identical")
    stopped = notification(kind="terminate", severity="critical", session_id="s2", detector="cycle")
    over = notification(kind="recovered", severity="info", resolves=True)
    assert post(called) == {"error": True, "critical": False}
    assert post(stopped) == {"error": False, "critical": True}
    assert post(over) == {"error": False, "critical": False}
    assert len(labels) == 2


def test_every_kind_has_its_severity() -> None:
    """A kind that is added and opens or goes on with an incident has a severity here, and no resolving one has."""
    kinds = set(NotificationKind.__args__)  # type: ignore[attr-defined]
    assert set(alertmanager.SEVERITIES) == kinds - {"recovered", "ended", "resumed", "false_alarm"}


@pytest.mark.parametrize("told", CASES)
def test_slack(told: Notification) -> None:
    """The message fits Slack's limits, and nothing in it is a mention, a link or markup that is not ours."""
    found = check(shapes.SLACK, slack.message(told))
    texts = [*strings([each.get("text") or each for each in found["blocks"]]), found["text"]]
    assert not [text for text in texts if re.search("[<>]", text)]
    assert not [text for text in texts if re.search(r"&(?!amp;|lt;|gt;)", text)]
    for text in (block["text"]["text"] for block in found["blocks"] if block["type"] == "section" and "text" in block):
        assert text.count("```") in {0, 2}
        assert "`" not in text.replace("```", "").replace("\u2060`", "")


def test_the_commands_are_told_as_they_are_typed() -> None:
    """Slack and PagerDuty say where to begin and give the commands, those that cannot be shown whole left out."""
    typed = ("traction sessions resume s1", "traction tasks clear 'a&b'")
    told = build(report=msgspec.structs.replace(build().report, commands=(*typed, "traction x '`'", "x" * 501, "a\nb")))
    found = slack.message(told)
    check(shapes.SLACK, found)
    texts = strings(found["blocks"])
    assert f"*{slack.ANSWER}*\n```{typed[0]}\ntraction tasks clear 'a&amp;b'```" in texts
    assert f"Where to begin: {told.report.look_at}" in texts
    details = pagerduty.event(told, ROUTING_KEY)["payload"]["custom_details"]
    assert (details["look at"], details["commands"]) == (told.report.look_at, [*typed, "traction x '`'"])


@pytest.mark.parametrize(("length", "shown"), [(293, 10), (294, 9)])
def test_no_command_is_cut(length: int, shown: int) -> None:
    """As many commands as a section of Slack's takes are shown, the last of them whole."""
    lines = tuple(f"{number}{'c' * (length - 1)}" for number in range(10))
    found = slack.message(build(report=msgspec.structs.replace(build().report, commands=lines)))
    (text,) = [each for each in strings(check(shapes.SLACK, found)) if slack.ANSWER in each]
    assert text.endswith("\n".join(lines[:shown]) + "```")


def test_escapes_are_not_cut() -> None:
    """A text is cut before an escape that does not fit, and as long as it may be."""
    assert slack.escape("a" * 10, 10) == "a" * 10
    assert slack.escape("a" * 11, 10) == "a" * 9 + "…"
    assert slack.escape("aaaaaa&", 10) == "aaaaaa…"
    assert slack.escape("aaaaa&", 10) == "aaaaa&amp;"
    assert slack.escape("<b>", 100) == "&lt;b&gt;"


@pytest.mark.parametrize("told", CASES)
def test_pagerduty(told: Notification) -> None:
    """The event fits the Events API, is small enough, and resolves the incident that it triggered."""
    found = check(shapes.PAGERDUTY, pagerduty.event(told, ROUTING_KEY))
    assert len(msgspec.json.encode(found)) < 512_000
    assert found["event_action"] == ("resolve" if told.resolves else "trigger")
    assert found["dedup_key"] == key(told.incident_id)


@pytest.mark.parametrize("told", CASES)
def test_github(told: Notification) -> None:
    """Issues and comments fit GitHub's limits, begin with our markers, and nothing can pass for one."""
    body = github.body(told)
    check(shapes.GITHUB_COMMENT, {"body": body})
    check(shapes.GITHUB_ISSUE, {"title": title(told), "body": body, "labels": ["traction"]})
    first, second, _ = body.split("\n", 2)
    assert (first, second) == (github.incident_marker(told), github.notification_marker(told))
    assert re.fullmatch(r"<!-- traction incident [\w-]+ -->", first)
    assert re.fullmatch(r"<!-- traction notification [\w-]+ -->", second)


@pytest.mark.parametrize("told", CASES)
def test_lines_of_json(told: Notification) -> None:
    """A line is one line, and a notification again."""
    written = file.written(told, "jsonl")
    assert written.endswith(b"\n")
    assert written.count(b"\n") == 1
    assert msgspec.json.decode(written, type=Notification).notification_id == told.notification_id


def test_pages_notify_nobody() -> None:
    """A page comes with the joiners that keep mentions, references and links from being any, wherever it is told."""
    page = markdown_text("@everyone, @acme/team: see #12, GH-12, acme/shop#12, https://evil.test and www.evil.test")
    told = build(report=msgspec.structs.replace(build().report, markdown=page))
    assert page.count(JOINER) == 7
    assert page in github.body(told)
    assert page in file.written(told, "markdown").decode()
    assert cleaned(told).report.markdown == page
    assert msgspec.json.decode(webhook.standard_body(told))["data"]["report"]["markdown"] == page


@pytest.mark.parametrize("told", CASES)
def test_no_text_hides_anything(told: Notification) -> None:
    """No text that a person is shown has control, direction or zero-width characters, but for the joiners of ours."""
    shown = [
        *strings(slack.message(told)),
        *strings(pagerduty.event(told, ROUTING_KEY)),
        *strings(msgspec.to_builtins(alertmanager.posted(told, KINDS, WEEK))),
        github.body(told),
        file.written(told, "markdown").decode(),
    ]
    assert not [text for text in shown if re.search("[\x00-\x08\x0b-\x1f\x7f\u200b\u202e]", text)]


@pytest.mark.parametrize(
    ("ref", "own", "fixed", "wanted"),
    [
        (None, "a/b", None, ("a/b", None)),
        ("#12", "a/b", None, ("a/b", 12)),
        ("pull/12", "a/b", None, ("a/b", 12)),
        ("refs/pull/12/head", "a/b", None, ("a/b", 12)),
        ("issues/12", "a/b", None, ("a/b", 12)),
        ("c/d#12", "a/b", None, ("c/d", 12)),
        ("https://github.com/c/d/pull/12", "a/b", None, ("c/d", 12)),
        ("https://ghe.test/c/d/issues/12#issuecomment-1", None, None, ("c/d", 12)),
        ("https://github.com/c/d/pull/12/files", None, None, ("c/d", 12)),
        ("main", "a/b", None, ("a/b", None)),
        ("feature/pull/12", "a/b", None, ("a/b", None)),
        ("#0", "a/b", None, ("a/b", None)),
        ("#12", None, None, None),
        (None, None, None, None),
        (None, "shop", None, None),
        (None, "../..", None, None),
        (None, "./shop", None, None),
        ("a/.#12", None, None, None),
        ("../..#12", "a/b", "c/d", ("c/d", None)),
        (None, "a/b?x=1", None, None),
        ("#12", "a/b", "a/b", ("a/b", 12)),
        ("#12", "a/b", "c/d", ("c/d", None)),
        ("#12", None, "c/d", ("c/d", 12)),
        (None, None, "c/d", ("c/d", None)),
    ],
)
def test_where_a_notification_belongs(
    ref: str | None, own: str | None, fixed: str | None, wanted: tuple[str, int | None] | None
) -> None:
    """A number is found in every way of writing it, counts in its own repository alone, and a path is never one."""
    found = github.find_target(build(task=Task(repo=own, ref=ref)), fixed)
    assert (found and (found.repo, found.number)) == wanted


def test_keys_are_safe() -> None:
    """An id that could leave a header or a marker becomes a digest, and different ones different digests."""
    assert key("a" * 128) == "a" * 128
    assert len(key("a" * 129)) == 32
    assert len({key(each) for each in ("a\r\nb", "a b", "-->", "\ud800", "", "a.b")}) == 6
    assert all(re.fullmatch("[0-9a-f]{32}", key(each)) for each in ("a\r\nb", "-->", ""))


def test_times_are_utc() -> None:
    """The time of the notification is the one that is sent."""
    assert check(shapes.STANDARD, webhook.standard_body(build()))["timestamp"] == "2026-11-30T09:15:41Z"
    assert pagerduty.event(build(), ROUTING_KEY)["payload"]["timestamp"] == ISSUED.isoformat()
