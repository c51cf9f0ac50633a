"""The features of the spin score: each against a plain reading of its definition, their bounds, and their words."""

from math import log2

import pytest
from hypothesis import given, settings

from detectors import Limits, SessionState, observe
from detectors.facts import Call
from detectors.features import FEATURES, MAX_CAME, MIN_CALLS, STALE_PERCENT, WINDOW_CALLS, measure, window_of
from detectors.interface import fills_in
from schemas.common import ErrorInfo
from schemas.testing import session_event, tool_call
from tests.detectors.strategies import CLEARING, by_time, sessions, words
from tests.detectors.traces import edit, numbered, shell, think, view

NAMES = [feature.name for feature in FEATURES]


def measured(events):
    """Give for each call of work its window's calls and its features by name."""
    state, rows = SessionState(), []
    for event in events:
        calls = state.calls
        observe(state, event, Limits())
        if state.calls > calls and state.recent and state.recent[-1].seq == calls:
            window = window_of(state, state.recent[-1])
            rows.append((window, dict(zip(NAMES, measure(state, window), strict=True))))
    return rows


def last(*events):
    """Give the features at the last of some calls."""
    return measured(numbered(events))[-1][1]


def answer(call: Call) -> int:
    """What a call says, where it says something that another could say as well."""
    return 0 if call.empty or call.applied or (call.kind == "interact" and fills_in(call.tool)) else call.answer


def outcome(call: Call) -> int | str:
    """The same, and one word for all that brought nothing."""
    return "nothing" if call.empty else answer(call)


def failing(call: Call) -> int:
    """The kind of failure of a call that failed."""
    return (call.failure.kind or call.answer) if call.failure else 0


KEPT = {
    "call": lambda call: call.action,
    "result": answer,
    "pair": lambda call: call.key if call.recorded else 0,
    "failure": failing,
    "patch": lambda call: call.patch,
}


def plainly(history: list[Call]) -> dict[str, float]:
    """Work the features out from all calls of a session, as their definitions say."""
    window, calls = history[-WINDOW_CALLS:], min(len(history), WINDOW_CALLS)
    ring: list[tuple[str, int]] = []
    times: list[dict[str, int]] = []
    for call in history:
        brought = [(name, read(call)) for name, read in KEPT.items()]
        times.append({name: ring.count((name, each)) if each else 0 for name, each in brought})
        ring = [*ring, *((name, each) for name, each in brought if each)][-MAX_CAME:]
    values = {f"again_{name}": sum(each[name] > 0 for each in times[-calls:]) / calls for name in KEPT}
    holds = {
        "failed": lambda call: call.failure is not None,
        "empty": lambda call: call.empty,
        "refused": lambda call: call.failure is not None and (call.failure.unknown_tool or call.failure.denied),
        "waiting": lambda call: call.pending or call.met_outage,
        "unrecorded": lambda call: not call.recorded,
        "looks": lambda call: call.kind in {"read", "search"},
        "edits": lambda call: call.kind == "edit",
        "runs": lambda call: call.kind in {"run", "check"},
        "polls": lambda call: call.kind == "poll",
        "applied": lambda call: call.applied,
        "stale": lambda call: call.news < STALE_PERCENT,
    }
    values |= {name: sum(map(bool, map(test, window))) / calls for name, test in holds.items()}
    values |= {f"before_{name}": log2(1 + min(times[-1][name], 15)) / 4 for name in KEPT}
    reads = {"call": KEPT["call"], "result": outcome, "pair": KEPT["pair"], "failure": failing}
    for name, read in {**reads, "tool": lambda call: call.tool}.items():
        run = 1
        while run < calls and read(window[-1]) and read(window[-1 - run]) == read(window[-1]):
            run += 1
        values[f"run_{name}"] = run / WINDOW_CALLS
    for name in ("call", "result", "pair"):
        seen = [reads[name](call) for call in window]
        values[f"distinct_{name}s"] = len({each or (place, "unknown") for place, each in enumerate(seen)}) / calls
    values["distinct_tools"] = len({call.tool for call in window}) / calls
    values["news"] = history[-1].news / 100
    values["news_mean"] = sum(call.news for call in window) / calls / 100
    values["position"] = log2(1 + min(len(history) - 1, 15)) / 4
    return values


@settings(max_examples=80, deadline=None)
@given(sessions)
def test_every_feature_is_what_its_definition_says(events):
    """The packed sums and the short cuts give what a plain reading of the whole session gives."""
    history: list[Call] = []
    for window, features in measured(events):
        history.append(window[-1])
        assert features == pytest.approx(plainly(history))


@settings(max_examples=80, deadline=None)
@given(sessions, words(CLEARING, 4))
def test_features_lie_between_0_and_1(calls, said):
    """Whatever comes, also when a session is told to go on or loses its context."""
    for window, features in measured(by_time(calls, said)):
        assert list(features) == NAMES
        assert all(0.0 <= value <= 1.0 for value in features.values())
        assert 1 <= len(window) <= WINDOW_CALLS


