"""Watches one session with the same detectors as the worker, and says before and after each call what they make of it.

Bounded in memory, whatever the agent does. It must not raise into the agent for anything that the agent does or is
given, and enforces nothing.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections import deque
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec

from detectors import Limits, SessionState, TaskState, limits_from, observe_task, step
from schemas.decode import decode
from schemas.events import Control, SessionEvent, SessionInput, ToolCall
from schemas.topics import SESSION_INPUTS, Topic
from streams.escalation.text import tame
from streams.escalation.words import told
from streams.plain import encoded, error_of, plain, status_of
from streams.unfit import Unfit, identified, words
from streams.verdicts.asked import Asked
from streams.verdicts.model import GO_ON, Verdict, call_key
from streams.verdicts.table import Verdicts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal, Self

    from schemas.common import Agent, ErrorInfo, Task
    from schemas.outputs import Alert

logger = logging.getLogger(__name__)

GUIDANCE: Final = timedelta(minutes=15)
"""How long guidance holds, as by default on the ladder of escalation."""

STOPPED: Final = timedelta(days=36_500)
"""How long a stop holds: nobody but the caller can take it back, so that it holds for good."""

MAX_ALERTS: Final = 64
"""Alerts that are kept to be looked at; the oldest go first."""

_REASON_CHARS: Final = 1_000
_TOPICS: Final[dict[type, Topic]] = {topic.record: topic for topic in SESSION_INPUTS if topic.record is not None}


class Guard:
    """Watches one session of one agent; may be used from any thread, with `with` or without.

    Ask `before` each call, tell `after` it, and obey: on `stop` end the session, on `deny` do not make the call, give
    the model the text as its result and tell of it (`after(tool, arguments, error=not_made(verdict))`), on `guide` show
    the model the text beside the result.

    Args:
        limits: when a loop is one: `Limits`, or those that differ from the defaults, nested or by dotted name.
        session_id: names the session, in alerts; made when not given.
        agent: who acts, for alerts.
        task: what is worked on, likewise.

    Raises:
        InvalidLimits: a limit does not exist or has a value it cannot have; the message names it.
        ValueError: the session's name is no text.
    """

    def __init__(
        self,
        limits: Limits | Mapping[str, Any] | None = None,
        *,
        session_id: str | None = None,
        agent: Agent | None = None,
        task: Task | None = None,
    ) -> None:
        self._limits = limits if isinstance(limits, Limits) else limits_from([("guard", limits or {})])
        self._session_id = identified("session_id", session_id or f"guard-{uuid.uuid4()}")
        self._agent = agent
        self._task = task
        self._state = SessionState()
        self._task_state = TaskState()
        self._table = Verdicts(sessions=1)
        self._alerts: deque[Alert] = deque(maxlen=MAX_ALERTS)
        self._said: set[str] = set()
        self._lock = threading.RLock()

    @property
    def session_id(self) -> str:
        """The session's name."""
        return self._session_id

    @property
    def alerts(self) -> tuple[Alert, ...]:
        """The latest alerts, the oldest first; those too that ask for nothing."""
        with self._lock:
            return tuple(self._alerts)

    @property
    def stopped(self) -> bool:
        """Whether the session is to be stopped."""
        return self.verdict().action == "stop"

    def before(self, tool: str, arguments: Any = None, *, at: datetime | None = None) -> Verdict:
        """Tell what is to be done about a call that is about to be made.

        Args:
            tool: the tool's name, as the model calls it.
            arguments: what it is called with.
            at: when; now when not given.
        """
        with self._lock:
            try:
                call, _ = encoded(self._call(tool, arguments, at=at), "full")
                key = call_key(call) if isinstance(call, ToolCall) else None
                return self._give(self._table.verdict(self._session_id, call.occurred_at, key))
            except Exception as problem:  # noqa: BLE001 - the agent goes on, whatever is wrong with us
                self._say("a call was not looked at: %s", problem)
                return GO_ON

    def after(
        self,
        tool: str,
        arguments: Any = None,
        result: Any = None,
        error: ErrorInfo | BaseException | str | None = None,
        *,
        status: Literal["ok", "error", "timeout", "denied"] | None = None,
        call_id: str | None = None,
        batch_id: str | None = None,
        at: datetime | None = None,
    ) -> Verdict:
        """Take in a call that was made, or denied, and tell what follows from it.

        Args:
            tool: the tool's name, as the model calls it.
            arguments: what it was called with.
            result: what the model is given. None: not known; a call that brings nothing has the result `""`.
            error: what it raised, or said, when it failed; `not_made(verdict)` when it was denied.
            status: how it ended; told from the error when not given.
            call_id: the model's id of the call.
            batch_id: common to calls that the model asked for in parallel.
            at: when it ended; now when not given.
        """
        with self._lock:
            try:
                event = msgspec.structs.replace(
                    self._call(tool, arguments, at=at),
                    result=plain(result),
                    error=error_of(error),
                    status=status or status_of(error),
                    call_id=None if call_id is None else identified("call_id", call_id),
                    batch_id=None if batch_id is None else identified("batch_id", batch_id),
                )
            except Exception as problem:  # noqa: BLE001 - as above
                self._say("a call was not looked at: %s", problem)
                return GO_ON
        return self.observe(event)

    def observe(self, event: SessionInput) -> Verdict:
        """Take in any event of the session: a turn with its usage, a fix attempt, a review, a word about it.

        Args:
            event: the event, whose session is taken to be this one.
        """
        with self._lock:
            try:
                event = self._read(event)
                if isinstance(event, ToolCall | SessionEvent | Control):
                    self._table.note(event)
                self._detect(event)
                return self._give(self._table.verdict(self._session_id, event.occurred_at))
            except Exception as problem:  # noqa: BLE001 - as above
                self._say("an event was not looked at: %s", problem, event)
                return GO_ON

    def user_message(self, *, at: datetime | None = None) -> None:
        """Note that a person spoke to the agent: what was counted before no longer counts."""
        self.observe(SessionEvent(**self._about(at), kind="user_message"))

    def resume(self, *, at: datetime | None = None) -> None:
        """Let a session go on that was to be stopped, as a person's word: its loops are settled, it is counted anew."""
        self.observe(Control(**self._about(at), action="resume"))

    def verdict(self, *, at: datetime | None = None) -> Verdict:
        """Tell how the session stands, without a call. Guidance that is told here is not taken as given."""
        with self._lock:
            return self._table.verdict(self._session_id, self._moment(at))

    def obeyed(self, verdict: Verdict) -> None:
        """Note that a verdict was carried out: here nobody waits for that, as a gateway would."""

    def unheeded(self) -> None:
        """Note that nobody carries out what is said: here nobody is called when that is so, either."""

    def __enter__(self) -> Self:
        """Give the guard."""
        return self

    def __exit__(self, *problem: object) -> None:
        """End the session."""
        self.observe(SessionEvent(**self._about(None), kind="ended"))

    def _about(self, at: datetime | None) -> dict[str, Any]:
        return {
            "event_id": str(uuid.uuid4()),
            "session_id": self._session_id,
            "occurred_at": self._moment(at),
            "agent": self._agent,
            "task": self._task,
        }

    def _moment(self, at: object) -> datetime:
        """Give when something happened: now also where what was given is no time, so that the call counts."""
        if isinstance(at, datetime) and at.tzinfo is not None:
            return at
        if at is not None:
            self._say("the present time is taken: %s", Unfit("at", "give a datetime with an offset"))
        return datetime.now(UTC)

    def _read(self, event: object) -> SessionInput:
        """Give an event as a worker would read it, so that nothing of another type is remembered."""
        topic = _TOPICS.get(type(event))
        if topic is None:
            raise Unfit("event", "give a record of a session's topics")
        _, data = encoded(msgspec.structs.replace(event, session_id=self._session_id), "full")  # type: ignore[arg-type, type-var]
        read: Any = decode(topic, data)
        return read  # type: ignore[no-any-return]

    def _say(self, text: str, problem: Exception, event: object = None) -> None:
        """Log a warning, once for each kind."""
        if text not in self._said:
            self._said.add(text)
            logger.warning(text, words(problem, event))

    def _call(self, tool: str, arguments: Any, *, at: datetime | None) -> ToolCall:
        return ToolCall(**self._about(at), tool=identified("tool", tool), arguments=plain(arguments))

    def _detect(self, event: SessionInput) -> None:
        found = step(self._state, event, self._limits)
        alerts = list(found.alerts)
        if found.task_event is not None:
            alerts += observe_task(self._task_state, found.task_event, self._limits)
        for alert in alerts:
            self._alerts.append(alert)
            asked = self._asked(alert)
            if asked is not None:
                self._table.note(asked)

    def _asked(self, alert: Alert) -> Asked | None:
        """Give what an alert asks of the session; None where that is nothing."""
        if alert.mode == "observe" or alert.level not in {"warn", "terminate"}:
            return None
        stops = alert.level == "terminate" and alert.mode == "enforce"
        lasting = STOPPED if stops else GUIDANCE
        return Asked(
            id=f"{'t' if stops else 'd'}-{alert.alert_id}",
            action="terminate" if stops else "inject_guidance",
            session_id=self._session_id,
            task_id=alert.task_id,
            alert_id=alert.alert_id,
            loop_id=alert.loop_id,
            detector=alert.detector,
            text=tame(alert.reasoning, _REASON_CHARS) if stops else told("inject_guidance", alert),
            issued_at=alert.occurred_at,
            expires_at=alert.occurred_at + lasting,
            given_expiry=None if stops else alert.occurred_at + lasting,
            repeats=() if stops else alert.evidence.repeats,
        )

    def _give(self, verdict: Verdict) -> Verdict:
        """Give a verdict; guidance is given once."""
        self._table.handed_out(verdict)
        return verdict
