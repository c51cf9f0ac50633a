"""Sessions for property tests: calls of many kinds that repeat in blocks and in turn, so that rules find something."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import UNSET

from schemas.common import ErrorInfo, Usage
from schemas.events import Control, SessionEvent, SessionInput, ToolCall
from schemas.outputs import Alert
from schemas.testing import at, control, session_event, tool_call
from tests.detectors.traces import click, edit, numbered, page, shell, think, view

MOST_CALLS = 70

MOVES: tuple[Callable[[int], ToolCall], ...] = (
    lambda v: shell(0, f"./tool {v}", "as before"),
    lambda v: shell(0, f"make part_{v}", "x", error=ErrorInfo(code=2, message=f"Error: rule {v % 2} is missing here")),
    lambda v: shell(0, f"./import {v}", "Error: no value is given for the endpoint", status=None),
    lambda v: shell(0, f"pytest tests/test_{v}.py", f"{v} failed, 3 passed", error=1),
    lambda v: shell(0, f"sleep {5 + v}", ""),
    lambda v: view(0, f"src/{v}.py", f"module {v}"),
    lambda v: view(0, "book.txt", f"chapter {v}", offset=1 + 80 * v, limit=100),
    lambda v: edit(0, f"src/{v % 2}.py", f"version {v}"),
    lambda v: edit(0, "src/0.py", f"version {v}", "old_string not found in file", error="no_match"),
    lambda v: tool_call(0, "grep", {"pattern": f"{'abcdefghijkl'[v] * 6}", "path": "src"}, ""),
    lambda v: tool_call(0, "search_docs", {"query": f"how to {v}", "limit": 5}, {"results": [], "count": 0}),
    lambda v: think(0, f"perhaps {v}"),
    lambda v: click(0, f"button {v}"),
    lambda v: click(0, f"link {v}", page(f"https://shop.example/{v % 2}", f"clock {v}")),
    lambda v: tool_call(0, "wait_for_job", {"job": v}, "still running"),
    lambda v: tool_call(
        0, "get_rows", {"table": "t", "where": {"b": 1, "a": v}, "limit": 9}, {"rows": [v], "more": False}
    ),
    lambda v: tool_call(0, "frobnicate", {"unit": v, "mode": "fast", "tags": ["x", "y"]}, UNSET, status=None),
    lambda v: tool_call(0, "frobnicate", None, f"unit {v} done", status=None),
    lambda v: tool_call(0, "drop_table", {"name": f"t{v}"}, "not allowed", status="denied"),
    lambda v: tool_call(0, "search_web", {"q": f"topic {v}"}, "503 service unavailable"),
    lambda v: tool_call(0, "probe", {"unit": v}, "12 34\nand all the rest that it printed", status="error"),
    lambda v: tool_call(0, "list_files", {"path": "."}, "a b c", batch_id=f"batch {v % 2}"),
)
"""Each makes a call of one kind, of which a few are told apart by their number."""

_rounds = st.tuples(
    st.lists(st.tuples(st.sampled_from(MOVES), st.integers(0, 3)), min_size=1, max_size=4), st.integers(1, 7)
)
_tours = st.tuples(st.sampled_from((MOVES[0], MOVES[9])), st.permutations(range(11))).map(
    lambda tour: ([(tour[0], place) for place in tour[1]], 1)
)
_blocks = st.one_of(_rounds, _rounds, _rounds, _tours)
_spent = st.none() | st.builds(Usage, input_tokens=st.integers(0, 10**6), cost_usd=st.sampled_from([0.01, 0.25]))


def _laid_out(blocks: Sequence[Any]) -> list[ToolCall]:
    return numbered(move(variant) for moves, times in blocks for _ in range(times) for move, variant in moves)[
        :MOST_CALLS
    ]


sessions = st.lists(_blocks, min_size=1, max_size=6).map(_laid_out)
"""Calls of one session, a second apart."""


@st.composite
def spending_sessions(draw: st.DrawFn) -> list[ToolCall]:
    """Return a session whose calls say what they consumed."""
    usage = draw(_spent)
    return [msgspec.structs.replace(call, usage=usage) for call in draw(sessions)]


def _word(kind: str, second: int, n: int) -> SessionInput:
    moment = at(second + 0.5)
    if kind in {"resume", "reset", "force"}:
        return control(n, kind, occurred_at=moment, event_id=f"word-{n}")
    if kind in {"explore", "implement"}:
        return control(n, "mode", mode=kind, occurred_at=moment, event_id=f"word-{n}")
    return session_event(n, kind, occurred_at=moment, event_id=f"word-{n}")


CLEARING = ("user_message", "context_trimmed", "started", "resume", "reset")
WORDS = (*CLEARING, "turn", "ended", "force", "explore", "implement")


def words(kinds: Sequence[str], most: int) -> st.SearchStrategy[list[SessionInput]]:
    """Return some events of other topics than the calls', half a second after a call each, by time."""
    drawn = st.lists(st.tuples(st.integers(0, MOST_CALLS), st.sampled_from(kinds)), max_size=most)
    return drawn.map(lambda said: [_word(kind, second, n) for n, (second, kind) in enumerate(sorted(said))])


def by_time(calls: Sequence[ToolCall], said: Sequence[SessionInput]) -> list[SessionInput]:
    """Return both in the order in which they happened."""
    return sorted([*calls, *said], key=lambda event: event.occurred_at)


def is_call(event: SessionInput) -> bool:
    """Tell a tool call from a word about the session."""
    return not isinstance(event, SessionEvent | Control)


def gist(alert: Alert) -> dict[str, Any]:
    """Return what an alert says beside who and when: level, loop, counts, limits and texts."""
    said: dict[str, Any] = msgspec.to_builtins(alert)
    for field in ("alert_id", "session_id", "task_id", "occurred_at", "first_seen"):
        said.pop(field, None)
    said["evidence"].pop("event_ids", None)
    return said
