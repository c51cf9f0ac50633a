"""Every alert has a section on the page of runbooks, and what that says to do can be done."""

from __future__ import annotations

import re
from pathlib import Path

import promql_parser
import pytest

from tests.deploy.test_rules import ALERTS, known, names
from tests.docs.conftest import FENCE

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "runbooks.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))


def test_each_alert_has_its_section() -> None:
    """There are as many sections as alerts, in the order of the rules, and each link of an alert leads to its own."""
    assert list(SECTIONS) == list(ALERTS)
    for name, rule in ALERTS.items():
        assert rule["annotations"]["runbook_url"].endswith(f"runbooks.md#{name.lower()}")


@pytest.mark.parametrize("name", ALERTS)
def test_a_section_says_all(name: str) -> None:
    """A section says how urgent it is as the rule does, what follows, how to check, and what to do, in that order."""
    severity = ALERTS[name]["labels"]["severity"].capitalize()
    heads = re.findall(r"^\*\*(\w+)\.\*\*", SECTIONS[name], re.MULTILINE)

    assert heads == [severity, "Impact", "Check", "Do"]


@pytest.mark.parametrize("name", ALERTS)
def test_queries_can_be_asked(name: str) -> None:
    """Each line of a section's queries is one that Prometheus reads, of metrics that there are."""
    blocks = {found["language"]: found for found in FENCE.finditer(SECTIONS[name])}
    assert set(blocks) <= {"promql", "sh"}
    assert blocks["promql"]["name"] == f"{name}-queries"
    for query in blocks["promql"]["text"].splitlines():
        promql_parser.parse(query)
        assert names(query)
        assert names(query) <= known(), query


def test_commands_are_ours_or_everybodys() -> None:
    """A section's commands are ours, which the tests of all pages parse, or read a page of a process."""
    for name, text in SECTIONS.items():
        for found in FENCE.finditer(text):
            if found["language"] == "sh":
                assert found["name"] == f"{name}-commands"
                assert all(
                    re.match(r"traction [a-z]|curl -s http://HOST:\d+/(healthz|readyz)$", each)
                    for each in found["text"].splitlines()
                )
