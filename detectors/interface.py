"""What the answers of interfaces say: a mere word that it worked, a picture, or the page that an action led to.

Browsers, desktops and phones answer an action with a sentence of success, a picture or a page. The sentence is no
result: the screen may have moved on, nobody said. A page's whole text is never the same twice, so that what is numbered
anew on every load is masked, and pages are compared by address, title and place.
"""

import re
from functools import lru_cache
from typing import Any

from detectors.canonical import digest
from detectors.glance import folded, has_any
from detectors.masks import MASK

_HEAD_CHARS = 3_000
_TREE_CHARS = 20_000
_ACKNOWLEDGED_CHARS = 300
_ARGUMENTS_CHARS = 1_000

_RAN_CODE = re.compile(r"### Ran Playwright code\s*```.*?```|(?m:^#+ [\w -]+$)", re.DOTALL)
_TREE = re.compile(r"RootWebArea|\[ref=\w+\]|\buid=\d+_\d+|<hierarchy|\[\d+\]:? ?<|UI element")
_PICTURE = re.compile(  # in folded text
    r"""(?x)["']type["']\s*:\s*["'](?:input_)?(?:image|computer_screenshot) | ^\W*(?:screenshot|image)\b
      | \b(?:screenshot|image)\b.{0,40}omitted | omitted.{0,40}\b(?:screenshot|image) | ["']screenshot["']
      | (?:took|saved|captured)\b.{0,40}screenshot"""
)
_PICTURE_PARTS = ("image", "screenshot")
"""Of which one is in every text that `_PICTURE` can match."""

_WORKED = re.compile(
    r"""(?ix)^[^a-z]*(?:(?:success(?:fully)?|executed|performed)\b[^a-z]*(?:\w+\ )?)?
        (?:click|tapp|press|typed|scroll|swip|hover|select|filled|input|moved|dragg|wait|navigat|switch)
      | ["']success["']\s*:\s*true | \bperformed\ successfully
      | \bsuccessfully\ (?:click|tapp|press|typed|scroll|fill)"""
)
_TELLS = re.compile(  # a world that says what happened, not an interface that says that it clicked
    r"(?i)(?!.*\b(?:click|typ(?:e|ing)|press|scroll|execut|perform|success|drag|mouse|key|element|button|page|tab|screen"
    r"|action|decide|wait))\s*(?:you(?:'re|r)?|on|in|at|the|there|a|an)\b"
)
_WORD = re.compile(r"[^\n>/()]{0,60}\Z")  # a mere word; a screen has lines and signs
_HANDLES = re.compile(
    r"""(?x)\[ref=\w+\] | \buid=\d+_\d+ | (?m:^\s{0,100}+\[\w{1,8}\](?=\ )) | ,\ focused\b | \bfocused:\ True\b
      | \[(?:active|cursor=pointer)\] | console-[\dT:.-]+Z?\.log\S* | Ray\ ID:?\ ?\w{12,} | (?<=/key/)\w{16,}"""
)
_MOVES_ON = re.compile(
    r"(?i)scroll|swipe|page_?(?:up|down)|snapshot|screenshot|(?<![a-z])(?:next|more|key|hotkey|press|wait)(?![a-z])"
)
_FURTHER = re.compile(r"(?i)\b(?:next|more|older|forward)\b")
_LINKED = re.compile(r"\[([^\]\n]{1,200})\]\((https?://[^\s)]{4,500})")
_ADDRESS = re.compile(
    r"""(?i)\b(?:url|address|page|location|href|at|on)\b["']?\s*+(?:[:=]\s*+)?["'<(]?((?:https?|file)://[^\s"'<>)]{4,500})"""
)
_TITLE = re.compile(r"""(?i)\btitle["']?\s*[:=]\s*["']?([^\n"']{1,200})""")
_PLACE = re.compile(
    r"(?i)\b(?:positioned|position|scrolled?|scroll_?[xy]?|offset|viewport|pixels (?:above|below))\b[^\n]{0,80}"
)
_FILLS = re.compile(r"(?:^|_)(?:type|fill|input|select|enter|check)(?:_|$)")


def is_picture(short: str) -> bool:
    """Tell whether an answer, as a short folded text, is but a picture, or what a recording left in its place."""
    return len(short) <= _ACKNOWLEDGED_CHARS and _shows_picture(short) and "://" not in short


def is_acknowledgement(text: str) -> bool:
    """Tell whether an answer, which does not say no, says only that the action was done, or is but a picture."""
    said = _RAN_CODE.sub("", text).strip()
    if len(said) > _ACKNOWLEDGED_CHARS or _TREE.search(said):
        return False
    if _shows_picture(folded(said)):
        return True
    if "://" in said or _TELLS.match(said):
        return False
    return _WORD.match(said) is not None or _WORKED.search(said) is not None


def _shows_picture(short: str) -> bool:
    return has_any(short, _PICTURE_PARTS) and _PICTURE.search(short) is not None


def moves_on(name: str, arguments: Any, text: str) -> bool:
    """Tell whether an interaction moves on by being repeated, as scrolling, paging and single keys do.

    ``text`` is its answer when that is a mere acknowledgement: it may name the button.
    """
    said = f"{name} {str(arguments)[:_ARGUMENTS_CHARS]}"
    return _MOVES_ON.search(said) is not None or _FURTHER.search(text) is not None


def without_handles(masked: str) -> str:
    """Return a page's text without the handles of its elements, and whatever else is made anew on every load."""
    return _HANDLES.sub(MASK, masked)


def page_of(result: str, *, scrolls: bool) -> int:
    """Return a digest of the page that a result shows; 0 when it names none.

    A result after scrolling is only compared when it tells the place on the page; one that shows the page's tree is
    compared as it is, since it says whether the page moved.
    """
    if _TREE.search(result[:_TREE_CHARS]):
        return 0
    head = result[:_HEAD_CHARS]
    linked = _LINKED.search(head, max(0, head.find("(current)")))
    address = _ADDRESS.search(head)
    if linked is None and address is None:
        return 0
    places = _PLACE.findall(head)
    if scrolls and not places:
        return 0
    title = _TITLE.search(head)
    where = linked.group(0) if linked else address.group(1) if address else ""
    return digest("page", where, title.group(1) if title else "", *places[:4])


@lru_cache(maxsize=1_024)
def fills_in(tool: str) -> bool:
    """Tell whether a tool, by its plain name, fills in a form: then the page stays, as it should."""
    return _FILLS.search(tool) is not None
