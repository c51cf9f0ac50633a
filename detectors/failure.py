"""Whether a call failed, and with which kind of failure.

The producer's flag decides where it says so; else the result is read, which is weaker evidence and marked so. A
failure's kind is its error code or the masked template of its message, so that wording does not matter. Where the text
could not be sent, the sender reads it as is done here, and sends digests of what it found.
"""

import re
from typing import Any, Final

import msgspec
from msgspec import UNSET

from detectors.canonical import digest
from detectors.checks import failing_checks
from detectors.excerpt import cut, redact
from detectors.glance import folded, has_any, matches_any
from detectors.masks import bounded, mask_failure, mask_result
from detectors.use import Use
from detectors.verdict import action_failure, reads_as_failure
from schemas.common import ErrorInfo
from schemas.events import ToolCall

MIN_LETTERS = 8
"""Letters a template must keep to say anything; below it a failure has no kind of its own."""

_HEAD_CHARS = 400
_LINE_CHARS = 300
_TAIL_CHARS = 2_000
_TEMPLATE_BYTES = 120

_TELLING_LINE = re.compile(  # in folded text
    r"(?:error|exception)\b|\b(?:fatal|panic|failed|failure|cannot|can't|undefined|unresolved|denied|not found"
    r"|no such|invalid|unexpected|expected|refused|missing|unknown)\b"
)
_SAID = re.compile(  # the message in a structured answer, whose quotation marks would mask it
    r"""^\s*\{[\s\S]{0,2000}?["'](?:error|err|message|detail|reason|error_message|msg)["']\s*:\s*
        (?:"((?:[^"\\]|\\.){8,})|'((?:[^'\\]|\\.){8,}))""",
    re.VERBOSE,
)
_RAISED = re.compile(r"(?!Traceback)[A-Za-z_][\w.]*(?:: .*)?\Z")  # the end of a traceback, whatever its name
_EXCEPTION_LINE = re.compile(r"^(?:E\s+)?(?:\w+\.)*\w*(?:Error|Exception|Warning|Exit|Interrupt)\b(?:: .*)?$")
_EXCEPTION_PARTS = ("Error", "Exception", "Warning", "Exit", "Interrupt")
"""Of which one is in every text that `_EXCEPTION_LINE` can match."""

_OUTAGE = r"""(?:
    (?:http(?:/[\d.]+)?|status(?:[\s_-]?code)?|code|error)\W{0,4}(?:429|50[0234])\b
  | (?:429|50[0234])\s(?:client|server|too\ many|internal|bad\ gateway|service|gateway|(?:from\ )?upstream)
  | too\ many\ requests | rate[\s_-]?limit(?:ed|s|ing|\ exceeded|\ reached)?\b(?![_(']) | rate\ exceeded
  | resource[\s_]exhausted | throttl(?:ed|ing\w*)
  | econnreset | econnrefused | etimedout | socket\ hang\ up | (?:read|connection|connect|i/o)\ timed?\ ?out
  | connection\ refused | failed\ to\ connect\ to | could\ not\ resolve\ host | network\ is\ unreachable
  | no\ route\ to\ host | temporary\ failure\ in\ name\ resolution | tls\ handshake\ timeout
  | context\ deadline\ exceeded | connection\ (?:was\ )?(?:reset|dropped|aborted) | upstream\ connect\ error
  | (?:service\ )?temporarily\ unavailable | service\ unavailable | bad\ gateway | gateway\ time-?out
  | internal\ server\ error | overloaded(?:_error)?
)"""
_TRANSIENT = re.compile(rf"(?x)(?<![\w#]) {_OUTAGE}")
_OUTAGE_PARTS = (
    *("429", "500", "502", "503", "504", "too many", "rate", "exhausted", "throttl", "econn", "etimedout", "hang up"),
    *("timed", "timeout", "time out", "refused", "connect", "resolve host", "unreachable", "route", "name resolution"),
    *("deadline", "unavailable", "gateway", "internal server", "overloaded"),
)
"""Of which one is in every text that `_TRANSIENT` can match."""

