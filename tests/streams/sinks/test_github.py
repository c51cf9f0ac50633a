"""On GitHub nothing is written twice, and each notification finds its pull request, issue or incident."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from aiohttp import web

from schemas.common import Task
from streams.sinks.errors import Refused, Unavailable
from streams.sinks.github import MOST_PAGES, PAGE, GitHub, incident_marker
from streams.sinks.settings import GitHubSettings, read_sinks
from tests.streams.sinks import shapes
from tests.streams.sinks.conftest import MakeNotification, Receiver, status
from tests.streams.sinks.shapes import check

TOKEN = "ghp_secret"  # noqa: S105 - opens nothing


@dataclass
class Forge:
    """As much of GitHub's issues as is used: what the documentation of its REST API says of them."""

    issues: list[dict[str, Any]] = field(default_factory=list)
    comments: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    server: Receiver = field(default_factory=Receiver)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """List, or create."""
        assert request.headers["Authorization"] == f"Bearer {TOKEN}"
        assert request.headers["Accept"] == "application/vnd.github+json"
        assert request.headers["X-GitHub-Api-Version"] == "2022-11-28"
        assert request.headers["User-Agent"]
        path = request.path.removeprefix("/api/v3")
        kept = self.issues if path.endswith("/issues") else self.comments.setdefault(path, [])
        if request.method == "POST":
            content = msgspec.json.decode(await request.read())
            check(shapes.GITHUB_ISSUE if kept is self.issues else shapes.GITHUB_COMMENT, content)
            created = {**content, "number": len(kept) + 1, "extra": None}
            kept.append(created)
            return web.json_response(created, status=201)
        page, size = int(request.query["page"]), int(request.query["per_page"])
        assert request.query["since"] == "2026-11-22T09:15:41Z"
        wanted = set(filter(None, request.query.get("labels", "").split(",")))
        found = [each for each in reversed(kept) if wanted <= set(each.get("labels", []))]
        return web.json_response(found[(page - 1) * size : page * size])

    def texts(self, number: int = 1) -> list[str]:
        """Give the comments on an issue."""
        return [each["body"] for each in self.comments.get(f"/repos/acme/shop/issues/{number}/comments", [])]


@pytest.fixture
async def forge() -> AsyncIterator[Forge]:
    """Give a forge that runs."""
    found = Forge()
    found.server.handler = found.answer
    async with found.server:
        yield found


@pytest.fixture
async def sink(forge: Forge, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[GitHub]:
    """Give a sink that writes to it."""
    monkeypatch.setenv("T", TOKEN)
    table = {"type": "github", "token_env": "T", "api_url": f"{forge.server.url}/api/v3"}
    (settings,) = read_sinks({"forge": table}, "p")
    assert isinstance(settings, GitHubSettings)
    async with GitHub(settings, "p") as made:
        yield made


async def test_an_incident_is_an_issue(forge: Forge, sink: GitHub, notification: MakeNotification) -> None:
    """The first notification opens an issue with labels, further ones and the end are comments on it."""
    first = await sink.send(notification("n1", kind="escalate_human"))
    second = await sink.send(notification("n2"))
    over = await sink.send(notification("n3", kind="recovered", resolves=True))
    other = await sink.send(notification("n4", incident_id="i2"))

    assert first.told == "issue acme/shop#1"
    assert second.told == over.told == "a comment on acme/shop#1"
    assert other.told == "issue acme/shop#2"
    assert [each["title"] for each in forge.issues] == ["identical: 5 times in session s1"] * 2
    assert forge.issues[0]["labels"] == ["traction"]
    assert len(forge.texts()) == 2


@pytest.mark.parametrize("ref", [None, "#7"])
async def test_nothing_is_written_twice(
    forge: Forge, sink: GitHub, notification: MakeNotification, ref: str | None
) -> None:
    """A notification that is sent again, as after a crash, finds what was written of it."""
    for each in (notification("n1"), notification("n2")):
        told = notification(each.notification_id, task=Task(repo="acme/shop", ref=ref))
        await sink.send(told)
        again = await sink.send(told)
        assert again.told.endswith("is there already")
    assert (len(forge.issues), len(forge.texts(7)), len(forge.texts(1))) == ((0, 2, 0) if ref else (1, 0, 1))


async def test_the_end_of_what_was_not_told_is_nothing(
    forge: Forge, sink: GitHub, notification: MakeNotification
) -> None:
    """Without an issue of the incident there is none to comment on, and none is made to say that it is over."""
    sent = await sink.send(notification(kind="recovered", resolves=True))
    assert (sent.outcome, forge.issues) == ("skipped", [])


async def test_a_task_without_a_repository(forge: Forge, sink: GitHub, notification: MakeNotification) -> None:
    """It is skipped without a request."""
    sent = await sink.send(notification(task=Task(id="t")))
    assert (sent.outcome, forge.server.received) == ("skipped", [])


async def test_how_far_is_looked(forge: Forge, sink: GitHub, notification: MakeNotification) -> None:
    """An incident's issue is found on the last page that is looked at; one that lies beyond is made anew."""
    marker = incident_marker(notification())
    for newer, wanted in ((PAGE * MOST_PAGES - 1, "a comment on"), (PAGE * MOST_PAGES, "issue")):
        forge.issues[:] = [{"body": body, "number": 1, "labels": ["traction"]} for body in (marker, *["x"] * newer)]
        forge.comments.clear()
        assert (await sink.send(notification())).told.startswith(wanted)


async def test_issues_without_text_are_passed_over(forge: Forge, sink: GitHub, notification: MakeNotification) -> None:
    """GitHub gives null for an issue without a body."""
    forge.issues.append({"body": None, "number": 1, "labels": ["traction"]})
    assert (await sink.send(notification())).told == "issue acme/shop#2"


async def test_switched_off_issues_concern_one_repository(
    forge: Forge, sink: GitHub, notification: MakeNotification
) -> None:
    """GitHub says 410 where a repository has no issues; others go on, so the sink is not switched off."""
    forge.server.replies = [status(410)]
    with pytest.raises(Refused) as caught:
        await sink.send(notification())
    assert type(caught.value) is Refused


@pytest.mark.parametrize("text", ["<html>", '{"a": 1}', "\xff", ""])
async def test_an_answer_that_is_none(forge: Forge, sink: GitHub, notification: MakeNotification, text: str) -> None:
    """What a proxy says in GitHub's place is not taken for a list, and another try may get one."""
    forge.server.replies = [status(200, text)]
    with pytest.raises(Unavailable, match="not what GitHub's API answers"):
        await sink.send(notification())
    assert not forge.issues
