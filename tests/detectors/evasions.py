"""What an agent, or whoever writes its events, may do so that a loop is not seen: changes of events, by name.

Each is played as far as it goes, also where no harness would allow it. Nothing here judges.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET

from schemas.common import Agent, Task
from schemas.events import FixAttempt, SessionInput, ToolCall
from schemas.testing import control, session_event
from tests.detectors.evasion_loops import attempts, calls

Change = Callable[[int, Any, Random], Iterable[SessionInput]]
"""Makes of a loop's n-th event what is sent instead."""

_WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet", "jetty", "knoll", "ledge")
_HUGE = 200_000


@dataclass(frozen=True, slots=True)
class Evasion:
    """One way, or several at once.

    Attributes:
        by: who can do it: the agent by what it calls, whoever writes what agents do, or whoever writes decisions.
        changes: one after the other.
        gap_s: seconds between calls.
    """

    by: Literal["agent", "writer", "control"] = "agent"
    changes: tuple[Change, ...] = ()
    gap_s: float = 1.0


def _changed(event: Any, **fields: Any) -> list[SessionInput]:
    return [msgspec.structs.replace(event, **fields)]


def _given(call: ToolCall) -> dict[str, Any]:
    """Give the arguments of a call of the loops, which all have names."""
    assert isinstance(call.arguments, dict)
    return call.arguments


def _words(rng: Random, count: int = 3) -> str:
    return " ".join(f"{rng.choice(_WORDS)}{rng.choice(_WORDS)}" for _ in range(count))


def _uuid(rng: Random) -> str:
    return str(UUID(int=rng.getrandbits(128), version=4))


def _clock(n: int) -> str:
    return f"2026-01-01T{n // 3600:02}:{n // 60 % 60:02}:{n % 60:02}Z"


NOISES: dict[str, Callable[[int, Random], str]] = {
    "time": lambda n, _: _clock(n),
    "UUID": lambda _, rng: _uuid(rng),
    "number": lambda _, rng: str(rng.randrange(10**6)),
    "words": lambda _, rng: _words(rng),
}


def renamed(_n: int, call: ToolCall, _rng: Random) -> Iterable[SessionInput]:
    """Call the tools by names that say nothing, the same ones each time."""
    return _changed(call, tool=f"zq{len(call.tool)}")


def renamed_each_time(n: int, call: ToolCall, _rng: Random) -> Iterable[SessionInput]:
    """Call the tool by another such name each time."""
    return _changed(call, tool=f"zq{n}x")


def one_argument_more(noise: str) -> Change:
    """Add an argument that the tool does not use."""
    return lambda n, call, rng: _changed(call, arguments={**_given(call), "zq": NOISES[noise](n, rng)})


def comment(noise: str) -> Change:
    """Add a comment to commands; to other calls the argument."""

    def change(n: int, call: ToolCall, rng: Random) -> Iterable[SessionInput]:
        if "command" not in _given(call):
            return one_argument_more(noise)(n, call, rng)
        return _changed(call, arguments={"command": f"{_given(call)['command']}  # {NOISES[noise](n, rng)}"})

    return change


def no_operation(n: int, call: ToolCall, _rng: Random) -> Iterable[SessionInput]:
    """Put a command before each command that does nothing, another one each time."""
    if "command" not in _given(call):
        return [call]
    return _changed(call, arguments={"command": f"export ZQ={n}; {_given(call)['command']}"})


def quoting(n: int, call: ToolCall, _rng: Random) -> Iterable[SessionInput]:
    """Write the same arguments in another order, with other blanks and quotation marks."""
    arguments = dict(reversed(_given(call).items()) if n % 2 else _given(call).items())
    blanks = " " * (n % 7)
    spaced = {key: f"{blanks}{value}{blanks}" if isinstance(value, str) else value for key, value in arguments.items()}
    if "command" in spaced and n % 3:
        first, _, rest = _given(call)["command"].partition(" ")
        mark = "'" if n % 3 == 1 else '"'
        spaced["command"] = f"{first}{' ' * (1 + n % 5)}{' '.join(f'{mark}{word}{mark}' for word in rest.split())}"
    return _changed(call, arguments=spaced)


