"""Writes notifications to GitHub: a comment on the task's pull request or issue, else an issue for each incident.

Each text carries hidden markers with the ids, and is looked for before it is written: what a crash left undone is done,
and what was done before it is not done twice. It closes nothing, and writes nothing but issues and comments.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, TypeVar
from urllib.parse import urlencode

import msgspec
from msgspec import Meta

from streams.escalation.text import clean_page, line, markdown_text
from streams.sinks.base import HttpSink, Sent
from streams.sinks.errors import Gone, InvalidSinks, Refused, Unavailable
from streams.sinks.http import Request
from streams.sinks.settings import GitHubSettings
from streams.sinks.words import MOST_TEXT, key, title

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from schemas.outputs import Notification

MOST_BODY = 65_536
"""Characters of an issue's or comment's body that GitHub takes."""

MOST_PAGE = 50_000
"""Characters of our page in it: what is left is for the sentence, the markers and escapes."""

MOST_ANSWER = 8 * 2**20
"""Bytes of one page of a listing: `PAGE` bodies of `MOST_BODY` characters, with room for the rest."""

PAGE = 50
MOST_PAGES = 10
"""How much of a listing is looked through: the newest 500, which since its begin no incident should exceed."""

SINCE = timedelta(days=8)
"""How far back an incident may have begun: a day more than escalation remembers an idle task."""

_TOKEN = re.compile(r"[!-~]+")
_PART = r"[A-Za-z0-9_.-]{1,100}"
_REPO = re.compile(rf"{_PART}/{_PART}")
_REF = re.compile(
    rf"(?:https?://[^/\s]+/(?P<repo_url>{_PART}/{_PART})/(?:pull|issues)/|(?P<repo>{_PART}/{_PART})#|#|"
    r"(?:refs/)?(?:pull|issues)/)(?P<number>[1-9][0-9]{0,9})(?:[/?#].*)?"
)


Answered = TypeVar("Answered")


class Item(msgspec.Struct):
    """What is read of an issue or comment."""

    body: str | None = None
    number: Annotated[int, Meta(ge=0)] = 0


@dataclass(frozen=True, slots=True)
class Target:
    """Where a notification belongs. ``number`` is that of a pull request or issue; None: an issue of its own."""

    repo: str
    number: int | None


class GitHub(HttpSink[GitHubSettings]):
    """Repositories on GitHub.

    Args:
        settings: its settings.
        place: file and table of the settings, for messages.

    Raises:
        InvalidSinks: the token is missing, or is none.
    """

    def __init__(self, settings: GitHubSettings, place: str) -> None:
        super().__init__(settings, place, settings.api_url)
        if not _TOKEN.fullmatch(self.secrets["token"].reveal):
            raise InvalidSinks(f"{place}: the token is not one word of ASCII characters; write it and nothing else")
        self._headers = {
            "Authorization": f"Bearer {self.secrets['token'].reveal}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": settings.api_version,
        }

    async def send(self, notification: Notification) -> Sent:
        """Write a comment or an issue, unless it is there already.

        Raises:
            Undelivered: it was not taken.
        """
        target = find_target(notification, self.settings.repo)
        if target is None:
            return Sent("the task names no repository, and the settings do not", outcome="skipped")
        if target.number is not None:
            return await self._comment(notification, target.repo, target.number)
        issue = await self._issue(notification, target.repo)
        if issue is not None:
            if notification_marker(notification) in (issue.body or ""):
                return Sent(f"issue {target.repo}#{issue.number} is there already")
            return await self._comment(notification, target.repo, issue.number)
        if notification.resolves:
            return Sent(f"there is no issue of this incident in {target.repo}", outcome="skipped")
        content = {"title": title(notification), "body": body(notification), "labels": self.settings.labels}
        created = await self._write(f"/repos/{target.repo}/issues", content)
        return Sent(f"issue {target.repo}#{created.number}")

    async def _issue(self, notification: Notification, repo: str) -> Item | None:
        """Find the issue of an incident."""
        query = {"state": "all", "since": _since(notification), "sort": "updated", "direction": "desc"}
        if self.settings.labels:
            query["labels"] = ",".join(self.settings.labels)
        async for issue in self._listed(f"/repos/{repo}/issues", query):
            if incident_marker(notification) in (issue.body or ""):
                return issue
        return None

    async def _comment(self, notification: Notification, repo: str, number: int) -> Sent:
        """Comment on an issue or pull request, unless that was done."""
        path = f"/repos/{repo}/issues/{number}/comments"
        async for comment in self._listed(path, {"since": _since(notification)}):
            if notification_marker(notification) in (comment.body or ""):
                return Sent(f"a comment on {repo}#{number} is there already")
        await self._write(path, {"body": body(notification)})
        return Sent(f"a comment on {repo}#{number}")

    async def _listed(self, path: str, query: dict[str, str]) -> AsyncIterator[Item]:
        for page in range(1, MOST_PAGES + 1):
            asked = urlencode({**query, "per_page": PAGE, "page": page})
            found = await self._ask(f"{path}?{asked}", None, list[Item])
            for item in found:
                yield item
            if len(found) < PAGE:
                return

    async def _write(self, path: str, content: Mapping[str, object]) -> Item:
        return await self._ask(path, msgspec.json.encode(content), Item)

    async def _ask(self, path: str, content: bytes | None, kind: type[Answered]) -> Answered:
        try:
            answer = await self.http.send(
                Request(f"{self.url.rstrip('/')}{path}", content, self._headers, need=MOST_ANSWER)
            )
        except Gone as problem:
            # Said of one repository whose issues are switched off; others go on.
            raise Refused(str(problem), status=problem.status, shown=problem.shown) from None
        try:
            return msgspec.json.decode(answer.body, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise Unavailable(f"the answer {answer.status} is not what GitHub's API answers") from None


def _since(notification: Notification) -> str:
    return (notification.issued_at - SINCE).strftime("%Y-%m-%dT%H:%M:%SZ")


def find_target(notification: Notification, repo: str | None) -> Target | None:
    """Say where a notification belongs; None when no repository is named.

    Args:
        notification: its task's ``ref`` may name a pull request or issue, as ``#12``, ``pull/12``, ``owner/name#12``
            or an address.
        repo: where all belong, whatever the task says; a number in another repository is then none.
    """
    task = notification.task
    own = task.repo if task is not None and task.repo is not None and _REPO.fullmatch(task.repo) else None
    found = _REF.fullmatch(task.ref) if task is not None and task.ref is not None else None
    meant = (found["repo_url"] or found["repo"] or own) if found else own
    if meant is not None and {".", ".."}.intersection(meant.split("/")):
        return None if repo is None else Target(repo, None)
    if repo is not None and meant != repo:
        # Without a repository of its own, a task's number is taken to be in the one that is named.
        return Target(repo, int(found["number"]) if found and meant is None else None)
    return None if meant is None else Target(meant, int(found["number"]) if found else None)


def body(notification: Notification) -> str:
    """Give the text of an issue or comment, at most `MOST_BODY` characters; the markers stand first, unseen."""
    page = clean_page(notification.report.markdown, MOST_PAGE)
    sentence = markdown_text(line(notification.text, MOST_TEXT))
    return f"{incident_marker(notification)}\n{notification_marker(notification)}\n{sentence}\n\n{page}\n"


def incident_marker(notification: Notification) -> str:
    """Give the comment by which an incident's issue is found again."""
    return f"<!-- traction incident {key(notification.incident_id)} -->"


def notification_marker(notification: Notification) -> str:
    """Give the comment by which what was written of a notification is found again."""
    return f"<!-- traction notification {key(notification.notification_id)} -->"
