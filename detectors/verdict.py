"""Whether a text says that its call failed, where no flag says so: weaker evidence than a flag.

Flags often say no more than that the tool itself ran. A refused edit, a red check, an action without effect and an
answer that begins with an error are told by their wording; what is shown of files and records is never judged by the
words in it, only by the envelope around it.
"""

import re

from detectors.glance import folded, has_any, matches_any, words_of
from detectors.use import Use

_HEAD_CHARS = 400
_CHECK_CHARS = 2_000
_REFUSAL_CHARS = 300
_WORD_CHARS = 160  # a sentence or two: what a world or interface says to an action
_AT_ONCE_CHARS = 12
_SHOWN_CHARS = 1_000  # what reads and searches show; beyond it, it is content that may begin with anything

_NONE = r"(?!\s*\(?(?:none|null|false|empty|0)\b|\s*[\"']{2}|\s*\{\}|\s*\[\])"
_ENVELOPE = re.compile(  # in folded text
    rf"""(?x)
      ^\s*\{{\s*["'](?:error|err|exception|error_message)["']\s*:{_NONE}
    | ^\s*\{{[\s\S]{{0,300}}?["'](?:errors?|exception|error_message)["']\s*:\s*(?:["'][^"']|\{{\s*["']|\[\s*[\["'{{])
    | ["']?(?:success|ok)["']?\s*[:=]\s*false\b | \bis_?error["']?\s*[:=]\s*true\b
    | ["']status["']\s*:\s*["'](?:error|failed|failure)\b
    """
)

_FAILED_TEXT = re.compile(  # in folded text
    rf"""(?x)
      \s*(?:<[\w-]+>\s*)*(?:
        traceback\ \(most\ recent | (?:\w+\.)*\w*(?:error|exception)\b\s*[:\-(]{_NONE}
      | error\s*(?:[;!\[]|\Z|(?:\d|code|no|occurred|while|when|executing|running|calling|handling|parsing|retrieving
        |loading|opening|reading|writing|during|processing|fetching|from|in|invalid|unknown)\b)
      | fatal: | panic: | failed\b(?!:?\s*0\b) | failure\b(?!s?:?\s*0\b) | (?:command\ )?timed?\ ?out\b
      | timeout\ \S+\ exceeded | (?:code\ )?execution\ failed\b | error\ in\ code\ parsing | \d{{4}}\ \(\w{{5}}\):
      | (?:invalid|illegal|unrecognized|unsupported)\ (?!date)[\w-]+\b
      | (?:you\ )?(?:cannot|can't|could\ not|unable\ to)\ \w
      | (?:/?\w+/)*(?:ba|z|da|k)?sh:\ (?!warning)(?:line\ \d+:|\S+:)\ \S
      | (?:command|process)\ (?:failed|exited\ with\ (?:exit\ )?(?:code|status)\ [1-9])
      | (?:exit|return)\s?_?(?:code|status)\W{{0,3}}[1-9] | permission\ denied | unknown\ (?:tool|function|command)
      | thread\ '[^'\n]*'\ panicked | exception\ in\ thread | make(?:\[\d+\])?:\ \*\*\* | segmentation\ fault
      )
    | \W{{0,3}}(?:element|index|ref|selector|uid|bid|locator)\b[^\n]{{0,60}}
      \b(?:not\ available|not\ found|does\ not\ exist|no\ longer)
    | ✗
    """
)
_FAILED_WITHIN = re.compile(  # in folded text
    r"""(?x)
      \[?(?:exit|return)[\s_]?(?:code|status)\W{0,3}[1-9]\d*\b
    | <returncode>[1-9] | \bstale\ (?:snapshot|element|aria-ref|ref)\b | \A[^\n]{0,120}\bis\ not\ recognized\ as\b
    """
)
_EXITS = (re.compile(r"exit[\s_]?(?:code|status)"), re.compile(r"return[\s_]?(?:code|status)"))

_COUNTED = r"""[1-9]\d{0,5}\ (?:of\ \d+\ )?(?:[A-Za-z-]+\ ){0,2}?(?i:failed|failing|failures?|errors?)\b
        (?!\ \(\d+\ fixed,\ 0\ remaining)"""
