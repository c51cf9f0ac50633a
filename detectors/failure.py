"""Whether a call failed, and with which kind of failure.

The producer's flag decides where it says so; else the beginning of the result is read, which is weaker evidence and
marked so. Flags often say no more than that the tool itself ran: an edit that was refused, a build that broke and an
answer that begins with an error count as failures whatever their flag. A failure's kind is its error code or the masked
template of its message, so that wording does not matter.
"""

import re
from typing import Any

import msgspec
from msgspec import UNSET

from detectors.canonical import digest
from detectors.excerpt import cut
from detectors.masks import bounded, mask_failure, text_of
from detectors.use import Use
from schemas.events import ToolCall

MIN_LETTERS = 8
"""Letters a template must keep to say anything; below it a failure has no kind of its own."""

_HEAD_CHARS = 400
_LINE_CHARS = 300
_TAIL_CHARS = 2_000
_TEMPLATE_BYTES = 160
_CHECK_CHARS = 4_000
_REFUSAL_CHARS = 300
_WORD_CHARS = 160  # a sentence or two: what a world or interface says to an action
_ANSWER_CHARS = 1_000  # what reads and searches show; beyond it, it is content that may begin with anything

_FAILED_TEXT = re.compile(
    r"""(?ix)
      ^\s*(?:<[\w-]+>\s*)*(?:
        traceback\ \(most\ recent | (?:\w+\.)*\w*(?:error|exception)\b\s*[:\-(]
      | error\b(?!:\ \(?(?:none|null|empty)\b) | fatal: | panic: | failed\b | failure\b | timed?\ ?out\b
      | timeout\ \S+\ exceeded | (?:code\ )?execution\ failed\b | error\ in\ code\ parsing | \d{4}\ \(\w{5}\):
      | (?:invalid|illegal|unrecognized|unsupported)\ (?!date)[\w-]+\b
      | (?:you\ )?(?:cannot|can't|could\ not|unable\ to)\ \w
      | (?:/?\w+/)*(?:ba|z|da|k)?sh:\ (?!warning)(?:line\ \d+:|\S+:)\ \S
      | (?:command|process)\ (?:failed|exited\ with\ (?:exit\ )?(?:code|status)\ [1-9])
      | (?:exit|return)\s?_?(?:code|status)\W{0,3}[1-9] | permission\ denied | unknown\ (?:tool|function|command)
      )
    | \[?(?:exit|return)[\s_]?(?:code|status)\W{0,3}[1-9]\d*\b
    | <returncode>[1-9]
    | ^\W{0,3}(?:element|index|ref|selector|uid|bid|locator)\b[^\n]{0,60}
      \b(?:not\ available|not\ found|does\ not\ exist|no\ longer)
    | ^✗ | \bstale\ (?:snapshot|element|aria-ref|ref)\b
    | ^\s*\{\s*["'](?:error|err|exception|error_message)["']\s*:(?!\s*(?:null|none|false|["']{2}|\{\}|\[\]))
    | ["']?(?:success|ok)["']?\s*[:=]\s*false\b | \bis_?error["']?\s*[:=]\s*true\b
    | ["']status["']\s*:\s*["'](?:error|failed|failure)\b
    """
)
_FAILED_CHECK = re.compile(
    r"""(?mx)
      \b[1-9]\d{0,5}\ (?:[\w-]+\ ){0,2}?(?i:failed|failing|failures?|errors?)\b
    | ^\s*(?:FAILED|FAIL|FAILURE|ERROR)\b | \bBUILD\ FAILED\b | ^Traceback\ \(most\ recent
    | (?:^\w*(?:Error|Exception)|(?:^|:\ )(?i:(?:fatal\ )?error)(?:\[\w+\])?):\ (?!\(?(?i:none|null|empty)\b).
    | \b(?i:tests?|build|compilation|assertion)\ (?:\w+\ )?(?i:failed|fails)\b
    """
)
_FAILED_END = re.compile(
    r"""(?x)(?:\w+\.)*\w*(?:Error|Exception)(?::|\Z)
      | -?(?:/\w+/)*(?:ba|z|da|k)?sh:\ .*(?:not\ found|No\ such\ file\ or\ directory)"""
)
_NO_LAST_LINE = re.compile(r"[^\n]{0,60}[$#>] ?\Z|\s*</?\w+>\s*\Z|\s*\Z")  # a prompt, a tag, blanks
_REFUSES = re.compile(
    r"""(?ix)\b(?:not(?!\ produce)|no(?!\ (?:output|errors?|issues?|problems?|warnings?)\b)
      |cannot|can't|(?:could|did|does|was|is)n't|unable|invalid
      |fail(?:ed|s|ure)?|errors?|missing|must
      |refused|denied|rejected|illegal|incorrect|wrong|unexpected|unchanged|(?<!you\ see\ )nothing
      |unknown\ (?:\w+\ )?(?:command|tool|action|argument|option|parameter|function|name|id|key|host|type|verb)
      |unsupported|is\ empty
      |too\ (?:long|large|many|much|big))\b"""
)
_ACCEPTS = re.compile(
    r"(?i)\b(?:success(?:ful(?:ly)?)?|(?:has|have) been|created|modified|written|wrote|saved|updated|replaced|applied"
    r"|edited|added|done|ok|changed|moved|removed|deleted|inserted)\b"
)
_ACTS = frozenset({"edit", "interact", "other"})
_SHOW = frozenset({"read", "search", "plan", "talk"})
_TELLING_LINE = re.compile(
    r"(?i)\b(?:\w*error|\w*exception|fatal|panic|failed|failure|cannot|can't|undefined|unresolved|denied|not found"
    r"|no such|invalid|unexpected|expected|refused|missing|unknown)\b"
)
_SAID = re.compile(  # the message in a structured answer, whose quotation marks would mask it
    r"""^\s*\{[\s\S]*?["'](?:error|err|message|detail|reason|error_message|msg)["']\s*:\s*["']([^"'{}]{8,})"""
)
_EXCEPTION_LINE = re.compile(r"^(?:E\s+)?(?:\w+\.)*\w*(?:Error|Exception|Warning|Exit|Interrupt)\b(?:: .*)?$")
_OUTAGE = r"""(?:
    (?:http(?:/[\d.]+)?|status(?:[\s_-]?code)?|code|error)\W{0,4}(?:429|50[0234])\b
  | (?:429|50[0234])\s(?:client|server|too\ many|internal|bad\ gateway|service|gateway|(?:from\ )?upstream)
  | too\ many\ requests | rate[\s_-]?limit(?:ed|s|\ exceeded|\ reached)? | rate\ exceeded
  | resource[\s_]exhausted | throttl(?:ed|ing\w*)
  | econnreset | socket\ hang\ up | connection\ (?:was\ )?(?:reset|dropped|aborted) | upstream\ connect\ error
  | (?:service\ )?temporarily\ unavailable | service\ unavailable | bad\ gateway | gateway\ time-?out
  | internal\ server\ error | overloaded(?:_error)?
)"""
_TRANSIENT = re.compile(rf"(?ix)(?<![\w#]) {_OUTAGE}")
_OUTAGE_ALONE = re.compile(
    rf"""(?ix)^[\s"'{{\[(]* (?:error\W{{1,3}}|\w+"?:\s*"?)? (?:{_OUTAGE} | (?:429|50[0234])\b)"""
)
_OF_A_CHECK = re.compile(r"(?i)\bassert|\bexpected\b|\bFAILED\b|\btests?\b|==")
_TRANSIENT_CODE = re.compile(
    r"(?i)^(?:http[\s/_-]?)?(?:429|50[0234])$|^(?:ECONNRESET|EPIPE|ETIMEDOUT|too_?many_?requests|throttl\w*"
    r"|rate_?limit\w*|transient\w*|resource_?exhausted|overloaded(?:_error)?|service_?unavailable)$"
)
_UNKNOWN_TOOL = re.compile(
    r"(?i)^\W*(?:error\W+)?(?:unknown|invalid|unsupported|no such|unrecognized) (?:tool|function)\b"
    r"|^\W*(?:error\W+)?(?:tool|function) \S{1,80} (?:is )?(?:not found|does not exist|not available|unknown)"
)
_FAILING_COUNT = re.compile(r"(?i)\b(\d{1,6}) (?:tests? )?(?:failed|failures?|failing|errors?)\b")


