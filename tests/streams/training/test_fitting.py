"""The learning of weights: signs, limits, what is left out in turn, and what nothing can be learned from."""

from __future__ import annotations

import random

import pytest

from detectors.weights import read_weights, write_weights
from streams.training import Untrainable, fit, fitting
from streams.training.fitting import LEAST_WARN, _limit, _parts, by_source
from tests.streams.training.training_kit import CALLS, HEALTHY, LOOP, example, row, tell_apart


def model_of(examples):
    """Learn, and make the weights ready as for a worker, by way of the file."""
    return read_weights(write_weights(fit(examples)))


def highest(model, each):
    """Give the highest score of a session's calls at which an alert can be raised."""
    scores = [model.score(values) for values in each.measured.rows]
    return max((score for score, speaks in zip(scores, each.measured.speaks, strict=True) if speaks), default=0.0)


def test_what_tells_them_apart_is_learned():
    """Signs are right, what says nothing has no weight, loops reach warn, healthy sessions do not even reach notice."""
    examples = tell_apart(LOOP, HEALTHY)
    model = model_of(examples)
    weights = {name: weight for name, (weight, _) in model.source.features.items() if weight}
    assert set(weights) == {"again_result", "distinct_results"}
    assert weights["again_result"] > 0 > weights["distinct_results"]
    scores = {each.session_id: (each.group, highest(model, each)) for each in examples}
    assert min(score for group, score in scores.values() if group == "loop") >= model.source.warn
    assert max(score for group, score in scores.values() if group != "loop") < model.source.notice
    trained = model.source.trained
    assert (trained.call_auc, trained.session_auc, trained.found, trained.easy, trained.hard) == (1.0, 1.0, 12, 0, 0)
    assert (trained.sessions, trained.loops, trained.sources, trained.calls) == (36, 12, 3, 36 * CALLS)
    assert trained.spinning == 12 * CALLS
    assert trained.library.startswith("scikit-learn ")


def test_the_typical_value_is_that_of_healthy_sessions():
    """Loops do not count for it."""
    weights = fit(tell_apart(LOOP, HEALTHY))
    assert weights.features["again_result"][1] == pytest.approx(0.2, abs=0.02)
    assert weights.features["distinct_results"][1] == pytest.approx(0.8, abs=0.02)


def test_only_what_comes_from_the_onset_on_is_spinning():
    """The calls of a loop before it are examples of work."""
    before = [row(**HEALTHY)] * CALLS
    loops = [
        example(f"l{n}", "loop", before + [row(**LOOP)] * 4, source, onset=CALLS) for source in "abc" for n in range(3)
    ]
    weights = fit([each for each in tell_apart(LOOP, HEALTHY) if each.group != "loop"] + loops)
    assert weights.trained.spinning == 9 * 4
    assert weights.trained.call_auc == 1.0


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sources", ["abc", "a"])
def test_the_order_of_the_examples_makes_no_difference(seed, sources):
    """The same examples give the same file, byte for byte, whether sources are left out in turn or parts are."""
    examples = tell_apart({"again_result": 0.6, "failed": 0.55}, {"again_result": 0.4, "failed": 0.45}, sources)
    mixed = random.Random(seed).sample(examples, len(examples))  # noqa: S311 - any order
    assert mixed != examples
    assert write_weights(fit(mixed)) == write_weights(fit(examples))


def test_a_weight_that_would_say_the_opposite_is_0():
    """That failures speak against spinning is an accident of the sessions; what may say either keeps its weight."""
    examples = tell_apart(LOOP | {"failed": 0.1, "looks": 0.1}, HEALTHY | {"failed": 0.9, "looks": 0.9})
    features = fit(examples).features
    assert features["failed"][0] == 0
    assert features["again_result"][0] > 0
    assert features["looks"][0] < 0
    assert fit(tell_apart(LOOP | {"failed": 0.9}, HEALTHY | {"failed": 0.1})).features["failed"][0] > 0


@pytest.mark.parametrize("group", ["easy", "hard"])
@pytest.mark.parametrize(("sessions", "strays", "reaching"), [(100, 1, 1), (99, 1, 0), (200, 2, 2), (199, 2, 0)])
def test_hardly_any_healthy_session_reaches_warn(group, sessions, strays, reaching):
    """Of each group one in a hundred may: two that score as loops do reach it among 200, and not among 199."""
    found = [each for each in tell_apart(LOOP, HEALTHY, each=20) if each.group != group]
    for number in range(sessions):
        values = LOOP if number < strays else HEALTHY
        found.append(example(f"more-{number}", group, [row(**values)] * CALLS, "abc"[number % 3]))
    model = model_of(found)
    assert sum(highest(model, each) >= model.source.warn for each in found if each.group == group) == reaching