def test_the_features_have_names_of_their_own():
    """The file of weights goes by them."""
    assert len({*NAMES}) == len(NAMES) == 33
    assert all(feature.about.endswith(".") for feature in FEATURES)


LOOKS = [view(0, f"src/{n}.py", f"def part_{n}(): pass\nreturn {n}") for n in range(9)]


def test_new_calls_with_new_results_have_nothing_of_a_loop():
    """All that says again is 0, all that says different is 1."""
    features = last(*LOOKS)
    assert all(features[f"again_{name}"] == features[f"before_{name}"] == 0.0 for name in KEPT)
    assert features["distinct_calls"] == features["distinct_results"] == features["distinct_pairs"] == 1.0
    assert features["looks"] == features["news_mean"] == features["news"] == 1.0
    assert features["distinct_tools"] == features["run_call"] == 1 / 8


@pytest.mark.parametrize(("times", "before"), [(1, 0.0), (2, 0.25), (4, 0.5), (8, 0.75)])
def test_a_call_that_comes_again_with_its_result(times, before):
    """How often it came before, how often in a row, and how few different ones there are."""
    same = [shell(0, "./report", "12 parts of the report are missing")] * times
    features = last(*LOOKS, *same)
    assert features["before_call"] == features["before_pair"] == features["before_result"] == before
    assert features["run_call"] == features["run_pair"] == features["run_result"] == times / 8
    assert features["again_call"] == features["again_pair"] == (times - 1) / 8
    assert features["distinct_calls"] == (9 - times) / 8
    assert features["stale"] == (times - 1) / 8


def test_beyond_fifteen_times_no_more_is_told():
    """As definitions say."""
    same = [shell(0, "./report", "12 parts of the report are missing")]
    assert last(*same * 16)["before_call"] == last(*same * 20)["before_call"] == 1.0
    assert last(*same * 15)["before_call"] < 1.0


def test_failures_count_by_their_kind():
    """Whatever failed, and in whatever words of its own."""
    fails = [
        shell(0, f"make part_{n}", f"Error: no rule to make target 'part_{n}'", error=ErrorInfo(code=2))
        for n in range(4)
    ]
    features = last(*LOOKS[:4], *fails)
    assert (features["failed"], features["again_failure"], features["run_failure"]) == (0.5, 3 / 8, 0.5)
    assert features["before_failure"] == 0.5
    assert features["runs"] + features["edits"] + features["looks"] == 1.0


def test_a_failure_that_says_too_little_is_known_by_its_answer():
    """And is not counted twice for that."""
    fails = [
        tool_call(0, "probe", {"unit": n}, "12 34\nand all the rest that it printed", status="error") for n in range(3)
    ]
    features = last(*LOOKS[:5], *fails)
    assert (features["before_failure"], features["before_result"]) == (log2(3) / 4, log2(3) / 4)


@pytest.mark.parametrize(("new", "stale"), [(1, True), (2, False)])
def test_next_to_nothing_new_is_less_than_a_quarter(new, stale):
    """Of eight pieces one, but not two."""
    old = "\n".join(f"old line {n}" for n in range(8))
    mixed = "\n".join([*(f"new line {n}" for n in range(new)), *(f"old line {n}" for n in range(8 - new))])
    calls = [tool_call(0, "report", None, text, arguments_digest="a" * 64) for text in (*[old] * 7, mixed)]
    assert (last(*calls)["stale"] == 7 / 8) is stale
    assert last(*calls)["news"] == round(100 * new / 8) / 100


@pytest.mark.parametrize(("between", "known"), [(36, True), (37, False)])
def test_what_came_long_ago_is_forgotten(between, known):
    """The ring holds 112 prints, and each of these calls leaves three."""
    looks = [view(0, f"src/{n}.py", f"def part_{n}(): pass\nreturn {n}") for n in range(between)]
    same = shell(0, "./report", "12 parts of the report are missing")
    assert (last(same, *looks, same)["before_call"] > 0) is known


def test_what_acknowledges_an_edit_is_no_answer():
    """Every edit is acknowledged in the same words."""
    features = last(*(edit(0, f"src/{n}.py", f"part_{n} = {n}") for n in range(8)))
    assert (features["again_result"], features["distinct_results"]) == (0.0, 1.0)
    assert features["applied"] == features["edits"] == 1.0


def test_the_page_of_a_form_is_no_answer_while_it_is_filled_in():
    """It stays, as it should; what a button leads to is an answer."""
    page = "Page URL: https://shop.example/form\nPage Title: Application form\nThe form is shown with all its fields"
    fields = [tool_call(0, "browser_type", {"ref": f"e{n}", "text": f"{n}"}, page) for n in range(8)]
    assert last(*fields)["distinct_results"] == 1.0
    buttons = [tool_call(0, "browser_click", {"ref": f"e{n}"}, page) for n in range(8)]
    assert last(*buttons)["distinct_results"] == 1 / 8


def test_edits_count_without_their_comments():
    """The same code with another remark is the same patch."""
    edits = [edit(0, "src/a.py", f"part = 3  # remark {n}") for n in range(3)]
    features = last(*edits)
    assert (features["again_patch"], features["before_patch"], features["again_call"]) == (2 / 3, log2(3) / 4, 0.0)


