"""With digests alone, detectors tell failures apart, and find loops as early as with the whole text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec import UNSET

from schemas.encode import encode
from streams.privacy import PENDING_WORD
from tests.streams.hooks.work import alerts, edited, events, failed, ran, said

if TYPE_CHECKING:
    from collections.abc import Callable

    from schemas.outputs import Alert
    from streams.privacy import Level

Payloads = list[dict[str, Any]]
KINDS = ("TypeError: bad operand", "KeyError: name", "AssertionError: wrong total", "ValueError: bad literal")
STARTED = "tests/test_a.py F"


def one(n: int) -> str:
    """A check in which another test fails each time."""
    return f"{STARTED}\nFAILED tests/test_{n}.py::test_{n} - {KINDS[n % 4]}\n1 failed, 20 passed"


def mending(rounds: int) -> Payloads:
    """An agent that mends test after test, with a failing check in between."""
    return [
        *(each for n in range(rounds) for each in (edited(f"m{n}.py", f"x = {n}"), failed("make test", one(n)))),
        ran("make test", "21 passed"),
    ]


def fewer(rounds: int) -> Payloads:
    """An agent of whose checks fewer fail each time, for one and the same reason."""
    texts = (f"FAILED tests/test_a.py::test_a - KeyError: name\n{rounds - n} failed" for n in range(rounds))
    return [each for text in texts for each in (edited("m.py", text), failed("make test", text))]


def first_only(rounds: int) -> Payloads:
    """An agent whose checks end at their first failure, another one each time, after ever more that pass."""
    texts = (f"FAILED tests/test_a.py::test_{n} - KeyError: name\n1 failed, {n} passed" for n in range(rounds))
    return [each for text in texts for each in (edited("m.py", text), failed("make test", text))]


def shell_edits(rounds: int) -> Payloads:
    """An agent that mends a program name by name, by commands of its shell."""
    names = [f"{'abcdefgh'[n % 8]}{'klmnopqr'[n // 8]}_total" for n in range(rounds)]
    ways = ("sed -i s/{0}/x/ main.py", "cat > main.py <<EOF\n{0} = 1\nEOF", "git apply {0}.diff")
    return [
        each
        for n, name in enumerate(names)
        for each in (
            failed("python main.py", f"NameError: name '{name}' is not defined"),
            ran(ways[n % 3].format(name), ""),
        )
    ]


def commits(rounds: int) -> Payloads:
    """An agent whose commit is refused for another reason each time, with an edit for each."""
    return [
        each
        for n in range(rounds)
        for each in (
            failed("git commit -am cart", f"hook {KINDS[n % 4]} in part{n}.py"),
            edited(f"part{n}.py", f"x = {n}"),
        )
    ]


LOOPS: dict[str, Callable[[], Payloads]] = {
    "the same call": lambda: [failed("make test", one(1)) for _ in range(8)],
    "the same check after edits, whose lines move": lambda: [
        each
        for n in range(20)
        for each in (edited("m.py", f"x = {n}"), failed("make test", f"tests/test_a.py:{n}: KeyError\n{one(1)}"))
    ],
    "other arguments, one failure": lambda: [failed(f"make test N={n}", one(1)) for n in range(14)],
    "three failures in turn": lambda: [failed("make test", one(n % 3)) for n in range(40)],
    "a command that is not there": lambda: [failed(f"pyhton m{n}.py", "pyhton: command not found") for n in range(14)],
}


POLLS: dict[str, Callable[[int], dict[str, Any]]] = {
    "a sleep": lambda _: ran("sleep 30", ""),
    "checks that are pending, which their command takes for a failure": lambda _: said(
        "gh pr checks 12", "build\tpending\t0\thttps://ci/7", 8
    ),
    "a check that passes, for a while": lambda n: ran("make test" if n < 10 else f"ls part{n}", "21 passed"),
    "a run's state": lambda _: ran("gh run view 7 --json status", '{"status":"in_progress"}'),
    "a list with ages": lambda n: ran("kubectl get pods", f"NAME READY STATUS RESTARTS AGE\nweb-0 0/1 Pending 0 {n}s"),
    "a page's one word": lambda _: ran("curl -s localhost:8080/health", "starting"),
}


def first(found: list[Alert], level: str) -> tuple[str, int] | None:
    """The first alert of a level, and its call."""
    return next(((alert.detector, alert.seq) for alert in found if alert.level == level), None)


@pytest.mark.parametrize("level", ["digests", "excerpts", "full"])
@pytest.mark.parametrize("work", [mending, fewer, shell_edits, commits])
def test_an_agent_that_mends_test_after_test_is_not_stopped(work: Callable[[int], Payloads], level: Level) -> None:
    """Thirty failing checks, each of which tells something else, terminate nothing at any level."""
    assert first(alerts(events(work(30), level)), "terminate") is None


@pytest.mark.parametrize("level", ["digests", "excerpts"])
@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_is_found_as_early_as_with_the_whole_text(name: str, level: Level) -> None:
    """The same detector warns and terminates at the same call, however little is sent."""
    whole, less = (alerts(events(LOOPS[name](), each)) for each in ("full", level))
    assert first(whole, "terminate") is not None
    for each in ("warn", "terminate"):
        assert first(less, each) == first(whole, each)


@pytest.mark.parametrize("level", ["digests", "excerpts", "full"])
@pytest.mark.parametrize("name", POLLS)
def test_who_waits_is_not_stopped(name: str, level: Level) -> None:
    """Forty looks, twenty seconds apart, at what is not done yet terminate nothing, however little is sent."""
    assert first(alerts(events([POLLS[name](n) for n in range(40)], level)), "terminate") is None


@pytest.mark.parametrize("level", ["digests", "excerpts", "full"])
@pytest.mark.parametrize("work", [fewer, first_only])
def test_a_check_that_gets_further_each_time_is_not_warned_of(work: Callable[[int], Payloads], level: Level) -> None:
    """However little is sent, the numbers of checks that fail and pass go along."""
    assert first(alerts(events(work(30), level)), "warn") is None


def test_an_answer_that_asks_to_wait_leaves_one_word() -> None:
    """It is the same for all of them, and other answers leave none."""
    waiting, done = events([ran("gh run view", "queued behind secret"), ran("gh run view", "done, secret")], "digests")
    assert (waiting.result, done.result) == (PENDING_WORD, UNSET)  # type: ignore[union-attr]
    assert b"secret" not in encode(waiting) + encode(done)


def test_searches_that_find_nothing_are_no_failures_of_one_kind() -> None:
    """However many fail for it, they are warned of as what they are, and nothing is terminated."""
    searches = [said(f"grep -rn name{n} src", "", 1) for n in range(20)]
    whole, less = (alerts(events(searches, level)) for level in ("full", "digests"))
    assert first(less, "warn") == first(whole, "warn") == ("fruitless_search", 7)
    assert first(less, "terminate") is first(whole, "terminate") is None


def test_what_is_not_private_is_kept_and_words_are_not() -> None:
    """Exit code, the numbers of failing and passing checks, that a failure passes by itself: no word of the output."""
    (event,) = events([failed("make test", "FAILED tests/test_secret.py::test_a\n3 failed, 2 passed", 2)], "digests")
    assert event.error.code == 2  # type: ignore[union-attr]
    assert (event.error.failing, event.error.passing) == (3, 2)  # type: ignore[union-attr]
    assert b"secret" not in encode(event)
    (event,) = events([said("curl x", "curl: (7) Failed to connect to x: Connection refused", 7)], "digests")
    assert event.error.type == "transient"  # type: ignore[union-attr]


def test_texts_name_a_call_without_arguments_by_its_tool() -> None:
    """What was not sent does not stand in what people and agents read."""
    found = alerts(events(LOOPS["the same call"](), "digests"))
    assert {call for alert in found for call in alert.evidence.calls} == {"Bash"}
    assert not any("null" in f"{alert.reasoning}{alert.guidance}" for alert in found)
