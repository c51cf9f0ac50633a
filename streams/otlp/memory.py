"""What is remembered between requests, since spans are sent when they end: the inner ones before the outer ones.

The caller keeps one for all requests that it receives. It is bounded and lost at a restart: then a trace whose session
was told in an earlier request counts as a session of its own, and a session's hooks are known again from its next call.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

MAX_TRACES: Final = 10_000
"""Traces whose session is remembered; a few hundred bytes each."""

MAX_CALLS: Final = 10_000
"""Calls whose outer span is still to come."""

MAX_HOOKED: Final = 10_000
"""Sessions whose hooks tell their calls."""

_SEVERAL: Final = ""


class Memory:
    """Which session a trace belongs to, which calls were told by an inner span, and whose calls hooks tell."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, str] = OrderedDict()
        self._told: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._hooked: OrderedDict[str, None] = OrderedDict()

    def learn(self, trace_id: str, session_id: str) -> None:
        """Remember what a span says of its session. A trace of several sessions tells nothing of its other spans."""
        before = self._sessions.pop(trace_id, session_id)
        self._sessions[trace_id] = session_id if before == session_id else _SEVERAL
        if len(self._sessions) > MAX_TRACES:
            self._sessions.popitem(last=False)

    def session_of(self, trace_id: str) -> str | None:
        """Give the one session of a trace; None where it is not known, or there are several."""
        return self._sessions.get(trace_id) or None

    def tell(self, trace_id: str, span_id: str) -> None:
        """Remember that the call of this span, which is still to come, was told by one within it."""
        self._told[trace_id, span_id] = None
        if len(self._told) > MAX_CALLS:
            self._told.popitem(last=False)

    def was_told(self, trace_id: str, span_id: str) -> bool:
        """Tell whether the call of this span was told by one within it."""
        return (trace_id, span_id) in self._told

    def hear_hook(self, session_id: str) -> None:
        """Remember that a hook told a call of this session without an id by which telemetry of it were recognised."""
        self._hooked[session_id] = None
        self._hooked.move_to_end(session_id)
        if len(self._hooked) > MAX_HOOKED:
            self._hooked.popitem(last=False)

    def has_hooks(self, session_id: str) -> bool:
        """Tell whether hooks tell the calls of this session without ids, so that telemetry's would count again."""
        return session_id in self._hooked
