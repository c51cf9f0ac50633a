"""Short readable forms of calls and failures for people, with secrets taken out.

Only these ever leave the state, never a full argument or result. What looks like a credential is replaced before the
text is cut, so that a cut cannot expose a part of it.
"""

import re
from typing import Any

from detectors.canonical import canonical_arguments

_SECRET = re.compile(
    r"""(?i)
      (?P<name>(?:password|passwd|pwd|secret|token|api[_-]?key|access[_-]?key|authorization|credential|cookie)[\w-]*["']?\s*[:=]\s*)
      (?:"[^"]*"|'[^']*'|(?:bearer|basic)\s+[^\s"',}]+|[^\s"',}&]+)
    | \b(?:bearer|basic)\s+[A-Za-z0-9+/=._~-]{8,}
    | \b(?:sk|pk|rk|ghp|gho|ghs|ghu|glpat|xox[abprs]|hf|npm|pypi|AKIA|ASIA)[-_]?[A-Za-z0-9_-]{12,}
    | \beyJ[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]*)?
    | (?<=://)[^/\s:@]+:[^/\s@]+(?=@)
    | -----BEGIN[^-]*PRIVATE\ KEY-----.*
    """,
    re.VERBOSE | re.DOTALL,
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]+")
_MAX_ARGUMENTS = 8
_AHEAD_CHARS = 200  # read beyond the cut, so that a credential that begins before it is recognised


def redact(text: str) -> str:
    """Return the text with what looks like a credential replaced by ``[redacted]``."""
    return _SECRET.sub(lambda match: f"{match.group('name') or ''}[redacted]", text)


def excerpt(text: str, limit: int) -> str:
    """Return one redacted line of at most ``limit`` characters, control characters removed; empty for limit 0."""
    if limit <= 0:
        return ""
    line = _CONTROL.sub(" ", redact(text[: limit + _AHEAD_CHARS])).strip()
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def call_excerpt(tool: str, arguments: Any, limit: int) -> str:
    """Return a call in readable form, like ``grep(pattern=TODO, path=src)``; only the tool's name for limit 0."""
    name = excerpt(tool, 64)
    if limit <= 0:
        return name
    if isinstance(arguments, dict):
        parts = [f"{key}={_plain(value, limit)}" for key, value in list(arguments.items())[:_MAX_ARGUMENTS]]
        return f"{name}({excerpt(', '.join(parts), limit)})"
    return f"{name}({excerpt(_plain(arguments, limit), limit)})"


def _plain(value: Any, limit: int) -> str:
    text = value if isinstance(value, str) else canonical_arguments(value).decode()
    return text[: limit + _AHEAD_CHARS]
