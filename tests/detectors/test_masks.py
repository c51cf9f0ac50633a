"""Masks: what changes from run to run is hidden, what is the answer is not, and long texts are bounded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detectors.masks import MASK, MAX_READ_CHARS, bounded, mask_failure, mask_result, text_of


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("at 2026-01-31T12:00:00Z", f"at {MASK}"),
        ("2026-01-31 12:00:00,123 INFO up", f"{MASK} INFO up"),
        ("done 12:00:01.5", f"done {MASK}"),
        ("Mon Nov 30 16:03:27 UTC 2026", MASK),
        ("real 0m1.25s", f"real {MASK}"),
        ("5 passed in 0.12s", f"5 passed in {MASK}"),
        ("took 3 seconds", f"took {MASK}"),
        ("durationMs=104 ok", f"{MASK} ok"),
        ('{"took": 3.5, "n": 2}', f'{{"{MASK}, "n": 2}}'),
        ("execution_time: 12", MASK),
        ("pid 4711 started", f"pid {MASK} started"),
        ("[PID=4711]", f"[PID={MASK}]"),
        ("id 550e8400-e29b-41d4-a716-446655440000", f"id {MASK}"),
        ("object at 0x7f3a12bc", f"object at {MASK}"),
        ("wrote /tmp/tmpab12/x.log ok", f"wrote {MASK} ok"),
        ("attempt 3 of 5", f"attempt {MASK}"),
        ("step 7/10 loss 0.5", f"step {MASK} loss 0.5"),
        ("bash: line 12: foo: command not found", f"bash: line {MASK}: foo: command not found"),
        ("toolu_01ABCDEFGHIJKLMNOP", MASK),
        ("since 1717171717 and 1717171717123", f"since {MASK} and {MASK}"),
        ("<external id=36f6>x</external id=36f6>", f"{MASK}x{MASK}"),
    ],
)
def test_volatile_parts_are_masked(text, masked):
    """One case per mask."""
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
        "total 1700000000000000",
        "price 300",
        "v2s",
    ],
)
def test_bare_numbers_are_the_answer_and_stay(text):
    """Masking all digits would make every tuning session look stuck."""
    assert mask_result(text) == text


@pytest.mark.parametrize("extra", [0, 1])
def test_long_texts_are_read_at_both_ends(extra):
    """Up to the bound everything counts; beyond it both ends and the length do."""
    text = "a" * (MAX_READ_CHARS // 2) + "X" * extra + "b" * (MAX_READ_CHARS // 2)
    assert (bounded(text) == text) is (extra == 0)
    assert bounded(text).startswith("aaa")
    assert bounded(text).endswith("bbb")
    assert bounded("x" * (MAX_READ_CHARS + 1)) != bounded("x" * (MAX_READ_CHARS + 2))


def test_templates_of_one_kind_of_failure_are_equal():
    """Names, files, lines and what the arguments say do not make another failure."""
    one = mask_failure("No module named 'yaml' in /srv/a/b.py line 12", {"command": "python a.py"})
    other = mask_failure("No module named 'toml' in /opt/c.py line 7", {"command": "python c.py"})
    assert one == other
    echoed = mask_failure("no matches for needle-one", {"pattern": "needle-one"})
    assert echoed == mask_failure("no matches for pin", {"pattern": "pin"}).replace("pin", MASK)


@given(st.text())
def test_masking_twice_changes_nothing(text):
    """A masked text is its own masked text."""
    once = mask_result(text)
    assert mask_result(once) == once


def test_results_that_are_not_text_compare_by_their_json():
    """Key order of a structured result does not matter."""
    assert text_of({"b": 1, "a": 2}) == text_of({"a": 2, "b": 1})
    assert text_of("plain") == "plain"
