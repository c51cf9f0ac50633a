"""What the default catalogue masks in results beside what is masked anyway, and what it leaves."""

import pytest

from detectors.catalogue import Tools
from detectors.masks import MASK, mask_result

TOOLS = Tools()


def masked(name: str, text: str) -> str:
    """Return a result as it is compared: what is volatile anywhere and what is in results of this tool masked."""
    text = mask_result(text)
    for pattern in TOOLS.masks(name):
        text = pattern.sub(MASK, text)
    return text


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        ("browse", "Step 12 of 30: clicked", "Step 13 of 30: clicked"),
        ("browse", "Step: 12/30 clicked", "Step: 13/30 clicked"),
        ("browse", "step #4 clicked", "step #5 clicked"),
        ("browse", "[3] Clicked the button", "[14] Clicked the button"),
        ("read", "read 2x this session", "read 3x this session"),
        ("read", "seen 2 times in this session", "seen 3 times in this session"),
        ("fix", "failed (attempt 3)", "failed (attempt 4)"),
        ("fix", "attempt: 3 failed", "attempt: 4 failed"),
        ("act", "nothing happens, 12 steps left", "nothing happens, 11 steps left"),
        ("act", "nothing happens. Steps remaining: 12", "nothing happens. Steps remaining: 11"),
        ("bash", "Using --randomly-seed=1234\nok", "Using --randomly-seed=77\nok"),
        ("bash", "Randomized with seed 1234", "Randomized with seed 77"),
        ("bash", "run.sh: line 3: 123 Segmentation fault", "run.sh: line 3: 4567 Segmentation fault"),
        ("bash", "[1] 12345", "[2] 12346"),
        ("bash", "up at http://localhost:39123/x", "up at http://localhost:45671/x"),
        ("bash", "ok\tpkg\t0.012s", "ok\tpkg\t(cached)"),
        ("bash", "[Inferior 1 (process 12) exited]", "[Inferior 1 (process 345) exited]"),
        ("bash", "log: /root/.npm/_logs/2026-01-31T12_00_00_1Z-debug-0.log", "log: /root/.npm/_logs/2026-02-01T-0.log"),
        (
            "bash",
            "100  1256  100  1256    0     0   6215      0 --:--:-- --:--:-- --:--:--  6217\rok",
            "100  1256  100  1256    0     0   5901      0 --:--:-- --:--:-- --:--:--  5924\rok",
        ),
        ("bash", "Command running in background with ID: bash_3", "Command running in background with ID: bash_4"),
        ("exec_command", "Chunk ID: a1b2c3\nok", "Chunk ID: d4e5f6\nok"),
        ("browser_snapshot", "- button 'Go' [ref=s1e12]", "- button 'Go' [ref=s2e14]"),
    ],
)
def test_what_is_volatile_is_masked(name, one, other):
    """Counters, seeds, ports and process numbers do not make another result."""
    assert one != other
    assert masked(name, one) == masked(name, other)


@pytest.mark.parametrize(
    "text",
    [
        "score 3",
        "12 of 30 tests failed",
        "page 3 of 10",
        "offset=200",
        "/items?page=3",
        "[12, 13]",
        "x[3] = 4",
        "[1] 3.14",
        "called 3 times",
        "seed of the plant: 12",
        "localhost:8080 and example.com:39123",
        "level 12",
        "1 2 3 4 5 6 7 8 9",
        "2 steps",
        "(process)",
    ],
)
def test_numbers_that_are_the_answer_stay(text):
    """Counts, scores, positions, offsets and pages are what was asked for."""
    assert masked("bash", f"It says {text}") == f"It says {text}"


def test_masks_of_a_user_are_added():
    """Expressions of the tool come after those of all tools."""
    tools = Tools(volatile={"*": ("a+",), "my_tool": ("b+",)})
    assert [pattern.pattern for pattern in tools.masks("my_tool")] == ["a+", "b+"]
    assert [pattern.pattern for pattern in tools.masks("other")] == ["a+"]