def test_all_that_brought_nothing_has_one_outcome():
    """In whatever words it says so, it is the same nothing, and no answer."""
    searches = [tool_call(0, "grep", {"pattern": f"name_{'abcd'[n]}"}, "") for n in range(4)]
    features = last(*LOOKS[:4], *searches)
    assert (features["empty"], features["run_result"], features["distinct_results"]) == (0.5, 0.5, 5 / 8)
    assert features["again_result"] == 0.0


def test_what_was_not_recorded_is_not_compared():
    """Nothing is known of it, so that it is neither equal nor seen before."""
    calls = [tool_call(0, "render", {"page": 1}, None, status=None)] * 4
    features = last(*LOOKS[:4], *calls)
    assert (features["unrecorded"], features["again_pair"], features["distinct_pairs"]) == (0.5, 0.0, 1.0)
    assert features["again_call"] == 3 / 8


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (tool_call(0, "drop_table", {"n": 1}, "not allowed", status="denied"), "refused"),
        (tool_call(0, "reed_file", {"n": 1}, "Error: unknown tool reed_file", error="no_tool"), "refused"),
        (tool_call(0, "get_job", {"job": 1}, "still running"), "waiting"),
        (tool_call(0, "search_web", {"q": "x"}, "503 service unavailable"), "waiting"),
        (tool_call(0, "wait_for_job", {"job": 1}, "done with everything"), "polls"),
        (shell(0, "pytest -q", "3 passed"), "runs"),
        (tool_call(0, "grep", {"pattern": "x"}, "src/a.py: x"), "looks"),
    ],
)
def test_what_a_call_is_for_and_what_became_of_it(call, name):
    """One such call among eight is an eighth."""
    rest = [click_free(n) for n in range(7)]
    assert last(*rest, call)[name] == 1 / 8
    assert last(*rest, click_free(7))[name] == 0.0


def click_free(n):
    """A call of a tool of which nothing is known, with news."""
    return tool_call(0, "frobnicate", {"unit": n}, f"unit {n} reads {n * 17} and hums {n * 5}")


@pytest.mark.parametrize(("calls", "position"), [(1, 0.0), (2, 0.25), (8, 0.75), (16, 1.0), (60, 1.0)])
def test_position_counts_up_to_the_end_of_the_opening(calls, position):
    """Long sessions are not suspicious for being long."""
    assert last(*(click_free(n) for n in range(calls)))["position"] == position


@pytest.mark.parametrize("kind", ["user_message", "context_trimmed"])
def test_what_clears_starts_anew(kind):
    """After a word of the user, or a loss of context, to look again is what one should do."""
    before, after = numbered(LOOKS[:8]), LOOKS[:8]
    events = [*before, session_event(8, kind), *(replace_time(call, 9 + n) for n, call in enumerate(after))]
    features = measured(events)[-1][1]
    assert features["again_call"] == features["before_call"] == features["stale"] == 0.0
    assert features["news_mean"] == 1.0
    assert features["position"] == 0.75
    assert measured(numbered([*LOOKS[:8], *after]))[-1][1]["again_call"] == 1.0


def replace_time(call, n):
    """The call as the session's n-th."""
    return tool_call(n, call.tool, call.arguments, call.result)


def test_thoughts_between_calls_are_not_measured():
    """They neither bring news nor repeat."""
    with_thoughts = [each for n, call in enumerate(LOOKS) for each in (call, think(0, f"perhaps {n}"))]
    features = last(*with_thoughts[:-1])
    assert features == last(*LOOKS)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("again_call", 7 / 8, "7 of the last 8 calls were made before"),
        ("empty", 0.0, "none of the last 8 calls brought nothing"),
        ("stale", 1.0, "8 of the last 8 calls brought next to nothing new"),
        ("applied", 0.0, "none of the last 8 calls made a change that was accepted"),
        ("before_failure", log2(6) / 4, "one failure for the 6th time"),
        ("before_call", 0.25, "this call for the 2nd time"),
        ("before_pair", log2(3) / 4, "this call with this result for the 3rd time"),
        ("before_patch", 1.0, "one edit for the 16th time or more"),
        ("run_result", 0.5, "the same answer 4 times in a row"),
        ("distinct_results", 1 / 8, "only one answer in the last 8 calls"),
        ("distinct_pairs", 3 / 8, "only 3 different results in the last 8 calls"),
        ("news", 0.125, "12% of the text of this call is new"),
        ("news_mean", 0.07, "7% of the text of the last 8 calls is new"),
        ("position", 0.75, "8 calls so far"),
        ("position", 1.0, "16 calls or more so far"),
    ],
)
def test_a_value_in_words(name, value, said):
    """As an alert tells it."""
    feature = next(feature for feature in FEATURES if feature.name == name)
    assert feature.says(value, 8) == said


def test_every_feature_has_words():
    """None of them fails, whatever its value."""
    for feature in FEATURES:
        for value in (0.0, 0.1, 0.5, 1.0):
            assert feature.says(value, MIN_CALLS)
