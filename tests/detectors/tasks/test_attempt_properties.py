"""What holds of any attempts, whoever makes them: the state is all there is, repeats and names make no difference."""

import random
from itertools import pairwise
from time import process_time
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from detectors import TaskState, decode_task, encode_task
from schemas.common import Agent, Task
from schemas.testing import at, fix_attempt
from tests.detectors.tasks.attempt_kit import KEY_ERROR, OUTAGE, TYPE_ERROR, UNLIKE, swap
from tests.detectors.tasks.conftest import Player

PATHS = ("shop/cart.py", "shop/tax.py", "lib/store.py")
WORDS = (None, *UNLIKE[:3], f"{UNLIKE[0]} again", "guard empty basket totals", "guard full basket totals")
ERRORS = (None, KEY_ERROR, TYPE_ERROR, OUTAGE, "oops", "3 failed", "2 failed", "No module named 'requests'")
EDITS = (None, ("a", "b"), ("b", "a"), ("a", "c"), ("c", "d"))

_moves = st.fixed_dictionaries(
    {
        "session": st.sampled_from(("s1", "s1", "s2")),
        "approach": st.sampled_from(WORDS),
        "files": st.lists(st.sampled_from(PATHS), max_size=2, unique=True).map(tuple),
        "edit": st.sampled_from(EDITS),
        "failing": st.lists(st.sampled_from(("alpha", "beta", "gamma")), max_size=2, unique=True).map(tuple),
        "error_message": st.sampled_from(ERRORS),
        "outcome": st.sampled_from(("failed",) * 12 + ("partial", "skipped", "success")),
        "state_digest": st.sampled_from((None, None, None, "x", "y")),
    }
)
_rounds = st.tuples(st.lists(_moves, min_size=1, max_size=3), st.integers(1, 5))
histories = st.lists(_rounds, min_size=1, max_size=4).map(
    lambda rounds: [move for moves, times in rounds for _ in range(times) for move in moves][:24]
)
"""What is tried at one task in two sessions: rounds of a few attempts, so that rules find something."""


def told(history, named=dict, order=tuple):
    """Return the events of a history, with files renamed and lists of names in another order."""
    names = {path: path for path in PATHS} | named()
    events = []
    for n, move in enumerate(history):
        fields: dict[str, Any] = dict(move)
        session, edit = fields.pop("session"), fields.pop("edit")
        path = names[(fields["files"] or PATHS)[0]]
        fields["files"] = order(names[each] for each in fields["files"])
        fields["failing"] = order(f"test_{each}" for each in fields["failing"])
        diff = swap(edit[0], edit[1], path) if edit else None
        events.append(fix_attempt(n, session_id=session, task=Task(id="T1"), diff=diff, **fields))
    return events


def gist(alerts):
    """Return what alerts say beside names."""
    return [(each.level, each.detector, each.seq, each.count, each.suggested_strategy) for each in alerts]


def loud(alerts):
    """Return the gist of alerts that go on to people."""
    return [said for said in gist(alerts) if said[0] in {"warn", "terminate"}]


@settings(max_examples=30, deadline=None)
@given(histories)
def test_the_encoded_state_is_all_that_is_remembered(history):
    """It may be written and read again between any two events, and the alerts stay the same."""
    kept, live = Player(), Player()
    for event in told(history):
        assert kept.play([event]) == live.play([event])
        kept.tasks["T1"] = decode_task(encode_task(kept.tasks["T1"]), TaskState)
        assert encode_task(kept.tasks["T1"]) == encode_task(live.tasks["T1"])


@settings(max_examples=30, deadline=None)
@given(histories, st.data())
def test_an_event_that_comes_again_changes_nothing(history, data):
    """Each as often as it likes, at once or later."""
    once, often = Player(), Player()
    events = told(history)
    for n, event in enumerate(events):
        assert often.play([event]) == once.play([event])
        again = data.draw(st.lists(st.integers(0, n), max_size=2))
        assert often.play([events[each] for each in again]) == []
    assert encode_task(often.tasks["T1"]) == encode_task(once.tasks["T1"])


@settings(max_examples=30, deadline=None, derandomize=True)
@given(histories)
def test_what_files_are_called_and_in_which_order_names_come_makes_no_difference(history):
    """Renamed throughout, or the other way round: the same is said of the same attempts.

    Loops are named by digests. Which of two that have half their attempts in common a third belongs to may hang on
    these, and with it when one of them is said to be broken; hence not that, and the same histories each time.
    """
    plain = loud(Player().play(told(history)))
    renamed = told(history, lambda: {path: f"web/page_{n}.ts" for n, path in enumerate(PATHS)})
    assert loud(Player().play(renamed)) == plain
    assert loud(Player().play(told(history, order=lambda names: tuple(names)[::-1]))) == plain


