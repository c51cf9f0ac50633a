"""What agent authors use to tell the gateway what their agents do, and to hear what it makes of it.

No method raises, waits for the network, or keeps a reference to what it is given. It decides nothing: whether a verdict
is obeyed is the caller's.
"""

from __future__ import annotations

import atexit
import os
import uuid
import weakref
from typing import TYPE_CHECKING, Any

from schemas.events import FixAttempt, Replacement, Review, ReviewFinding, SessionEvent, SessionInput, ToolCall
from streams.emitter.gateway import GatewayClient
from streams.emitter.making import answer_item, event_of, item_of, key_of, remark
from streams.emitter.sending import Counts, Sending
from streams.emitter.settings import EmitterSettings, from_environment
from streams.emitter.told import Told
from streams.plain import error_of, plain, status_of
from streams.unfit import Unfit, amount, identified, listed, words
from streams.verdicts.model import GO_ON, CallKey, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from typing import Literal, Self

    from schemas.common import Agent, ErrorInfo, Task, Usage
    from streams.client.answers import Answer

_ALL: weakref.WeakSet[Emitter] = weakref.WeakSet()


class Emitter:
    """Sends events of agents to a gateway; for any number of sessions, from any thread.

    Events go to a queue, from there in batches to the gateway, and onto disk while that is away. To be used with
    `with`, or closed; what is open at the end of the process is closed then, within `EmitterSettings.exit_seconds`.

    Args:
        settings: how it is set up; from the environment when not given.
        agent: who acts, unless an event says otherwise.
        task: what is worked on, likewise.
        on_verdict: is called with each new verdict on a session, in the emitter's thread; what it raises is logged.

    Attributes:
        counts: what became of events.
    """

    def __init__(
        self,
        settings: EmitterSettings | None = None,
        *,
        agent: Agent | None = None,
        task: Task | None = None,
        on_verdict: Callable[[Verdict], object] | None = None,
    ) -> None:
        self._settings = settings or from_environment()
        self._agent = agent
        self._task = task
        self._on_verdict = on_verdict
        self._known = Told()
        self._sending = Sending(self._settings, self._hear)
        _ALL.add(self)

    @property
    def agent(self) -> Agent | None:
        """Who acts, unless an event says otherwise."""
        return self._agent

    @property
    def counts(self) -> Counts:
        """What became of events so far."""
        return self._sending.counts

    def tool_call(
        self,
        session_id: str,
        tool: str,
        arguments: Any = None,
        result: Any = None,
        *,
        error: ErrorInfo | BaseException | str | None = None,
        status: Literal["ok", "error", "timeout", "denied"] | None = None,
        call_id: str | None = None,
        batch_id: str | None = None,
        duration_ms: float | None = None,
        usage: Usage | None = None,
        **about: Any,
    ) -> str:
        """Tell of one call of a tool, when it is over.

        Args:
            session_id: the agent's session. A sub-agent's is `session_id:agent_id`.
            tool: the tool's name, as the model calls it.
            arguments: what it was called with: a dict, or any other value. None: not known.
            result: what the model was given. None: not known; a call that brings nothing has the result `""`.
            error: what it raised, or said, when it failed; `not_made(verdict)` when it was denied.
            status: how it ended; told from the error when not given.
            call_id: the model's id of the call. The same call seen by a hook, in a log or span counts once by it.
            batch_id: common to calls that the model asked for in parallel.
            duration_ms: how long it took.
            usage: what it cost.
            about: further fields of the event: `event_id`, `occurred_at`, `agent`, `task`, `parent_session_id`,
                `continues_session_id`.

        Returns:
            The event's id.
        """
        return self._make(
            ToolCall,
            session_id,
            about,
            lambda: {
                "tool": identified("tool", tool),
                "arguments": plain(arguments),
                "result": plain(result),
                "error": error_of(error),
                "status": status or status_of(error),
                "call_id": None if call_id is None else identified("call_id", call_id),
                "batch_id": None if batch_id is None else identified("batch_id", batch_id),
                "duration_ms": duration_ms,
                "usage": usage,
            },
        )

    def fix_attempt(
        self,
        session_id: str,
        outcome: Literal["failed", "success", "partial", "skipped"],
        *,
        approach: str | None = None,
        files: Sequence[str] = (),
        diff: str | None = None,
        replacements: Sequence[Replacement] = (),
        error_message: str | None = None,
        failing: Sequence[str] = (),
        attempt_id: str | None = None,
        usage: Usage | None = None,
        **about: Any,
    ) -> str:
        """Tell of one try at solving the session's task.

        Args:
            session_id: the agent's session.
            outcome: what became of it.
            approach: in words, what it tried.
            files: the files it touched.
            diff: the change, as a unified diff.
            replacements: the change as texts, where there is no diff.
            error_message: what failed.
            failing: names of the checks that fail after it.
            attempt_id: unique in the session; made when not given.
            usage: what it cost.
            about: see `tool_call`.

        Returns:
            The event's id.
        """
        return self._make(
            FixAttempt,
            session_id,
            about,
            lambda: {
                "attempt_id": attempt_id or uuid.uuid4().hex,
                "outcome": outcome,
                "approach": approach,
                "files": listed("files", files),
                "diff": diff,
                "replacements": listed("replacements", replacements),
                "error_message": error_message,
                "failing": listed("failing", failing),
                "usage": usage,
            },
        )

    def review(
        self,
        session_id: str,
        pull_request: str,
        verdict: Literal["approved", "changes_requested", "commented", "merged", "closed"],
        *,
        author: Literal["agent", "person"],
        findings: Sequence[ReviewFinding | str] = (),
        number: int | None = None,
        **about: Any,
    ) -> str:
        """Tell of one round of review of a pull request.

        Args:
            session_id: the session whose pull request it is.
            pull_request: as `owner/name#number`, or its URL.
            verdict: what the round came to.
            author: who reviewed.
            findings: its remarks.
            number: of the round, from 1.
            about: see `tool_call`.

        Returns:
            The event's id.
        """
        return self._make(
            Review,
            session_id,
            about,
            lambda: {
                "pull_request": pull_request,
                "verdict": verdict,
                "author": author,
                "findings": tuple(remark(each) for each in listed("findings", findings)),
                "round": number,
            },
        )

    def session(
        self,
        session_id: str,
        kind: Literal["started", "user_message", "context_trimmed", "turn", "ended"],
        *,
        usage: Usage | None = None,
        reason: str | None = None,
        **about: Any,
    ) -> str:
        """Tell what happens to a session itself.

        Args:
            session_id: the session.
            kind: `user_message` when a person spoke; it sets back what was counted. `turn` for each response of the
                model, with its usage.
            usage: what a turn cost.
            reason: for `ended`: why.
            about: see `tool_call`.

        Returns:
            The event's id.
        """
        return self._make(SessionEvent, session_id, about, lambda: {"kind": kind, "usage": usage, "reason": reason})

    def send(self, event: SessionInput) -> str:
        """Send an event that is made already.

        Args:
            event: any but a control record, which agents do not write.

        Returns:
            Its id; empty where it is none.
        """
        try:
            sent, item = item_of(event, self._settings)
            if isinstance(sent, ToolCall | SessionEvent):
                self._known.note(sent)
            self._sending.put(item)
        except Exception as problem:  # noqa: BLE001 - nothing here may stop an agent
            self._invalid(problem, event)
            return ""
        return str(sent.event_id)

    def verdict(self, session_id: str, call: CallKey | None = None) -> Verdict:
        """Give what a session is told, as far as the gateway has said so; waits for nothing.

        Guidance is given until it is answered. A call that repeats what it was about is denied, see `CallKey`.

        Args:
            session_id: the session.
            call: the call that is about to be made, from `call_key`.
        """
        try:
            return self._known.verdict(session_id, call)
        except Exception as problem:  # noqa: BLE001 - as above
            self._unread(problem)
            return GO_ON

    def ask(self, session_id: str, *, seconds: float = 0.3) -> Verdict:
        """Ask the gateway what a session is told; what is known already when it does not say in time.

        Args:
            session_id: the session.
            seconds: how long each step of the exchange may take.
        """
        client = GatewayClient(self._settings)
        try:
            verdict = client.verdict(identified("session_id", session_id), amount("seconds", seconds))
            if verdict is not None:
                self._hear((session_id,), (verdict,))
        except Exception as problem:  # noqa: BLE001 - as above
            self._unread(problem)
        finally:
            client.close()
        return self.verdict(session_id)

    def call_key(self, tool: str, arguments: Any) -> CallKey | None:
        """Name a call that is about to be made, as it will be named when it is told of; None without arguments.

        Args:
            tool: the tool's name.
            arguments: what it is called with.
        """
        try:
            return key_of(tool, arguments, self._settings)
        except Exception as problem:  # noqa: BLE001 - as above
            self._invalid(problem)
            return None

    def answer(self, verdict: Verdict, action: Answer, *, reason: str | None = None) -> None:
        """Answer a verdict: guidance that was shown is `obeyed`, and is not given again.

        Args:
            verdict: what is answered.
            action: `obeyed`, `refused`, or `ended` for a stop of what had ended before.
            reason: why, for people.
        """
        try:
            item = answer_item(verdict, action, reason)
            self._known.handed_out(verdict)
            if item is not None:
                self._sending.put(item)
        except Exception as problem:  # noqa: BLE001 - as above
            self._invalid(problem)

    def flush(self, seconds: float = 5.0) -> bool:
        """Wait until everything was sent or is kept on disk, and tell whether it is.

        Args:
            seconds: how long to wait.
        """
        return self._sending.flush(self._seconds(seconds))

    def close(self, seconds: float | None = None) -> None:
        """Send what is left, for so long; what was not sent by then is kept on disk, and sent by the next emitter.

        Args:
            seconds: how long to wait; `EmitterSettings.exit_seconds` when not given.
        """
        self._sending.close(self._seconds(seconds))

    def __enter__(self) -> Self:
        """Give the emitter."""
        return self

    def __exit__(self, *problem: object) -> None:
        """Close it."""
        self.close()

    def _make(
        self, record: type[Any], session_id: str, about: dict[str, Any], fields: Callable[[], dict[str, Any]]
    ) -> str:
        event_id = str(uuid.uuid4())
        try:
            event_id = str(about.pop("event_id", None) or event_id)
            common = {"agent": self._agent, "task": self._task, **about, "event_id": event_id}
            event = event_of(record, session_id, common, fields())
        except Exception as problem:  # noqa: BLE001 - as above
            self._invalid(problem)
            return event_id
        self.send(event)
        return event_id

    def _invalid(self, problem: Exception, event: object = None) -> None:
        self.counts.invalid += 1
        self._sending.say("invalid", "an event is left out, it is none: %s", words(problem, event))

    def _unread(self, problem: Exception) -> None:
        self._sending.say("unread", "a question is not understood: %s", words(problem))

    def _seconds(self, given: object) -> float:
        try:
            return self._settings.exit_seconds if given is None else amount("seconds", given)
        except Unfit as problem:
            self._unread(problem)
            return self._settings.exit_seconds

    def _hear(self, sessions: Collection[str], verdicts: Collection[Verdict]) -> None:
        for verdict in self._known.take(sessions, verdicts):
            if self._on_verdict is not None:
                try:
                    self._on_verdict(verdict)
                except Exception as problem:  # noqa: BLE001 - it is the caller's own
                    self.callback_failed(problem)

    def callback_failed(self, problem: BaseException) -> None:
        """Log that the caller's `on_verdict` failed."""
        self._sending.say("callback", "on_verdict failed: %s", type(problem).__name__)

    def _forked(self) -> None:
        self._known.forked()
        self._sending.forked()


def _close_all() -> None:
    for emitter in list(_ALL):
        emitter.close()


def _after_fork() -> None:
    for emitter in list(_ALL):
        emitter._forked()  # noqa: SLF001 - of this module


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
