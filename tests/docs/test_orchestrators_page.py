"""The page for orchestrators shows records of the contract as they are, and answers that answer what it shows."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

import pytest

from schemas import topics
from schemas.decode import decode
from streams.client.answers import answer_to
from streams.client.fitness import FitnessTotals

if TYPE_CHECKING:
    from pathlib import Path

    from schemas.outputs import Termination
    from tests.docs.conftest import Find

EXAMPLES = {
    "directive": "directive/inject-guidance.json",
    "termination": "termination/identical-loop.json",
    "known-flapping": "known-flapping/task.json",
    "fitness": "fitness/flapping.json",
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_records_are_the_contracts_examples(block: Find, root: Path, name: str) -> None:
    """What is shown is what the schemas are checked with."""
    example = (root / "schemas" / "examples" / EXAMPLES[name]).read_text("utf-8")
    assert json.loads(block(name).text) == json.loads(example)


def test_the_answer_answers_the_termination(block: Find) -> None:
    """It is the record that the client would write."""
    shown = cast("Termination", decode(topics.TERMINATIONS, block("termination").text.encode()))
    answer = decode(topics.CONTROL, block("answer").text.encode())
    now = datetime(2026, 11, 30, 9, 15, 44, tzinfo=UTC)
    wanted = answer_to(shown, "obeyed", actor="orchestrator-1", reason=None, now=now)
    assert [
        getattr(answer, name) for name in ("event_id", "session_id", "occurred_at", "action", "answers", "actor")
    ] == [getattr(wanted, name) for name in ("event_id", "session_id", "occurred_at", "action", "answers", "actor")]


def test_the_share_is_the_clients(pages: dict[str, str]) -> None:
    """The formula that is shown gives what the client ranks by."""
    formula = "(converged + 1) / (converged + flapped + 2)"
    assert f"`{formula}`" in pages["docs/orchestrators.md"]
    for converged, flapped in ((0, 0), (3, 1), (0, 7)):
        wanted = FitnessTotals(tasks=9, converged=converged, flapped=flapped).score
        assert eval(formula, {"converged": converged, "flapped": flapped}) == wanted  # noqa: S307 - our own page
