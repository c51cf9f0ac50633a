"""Reads the facts of a tool call, each once: digests of action and result, kind of tool, failure."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from detectors.canonical import canonical_arguments, digest, opened, plain_text
from detectors.catalogue import Tools
from detectors.excerpt import call_excerpt, cut
from detectors.facts import WORD_BYTES, Call, Mark
from detectors.failure import MIN_LETTERS, NOTHING_FOUND_CLASS, read_failure, speaks_of_outage
from detectors.glance import folded, has_any
from detectors.interface import is_acknowledgement, is_picture, moves_on, page_of, without_handles
from detectors.limits import Limits
from detectors.masks import MASK, MIN_ECHO_CHARS, bounded, echoes_of, mask_answer, mask_result, without_colours
from detectors.nothing import brought_nothing, letters_beside_fields, unwrapped
from detectors.novelty import pieces_of
from detectors.patch import patch_digest
from detectors.tools import plain_name
from detectors.use import Use
from detectors.verdict import complains
from schemas.events import CallUse, ToolCall

_QUERY_WORD = re.compile(r"[^\W_]{3,}")
_MAX_WORDS = 12
_LINE_NUMBER = re.compile(r"[:l(](?:(?<=[\w)]:)\d+(?::\d+)?(?=[:,\s)]|\Z)|(?<=\bl)ine \d+|(?<=\()\d+,\d+\))")
_CONTENT_CHARS = 60
_MOST_BYTES = 4  # of a character in UTF-8
_PENDING_CHARS = 600
_PENDING = re.compile(  # in folded text
    r"(?<!\[)\b(?:pending|running|in[ _-]?progress|queued|starting|initiali[sz]ing|provisioning|containercreating"
    r"|creating|building|processing|scheduling|deploying|not[ _-]ready|waiting|still)(?![a-z])|create_in_progress"
)
_PENDING_PARTS = (
    *("pending", "running", "progress", "queued", "starting", "initiali", "provisioning", "creating", "building"),
    *("processing", "scheduling", "deploying", "ready", "waiting", "still"),
)
"""Of which one is in every text that `_PENDING` can match."""

_AS_BEFORE = re.compile(  # in folded text; one that is nothing but a reference begins with one
    r"\W*(?:(?:the|this|your|you|it|file|results?|outputs?|contents?|response|answer|tool|call|have|has|is|was|were"
    r"|been|nothing)\W+){0,5}(?:(?:identical|unchanged|same|not changed|no changes?|changed)\b.{0,60}"
    r"\b(?:earlier|previous(?:ly)?|prior|last|before|(?:call|result|step|turn) ?#?\d+)\b"
    r"|already (?:read|shown|returned|fetched|retrieved|in (?:your )?context)\b)"
)
_AS_BEFORE_PARTS = ("identical", "change", "same", "already")
"""Of which one is in every text that `_AS_BEFORE` can match."""

_AS_BEFORE_CHARS = 300
_NAME_BYTES = 64
_PROGRAM_CHARS = 8  # of a digest, enough to tell a session's programs apart
_ANSWER_CHARS = 1_000
_FEW_CHARS = 24  # enough letters, mostly
_OUTAGE_CHARS = 400  # a longer text is an answer that speaks of outages, not one


def read_call(event: ToolCall, mark: Mark, limits: Limits, recent: Sequence[Call] = ()) -> Call:
    """Return the facts of a tool call; ``mark`` is what the session had spent up to it, the call included.

    A result that only refers to the one before, as harnesses do to save room, is that one if it is among ``recent``.
    """
    tools = limits.tools
    name = plain_name(event.tool)
    arguments = None if event.arguments is UNSET else opened(event.arguments)
    use = tools.use(name, arguments)
    if event.use is not None:
        use = _told(use, name, event.use)
    found_nothing = event.error is not None and event.error.type == NOTHING_FOUND_CLASS
    if found_nothing:
        use = msgspec.structs.replace(use, kind="search")
    canonical = b"" if arguments is None else canonical_arguments(arguments, tools.label_arguments(name))
    action = _action(event, name, canonical)
    result = None if event.result is UNSET else event.result
    text = "" if result is None else without_colours(plain_text(result))
    short = _short(text)
    interacts = use.kind == "interact"
    masked, raw = masked_result(text, name, tools, interacts=interacts)
    only_worked = interacts and result is not None and not complains(text) and is_acknowledgement(text)
    shown = result is not None and not only_worked and not is_picture(short)
    recorded = event.result_digest is not None or shown
    fit = "" if result is not None and not _is_cut(event, text) else event.result_digest or ""
    outcome = (event.status or "", _error_key(event))
    echoes = echoes_of(arguments)
    for said in (use.query, use.target):
        if len(said) >= MIN_ECHO_CHARS:
            echoes.append(said)
    without_echoes = mask_answer(masked, echoes) if raw else ""
    answer = raw if without_echoes == masked else unwrapped(without_echoes)
    if use.kind in {"run", "check"}:
        answer = _LINE_NUMBER.sub(MASK, answer)
    known = result is not None and recorded
    says_no = complains(answer)
    brings_nothing = brought_nothing(answer, shows=use.kind == "read" and use.executes) if answer else not raw
    nothing = brings_nothing or not answer
    failure = read_failure(event, use, text, answer, says_no=says_no, brings_nothing=nothing)
    scrolls = interacts and moves_on(name, arguments, text if only_worked else "")
    call = Call(
        seq=mark.calls - 1,
        event_id=event.event_id,
        mark=mark,
        tool=cut(name, _NAME_BYTES),
        program=cut(use.program or name, _NAME_BYTES),
        kind=use.kind,
        action=action,
        key=_key(action, f"{masked}\0{fit}", outcome, recorded=recorded),
        answer=digest("answer", name, answer, fit, *outcome) if known and _speaks(answer) else 0,
        patch=patch_digest(name, arguments, tools.label_arguments(name), use.target) if use.kind == "edit" else 0,
        page=page_of(text, scrolls=scrolls) if interacts else 0,
        target=digest("target", use.target) if use.target else 0,
        words=words_of_query(use.query) if use.kind == "search" else b"",
        start=use.start,
        end=use.end,
        recorded=recorded,
        ok=event.status == "ok",
        batch=digest("batch", event.batch_id) if event.batch_id else 0,
        executes=use.executes,
        changes=use.changes,
        scrolls=scrolls,
        lengthy=use.kind == "edit" and _is_lengthy(arguments, canonical),
        empty=found_nothing or (known and brings_nothing),
        complains=known and says_no,
        pending=known and _is_pending(short),
        outage=_is_outage(short, event.status),
        failure=failure,
        text=call_excerpt(event.tool, arguments, limits.decision.excerpt_chars),
        pieces=pieces_of(masked, canonical) if limits.scores_spin else [],
    )
    if known and _refers(short):
        _refer(call, recent)
    return call


def _told(use: Use, name: str, told: CallUse) -> Use:
    """Return the use of a call as its sender read it, who knew all the arguments."""
    program = f"{name} #{told.program_digest[-_PROGRAM_CHARS:]}" if told.program_digest else use.program
    return msgspec.structs.replace(use, kind=told.kind, changes=told.changes, program=program)


def print_of_call(event: ToolCall, tools: Tools) -> str:
    """Return the digest of a call by tool and canonical arguments, as alerts name it; empty when these are not known.

    The call need not have been made: whoever is asked for one tells by it whether it is one that a loop consists of.
    """
    name = plain_name(event.tool)
    arguments = None if event.arguments is UNSET else opened(event.arguments)
    canonical = b"" if arguments is None else canonical_arguments(arguments, tools.label_arguments(name))
    action = _action(event, name, canonical)
    return print_of_action(action) if action else ""


def print_of_action(action: int) -> str:
    """Return the digest of an action as it stands in alerts and directives."""
    return f"{action:016x}"


def says_pending(text: str) -> bool:
    """Tell whether an answer says that what was asked about is not done yet: asking again is waiting."""
    return _is_pending(_short(text))


def _short(text: str) -> str:
    """Fold an answer that is judged as a whole; give nothing for a longer one."""
    return folded(text) if len(text) <= _PENDING_CHARS else ""


def _is_pending(short: str) -> bool:
    return has_any(short, _PENDING_PARTS) and _PENDING.search(short) is not None


def _refers(short: str) -> bool:
    if len(short) > _AS_BEFORE_CHARS or not has_any(short, _AS_BEFORE_PARTS):
        return False
    return _AS_BEFORE.match(short) is not None


def _refer(call: Call, recent: Sequence[Call]) -> None:
    """Give the call the result of the latest equal one, unless one of the two failed."""
    before = next((seen for seen in reversed(recent) if seen.action == call.action), None)
    if before is not None and before.recorded and (before.failure is None) == (call.failure is None):
        call.key, call.answer = before.key, before.answer
        call.empty, call.complains, call.pending = before.empty, before.complains, before.pending


def masked_result(text: str, name: str, tools: Tools, *, interacts: bool) -> tuple[str, str]:
    """Return a result without what is volatile, in any tool's results and in this one's, and that without its wrapper.

    Where nothing else is left, the tool is a clock or a meter, and what is volatile is its answer.
    """
    masked = tools.masked(name, mask_result(text))
    if interacts:
        masked = without_handles(masked)
    raw = unwrapped(masked)
    if any(map(str.isalnum, raw)):
        return masked, raw
    whole = bounded(text)
    return whole, unwrapped(whole)


def _key(action: int, result: str, outcome: tuple[str, str], *, recorded: bool) -> int:
    if not action:
        return 0
    return digest("call", action, result, *outcome) if recorded else digest("unrecorded", action)


def _speaks(answer: str) -> bool:
    """Tell whether an answer is more than bare values: equal small values are data, not one answer."""
    said = answer[:_ANSWER_CHARS]
    if said[:1] in {"{", "["}:
        return letters_beside_fields(said, MIN_LETTERS)
    return sum(map(str.isalpha, said[:_FEW_CHARS])) >= MIN_LETTERS or sum(map(str.isalpha, said)) >= MIN_LETTERS


def _action(event: ToolCall, name: str, canonical: bytes) -> int:
    if canonical:
        return digest("action", name, canonical)
    if event.arguments_digest is not None:
        return digest("action by digest", name, event.arguments_digest)
    return 0


def _is_lengthy(arguments: Any, canonical: bytes) -> bool:
    """Tell whether arguments hold content; ``canonical`` is what they are compared by, which leaves some out."""
    if arguments is None or isinstance(arguments, str):
        return arguments is not None and len(arguments) >= _CONTENT_CHARS
    return len(canonical) >= _CONTENT_CHARS * _MOST_BYTES or len(plain_text(arguments)) >= _CONTENT_CHARS


def words_of_query(query: str) -> bytes:
    """Return prints of the first words of a query: two bytes each, to tell whether another asks for the same."""
    words = dict.fromkeys(_QUERY_WORD.findall(query[:_ANSWER_CHARS].lower()))
    return b"".join((digest(word) & 0xFFFF).to_bytes(WORD_BYTES, "little") for word in list(words)[:_MAX_WORDS])


def _is_cut(event: ToolCall, text: str) -> bool:
    return event.result_length is not None and event.result_length > len(text)


def _is_outage(short: str, status: str | None) -> bool:
    """Tell whether a short result is the word of an outage, though its flag says success: that passes by itself."""
    return status in {"ok", None} and len(short) <= _OUTAGE_CHARS and speaks_of_outage(short)


def _error_key(event: ToolCall) -> str:
    error = event.error
    return f"{error.type}\0{error.code}\0{mask_result(error.message or '')}" if error else ""
