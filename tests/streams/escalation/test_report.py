"""The report: what a person needs, and only what the alert says."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from schemas.common import Agent, Task
from schemas.outputs import Evidence, LimitReached, Position
from streams.escalation.report import PERSON, report
from streams.escalation.words import told

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
            "12,345 tokens (1.50 USD), measured",
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


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "not known"),
        ({"wasted_estimated": True}, "not known"),
        ({"cost_wasted": 0.0}, "0 tokens (0.00 USD), measured"),
        ({"tokens_wasted": 1}, "1 tokens, measured"),
    ],
)
def test_a_cost_of_which_nothing_is_known_is_not_said_to_be_nothing(
    alert: MakeAlert, fields: dict[str, Any], said: str
) -> None:
    """Where no usage was sent, nothing was measured."""
    assert f"| spent on it | {said} |" in report(alert(**fields)).markdown.splitlines()


@pytest.mark.parametrize(("count", "said"), [(1.0, "3 times"), (3.0, "3 times"), (3.5, "3.5 times"), (7.0, "7 times")])
def test_what_was_tried_is_not_said_to_be_less_than_what_is_listed(alert: MakeAlert, count: float, said: str) -> None:
    """A detector may count cycles of several calls; neither people nor agents read fewer tries than they see."""
    found = alert(count=count, evidence=Evidence(calls=("edit(a)", "test()", "undo(a)")))
    assert f"## Tried, {said}" in report(found).markdown.splitlines()
    assert f"it was tried {said} without success" in told("abandon", found)


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


def test_the_page_says_what_was_done_and_how_to_answer(alert: MakeAlert) -> None:
    """A person at night sees how far it has gone, and types what is there."""
    found = report(alert("a9", session_id="s-42", task_id="t-7"), ("guidance for the agent: once", "pause: once"))
    assert found.done == ("guidance for the agent: once", "pause: once")
    assert found.commands == (
        "traction sessions show s-42",
        "traction sessions resume s-42",
        "traction sessions terminate s-42",
        "traction sessions mute s-42",
        "traction tasks clear t-7",
        "traction alerts wrong a9",
    )
    rows = found.markdown.splitlines()
    for row in ("- guidance for the agent: once", "- pause: once", *found.commands):
        assert row in rows
    assert "Done so far" not in report(alert()).markdown


@pytest.mark.parametrize("name", ["a b", "$(reboot)", "`id`; rm -rf ~", "it's", "-x", "--help", '"', "a\\b", "*", "#1"])
def test_commands_can_be_pasted_into_a_shell(alert: MakeAlert, name: str) -> None:
    """An id is one word of the shell, whatever is in it, and never an option."""
    for command in report(alert(name, session_id=name, task_id=name)).commands:
        words = shlex.split(command)
        assert words[0] == "traction"
        assert words[-1] == name
        assert len(words) == (5 if name.startswith("-") else 4)
        assert ("--" in words) == name.startswith("-")


@pytest.mark.parametrize("name", ["a\nrm", "\u202ex", "\u017fession", "a\u200bb", "x" * 129, "\x1b[2J"])
def test_what_cannot_be_typed_is_not_offered(alert: MakeAlert, name: str) -> None:
    """A command that looks like one and is not would be worse than none."""
    found = report(alert(name, session_id=name, task_id=name))
    assert found.commands == ()
    assert "How to answer" not in found.markdown
    assert len(report(alert("x" * 128)).commands) == 6


def test_a_person_s_decision_has_a_page_of_its_own(alert: MakeAlert) -> None:
    """It does not say that something was counted, nor offers to mark an alert as wrong."""
    found = report(alert(detector=PERSON, count=0.0, evidence=Evidence()))
    assert found.title == "stopped on a person's word: session s1"
    assert "ask who decided it" in found.look_at
    assert "alerts wrong" not in found.markdown


@pytest.mark.parametrize("char", ["x", "`", "*", "@", "|", "\U00020000", "<", "://", "\\", '"', "\u202e", "\n"])
def test_the_page_has_room_in_an_issue_and_a_webhook(alert: MakeAlert, char: str) -> None:
    """Whatever an alert holds: below 8,000 characters, and as JSON below 20 kB; the commands are always there."""
    long = char * 5_000
    page = report(
        alert(
            "a9",
            scope="task",
            task_id=char * 200,
            session_id="s-42",
            agent=Agent(id=long, name=long, role=long, model=long, config=long),
            task=Task(repo=long, type=long, ref=long, paths=(long,) * 9),
            evidence=Evidence(
                event_ids=(long,) * 12,
                attempt_ids=(long,) * 12,
                calls=(long,) * 50,
                error=long,
                weak=True,
                derived=True,
                word_similarity=0.123,
                diff_similarity=0.456,
                position=Position(topic=long, partition=2**62, offset=2**62),
            ),
            pattern=long,
            suggested_strategy="analyze_root_cause",
            reasoning=long,
            detector=long,
            loop_id=long,
            spin_score=0.123,
            tokens_wasted=2**62,
            cost_wasted=1e15,
            interventions_so_far=2**62,
            limits=(LimitReached(name=long, value=1e300, layer=long),) * 9,
        ),
        tuple(f"{number} step of the ladder: 1000 times" for number in range(7)),
    ).markdown
    assert len(page) < 8_000
    assert len(msgspec.json.encode(page)) < 20_000
    assert "traction sessions resume s-42" in page
    assert "## Where to begin" in page
