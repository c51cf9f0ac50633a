"""The names of the checks that fail, as the runners of tests and the compilers print them."""

import re
from typing import Final

from detectors.masks import bounded

MAX_CHECKS: Final = 64

_NAMES = re.compile(
    r"""(?mx)
      ^(?:FAILED|ERROR)\ (?P<pytest>[\w./\\-]{1,200}(?:::[^\s-][^\n]{0,200}?)?)(?=\ -\ |\s*$)
    | ^\s{0,12}---\ FAIL:\ (?P<go>\S{1,200})
    | ^test\ (?P<cargo>\S{1,200})\ \.\.\.\ FAILED
    | ^(?:FAIL|ERROR):\ (?P<unittest>\w{1,100}\ \([\w.]{1,200}\))
    | ^\s{0,8}\u25cf\ (?P<jest>[^\n]{1,200}?)\s*$
    | ^\s{0,40}(?:\u2717|\u2716|\u00d7|\u2715)\ (?P<mocha>[^\n]{1,200}?)(?:\ \(?\d+\ ?m?s\)?)?\s*$
    | ^not\ ok\ \d+\ -?\s?(?P<tap>[^\n#]{1,200}?)\s*(?:\#|$)
    | ^rspec\ (?P<rspec>\S{1,200})\ \#
    | ^\[\s{0,4}FAILED\s{0,4}\]\ (?P<gtest>[\w./]{1,200})
    | ^\[ERROR\]\ {1,8}(?P<maven>\w[\w.$]{1,200}):\d+
    | ^(?P<linter>[\w./\\-]{1,200}:\d+:\d+:\ (?:error|[EFWC]\d{3,4})[^\n]{0,100})
    | ^(?P<tsc>[\w./\\-]{1,200}\(\d+,\d+\):\ error\ TS\d+)
    """
)
_PLACE = re.compile(r":\d+:\d+|\(\d+,\d+\)")


def failing_checks(result: str) -> tuple[str, ...]:
    """Return the names of the checks that a run's output says have failed, each once, in their order.

    A place in a file that a linter or compiler names loses its line, which moves with every edit above it.
    """
    found = (match[match.lastgroup] for match in _NAMES.finditer(bounded(result)) if match.lastgroup)
    return tuple(dict.fromkeys(_PLACE.sub("", name) for name in found))[:MAX_CHECKS]
