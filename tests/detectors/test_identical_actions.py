"""Identical actions where results tell little, of interfaces above all, and what may lie between equal calls."""

import pytest
from msgspec import UNSET

from schemas.testing import tool_call
from tests.detectors.traces import (
    PAGE_TEXT,
    click,
    edit,
    found,
    in_turn,
    numbered,
    page,
    reached,
    shell,
    think,
    view,
    work,
)

CART = "https://shop.example/cart"


def on_cart(n, text):
    """A click that leads to the cart, whatever else the page says."""
    return click(n, "Pay now", page(CART, text, "Cart"))


def desktop(n, **action):
    """An action of an agent that works with a screen and is answered by pictures, which are not recorded."""
    return tool_call(n, "computer", action, UNSET, status=None)


@pytest.mark.parametrize(("count", "seqs"), [(7, []), (8, [7]), (15, [7]), (16, [7, 15])])
def test_unrecorded_interactions_warn_at_eight(play, count, seqs):
    """Of interfaces only a picture is answered: the same click eight times over is a loop all the same."""
    alerts = play([desktop(n, action="left_click", coordinate=[311, 92]) for n in range(count)])
    assert reached(alerts, "identical") == [("warn", "identical.unrecorded_interaction_warn", seq) for seq in seqs]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("computer", {"action": "scroll", "coordinate": [500, 500], "scroll_direction": "down"}),
        ("computer", {"action": "key", "text": "Page_Down"}),
        ("browser_press_key", {"key": "Tab"}),
        ("browser_click", {"element": "Next page"}),
        ("browser_click", {"element": "Load more"}),
        ("swipe", {"direction": "up"}),
        ("wait", {"seconds": 5}),
        ("wait_for_job", {"job": 7}),
        ("send_message", {"text": "please confirm"}),
    ],
)
def test_what_is_there_to_be_repeated_may_be_so_up_to_twelve_times(play, tool, arguments):
    """Scrolling, paging, keys, waiting and speaking move on by being repeated, if nobody recorded where they led."""
    events = [tool_call(n, tool, arguments, UNSET, status=None) for n in range(12)]
    assert play(events[:11]) == []
    assert reached(play(events), "") == [("warn", "identical.unrecorded_look_warn", 11)]


@pytest.mark.parametrize(("times", "levels"), [(5, []), (6, ["warn"]), (9, ["warn"]), (10, ["warn", "terminate"])])
def test_scrolling_that_shows_the_same_has_twice_the_limits(play, times, levels):
    """At the end of a page scrolling shows what it showed: twice as often as other calls before it is a loop.

    What a tool shows of interfaces is weak evidence, so the termination waits for somebody else to see it.
    """
    down = [tool_call(n, "scroll_down", {"pixels": 600}, f"the last row {PAGE_TEXT}") for n in range(times)]
    alerts = [alert for alert in play(down) if alert.detector == "identical"]
    assert [alert.level for alert in alerts][:1] == levels[:1]
    assert {alert.limits[0].value for alert in alerts} <= {6, 10}


def test_other_actions_of_a_screen_are_no_streak(play):
    """Clicking here and there and typing is what working with a screen looks like."""
    steps = [{"action": "left_click", "coordinate": [n, 40]} for n in range(9)] + [{"action": "type", "text": "Ada"}]
    assert play([desktop(n, **steps[n % 10]) for n in range(49)]) == []


@pytest.mark.parametrize(("count", "seqs"), [(59, []), (60, [59])])
def test_unrecorded_waiting_of_a_shell_has_three_times_the_limit(play, count, seqs):
    """Who waits with a command and is not answered may wait longer."""
    alerts = play([shell(n, "sleep 5", UNSET, status=None) for n in range(count)])
    assert found(alerts) == [("warn", "identical", seq) for seq in seqs]


@pytest.mark.parametrize(("count", "seqs"), [(49, []), (50, [49]), (99, [49]), (100, [49, 99])])
def test_results_that_move_each_time_warn_at_fifty(play, count, seqs):
    """Honest polling with a tool that nobody declared may take long, not without end, and never terminates."""
    events = [tool_call(n, "fetch_quote", {"symbol": "TRC"}, f"{100 + n} points") for n in range(count)]
    assert reached(play(events), "identical") == [("warn", "identical.moving_warn", seq) for seq in seqs]


@pytest.mark.parametrize(("count", "seqs"), [(149, []), (150, [149])])
def test_declared_pollers_may_see_three_times_as_many_answers_move(play, count, seqs):
    """A tool that waits for something is there to be asked again."""
    events = [tool_call(n, "wait_for_job", {"job": "b-17"}, f"{n} of 900 rows") for n in range(count)]
    assert found(play(events)) == [("warn", "identical", seq) for seq in seqs]


def test_another_call_starts_the_moving_ones_over(play):
    """In a row means in a row."""
    quotes = [tool_call(n, "fetch_quote", {"symbol": "TRC"}, f"{100 + n} points") for n in range(98)]
    assert found(play([*quotes[:49], shell(200, "git status"), *quotes[49:]]), "identical") == []


