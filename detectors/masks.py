"""When two results are the same: what changes from run to run without meaning anything is masked.

Clock times, durations, process ids, generated ids, temporary paths, addresses, attempt counters and a shell's own line
numbers are masked. Bare numbers stay: a score, a loss or a count is the answer.
"""

import re
from collections.abc import Iterable
from typing import Any

from detectors.glance import DIGITS, has_any

MAX_READ_CHARS = 65_536
"""How much of one text is read: beginning and end, and the length; bounds the work for one event."""

MASK = "<~>"

# Each pattern begins with a plain set of characters, so that the engine skips to where a match can begin; word
# boundaries are looked behind for. One pattern for all of them took ten times as long. Signs are cheaper still: they
# begin with one plain character.
_VOLATILE: tuple[tuple[tuple[str, ...], tuple[re.Pattern[str], ...], re.Pattern[str]], ...] = (
    (
        (),
        (re.compile("-[0-9a-fA-F]{4}-"),),
        re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"),  # UUID
    ),
    (
        (),
        (re.compile("/(?:tmp|var/(?:tmp|folders))/"),),
        re.compile(r"""/(?<![\w.~-]/)(?:private/)?(?:tmp|var/tmp|var/folders)/[^\s'"`:;,)\]>]+"""),
    ),
    (
        (),
        (re.compile("_[A-Za-z0-9]{12}"), re.compile("-[A-Za-z0-9]{12}")),
        re.compile(r"(?:call|toolu|req|msg|chatcmpl|resp|sess|run)[_-][A-Za-z0-9]{12,}"),  # generated id
    ),
    (
        (),
        (re.compile(r":\d\d:\d\d"),),
        re.compile(
            r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},? +(?:\d{1,2} )?[A-Z][a-z]{2} [\d ]*"  # as `date` prints it
            r"\d\d:\d\d:\d\d(?: [A-Z]{2,5})?(?: \d{4})?"
        ),
    ),
    (
        (),
        (),
        re.compile(
            r"""(?x)
            [0-9](?<![0-9A-Za-z_.].)(?=\d*+[-:.\ msxnuµ]|[6-9]\d{8})(?:  # by what follows most are passed over
                \d{3}-\d\d-\d\d[T\ ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\ ?Z|\ ?[+-]\d\d:?\d\d)?  # 2026-01-31T12:00:00Z
              | \d?:\d\d:\d\d(?:[.,]\d+)?                                                # 12:00:00,123
              | \d*m\d+(?:\.\d+)?s\b                                                       # 0m1.25s
              | \d*(?:\.\d+)?\ ?(?:[nµum]?s|secs?|seconds?|mins?|minutes?)\b                # 0.12s, 3 seconds
              | x[0-9a-fA-F]{6,16}\b                                                         # 0x7f3a…, an address
              | (?<=1)[6-9]\d{8}(?:\.\d+|\d{3})?(?![0-9])                                       # Unix time in s or ms
            )"""
        ),
    ),
    (
        ("pid", "process", "attempt", "try", "step", "iteration", "turn", "moves", ": line "),
        (),
        re.compile(
            r"""(?xi)
            [0-9](?<![0-9A-Za-z_.].)(?:(?<=[dtypns]\W.)|(?<=[dst]\W\W.)|(?<=e\ .))(?:  # by what precedes, likewise
                (?<=\bpid\W.)|(?<=\bpid\W\W.)|(?<=\bprocess\ id\W.)
              | (?<=\battempt\W.)|(?<=\battempt\ \#.)|(?<=\bretry\W.)|(?<=\btry\W.)
              | (?<=\bstep\W.)|(?<=\biteration\W.)|(?<=\bturn\W.)|(?<=\bmoves\W.)|(?<=\bmoves\W\W.)
              | (?<=:\ line\ .)(?=\d*:)
            )\d*(?:\ ?(?:/|of)\ ?\d+)?"""
        ),
    ),
    (
        ("duration", "elapsed", "latency", "took", "execution", "wall", "taken"),
        (),
        re.compile(  # durationMs=12, "took": 3.5
            r"""(?x)(?:
                duration|Duration|elapsed|Elapsed|latency|Latency|took|Took|time[_\ ]taken|Time[_\ ]taken
              | execution[_\ ]?[Tt]ime|Execution[_\ ]?[Tt]ime|wall[_\ ]?[Tt]ime|Wall[_\ ]?[Tt]ime
            )(?:_?[Mm]s|_?[Ss]ec(?:ond)?s?)?["']?[=:\ ]{1,3}\d+(?:\.\d+)?"""
        ),
    ),
    (
        ("left", "remain", "used", "attempts", "guesses", "tries"),
        (
            re.compile(r" (?:of \d(?<=\d of \d)|(?:left|u[s\u017f]ed|rema)(?<=[s\u017f] ....))"),
            re.compile(r"""attempt[s\u017f]?["']?\s?[:=]\s?\d"""),
        ),
        re.compile(  # what is left of a budget
            r"""(?i)\b\d+ of \d+ (?:guesses|attempts|tries|turns|moves|calls)\b|["']?\battempts?["']?\s?[:=]\s?\d+"""
            r"""|\b(?:credits|attempts|guesses|tries|turns|moves|calls|tokens) (?:left|remaining|used)\W{1,3}\d+"""
            r"""|\b\d+ (?:credits|attempts|guesses|tries|turns|moves|calls|tokens) (?:left|remaining|used)\b"""
        ),
    ),
    (("-= ",), (), re.compile(r"-= [^=\n]{1,60} =-\d+/\d+")),  # the status line of an interactive fiction
    ((" id=",), (), re.compile(r"""</?[\w-]+ id=["']?[\w-]{4,}["']?>""")),  # a wrapper with a nonce
    (("session",), (), re.compile(r"(?:session|Session)[=: ]{1,2}[A-Za-z]+[-_]\d+")),
    (
        ("session", "request", "trace", "delivery", "nonce"),
        (),
        re.compile(
            r"(?:session|Session|request|Request|trace|Trace|delivery|Delivery|nonce)(?:[ _-]?[Ii][Dd])?[=: \"']{1,3}"
            r"[\w-]*\d[\w-]{5,}"
        ),
    ),
)
"""What is masked: words and signs, and the pattern. One of each is in every text that it matches, in lower case."""