_FAILED_CHECK = re.compile(  # each way begins with a sign, or where lines or words begin, by which most are passed over
    rf"""(?mx)
      ^(?:
        [\ \t]{{0,20}}(?:{_COUNTED} | (?:FAILED|FAIL|FAILURES?|ERROR)\b(?!\s*[=:]\s*0|\s*=))
      | not\ ok\ \d | Traceback\ \(most\ recent | would\ reformat\ \S | make(?:\[\d+\])?:\ \*\*\*[\ ]
      | \w*(?:Error|Exception):(?i:{_NONE})\ . | (?i:(?:fatal\ )?error)(?:\[\w+\])?:(?i:{_NONE})\ .
      | \S{{1,200}}:\d+:\d+:\ (?:error|undefined|undeclared|cannot|syntax|expected|missing|invalid|unresolved|fatal)\b
      )
    | [,:;=(\[|*]\ {{0,4}}{_COUNTED} | :\ (?i:(?:fatal\ )?error)(?:\[\w+\])?:(?i:{_NONE})\ .
    | \[\s{{0,4}}FAILED\s{{0,4}}\] | \.\.\.\ FAILED\b
    | \b(?:
        BUILD\ FAILED\b | error\ TS\d | (?i:found|with|are|were|generated|and|total)\ {_COUNTED}
      | (?i:build|compilation|assertion)\ (?:\w+\ )?(?i:failed|fails)\b
      | (?<!\b0\ )(?i:tests?)\ (?:\w+\ )?(?i:failed|fails)\b
      )
    """
)
_FAILED_CHECK_PARTS = ("fail", "error", "exception", "traceback", "not ok", "would reformat", "***")
_PLACED = re.compile(r":\d+:\d+: [a-z]")
"""Of which one is in every text that `_FAILED_CHECK` can match."""

_FAILED_END = re.compile(
    r"""(?x)(?:\w+\.)*\w*(?:Error|Exception)(?::|\Z)
      | -?(?:/\w+/)*(?:ba|z|da|k)?sh:\ .*(?:not\ found|No\ such\ file\ or\ directory)"""
)
_NO_LAST_LINE = re.compile(  # a prompt, a tag, blanks, frames of a stack
    r"[^\n]{0,60}[$#>] ?\Z|\s*</?\w+>\s*\Z|\s*\Z|Node\.js v[\d.]+\Z|\s+at .{0,300}\Z|\s*[{}]\s*\Z"
)
_ACTION_FAILED = re.compile(  # browsers append it behind the page
    r"(?m)^#+ (?:Error message from last action|Error)\s*$"
    r"|^(?:Error from previous action|last_action_error)\W{1,4}(?!None|null|\W*$)"
)
_REFUSES = re.compile(  # in folded text; each way begins with a letter or digit, by which most are passed over
    r"""(?x)\b(?:not(?!\ produce)|no(?!\ (?:output|errors?|issues?|problems?|warnings?|further)\b)
      |cannot|can't|couldn't|didn't|doesn't|don't|wasn't|isn't|unable|invalid|fail(?:ed|s|ure)?
      |e(?<!\b0\ e)(?<!\bno\ e)rrors?
      |missing|must
      |refused|denied|rejected|declined|aborted|illegal|incorrect|wrong|unexpected|unchanged|n(?<!you\ see\ n)othing
      |unknown\ (?:\w+\ )?(?:command|tool|action|argument|option|parameter|function|name|id|key|host|type|verb)
      |unsupported|ambiguous|mismatch|please\ (?:provide|use|specify)|0\ replacements|modified\ since|beyond\ the\ end
      |out\ of\ range|multiple\ (?:matches|occurrences)|too\ (?:long|large|many|much|big)
      |\d\d*\ (?:occurrences|matches)\b.{0,60}\bexpected)\b"""
)
_NO_WORDS = frozenset(
    b"not no cannot t unable invalid fail failed fails failure error errors missing must refused denied rejected"
    b" declined aborted illegal incorrect wrong unexpected unchanged nothing unknown unsupported ambiguous mismatch"
    b" please replacements modified beyond range multiple too occurrences matches".split()
)
"""Of which one is in every text that `_REFUSES` can match: the t is that of ``n't``."""

_NOTHING_SENT = re.compile(r"(?i)\b(?:is|was) empty\b|\bempty (?:edit|patch|fix|change)")  # a drawer may be
_ACCEPTS = re.compile(  # in folded text
    r"""(?x)\b(?:success(?:ful(?:ly)?)?|has\ been(?!\ modified\ since)|have\ been(?!\ modified\ since)|created
      |modified(?!\ since)|written|wrote|saved|updated|replaced
      |applied|edited|added|done|ok|changed|moved|removed|deleted|inserted|confirmed|booked|sent|scheduled|completed
      |submitted|registered|reserved|cancelled|committed|installed|started|enabled)\b"""
)
_NAME = r"""
      https?://\S+ | ["'](?:(?<=")[^"\n]{0,200}"|(?<=')[^'\n]{0,200}') | [/\\](?<![\w.~-].)[\w./\\~-]*+
    | \b(?:(?<![.~-])[\w.~-]*+[/\\][\w./\\~-]*+ | [\w-]++\.[a-z]{1,5}\b)
    | [.~-](?<![\w.~-].)[\w.~-]*+[/\\][\w./\\~-]*+"""