_OUTAGE_ALONE = re.compile(
    rf"""(?x)^[\s"'{{\[(]* (?:error\W{{1,3}}|\w+"?:\s*"?)? (?:{_OUTAGE} | (?:429|50[0234])\s*(?:\Z|[:"'}}\]]))"""
)
_OF_A_CHECK = re.compile(r"(?i:\bassert|\bexpected\b|\btests?\b)|\bFAILED\b|==")
_TRANSIENT_CODE = re.compile(
    r"(?i)^(?:http[\s/_-]?)?(?:429|50[0234])$|^(?:ECONNRESET|EPIPE|ETIMEDOUT|too_?many_?requests|throttl\w*"
    r"|rate_?limit\w*|transient\w*|resource_?exhausted|overloaded(?:_error)?|service_?unavailable)$"
)
_DENIED = re.compile(
    r"(?i)\bpermission to use \S+ has been denied|\bdoesn't want to proceed\b|\b(?:user|policy) (?:has )?"
    r"(?:denied|rejected|declined|disallow\w*)\b|\bblocked by (?:policy|hook)"
    r"|\bnot (?:allowed|permitted) by (?:policy|the user)"
)
_UNKNOWN_TOOL = re.compile(
    r"(?i)\W*(?:error\W+)?(?:(?:unknown|invalid|unsupported|no such|unrecognized) (?:tool|function)\b"
    r"|(?:tool|(?:tool|function) \S{1,80}) (?:is )?(?:not (?:found|defined|available)|does not exist|unknown)\b"
    r"|[\w.:/'\"`-]{1,80} is not a (?:valid|known) (?:tool|function)\b"
    r"|(?:mcp error )?-32601\b\W{0,3}method not found\b)"
)
_HEADER = re.compile(r"(?i)(?:error:?\s)?(?:command failed with )?exit(?:ed with)?(?: code| status)?:? -?\d{1,4}\.?\Z")
"""What a harness writes above a command's output, and says of no failure but that it is one."""

_FAILING_COUNT = re.compile(
    r"(?i)\b(\d{1,6}) (?:of \d{1,6} )?(?:previous )?(?:tests? )?(?:failed|failures?|failing|errors?)\b"
    r"|\b(?:failures?|errors)\s?[=:]\s?(\d{1,6})\b"
)
_PASSING_COUNT = re.compile(
    r"(?i)\b(\d{1,6}) (?:of \d{1,6} )?(?:tests? )?pass(?:ed|ing)?\b"
    r"|(?:\bRan |\bTests run: |[#\u2139] pass )(\d{1,6})\b"
)
_PASSING_PARTS = ("pass", "PASS", "Pass", "Ran ", "Tests run")
"""Of which one is in every text in which a runner says how many checks passed, or how many it came to."""

_FAILING_LINE = re.compile(
    r"(?m)^\s{0,8}(?:--- FAIL\b|FAILED\b|FAIL\b|not ok\b"
    r"|\S{1,200}[:(]\d+[:,)](?:\d+[:)]?)?:? (?:error|[EFWC]\d{3,4})\b)"
)
_FAILING_LINE_PARTS = ("FAIL", "not ok", " error")
_RULE_CODES = (re.compile(r" [EFWC]\d{3}"),)
"""One of the parts or codes is in every text that `_FAILING_LINE` can match."""

_NO_ERROR: Final = ErrorInfo()
_THINGS = re.compile(  # files, tests, and codes of rules and compilers
    r"""(?x) ([\w./\\-]{1,200}\.[a-z]{1,5}\b(?:::[\w:\[\]-]{1,200})? | \b[A-Z]{1,4}\d{2,5}\b)
      | (?![\w./\\-]{201})\w++"""  # what begins none is passed over by words, unless one may begin within
)
_QUOTED = re.compile(r"""['"`\u2018\u201c]([^'"`\u2019\u201d\n]{1,80})['"`\u2019\u201d]""")


TRANSIENT_CLASS: Final = "transient"
"""The class of an error that passes by itself, where its message may not be sent."""

UNKNOWN_TOOL_CLASS: Final = "unknown_tool"
"""The class of the error of a call of a tool that does not exist."""

NOTHING_FOUND_CLASS: Final = "nothing_found"
"""The class of the error of a search that found nothing, which its command takes for a failure."""


class Failure(msgspec.Struct, array_like=True, gc=False, frozen=True):
    """How one call failed.

    ``kind`` is a digest of code or template, None when the message says too little; ``about`` is one of what it names
    and the template has not: files, tests, what is quoted. Where the text could not be sent and nobody read it before,
    only what has the same digest of its result fails in the same way. ``from_text`` marks weaker evidence.
    ``failing`` is the number of failing checks where the message gives one, ``passing`` that of passing ones, or of all
    that ran where the runner counts these. The template is cut short, since the state keeps it.
    """

    kind: int | None
    template: str
    from_text: bool = False
    transient: bool = False
    denied: bool = False
    unknown_tool: bool = False
    failing: int | None = None
    about: int = 0
    passing: int | None = None


def read_failure(
    call: ToolCall, use: Use, result: str, answer: str, *, says_no: bool, brings_nothing: bool
) -> Failure | None:
    """Return how a call failed, None when it did not or when nothing tells.

    ``use`` is what it was for, ``result`` its text, ``answer`` that without what it repeats of the question, and
    whether it ``says_no`` or ``brings_nothing`` is known.
    """
    flagged = call.status in {"error", "timeout", "denied"}
    error = call.error or _NO_ERROR
    if not (flagged or error.digest) and not reads_as_failure(
        result, answer, call.status, use, says_no=says_no, brings_nothing=brings_nothing
    ):
        return None
    message = error.message or result
    if use.kind == "interact":
        message = action_failure(message) or message
    found = failure_of(message, error.code, error.type, call.arguments, timed_out=call.status == "timeout")
    denied = call.status == "denied" or (flagged and _DENIED.search(message[:_HEAD_CHARS]) is not None)
    kind, about = found.kind, found.about
    if error.digest:
        kind = digest("template" if error.code is None else "code", error.code or "", error.digest)
    elif not message and (call.result is UNSET or call.result is None) and (kind is None or call.result_digest):
        said = call.result_digest or call.event_id
        kind, about = digest("withheld", said), digest("about", said)
    return msgspec.structs.replace(
        found,
        kind=kind,
        about=digest("about", error.about_digest) if error.about_digest else about,
        failing=found.failing if error.failing is None else error.failing,
        passing=found.passing if error.passing is None else error.passing,
        from_text=not flagged,
        denied=denied,
    )