@pytest.mark.parametrize(
    ("scores", "share", "expected"),
    [
        ([0.9] + [0.1] * 99, 0.01, 0.11),
        ([0.9] + [0.1] * 98, 0.01, 0.91),
        ([0.9, 0.8] + [0.1] * 98, 0.01, 0.81),
        ([0.9] + [0.1] * 19, 0.05, 0.11),
        ([0.9] + [0.1] * 18, 0.05, 0.91),
        ([0.2899], 0.01, 0.29),
        ([0.29], 0.01, 0.3),
        ([0.57], 0.01, 0.58),
        ([0.0], 0.01, 0.01),
        ([0.999], 0.01, 1.0),
        ([1.0], 0.01, 1.0),
    ],
)
def test_a_limit_is_the_next_hundredth_above_those_that_may_not_reach_it(scores, share, expected):
    """The score itself would reach a limit equal to it; sessions beyond the share do not raise it."""
    assert _limit(scores, share) == expected
    assert _limit(scores[::-1], share) == expected


def test_a_score_at_which_nothing_is_alerted_sets_no_limit():
    """A healthy session that waits may score high: the limit is about alerts."""
    quiet = example("waits", "easy", [row(**LOOP)] * CALLS, speaks=False)
    loud = example("waits", "easy", [row(**LOOP)] * CALLS, speaks=True)
    examples = tell_apart(LOOP, HEALTHY)
    assert fit([*examples, quiet]).warn < fit([*examples, loud]).warn


def test_limits_rise_and_numbers_are_rounded():
    """Four decimals of a weight, three of a typical value, hundredths of a limit; the file can always be read."""
    weights = fit(tell_apart(LOOP, HEALTHY))
    assert weights.weak_needs <= weights.notice <= weights.warn
    assert weights.intercept == round(weights.intercept, 4)
    for weight, typical in weights.features.values():
        assert (weight, typical) == (round(weight, 4), round(typical, 3))
    assert [weights.notice, weights.warn] == [round(weights.notice, 2), round(weights.warn, 2)]
    assert read_weights(write_weights(weights)).source == weights


def test_a_weight_next_to_nothing_is_written_as_0():
    """Not as -0.0, which would read as if it meant something."""
    weights = fit([*tell_apart(LOOP, HEALTHY), example("odd", "loop", [row(**LOOP, looks=0.499999)] * CALLS)])
    assert str(weights.features["looks"][0]) == "0.0"


def test_many_loops_and_low_scores_leave_the_limits_in_order():
    """Where nearly all calls spin, what weak rules need does not rise above what others need."""
    far = {"again_result": 0.95, "distinct_results": 0.05, "again_pair": 0.95, "again_call": 0.95, "failed": 0.95}
    off = {"again_result": 0.05, "distinct_results": 0.95, "again_pair": 0.05, "again_call": 0.05, "failed": 0.05}
    examples = tell_apart(far, off, each=2)
    many = [example(f"more-{n}", "loop", [row(**far)] * 40, "abc"[n % 3]) for n in range(60)]
    weights = model_of(examples + many).source
    assert weights.weak_needs <= weights.notice


def only(group):
    """Give the examples of one group."""
    return [each for each in tell_apart(LOOP, HEALTHY) if each.group == group]


@pytest.mark.parametrize(
    "examples",
    [
        [],
        only("loop"),
        only("easy"),
        [*only("loop"), only("easy")[0]],
        [only("loop")[0], *only("hard")],
        [example(each.session_id, each.group, []) for each in tell_apart(LOOP, HEALTHY)],
        [*(example(f"late-{n}", "loop", [row(**LOOP)] * CALLS, onset=CALLS) for n in range(5)), *only("easy")],
    ],
    ids=["none", "no healthy", "no loop", "one healthy", "one loop", "too short", "end before they loop"],
)
def test_too_few_examples_are_told(examples):
    """With one loop or one healthy session there is nothing to check what was learned by; the remedy is told."""
    with pytest.raises(Untrainable, match="too few examples; label at least two loops that go on and two healthy"):
        fit(examples)


def test_two_and_two_are_enough():
    """It is what the message for fewer asks for."""
    examples = [*only("loop")[:2], *only("easy")[:2]]
    assert fit(examples).features["again_result"][0] > 0


def test_healthy_sessions_that_cannot_be_alerted_set_no_limits():
    """A limit that no session has tried would be no limit."""
    short = [example(f"short-{n}", "easy", [row(**HEALTHY)] * 4, "abc"[n % 3], speaks=False) for n in range(9)]
    with pytest.raises(Untrainable, match="none sets a limit; label some that have 8 calls and more, and repeat"):
        fit([*only("loop"), *short])


