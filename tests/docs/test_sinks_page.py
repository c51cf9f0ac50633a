"""The page on sinks: its settings are read, its commands work, and what it verifies is what we send."""

from __future__ import annotations

import asyncio
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from schemas.invalid import Reason
from streams.cli import traction
from streams.sinks.run import make
from streams.sinks.settings import TYPES, read_sinks
from tests.docs.conftest import Find
from tests.streams.sinks.conftest import Receiver, build

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105 - opens nothing


async def test_the_sinks_shown_work(block: Find, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The policy shown has sinks whose secrets are found where it says, and the commands shown list and try them."""
    key = tmp_path / "pagerduty"
    key.write_text("R" * 32, "utf-8")
    assert "/run/secrets/pagerduty" in block("sinks").text
    (tmp_path / "policy.toml").write_text(block("sinks").text.replace("/run/secrets/pagerduty", str(key)), "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOOKS_SECRET", SECRET)
    async with Receiver() as receiver:
        monkeypatch.setenv("SLACK_URL", receiver.url)
        for command in block("sinks-try").text.splitlines():
            words = shlex.split(command)[1:]
            result = await asyncio.to_thread(CliRunner().invoke, traction, words, standalone_mode=False)
            assert (result.return_value, result.stderr) == (0, ""), result.stdout
        (request,) = receiver.received
    assert "Test of the sink team" in request.json["text"]


async def test_the_verification_shown_verifies_ours(block: Find, monkeypatch: pytest.MonkeyPatch) -> None:
    """The function shown takes what a webhook sends, and nothing else."""
    scope: dict[str, Any] = {}
    exec(block("sinks-verify").text, scope)  # noqa: S102 - the page's own code
    monkeypatch.setenv("HOOKS_SECRET", SECRET)
    table = tomllib.loads(block("sinks").text)["sinks"]["hooks"]
    async with Receiver() as receiver:
        (settings,) = read_sinks({"hooks": {**table, "url": receiver.url}}, "p")
        async with make(settings, "p") as sink:
            await sink.send(build())
        (request,) = receiver.received
    assert scope["received"](SECRET, request.body, request.headers) == "n1: terminate for task SHOP-412"
    with pytest.raises(Exception, match="No matching signature"):
        scope["received"](SECRET, request.body + b" ", request.headers)


def test_every_type_and_reason_is_told(pages: dict[str, str]) -> None:
    """Each type of sink has its keys on the page, and the reasons it names are reasons."""
    page = pages["docs/sinks.md"]
    assert all(f"<!-- generated: {name} keys," in page for name in TYPES)
    reasons = set(Reason.__args__)  # type: ignore[attr-defined]
    assert {"delivery_failed", "delivery_refused"} <= reasons
