"""The names of the checks that fail, as the runners of tests and the compilers print them."""

import re
from typing import Final

from detectors.masks import bounded, without_colours

MAX_CHECKS: Final = 64

_NAMES = re.compile(
    r"""(?mx)
      ^(?:FAILED|ERROR)\ (?P<pytest>[\w./\\-]{1,200}(?:::[^\s-][^\n]{0,200}?)?)(?=\ -\ |[^\S\n]{0,20}+$)
    | ^[ \t]{0,12}---\ FAIL:\ (?P<go>\S{1,200})
    | ^test\ (?P<cargo>\S{1,200})\ \.\.\.\ FAILED
    | ^(?:FAIL|ERROR):\ (?P<unittest>\w{1,100}\ \([\w.]{1,200}\))
    | ^[ \t]{0,8}\u25cf\ (?P<jest>[^\n]{1,200}?)[^\S\n]{0,20}+$
    | ^[ \t]{0,40}(?:\u2717|\u2716|\u00d7|\u2715)\ (?!\d+\ problem)(?P<mocha>[^\n]{1,200}?)(?:\ \(?\d+\ ?m?s\)?)?
      [^\S\n]{0,20}+$
    | ^[ ]{4,40}\d{1,4}\)\ (?P<listed>[^\n]{1,200}?)[^\S\n]{0,20}+$
    | ^not\ ok\ \d+\ -?\s?(?P<tap>[^\n#]{1,200}?)[^\S\n]{0,20}+(?:\#|$)
    | ^rspec\ \S{1,200}\ \#\ (?P<rspec>[^\n]{1,200}?)[^\S\n]{0,20}+$
    | ^\[[ \t]{0,4}FAILED[ \t]{0,4}\]\ (?P<gtest>(?!\d+\ test)[\w./]{1,200})
    | ^\[ERROR\]\ {1,8}(?P<maven>\w[\w.$]{1,200}):\d+
    | ^(?P<linter>[\w./\\-]{1,200}:\d+(?::\d+)?:\ (?:error|[A-Z]{1,4}\d{3,4})\b[^\n]{0,100})
    | ^(?P<ruff>[A-Z]{1,4}\d{3,4}\ (?:\[\*\]\ )?[A-Z`][^\n]{1,100})
    | ^\ {1,4}\d+:\d+\ {1,4}error\ {1,4}(?P<eslint>[^\n]{1,200}?)[^\S\n]{0,20}+$
    | ^(?P<tsc>[\w./\\-]{1,200}(?:\(\d+,\d+\):|:\d+:\d+\ -)\ error\ TS\d+)
    """
)
_PLACE = re.compile(r":\d+(?::\d+)?(?=:\ |\ -\ error)|\(\d+,\d+\)")


def failing_checks(result: str) -> tuple[str, ...]:
    """Return the names of the checks that a run's output says have failed, each once, in their order.

    A place in a file that a linter or compiler names loses its line, which moves with every edit above it. In a
    structured result the ends of lines are written out.
    """
    text = without_colours(bounded(result))
    if text[:1] in {"{", "["}:
        text = text.replace("\\n", "\n")
    found = (match[match.lastgroup] for match in _NAMES.finditer(text) if match.lastgroup)
    return tuple(dict.fromkeys(filter(None, (_PLACE.sub("", name).strip() for name in found))))[:MAX_CHECKS]
