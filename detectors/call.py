"""The facts of one tool call that detectors share, each derived once: digests, kind of tool, failure."""

from dataclasses import dataclass
from typing import Any

from msgspec import UNSET

from detectors.canonical import canonical_arguments, digest
from detectors.excerpt import call_excerpt
from detectors.failure import Failure, is_transient, read_failure
from detectors.limits import Limits
from detectors.masks import mask_result, text_of
from detectors.tools import asks_to_poll, changes_files, command_of, plain_name, program_of, waits
from schemas.events import ToolCall

_OUTAGE_CHARS = 400  # a longer text is an answer that speaks of outages, not one


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call as detectors see it.

    ``action`` is a digest of tool and canonical arguments, ``key`` of those and the masked result; both are 0 when the
    arguments were not recorded, and ``recorded`` is False when the result was not.
    """

    seq: int
    event_id: str
    at_ms: int
    tool: str
    program: str
    action: int
    key: int
    recorded: bool
    batch: int
    executes: bool
    edits: bool
    polls: bool
    outage: bool
    failure: Failure | None
    text: str

    @property
    def succeeded(self) -> bool:
        """The call is known, or from its text believed, not to have failed."""
        return self.recorded and self.failure is None


def read_call(event: ToolCall, seq: int, at_ms: int, limits: Limits) -> Call:
    """Return the facts of a tool call; ``seq`` is its position in the session from 0."""
    tools = limits.tools
    name = plain_name(event.tool)
    arguments = None if event.arguments is UNSET else event.arguments
    action = _action(event, name, arguments, limits)
    result = None if event.result is UNSET else event.result
    recorded = result is not None or event.result_digest is not None
    if recorded:
        key = digest("call", action, _result_key(result, event), event.status or "", _error_key(event))
    else:
        key = digest("unrecorded", action)
    executes = tools.executes(name)
    command = command_of(arguments) if executes else ""
    return Call(
        seq=seq,
        event_id=event.event_id,
        at_ms=at_ms,
        tool=name,
        program=program_of(command) or name,
        action=action,
        key=key if action else 0,
        recorded=recorded,
        batch=digest("batch", event.batch_id) if event.batch_id else 0,
        executes=executes,
        edits=name in tools.edit or (executes and changes_files(command)),
        polls=name in tools.poll or waits(command) or asks_to_poll(arguments),
        outage=_is_outage(result),
        failure=read_failure(event),
        text=call_excerpt(event.tool, arguments, limits.decision.excerpt_chars),
    )


def _action(event: ToolCall, name: str, arguments: Any, limits: Limits) -> int:
    if arguments is not None:
        return digest("action", name, canonical_arguments(arguments, limits.tools.label_arguments(name)))
    if event.arguments_digest is not None:
        return digest("action by digest", name, event.arguments_digest)
    return 0


def _result_key(result: Any, event: ToolCall) -> str:
    """Return what of the result counts: its masked text, and the digest of the whole where the text was cut."""
    if result is None:
        return f"digest {event.result_digest}"
    text = text_of(result)
    cut = event.result_length is not None and event.result_length > len(text)
    return f"{mask_result(text)}\0{event.result_digest}" if cut and event.result_digest else mask_result(text)


def _is_outage(result: Any) -> bool:
    """Tell whether a short result is the word of an outage, whatever its flag says: that passes by itself."""
    return isinstance(result, str) and len(result) <= _OUTAGE_CHARS and is_transient(None, result)


def _error_key(event: ToolCall) -> str:
    error = event.error
    return f"{error.type}\0{error.code}\0{mask_result(error.message or '')}" if error else ""
