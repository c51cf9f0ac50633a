"""Excerpts: short, one line, without secrets."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detectors.excerpt import call_excerpt, cut, excerpt, redact
from tests.detectors.reading import json_values

SECRETS = [
    "password=hunter2hunter2",
    'api_key: "hunter2hunter2"',
    "Authorization: Bearer hunter2hunter2",
    "AWS_SECRET_ACCESS_KEY=hunter2hunter2",
    "sk-hunter2hunter2hunter2",
    "ghp_hunter2hunter2hunter2",
    "https://user:hunter2hunter2@example.org/x",
    "eyJhunter2hunter2.hunter2hunter2.sig",
    "token=hunter2hunter2",
    "-----BEGIN RSA PRIVATE KEY-----\nhunter2hunter2",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_credentials_are_taken_out(secret):
    """Each common form of a credential is replaced."""
    assert "hunter2" not in redact(f"run {secret}")
    assert "hunter2" not in excerpt(f"run {secret}", 400)


LEAKS = [
    "mysql -u root -phunter2hunter2 db",
    "curl -u admin:hunter2hunter2 https://x",
    "psql postgres://u:p@hunter2hunter2@h/db",
    "redis-cli -u redis://:hunter2hunter2@h",
    "tool --password hunter2hunter2",
    "tool --api-key hunter2hunter2",
    "docker login -u a -p hunter2hunter2",
    "sshpass -p hunter2hunter2 ssh h",
    "export DB_PASS=hunter2hunter2",
    "curl -H 'Authorization: token hunter2hunter2'",
    'curl -H "Authorization: Digest a hunter2hunter2"',
    "git clone https://github_pat_11hunter2hunter2@github.com/x",
    "echo AIzaSyA-hunter2hunter2hunter2",
    'export SECRET_KEY="first hunter2hunter2"',
    "the password is hunter2hunter2",
]


@pytest.mark.parametrize("command", LEAKS)
def test_credentials_in_command_lines_are_taken_out(command):
    """Options, assignments, headers and addresses as people write them."""
    assert "hunter2" not in call_excerpt("bash", {"command": command}, 400)


@pytest.mark.parametrize(
    "arguments",
    [
        {"password": "first hunter2hunter2"},
        {"password": "a,hunter2&hunter2}hunter2"},
        {"auth": {"passphrase": "hunter2hunter2"}},
        {"pin": "hunter2", "pass": "hunter2"},
        {"private_key": "hunter2hunter2"},
        {"credentials": {"user": "x", "key": "hunter2hunter2"}},
        {"secret": ["x", "hunter2hunter2"]},
        {"headers": [{"name": "X-Api-Key", "value": "hunter2 hunter2"}]},
        {"selector": "#password", "text": "hunter2hunter2"},
        {"body": json.dumps({"password": 'a"hunter2hunter2'})},
        {"body": json.dumps(json.dumps({"password": "hunter2hunter2"}))},
    ],
)
def test_values_under_telling_names_are_taken_out_whole(arguments):
    """Where the name is known, nothing of the value is kept, whatever characters it has."""
    assert "hunter2" not in call_excerpt("login", arguments, 400)


@pytest.mark.parametrize("pad", range(0, 110, 7))
def test_a_cut_never_exposes_a_part_of_a_credential(pad):
    """Wherever the cut falls, the secret is gone before it."""
    for secret in ("password=hunter2hunter2hunter2", "sk-hunter2hunter2hunter2", "https://u:hunter2hunter2@h"):
        assert "hunter" not in excerpt("x" * pad + f" {secret}", 100)


@given(st.text(), st.integers(0, 200))
def test_excerpts_are_one_line_within_their_limit(text, limit):
    """No control characters, never longer than asked."""
    line = excerpt(text, limit)
    assert len(line) <= limit
    assert line.isprintable() or not any(ord(char) < 32 for char in line)


@given(json_values, json_values.map(json.dumps))
def test_any_call_has_an_excerpt_within_its_limit(value, body):
    """Whatever an agent sends, its excerpt is one bounded line that gives no password away."""
    for arguments in (value, {"password": "hunter2hunter2", "more": value, "body": body}):
        line = call_excerpt("login", arguments, 80)
        assert line.startswith("login" if arguments is None else "login(")
        assert len(line) <= len("login()") + 80
        assert not any(ord(char) < 32 for char in line)
        assert "hunter2" not in line


def test_a_cut_never_falls_inside_a_character():
    """What is kept in the state is bounded in bytes, and stays text."""
    assert cut("ééé", 3) == "é"
    assert excerpt("é" * 100, 100) == "é" * 75
    assert len(excerpt("漢" * 100, 100).encode()) <= 150
    assert cut("abc", 3) == "abc"
    assert cut("a\ud800b", 9) == "a?b"


def test_calls_read_like_calls():
    """Tool and arguments in the order they came; the name alone when no excerpts are wanted."""
    assert call_excerpt("grep", {"pattern": "TODO", "path": "src", "n": 3}, 100) == "grep(pattern=TODO, path=src, n=3)"
    assert call_excerpt("bash", "ls -l", 100) == "bash(ls -l)"
    assert call_excerpt("bash", {"command": "ls"}, 0) == "bash"


@pytest.mark.parametrize("depth", [64, 65, 255, 1_000, 5_000])
@pytest.mark.parametrize("around", ["{}", '{{"a": {}}}'])
def test_texts_that_are_deep_json_break_nothing(depth, around):
    """A file's content may be any JSON, nested as it likes."""
    content = around.format("[" * depth + "]" * depth)
    assert call_excerpt("write_file", {"content": json.dumps({"x": content})}, 100).startswith("write_file(")
    assert call_excerpt("write_file", {"content": content}, 100).startswith("write_file(")
    assert call_excerpt("write_file", content, 100).startswith("write_file(")
