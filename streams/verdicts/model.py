"""What one session is told, as plain data that goes over the wire as it is, and what names a call that is at hand.

Only shapes in here: what a session is told is decided in `table`.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from detectors import Limits
from detectors.call import print_of_call, read_call
from detectors.facts import Mark

if TYPE_CHECKING:
    from schemas.events import ToolCall

Step = Literal["go_on", "guide", "deny", "ask", "stop"]
"""In the order of their gravity.

- ``go_on``: nothing is asked.
- ``guide``: show the agent the text, then go on.
- ``deny``: do not make this call, and tell the agent why. Without `Verdict.calls`, no call at all is to be made until
  `Verdict.expires_at`: a pause.
- ``ask``: a person is to say whether it goes on.
- ``stop``: end the session.
"""

_LIMITS: Final = Limits()


class CallKey(msgspec.Struct, frozen=True):
    """Names a call by what it would do: calls of one tool with the same canonical arguments have the same key.

    Attributes:
        digest: as in the field ``repeats`` of alerts and directives.
    """

    digest: str


UNLIKE: Final = CallKey("")
"""Stands for a call that is not known, or waits for something: it equals no other, and is denied by a pause alone."""


class Outcome(msgspec.Struct, frozen=True):
    """What a call brought, as far as it matters for denying it.

    Attributes:
        digest: of call and result, as the detector of identical calls compares them; 0 where the result is not known.
        waits: whether it waits for something: its tool does, or its result says so.
    """

    digest: int = 0
    waits: bool = False


class Verdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one session is told at one moment.

    Attributes:
        action: what to do, see `Step`.
        session_id: the session; empty where nothing is asked.
        text: for the agent, or for the person who looks at a session that was stopped. What tools wrote is marked.
        answers: the directive or termination that this comes from, as answers to it name it.
        detector: which detector saw the loop.
        loop_id: the loop.
        expires_at: until when it holds; None for as long as the session.
        calls: for ``deny`` the call that is not to be made. For ``guide`` the call that the loop is nothing but: it
            will be denied if it comes next, with nothing else in between; empty where that is not certain.
    """

    action: Step
    session_id: str = ""
    text: str = ""
    answers: str | None = None
    detector: str = ""
    loop_id: str = ""
    expires_at: datetime | None = None
    calls: tuple[CallKey, ...] = ()


GO_ON: Final = Verdict(action="go_on")
"""Nothing is asked."""


def call_key(event: ToolCall) -> CallKey | None:
    """Name the call of an event; the same for the call that is asked for and for the one that was made.

    Args:
        event: the call as it is sent, reduced to the privacy level that holds. Its result plays no part.

    Returns:
        None where the arguments are not known: such a call equals no other.
    """
    digest = print_of_call(event, _LIMITS.tools)
    return CallKey(digest) if digest else None


def outcome_of(event: ToolCall) -> Outcome:
    """Read what a call brought, as the detectors do; of one that is only asked for, whether it waits."""
    call = read_call(event, Mark(), _LIMITS)
    return Outcome(call.key if call.recorded else 0, call.waits)
