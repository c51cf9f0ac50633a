"""The features of the spin score: how little is new in the latest calls, as numbers from 0 to 1.

All are made from what the other detectors compute of a call (digests of call, result, failure and edit; kind; whether
it failed or brought nothing) and from the share of its text that is new. Names and texts are only compared, never read,
so that renaming what carries no meaning changes none of them; what a tool is for comes from its name.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import log2
from typing import Literal

from detectors.facts import Call
from detectors.interface import fills_in
from detectors.novelty import new_share
from detectors.state import SessionState

WINDOW_CALLS = 8
"""Calls that the score looks back on, the current one included."""

MIN_CALLS = 4
"""Calls without which there is no score: shares of fewer say nothing."""

MAX_CAME = 112
"""Prints in the ring of what came before: of 37 calls or more."""

STALE_PERCENT = 25
"""A call of which less than this is new brings next to nothing new."""

_PRINT_BYTES = 4
_MOST_TIMES = 15  # further times tell no more
_MOST_CALLS = 15  # beyond the opening, length says nothing: healthy sessions are long as well

Sign = Literal[-1, 0, 1]


@dataclass(frozen=True, slots=True)
class Feature:
    """One number that the score weighs.

    Attributes:
        name: as it stands in the file of weights.
        about: what it is, in one sentence.
        sign: 1 when more of it can only speak for spinning, -1 when it can only speak against, 0 when either may be.
        theme: what it is about: an explanation tells one feature of each theme. Empty for what says only where the
            session is and what it works with: this shifts the score, and explains nothing.
        says: its value in words, given the value and the number of calls in the window.
    """

    name: str
    about: str
    sign: Sign
    theme: str
    says: Callable[[float, int], str]


def _of(what: str) -> Callable[[float, int], str]:
    """Put a share of the window's calls into words."""

    def say(value: float, calls: int) -> str:
        number = round(value * calls)
        return f"{number or 'none'} of the last {calls} calls {what}"

    return say


def _times(what: str) -> Callable[[float, int], str]:
    """Put how often something came before into words."""

    def say(value: float, _: int) -> str:
        times = round(2 ** (value * log2(1 + _MOST_TIMES)))
        return f"{what} for the {times}{_ORDINALS.get(times, 'th')} time{_or_more(times, _MOST_TIMES)}"

    return say


_ORDINALS = {1: "st", 2: "nd", 3: "rd"}


def _row(what: str) -> Callable[[float, int], str]:
    def say(value: float, _: int) -> str:
        return f"{what} {round(value * WINDOW_CALLS)} times in a row"

    return say


def _different(what: str) -> Callable[[float, int], str]:
    def say(value: float, calls: int) -> str:
        number = round(value * calls)
        return f"only {f'{number} different {what}s' if number > 1 else f'one {what}'} in the last {calls} calls"

    return say


def _news(who: str) -> Callable[[float, int], str]:
    def say(value: float, calls: int) -> str:
        return f"{value:.0%} of the text of {who.format(calls=calls)} is new"

    return say


def _calls_so_far(value: float, _: int) -> str:
    calls = round(2 ** (value * log2(1 + _MOST_CALLS)))
    return f"{calls} calls{_or_more(calls, _MOST_CALLS)} so far"


def _or_more(number: int, most: int) -> str:
    return " or more" if number > most else ""


_SIGNS: tuple[tuple[str, str, str, Sign, str], ...] = (
    ("again_call", "were made before", "that were made before", 1, "call"),
    ("again_result", "gave an answer that came before", "whose answer had come before", 1, "result"),
    ("again_pair", "were made before with the same result", "that were made before with the same result", 1, "pair"),
    ("again_failure", "failed as a call before", "that failed as a call before", 1, "failure"),
    ("again_patch", "made an edit that was made before", "that made an edit that was made before", 1, "patch"),
    ("failed", "failed", "that failed", 1, "failures"),
    ("empty", "brought nothing", "that brought nothing", 1, "empties"),
    (
        "refused",
        "could not be read, were not allowed or named a tool that does not exist",
        "that the harness could not read, did not allow, or had no tool for",
        1,
        "refusals",
    ),
    ("waiting", "wait for something", "that met an outage or something that goes on", -1, "waiting"),
    ("unrecorded", "have no recorded result", "whose results were not recorded", 0, ""),
    ("looks", "only look", "that read or search", 0, ""),
    ("edits", "edit", "that edit", 0, ""),
    ("runs", "run or check something", "that run or check something", 0, ""),
    ("polls", "ask how something gets on", "that poll", -1, ""),
    ("applied", "made a change that was accepted", "that changed something and were accepted", -1, "applied"),
    ("stale", "brought next to nothing new", f"of whose text less than {STALE_PERCENT} % is new", 1, "news"),
)
"""What is counted over the window: name, words of a verb, words of the definition, sign and theme."""