def test_an_action_nobody_saw_the_result_of_starts_the_moving_ones_over(play):
    """Going to the next page and reading it is two calls in turn, not one call in a row, though a click says little."""
    clicks = [click(n, "Next") for n in range(70)]
    reads = [tool_call(n, "get_page_text", {"tab": 1}, f"catalogue {n}: {PAGE_TEXT}") for n in range(70)]
    assert found(play(in_turn(clicks, reads)), "identical") == []


def test_clicks_whose_page_moves_are_no_loop(play):
    """One button that brings new things each time is used as it is meant, however often."""
    events = [click(n, "Load orders", f"order {n} {PAGE_TEXT}") for n in range(120)]
    assert found(play(events), "identical") == []


@pytest.mark.parametrize(("count", "seqs"), [(5, []), (6, [5]), (11, [5]), (12, [5, 11]), (24, [5, 11, 23])])
def test_the_same_action_to_the_same_page_warns_at_six(play, count, seqs):
    """The whole text of a page is never the same twice; its address and title are. Only warnings rest on that."""
    alerts = play([on_cart(n, f"{n} people look at this") for n in range(count)])
    assert reached(alerts, "") == [("warn", "identical.page_warn", seq) for seq in seqs]


def test_another_page_or_another_place_on_it_is_progress(play):
    """Paging through results with one button, and scrolling down a page, lead on."""
    paging = [click(n, "Next", page(f"https://shop.example/list?page={n}")) for n in range(40)]
    assert play(paging) == []
    scrolling = [
        tool_call(n, "scroll_page", {"direction": "down"}, page(CART, f"row {n}\nScroll position: {600 * n} of 90000"))
        for n in range(40)
    ]
    assert play(scrolling) == []


def test_scrolling_on_the_spot_is_the_same_page(play):
    """At the end of a page scrolling changes nothing but the clock."""
    events = [
        tool_call(n, "scroll_page", {"direction": "down"}, page(CART, f"clock {n}\nScroll position: 900 of 900"))
        for n in range(6)
    ]
    assert reached(play(events), "") == [("warn", "identical.page_warn", 5)]


def test_the_same_page_is_counted_though_some_of_its_texts_are_equal(play):
    """The count an alert gives is that of the actions in a row, whichever of them had equal texts as well."""
    alerts = play([on_cart(n, f"updated {n // 2} times") for n in range(12)])
    assert [(alert.seq, alert.count) for alert in alerts] == [(5, 6), (11, 12)]


def test_an_equal_page_alone_terminates_nobody(play):
    """Revisiting what one has just repeated is the same evidence, not a second kind: a click may be waited for."""
    alerts = play([on_cart(n, "one item") for n in range(20)])
    assert {alert.level for alert in alerts} == {"warn"}


LOOK = shell(0, "git diff --stat", "2 files")
"""A look at no file in particular, so that the majority alone judges it."""


def fruitless(n):
    """A call that never comes again and brings nothing."""
    return shell(n, f"./tidy {n}", "")


@pytest.mark.parametrize(
    ("pattern", "levels"),
    [
        ("L.L.L.L....", []),
        ("L.L.L.L....L", ["warn"]),
        ("L.L.L.L.....L", []),
        ("L..L..L..L..L", []),
        ("LL.LL.LL", ["warn"]),
        ("LL.LL.LL.L", ["warn", "terminate"]),
        ("LL.LL..L.LL", ["warn", "terminate"]),
        ("LL.LL...L.LL", ["warn", "terminate"]),
        ("LL.LL....L.LL", ["warn"]),
    ],
)
def test_the_majority_counts_among_the_last_twelve(play, pattern, levels):
    """Five equal calls of twelve warn, seven terminate, with any calls between; one further apart does not count."""
    alerts = play(numbered(LOOK if place == "L" else fruitless(n) for n, place in enumerate(pattern)))
    assert [alert.level for alert in alerts if alert.detector == "identical"] == levels


@pytest.mark.parametrize(("window", "count"), [(9, 1), (8, 0)])
def test_the_window_of_the_majority_is_a_limit(play, window, count):
    """Five equal calls among nine are none among eight."""
    events = in_turn([LOOK] * 5, [fruitless(n) for n in range(5)])[:9]
    alerts = play(events, {"identical.window": window})
    assert reached(alerts, "") == [("warn", "identical.window_warn", 8)] * count


def test_waiting_in_between_makes_looks_polling(play):
    """Sleep, look, sleep, look is waiting, whatever the look is called; without the sleep it is a loop."""
    sleeps = [shell(n, f"sleep {n + 1}", "") for n in range(8)]
    assert found(play(in_turn(sleeps, [LOOK] * 8)), "identical") == []
    assert found(play(in_turn([fruitless(n) for n in range(5)], [LOOK] * 5))) == [("warn", "identical", 9)]


def test_an_accepted_edit_settles_looks_before_it(play):
    """Looking again after a change is what one should do: four looks, an edit, four looks are no majority of eight."""
    turns = in_turn([LOOK] * 8, [fruitless(n) for n in range(8)])
    assert found(play(turns), "identical")[0] == ("warn", "identical", 8)
    assert play(numbered([*turns[:7], edit(101, "a.py", "x"), *turns[8:15]])) == []


