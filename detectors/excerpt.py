"""Short readable forms of calls and failures for people, with secrets taken out.

Only these ever leave the state, never a full argument or result. What looks like a credential is replaced before the
text is cut, so that a cut cannot expose a part of it.
"""

import re
from functools import lru_cache
from itertools import islice
from typing import Any

from detectors.canonical import canonical_arguments, opened
from detectors.glance import folded, has_any, matches_any
from schemas.values import MAX_DEPTH

_NAMES = (
    r"password|passwd|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|auth[_-]?key|credentials?"
    r"|(?<![a-z])(?:pass|pin)(?=[\\\"'\s]*[:=])"
)
_NAME = re.compile(rf"(?i){_NAMES}|^(?:pass|pin|authorization|cookie)$")
_NAME_PARTS = ("pass", "pwd", "secret", "token", "key", "credential", "pin", "auth", "cookie")
"""Of which one is in every text that `_NAME` can match."""

_SECRET = re.compile(  # in folded text
    rf"""(?x)
      (?P<header>(?:authorization|cookie)[\\"']*\s*[:=]\s*)[^\n"'\\]*
    | (?P<name>(?:{_NAMES})[\w-]*[\\"']*(?:\s*[:=]\s*|\s+is\s+))
      (?:\\?"[^"\\]*\\?"?|'[^']*'?|[^\s"',;&}}]+)
    | (?P<flag>(?<![\w-])--?[\w-]*(?:{_NAMES}|pass)[\w-]*(?:\s+|=))(?:"[^"]*"?|'[^']*'?|[^\s"']+)
    | (?P<user>(?<!\S)(?:-u|--user)[\s=]*[^\s:"']+:)[^\s"']+
    | (?P<short>\b(?:mysql\w*|mariadb|sshpass|docker\s+login|mongo\w*|redis-cli)\b[^|;&\n]{{0,100}}?\s-[pa]\s*)
      [^\s"'-][^\s"']*
    | \b(?:bearer|basic|digest)\s+[a-z0-9+/=._~-]{{8,}}
    | \b(?:github_pat|sk|pk|rk|ghp|gho|ghs|ghu|glpat|xox[abprs]|hf|npm|pypi|akia|asia)[-_]?[a-z0-9_-]{{12,}}
    | \baiza[\w-]{{16,}}
    | \beyj[\w-]{{8,}}\.[\w-]{{4,}}(?:\.[\w-]*)?
    | (?<=://)[^\s/]*(?=@)
    | -----begin[^-]*private\ key-----.*
    """,
    re.DOTALL,
)
_SECRET_PARTS = (
    *("pass", "pwd", "secret", "token", "credential", "authorization", "cookie"),
    *("-u", "mysql", "mariadb", "docker", "mongo", "redis", "bearer", "digest", "@", "-----", "eyj", "aiza"),
    *("github_pat", "ghp", "gho", "ghs", "ghu", "glpat", "xox", "hf", "npm", "pypi", "akia", "asia"),
)
_SECRET_SIGNS = (  # where a part alone is frequent
    re.compile(
        r"k(?:(?<=[spr]k)(?<!\w..)[_-]?[a-z0-9_-]{12}|(?:(?<=(?:api|ess|ate|uth)k)|(?<=(?:api|ess|ate|uth)[_-]k))ey)"
    ),
    re.compile(r"pin[\\\"'\s]*[:=]"),
    re.compile(r"basic\s"),
)
"""Of which one is in every folded text that `_SECRET` can match."""

