"""When two edits are the same: comments, blank space and what only describes the edit make no difference.

Agents resubmit one change for hours with its comment reworded, so an edit is compared by the code that it puts down and
by the place where it puts it. The form is for comparing only and is never shown.
"""

import re
from collections.abc import Collection
from typing import Any

from detectors.canonical import canonical_arguments, digest

_MAX_CHARS = 65_536
_COMMENT = re.compile(
    r"""(?mx)
      /\*[\s\S]{0,4000}?\*/ | <!--[\s\S]{0,4000}?-->
    | (?:^|(?<=[\s;,{}()]))//[^\n]* | (?:^|(?<=\s))\#(?![!{])[^\n]* | (?:^|(?<=\s))--\s[^\n]*
    """
)
_NAME = re.compile(r"#[\w-]+\Z")  # of a channel, an order, a colour
_BLANK = re.compile(r"\s+")


def patch_digest(tool: str, arguments: Any, labels: Collection[str]) -> int:
    """Return the digest of an edit without its comments, blanks and label arguments; 0 when nothing is known of it."""
    if not isinstance(arguments, dict | list | str) or not arguments:
        return 0
    if isinstance(arguments, dict) and labels:
        arguments = {key: value for key, value in arguments.items() if key not in labels}
    return digest("patch", tool, canonical_arguments(_bare(arguments)))


def _bare(value: Any) -> Any:
    """Return a JSON value whose texts have lost comments and blanks, and whose empty parts are gone."""
    if isinstance(value, str) and _NAME.match(value):
        return value
    if isinstance(value, str):
        return _BLANK.sub("", _COMMENT.sub("", value[:_MAX_CHARS])) + value[_MAX_CHARS:]
    if isinstance(value, list | tuple):
        return [_bare(item) for item in value]
    if isinstance(value, dict):
        return {key: bare for key, item in value.items() if (bare := _bare(item)) not in ([], {})}
    return value
