"""Denying a repeated call: exactly it, as long as nothing else was done in between, and a few times only."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET, structs

from detectors import Limits, SessionState, observe
from detectors.denial import CLASSES
from schemas.common import ErrorInfo
from streams.privacy import reduce
from streams.verdicts import GO_ON, Verdicts, call_key
from streams.verdicts.model import UNLIKE
from streams.verdicts.repeats import MOST_DENIALS, PATIENCE
from tests.streams.verdicts.kit import at, call, directive, key, said, spoke, stop

TEST = "pytest -q"


@pytest.fixture
def loop() -> Verdicts:
    """Give a table with a session that runs the same test over and over, and was given guidance about that."""
    made = Verdicts()
    for n in range(3):
        made.note(call(TEST, n))
    made.note(directive(seconds=2, repeats=(key(TEST).digest,)))
    guide = made.verdict("s1", at(3))
    assert (guide.action, guide.calls) == ("guide", (key(TEST),))
    made.handed_out(guide)
    return made


def test_the_repeated_call_is_denied_a_few_times(loop: Verdicts) -> None:
    """An agent that asks for it all the same is let through in the end, so that the next step can follow."""
    seen = [loop.verdict("s1", at(4 + n), key(TEST)) for n in range(MOST_DENIALS + 2)]
    assert [each.action for each in seen] == ["deny"] * MOST_DENIALS + ["go_on"] * 2
    assert (seen[0].answers, seen[0].text, seen[0].calls) == ("d1", "Stop.", (key(TEST),))


@pytest.mark.parametrize(
    "between",
    [
        lambda table: table.verdict("s1", at(4), key("sed -i s/a/b/ a.py")),
        lambda table: table.note(call("ls", 4)),
        lambda table: table.note(structs.replace(call("ls", 4), arguments=UNSET)),
        lambda table: table.verdict("s1", at(4), None) and table.note(spoke(4)),
        lambda table: table.note(said("resume", 4)),
        lambda table: table.note(said("false_alarm", 4, answers="alert-1")),
        lambda table: table.note(said("refused", 4, answers="d1")),
        lambda table: table.note(call("ls", 1.5)),
    ],
    ids=["another call", "made", "unknown", "a user", "resumed", "wrong", "refused", "made before, told late"],
)
def test_whatever_happens_in_between_ends_it(loop: Verdicts, between: Any) -> None:
    """After another call, of any kind, a word of the user or of a person, the same call may well be right."""
    between(loop)
    assert [loop.verdict("s1", at(5 + n), key(TEST)) for n in range(3)] == [GO_ON] * 3


def test_a_call_that_was_denied_on_our_word_was_not_made(loop: Verdicts) -> None:
    """Where its denial is told of, as from a log, nothing was done in between, and the next one is denied as well."""
    for n, denial in enumerate(CLASSES.values()):
        assert loop.verdict("s1", at(4 + n), key(TEST)).action == "deny"
        loop.note(structs.replace(call("ls", 4 + n), error=ErrorInfo(type=denial), status="denied"))
    assert loop.verdict("s1", at(6), key(TEST)).action == "deny"


def test_whoever_waits_before_the_call_polls(loop: Verdicts) -> None:
    """After a pause as long as the detector counts as polling, the call is let through."""
    last = 2 + PATIENCE.total_seconds()
    assert loop.verdict("s1", at(last), key(TEST)) == GO_ON
    assert loop.verdict("s1", at(last + 1), key(TEST)).action == "deny"


def test_a_denial_does_not_put_off_the_pause(loop: Verdicts) -> None:
    """Who asks every half minute is denied once, and let through when the detector would take it for polling."""
    seen = [loop.verdict("s1", at(2 + 30 * n), key(TEST)).action for n in range(1, 6)]
    assert seen == ["deny", "go_on", "deny", "go_on", "deny"]


@pytest.mark.parametrize("told", ["both ends", "how long it took"])
def test_a_call_that_took_long_is_asked_for_again_at_once(told: str) -> None:
    """The detector measures from call to call: one that waits for a minute by itself is polling, one of less is not."""
    for seconds, action in ((PATIENCE.total_seconds(), "go_on"), (PATIENCE.total_seconds() - 1, "deny")):
        made = Verdicts()
        made.note(call(TEST, 0))
        if told == "both ends":
            assert made.verdict("s1", at(1), key(TEST)) == GO_ON
            made.note(call(TEST, 1 + seconds))
        else:
            made.note(structs.replace(call(TEST, 1 + seconds), duration_ms=1_000 * seconds))
        made.note(directive(seconds=2, repeats=(key(TEST).digest,)))
        made.handed_out(made.verdict("s1", at(1 + seconds)))
        assert made.verdict("s1", at(1 + seconds), key(TEST)).action == action


@pytest.mark.parametrize(
    ("result", "action"),
    [("1 failed", "deny"), ("2 failed", "go_on"), ("in progress", "go_on"), (UNSET, "deny")],
    ids=["the same", "news", "it waits", "not told"],
)
def test_what_brings_news_is_not_denied(loop: Verdicts, result: Any, action: str) -> None:
    """Where the call was made all the same, its result tells whether it repeats what the directive is about."""
    loop.note(call(TEST, 3))
    loop.note(structs.replace(call(TEST, 4), result=result))
    assert loop.verdict("s1", at(5), key(TEST)).action == action


def test_a_call_that_is_known_to_wait_is_not_denied(loop: Verdicts) -> None:
    """Whoever knows more of a call than its record has may say that it waits; a pause holds for it all the same."""
    loop.note(call(TEST, 3), waits=True)
    assert loop.verdict("s1", at(4), key(TEST)) == GO_ON
    assert loop.verdict("s1", at(5), UNLIKE) == GO_ON
    assert loop.verdict("s1", at(6), key(TEST)) == GO_ON, "something else was done in between"
    loop.note(directive("d2", seconds=7, action="cooldown"))
    assert loop.verdict("s1", at(8), UNLIKE).action == "deny"


def test_it_ends_with_the_directive(loop: Verdicts) -> None:
    """What has expired denies nothing."""
    for n in range(1, 18):
        loop.note(call(TEST, 50 * n))
    assert loop.verdict("s1", at(901), key(TEST)).action == "deny"
    loop.note(call(TEST, 901.5))
    assert loop.verdict("s1", at(902), key(TEST)) == GO_ON


@pytest.mark.parametrize("calls", [[], [call("ls", 1)], [call(TEST, 1, session="s2")], [call(TEST, 0), call("ls", 1)]])
def test_what_is_not_known_to_have_been_the_latest_call_is_not_denied(calls: list[Any]) -> None:
    """After a start, or where the session went on before the directive came, something else may have been done."""
    made = Verdicts()
    for each in [*calls, directive(seconds=2, repeats=(key(TEST).digest,))]:
        made.note(each)
    made.handed_out(made.verdict("s1", at(3)))
    assert [made.verdict("s1", at(4 + n), key(TEST)) for n in range(3)] == [GO_ON] * 3


def test_the_latest_of_several_repeated_calls_is_denied_and_no_other() -> None:
    """Where a directive names more than one, another than the latest is something else that is done."""
    made = Verdicts()
    made.note(call(TEST, 1))
    made.note(directive(seconds=2, repeats=(key(TEST).digest, key("make").digest)))
    made.handed_out(made.verdict("s1", at(3)))
    assert made.verdict("s1", at(4), key("make")) == GO_ON
    assert made.verdict("s1", at(5), key(TEST)) == GO_ON


def test_an_old_call_that_is_told_late_is_not_the_latest() -> None:
    """What was kept while the gateway was away says nothing of what is done now."""
    made = Verdicts()
    for each in (call("make", 5), call(TEST, 1), directive(seconds=6, repeats=(key(TEST).digest,))):
        made.note(each)
    made.handed_out(made.verdict("s1", at(7)))
    assert made.verdict("s1", at(8), key(TEST)) == GO_ON


def test_a_directive_that_comes_twice_does_not_deny_anew(loop: Verdicts) -> None:
    """A repeated delivery arms nothing."""
    for n in range(MOST_DENIALS):
        loop.verdict("s1", at(4 + n), key(TEST))
    loop.note(directive(seconds=2, repeats=(key(TEST).digest,)))
    assert loop.verdict("s1", at(9), key(TEST)) == GO_ON


def test_a_stop_goes_before(loop: Verdicts) -> None:
    """A session that is to be stopped is told so, not that it should call something else."""
    loop.note(stop(seconds=4))
    assert loop.verdict("s1", at(5), key(TEST)).action == "stop"


@pytest.mark.parametrize("level", ["digests", "excerpts", "full"])
def test_alerts_name_the_call_as_it_is_named_before_it_is_made(level: Any) -> None:
    """What the detectors say repeats is what the call at hand is named, whatever of it may be sent."""
    state, limits = SessionState(), Limits()
    calls = [reduce(call(TEST + " " + "x" * 200, n), level) for n in range(3)]
    (alert,) = [each for event in calls for each in observe(state, event, limits)]
    asked = structs.replace(calls[0], event_id="asked", result=UNSET, result_digest=None, phase="start")
    named = call_key(asked)
    assert named is not None
    assert alert.evidence.repeats == (named.digest,)


def test_a_call_without_arguments_equals_no_other() -> None:
    """What is not known cannot be repeated."""
    assert call_key(structs.replace(call("ls"), arguments=UNSET)) is None
    assert call_key(structs.replace(call("ls"), arguments=None)) is None