NEWS = [view(n, f"{n}.py", f"text {n}") for n in range(4)]


@pytest.mark.parametrize(
    ("pattern", "between", "count"),
    [
        ("L.L.L.L.L", NEWS, 0),
        ("L.L.L.LL", NEWS, 0),
        ("LL.LL.L", NEWS, 1),
        ("L.L.L.L.L", [*NEWS[:3], NEWS[0]], 1),
        ("L.L.L.L.L", [*NEWS[:3], shell(0, "grep -r left .", "")], 1),
        ("L.L.L.L.L", [*NEWS[:3], view(9, "9.py", "there is no such file")], 1),
        ("L.L.L.L.L", [*NEWS[:3], view(9, "9.py", "0x5", error="EIO")], 1),
        ("L.L.L.L.L", [*NEWS[:3], click(9, "door")], 1),
    ],
)
def test_looking_round_from_one_place_is_no_majority(play, pattern, between, count):
    """Coming back to one place between three or more looks that all bring something new is how one explores."""
    rest = iter(between)
    alerts = play(numbered(LOOK if place == "L" else next(rest) for place in pattern))
    assert [alert.level for alert in alerts if alert.detector == "identical"] == ["warn"] * count


def test_equal_changes_with_something_between_are_a_majority(play):
    """An accepted edit settles the looks before it, not the same edit."""
    stage = shell(0, "git add -A", "")
    assert found(play(in_turn([stage] * 5, [fruitless(n) for n in range(5)])), "identical") == [
        ("warn", "identical", 8)
    ]


@pytest.mark.parametrize("step", ["git add -A", "npm run format --silent", "git commit -q -am wip"])
def test_the_same_step_after_each_of_many_changes_is_healthy(play, step):
    """Staging, formatting or committing what was just changed, all of it with commands that say nothing."""
    changes = [shell(n, f"sed -i 's/a{n}/b{n}/' part.py", "") for n in range(12)]
    assert play(in_turn(changes, [shell(n, step, "") for n in range(12)])) == []


def test_a_refused_edit_settles_nothing(play):
    """Only what was accepted can have changed the answer."""
    refused = [edit(n, f"{n}.py", f"{n}", "no such text", error=f"E{n}") for n in range(5)]
    assert found(play(in_turn([LOOK] * 5, refused)), "identical") == [("warn", "identical", 8)]


def test_calls_without_arguments_end_a_row(play):
    """Nobody knows what was done in between, be the answers equal or ever new."""
    quotes = [tool_call(n, "fetch_quote", {"symbol": "TRC"}, f"{100 + n} points") for n in range(98)]
    assert found(play([*quotes[:49], tool_call(99, arguments=None), *quotes[49:]]), "identical") == []
    blank = tool_call(50, arguments=None)
    assert (
        play([shell(0, "make demo"), shell(1, "make demo"), blank, shell(2, "make demo"), shell(3, "make demo")]) == []
    )


def test_the_limit_for_batches_counts_one_batch_at_a_time(play):
    """Eleven in one response and eleven in the next are two careless responses."""
    events = [view(n, "a.py", batch_id=f"b{n // 11}") for n in range(22)]
    assert found(play(events), "identical") == []
    assert reached(play([view(n, "a.py", batch_id="b") for n in range(12)]), "") == [
        ("warn", "identical.batch_warn", 11)
    ]


def test_different_calls_of_one_batch_are_no_loop(play):
    """Reading a dozen files in parallel is good work."""
    assert play([view(n, f"{n}.py", f"text {n}", batch_id="b1") for n in range(20)]) == []


@pytest.mark.parametrize(
    "said",
    [
        tool_call(0, "todo_read", {}, "1. [x] read 2. [ ] write the tests"),
        tool_call(0, "send_message", {"text": "still at it"}, "sent"),
        tool_call(0, "update_plan", {"plan": ["read", "write"]}, "Plan updated"),
        think(0, ""),
    ],
)
@pytest.mark.parametrize("every", [1, 4])
def test_the_same_word_between_work_is_no_loop(play, said, every):
    """Looking at the list of things to do, or reporting, now and then or after each step, is no going round."""
    events = [step for n in range(40) for step in (*[said] * (n % every == 0), work(n))]
    assert play(numbered(events)) == []
    assert found(play(numbered([work(0), *[said] * 5]))) == [("warn", "identical", 3), ("terminate", "identical", 5)]


def test_a_thought_between_equal_calls_does_not_hide_them(play):
    """Talk neither adds nor clears: with a new thought before each, the third equal call is still the third."""
    thoughts = [think(n, f"let me try that again, {n}") for n in range(5)]
    runs = [shell(n, "./convert.sh in.csv", "0 rows") for n in range(5)]
    assert found(play(in_turn(thoughts, runs)), "identical") == [
        ("warn", "identical", 5),
        ("terminate", "identical", 9),
    ]