_NAMES = re.compile(_NAME, re.VERBOSE)  # of things: addresses, what is quoted, paths, files
_NAMES_AND_TITLES = re.compile(rf"{_NAME} | (?im:^\W*(?:page\ )?(?:title|url)\b.*$)", re.VERBOSE)
_JOINS = re.compile(
    r"""(?x) "(?<=[^\W\d_].)[^"\n]{0,200}"(?=[\w./\\~"'-]) | '(?<=[^\W\d_].)[^'\n]{0,200}'(?=[\w./\\~"'-])
      | h(?<=[^\W\d_].)ttps?://"""
)
"""Where leaving out names can join letters to a word, or end one: other names begin and end where words do."""

_STRUCTURED = re.compile(r"\s*(?:\{|\[\s*[\[{\"\]\d])")
_SHOW = frozenset({"read", "search", "plan", "talk"})


def complains(answer: str) -> bool:
    """Tell whether a short answer, or the first lines of a longer one, says no before it says yes.

    Names in it say nothing, and neither do words in a structured answer.
    """
    if _STRUCTURED.match(answer):
        return False
    head = answer[:_REFUSAL_CHARS]
    if _NO_WORDS.isdisjoint(words_of(head)) and not _JOINS.search(head):
        return False
    names = _NAMES_AND_TITLES if has_any(folded(head), ("title", "url")) else _NAMES
    head = folded(names.sub("", head))
    refused = _REFUSES.search(head)
    if refused is None:
        return False
    accepted = _ACCEPTS.search(head)
    return accepted is None or refused.start() < accepted.start()


def reads_as_failure(
    result: str, answer: str, status: str | None, use: Use, *, says_no: bool, brings_nothing: bool
) -> bool:
    """Tell whether a result reads as a failure; ``answer`` is it without what it repeats of the question.

    ``says_no`` is whether the answer `complains`, ``brings_nothing`` whether it brought nothing.

    What reads and searches show may be of any kind: only without a flag, or when it is short, is its beginning judged.
    That something else has failed, or has not ended yet, is what a poll is for.
    """
    if use.kind == "poll":
        return False
    if use.kind == "search" and use.executes and brings_nothing:
        return False
    if _is_told(result, answer, use, says_no=says_no):
        return True
    if use.kind in _SHOW and status == "ok" and (use.executes or len(result) > _SHOWN_CHARS):
        return False
    head = result[:_HEAD_CHARS]
    lower = folded(head)
    return (
        (_may_be_envelope(lower) and _ENVELOPE.search(lower) is not None)
        or _FAILED_TEXT.match(lower) is not None
        or (_may_fail_within(lower) and _FAILED_WITHIN.search(lower) is not None)
    )


def _may_be_envelope(lower: str) -> bool:
    """Tell whether there can be what `_ENVELOPE` matches."""
    if has_any(lower, ("false", "iserror", "is_error")) or ("status" in lower and has_any(lower, ("error", "fail"))):
        return True
    return has_any(lower, ("err", "exception")) and lower.lstrip()[:1] == "{"


def _may_fail_within(lower: str) -> bool:
    """Tell whether there can be what `_FAILED_WITHIN` matches."""
    return has_any(lower, ("stale ", "recognized as")) or matches_any(lower, _EXITS)


def action_failure(result: str) -> str:
    """Return what a browser says of the action behind the page that it shows; empty when it says nothing."""
    failed = _ACTION_FAILED.search(result)
    return result[failed.end() :][:_HEAD_CHARS] if failed else ""


def _is_told(result: str, answer: str, use: Use, *, says_no: bool) -> bool:
    """Tell whether a call of this kind says so itself: a red check, a refused edit, an action that had no effect."""
    if use.kind in {"edit", "check"} and _check_failed(result):
        return True
    if use.executes:
        return use.kind not in _SHOW and _ends_in_failure(result)
    if use.kind == "interact" and _ACTION_FAILED.search(result):
        return True
    if use.kind == "edit":
        return says_no or _NOTHING_SENT.search(answer[:_REFUSAL_CHARS]) is not None
    if use.kind == "other":  # a world says no at once; what another agent reports may have a no in it
        return says_no and len(result) <= _WORD_CHARS and _REFUSES.search(folded(answer[:_AT_ONCE_CHARS])) is not None
    return says_no and use.kind == "interact" and len(result) <= _WORD_CHARS


def _check_failed(result: str) -> bool:
    text = result
    if len(result) > _CHECK_CHARS or "FAILED" in result:
        text = f"{result[:_CHECK_CHARS]}\n{result[-_CHECK_CHARS:]}"
    lower = folded(text)
    if not has_any(lower, _FAILED_CHECK_PARTS) and not _PLACED.search(lower):
        return False
    return _FAILED_CHECK.search(text) is not None


def _ends_in_failure(result: str) -> bool:
    """Tell whether the last line that a command printed names an error, before the prompt that comes again."""
    lines = result[-_HEAD_CHARS:].split("\n")
    last = next((line for line in reversed(lines) if _NO_LAST_LINE.match(line) is None), "")
    return _FAILED_END.match(last) is not None
