"""Names of tools and the commands among their arguments, as agents of many kinds send them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detectors.tools import command_of, plain_name
from tests.detectors.reading import json_values


@pytest.mark.parametrize(
    ("tool", "plain"),
    [
        ("Bash", "bash"),
        ("mcp__tracker__get_issue", "get_issue"),
        ("mcp__tracker__getIssue", "get_issue"),
        ("tracker.get_issue", "get_issue"),
        ("tracker/get-issue", "get_issue"),
        ("tracker:GetIssue", "get_issue"),
        ("functions.exec_command", "exec_command"),
        ("replaceStringInFile", "replace_string_in_file"),
        ("apply-diff", "apply_diff"),
        ("Read File", "read_file"),
        ("WebFetch2", "web_fetch2"),
        ("run_tests.", "run_tests"),
        ("run_tests_", "run_tests"),
        ("?", "?"),
        ("__", "__"),
        ("検索", "検索"),
    ],
)
def test_plain_names(tool, plain):
    """Case, server and spelling of the words make no difference; a name without letters stays itself."""
    assert plain_name(tool) == plain


@given(st.text(min_size=1, max_size=80))
def test_every_name_has_a_plain_one_that_stays(name):
    """Whatever a tool is called, its plain name is one, and is plain."""
    plain = plain_name(name)
    assert plain
    assert plain_name(plain) == plain


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        ({"command": "ls"}, "ls"),
        ({"cmd": "ls"}, "ls"),
        ({"cmd": ["bash", "-lc", "make test"]}, "make test"),
        ({"command": ["sh", "-c", "make"]}, "make"),
        ({"command": ["git", "status"]}, "git status"),
        ({"code": "print(1)"}, "print(1)"),
        ({"script": "make", "cwd": "/srv"}, "make"),
        ({"input": "make"}, "make"),
        ({"function": "() => 1"}, "() => 1"),
        ({"expression": "1 + 1"}, "1 + 1"),
        ({"command": "ls", "input": "y"}, "ls"),
        ("ls -l", "ls -l"),
        ({"command": [{}, []]}, "{} []"),
        ({"command": []}, ""),
        ({"command": 7}, ""),
        ({"path": "ls"}, ""),
        (["ls"], ""),
        (None, ""),
        (7, ""),
    ],
)
def test_commands(arguments, command):
    """Where a command stands in the arguments of common agents; anything else is none."""
    assert command_of(arguments) == command


@given(json_values | st.fixed_dictionaries({"command": json_values}))
def test_any_arguments_have_a_command_or_none(arguments):
    """Nothing that an agent sends breaks the reading."""
    assert isinstance(command_of(arguments), str)
