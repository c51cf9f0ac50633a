"""No command line makes judging it fail, and none costs more than its beginning."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detectors import command_line
from detectors.catalogue import Tools
from detectors.shell import READ_CHARS, parts_of
from detectors.use import KINDS, Use

TOOLS = Tools()
PIECES = [
    "cat a.py", "find . -exec", "-exec", "sed -i", "python -m", "python - <<'E'", "bash -c", "docker run", "timeout",
    "curl -X", "head -n", "git -C", "> a", "2>&1", "'", '"', "|", "&&", "$(", ")", "<<E", "\n", "bash -c '", "; ",
    "-", "",
]  # fmt: skip


def use_of(line: str) -> Use:
    """Return the use of a call of a tool that takes a command line."""
    return TOOLS.use("bash", {"command": line})


@given(st.text() | st.binary().map(lambda data: data.decode("latin-1")))
def test_no_text_makes_it_fail(text):
    """Whatever is sent to a shell gets a kind."""
    assert use_of(text).kind in KINDS
    assert TOOLS.use("bash", {"command": [text, text]}).kind in KINDS


@given(st.lists(st.sampled_from(PIECES), max_size=20))
def test_no_syntax_makes_it_fail(pieces):
    """Nor do pieces of commands and syntax in any order."""
    assert use_of(" ".join(pieces)).kind in KINDS


def test_only_the_beginning_is_read():
    """What stands beyond the bound changes nothing, so that a line of any length costs the same."""
    line = "ls " + "x" * READ_CHARS
    assert use_of(line + "; rm y") == use_of(line)
    assert use_of("ls " + "x" * (READ_CHARS - 20) + "; rm y").changes


@pytest.mark.parametrize(
    "piece", ["bash -c '", "bash -c ", "eval ", "$(", "sudo ", "timeout 1 ", "find -exec ", 'sh -c "\\']
)
def test_nesting_is_bounded(piece, monkeypatch):
    """Shells in shells, a hundred deep, are split a few times and no more."""
    split: list[str] = []

    def counted(line):
        split.append(line)
        return parts_of(line)

    monkeypatch.setattr(command_line, "parts_of", counted)
    assert Tools().use("bash", {"command": piece * 100_000}).kind in KINDS
    assert len(split) <= 4
    assert sum(map(len, split)) <= 4 * READ_CHARS