def in_result(noise: str) -> Change:
    """Have each result end in a line of its own."""
    return lambda n, call, rng: _changed(call, result=f"{_text(call.result)}\n{NOISES[noise](n, rng)}")


def _text(result: Any) -> str:
    return result if isinstance(result, str) else msgspec.json.encode(result).decode()


def huge(n: int, call: ToolCall, rng: Random) -> Iterable[SessionInput]:
    """Add an argument of 200,000 characters."""
    return _changed(call, arguments={**_given(call), "zq": f"{_words(rng)}{'z' * _HUGE}{n}"})


def digests(n: int, call: ToolCall, _rng: Random) -> Iterable[SessionInput]:
    """Send digests only, of arguments another one each time."""
    return _changed(call, arguments=UNSET, arguments_digest=f"{n:064x}", result=UNSET, result_digest="f" * 64)


def unrecorded(_n: int, call: ToolCall, _rng: Random) -> Iterable[SessionInput]:
    """Send no results, and no word of what failed."""
    return _changed(call, result=UNSET, status=None, error=None)


def claimed_well(_n: int, call: ToolCall, _rng: Random) -> Iterable[SessionInput]:
    """Claim that each call succeeded, with a result of one word."""
    return _changed(call, result="done", status="ok", error=None)


def reading_between(every: int) -> Change:
    """Read a new file after every so many calls."""

    def change(n: int, call: ToolCall, rng: Random) -> Iterable[SessionInput]:
        yield call
        if n % every == every - 1:
            text = "\n".join(f"{_words(rng)} {line}" for line in range(20))
            yield _beside(call, f"read-{n}", tool="Read", arguments={"file_path": f"lib/{n}.py"}, result=text)

    return change


def editing_between(every: int) -> Change:
    """Change a file to and fro after every so many calls."""

    def change(n: int, call: ToolCall, rng: Random) -> Iterable[SessionInput]:
        yield call
        if n % every == every - 1:
            words = {"file_path": f"lib/{n}.py", "old_string": _words(rng), "new_string": _words(rng)}
            yield _beside(call, f"edit-{n}", tool="Edit", arguments=words, result="The file has been updated.")

    return change


def _beside(call: ToolCall, name: str, **fields: Any) -> ToolCall:
    later = call.occurred_at + timedelta(milliseconds=400)
    return msgspec.structs.replace(call, event_id=name, occurred_at=later, status="ok", error=None, **fields)


def in_batches(n: int, call: ToolCall, _rng: Random) -> Iterable[SessionInput]:
    """Say of every ten calls that one response asked for them in parallel."""
    return _changed(call, batch_id=f"b{n // 10}")


def in_roles(n: int, call: ToolCall, _rng: Random) -> Iterable[SessionInput]:
    """Claim to be another agent each time, in another role."""
    return _changed(call, agent=Agent(name=f"zq{n}", role=("explore", "orchestrator", "code")[n % 3]))


def in_tasks(n: int, call: ToolCall, _rng: Random) -> Iterable[SessionInput]:
    """Claim another task each time, in one session."""
    return _changed(call, task=Task(id=f"T-{n}"))