@settings(max_examples=30, deadline=None)
@given(histories)
def test_a_loop_is_ended_only_after_its_warning_and_again_at_double_the_count(history):
    """And what an alert says is bounded and complete."""
    warned: set[str] = set()
    ended: dict[str, float] = {}
    for alert in Player().play(told(history)):
        if alert.level == "terminate":
            assert alert.loop_id in warned
            assert alert.count >= 2 * ended.get(alert.loop_id, 0)
            ended[alert.loop_id] = alert.count
        elif alert.level == "warn":
            warned.add(alert.loop_id)
            ended.pop(alert.loop_id, None)  # it had been gone, and began anew
        else:
            warned.discard(alert.loop_id)
            ended.pop(alert.loop_id, None)
        assert alert.reasoning
        if alert.level != "recovered":
            assert alert.count >= alert.limits[0].value
            assert 1 <= len(alert.evidence.attempt_ids) <= 12
            assert alert.evidence.attempt_ids[-1] == f"attempt-{alert.evidence.event_ids[-1].split('-')[-1]}"


@settings(max_examples=12, deadline=None)
@given(histories, histories)
def test_tasks_that_are_told_in_turn_do_not_see_each_other(one, other):
    """One session may work at two tasks, and its events alternate."""
    first = [msgspec.structs.replace(event, session_id="s1") for event in told(one)]
    second = [
        msgspec.structs.replace(event, session_id="s2", event_id=f"other {event.event_id}", task=Task(id="T2"))
        for event in told(other)
    ]
    apart = gist(Player().play(first)), gist(Player().play(second))
    alerts = Player().play(sorted([*first, *second], key=lambda event: event.occurred_at))
    assert tuple(gist(alert for alert in alerts if alert.task_id == task) for task in ("T1", "T2")) == apart


WIDE = "\U0001d518"  # four bytes in UTF-8


def hostile(n, rng, size):
    """Return an attempt that says as much as it may in every field, differently each time."""
    own = f"{WIDE * 30}{n}"
    lines = "".join(
        f"@@ -{1 + 9 * k} +{1 + 9 * k} @@\n-old {n % 3} {k}\n+new {n % 3} {k} {WIDE}\n" for k in range(size)
    )
    return fix_attempt(
        n,
        " ".join(f"{WIDE}{rng.randrange(10**6)}" for _ in range(4 * size)),
        attempt_id=own * 6,
        event_id=f"{n} {WIDE * 200}",
        occurred_at=at(60 * n),
        task=Task(id=WIDE * 256, type=WIDE * 256, repo=WIDE * 256, ref=WIDE * 256, paths=(WIDE * 1_000,) * 100),
        agent=Agent(id=WIDE * 256, role=WIDE * 256, name=WIDE * 256, model=WIDE * 256, config=WIDE * 256),
        files=tuple(f"{WIDE * 50}{rng.randrange(10**6)}/{k}.py" for k in range(size)),
        failing=tuple(f"{WIDE * 50} {chr(0x4E00 + k % 20_000)}{k % (n % 5 + 2)}" for k in range(size)),
        error_message=f"{WIDE * 50}Error: {own}\n" * (size // 10),
        diff="".join(f"--- a/{WIDE}{f}.py\n+++ b/{WIDE}{f}.py\n{lines[: len(lines) // 20]}" for f in range(20)),
        state_digest=WIDE * 256,
    )


def test_whatever_is_sent_the_state_stays_small():
    """Ten thousand files, checks and hunks in wide characters, over more attempts than are remembered."""
    rng, player = random.Random(7), Player()  # noqa: S311 - the same each time
    sizes = []
    for n in range(14):
        player.play([hostile(n, rng, 10_000 if n == 13 else 200)])
        sizes.append(len(encode_task(player.tasks[WIDE * 256])))
    assert max(sizes) < 48_000
    assert sizes[-1] - sizes[-3] < 4_000
    typical = Player()
    fields: dict[str, Any] = {"files": PATHS, "failing": ("test_total", "test_tax"), "error_message": KEY_ERROR}
    typical.play(fix_attempt(n, UNLIKE[n], diff=swap(f"a{n}", "b", more=PATHS), **fields) for n in range(14))
    assert len(encode_task(typical.tasks["s1"])) < 6_000


def test_each_attempt_takes_its_time_whatever_came_before():
    """Reading grows with what is sent, and judging not at all: the thirtieth costs what the fifteenth did."""
    rng, player = random.Random(8), Player()  # noqa: S311 - likewise
    took = []
    for n in range(32):
        event = hostile(n, rng, 100)
        began = process_time()
        player.play([event])
        took.append(process_time() - began)
    early, late = (min(took[first : first + 10]) for first in (12, 22))
    assert late < 5 * early


def test_reading_takes_time_linear_in_the_size_of_an_attempt():
    """Four times as much takes about four times as long, judged against attempts of the same size."""
    best = []
    for size in (400, 1_600, 6_400):
        rng, player = random.Random(9), Player()  # noqa: S311 - likewise
        took = []
        for n in range(3):
            event = hostile(n, rng, size)
            began = process_time()
            player.play([event])
            took.append(process_time() - began)
        best.append(min(took))
    assert all(large < 12 * small for small, large in pairwise(best))
