"""Settings in JSON are edited where they stand, and all else stays as it is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.connect.json_text import MAX_NESTING, Damaged, add, parse, remove

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=10,
)
INDENTS = st.sampled_from([None, 0, 1, 2, 4, "\t"])


def written(value: Any, indent: Any, *, spread: bool) -> str:
    """Write a value as people's tools do."""
    text = json.dumps(value, indent=indent, ensure_ascii=indent == 1)
    return text.replace("\n", "\r\n") if spread else text


@given(value=VALUES, indent=INDENTS, spread=st.booleans())
def test_any_json_is_read(value, indent, spread):
    """What is read is what Python's own reader reads."""
    text = written(value, indent, spread=spread)
    node = parse(text)
    assert node.value == json.loads(text)
    assert (node.start, node.end) == (0, len(text))


@given(data=st.binary(max_size=40) | VALUES.map(lambda value: json.dumps(value).encode()), cut=st.integers(0, 40))
def test_what_it_refuses_others_refuse(data, cut):
    """Of any text, it reads what Python's own reader does, except for the numbers that only Python knows."""
    text = (data[:cut] or data).decode("utf-8", "replace")
    try:
        expected = json.loads(text, parse_constant=int)
    except (ValueError, RecursionError):
        with pytest.raises(Damaged):
            parse(text)
    else:
        assert parse(text).value == expected


@given(
    value=st.dictionaries(st.text(max_size=4), VALUES, max_size=4),
    key=st.text(max_size=4),
    new=VALUES,
    indent=INDENTS,
    spread=st.booleans(),
)
def test_a_member_is_added_and_removed(value, key, new, indent, spread):
    """A member that is added is there, all others stay, and once it is removed the value is what it was."""
    value = {name: each for name, each in value.items() if name != key}
    text = written(value, indent, spread=spread)
    added = add(text, parse(text), new, key)
    assert parse(added).value == {**value, key: new}
    root = parse(added)
    member = root.member(key)
    assert member is not None
    assert parse(remove(added, root, member)).value == value


@given(value=st.lists(VALUES, max_size=4), new=VALUES, position=st.integers(0, 4), indent=INDENTS)
def test_an_item_is_added_and_any_removed(value, new, position, indent):
    """The same holds for items of an array, wherever the removed one stands."""
    text = written(value, indent, spread=False)
    added = add(text, parse(text), new)
    assert parse(added).value == [*value, new]
    root = parse(added)
    position = min(position, len(value))
    left = parse(remove(added, root, root.parts[position])).value
    assert left == [each for index, each in enumerate([*value, new]) if index != position]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            '{\n    "a": 1,\n    "b": [1, 2]\n}\n',
            '{\n    "a": 1,\n    "b": [1, 2],\n    "new": [\n        1\n    ]\n}\n',
        ),
        ('{"a": 1}', '{"a": 1,\n  "new": [\n    1\n  ]\n}'),
        ("{}\n", '{\n  "new": [\n    1\n  ]\n}\n'),
        ('{\r\n\t"a": 1\r\n}', '{\r\n\t"a": 1,\r\n\t"new": [\r\n\t\t1\r\n\t]\r\n}'),
        ('{\n  // why\n  "a": 1, // that\n}\n', '{\n  // why\n  "a": 1,\n  "new": [\n    1\n  ] // that\n}\n'),
        ("{\n  // nothing yet\n}\n", '{\n  // nothing yet\n  "new": [\n    1\n  ]\n}\n'),
        ("\ufeff{ /* a */ }", '\ufeff{ /* a */\n  "new": [\n    1\n  ]\n}'),
    ],
)
def test_how_it_looks(before, after):
    """What is added is indented as the file is, and comments and line ends stay."""
    added = add(before, parse(before, comments=True), [1], "new")
    assert added == after
    root = parse(added, comments=True)
    member = root.member("new")
    assert member is not None
    assert json.dumps(parse(remove(added, root, member), comments=True).value) == json.dumps(
        parse(before, comments=True).value
    )


def test_of_two_members_with_one_key_the_last_counts():
    """As every reader has it."""
    text = '{"a": 1, "a": {"b": 2}}'
    member = parse(text).member("a")
    assert member is not None
    assert member.node.value == {"b": 2}


@pytest.mark.parametrize(
    ("text", "line", "column", "problem"),
    [
        ("", 1, 1, "a value is missing"),
        ('{"a": }', 1, 7, "a value is missing"),
        ('{\n  "a": 1\n  "b": 2\n}', 3, 3, "a comma or } is missing"),
        ('{"a": 1,}', 1, 9, "there is a comma before }"),
        ('{"a" 1}', 1, 6, "a colon is missing"),
        ("{a: 1}", 1, 2, "a key in double quotes is missing"),
        ('{"a": "b\n"}', 1, 7, "a text does not end on its line"),
        ('{"a": "\\x"}', 1, 7, "a text has an escape that is none"),
        ('{"a": NaN}', 1, 7, "this is no JSON"),
        ("{} {}", 1, 4, "something stands after the end"),
        ('{"a": 1 // b\n}', 1, 9, "a comma or } is missing"),
        ("[" * (MAX_NESTING + 2), 1, MAX_NESTING + 2, "nested too deeply"),
    ],
)
def test_what_is_damaged_is_told_with_its_place(text, line, column, problem):
    """A person finds at once what to mend."""
    with pytest.raises(Damaged, match=problem) as told:
        parse(text)
    assert (told.value.line, told.value.column) == (line, column)


def test_the_deepest_nesting():
    """Up to the limit it is read."""
    assert parse("[" * (MAX_NESTING + 1) + "]" * (MAX_NESTING + 1)).value is not None
