"""Reading labels: what is meant is read, and what cannot be meant is refused by file, line, field and remedy."""

from __future__ import annotations

import json

import pytest

from schemas.common import MAX_ID_CHARS
from streams.backtest import InvalidLabels, Label, read_labels
from streams.identity import identifier

GOOD = {"session_id": "a", "label": "loop", "first_loop_seq": 3}


@pytest.fixture
def write(tmp_path):
    """Give what writes a file of labels."""

    def write(*lines):
        path = tmp_path / "labels.jsonl"
        texts = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
        path.write_bytes(b"\n".join(texts))
        return path

    return write


def test_labels_are_read(write):
    """Fields that are not ours are passed by, blank lines too, and what may be missing may be null."""
    path = write(
        GOOD | {"pattern": "cycle", "source": "x", "why": "w", "reader": 2},
        b"  ",
        {"session_id": "b", "label": "healthy", "first_loop_seq": None, "why": "hard: polls"},
        {"session_id": "c", "label": "ambiguous"},
        GOOD,
    )
    labels = read_labels(path)
    assert labels["a"] == Label("a", "loop", 3, "cycle", "x", "w")
    assert [(name, label.label, label.hard) for name, label in labels.items()] == [
        ("a", "loop", False),
        ("b", "healthy", True),
        ("c", "ambiguous", False),
    ]


def test_long_ids_are_those_of_the_recordings(write):
    """A session's id that importers cut is cut here too, so that its label finds it."""
    name = "s" * (MAX_ID_CHARS + 1)
    assert list(read_labels(write({"session_id": name, "label": "healthy"}))) == [identifier(name)]


@pytest.mark.parametrize(
    ("line", "field", "remedy"),
    [
        ({"label": "healthy"}, "field `session_id`", "as the recording has it"),
        ({"session_id": "", "label": "healthy"}, "field `session_id`", "as the recording has it"),
        ({"session_id": "s"}, "field `label`", "loop, healthy or ambiguous"),
        ({"session_id": "s", "label": "secret"}, "field `label`", "loop, healthy or ambiguous"),
        ({"session_id": "s", "label": "loop"}, "field `first_loop_seq`", "position, from 0"),
        ({"session_id": "s", "label": "loop", "first_loop_seq": -1}, "field `first_loop_seq`", "position, from 0"),
        ({"session_id": "s", "label": "loop", "first_loop_seq": "3"}, "field `first_loop_seq`", "position, from 0"),
        (GOOD | {"pattern": 3}, "field `pattern`", "leave it out"),
        (GOOD | {"source": 3}, "field `source`", "leave it out"),
        (GOOD | {"why": ["secret"]}, "field `why`", "leave it out"),
        (GOOD | {"first_loop_seq": 4}, "field `session_id`", "keep one of the two"),
        ({"session_id": "a", "label": "healthy"}, "line 1 says something else", "keep one of the two"),
        (["secret"], "not an object", "session_id and label"),
        (b'{"session_id": "secret', "not JSON", "one object a line"),
        (b'{"session_id": "\xff", "label": "healthy"}', "not JSON", "one object a line"),
    ],
)
def test_what_cannot_be_meant_is_refused(write, line, field, remedy):
    """The message names file, line, field and remedy, and quotes nothing of the line."""
    path = write(GOOD, line)
    with pytest.raises(InvalidLabels) as problem:
        read_labels(path)
    said = str(problem.value)
    assert said.startswith(f"{path}:2: ")
    assert field in said
    assert remedy in said
    assert "secret" not in said


@pytest.mark.parametrize("why", ["hard: polls", "Hard: polls", "HARD:polls", " hard: polls"])
def test_hard_is_known_in_whatever_case(write, why):
    """People write it at the beginning of a sentence, too."""
    assert read_labels(write({"session_id": "a", "label": "healthy", "why": why}))["a"].hard


@pytest.mark.parametrize("lines", [(), (b" ", b"")])
def test_a_file_without_a_label_is_refused(write, lines):
    """Without labels nothing can be scored: the file is named, with the remedy."""
    path = write(*lines)
    with pytest.raises(InvalidLabels, match="there is no label in it; write one object a line") as problem:
        read_labels(path)
    assert str(problem.value).startswith(f"{path}: ")


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    """A directory is no file of labels."""
    with pytest.raises(InvalidLabels, match="cannot be read"):
        read_labels(tmp_path)
