"""Loops under watch: what is due to be said of one, and what that leaves behind.

A loop is alerted once per level, and again at a multiple of the count, since whoever was to stop it did not, or let it
begin anew. It is terminated only after its own warning, where the evidence is weak only with a second kind of it.
Sessions and tasks follow the same rules.
"""

from datetime import UTC, datetime
from hashlib import blake2b

from detectors.canonical import digest
from detectors.facts import Mark
from detectors.findings import Finding
from detectors.limits import Limits
from detectors.state import PRINT_BYTES, holds_print, print_of
from detectors.watch import (
    DISMISSED,
    MAX_LOOP_ALERTS,
    MAX_LOOPS,
    MAX_QUIET,
    MAX_TOLD,
    NOTICE,
    TERMINATED,
    WARN,
    Loop,
    Told,
)
from schemas.outputs import Level, LimitReached

TOKENS_PER_CALL = 1_000
"""Estimate of what a needless call costs where no usage was sent (analysis-loop guide)."""

MAX_MEMBERS = 10
DAY_MS = 86_400_000
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
    """Note what a finding adds to a loop that is known.

    One that a person marked as wrong stays what it was then, so that it does not silence one neighbour after another.
    """
    if loop.level == DISMISSED and loop.members:
        return
    loop.weak = loop.weak and finding.weak
    loop.members = list(dict.fromkeys((*finding.members, *loop.members)))[:MAX_MEMBERS]


def due(loop: Loop, finding: Finding, limits: Limits, *, corroborated: bool, warns_only: bool = False) -> Level | None:
    """Return the level to alert now, None when everything was said; ``warns_only`` of what never terminates."""
    level = _due(loop, finding, corroborated=corroborated)
    if level == "terminate" and (warns_only or finding.detector in limits.warn_only):
        return "warn" if finding.count >= loop.next_warn else None
    return level


def _due(loop: Loop, finding: Finding, *, corroborated: bool) -> Level | None:
    if loop.level == DISMISSED:
        return None
    again = kind_of_limit(finding) == loop.limit and finding.count >= loop.next_warn
    ends = finding.level == "terminate" and (corroborated or not finding.weak)
    if loop.level == TERMINATED:  # it goes on all the same, or began again
        return "terminate" if ends and again else None
    if finding.level == "notice":
        return "notice" if loop.level < NOTICE or (loop.level == NOTICE and again) else None
    if (ends and loop.level >= WARN) or (finding.level == "terminate" and finding.hard):
        return "terminate"
    return "warn" if loop.level < WARN or again else None


def note_seen(loop: Loop, finding: Finding, step: int) -> None:
    """Note that a loop goes on."""
    loop.last_seq = step
    if finding.detector == loop.detector:
        loop.count = max(loop.count, float(finding.count))


def note_level(loop: Loop, finding: Finding, level: Level, limits: Limits) -> None:
    """Note that a loop is alerted at this level, and at which count it is again."""
    loop.level, loop.limit = RANK[level], kind_of_limit(finding)
    loop.next_warn = finding.count * limits.decision.repeat_factor


def note_alert(told: list[Told], loop: Loop, alert_id: str, at_ms: int) -> None:
    """Note which alert was given of a loop; of too many loops the one that was alerted longest ago is forgotten."""
    loop.alerted_ms = at_ms
    known = next((each for each in told if each.fingerprint == loop.fingerprint), None)
    if known is None:
        known = Told(loop.fingerprint, loop.detector)
    else:
        told.remove(known)
    known.alerts = (known.alerts + _print(alert_id))[-MAX_LOOP_ALERTS * PRINT_BYTES :]
    told[:] = [*told[1 - MAX_TOLD :], known]


def dismiss(loops: list[Loop], told: list[Told], answered: str, until_ms: int) -> None:
    """A person marked this alert as wrong: its loop is not alerted again until then, though it be gone and come again.

    Of several such words on one loop the one that holds longest counts, whichever is read first. Of too many loops the
    one whose time is up first is forgotten.
    """
    wanted = _print(answered)
    found = next((each for each in told if holds_print(each.alerts, wanted)), None)
    if found is None:
        return
    loop = next((loop for loop in loops if loop.fingerprint == found.fingerprint), None)
    if loop is None:
        loop = _gone(found)
        make_room(loops)
        loops.append(loop)
    loop.level, loop.quiet_ms = DISMISSED, max(loop.quiet_ms, until_ms)
    others = [each for each in loops if each.level == DISMISSED and each is not loop]
    if len(others) >= MAX_QUIET:
        loops.remove(min(others, key=lambda each: each.quiet_ms))


def _gone(told: Told) -> Loop:
    """Return a loop of which only the name is known any more: it is the same as what has its fingerprint."""
    return Loop(
        fingerprint=told.fingerprint,
        detector=told.detector,
        limit="",
        members=[],
        level=0,
        count=0.0,
        next_warn=0.0,
        last_seq=0,
        alerted_ms=0,
        since_ms=0,
        mark=Mark(),
    )


def quiet_until(at_ms: int, until_ms: int | None, limits: Limits) -> int:
    """Return until when a false alarm of this time holds: as long as it says, else as long as is the rule."""
    return at_ms + round(limits.decision.false_alarm_days * DAY_MS) if until_ms is None else until_ms


def lift(loops: list[Loop], at_ms: int) -> None:
    """Forget the loops that a person marked as wrong until a time that has come: they may be alerted anew."""
    loops[:] = [loop for loop in loops if loop.level != DISMISSED or at_ms < loop.quiet_ms]


def dismissed(loops: list[Loop]) -> dict[int, str]:
    """Return the detectors of the loops that a person marked as wrong, by fingerprint."""
    return {loop.fingerprint: loop.detector for loop in loops if loop.level == DISMISSED}


def make_room(loops: list[Loop]) -> None:
    """Let go of the loop that matters least, where there are so many that no other has room."""
    if len(loops) >= MAX_LOOPS:
        loops.remove(min(loops, key=lambda loop: (loop.level, loop.last_seq)))


def _print(alert_id: str) -> bytes:
    return print_of(digest("alert", alert_id))


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


def milliseconds(at: datetime) -> int:
    """Return a point in time as milliseconds since 1970."""
    return int(at.timestamp() * 1_000)