@pytest.mark.parametrize(
    ("loop", "healthy"),
    [({}, {}), ({"failed": 0.1}, {"failed": 0.9}), ({"news": 0.9}, {"news": 0.1})],
    ids=["the same", "the opposite of a sign", "the opposite of the other sign"],
)
def test_features_that_do_not_tell_are_told(loop, healthy):
    """Where nothing is left that speaks for spinning, there are no weights; the remedy is told."""
    with pytest.raises(Untrainable, match="do not tell these loops from these healthy sessions; look whether the"):
        fit(tell_apart(loop, healthy))


HARDLY = [(0.01, 0.0), (0.003, 0.0), (0.01, 0.002)]
"""By how much loops and healthy sessions differ, and how far each kind is spread."""


def hardly_apart(differs, spread):
    """Give examples that one feature tells apart without an error, by next to nothing."""
    return [
        example(f"{group}-{n}", group, [row(again_result=value + spread * n)] * CALLS, source)
        for source in "abc"
        for n in range(4)
        for group, value in (("loop", 0.5 + differs), ("easy", 0.5))
    ]


@pytest.mark.parametrize(("differs", "spread"), HARDLY)
def test_a_tiny_difference_is_not_blown_up(differs, spread):
    """However well it tells the examples apart, the file can be read."""
    weights = fit(hardly_apart(differs, spread))
    assert read_weights(write_weights(weights)).source == weights
    assert max(abs(weight) for weight, _ in weights.features.values()) < 100


def test_weights_that_no_command_reads_are_not_given(monkeypatch):
    """Whatever made them so large, it is told, with the remedy."""
    monkeypatch.setattr(fitting, "_calibration", lambda *_: (1e6, 0.0))
    with pytest.raises(Untrainable, match=r"hardly tell these loops from these healthy sessions: .*; label more"):
        fit(tell_apart(LOOP, HEALTHY))


def test_a_warn_is_more_likely_than_not():
    """Though no healthy session comes near it; and a notice is as likely as spinning is on the average."""
    weights = fit(tell_apart(LOOP, HEALTHY))
    assert weights.warn == LEAST_WARN == 0.5
    assert weights.notice == round(weights.trained.spinning / weights.trained.calls, 2)


def test_sources_are_left_out_in_turn():
    """Each once and whole, and what is learned meanwhile knows no session of it."""
    examples = tell_apart(LOOP, HEALTHY)
    assert by_source(examples)
    parts = _parts(examples)
    assert [{each.source for each in part} for part, _ in parts] == [{"a"}, {"b"}, {"c"}]
    check_parts(examples, parts)


def test_parts_are_left_out_where_sources_are_too_few():
    """Where one source has all the loops, five parts are, with loops and healthy sessions in each."""
    examples = [each for each in tell_apart(LOOP, HEALTHY, each=6) if each.group != "loop" or each.source == "b"]
    assert not by_source(examples)
    parts = _parts(examples)
    assert len(parts) == 5
    assert all({"loop", "easy", "hard"} <= {each.group for each in part} for part, _ in parts)
    check_parts(examples, parts)
    assert fit(examples).trained.found == 6


def test_parts_have_as_many_loops_each_whatever_the_ids():
    """Also when every fifth id is that of a loop."""
    groups = ["loop" if n % 5 == 0 else "easy" for n in range(25)]
    examples = [
        example(f"{n:02}", group, [row(**(LOOP if group == "loop" else HEALTHY))] * CALLS)
        for n, group in enumerate(groups)
    ]
    assert [sum(each.group == "loop" for each in part) for part, _ in _parts(examples)] == [1] * 5


def check_parts(examples, parts):
    """Check that each session is left out once, and learned from in all other turns."""
    names = sorted(each.session_id for each in examples)
    assert sorted(each.session_id for part, _ in parts for each in part) == names
    for part, rest in parts:
        assert sorted(each.session_id for each in (*part, *rest)) == names


def test_figures_are_those_of_sessions_left_out():
    """What only a source itself could teach does not count: its loops that look healthy elsewhere are missed."""
    examples = tell_apart(LOOP, HEALTHY, sources="abcd")
    odd = [example(f"odd-{n}", "loop", [row(**HEALTHY | {"empty": 1.0})] * CALLS, "z") for n in range(4)]
    trained = fit(examples + odd).trained
    assert (trained.loops, trained.found) == (20, 16)
    assert trained.session_auc < 1.0
