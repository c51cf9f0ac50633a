"""Masks: what changes from run to run is hidden, what is the answer is not, and long texts are bounded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detectors.canonical import plain_text
from detectors.masks import (
    MASK,
    MAX_READ_CHARS,
    MIN_ECHO_CHARS,
    bounded,
    echoes_of,
    mask_answer,
    mask_failure,
    mask_result,
)
from tests.detectors.reading import json_values, reversed_keys


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("at 2026-01-31T12:00:00Z", f"at {MASK}"),
        ("at 2026-01-31T12:00:00.123456+02:00", f"at {MASK}"),
        ("2026-01-31 12:00:00,123 INFO up", f"{MASK} INFO up"),
        ("2026-01-31 12:00 up", f"{MASK} up"),
        ("done 12:00:01.5", f"done {MASK}"),
        ("Jan 31 12:00:00 till up", f"Jan 31 {MASK} till up"),
        ("Mon Nov 30 16:03:27 UTC 2026", MASK),
        ("Mon, 30 Nov 2026 16:03:27 GMT", MASK),
        ("real 0m1.25s", f"real {MASK}"),
        ("5 passed in 0.12s", f"5 passed in {MASK}"),
        ("slept 12 ms, 3 µs and 2 mins", f"slept {MASK}, {MASK} and {MASK}"),
        ("took 3 seconds", f"took {MASK}"),
        ("durationMs=104 ok", f"{MASK} ok"),
        ('{"took": 3.5, "n": 2}', f'{{"{MASK}, "n": 2}}'),
        ("execution_time: 12", MASK),
        ("Wall time: 12", MASK),
        ("pid 4711 started", f"pid {MASK} started"),
        ("Process Group PGID: 4711", f"Process Group PGID: {MASK}"),
        ("pgids 4711", "pgids 4711"),
        ("[PID=4711]", f"[PID={MASK}]"),
        ("process id 4711", f"process id {MASK}"),
        ("id 550e8400-e29b-41d4-a716-446655440000", f"id {MASK}"),
        ("object at 0x7f3a12bc", f"object at {MASK}"),
        ("wrote /tmp/tmpab12/x.log ok", f"wrote {MASK} ok"),
        ("wrote /private/var/folders/q1/x.log", f"wrote {MASK}"),
        ("attempt 3 of 5", f"attempt {MASK}"),
        ("Retry 2/5: again", f"Retry {MASK}: again"),
        ("attempt #3", f"attempt #{MASK}"),
        ("step 7/10 loss 0.5", f"step {MASK} loss 0.5"),
        ("Iteration 12: turn 3", f"Iteration {MASK}: turn {MASK}"),
        ("bash: line 12: foo: command not found", f"bash: line {MASK}: foo: command not found"),
        ("toolu_01ABCDEFGHIJKLMNOP", MASK),
        ("req-0a1b2c3d4e5f6 done", f"{MASK} done"),
        ("since 1717171717 and 1717171717123", f"since {MASK} and {MASK}"),
        ("<external id=36f6>x</external id=36f6>", f"{MASK}x{MASK}"),
        ("Request ID: 9f8e7d6c5b", MASK),
        ("session: brisk-17", MASK),
    ],
)
def test_volatile_parts_are_masked(text, masked):
    """One case per mask and spelling."""
    assert mask_result(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "score 0.91",
        "loss: 3.4",
        "12 failed, 3 passed",
        "version 1.2.3",
        "line 12 of the file",
        "port 8080",
        "due 2026-01-31",
        "opens at 12:00",
        "total 1700000000000000",
        "order 2717171717",
        "price 300",
        "v2s",
        "1.2.3s",
        "12st place",
        "0x12",
        "msg_1",
        "run_fast and call_back",
        "step by step",
        "<row id=3>",
        "/temporary/x and /srv/tmp/x",
        "the session was long",
    ],
)
def test_bare_numbers_are_the_answer_and_stay(text):
    """Masking all digits would make every tuning session look stuck (detector specification)."""
    assert mask_result(text) == text


def test_results_of_two_runs_compare_equal_only_when_they_say_the_same():
    """What a test run prints twice is one result; another count is another."""
    one = "collected 3 items (pid 4711)\n2026-01-31 12:00:00 start\n1 failed, 2 passed in 0.31s"
    other = "collected 3 items (pid 4902)\n2026-02-01 08:30:11 start\n1 failed, 2 passed in 1.07s"
    assert mask_result(one) == mask_result(other)
    assert mask_result(one) != mask_result(other.replace("2 passed", "3 passed"))


@pytest.mark.parametrize("extra", [0, 1])
def test_long_texts_are_read_at_both_ends(extra):
    """Up to the bound everything counts; beyond it both ends and the length do."""
    text = "a" * (MAX_READ_CHARS // 2) + "X" * extra + "b" * (MAX_READ_CHARS // 2)
    assert (bounded(text) == text) is (extra == 0)
    assert bounded(text).startswith("aaa")
    assert bounded(text).endswith("bbb")
    assert bounded("x" * (MAX_READ_CHARS + 1)) != bounded("x" * (MAX_READ_CHARS + 2))


@given(st.integers(0, 400_000))
def test_what_is_read_of_a_text_is_bounded(length):
    """A result of any length costs no more than the bound and its length in words."""
    assert len(mask_result("x" * length)) <= MAX_READ_CHARS + 40


TIMES = ["2026-01-31", "12:00:00", "Z", "1717171717", "3s", "Mon", "took", "="]
COUNTERS = ["12", "3.5", "pid", "attempt", "line", ":", "session", "of"]
IDS = ["request_id=a1b2c3d4", "toolu_01ABCDEFGHIJK", "a/tmp/x", "<a id=36f6>", "0x7f3a12bc", MASK]


@given(st.text() | st.lists(st.sampled_from(TIMES + COUNTERS + IDS), max_size=12).map(" ".join))
def test_masking_twice_changes_nothing(text):
    """A masked text is its own masked text."""
    once = mask_result(text)
    assert mask_result(once) == once


@given(st.text(), st.text())
def test_surrounding_blanks_make_no_other_result(text, blank):
    """A trailing newline is no answer."""
    blank = "".join(char for char in blank if char.isspace())
    assert mask_result(blank + text + blank) == mask_result(text)


@pytest.mark.parametrize(
    ("one", "other", "asked", "asked_else"),
    [
        ("No matches found for needle", "No matches found for thimble", {"pattern": "needle"}, {"pattern": "thimble"}),
        ("open src/a.py: no such file", "open src/b.py: no such file", {"path": "src/a.py"}, {"path": "src/b.py"}),
        ("[] for {needle: thread}", "[] for {thimble: wool}", {"q": ["needle", "thread"]}, {"q": ["thimble", "wool"]}),
    ],
)
def test_what_an_answer_only_repeats_of_the_question_is_masked(one, other, asked, asked_else):
    """The same answer to another question is one answer, whatever it quotes."""
    assert mask_answer(one, echoes_of(asked)) == mask_answer(other, echoes_of(asked_else))


def test_the_longest_echo_goes_first():
    """A part of a longer string must not keep the rest of it from being masked."""
    assert mask_answer("no src/till.py here", ["src", "src/till.py"]) == f"no {MASK} here"


def test_echoes_are_long_enough_to_mean_something_and_few():
    """Short words stand in answers for reasons of their own; of many, the longest count."""
    assert MIN_ECHO_CHARS == 4
    assert echoes_of({"a": "src", "b": "till", "c": 12345, "d": None, "e": True}) == ["till"]
    assert echoes_of({"a": [{"b": ["deep down"]}]}) == ["deep down"]
    assert echoes_of("plain text") == ["plain text"]
    assert echoes_of(None) == []
    many = echoes_of([f"{'x' * n}" for n in range(30)])
    assert [len(each) for each in many] == list(range(29, 21, -1))


def test_equal_answers_do_not_depend_on_the_order_of_the_arguments():
    """Of many echoes of one length the same ones count, in whatever order the keys stand."""
    arguments = {f"key{n}": f"word{chr(97 + n)}" for n in range(12)}
    answer = " ".join(arguments.values())
    turned = echoes_of(reversed_keys(arguments))
    assert mask_answer(answer, echoes_of(arguments)) == mask_answer(answer, turned)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("No module named 'yaml' in /srv/a/b.py line 12", "No module named 'toml' in /opt/c.py line 7"),
        ('column "fee" of 3 is unknown', 'column "sum" of 14 is unknown'),
        ("cannot open `a.txt`", "cannot open `b.txt`"),
        ("C:\\till/a.c:3:5: expected ';'", "C:\\fees/b.c:9:1: expected ','"),
        ("read at 0x0 failed", "read at 0xdeadbeef failed"),
        ("killed after 0.31s (pid 4711)", "killed after 12s (pid 9)"),
    ],
)
def test_templates_of_one_kind_of_failure_are_equal(one, other):
    """Names, files, lines and quotations do not make another failure."""
    assert mask_failure(one, {}) == mask_failure(other, {})


def test_templates_do_not_depend_on_what_the_arguments_say():
    """A message that names what was asked for is the same failure for another question."""
    echoed = mask_failure("no matches for needle-one", {"pattern": "needle-one"})
    assert echoed == mask_failure("no matches for thimbles", {"pattern": "thimbles"}) == f"no matches for {MASK}"


@given(json_values)
def test_results_that_are_not_text_compare_by_their_json(value):
    """Key order of a structured result does not matter, and a text is itself."""
    assert plain_text(value) == plain_text(reversed_keys(value))
    assert plain_text("plain") == "plain"


@given(st.text(), json_values)
def test_no_message_breaks_the_masks(line, arguments):
    """Whatever a tool prints and whatever it was asked, there is a template without blanks around it."""
    template = mask_failure(line, arguments)
    assert template == template.strip()