_KEPT = (
    ("call", "this call", 1, "call"),
    ("result", "this answer", 1, "result"),
    ("pair", "this call with this result", 1, "pair"),
    ("failure", "one failure", 1, "failure"),
    ("patch", "one edit", 1, "patch"),
)
"""What is remembered of each call to know it again; `note` takes them in this order."""

FEATURES: tuple[Feature, ...] = (
    *(
        Feature(name, f"Share of the latest calls {definition}.", sign, theme, _of(verb))
        for name, verb, definition, sign, theme in _SIGNS
    ),
    *(
        Feature(
            f"before_{name}",
            f"How often {words} came before in some 37 calls, as log2(1 + n) / 4 up to {_MOST_TIMES} times.",
            1,
            theme,
            _times(words),
        )
        for name, words, _, theme in _KEPT
    ),
    Feature("run_call", "The same call in a row, in eighths.", 1, "call", _row("the same call")),
    Feature("run_result", "The same answer in a row, in eighths.", 1, "result", _row("the same answer")),
    Feature("run_pair", "The same call with the same result in a row, in eighths.", 1, "pair", _row("the same call")),
    Feature("run_failure", "The same failure in a row, in eighths.", 1, "failure", _row("the same failure")),
    Feature("run_tool", "The same tool in a row, in eighths.", 1, "tool", _row("the same tool")),
    Feature("distinct_calls", "Different calls over calls.", -1, "call", _different("call")),
    Feature("distinct_results", "Different answers over calls.", -1, "result", _different("answer")),
    Feature("distinct_pairs", "Different calls with their results over calls.", -1, "pair", _different("result")),
    Feature("distinct_tools", "Different tools over calls.", -1, "tool", _different("tool")),
    Feature(
        "news", "Share of this call's pieces of text that the session has not seen.", -1, "news", _news("this call")
    ),
    Feature("news_mean", "The same on the average of the latest calls.", -1, "news", _news("the last {calls} calls")),
    Feature(
        "position",
        f"How many calls of work came before, as log2(1 + n) / 4 up to {_MOST_CALLS}.",
        0,
        "",
        _calls_so_far,
    ),
)
"""All features, in the order in which `measure` gives them."""

_BITS = 4  # for each sign: its sum over the window is at most eight
_SHIFTS = tuple(range(0, _BITS * len(_SIGNS), _BITS))
_ONES = tuple(1 << shift for shift in _SHIFTS)
_MASK = (1 << _BITS) - 1
_BEFORE = tuple(log2(1 + times) / log2(1 + _MOST_TIMES) for times in range(_MOST_TIMES + 1))
_POSITION = tuple(log2(1 + calls) / log2(1 + _MOST_CALLS) for calls in range(_MOST_CALLS + 1))
_NOTHING = 1  # stands for the answer of all calls that brought nothing
_AGAIN = _ONES[: len(_KEPT)]
_FAILED, _EMPTY, _REFUSED, _WAITING, _UNRECORDED, _LOOKS, _EDITS, _RUNS, _POLLS, _APPLIED, _STALE = _ONES[len(_KEPT) :]
_KINDS = {"read": _LOOKS, "search": _LOOKS, "edit": _EDITS, "run": _RUNS, "check": _RUNS, "poll": _POLLS}
_SHARES = tuple(  # by calls in the window, then by the digit that counts those which show a sign
    {ord(f"{count:x}"): count / calls for count in range(calls + 1)} for calls in range(1, WINDOW_CALLS + 1)
)
_AGAIN_CALL, _AGAIN_PAIR = _ONES[0] * _MASK, _ONES[2] * _MASK
_ANSWERED_ALIKE = (_ONES[1] | _EMPTY) * _MASK
_NEVER = [0.0] * len(_KEPT)
_ONCE = 1 / WINDOW_CALLS


