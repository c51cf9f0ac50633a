"""What one session is told: what stops it and for how long, what it is told once, and what never touches it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.outputs import Directive, Termination
from streams.verdicts import GO_ON, Verdicts
from streams.verdicts.asked import HOLDS
from streams.verdicts.table import MAX_ASKED
from tests.streams.verdicts.kit import at, call, directive, ended, key, said, spoke, stop

BACK = ("resume", "reset", "clear", "forget")


def table(*records: Any, sessions: int = 100) -> Verdicts:
    """Make a table that has these records."""
    made = Verdicts(sessions=sessions)
    for record in records:
        made.note(record)
    return made


def test_nobody_is_asked_anything_without_a_record() -> None:
    """A session that nothing is known of goes on."""
    assert table().verdict("s1", at(0)) == GO_ON
    assert table().verdict("s1", at(0), key("ls")) == GO_ON


def test_a_terminated_session_stays_stopped_as_long_as_words_about_it_are_kept() -> None:
    """What stops a session holds, also for calls, whatever was obeyed; not beyond the time that `resume` is kept."""
    made = table(stop(), said("obeyed", answers="x1"), said("ended", answers="x1"), said("refused", answers="x1"))
    verdict = made.verdict("s1", at(1), key("ls"))
    assert (verdict.action, verdict.answers, verdict.expires_at) == ("stop", "x1", None)
    assert "read(a.py) was called 5 times" in verdict.text
    assert "traction sessions resume s1" in verdict.text
    assert made.verdict("s1", at(HOLDS.total_seconds() - 1)).action == "stop"
    assert made.verdict("s1", at(HOLDS.total_seconds())) == GO_ON


def test_a_termination_that_expires_is_over_then() -> None:
    """The termination's own expiry holds where it is earlier."""
    made = table(stop(expires_at=at(60)))
    assert [made.verdict("s1", at(seconds)).action for seconds in (59, 60)] == ["stop", "go_on"]


@pytest.mark.parametrize("action", BACK)
def test_a_word_takes_back_what_was_asked_before_it_only(action: str) -> None:
    """Resume, reset, clear and forget let a session go on; what is asked later holds."""
    made = table(stop(seconds=10), said(action, 9))
    assert made.verdict("s1", at(20)).action == "stop"
    made.note(said(action, 10))
    assert made.verdict("s1", at(20)) == GO_ON
    made.note(stop("x2", 30))
    assert made.verdict("s1", at(40)).answers == "x2"


def test_a_clear_is_for_all_sessions_of_the_task() -> None:
    """A task that is cleared may be tried again by each of its sessions; resume is for one."""
    others = (stop("x2", session_id="s2"), stop("x3", session_id="s3", task_id="t2"))
    made = table(stop(), *others, said("resume"))
    assert [made.verdict(name, at(5)).action for name in ("s1", "s2", "s3")] == ["go_on", "stop", "stop"]
    made.note(said("clear"))
    assert [made.verdict(name, at(5)).action for name in ("s1", "s2", "s3")] == ["go_on", "go_on", "stop"]


def test_a_false_alarm_takes_back_what_came_of_its_loop() -> None:
    """Guidance and termination go that were for the alert, or before it was marked for its loop; others stay."""
    records = (directive(alert_id="a1"), stop("x1", 5, alert_id="a2"), directive("d2", 6, loop_id="l2", alert_id="a3"))
    made = table(*records, said("false_alarm", 10, answers="a1"))
    assert made.verdict("s1", at(20)).answers == "d2"
    made.note(stop("x2", 30, alert_id="a4"))
    assert made.verdict("s1", at(40)).answers == "x2"
    made.note(said("false_alarm", 50, answers="x2"))
    assert made.verdict("s1", at(60)).answers == "d2"


def test_a_persons_termination_has_no_loop_that_another_alarm_could_take_back() -> None:
    """Without a loop nothing is taken for the same."""
    made = table(directive(alert_id="a1", loop_id=""), stop("x1", 5, alert_id="a2", loop_id=""))
    made.note(said("false_alarm", 10, answers="a1"))
    assert made.verdict("s1", at(20)).action == "stop"


@pytest.mark.parametrize("action", ["inject_guidance", "rotate_strategy", "force_implementation", "abandon"])
def test_guidance_is_given_once(action: Any) -> None:
    """What was handed out is not given again, here or where the answer is read; nor what is older than it."""
    made = table(directive("d0", -1), directive(action=action))
    verdict = made.verdict("s1", at(1))
    assert (verdict.action, verdict.text, verdict.answers, verdict.expires_at) == ("guide", "Stop.", "d1", at(900))
    assert made.verdict("s1", at(2), key("ls")) == verdict, "it was not handed out so far"
    assert made.handed_out(verdict)
    assert not made.handed_out(verdict)
    assert made.verdict("s1", at(3)) == GO_ON
    made.note(directive("d2", 4))
    assert made.verdict("s1", at(5)).answers == "d2"
    made.note(said("obeyed", 6, answers="d2"))
    assert made.verdict("s1", at(7)) == GO_ON


