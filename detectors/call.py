"""Reads the facts of a tool call, each once: digests of action and result, kind of tool, failure."""

from typing import Any

from msgspec import UNSET

from detectors.canonical import canonical_arguments, digest, opened
from detectors.excerpt import call_excerpt, cut
from detectors.facts import Call, Mark
from detectors.failure import read_failure, speaks_of_outage
from detectors.limits import Limits
from detectors.masks import mask_result, text_of
from detectors.tools import asks_to_poll, changes_files, command_of, plain_name, program_of, waits
from schemas.events import ToolCall

_NAME_BYTES = 64
_WORD_CHARS = 60  # of an acknowledgement; what shows the page is longer
_OUTAGE_CHARS = 400  # a longer text is an answer that speaks of outages, not one


def read_call(event: ToolCall, mark: Mark, limits: Limits) -> Call:
    """Return the facts of a tool call; ``mark`` is what the session had spent up to it, the call included."""
    tools = limits.tools
    name = plain_name(event.tool)
    arguments = None if event.arguments is UNSET else opened(event.arguments)
    action = _action(event, name, arguments, limits)
    result = None if event.result is UNSET else event.result
    recorded = (result is not None or event.result_digest is not None) and not _is_mere_word(name, result, limits)
    if recorded:
        key = digest("call", action, _result_key(result, event), event.status or "", _error_key(event))
    else:
        key = digest("unrecorded", action)
    executes = tools.executes(name)
    command = command_of(arguments) if executes else ""
    return Call(
        seq=mark.calls - 1,
        event_id=event.event_id,
        mark=mark,
        tool=cut(name, _NAME_BYTES),
        program=cut(program_of(command) or name, _NAME_BYTES),
        action=action,
        key=key if action else 0,
        recorded=recorded,
        ok=event.status == "ok",
        batch=digest("batch", event.batch_id) if event.batch_id else 0,
        executes=executes,
        edits=tools.edits(name) or (executes and changes_files(command)),
        polls=tools.polls(name) or waits(command) or asks_to_poll(arguments),
        outage=_is_outage(result, event.status),
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


def _is_mere_word(name: str, result: Any, limits: Limits) -> bool:
    """Tell whether an interaction only answered that it worked: the page may have moved on, nobody said."""
    return limits.tools.interacts(name) and isinstance(result, str) and len(result) <= _WORD_CHARS


def _is_outage(result: Any, status: str | None) -> bool:
    """Tell whether a short result is the word of an outage, though its flag says success: that passes by itself."""
    return (
        status in {"ok", None} and isinstance(result, str) and len(result) <= _OUTAGE_CHARS and speaks_of_outage(result)
    )


def _error_key(event: ToolCall) -> str:
    error = event.error
    return f"{error.type}\0{error.code}\0{mask_result(error.message or '')}" if error else ""
