"""The report: what a person needs, and only what the alert says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from schemas.common import Agent, Task
from schemas.outputs import Evidence, Position
from streams.escalation.report import report

if TYPE_CHECKING:
    from tests.streams.escalation.conftest import MakeAlert


def test_the_page_says_what_happened(alert: MakeAlert) -> None:
    """Who, what was tried, how often, the failure, what it cost, where to begin, and where the evidence is."""
    page = report(
        alert(
            session_id="s-42",
            task_id="t-7",
            count=5.0,
            agent=Agent(name="coder", role="code"),
            task=Task(id="t-7", repo="acme/shop"),
            evidence=Evidence(
                event_ids=("e1", "e2"),
                calls=("pytest(-q)",),
                error="ModuleNotFoundError: no module named yaml",
                position=Position(topic="agent.tool-calls", partition=3, offset=99),
            ),
            suggested_strategy="analyze_root_cause",
            tokens_wasted=12_345,
            cost_wasted=1.5,
        )
    ).markdown
    for said in (
        *("s-42", "t-7", "coder, code", "acme/shop", "5 times", "pytest(-q)", "ModuleNotFoundError"),
        *(
            "12,345 tokens ($1.50), measured",
            "identical.warn = 3 (default)",
            "agent.tool-calls-3 offset 99",
            "event e2",
        ),
        "reproduce it by hand and find its cause first",
    ):
        assert said in page


def test_estimates_are_marked(alert: MakeAlert) -> None:
    """What was not measured is not said as if it were."""
    assert "1,000 tokens, estimated" in report(alert(tokens_wasted=1_000, wasted_estimated=True)).markdown


@pytest.mark.parametrize(("score", "said"), [(0.93, "0.93 likely"), (0.0, "0 likely"), (None, "")])
def test_the_spin_score_is_said_with_its_scale(alert: MakeAlert, score: float | None, said: str) -> None:
    """A person who never heard of it reads what the number means; where there is none, nothing is said."""
    called = report(alert(spin_score=score))
    assert called.spin_score == score
    rows = [text for text in called.markdown.splitlines() if text.startswith("| spin score |")]
    assert rows == ([f"| spin score | {said}, from 0 to 1, that the latest calls spin |"] if said else [])


def test_without_a_failure_there_is_no_such_section(alert: MakeAlert) -> None:
    """A loop without failures does not get an empty section, and another advice."""
    calm = report(alert())
    failing = report(alert(evidence=Evidence(calls=("ls",), error="boom")))
    assert "Recurring failure" not in calm.markdown
    assert calm.recurring_failure is None
    assert calm.look_at != failing.look_at


def test_quotations_cannot_leave_their_blocks(alert: MakeAlert) -> None:
    """Calls and failures with fences of their own stay inside of ours."""
    page = report(alert(evidence=Evidence(calls=("cat ```\n# Approved: deploy now",), error="````\n@team"))).markdown
    blocks = page.split("\n\n")
    assert "````text\ncat ``` # Approved: deploy now\n````" in blocks
    assert "`````text\n```` @team\n`````" in blocks


FLAPPING: dict[str, Any] = {
    "scope": "task",
    "detector": "fix_break",
    "session_id": "s-42",
    "task_id": "t-7",
    "count": 2.0,
    "pattern": "fix_break_oscillation",
    "suggested_strategy": "different_method",
    "evidence": Evidence(
        attempt_ids=("a1", "a2"), calls=("Cache totals",), derived=True, word_similarity=0.333, diff_similarity=1.0
    ),
}


def test_where_a_task_spins_the_page_speaks_of_the_task(alert: MakeAlert) -> None:
    """Its title, in which way, how alike the attempts are, where they were read from, and which they are."""
    found = report(alert(**FLAPPING))
    assert found.title == "fix_break: 2 times in task t-7"
    rows = found.markdown.splitlines()
    for row in (
        "| task | t-7 |",
        "| latest session | s-42 |",
        "| pattern | fix break oscillation |",
        "| suggested strategy | different method |",
        "| alike in words | 33% |",
        "| alike in changes | 100% of the changed lines |",
        "| attempts | read from tool calls: edits, then a check |",
        "attempt a2",
    ):
        assert row in rows


def test_what_was_not_measured_is_not_on_the_page(alert: MakeAlert) -> None:
    """Nor does the page of a session speak of patterns, or of what is alike."""
    bare = report(alert(**FLAPPING | {"pattern": None, "suggested_strategy": None, "evidence": Evidence()}))
    for page in (bare.markdown, report(alert()).markdown):
        for word in ("pattern", "strategy", "alike", "| attempts |"):
            assert word not in page
    assert "Look at the attempts above" in bare.look_at
    assert "0%" in report(alert(**FLAPPING | {"evidence": Evidence(diff_similarity=0.0)})).markdown
