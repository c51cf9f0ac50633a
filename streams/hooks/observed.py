"""What a hook's payload comes to, and how events are made of it: the part that all agents have in common.

Knows no agent's protocol and no clock. Identifiers depend on the payload alone, or on the time that it was handed over
where nothing in it tells one moment from another, so that a payload sent twice gives the same events.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import msgspec
from msgspec import UNSET

from detectors.denial import CLASSES
from schemas.common import MAX_ID_CHARS, Agent, ErrorInfo
from schemas.events import SessionEvent, SessionInput, ToolCall
from streams.identity import record_id, sub_session
from streams.importers.shape import as_dict, as_text
from streams.otlp.mapped import Happened
from streams.verdicts.model import CallKey
from streams.verdicts.refusal import recorded_denial

if TYPE_CHECKING:
    from detectors.denial import Denial

Agents = Literal["claude-code", "codex", "gemini-cli", "openhands"]
"""Agents whose hooks are read."""

Moment = Literal["before_tool", "after_tool", "prompt", "stop", "start", "end", "other"]
"""When in the agent's work a hook was called; what may be answered depends on it."""

Status = Literal["ok", "error", "timeout", "denied"]
Kind = Literal["started", "user_message", "context_trimmed", "ended"]

MAX_PAYLOAD_BYTES: Final = 8 * 1024 * 1024
"""Largest payload read. A file that is written stands in it twice and in a result once more; results of the agents
above are cut at some hundred kilobytes."""

NotReadReason = Literal["too_large", "malformed", "too_deep", "no_session_id", "no_tool_name"]

_ARGUMENTS_CHARS: Final = 16
_FIRST_YEAR: Final = 2000  # before, no clock was right
_LAST_YEAR: Final = 2999  # as in the contract


class NotRead(msgspec.Struct, frozen=True):
    """A payload of which nothing can be made; its agent goes on as if there were no hook.

    Attributes:
        reason: why, as a code.
        text: field, problem and remedy, without content.
    """

    reason: NotReadReason
    text: str


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """What one payload tells.

    Attributes:
        agent: whose hook it was.
        event: name of the hook, as the agent calls it.
        moment: when in the agent's work.
        session_id: whose verdict concerns it: the sub-agent's where one acts.
        parent_id: the session that the sub-agent belongs to; its termination ends the sub-agent too.
        at: when it was handed over.
        attended: False where nobody can be asked, as the payload says.
        events: what is to be published, as much of it as may be sent.
        call: names the call that is about to be made or was made; None where its arguments are not told.
        waits: whether the call waits for something, read from the whole payload: however little of it goes on, such a
            call may be right when it comes again.
    """

    agent: Agents
    event: str
    moment: Moment
    session_id: str
    parent_id: str | None = None
    at: datetime
    attended: bool = True
    events: list[SessionInput] = []
    call: CallKey | None = None
    waits: bool = False


class Draft(msgspec.Struct, kw_only=True):
    """A payload on its way to be `Observed`.

    Attributes:
        agent: whose it is.
        event: the hook's name.
        at: when it was handed over.
        session_id: as the agent calls it.
        agent_id: of the sub-agent that acts; None for the session itself.
        model: language model, where the payload says so.
        told: when it happened, where the payload says so.
        attended: see `Observed`.
    """

    agent: Agents
    event: str
    at: datetime
    session_id: str
    agent_id: str | None = None
    model: str | None = None
    told: datetime | None = None
    attended: bool = True

    def nothing(self, moment: Moment = "other") -> Observed:
        """Give what tells nothing that detectors count."""
        session_id, parent_id = sub_session(self.session_id, self.agent_id)
        return Observed(
            agent=self.agent,
            event=self.event,
            moment=moment,
            session_id=session_id,
            parent_id=parent_id,
            at=self.at,
            attended=self.attended,
        )

    def happened(self, moment: Moment, kind: Kind, *, mark: str | None = None, reason: str | None = None) -> Observed:
        """Give an event of the session.

        Args:
            moment: when in the agent's work.
            kind: what happened.
            mark: what tells it from others of its kind, where the payload has such; else the time stands for it.
            reason: why, for an end.
        """
        seen = self.nothing(moment)
        event = SessionEvent(
            event_id=record_id("hook", seen.session_id, kind, mark or (self.told or self.at).isoformat()),
            session_id=seen.session_id,
            parent_session_id=seen.parent_id,
            occurred_at=self.told or self.at,
            agent=self._who(),
            kind=kind,
            reason=reason[:MAX_ID_CHARS] if reason else None,
        )
        return msgspec.structs.replace(seen, events=[event])

    def called(
        self,
        phase: Literal["start", "end"],
        tool: object,
        arguments: Any,
        *,
        call_id: object = None,
        result: Any = UNSET,
        status: Status | None = None,
        error: ErrorInfo | None = None,
        duration_ms: float | None = None,
    ) -> Observed | NotRead:
        """Give a call that is about to be made, or was.

        Args:
            phase: which.
            tool: its name, of whatever type it came.
            arguments: any JSON; None or UNSET when not told.
            call_id: the model's own id of the call, of whatever type it came; None when the agent tells none.
            result: any JSON; UNSET when not told.
            status: how it ended.
            error: why it failed.
            duration_ms: how long it took.
        """
        name = (as_text(tool) or "").strip()
        if not name:
            return NotRead("no_tool_name", "`tool_name`: missing or no text; the call is not counted")
        ours = None if status is None else recorded_denial(status, result)
        if ours is not None:
            status, error = "denied", ours
        seen = self.nothing("before_tool" if phase == "start" else "after_tool")
        told = as_text(call_id)
        mark = told or f"{name}\0{_fingerprint(arguments)}\0{(self.told or self.at).isoformat()}"
        event = Happened(
            event_id=record_id("hook", seen.session_id, mark, phase),
            session_id=seen.session_id,
            parent_session_id=seen.parent_id,
            at=self.told or self.at,
            tool=name,
            call_id=told or "",
            agent=self._who(),
            arguments=UNSET if arguments is None else arguments,
            result=result,
            status=status,
            error=error,
            duration_ms=duration_ms,
        ).event()
        event = msgspec.structs.replace(event, phase=phase)
        return msgspec.structs.replace(seen, events=[event])

    def _who(self) -> Agent:
        return Agent(
            id=self.agent_id[:MAX_ID_CHARS] if self.agent_id else None,
            name=self.agent,
            model=self.model[:MAX_ID_CHARS] if self.model else None,
        )


