"""Whether an answer brought nothing: one notion of it for all tools, since nothing found has many spellings.

An empty text, empty lists and null in whatever wrapper, a count of zero, or a short sentence that says so. What the
question itself contains must have been masked before: a wrapper that only echoes it is empty too.
"""

import re

from detectors.masks import MASK

_SHORT_CHARS = 600
"""A longer answer brought something, whatever it says."""

_HEAD_CHARS = 240

_SAYS_NOTHING = re.compile(
    r"""(?ix)
      \b(?:no|0|zero)[^\S\n]+(?:\w+[^\S\n]+){0,2}?
        (?:results?|match(?:es|ing)?|hits|entries|records|items|objects?|documents?|articles?|papers?|studies|files?
          |rows|data|occurrences|references|symbols?|pages?|posts|flights?|options|products?|users?|orders?|answers?
          |elements?|emails?|messages?|tasks?|issues|events?|notes?|comments?|tickets?|contacts?|channels?|content
          |output)\b(?!\s*:\s*[1-9])
    | \b(?:could|can|did|was|were|is|are)\s?(?:not|n't)\s(?:be\s)?(?:find|found|located?|match|available)
    | \bcannot\s(?:find|be\sfound|locate) | \bunable\sto\s(?:find|locate)
    | \bnot\sfound\b | \bnot\smatch\b | \bno\s(?:such|longer\savailable)\b | \bnone\s(?:were\s|was\s)?found\b
    | \bdid\snot\sproduce\sany\b | \bwithout\s(?:any\s)?output\b | ^\W*(?:empty|no\scontent|none)\W*$
    | \bfound\s(?:no|0)\b(?!\s(?:vulnerab|error|issue|problem|warning|conflict))
    | \bdoes\s?(?:not|n't)\s(?:exist|appear|contain) | \breturned?\s(?:no|nothing|0)\b
    | \bnothing\s(?:was\s|were\s)?(?:found|happen(?:s|ed)|matche[sd]|returned|to\s(?:show|see|report|display))
    | \bis\sempty\b | \bempty\s(?:result|response|list|output|set)\b
    """
)
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
    return _WRAPPER.sub("", masked).replace(MASK, "").strip()


def without_fields(text: str) -> str:
    """Return a structured answer without the names of its fields, and without truth values and zeros."""
    return _SYNTAX.sub("", text)


def brought_nothing(text: str, *, shows: bool = False) -> bool:
    """Tell whether an answer says that there is nothing; ``text`` has lost its wrapper, echoes and volatile parts.

    What ``shows`` a file is never judged by the words that are in it.
    """
    if len(text) > _SHORT_CHARS:
        return False
    if not text.strip("\"' "):
        return True
    if shows or _PLACED.match(text):
        return _NO_FILE.fullmatch(text) is not None
    if _SAYS_NOTHING.search(text[:_HEAD_CHARS]) or _EXIT_ONE.fullmatch(text):
        return True
    if _NO_RECORDS.search(text) and not _SOME_RECORDS.search(text):
        return not any(map(str.isalnum, _ENVELOPE.sub("", without_fields(text))))
    return _HOLLOW.search(text) is not None and not any(map(str.isalnum, without_fields(text)))