def note(state: SessionState, call: Call) -> None:
    """Set the call's `news`, `before` and `signs`, and remember what it brought; `state.recent` ends with it."""
    memory = state.spin
    if not memory.calls:
        memory.since = call.seq
    memory.calls += 1
    came = memory.came
    call.said = said = _said(call)
    before, fresh, shift = 0, came, 0
    for each in (call.action, said, call.key if call.recorded else 0, _failing(call), call.patch):
        if each > _NOTHING:
            mark = (each >> shift & 0xFFFF_FFFF).to_bytes(_PRINT_BYTES, "little")  # of each kind other bits
            if times := came.count(mark):
                before |= min(_MOST_TIMES, times) << shift
            fresh += mark
        shift += _BITS
    memory.came = fresh[-MAX_CAME * _PRINT_BYTES :]
    call.before = before
    call.news = round(100 * new_share(memory, call.pieces)) if call.pieces else 0 if before & _MASK else 100
    call.signs = _signs(call) | (sum([one for one in _AGAIN if before & one * _MASK]) if before else 0)


def _signs(call: Call) -> int:
    """Return what is counted of the call by itself: a hexadecimal digit for each of `_SIGNS`, 1 where it holds."""
    kind, failure, signs = call.kind, call.failure, 0
    if failure is not None:
        signs |= _FAILED
        if failure.unknown_tool or failure.denied:
            signs |= _REFUSED
    if call.empty:
        signs |= _EMPTY
    if call.pending or call.met_outage:
        signs |= _WAITING
    if not call.recorded:
        signs |= _UNRECORDED
    if kind in _KINDS:
        signs |= _KINDS[kind]
    if call.applied:
        signs |= _APPLIED
    if call.news < STALE_PERCENT:
        signs |= _STALE
    return signs


def window_of(state: SessionState, call: Call) -> list[Call]:
    """Return the latest calls up to this one that the score looks at; the call was noted."""
    recent = state.recent
    if recent[-1] is not call:  # it is counted again, and others followed it
        recent = [seen for seen in recent if seen.seq <= call.seq]
    window = recent[-WINDOW_CALLS:]
    since = state.spin.since
    return window if window[0].seq >= since else [seen for seen in window if seen.seq >= since]


def measure(state: SessionState, window: list[Call]) -> list[float]:
    """Return the features at the window's last call, in the order of `FEATURES`; it was noted last."""
    call, calls = window[-1], len(window)
    total, before = sum([seen.signs for seen in window]), call.before
    values = list(map(_SHARES[calls - 1].__getitem__, (b"%016x" % total)[::-1]))
    tools = [seen.tool for seen in window]
    different_tools = len(set(tools))
    # What never came before is neither repeated in a row nor twice in the window: most calls need no comparing.
    values += [_BEFORE[before >> shift & _MASK] for shift in _SHIFTS[: len(_KEPT)]] if before else _NEVER
    values += (
        _run([seen.action for seen in window]) if before & 0xF else _ONCE,
        _run([seen.said for seen in window]) if before & 0xF0 or call.empty else _ONCE,
        _run([seen.key if seen.recorded else 0 for seen in window]) if before & 0xF00 else _ONCE,
        _run([_failing(seen) for seen in window]) if before & 0xF000 else _ONCE,
        _run(tools) if different_tools > 1 else calls / WINDOW_CALLS,
        _distinct([seen.action for seen in window]) if total & _AGAIN_CALL else 1.0,
        _distinct([seen.said for seen in window]) if total & _ANSWERED_ALIKE else 1.0,
        _distinct([seen.key if seen.recorded else 0 for seen in window]) if total & _AGAIN_PAIR else 1.0,
        different_tools / calls,
        call.news / 100,
        sum([seen.news for seen in window]) / (100 * calls),
        _POSITION[min(state.spin.calls - 1, _MOST_CALLS)],
    )
    return values


def _said(call: Call) -> int:
    """Return the call's answer, one for all that brought nothing, and 0 when it says nothing that compares.

    What acknowledges an edit does not, nor does the page of a form while it is filled in.
    """
    if call.empty:
        return _NOTHING
    if not call.answer or call.applied or (call.kind == "interact" and fills_in(call.tool)):
        return 0
    return call.answer


def _failing(call: Call) -> int:
    """Return the kind of failure of a call that failed, else 0."""
    failure = call.failure
    return 0 if failure is None else failure.kind or call.answer


def _run(seen: list[int] | list[str]) -> float:
    """Return how many at the end are equal, in eighths; what cannot be compared (0) equals nothing."""
    last = seen[-1]
    length = 1
    while last and length < len(seen) and seen[-1 - length] == last:
        length += 1
    return length / WINDOW_CALLS


def _distinct(seen: list[int]) -> float:
    """Return the share of different ones; what cannot be compared (0) is different."""
    unknown = seen.count(0)
    return (len(set(seen)) - (unknown > 0) + unknown) / len(seen)