_REDACTED = "[redacted]"
_ONE_WORD = re.compile(r"[!-;=?-~]{1,64}")  # of what a name is made of, hardly a sentence in any script
_MARKS = str.maketrans("«»<>\uff1c\uff1e", "\u2039\u203a" * 3)
_NAMING = ("name", "key", "id", "field", "label", "selector", "element", "placeholder")
_NAMED = frozenset({"value", "text", "content"})  # what stands beside the name of a field
_MAX_JSON_CHARS = 10_000
_UNSEEN = re.compile(  # control characters, line ends, directions, and what shows nothing: tags, joiners, fillers
    "[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
_MAX_ARGUMENTS = 8
_CONTAINERS = (dict, list)
_MAX_NAME_CHARS = 64
_AHEAD_CHARS = 200  # read beyond the cut, so that a credential that begins before it is recognised


def redact(text: str) -> str:
    """Return the text with what looks like a credential replaced by ``[redacted]``.

    Recognised are values beside telling names, in headers, options and addresses, and the forms of providers' keys.
    """
    lower = folded(text)
    if not _may_hold_secret(lower):
        return text
    kept, behind = "", 0
    for found in _SECRET.finditer(lower):  # letter for letter as long as the text
        begin = found.end(found.lastgroup) if found.lastgroup else found.start()
        kept += text[behind:begin] + _REDACTED
        behind = found.end()
    return kept + text[behind:] if behind else text


def _may_hold_secret(lower: str) -> bool:
    return has_any(lower, _SECRET_PARTS) or matches_any(lower, _SECRET_SIGNS)


def excerpt(text: str, limit: int) -> str:
    """Return one redacted line of at most ``limit`` characters and 1.5 times as many bytes, of what can be seen."""
    if limit <= 0:
        return ""
    line = redact(text[: limit + _AHEAD_CHARS])
    if not (line.isascii() and line.isprintable()):
        line = _UNSEEN.sub(" ", line)
    line = cut(line.strip(), limit + limit // 2)
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def quoted(text: str) -> str:
    """Return a text between marks; marks in it, and those of tags, become others: it ends where it ends."""
    return f"«{text.translate(_MARKS)}»"


def named(name: str) -> str:
    """Return a name from outside as it may stand in a sentence: by itself when it is one word, else as a quotation."""
    return name if _ONE_WORD.fullmatch(name) else quoted(name)


def cut(text: str, limit_bytes: int) -> str:
    """Return the beginning of a text, at most so many bytes in UTF-8: what is kept in state is bounded in bytes."""
    if text.isascii():
        return text[:limit_bytes]
    return text.encode("utf-8", "replace")[:limit_bytes].decode("utf-8", "ignore")


def call_excerpt(tool: str, arguments: Any, limit: int) -> str:
    """Return a call in readable form, like ``grep(pattern=TODO, path=src)``.

    Only the tool's name for limit 0, and where the arguments are not known.
    """
    name = _tool_excerpt(tool[: _MAX_NAME_CHARS + _AHEAD_CHARS])
    if limit <= 0 or arguments is None:
        return name
    if isinstance(arguments, dict):
        named = _by_name(arguments).items()
        return f"{name}({excerpt(', '.join(f'{key}={_plain(value, limit)}' for key, value in named), limit)})"
    return f"{name}({excerpt(_plain(_by_name(arguments), limit), limit)})"


@lru_cache(maxsize=1_024)
def _tool_excerpt(tool: str) -> str:
    return excerpt(tool, _MAX_NAME_CHARS)


def _plain(value: Any, limit: int) -> str:
    text = value if isinstance(value, str) else canonical_arguments(value).decode()
    return text[: limit + _AHEAD_CHARS]


def _by_name(value: Any, opens: int = 2, depth: int = MAX_DEPTH) -> Any:
    """Return the beginning of a JSON value without what stands under telling names, whole: in text it may end anywhere.

    JSON in texts is opened, and once more inside of it; what lies too deep is left out.
    """
    if isinstance(value, str) and opens and len(value) <= _MAX_JSON_CHARS:
        found = opened(value)
        return value if found is value else _by_name(found, opens - 1, depth)
    if not isinstance(value, _CONTAINERS):
        return value
    if depth == 0:
        return "..."
    if isinstance(value, list):
        return [_by_name(item, opens, depth - 1) for item in value[:_MAX_ARGUMENTS]]
    return {
        key[:_MAX_NAME_CHARS]: _REDACTED
        if _is_telling(key[:_MAX_NAME_CHARS]) or (key in _NAMED and _names_secret(value))
        else _by_name(item, opens, depth - 1)
        for key, item in islice(value.items(), _MAX_ARGUMENTS)
    }


def _names_secret(fields: dict[str, Any]) -> bool:
    """Tell whether the name of a field stands beside its value, and what it is named says that it is a credential."""
    return any(isinstance(each, str) and _is_telling(each[:_MAX_NAME_CHARS]) for each in map(fields.get, _NAMING))


@lru_cache(maxsize=1_024)
def _is_telling(name: str) -> bool:
    """Tell whether what stands under or beside a name is a credential."""
    return has_any(folded(name), _NAME_PARTS) and _NAME.search(name) is not None
