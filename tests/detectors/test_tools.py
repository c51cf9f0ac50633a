"""Kinds of tools, by names and by their words."""

import pytest

from detectors.tools import Tools, command_of, plain_name, program_of


@pytest.mark.parametrize(
    ("tool", "plain"),
    [
        ("Bash", "bash"),
        ("mcp__github__get_issue", "get_issue"),
        ("mcp__github__getIssue", "get_issue"),
        ("functions.exec_command", "exec_command"),
        ("replaceStringInFile", "replace_string_in_file"),
        ("apply-diff", "apply_diff"),
        ("?", "?"),
        ("__", "__"),
    ],
)
def test_plain_names(tool, plain):
    """Case, server and spelling of the words make no difference."""
    assert plain_name(tool) == plain


@pytest.mark.parametrize(
    ("tool", "kinds"),
    [
        ("bash", {"executes"}),
        ("run_tests", {"executes"}),
        ("get_diagnostics", {"executes"}),
        ("edit", {"edits"}),
        ("replace_string_in_file", {"edits"}),
        ("str_replace_based_edit_tool", {"edits"}),
        ("write_stdin", {"polls"}),
        ("get_terminal_output", {"polls"}),
        ("wait_for_ci", {"polls"}),
        ("update_plan", set()),
        ("todo_write", set()),
        ("think", set()),
        ("browser_click", {"interacts"}),
        ("read_file", set()),
        ("grep", set()),
    ],
)
def test_kinds(tool, kinds):
    """A whole name goes before a word, and planning neither executes nor edits."""
    tools = Tools()
    assert {kind for kind in ("executes", "edits", "polls", "interacts") if getattr(tools, kind)(tool)} == kinds


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        ({"command": "ls"}, "ls"),
        ({"cmd": ["bash", "-lc", "make test"]}, "make test"),
        ({"command": ["git", "status"]}, "git status"),
        ({"code": "print(1)"}, "print(1)"),
        ("ls -l", "ls -l"),
        ({"command": [{}, []]}, "{} []"),
        ({"command": 7}, ""),
        (None, ""),
    ],
)
def test_commands(arguments, command):
    """Where a command stands in the arguments of common agents; anything else is none."""
    assert command_of(arguments) == command


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("go test ./...", "go"),
        ("cd /srv && go test", "go"),
        ("CGO_ENABLED=0 go test", "go"),
        ("sudo /usr/bin/make -j", "make"),
        ("", ""),
    ],
)
def test_programs(command, program):
    """What runs, past directory changes, assignments and wrappers."""
    assert program_of(command) == program
