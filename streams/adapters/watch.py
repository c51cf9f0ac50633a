"""What all adapters have in common: who is asked about calls, and what an agent is given in the place of a result.

A `Guard` is such a watch as it is, `EmitterWatch` makes one of an emitter and a session. Nothing here knows a
framework.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

from streams.verdicts.model import GO_ON, Verdict

if TYPE_CHECKING:
    from typing import Literal

    from schemas.common import ErrorInfo
    from streams.emitter import Emitter


class Watch(Protocol):
    """Who watches one session. Guidance that `before` or `after` gives is taken as given."""

    def before(self, tool: str, arguments: Any = None) -> Verdict:
        """Tell what is to be done about a call that is about to be made."""

    def after(  # noqa: D102 - see `Guard.after`
        self,
        tool: str,
        arguments: Any = None,
        result: Any = None,
        error: ErrorInfo | BaseException | str | None = None,
        *,
        status: Literal["ok", "error", "timeout", "denied"] | None = None,
        call_id: str | None = None,
    ) -> Verdict: ...

    def verdict(self) -> Verdict:
        """Tell how the session stands."""


class EmitterWatch:
    """Watches a session by telling the gateway of it.

    Args:
        emitter: sends, and hears.
        session_id: the session.
        ask_seconds: how long the gateway may be asked before each call, so that a stop comes at once and not with the
            answer to a later event; 0 not to ask.
    """

    def __init__(self, emitter: Emitter, session_id: str, *, ask_seconds: float = 0.0) -> None:
        self._emitter = emitter
        self._session_id = session_id
        self._ask_seconds = ask_seconds

    def before(self, tool: str, arguments: Any = None) -> Verdict:
        """Tell what is to be done about a call; see `Watch`."""
        if self._ask_seconds:
            self._emitter.ask(self._session_id, seconds=self._ask_seconds)
        return self._give(self._emitter.verdict(self._session_id, self._emitter.call_key(tool, arguments)))

    def after(
        self,
        tool: str,
        arguments: Any = None,
        result: Any = None,
        error: ErrorInfo | BaseException | str | None = None,
        *,
        status: Literal["ok", "error", "timeout", "denied"] | None = None,
        call_id: str | None = None,
    ) -> Verdict:
        """Send a call that was made; see `Watch`."""
        self._emitter.tool_call(self._session_id, tool, arguments, result, error=error, status=status, call_id=call_id)
        return self._give(self.verdict())

    def verdict(self) -> Verdict:
        """Tell how the session stands, as far as the gateway has said."""
        return self._emitter.verdict(self._session_id)

    def _give(self, verdict: Verdict) -> Verdict:
        if verdict.action == "guide":
            self._emitter.answer(verdict, "obeyed")
        return verdict


class SessionStopped(Exception):
    """The session is to be stopped, or waits for a person: ends the agent's run.

    Attributes:
        verdict: why.
    """

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.text)
        self.verdict = verdict


class Enforcer:
    """Asks a watch, and gives only what is to be enforced.

    Args:
        watch: who is asked.
        enforce: False tells it everything and obeys nothing.
    """

    def __init__(self, watch: Watch, *, enforce: bool = True) -> None:
        self._watch = watch
        self._enforce = enforce
        self._guidance: deque[Verdict] = deque()

    def before(self, tool: str, arguments: Any) -> Verdict:
        """Ask about a call that is about to be made; guidance that is given now comes with a result."""
        verdict = self._of(self._watch.before(tool, arguments))
        if verdict.action != "guide":
            return verdict
        self._guidance.append(verdict)
        return GO_ON

    def after(
        self,
        tool: str,
        arguments: Any,
        result: Any = None,
        error: BaseException | None = None,
        *,
        failed: bool = False,
        call_id: str | None = None,
    ) -> Verdict:
        """Tell of a call that was made.

        Args:
            tool: the tool.
            arguments: what it was called with.
            result: what the model is given.
            error: what it raised.
            failed: the framework says that it failed, though it has a result.
            call_id: the model's id of it.
        """
        status: Literal["error"] | None = "error" if failed else None
        verdict = self._of(self._watch.after(tool, arguments, result, error, status=status, call_id=call_id or None))
        waiting = verdict.action == "go_on" and error is None and bool(self._guidance)
        return self._guidance.popleft() if waiting else verdict

    def ends(self) -> Verdict | None:
        """Tell whether the run is to end, and why."""
        verdict = self._of(self._watch.verdict())
        return verdict if ends(verdict) else None

    def _of(self, verdict: Verdict) -> Verdict:
        return verdict if self._enforce else GO_ON


def ends(verdict: Verdict) -> bool:
    """Tell whether a verdict ends the run: an agent in a program has nobody before it who could be asked."""
    return verdict.action in {"stop", "ask"}


def beside(text: str, verdict: Verdict) -> str:
    """Give a result with guidance behind it."""
    return f"{text}\n\n[Traction] {verdict.text}"
