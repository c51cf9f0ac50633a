"""Category streak: calls of one category in a row (CycleDetector, second dimension).

Looking, acting, planning and anything else have limits of their own, and tools that execute have lower ones when they
write. A call whose arguments changed adds a half and does not reset; a change of category resets. The worst single
signal there is: alone it terminates only where a setting says so.
"""

from collections.abc import Sequence

from detectors.about import About
from detectors.analysis import explores
from detectors.canonical import digest
from detectors.excerpt import named
from detectors.facts import Call
from detectors.findings import Finding, level_of
from detectors.limits import Limits
from detectors.state import SessionState, Stretch

NAME = "category"
ABOUT = About(
    rule=(
        "Calls of one category in a row: looking, acting, planning, others. A call with other arguments adds "
        "½. Terminates only with another kind of evidence."
    ),
    source="CycleDetector, second dimension (100/200, 50/100, 30/60)",
    cleared_by="a call of another category",
)

_OF_KIND = {
    "read": "explore",
    "search": "explore",
    "edit": "act",
    "run": "act",
    "check": "act",
    "interact": "act",
    "plan": "plan",
}
_FIELDS = {
    name: (f"{NAME}.{name}", f"{name}_warn", f"{name}_terminate")
    for name in (*_OF_KIND.values(), "other", "execute", "execute_write")
}
_WORDS = {"explore": "only look", "act": "only act", "plan": "only plan", "other": "are of one kind"}


def observe(state: SessionState, call: Call, limits: Limits) -> Sequence[Finding]:
    """Count the call into its category's streak, and return what limits are reached."""
    kind = call.kind
    if kind in {"talk", "poll"}:
        return ()
    category = call.tool if call.tool in limits.category.tools else _OF_KIND.get(kind, "other")
    stretch = state.stretch
    if stretch.category != category:
        state.stretch = stretch = Stretch(category, 0.0, call.action, call.mark)
    stretch.count += 1.0 if stretch.action == call.action else 0.5
    stretch.action = call.action
    name, warn, terminate = _limits(call, category, limits)
    level = level_of(stretch.count, warn, terminate)
    if level is None or (category == "explore" and explores(state, limits)):
        return ()
    found = Finding(
        detector=NAME,
        level=level,
        fingerprint=digest(NAME, category),
        members=(digest(NAME, category),),
        count=stretch.count,
        limit=name if name.startswith("category.tools") else f"{name}_{level}",
        value=terminate if level == "terminate" else warn,
        mark=stretch.mark,
        what=f"calls in a row that {_WORDS.get(category) or f'are of {named(category)}'}, counted as {stretch.count:g}",
        calls=(call.text,),
        weak=not limits.category.alone,
    )
    return (found,)


def _limits(call: Call, category: str, limits: Limits) -> tuple[str, float, float]:
    """Return the name of the limits that apply without their level, and both values."""
    group = limits.category
    if call.tool in group.tools:
        return (f"{NAME}.tools", *group.tools[call.tool])
    name = category
    if category == "act" and call.executes:
        name = "execute_write" if call.changes else "execute"
    full, warn, terminate = _FIELDS[name]
    return full, getattr(group, warn), getattr(group, terminate)
