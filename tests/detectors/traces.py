"""Calls as agents of several kinds make them, and what tests read off alerts. Nothing here asserts."""

from collections.abc import Iterable
from typing import Any

import msgspec

from schemas.events import ToolCall
from schemas.outputs import Alert
from schemas.testing import at, tool_call

PAGE_TEXT = "shoes hats coats gloves scarves belts socks bags umbrellas watches rings and much more of the same"
"""Longer than a mere word that something worked, so that it is a result."""


def found(alerts: Iterable[Alert], *detectors: str) -> list[tuple[str, str, int]]:
    """Return level, detector and position of each alert, of these detectors alone where some are named."""
    return [
        (alert.level, alert.detector, alert.seq) for alert in alerts if not detectors or alert.detector in detectors
    ]


def reached(alerts: Iterable[Alert], section: str) -> list[tuple[str, str, int]]:
    """Return level, limit and position of each alert whose limit belongs to this section or begins so."""
    return [
        (alert.level, alert.limits[0].name, alert.seq) for alert in alerts if alert.limits[0].name.startswith(section)
    ]


def numbered(calls: Iterable[ToolCall]) -> list[ToolCall]:
    """Return the calls one second after another, with ids by their place, whatever numbers they were made with."""
    return [
        msgspec.structs.replace(call, event_id=f"{call.session_id}-{n}", occurred_at=at(n))
        for n, call in enumerate(calls)
    ]


def in_turn(*rounds: Iterable[ToolCall]) -> list[ToolCall]:
    """Return one call of each in turn until the shortest ends, numbered."""
    return numbered(call for turn in zip(*rounds, strict=False) for call in turn)


def shell(n: int, command: str, result: Any = "done", **fields: Any) -> ToolCall:
    """Return a command line of an agent that has nothing but a shell."""
    return tool_call(n, "bash", {"command": command}, result, **fields)


def view(n: int, path: str, result: Any = "text", *, offset: int = 0, limit: int = 0, **fields: Any) -> ToolCall:
    """Return a read of a file, of some lines of it where they are given."""
    arguments = {"file_path": path, "offset": offset or None, "limit": limit or None}
    return tool_call(n, "Read", arguments, result, **fields)


def edit(n: int, path: str, new: str, result: Any = "The file has been updated.", **fields: Any) -> ToolCall:
    """Return a replacement in a file, accepted unless said otherwise."""
    return tool_call(n, "Edit", {"file_path": path, "old_string": "old", "new_string": new}, result, **fields)


def think(n: int, thought: str) -> ToolCall:
    """Return a call of a tool to think with."""
    return tool_call(n, "think", {"thought": thought}, "noted")


def click(n: int, element: str, result: Any = "ok", **fields: Any) -> ToolCall:
    """Return a click of an agent on the web; its answer is a mere word unless a page is given."""
    return tool_call(n, "browser_click", {"element": element}, result, **fields)


def page(address: str, text: str = "", title: str = "Shop") -> str:
    """Return what a browser tool shows of a page."""
    return f"Page URL: {address}\nPage title: {title}\n{text} {PAGE_TEXT}"


def work(n: int) -> ToolCall:
    """Return one call of a healthy session: it reads, changes and checks, and nothing of it comes again."""
    place = f"src/part_{n // 4}.py"
    if n % 4 == 0:
        return view(n, place, f"def part_{n}(): ...")
    if n % 4 == 1:
        return edit(n, place, f"return {n}")
    if n % 4 == 2:
        return shell(n, f"pytest tests/test_{n}.py", f"{n} passed")
    return tool_call(n, "grep", {"pattern": f"part_{n}", "path": "src"}, f"{place}:{n}: part_{n}()")