_ACTION_FAILED = re.compile(  # browsers append it behind the page
    r"(?m)^#+ (?:Error message from last action|Error)\s*$"
    r"|^(?:Error from previous action|last_action_error)\W{1,4}(?!None|null|\W*$)"
)


class Failure(msgspec.Struct, array_like=True, frozen=True):
    """How one call failed.

    ``kind`` is a digest of code or template, None when the message says too little. ``from_text`` marks weaker
    evidence. ``failing`` is the number of failing checks where the message gives one. The template is cut
    short, since the state keeps it.
    """

    kind: int | None
    template: str
    from_text: bool = False
    transient: bool = False
    denied: bool = False
    unknown_tool: bool = False
    failing: int | None = None


def read_failure(call: ToolCall, use: Use) -> Failure | None:
    """Return how a call failed, None when it did not or when nothing tells; ``use`` is what it was for."""
    flagged = call.status in {"error", "timeout", "denied"}
    result = "" if call.result is UNSET or call.result is None else text_of(call.result)
    if not flagged and not _reads_as_failure(result, call.status, use):
        return None
    message = (call.error.message if call.error else None) or result
    if use.kind == "interact" and (failed := _ACTION_FAILED.search(message)):
        message = message[failed.end() :][:_HEAD_CHARS]
    code = None if call.error is None else call.error.code
    template = _template(message, call.arguments) or (call.error.type or "" if call.error else "")
    kind = digest("code", code, template) if code is not None and _speaks(template) else None
    if kind is None and _speaks(template):
        kind = digest("template", template)
    elif kind is None and code is not None and str(code) not in {"1", "-1"}:
        kind = digest("code", code)
    elif kind is None and call.status == "timeout":
        kind, template = digest("timeout"), "timeout"
    counts = _FAILING_COUNT.findall(message[-_TAIL_CHARS:])  # the summary stands last
    return Failure(
        kind=kind,
        template=cut(template, _TEMPLATE_BYTES),
        from_text=not flagged,
        transient=_is_transient(code, call.error.type if call.error else None, message),
        denied=call.status == "denied",
        unknown_tool=_UNKNOWN_TOOL.search(message[:_HEAD_CHARS]) is not None,
        failing=int(counts[-1]) if counts else None,
    )