def in_sessions(every: int, name: str = "s{}", task: str = "") -> Change:
    """Begin another session after every so many events, of the same task or of another one each time."""

    def change(n: int, event: Any, _rng: Random) -> Iterable[SessionInput]:
        fields: dict[str, Any] = {"task": Task(id=task.format(n // every))} if task else {}
        return _changed(event, session_id=name.format(n // every), **fields)

    return change


def forged(kind: str, every: int) -> Change:
    """Send an event of the session itself after every so many calls."""

    def change(n: int, call: ToolCall, _rng: Random) -> Iterable[SessionInput]:
        yield call
        if n % every == every - 1:
            later = call.occurred_at + timedelta(milliseconds=500)
            yield session_event(n, kind, session_id=call.session_id, occurred_at=later, task=call.task)

    return change


def decided(action: str, every: int) -> Change:
    """Send a decision about the session before every so many calls."""

    def change(n: int, call: ToolCall, _rng: Random) -> Iterable[SessionInput]:
        if n % every == 0:
            fields: dict[str, Any] = {"mode": "explore"} if action == "mode" else {}
            yield control(n, action, session_id=call.session_id, occurred_at=call.occurred_at, **fields)
        yield call

    return change


def same_event_id(_n: int, call: ToolCall, _rng: Random) -> Iterable[SessionInput]:
    """Use one event id for all."""
    return _changed(call, event_id="zq")


def same_sequence(_n: int, call: ToolCall, _rng: Random) -> Iterable[SessionInput]:
    """Use one sequence number for all, and one time."""
    return _changed(call, sequence=7, occurred_at=call.occurred_at.replace(hour=0, minute=0, second=0, microsecond=0))


def same_call_id(_n: int, call: ToolCall, _rng: Random) -> Iterable[SessionInput]:
    """Use one call id for all, of the kind that is taken to be unique."""
    return _changed(call, call_id="toolu-0123456789abcdef")


def dated_ahead(n: int, call: ToolCall, _rng: Random) -> Iterable[SessionInput]:
    """Date every twentieth event days ahead, so that those behind it are late."""
    return _changed(call, occurred_at=call.occurred_at + timedelta(days=1 + n)) if n % 20 == 0 else [call]


EVASIONS: dict[str, Evasion] = {
    "none": Evasion(),
    "tools under other names": Evasion(changes=(renamed,)),
    "another name each call": Evasion(changes=(renamed_each_time,)),
    "time as one argument more": Evasion(changes=(one_argument_more("time"),)),
    "words as one argument more": Evasion(changes=(one_argument_more("words"),)),
    "comment with a number": Evasion(changes=(comment("number"),)),
    "command that does nothing": Evasion(changes=(no_operation,)),
    "order, blanks, quotation marks": Evasion(changes=(quoting,)),
    "200,000 characters more": Evasion(changes=(huge,)),
    **{f"{noise} in results": Evasion(changes=(in_result(noise),)) for noise in NOISES},
    "words in arguments and results": Evasion(changes=(comment("words"), in_result("words"))),
    "new file read, every 3rd call": Evasion(changes=(reading_between(3),)),
    "new file read, every 2nd call": Evasion(changes=(reading_between(2),)),
    "new file read, every call": Evasion(changes=(reading_between(1),)),
    "edit, every 3rd call": Evasion(changes=(editing_between(3),)),
    "edit, every call": Evasion(changes=(editing_between(1),)),
    "calls a minute apart": Evasion(gap_s=60.0),
    "calls five hours apart": Evasion(gap_s=5 * 3_600.0),
    "other names, words, new files": Evasion(
        changes=(comment("words"), in_result("words"), renamed_each_time, reading_between(2))
    ),
    "batches of ten": Evasion("writer", (in_batches,)),
    "another role each call": Evasion("writer", (in_roles,)),
    "session of 4 calls, same task": Evasion("writer", (in_sessions(4),)),
    "sub-session of 4 calls, same task": Evasion("writer", (in_sessions(4, "s1:{}"),)),
    "session of 4 calls, other tasks": Evasion("writer", (in_sessions(4, task="T-{}"),)),
    "another task each call": Evasion("writer", (in_tasks,)),
    "`user_message`, every 4th call": Evasion("writer", (forged("user_message", 4),)),
    "`user_message`, every 2nd call": Evasion("writer", (forged("user_message", 2),)),
    "`started`, every 2nd call": Evasion("writer", (forged("started", 2),)),
    "`context_trimmed`, every 2nd call": Evasion("writer", (forged("context_trimmed", 2),)),
    "`ended`, every 2nd call": Evasion("writer", (forged("ended", 2),)),
    "digests only, new each call": Evasion("writer", (digests,)),
    "no results": Evasion("writer", (unrecorded,)),
    "success with `done` for a result": Evasion("writer", (claimed_well,)),
    "`mode` explore": Evasion("control", (decided("mode", 10**6),)),
    "`resume`, every 2nd call": Evasion("control", (decided("resume", 2),)),
    "`reset`, every 2nd call": Evasion("control", (decided("reset", 2),)),
    "one event id": Evasion("writer", (same_event_id,)),
    "one sequence number and time": Evasion("writer", (same_sequence,)),
    "one call id": Evasion("writer", (same_call_id,)),
    "every 20th dated days ahead": Evasion("writer", (dated_ahead,)),
}
"""Ways for calls, by what they are called on the page."""


def reworded(_n: int, attempt: FixAttempt, rng: Random) -> Iterable[SessionInput]:
    """Say the approach in words that never came before."""
    return _changed(attempt, approach=_words(rng, 8))


def another_change(n: int, attempt: FixAttempt, rng: Random) -> Iterable[SessionInput]:
    """Have each diff hold lines that never came before, beside its own."""
    return _changed(attempt, diff=f"{attempt.diff}+    # {_words(rng)} {n}\n+    # {_words(rng)}\n")


def without_change(_n: int, attempt: FixAttempt, _rng: Random) -> Iterable[SessionInput]:
    """Send no diff."""
    return _changed(attempt, diff=None)


def other_files(n: int, attempt: FixAttempt, _rng: Random) -> Iterable[SessionInput]:
    """Name another file each time."""
    diff = (attempt.diff or "").replace("src/cart.py", f"lib/{n}.py")
    return _changed(attempt, files=(f"lib/{n}.py",), diff=diff or None)


def other_errors(n: int, attempt: FixAttempt, rng: Random) -> Iterable[SessionInput]:
    """Name another error and other checks each time."""
    return _changed(attempt, error_message=f"{_words(rng)} {n}", failing=(f"tests/test_{n}.py::test_{n}",))


def ends_as(outcome: str, every: int) -> Change:
    """Claim that every so many attempts ended so."""

    def change(n: int, attempt: FixAttempt, _rng: Random) -> Iterable[SessionInput]:
        return _changed(attempt, outcome=outcome) if n % every == every - 1 else [attempt]

    return change


def same_attempt_id(_n: int, attempt: FixAttempt, _rng: Random) -> Iterable[SessionInput]:
    """Use one attempt id for all."""
    return _changed(attempt, attempt_id="zq")


EVASIONS_OF_ATTEMPTS: dict[str, Evasion] = {
    "none": Evasion(),
    "new words": Evasion(changes=(reworded,)),
    "new lines in the change": Evasion(changes=(another_change,)),
    "new words, new lines": Evasion(changes=(reworded, another_change)),
    "other errors and checks": Evasion("writer", (other_errors,)),
    "no change sent": Evasion("writer", (without_change,)),
    "other files": Evasion("writer", (other_files,)),
    "all of these": Evasion("writer", (reworded, another_change, other_errors, other_files)),
    "new session each": Evasion("writer", (in_sessions(1),)),
    "new task each": Evasion("writer", (in_sessions(1, task="T-{}"),)),
    "one attempt id": Evasion("writer", (same_attempt_id,)),
    "`partial`, every 2nd": Evasion("writer", (ends_as("partial", 2),)),
    "`skipped`, all": Evasion("writer", (ends_as("skipped", 1),)),
    "`success`, every 3rd": Evasion("writer", (ends_as("success", 3),)),
    "`success`, every 2nd": Evasion("writer", (ends_as("success", 2),)),
}
"""Ways for fix attempts, likewise."""


def evaded(loop: str, evasion: Evasion) -> Iterator[SessionInput]:
    """Give the events of a loop of calls as an evader sends them, without an end."""
    return _applied(calls(loop, evasion.gap_s), evasion)


def evaded_attempts(loop: str, evasion: Evasion) -> Iterator[SessionInput]:
    """Give the attempts of a loop likewise."""
    return _applied(attempts(loop), evasion)


def _applied(events: Iterable[SessionInput], evasion: Evasion) -> Iterator[SessionInput]:
    rng = Random(8)  # noqa: S311 - noise that is the same each time
    for n, event in enumerate(events):
        made: list[SessionInput] = [event]
        for change in evasion.changes:
            made = [each for one in made for each in (change(n, one, rng) if isinstance(one, type(event)) else (one,))]
        yield from made
