"""The OpenHands SDK: a callback of a local conversation; with the extra `openhands`, from Python 3.12 on.

Each action is asked about before it is executed, and told of with its observation. Only for conversations that run in
this process, and not for agents of other programs (ACP), which make their calls themselves.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from openhands.sdk import LocalConversation, Message, MessageEvent, TextContent
from openhands.sdk.event import ActionEvent, AgentErrorEvent, ObservationEvent, UserRejectObservation
from openhands.sdk.llm import content_to_str

from streams.adapters.watch import Enforcer, beside, ends
from streams.verdicts.refusal import refusal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streams.adapters.watch import Watch
    from streams.verdicts.model import Verdict

_ANSWER: Final = "finish"
_KIND: Final = "kind"
"""Field of an action that names its type, and is no argument of the call."""


def watched_conversation(
    agent: Any, watch: Watch, *, enforce: bool = True, callbacks: Iterable[Any] = (), **options: Any
) -> Any:
    """Give a `LocalConversation` whose actions are watched.

    A conversation that is to be stopped is paused, with `PAUSED` as its `state.execution_status`; `run` again gets no
    further until the session may go on.

    Args:
        agent: an `openhands.sdk.Agent`.
        watch: a `Guard`, or an `EmitterWatch`.
        enforce: False observes only.
        callbacks: further callbacks, which are called first.
        options: what else `LocalConversation` takes, as `workspace`.
    """
    watching = _Watching(Enforcer(watch, enforce=enforce))
    conversation = LocalConversation(agent=agent, callbacks=[*callbacks, watching.on_event], **options)
    watching.conversation = conversation
    return conversation


class _Watching:
    """What is known of one conversation.

    Attributes:
        conversation: the conversation, as soon as there is one.
    """

    def __init__(self, enforcer: Enforcer) -> None:
        self.conversation: Any = None
        self._enforcer = enforcer
        self._open: dict[str, Any] = {}  # arguments of actions whose observation is still to come
        self._guidance: list[Verdict] = []

    def on_event(self, event: Any) -> None:
        """Take in an event. The SDK holds the conversation's lock meanwhile."""
        if isinstance(event, ActionEvent):
            self._action(event)
        elif isinstance(event, UserRejectObservation):  # our own refusal, which was told of, or a person's
            self._open.pop(event.tool_call_id, None)
        elif isinstance(event, ObservationEvent):
            shown = "".join(content_to_str(event.observation.to_llm_content))
            self._told(event, shown, failed=event.observation.is_error)
        elif isinstance(event, AgentErrorEvent):
            self._told(event, event.error, failed=True)
        if self._guidance and not self._open:  # between the results of one response there is room for nothing
            self._show()

    def _action(self, event: Any) -> None:
        """Ask about an action; one without an `action` is not executed, since its arguments are wrong."""
        if event.tool_name == _ANSWER:
            return
        arguments = _arguments(event)
        self._open[event.tool_call_id] = arguments
        if event.action is None:
            return
        verdict = self._enforcer.before(event.tool_name, arguments, call_id=event.tool_call_id)
        if verdict.action == "deny" or ends(verdict):
            self.conversation.state.block_action(event.id, refusal(verdict))
        if ends(verdict):
            self.conversation.pause()

    def _told(self, event: Any, shown: str, *, failed: bool) -> None:
        """Tell of a call."""
        if event.tool_call_id not in self._open:
            return
        arguments = self._open.pop(event.tool_call_id)
        verdict = self._enforcer.after(event.tool_name, arguments, shown, failed=failed, call_id=event.tool_call_id)
        if ends(verdict):
            self.conversation.pause()
        elif verdict.action == "guide":
            self._guidance.append(verdict)

    def _show(self) -> None:
        """Show the model guidance as the SDK does words of its own: not as a person's, which would count as such."""
        for verdict in self._guidance:
            said = Message(role="user", content=[TextContent(text=beside("", verdict).strip())])
            self.conversation.state.append_event(MessageEvent(source="environment", llm_message=said))
        self._guidance.clear()


def _arguments(event: Any) -> Any:
    """Give what a call was made with, or what it was asked for with where that is not valid."""
    if event.action is not None:
        return event.action.model_dump(mode="json", exclude={_KIND})
    try:
        return json.loads(event.tool_call.arguments)
    except ValueError:
        return event.tool_call.arguments
