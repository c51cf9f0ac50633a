"""What each level of privacy loses of what detectors could find is what the page on connecting agents says it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.streams.hooks.work import _call, alerts, events, failed, ran

if TYPE_CHECKING:
    from streams.privacy import Level

Payloads = list[dict[str, Any]]


def changed(old: str, new: str) -> dict[str, Any]:
    """An edit that replaces one text by another, and was accepted."""
    asked = {"file_path": "/home/ada/shop/m.py", "old_string": old, "new_string": new}
    return _call("PostToolUse", "Edit", asked, tool_response={"filePath": asked["file_path"], "userModified": False})


def looked(first: int) -> dict[str, Any]:
    """A look at a hundred lines of a file."""
    asked = {"file_path": "/home/ada/shop/a.py", "offset": first, "limit": 100}
    shown = {"filePath": "a.py", "content": "x\n" * 100, "numLines": 100, "startLine": first, "totalLines": 200}
    return _call("PostToolUse", "Read", asked, tool_response={"type": "text", "file": shown})


ONE, OTHER = "def f():\n    a()\n", "def f():\n    b()\n"
TURNS = [(ONE, OTHER), (OTHER, ONE)] * 4
CASES: dict[str, Payloads] = {
    "fruitless_search": [ran(f"grep -rn foo{n} .", "") for n in range(10)],
    "rereads": [looked(n) for n in range(1, 13)],
    "diff_reversal": [each for old, new in TURNS for each in (changed(old, new), failed("make test", f"FAILED {new}"))],
}


@pytest.mark.parametrize("level", ["digests", "excerpts", "full"])
@pytest.mark.parametrize("name", CASES)
def test_what_needs_words_is_found_but_with_digests_alone(name: str, level: Level) -> None:
    """Searches that find nothing, lines read again and edits undone are found as soon as excerpts are sent."""
    found = {alert.detector for alert in alerts(events(CASES[name], level)) if alert.level == "warn"}
    assert (name in found) is (level != "digests")


def test_what_is_found_without_words_is_said_to_be() -> None:
    """An undoing in equal laps is a circle of calls also where nothing is known but digests."""
    assert "alternation" in {alert.detector for alert in alerts(events(CASES["diff_reversal"], "digests"))}