def draft(
    agent: Agents, value: object, at: datetime, *, event: str = "hook_event_name", told: datetime | None = None
) -> Draft | NotRead:
    """Read what the payloads of all agents have.

    Args:
        agent: whose payload it is.
        value: the payload.
        at: when it was handed over.
        event: the field with the hook's name.
        told: when it happened, where the payload says so.
    """
    if not isinstance(value, dict):
        return NotRead("malformed", "the payload is no JSON object; send what the agent gives to its hooks")
    session = as_text(value.get("session_id"))
    if session is None:
        return NotRead("no_session_id", "`session_id`: missing or no text; nothing can be counted without it")
    return Draft(
        agent=agent,
        event=as_text(value.get(event)) or "",
        at=at,
        session_id=session,
        agent_id=as_text(value.get("agent_id")),
        model=as_text(value.get("model")),
        told=told if told is not None and _FIRST_YEAR <= told.year <= _LAST_YEAR else None,
    )


class Hook(NamedTuple):
    """What a hook tells that is not about a call.

    Attributes:
        moment: when in the agent's work it is called.
        kind: what happened to the session; None for nothing that counts.
        mark: field that tells it from others of its kind; without one the time does.
        reason: field that says why.
    """

    moment: Moment
    kind: Kind | None = None
    mark: str = ""
    reason: str = ""


def session(begun: Draft, payload: dict[str, Any], hooks: dict[str, Hook]) -> Observed:
    """Read a payload that is not about a call; of a hook that is not known it gives nothing.

    A session that is resumed goes on, and one that begins anew after a compaction was trimmed.
    """
    hook = hooks.get(begun.event, Hook("other"))
    kind = hook.kind
    if hook.moment == "start":
        source = payload.get("source")
        kind = "context_trimmed" if source == "compact" else None if source == "resume" else kind
    if kind is None:
        return begun.nothing(hook.moment)
    mark = "session" if kind == "started" else as_text(payload.get(hook.mark))
    return begun.happened(hook.moment, kind, mark=mark, reason=as_text(payload.get(hook.reason)))


def denied(observed: Observed, denial: Denial) -> list[SessionInput]:
    """Give the events to publish besides when the call was denied on our word, since its agent tells no end of it.

    Without them an agent that keeps asking for the denied call would spin unseen.

    Args:
        observed: what was answered.
        denial: why, which says whether it counts.
    """
    if observed.moment != "before_tool":
        return []
    return [
        msgspec.structs.replace(
            event,
            event_id=record_id("hook", event.session_id, event.event_id, "denied"),
            phase="end",
            status="denied",
            error=ErrorInfo(type=CLASSES[denial]),
        )
        for event in observed.events
        if isinstance(event, ToolCall)
    ]


def without(value: Any, *names: str) -> Any:
    """Give an object without some of its fields, anything else as it is."""
    return {name: part for name, part in value.items() if name not in names} if isinstance(value, dict) else value


def streams_of(value: Any) -> Any:
    """Give what a shell said as one text where the result has it as two; anything else as it is."""
    parts = as_dict(value)
    if not isinstance(parts.get("stdout"), str):
        return value
    return "\n".join(part for part in (parts["stdout"], parts.get("stderr")) if isinstance(part, str) and part)


def _fingerprint(arguments: Any) -> str:
    if arguments is None or arguments is UNSET:
        return ""
    return hashlib.sha256(msgspec.json.encode(arguments, order="sorted")).hexdigest()[:_ARGUMENTS_CHARS]
