"""Loops under watch: what is due to be said of one, and what that leaves behind.

A loop is alerted once per level, warned again at a multiple of the count, and terminated only after its own warning,
where the evidence is weak only with a second kind of it. Sessions and tasks follow the same rules.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from hashlib import blake2b

from detectors.canonical import digest
from detectors.findings import Finding
from detectors.limits import Limits
from detectors.state import DISMISSED, MAX_LOOP_ALERTS, NOTICE, TERMINATED, WARN, Loop
from schemas.outputs import Level, LimitReached

TOKENS_PER_CALL = 1_000
"""Estimate of what a needless call costs where no usage was sent (analysis-loop guide)."""

MAX_MEMBERS = 10
RANK: dict[str, int] = {"notice": 1, "warn": 2, "terminate": 3}


def new_loop(finding: Finding, step: int, at_ms: int) -> Loop:
    """Return the loop that a finding speaks of, seen first at this step."""
    return Loop(
        fingerprint=finding.fingerprint,
        detector=finding.detector,
        limit=kind_of_limit(finding),
        members=list(finding.members[:MAX_MEMBERS]),
        level=0,
        count=float(finding.count),
        next_warn=0.0,
        last_seq=step,
        alerted_ms=at_ms,
        since_ms=finding.mark.at_ms if finding.since_ms is None else finding.since_ms,
        mark=finding.mark,
        weak=finding.weak,
    )


def take_members(loop: Loop, finding: Finding) -> None:
    """Note what a finding adds to a loop that is known."""
    loop.weak = loop.weak and finding.weak
    loop.members = list(dict.fromkeys((*finding.members, *loop.members)))[:MAX_MEMBERS]


def due(loop: Loop, finding: Finding, limits: Limits, *, corroborated: bool, warns_only: bool = False) -> Level | None:
    """Return the level to alert now, None when everything was said; ``warns_only`` of what never terminates."""
    level = _due(loop, finding, corroborated=corroborated)
    if level == "terminate" and (warns_only or finding.detector in limits.warn_only):
        return "warn" if finding.count >= loop.next_warn else None
    return level


def _due(loop: Loop, finding: Finding, *, corroborated: bool) -> Level | None:
    if loop.level >= TERMINATED:
        return None
    again = kind_of_limit(finding) == loop.limit and finding.count >= loop.next_warn
    if finding.level == "notice":
        return "notice" if loop.level < NOTICE or (loop.level == NOTICE and again) else None
    if finding.level == "terminate" and finding.hard:
        return "terminate"
    if loop.level < WARN:
        return "warn"
    if finding.level == "terminate" and (corroborated or not finding.weak):
        return "terminate"
    return "warn" if again else None


def note_seen(loop: Loop, finding: Finding, step: int) -> None:
    """Note that a loop goes on."""
    loop.last_seq = step
    if finding.detector == loop.detector:
        loop.count = max(loop.count, float(finding.count))


def note_level(loop: Loop, finding: Finding, level: Level, limits: Limits) -> None:
    """Note that a loop is alerted at this level."""
    if level == "terminate":
        loop.level = TERMINATED
    else:
        loop.level, loop.limit = NOTICE if level == "notice" else WARN, kind_of_limit(finding)
        loop.next_warn = finding.count * limits.decision.repeat_factor


def note_alert(loop: Loop, alert_id: str, at_ms: int) -> None:
    """Note which alert was given of a loop."""
    loop.alerted_ms = at_ms
    loop.alerts = [*loop.alerts[1 - MAX_LOOP_ALERTS :], alert_digest(alert_id)]


def dismiss(loops: Iterable[Loop], answered: str) -> None:
    """A person marked this alert as wrong: its loop is not alerted again."""
    wanted = alert_digest(answered)
    for loop in loops:
        if wanted in loop.alerts:
            loop.level = DISMISSED


def make_room(loops: list[Loop], most: int) -> None:
    """Let go of the loop that matters least, where there are so many that no other has room."""
    if len(loops) >= most:
        loops.remove(min(loops, key=lambda loop: (loop.level, loop.last_seq)))


def alert_digest(alert_id: str) -> int:
    """Return what a loop remembers of an alert."""
    return digest("alert", alert_id)


def kind_of_limit(finding: Finding) -> str:
    """Return the limit's name without its level: counts against different limits do not compare."""
    return finding.limit.removesuffix("notice").removesuffix("warn").removesuffix("terminate")


def warn_limit(finding: Finding) -> str:
    """Return the name of the limit that was reached on the way to a terminate limit, else of the one reached."""
    return f"{kind_of_limit(finding)}warn" if finding.limit.endswith("terminate") else finding.limit


def limit_reached(finding: Finding, level: Level, limits: Limits) -> LimitReached:
    """Return the limit that the alert rests on: the warn limit where a terminate waits for more evidence."""
    name = warn_limit(finding)
    if level == "terminate" or name == finding.limit:
        return LimitReached(name=finding.limit, value=finding.value, layer=limits.layer(finding.limit))
    value = finding.value * limits.value(name) / limits.value(finding.limit)
    return LimitReached(name=name, value=value, layer=limits.layer(name))


def reasoning(finding: Finding, reached: LimitReached, error: str) -> str:
    """Return the sentence for people: what repeats, how it fails, and which limit was reached."""
    calls = f": {' → '.join(finding.calls)}" if finding.calls else ""
    failing = f", failing with «{error}»" if error else ""
    return f"{finding.what}{calls}{failing} (limit {reached.name} = {reached.value:g}, set by {reached.layer})"


def alert_id(*parts: str) -> str:
    """Derive an alert's id from what brought it about, so that the same events give the same id anywhere."""
    return blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def instant(at_ms: int) -> datetime:
    """Return a point in time given in milliseconds since 1970."""
    return datetime.fromtimestamp(at_ms / 1_000, UTC)
