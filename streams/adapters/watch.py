"""What all adapters have in common: who is asked about calls, what of the answers is enforced, and that this is told.

A `Guard` is such a watch as it is, `EmitterWatch` makes one of an emitter and a session. Nothing here knows a
framework.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from schemas.common import as_observed
from streams.verdicts.model import GO_ON, Verdict
from streams.verdicts.refusal import not_made

if TYPE_CHECKING:
    from typing import Literal

    from schemas.common import ErrorInfo
    from streams.emitter import Emitter

_REMEMBERED: Final = 64
"""Verdicts that are known to be answered: more than are asked of a session at a time (`streams.verdicts.table`)."""


class Watch(Protocol):
    """Who watches one session."""

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

    def obeyed(self, verdict: Verdict) -> None:
        """Note that a verdict was carried out."""

    def unheeded(self) -> None:
        """Note that nobody carries out what is said of this session."""


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
        self._agent = emitter.agent

    def before(self, tool: str, arguments: Any = None) -> Verdict:
        """Tell what is to be done about a call; see `Watch`."""
        if self._ask_seconds:
            self._emitter.ask(self._session_id, seconds=self._ask_seconds)
        return self._emitter.verdict(self._session_id, self._emitter.call_key(tool, arguments))

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
        self._emitter.tool_call(
            self._session_id,
            tool,
            arguments,
            result,
            error=error,
            status=status,
            call_id=call_id,
            agent=self._agent,
        )
        return self.verdict()

    def verdict(self) -> Verdict:
        """Tell how the session stands, as far as the gateway has said."""
        return self._emitter.verdict(self._session_id)

    def obeyed(self, verdict: Verdict) -> None:
        """Answer a verdict that was carried out: guidance is not given again, a stop is not waited for."""
        self._emitter.answer(verdict, "obeyed")

    def unheeded(self) -> None:
        """Have calls say that the agent is only watched: nobody waits for a stop, or is called about it."""
        self._agent = as_observed(self._agent)


class SessionStopped(Exception):
    """The session is to be stopped, or waits for a person: ends the agent's run.

    Attributes:
        verdict: why.
    """

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.text)
        self.verdict = verdict


class Enforcer:
    """Asks a watch, gives only what is to be enforced, and tells it what came of that.

    A call that is kept from being made is told of as such, and each verdict that is given to be carried out is
    answered once.

    Args:
        watch: who is asked.
        enforce: False tells it every call, asks it nothing and obeys nothing.
    """

    def __init__(self, watch: Watch, *, enforce: bool = True) -> None:
        self._watch = watch
        self._enforce = enforce
        self._guidance: dict[str | None, Verdict] = {}  # that waits for a result to be shown with
        self._answered: dict[str, None] = {}
        if not enforce:
            watch.unheeded()

    def before(self, tool: str, arguments: Any, *, call_id: str | None = None) -> Verdict:
        """Ask about a call that is about to be made; guidance that is given now comes with a result.

        Args:
            tool: the tool.
            arguments: what it is called with.
            call_id: the model's id of it.

        Returns:
            What keeps the call from being made, which is to be done at once; else to go on.
        """
        verdict = self._watch.before(tool, arguments) if self._enforce else GO_ON
        if verdict.action == "guide":
            self._guidance[verdict.answers] = verdict
            return GO_ON
        if verdict.action == "go_on":
            return verdict
        after = self._watch.after(tool, arguments, None, not_made(verdict), call_id=call_id or None)
        if after.action == "guide":
            self._guidance[after.answers] = after
        return self._given(after if ends(after) else verdict)  # the denied repetition may have been one too many

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
            error: what it raised, in which case no guidance can be shown with it.
            failed: the framework says that it failed, though it has a result.
            call_id: the model's id of it.

        Returns:
            What is to be done at once.
        """
        status: Literal["error"] | None = "error" if failed else None
        verdict = self._watch.after(tool, arguments, result, error, status=status, call_id=call_id or None)
        if not self._enforce:
            return GO_ON
        if verdict.action == "guide":
            self._guidance[verdict.answers] = verdict
            verdict = GO_ON
        if verdict.action == "go_on" and error is None and self._guidance:
            verdict = self._guidance.pop(next(iter(self._guidance)))
        return self._given(verdict)

    def ends(self) -> Verdict | None:
        """Tell whether the run is to end, which is to be done at once, and why."""
        verdict = self._watch.verdict() if self._enforce else GO_ON
        return self._given(verdict) if ends(verdict) else None

    def _given(self, verdict: Verdict) -> Verdict:
        """Answer a verdict as it is handed over to be carried out, once."""
        if verdict.answers is not None and verdict.answers not in self._answered:
            self._answered[verdict.answers] = None
            if len(self._answered) > _REMEMBERED:
                del self._answered[next(iter(self._answered))]
            self._watch.obeyed(verdict)
        return verdict


def ends(verdict: Verdict) -> bool:
    """Tell whether a verdict ends the run: an agent in a program has nobody before it who could be asked."""
    return verdict.action in {"stop", "ask"}


def beside(text: str, verdict: Verdict) -> str:
    """Give a result with guidance behind it."""
    return f"{text}\n\n[Traction] {verdict.text}"