def test_guidance_expires() -> None:
    """After its time it is too late for a directive."""
    made = table(directive(lasting=60))
    assert [made.verdict("s1", at(seconds)).action for seconds in (59, 60)] == ["guide", "go_on"]


def test_a_cooldown_denies_every_call_and_is_told_once() -> None:
    """Calls are denied until it ends; whoever asks without a call is given its text, then that it lasts."""
    made = table(directive(action="cooldown", lasting=300, repeats=(key("ls").digest,)))
    denied = made.verdict("s1", at(1), key("anything"))
    assert (denied.action, denied.calls, denied.expires_at) == ("deny", (), at(300))
    guide = made.verdict("s1", at(1))
    assert guide.action == "guide"
    assert made.handed_out(guide)
    assert made.verdict("s1", at(299)).action == "deny"
    assert made.verdict("s1", at(299), key("anything")).action == "deny"
    assert made.verdict("s1", at(300), key("anything")) == GO_ON
    refused = table(directive(action="cooldown"), said("refused", answers="d1"))
    assert refused.verdict("s1", at(1), key("anything")) == GO_ON


def test_a_person_is_asked_until_one_speaks() -> None:
    """A session that waits for a person waits, whatever was answered, until a person said something after it."""
    made = table(directive(action="escalate_human"), said("obeyed", answers="d1"), spoke(-1))
    assert made.verdict("s1", at(1), key("ls")).action == "ask"
    made.note(spoke(0.5))
    assert made.verdict("s1", at(1)) == GO_ON


def test_what_is_graver_comes_first() -> None:
    """A stop goes before all else, then a person, then a denial."""
    records = (directive("d1"), directive("d2", action="cooldown"), directive("d3", action="escalate_human"), stop())
    seen = [table(*records[:count]).verdict("s1", at(1), key("ls")).action for count in range(len(records) + 1)]
    assert seen == ["go_on", "guide", "deny", "ask", "stop"]


RECORDS = st.lists(
    st.one_of(
        st.builds(stop, st.sampled_from(["x1", "x2", "x3"]), st.integers(0, 9), session_id=st.sampled_from("abc")),
        st.builds(
            directive,
            st.sampled_from(["d1", "d2", "d3"]),
            st.integers(0, 9),
            st.sampled_from([5, 60]),
            action=st.sampled_from(["inject_guidance", "cooldown", "escalate_human"]),
            session_id=st.sampled_from("abc"),
            alert_id=st.sampled_from(["a1", "a2"]),
        ),
        st.builds(
            said,
            st.sampled_from([*BACK, "obeyed", "refused", "ended", "false_alarm"]),
            st.integers(0, 9),
            answers=st.sampled_from(["x1", "x2", "d1", "d2", "d3", "a1"]),
            session=st.sampled_from("abc"),
        ),
    ),
    max_size=12,
).map(lambda records: [each for _, each in {_name(each): each for each in records}.items()])


def _name(record: Any) -> Any:
    if isinstance(record, Directive):
        return record.directive_id
    return record.termination_id if isinstance(record, Termination) else record.event_id


