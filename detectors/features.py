"""The features of the spin score: how little is new in the latest calls, as numbers from 0 to 1.

All are made from what the other detectors compute of a call (digests of call, result, failure and edit; kind; whether
it failed or brought nothing) and from the share of its text that is new. None looks at a name or a text, so that
renaming what carries no meaning changes none of them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import log2
from typing import Literal

from detectors.facts import Call
from detectors.novelty import new_share
from detectors.state import SessionState

WINDOW_CALLS = 8
"""Calls that the score looks back on, the current one included."""

MIN_CALLS = 4
"""Calls without which there is no score: shares of fewer say nothing."""

MAX_CAME = 128
"""Prints in the ring of what came before: of some forty calls."""

STALE_PERCENT = 25
"""A call of which less than this is new brings next to nothing new."""

_PRINT_BYTES = 3  # a false match in the ring once in 80,000 looks
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
        theme: what it is about; of an explanation, one feature of each theme is told.
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
        often = f"{times}{'+' if times > _MOST_TIMES else ''}"
        return f"{what} for the {often}{_ORDINALS.get(times, 'th')} time"

    return say


_ORDINALS = {1: "st", 2: "nd", 3: "rd"}


def _row(what: str) -> Callable[[float, int], str]:
    def say(value: float, _: int) -> str:
        return f"{what} {round(value * WINDOW_CALLS)} times in a row"

    return say


def _different(what: str) -> Callable[[float, int], str]:
    def say(value: float, calls: int) -> str:
        return f"{round(value * calls)} different {what} in the last {calls} calls"

    return say


def _news(who: str) -> Callable[[float, int], str]:
    def say(value: float, calls: int) -> str:
        return f"{value:.0%} of the text of {who.format(calls=calls)} is new"

    return say


def _calls_so_far(value: float, _: int) -> str:
    calls = round(2 ** (value * log2(1 + _MOST_CALLS)))
    return f"{calls}{'+' if calls > _MOST_CALLS else ''} calls so far"


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
    ("unrecorded", "have no recorded result", "whose results were not recorded", 0, "recorded"),
    ("looks", "only look", "that read or search", 0, "kind"),
    ("edits", "edit", "that edit", 0, "kind"),
    ("runs", "run or check something", "that run or check something", 0, "kind"),
    ("polls", "ask how something gets on", "that poll", -1, "kind"),
    ("applied", "changed something", "that changed something and were accepted", -1, "applied"),
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
"""What is remembered of each call to know it again; `_prints` gives their prints in this order."""

FEATURES: tuple[Feature, ...] = (
    *(
        Feature(name, f"Share of the latest calls {definition}.", sign, theme, _of(verb))
        for name, verb, definition, sign, theme in _SIGNS
    ),
    *(
        Feature(
            f"before_{name}",
            f"How often {words} came before among some forty calls, as log2(1 + n) / 4 up to {_MOST_TIMES} times.",
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
    Feature("distinct_calls", "Different calls over calls.", -1, "call", _different("calls")),
    Feature("distinct_results", "Different answers over calls.", -1, "result", _different("answers")),
    Feature("distinct_pairs", "Different calls with their results over calls.", -1, "pair", _different("results")),
    Feature("distinct_tools", "Different tools over calls.", -1, "tool", _different("tools")),
    Feature(
        "news", "Share of this call's pieces of text that the session has not seen.", -1, "news", _news("this call")
    ),
    Feature("news_mean", "The same on the average of the latest calls.", -1, "news", _news("the last {calls} calls")),
    Feature(
        "position",
        f"How many calls were made before, as log2(1 + n) / 4 up to {_MOST_CALLS}.",
        0,
        "position",
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
_LOOKS = frozenset({"read", "search"})
_RUNS = frozenset({"run", "check"})


def note(state: SessionState, call: Call) -> None:
    """Set the call's `signs` and `news` and remember what it brought; `state.recent` ends with it."""
    memory = state.spin
    came = memory.came
    prints = _prints(call)
    again = [bool(each) and each in came for each in prints]
    memory.came = (came + b"".join(prints))[-MAX_CAME * _PRINT_BYTES :]
    if call.pieces:
        call.news = round(100 * new_share(memory, call.pieces))
    else:
        call.news = 0 if again[0] or again[2] else 100
    failure = call.failure
    holds = (
        *again,
        failure is not None,
        call.empty,
        failure is not None and (failure.unknown_tool or failure.denied),
        call.pending or call.met_outage,
        not call.recorded,
        call.kind in _LOOKS,
        call.kind == "edit",
        call.kind in _RUNS,
        call.polls,
        call.applied,
        call.news < STALE_PERCENT,
    )
    call.signs = sum([one for one, true in zip(_ONES, holds, strict=True) if true])


def window_of(state: SessionState) -> list[Call]:
    """Return the latest calls that the score looks at, the current one last."""
    window = state.recent[-WINDOW_CALLS:]
    since = state.spin.since
    return window if not window or window[0].seq >= since else [call for call in window if call.seq >= since]


def measure(state: SessionState, window: list[Call]) -> list[float]:
    """Return the features at the window's last call, in the order of `FEATURES`; that call was noted."""
    call, calls = window[-1], len(window)
    came = state.spin.came
    total = sum([seen.signs for seen in window])
    values = [(total >> shift & _MASK) / calls for shift in _SHIFTS]
    values += [_BEFORE[min(came.count(each) - 1, _MOST_TIMES)] if each else 0.0 for each in _prints(call)]
    answers, kind = [_NOTHING if seen.empty else _answer(seen) for seen in window], _failure(call)
    values += (
        _run([seen.action for seen in window]),
        _run(answers),
        _run([seen.key for seen in window]),
        _run([_failure(seen) for seen in window]) if kind else 0.0,
        _run([seen.tool for seen in window]),
        len({seen.action for seen in window}) / calls,
        (len(set(answers) - {0}) + answers.count(0)) / calls,  # what cannot be compared is different
        len({seen.key for seen in window}) / calls,
        len({seen.tool for seen in window}) / calls,
        call.news / 100,
        sum([seen.news for seen in window]) / calls / 100,
        _POSITION[min(call.seq - state.spin.since, _MOST_CALLS)],
    )
    return values


def _prints(call: Call) -> list[bytes]:
    """Return prints of what the call may have in common with others, in the order of `_KEPT`; empty for nothing."""
    kept = (call.action, _answer(call), call.key if call.recorded else 0, _failure(call), call.patch)
    return [(each & 0xFF_FFFF).to_bytes(_PRINT_BYTES, "little") if each else b"" for each in kept]


def _answer(call: Call) -> int:
    """Return the call's answer when it says something: what acknowledges an edit does not, nor does an empty one."""
    return 0 if call.empty or call.applied else call.answer


def _failure(call: Call) -> int:
    failure = call.failure
    return 0 if failure is None else failure.kind or call.answer


def _run(seen: list[int] | list[str]) -> float:
    """Return how many at the end are equal, in eighths; 0 when the last one cannot be compared."""
    last = seen[-1]
    if not last:
        return 0.0
    length = 0
    for each in reversed(seen):
        if each != last:
            break
        length += 1
    return length / WINDOW_CALLS