def failure_of(
    message: str,
    code: str | int | None = None,
    name: str | None = None,
    arguments: Any = UNSET,
    *,
    timed_out: bool = False,
) -> Failure:
    """Return what a message of failure says.

    ``code`` and ``name`` are the producer's error code and class; what ``arguments`` contain is masked in the message.
    """
    telling = redact(_telling(message))  # before it is masked: a credential with a hole in it is not known for one
    template = mask_failure(telling, arguments) or name or ""
    kind = digest("code", code, template) if code is not None and _speaks(template) else None
    if kind is None and _speaks(template):
        kind = digest("template", template)
    elif kind is None and code is not None and str(code) not in {"1", "-1"}:
        kind = digest("code", code)
    elif kind is None and timed_out:
        kind, template = digest("timeout"), "timeout"
    return Failure(
        kind=kind,
        template=cut(template, _TEMPLATE_BYTES),
        transient=_is_transient(code, name, message),
        unknown_tool=name == UNKNOWN_TOOL_CLASS or _UNKNOWN_TOOL.match(message[:_HEAD_CHARS]) is not None,
        failing=_failing(message),
        about=_about(message, telling),
        passing=_passing(message),
    )


def speaks_of_outage(short: str) -> bool:
    """Tell whether a short text, folded, is nothing but the word of an outage, as one that begins with it is."""
    return _OUTAGE_ALONE.match(short) is not None


def _is_transient(code: str | int | None, kind: str | None, message: str) -> bool:
    """Tell an outage that goes by itself from a failure that means something.

    A check whose failure speaks of one (``assert 500 == 200``) has found something, and is none.
    """
    if any(said is not None and _TRANSIENT_CODE.match(str(said)) for said in (code, kind)):
        return True
    head = message[:_HEAD_CHARS]
    lower = folded(head)
    if not has_any(lower, _OUTAGE_PARTS):
        return False
    return _TRANSIENT.search(lower) is not None and _OF_A_CHECK.search(head) is None


def _about(message: str, telling: str) -> int:
    """Return a digest of what the failure names: an error that moves on from file to file is another one each time."""
    ends = mask_result(f"{message[:_HEAD_CHARS]}\n{message[-_TAIL_CHARS:]}")
    checks = map(mask_result, failing_checks(message))
    return digest("about", *sorted(filter(None, {*_THINGS.findall(ends), *_QUOTED.findall(telling), *checks})))


def _telling(message: str) -> str:
    """Return the line that tells what failed, empty when there is none."""
    read = bounded(message)
    raw = read.splitlines()
    lines = [line.strip()[:_LINE_CHARS] for line in raw if line.strip()]
    if not lines:
        return ""
    if said := _SAID.search(message[:_TAIL_CHARS]):
        return (said.group(1) or said.group(2))[:_LINE_CHARS]
    if len(lines) > 1 and _HEADER.match(lines[0]):
        lines = lines[1:]
    exceptions = [line for line in lines if _EXCEPTION_LINE.match(line)] if has_any(read, _EXCEPTION_PARTS) else []
    if "Traceback (most recent call last)" in message and not exceptions:
        exceptions = [line[:_LINE_CHARS] for line in raw if _RAISED.match(line)]
    return (
        exceptions[-1] if exceptions else next((line for line in lines if _TELLING_LINE.search(folded(line))), lines[0])
    )


def _failing(message: str) -> int | None:
    """Return how many checks fail: as the summary at the end says, else as many as there are lines of failures."""
    said = [int(first or second) for first, second in _FAILING_COUNT.findall(message[-_TAIL_CHARS:])]
    if any(said):
        return next(count for count in reversed(said) if count)
    read = bounded(message)
    tells = has_any(read, _FAILING_LINE_PARTS) or matches_any(read, _RULE_CODES)
    lines = len(_FAILING_LINE.findall(read)) if tells else 0
    return lines or (0 if said else None)


def _passing(message: str) -> int | None:
    """Return how many checks pass, or ran, as the summaries at the end say; of several suites all together."""
    end = message[-_TAIL_CHARS:]
    if not has_any(end, _PASSING_PARTS):
        return None
    said = [int(first or second) for first, second in _PASSING_COUNT.findall(end)]
    return sum(said) if said else None


def _speaks(template: str) -> bool:
    return sum(map(str.isalpha, template)) >= MIN_LETTERS
