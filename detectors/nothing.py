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
          |elements?|output)\b(?!\s*:\s*[1-9])
    | \b(?:could|can|did|was|were|is|are)\s?(?:not|n't)\s(?:be\s)?(?:find|found|located?|match|available)
    | \bcannot\s(?:find|be\sfound|locate) | \bunable\sto\s(?:find|locate)
    | \bnot\sfound\b | \bnot\smatch\b | \bno\s(?:such|longer\savailable)\b | \bnone\s(?:were\s|was\s)?found\b
    | \bdoes\s?(?:not|n't)\s(?:exist|appear|contain) | \bfound\s(?:no|0)\b | \breturned?\s(?:no|nothing|0)\b
    | \bnothing\s(?:was\s|were\s)?(?:found|happen(?:s|ed)|matche[sd]|returned|to\s(?:show|see|report|display))
    | \bis\sempty\b | \bempty\s(?:result|response|list|output|set)\b
    """
)
_WRAPPER = re.compile(r"<([\w-]{1,40})>\s*\d*\s*</\1>|</?[\w-]{1,40}>")
_HOLLOW = re.compile(
    r"""(?x)\[\s*\] | \{\s*\} | \b(?:null|None|nil)\b
      | (?i:\b(?:count|total|hits|num\w*|n|size|length|results?|matches|found)["']?\s*[:=]\s*0\b)"""
)
_SYNTAX = re.compile(
    r"""(?x)[\w.-]+["']?\s*[:=]\s*                              # names of fields
      | \b(?:null|None|nil|true|false|True|False|0(?:\.0+)?|success|ok|OK)\b"""
)


def unwrapped(masked: str) -> str:
    """Return an answer without masks and the tags that a harness puts around it."""
    return _WRAPPER.sub("", masked).replace(MASK, "").strip()


def brought_nothing(text: str) -> bool:
    """Tell whether an answer says that there is nothing; ``text`` has lost its wrapper, echoes and volatile parts."""
    if len(text) > _SHORT_CHARS:
        return False
    if not text or _SAYS_NOTHING.search(text[:_HEAD_CHARS]):
        return True
    if _HOLLOW.search(text) is None:
        return False
    return not any(map(str.isalnum, _SYNTAX.sub("", text)))