@given(RECORDS, st.randoms(use_true_random=False), st.integers(0, 70))
def test_the_order_of_records_does_not_matter(records: list[Any], random: Any, now: int) -> None:
    """Topics are read in any order: each session is told the same in the end, also when records come twice."""
    mixed = [*records, *random.sample(records, len(records) // 2)]
    random.shuffle(mixed)
    for session in "abc":
        assert table(*records).verdict(session, at(now)) == table(*mixed).verdict(session, at(now))


@given(RECORDS, st.integers(0, 70))
def test_a_session_is_told_what_is_its_own(records: list[Any], now: int) -> None:
    """No record of another session but a word about their common task, or an alert of both, changes anything."""
    shared = ("clear", "false_alarm", "obeyed", "refused", "ended")
    own = [each for each in records if each.session_id == "a" or getattr(each, "action", "") in shared]
    verdict = table(*records).verdict("a", at(now))
    assert verdict == table(*own).verdict("a", at(now))
    assert verdict.session_id in {"a", ""}


@given(RECORDS, st.integers(10, 70))
def test_a_stopped_session_stays_stopped_until_it_is_taken_back(records: list[Any], now: int) -> None:
    """However much is asked and answered besides, only a later resume, reset, clear or false alarm ends a stop."""
    ending = (*BACK, "false_alarm")
    harmless = [each for each in records if getattr(each, "action", "") not in ending]
    made = table(stop("held", 5, session_id="a"), *harmless)
    for _ in range(3):
        verdict = made.verdict("a", at(now), key("ls"))
        made.handed_out(verdict)
        assert verdict.action == "stop"


def test_a_stop_is_answered_until_somebody_has() -> None:
    """It is due when the stop was handed out, with what is older, and not after any answer but that it is refused."""
    made = table(stop("x0", 0), stop("x1", 1))
    assert made.unanswered("s1", at(2)) == []
    assert made.handed_out(made.verdict("s1", at(2)))
    assert [(each.id, action) for each, action in made.unanswered("s1", at(2))] == [("x1", "obeyed"), ("x0", "obeyed")]
    made.note(said("refused", 3, answers="x1"))
    assert made.handed_out(made.verdict("s1", at(4))), "it was stopped after all"
    made.note(said("obeyed", 5, answers="x1"))
    assert not made.handed_out(made.verdict("s1", at(6)))
    assert [each.id for each, _ in made.unanswered("s1", at(6))] == ["x0"]
    made.note(said("resume", 7))
    assert made.unanswered("s1", at(8)) == []


@pytest.mark.parametrize("after", [call("ls", 2), spoke(2)], ids=["a call", "a user"])
def test_a_session_that_goes_on_after_its_end_has_not_ended(after: Any) -> None:
    """The end of a session answers for it: what was called before and is told late changes nothing, later calls do."""
    made = table(ended(1), call("ls", 0.5), stop("x1", 1))
    assert [action for _, action in made.unanswered("s1", at(2))] == ["ended"]
    made.note(after)
    assert made.unanswered("s1", at(3)) == []


def test_memory_is_bounded() -> None:
    """Of too many sessions those to be stopped stay longest, of too many directives the newest; all else is bounded."""
    made = Verdicts(sessions=16)
    for n in range(8):
        made.note(stop(f"x{n}", n, session_id=f"stopped-{n}"))
    for n in range(200):
        made.note(directive(f"d{n}", 100 + n, session_id=f"s{n}"))
        made.note(said("resume", -n - 1, session=f"s{n}"))
        made.note(said("false_alarm", 1, answers=f"a{n}"))
        made.note(said("clear", -1, session=f"s{n}", task=f"task-{n}"))
        made.note(spoke(n, session=f"s{n}"))
        made.note(call("ls", n, session=f"s{n}"))
        made.note(said("obeyed", n, answers=f"z{n}"))
        made.note(ended(n, session=f"s{n}"))
        made.note(stop(f"y{n}", n, session_id="stopped-0"))
        made.handed_out(made.verdict("stopped-0", at(n)))
    assert len(made) == 16
    names = ("_asked", "_resumed", "_spoken", "_cleared", "_wrong", "_answered", "_stopped", "_over", "_ended")
    held = [*(getattr(made, name) for name in names), made._repeats._latest]
    assert [len(each) for each in held] == [16] * len(held)
    assert {made.verdict(f"stopped-{n}", at(300)).action for n in range(8)} == {"stop"}
    assert made.verdict("s199", at(300)).answers == "d199"


def test_only_the_newest_of_a_session_are_kept() -> None:
    """Directives do not push out terminations, and the newest of each stay."""
    made = table(stop(), *(directive(f"d{n:02}", n) for n in range(2 * MAX_ASKED)))
    assert made.verdict("s1", at(50)).action == "stop"
    assert [made.asked("s1", f"d{n:02}") is None for n in (MAX_ASKED - 1, MAX_ASKED)] == [True, False]


def test_a_table_for_nobody_is_refused() -> None:
    """The number of sessions is checked."""
    with pytest.raises(ValueError, match="sessions"):
        Verdicts(sessions=0)


def test_nothing_is_kept_of_what_was_asked_of_a_forgotten_session() -> None:
    """What was asked after the word stays; a word under a task's id takes what all its sessions were asked."""
    made = table(stop(seconds=10), stop("x2", 10, session_id="s2"))
    made.note(said("forget", 20))
    assert len(made) == 1
    made.note(stop("x3", 30))
    made.note(said("forget", 20))
    assert (len(made), made.verdict("s1", at(40)).answers) == (2, "x3")
    assert made.verdict("s2", at(40)).action == "stop"
    made.note(said("forget", 20, session="t1"))
    assert made.verdict("s2", at(40)) == GO_ON
