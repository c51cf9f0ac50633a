"""How much of a tool call's content leaves the machine where it was observed: all, excerpts, or digests only.

Digests are of what detectors compare, so that equal calls and failures stay equal and different ones different. They
are no encryption: whoever can guess a text can try it, unless a key is mixed in. What identifies session, agent, task
and tool, times and costs is kept at every level, and so are exit codes, how many checks fail and pass, and what a call
is for: whether it reads, edits, checks, waits and so on.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
import orjson
from msgspec import UNSET

from detectors import Limits
from detectors.call import masked_result, read_call, says_pending
from detectors.canonical import canonical_arguments, opened, plain_text
from detectors.denial import own_denial
from detectors.facts import Mark
from detectors.failure import NOTHING_FOUND_CLASS, TRANSIENT_CLASS, UNKNOWN_TOOL_CLASS
from detectors.masks import without_colours
from detectors.tools import plain_name
from schemas.common import ErrorInfo
from schemas.events import CallUse

if TYPE_CHECKING:
    from collections.abc import Collection

    from detectors.facts import Call
    from detectors.failure import Failure
    from schemas.events import ToolCall

Level = Literal["digests", "excerpts", "full"]
"""``digests``: no text of arguments, results and errors. ``excerpts``: the beginning of each. ``full``: everything."""

EXCERPT_CHARS: Final = 120
"""How much of a text is kept as an excerpt: a command line, a path, the first line of an error."""

PENDING_WORD: Final = "still"
"""What is left of an answer that asks to wait: the shortest word by which detectors know one, so that the length, which
is sent too, tells them that the answer was longer."""

_DIGEST_BYTES: Final = 16
_CLASS: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,63}")  # the name of an exception; nothing that was said
_EXCERPT: Final = re.compile(rf"[\s\S]{{{EXCERPT_CHARS}}}… #[0-9a-f]{{{2 * _DIGEST_BYTES}}}")
_LIMITS: Final = Limits(off=("spin_score",))  # which costs most, and is not asked


def reduce(event: ToolCall, level: Level, key: bytes = b"") -> ToolCall:
    """Give a tool call as it may be sent.

    Args:
        event: the call as it was observed, or as it was reduced before with the same key.
        level: what may be sent of its content.
        key: secret of the sender, up to 64 bytes, without which nobody can try guesses on the digests. It must be the
            same for all records of a session, else equal calls are different.
    """
    if level == "full":
        return event
    return _excerpts(event, key) if level == "excerpts" else _digests(event, key)


def arguments_digest(tool: str, arguments: Any, key: bytes = b"") -> str:
    """Give the digest of a call's arguments: of their canonical form, without what only labels the call.

    Args:
        tool: name of the tool, since it says which arguments are labels.
        arguments: any JSON, or its text.
        key: see `reduce`.
    """
    return _digest(_canonical(arguments, _LIMITS.tools.label_arguments(plain_name(tool))), key)


def result_digest(tool: str, result: Any, key: bytes = b"") -> str:
    """Give the digest of a whole result, without what changes at every call: times, durations, process numbers.

    Args:
        tool: name of the tool, since it says what else changes in its results.
        result: any JSON.
        key: see `reduce`.
    """
    name, text = plain_name(tool), without_colours(plain_text(result))
    interacts = _LIMITS.tools.use(name, None).kind == "interact"
    masked, _ = masked_result(text, name, _LIMITS.tools, interacts=interacts)
    return _digest(masked.encode("utf-8", "replace"), key)


def _digests(event: ToolCall, key: bytes) -> ToolCall:
    """Keep no text. Of an error its class and number stay, and its message goes into the digest of the result.

    Of an answer that asks to wait one word stays, always the same: who polls is told apart from who spins.
    """
    result, length = event.result, event.result_length
    if result is not UNSET and length is None:
        length = len(plain_text(result))
    known = event.arguments is not UNSET and event.arguments is not None
    arguments = arguments_digest(event.tool, event.arguments, key) if known else event.arguments_digest
    event = _with_failure(event, key)
    error, said = event.error, event.result_digest
    use, own = event.use, _use(event, key)
    if use is None:
        use = own
    elif own is not None and use.program_digest is None:  # of a call of which an excerpt was sent before
        use = msgspec.structs.replace(use, program_digest=own.program_digest)
    if result is not UNSET and said is None:
        said = result_digest(event.tool, result, key)
    if error is not None:
        if error.message:
            said = _digest(f"{said or ''}\0{result_digest(event.tool, error.message, key)}".encode(), key)
        code = error.code if isinstance(error.code, int) else _class(error.code)
        error = msgspec.structs.replace(error, type=_class(error.type), code=code, message=None)
    waits = error is None and result is not UNSET and result is not None and says_pending(plain_text(result))
    return msgspec.structs.replace(
        event,
        arguments=UNSET,
        arguments_digest=arguments,
        result=PENDING_WORD if waits else UNSET,
        result_digest=said,
        result_length=length,
        error=error,
        use=use,
    )


def _use(event: ToolCall, key: bytes) -> CallUse | None:
    """Give what a call is for, where that is not known by the name of its tool alone, which receivers know too."""
    if event.arguments is UNSET or event.arguments is None:
        return None
    name = plain_name(event.tool)
    use, plain = _LIMITS.tools.use(name, opened(event.arguments)), _LIMITS.tools.use(name, None)
    if (use.kind, use.changes, use.program) == (plain.kind, plain.changes, plain.program):
        return None
    program = _digest(b"program " + use.program.encode("utf-8", "replace"), key) if use.program else None
    return CallUse(kind=use.kind, changes=use.changes, program_digest=program)


def _with_failure(event: ToolCall, key: bytes) -> ToolCall:
    """Add to a call what detectors would read of its failure in the text that is taken out or cut: digests and counts.

    What a check or run says when it fails is compared without its line numbers, which edits move, and so is its digest.
    """
    error = event.error or ErrorInfo()
    unread = error.message or (event.result is not UNSET and event.result is not None)
    if error.digest or not unread or own_denial(event) is not None:
        return event
    call = read_call(event, Mark(), _LIMITS)
    failure = call.failure
    if failure is None:
        return event
    said = event.result_digest
    if said is None and call.answer and call.kind in {"check", "run"}:
        said = _digest(b"answer %d" % call.answer, key)
    error = ErrorInfo(
        type=_class_of(call, failure) or error.type,
        code=error.code,
        message=error.message,
        digest=None if failure.kind is None else _digest(b"kind %d" % failure.kind, key),
        about_digest=_digest(b"about %d" % failure.about, key),
        failing=failure.failing,
        passing=failure.passing,
    )
    status = "denied" if failure.denied else event.status
    return msgspec.structs.replace(event, error=error, status=status, result_digest=said)


def _class_of(call: Call, failure: Failure) -> str | None:
    """Give the class of a failure that does not count as others do; None for any other."""
    if failure.transient:
        return TRANSIENT_CLASS
    if failure.unknown_tool:
        return UNKNOWN_TOOL_CLASS
    return NOTHING_FOUND_CLASS if call.kind == "search" and call.empty else None


def _excerpts(event: ToolCall, key: bytes) -> ToolCall:
    """Cut every text. In arguments, what was cut off leaves its digest behind, so that they can still be compared."""
    text = "" if event.result is UNSET or event.result is None else plain_text(event.result)
    message = (event.error.message if event.error is not None else None) or ""
    if max(len(text), len(message)) > EXCERPT_CHARS and not _EXCERPT.fullmatch(message):
        event = _with_failure(event, key)
    arguments, result, error, use = event.arguments, event.result, event.error, event.use
    length, said = event.result_length, event.result_digest
    if len(text) > EXCERPT_CHARS:
        length, said = length or len(text), said or result_digest(event.tool, result, key)
        result = text[:EXCERPT_CHARS]
    if error is not None and error.message:
        error = msgspec.structs.replace(error, message=_excerpt(error.message, key))
    if arguments is not UNSET:
        whole = orjson.loads(_canonical(arguments))
        arguments = _shortened(whole, key)
        cut = None if use is not None or arguments == whole else _use(event, key)
        if cut is not None:  # the program is read from what is left, as that of a short command is
            use = msgspec.structs.replace(cut, program_digest=None)
    return msgspec.structs.replace(
        event,
        arguments=arguments,
        use=use,
        result=result,
        result_length=length,
        result_digest=said,
        error=error,
    )


def _canonical(arguments: Any, labels: Collection[str] = ()) -> bytes:
    """Fold spellings of one meaning first, since what is cut off or digested cannot be folded any more."""
    return canonical_arguments(opened(arguments), labels)


def _shortened(value: Any, key: bytes) -> Any:
    if isinstance(value, str):
        return _excerpt(value, key)
    if isinstance(value, dict):
        return {_excerpt(name, key): _shortened(item, key) for name, item in value.items()}
    if isinstance(value, list):
        return [_shortened(item, key) for item in value]
    return value


def _excerpt(text: str, key: bytes) -> str:
    if len(text) <= EXCERPT_CHARS or _EXCERPT.fullmatch(text):
        return text
    return f"{text[:EXCERPT_CHARS]}… #{_digest(text.encode('utf-8', 'replace'), key)}"


def _class(name: str | None) -> str | None:
    return name if name is not None and _CLASS.fullmatch(name) else None


def _digest(data: bytes, key: bytes) -> str:
    return blake2b(data, digest_size=_DIGEST_BYTES, key=key).hexdigest()