_WITHOUT_DIGITS = tuple(_VOLATILE[number] for number in (0, 1, 2, 9))
"""Those that a text without a digit may match."""

_COLOURS = re.compile(r"\x1b\[[\d;]{0,20}m")
_DETAIL = re.compile(
    r"""'[^'\n]{0,200}'|"[^"\n]{0,200}"|`[^`\n]{0,200}`"""
    r"""|(?:[A-Za-z]:)?(?:[\w.~-]*/)+[\w.~-]*|0x[0-9a-fA-F]+|\d+(?:\.\d+)?|[\w.-]+(?=: (?:command )?not found)"""
)
MIN_ECHO_CHARS = 4
_ECHO_MAX_STRINGS = 8


def bounded(text: str) -> str:
    """Return the part of a text that is read: all of it up to `MAX_READ_CHARS`, else both ends and the length."""
    if len(text) <= MAX_READ_CHARS:
        return text
    half = MAX_READ_CHARS // 2
    return f"{text[:half]}\n[{len(text)} characters]\n{text[-half:]}"


def without_colours(text: str) -> str:
    """Return what a terminal would show of a text, without its colours."""
    return _COLOURS.sub("", text) if "\x1b" in text else text


def mask_result(text: str) -> str:
    """Return the text with what is volatile masked, for comparing results of equal calls."""
    return _mask_volatile(bounded(text).strip())


def mask_answer(masked: str, echoes: Iterable[str]) -> str:
    """Return a masked result without what it only repeats of the question, for comparing answers to other questions."""
    for echo in sorted(echoes, key=len, reverse=True):
        masked = masked.replace(echo, MASK)
    return masked


def mask_failure(line: str, arguments: Any) -> str:
    """Return the template of a failure's message: echoes of the arguments, quotations, paths and numbers masked.

    Two failures of one kind have equal templates whatever name, line or file they speak of.
    """
    return _DETAIL.sub(MASK, _mask_volatile(mask_answer(line, echoes_of(arguments)))).strip()


def _mask_volatile(text: str) -> str:
    lower = text.lower()
    for words, signs, pattern in _VOLATILE if not text.isascii() or has_any(text, DIGITS) else _WITHOUT_DIGITS:
        for word in words:
            if word in lower:
                break
        else:
            if words:
                continue
        for sign in signs:
            if sign.search(lower):
                break
        else:
            if signs:
                continue
        text = pattern.sub(MASK, text)
    return text


def echoes_of(arguments: Any) -> list[str]:
    """Return the longest strings among the arguments: what a result may repeat of them."""
    found: list[str] = []
    stack = [arguments]
    while stack:
        value = stack.pop()
        if isinstance(value, str) and len(value) >= MIN_ECHO_CHARS:
            found.append(value)
        elif isinstance(value, dict):
            stack.extend(value.values())
        elif isinstance(value, list):
            stack.extend(value)
    return sorted(found, key=lambda text: (-len(text), text))[:_ECHO_MAX_STRINGS]