def complains(result: str) -> bool:
    """Tell whether a short answer, or the first lines of a longer one, says no before it says yes."""
    head = result[:_REFUSAL_CHARS]
    refused = _REFUSES.search(head)
    if refused is None:
        return False
    accepted = _ACCEPTS.search(head)
    return accepted is None or refused.start() < accepted.start()


def _reads_as_failure(result: str, status: str | None, use: Use) -> bool:
    """Tell whether a result reads as a failure though no flag says so.

    What reads and searches show may be of any kind: only without a flag, or when it is short, is its beginning judged.
    That something else has failed, or has not ended yet, is what a poll is for.
    """
    if use.kind == "poll":
        return False
    if _is_told(result, use):
        return True
    if use.kind in _SHOW and status == "ok" and (use.executes or len(result) > _ANSWER_CHARS):
        return False
    return _FAILED_TEXT.search(result[:_HEAD_CHARS]) is not None


def _is_told(result: str, use: Use) -> bool:
    """Tell whether a call of this kind says so itself: a red check, a refused edit, an action that had no effect."""
    if use.kind in {"edit", "check"} and _FAILED_CHECK.search(f"{result[:_CHECK_CHARS]}\n{result[-_CHECK_CHARS:]}"):
        return True
    if use.executes:
        return _ends_in_failure(result)
    if use.kind == "interact" and _ACTION_FAILED.search(result):
        return True
    short = use.kind == "edit" or len(result) <= _WORD_CHARS
    return use.kind in _ACTS and short and complains(result)


def _ends_in_failure(result: str) -> bool:
    """Tell whether the last line that a command printed names an error, before the prompt that comes again."""
    lines = result[-_HEAD_CHARS:].split("\n")
    last = next((line for line in reversed(lines) if _NO_LAST_LINE.match(line) is None), "")
    return _FAILED_END.match(last) is not None


def speaks_of_outage(result: str) -> bool:
    """Tell whether a text is nothing but the word of an outage, as one that begins with it is."""
    return _OUTAGE_ALONE.match(result) is not None


def _is_transient(code: str | int | None, kind: str | None, message: str) -> bool:
    """Tell an outage that goes by itself from a failure that means something.

    A check whose failure speaks of one (``assert 500 == 200``) has found something, and is none.
    """
    if any(said is not None and _TRANSIENT_CODE.match(str(said)) for said in (code, kind)):
        return True
    head = message[:_HEAD_CHARS]
    return _TRANSIENT.search(head) is not None and _OF_A_CHECK.search(head) is None


def _template(message: str, arguments: Any) -> str:
    """Return the masked template of the line that tells what failed."""
    lines = [line.strip()[:_LINE_CHARS] for line in bounded(message).splitlines() if line.strip()]
    if not lines:
        return ""
    if said := _SAID.search(lines[0]):
        return mask_failure(said.group(1), arguments)
    exceptions = [line for line in lines if _EXCEPTION_LINE.match(line)]
    telling = exceptions[-1] if exceptions else next((line for line in lines if _TELLING_LINE.search(line)), lines[0])
    return mask_failure(telling, arguments)


def _speaks(template: str) -> bool:
    return sum(map(str.isalpha, template)) >= MIN_LETTERS
