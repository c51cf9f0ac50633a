"""Whether an answer brought nothing: one notion of it for all tools, since nothing found has many spellings.

An empty text, empty lists and null in whatever wrapper, a count of zero, or a short sentence that says so. What the
question itself contains must have been masked before: a wrapper that only echoes it is empty too.
"""

import re
from collections.abc import Callable

from detectors.glance import folded, words_of
from detectors.masks import MASK

_SHORT_CHARS = 600
"""A longer answer brought something, whatever it says."""

_HEAD_CHARS = 240

_THINGS = r"""
        (?:results?|match(?:es|ing)?|hits|entries|records|items|objects?|documents?|articles?|papers?|studies|files?
          |rows|data|occurrences|references|symbols?|pages?|posts|flights?|options|products?|users?|orders?|answers?
          |elements?|emails?|messages?|tasks?|issues|events?|notes?|comments?|tickets?|contacts?|channels?|content
          |output)\b(?!\s*:\s*[1-9])"""
_FIND = r"\s?(?:not|n't)\s(?:be\s)?(?:find|found|located?|match|available)"
_SAYS_NOTHING = re.compile(  # in folded text; each way begins with a letter, by which most are passed over
    rf"""(?x)
      \b(?:
        no[^\S\n]+(?:\w+[^\S\n]+){{0,2}}?{_THINGS} | 0[^\S\n]+(?:\w+[^\S\n]+){{0,2}}?{_THINGS}
      | zero[^\S\n]+(?:\w+[^\S\n]+){{0,2}}?{_THINGS}
      | could{_FIND} | can{_FIND} | did{_FIND} | was{_FIND} | were{_FIND} | is{_FIND} | are{_FIND}
      | cannot\s(?:find|be\sfound|locate) | unable\sto\s(?:find|locate)
      | not\s(?:found|match)\b | no\s(?:such|longer\savailable)\b | none\s(?:were\s|was\s)?found\b
      | did\snot\sproduce\sany\b | without\s(?:any\s)?output\b
      | found\s(?:no|0)\b(?!\s(?:vulnerab|error|issue|problem|warning|conflict))
      | does\s?(?:not|n't)\s(?:exist|appear|contain) | returned?\s(?:no|nothing|0)\b
      | nothing\s(?:was\s|were\s)?(?:found|happen(?:s|ed)|matche[sd]|returned|to\s(?:show|see|report|display))
      | is\sempty\b | empty\s(?:result|response|list|output|set)\b
      )
    | ^\W*(?:empty|no\scontent|none)\W*$
    """
)
_NO_WORDS = frozenset(
    b"no zero not t couldnot cannot didnot wasnot werenot isnot arenot doesnot"
    b" unable none without empty nothing".split()
)
"""Of which one, or `_ZERO`, is in every text that `_SAYS_NOTHING` can match: the t is that of ``n't``."""

_ZERO = re.compile(r"0(?:[^\S\n]|(?<=[deDEnN]\s.))")

_WRAPPER = re.compile(r"<([\w-]{1,40})>\s{0,8}\d{0,8}\s{0,8}</\1>|</?[\w-]{1,40}\s?/?>")
_HOLLOW = re.compile(
    r"""(?x)\[\s*\] | \{\s*\} | \b(?:null|None|nil)\b | [:=]\s*(?:""|\'\')
      | (?i:\b(?:count|total|hits|num\w*|n|size|length|results?|matches|found)["']?\s*[:=]\s*0\b)"""
)
_SYNTAX = re.compile(
    r"""(?x)["']?(?:page\w*+|limit|offset|per_page|total_pages|status|exit_?code|took|type)["']?\s*:\s*["']?\w*["']?
      | [\w.-]++["']?\s*+[:=]\s*                            # names of fields
      | \b(?:null|None|nil|true|false|True|False|0(?:\.0+)?|success|ok|OK)\b"""
)
_NO_RECORDS = re.compile(  # an empty list where the records would be, whatever else the envelope says
    r"""(?i)["'](?:results?|items|data|hits|match(?:es)?|issues|records|rows|documents|docs|entries|articles|papers|values"""
    r"""|objects|organic|list)["']\s*:\s*\[\s*\]"""
)
_ENVELOPE = re.compile(r"""\d[\d.]*|"(?:list|eq|https?:[^"]*|/[^"]*)\"""")  # numbers and addresses around the records
_SOME_RECORDS = re.compile(r"""\[\s*[\w{"'\[]""")
_EXIT_ONE = re.compile(r"(?i)\W*(?:exit|return)[\s_]?(?:code|status)\W{0,3}1\W*")  # of a search without a match
_NO_FILE = re.compile(r"(?i)[\w./-]{1,80}: .{0,300}(?:no such file|not found|cannot access|does not exist).{0,80}")
_PLACED = re.compile(
    r"\S{1,300}:\d+[:-]|[\w.-]*[/.][\w./-]{1,300}:\s(?!not\ found|no\ such)"
)  # a line that was found, with its place


def unwrapped(masked: str) -> str:
    """Return an answer without masks and the tags that a harness puts around it."""
    return _WRAPPER.sub("", masked).replace(MASK, "").strip() if "<" in masked else masked.strip()


def without_fields(text: str) -> str:
    """Return a structured answer without the names of its fields, and without truth values and zeros."""
    return _SYNTAX.sub("", text)


def letters_beside_fields(text: str, enough: int, counts: Callable[[str], bool] = str.isalpha) -> bool:
    """Tell whether `without_fields` leaves so many letters, or what else counts, by reading no further than those."""
    at, end = 0, len(text)
    while at < end:
        if field := _SYNTAX.match(text, at):
            at = field.end()
            continue
        if counts(text[at]):
            enough -= 1
            if not enough:
                return True
        at += 1
    return False


def brought_nothing(text: str, *, shows: bool = False) -> bool:
    """Tell whether an answer says that there is nothing; ``text`` has lost its wrapper, echoes and volatile parts.

    What ``shows`` a file is never judged by the words that are in it.
    """
    if len(text) > _SHORT_CHARS:
        return False
    if not text.strip("\"' "):
        return True
    if shows or (":" in text and _PLACED.match(text)):
        return ":" in text and _NO_FILE.fullmatch(text) is not None
    if _says_nothing(text[:_HEAD_CHARS]) or ("1" in text and _EXIT_ONE.fullmatch(text)):
        return True
    if "[" in text and _NO_RECORDS.search(text) and not _SOME_RECORDS.search(text):
        return not any(map(str.isalnum, _ENVELOPE.sub("", without_fields(text))))
    return not letters_beside_fields(text, 1, str.isalnum) and _HOLLOW.search(text) is not None


def _says_nothing(head: str) -> bool:
    if _NO_WORDS.isdisjoint(words_of(head)) and not _ZERO.search(head):
        return False
    return _SAYS_NOTHING.search(folded(head)) is not None
