"""When two results are the same: what changes from run to run without meaning anything is masked.

Clock times, durations, process ids, generated ids, temporary paths, addresses, attempt counters and a shell's own line
numbers are masked. Bare numbers stay: a score, a loss or a count is the answer.
"""

import re
from collections.abc import Iterable
from typing import Any

MAX_READ_CHARS = 65_536
"""How much of one text is read: beginning and end, and the length; bounds the work for one event."""

MASK = "<~>"

# Each pattern begins with a plain set of characters, so that the engine skips to where a match can begin; word
# boundaries are looked behind for. One pattern for all of them took ten times as long. Signs begin with one plain
# character, which is found ten times as quickly: that is why digits are zeros in what they are looked for in.
_VOLATILE: tuple[tuple[tuple[bytes, ...], tuple[re.Pattern[bytes], ...], re.Pattern[str]], ...] = (
    (
        (),
        (re.compile(rb"-[0a-f]{4}-[0a-f]{4}-"),),
        re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"),  # UUID
    ),
    (
        (),
        (re.compile(b"/(?:tmp|var/(?:tmp|folders))/"),),
        re.compile(r"""/(?<![\w.~-]/)(?:private/)?(?:tmp|var/tmp|var/folders)/[^\s'"`:;,)\]>]+"""),
    ),
    (
        (),
        (re.compile(b"_(?<=[glnpqsu].)[a-z0]{12}"), re.compile(b"-(?<=[glnpqsu].)[a-z0]{12}")),
        re.compile(r"(?:call|toolu|req|msg|chatcmpl|resp|sess|run)[_-][A-Za-z0-9]{12,}"),  # generated id
    ),
    (
        (),
        (re.compile(b":00:00(?<!-00 00:00:00)"),),  # in front of the time stands no other way to write the day
        re.compile(
            r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},? +(?:\d{1,2} )?[A-Z][a-z]{2} [\d ]*"  # as `date` prints it
            r"\d\d:\d\d:\d\d(?: [A-Z]{2,5})?(?: \d{4})?"
        ),
    ),
    (
        (),
        (
            re.compile(
                rb"0(?<![0a-z_.].)(?:000-00-00|0?:00:00|x[0a-f]{6}|0{9}"
                rb"|0*+(?:m0|(?:\.0++)? ?(?:[nu?m]?s|secs?|seconds?|mins?|minutes?)\b))"  # the micro sign is a ?
            ),
        ),
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
        (b"pid", b"pgid", b"process", b"attempt", b"try", b"step", b"iteration", b"turn", b"moves", b": line "),
        (
            re.compile(
                rb"""(?x)
                0(?<![0a-z_.].)(?:(?<=[detypns]\W.)|(?<=[dst]\W\W.))(?:
                    (?<=\bpid\W.)|(?<=\bpid\W\W.)|(?<=\bpgid\W.)|(?<=\bpgid\W\W.)|(?<=\bprocess\ id\W.)
                  | (?<=\battempt\W.)|(?<=\battempt\ \#.)|(?<=\bretry\W.)|(?<=\btry\W.)
                  | (?<=\bstep\W.)|(?<=\biteration\W.)|(?<=\bturn\W.)|(?<=\bmoves\W.)|(?<=\bmoves\W\W.)
                  | (?<=:\ line\ .)
                )"""
            ),
        ),
        re.compile(
            r"""(?xi)
            [0-9](?<![0-9A-Za-z_.].)(?:(?<=[dtypns]\W.)|(?<=[dst]\W\W.)|(?<=e\ .))(?:  # by what precedes, likewise
                (?<=\bpid\W.)|(?<=\bpid\W\W.)|(?<=\bpgid\W.)|(?<=\bpgid\W\W.)|(?<=\bprocess\ id\W.)
              | (?<=\battempt\W.)|(?<=\battempt\ \#.)|(?<=\bretry\W.)|(?<=\btry\W.)
              | (?<=\bstep\W.)|(?<=\biteration\W.)|(?<=\bturn\W.)|(?<=\bmoves\W.)|(?<=\bmoves\W\W.)
              | (?<=:\ line\ .)(?=\d*:)
            )\d*(?:\ ?(?:/|of)\ ?\d+)?"""
        ),
    ),
    (
        (b"duration", b"elapsed", b"latency", b"took", b"execution", b"wall", b"taken"),
        (
            re.compile(
                rb"""(?x)0(?<=[^0][=:\ ].)(?:  # no digit is in front: by that most are passed over
                    (?<=(?:cs|cy|ds|ec|ed|en|me|ms|nd|ok|on)..)|(?<=(?:cs|cy|ds|ec|ed|en|me|ms|nd|ok|on)["'=:\ ]..)
                  | (?<=(?:cs|cy|ds|ec|ed|en|me|ms|nd|ok|on)["'=:\ ][=:\ ]..)
                  | (?<=(?:cs|cy|ds|ec|ed|en|me|ms|nd|ok|on)["'][=:\ ][=:\ ]..)
                )"""
            ),
        ),
        re.compile(  # durationMs=12, "took": 3.5
            r"""(?x)(?:
                duration|Duration|elapsed|Elapsed|latency|Latency|took|Took|time[_\ ]taken|Time[_\ ]taken
              | execution[_\ ]?[Tt]ime|Execution[_\ ]?[Tt]ime|wall[_\ ]?[Tt]ime|Wall[_\ ]?[Tt]ime
            )(?:_?[Mm]s|_?[Ss]ec(?:ond)?s?)?["']?[=:\ ]{1,3}\d+(?:\.\d+)?"""
        ),
    ),
    (
        (b"left", b"remain", b"used", b"attempts", b"guesses", b"tries"),
        (
            re.compile(
                rb"""(?x)0(?:
                    \ (?:of\ 0|(?:credits|attempts|guesses|tries|turns|moves|calls|tokens)\ )
                  | (?<=[^0]\W.)(?:  # likewise
                      (?<=(?:left|ning|used)\W.)|(?<=(?:left|ning|used)\W\W.)|(?<=(?:left|ning|used)\W\W\W.)
                    | (?<=(?:.pt|pts|[pt][ts]\W|[ts]\W\W)[:=].)|(?<=(?:.pt|pts|[pt][ts]\W|[ts]\W\W)[:=]\W.)
                  )
                )"""
            ),
        ),
        re.compile(  # what is left of a budget
            r"""(?x)[\d"'AaCcGgTtMm](?:
                (?<=\d)(?<!\w.)\d*\ (?i:
                    of\ \d+\ (?:guesses|attempts|tries|turns|moves|calls)\b
                  | (?:credits|attempts|guesses|tries|turns|moves|calls|tokens)\ (?:left|remaining|used)\b
                )
              | (?i:(?:(?<=["'])a|(?<=a)(?<!\w.))ttempts?)["']?\s?[:=]\s?\d+
              | (?<!\w.)(?i:
                    (?:(?<=c)(?:redits|alls)|(?<=a)ttempts|(?<=g)uesses|(?<=t)(?:ries|urns|okens)|(?<=m)oves)
                    \ (?:left|remaining|used)
                )\W{1,3}\d+
            )"""
        ),
    ),
    ((), (re.compile(b"=-0"),), re.compile(r"-= [^=\n]{1,60} =-\d+/\d+")),  # the status line of an interactive fiction
    ((), (re.compile(b"=(?<= id.)"),), re.compile(r"""</?[\w-]+ id=["']?[\w-]{4,}["']?>""")),  # a wrapper with a nonce
    ((b"session",), (), re.compile(r"(?:session|Session)[=: ]{1,2}[A-Za-z]+[-_]\d+")),
    (
        (b"session", b"request", b"trace", b"delivery", b"nonce"),
        (re.compile(b"0[a-z0_?-]{5}"),),
        re.compile(
            r"(?:session|Session|request|Request|trace|Trace|delivery|Delivery|nonce)(?:[ _-]?[Ii][Dd])?[=: \"']{1,3}"
            r"[\w-]*\d[\w-]{5,}"
        ),
    ),
)
"""What is masked: words, signs, and the pattern. It runs in texts that have one of each, as `_looked_at` shows them.

One of the signs is in every text that it matches, so that they only save time.
"""

_WITHOUT_DIGITS = tuple(_VOLATILE[number] for number in (0, 1, 2, 9))
"""Those that a text without a digit may match."""

_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_UNFORESEEN = re.compile("[\u0130\u0131\u017f]|[\u0660-\U0001fbf9](?<=\\d)")
"""What may be matched as a digit or an ASCII letter and is a ? in what signs are looked for in."""

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
    whole = shown = _looked_at(text)
    blind = not text.isascii() and _UNFORESEEN.search(text) is not None
    for words, signs, pattern in _VOLATILE if b"0" in whole or not text.isascii() else _WITHOUT_DIGITS:
        if not blind:
            for sign in signs:
                if sign.search(shown):
                    break
            else:
                if signs:
                    continue
        for word in words:
            if word in whole:
                break
        else:
            if words:
                continue
        masked = pattern.sub(MASK, text)
        if masked != text:  # what stood before a mask may have hidden a sign behind it
            text, shown = masked, _looked_at(masked)
    return text


def _looked_at(text: str) -> bytes:
    """Return a text as signs and words are looked for in it: in lower case, digits 0, what is beyond ASCII ?."""
    return text.lower().encode("ascii", "replace").translate(_ZEROS)


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
