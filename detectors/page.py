"""Which page an interaction led to: address, title and place on it, where the answer tells.

The whole text of a page is never the same twice, so the page is what interactions are compared by.
"""

import re

from detectors.canonical import digest

_HEAD_CHARS = 3_000
_LINKED = re.compile(r"\[([^\]\n]{1,200})\]\((https?://[^\s)]{4,500})")
_ADDRESS = re.compile(
    r"""(?i)\b(?:url|address|page|location|href|at|on)\b["']?\s*[:=]?\s*["'<(]?((?:https?|file)://[^\s"'<>)]{4,500})"""
)
_TITLE = re.compile(r"""(?i)\btitle["']?\s*[:=]\s*["']?([^\n"']{1,200})""")
_PLACE = re.compile(
    r"(?i)\b(?:positioned|position|scrolled?|scroll_?[xy]?|offset|viewport|pixels (?:above|below))\b[^\n]{0,80}"
)


def page_of(result: str, *, scrolls: bool) -> int:
    """Return a digest of the page that a result shows; 0 when it names none.

    A result after scrolling is only compared when it tells the place on the page.
    """
    head = result[:_HEAD_CHARS]
    linked = _LINKED.search(head)
    address = _ADDRESS.search(head)
    if linked is None and address is None:
        return 0
    places = _PLACE.findall(head)
    if scrolls and not places:
        return 0
    title = _TITLE.search(head)
    where = linked.group(0) if linked else address.group(1) if address else ""
    return digest("page", where, title.group(1) if title else "", *places[:4])
