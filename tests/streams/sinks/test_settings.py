"""What the policy's tables of sinks may say, and that what is wrong is told with the file, the key and the remedy."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from schemas.outputs import NotificationKind
from streams.sinks.choice import REMEMBERED, Choice
from streams.sinks.errors import InvalidSinks
from streams.sinks.run import make
from streams.sinks.secrets import MAX_SECRET_BYTES
from streams.sinks.settings import (
    ALL_KINDS,
    KINDS,
    MAX_SINKS,
    RESOLVING,
    TYPES,
    FileSettings,
    PagerDutySettings,
    read_sinks,
)
from tests.streams.sinks.conftest import MakeNotification

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105 - opens nothing
KEY = "0123456789abcdef0123456789abcdef"

ALL = """
[hooks]
type = "webhook"
url = "https://hooks.example.com/traction"
secret_env = "HOOKS_SECRET"
[team]
type = "slack"
url_env = "SLACK_URL"
kinds = ["terminate"]
[pager]
type = "pagerduty"
region = "eu"
routing_key_env = "PAGERDUTY_KEY"
[forge]
type = "github"
token_env = "GITHUB_TOKEN"
repo = "acme/shop"
[am]
type = "alertmanager"
url = "http://localhost:9093"
[log]
type = "file"
path = "/var/log/traction.jsonl"
[out]
type = "stdout"
format = "markdown"
"""
"""One of each type."""


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the variables that `ALL` names."""
    for name, value in {
        "HOOKS_SECRET": SECRET,
        "SLACK_URL": "https://hooks.slack.com/services/T0/B0/secret",
        "PAGERDUTY_KEY": KEY,
        "GITHUB_TOKEN": "ghp_secret",
    }.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("secrets")
def test_each_type_is_read_and_made() -> None:
    """A table of each type becomes a sink, and none shows a secret in its repr."""
    found = read_sinks(tomllib.loads(ALL), "policy.toml")

    made = [make(each, "policy.toml") for each in found]

    assert [each.settings.name for each in made] == ["hooks", "team", "pager", "forge", "am", "log", "out"]
    assert {type(each) for each in found} == set(TYPES.values())
    shown = repr([(each.settings, each.secrets, vars(each)["settings"]) for each in made])
    assert not [secret for secret in (SECRET, KEY, "ghp_secret", "services/T0") if secret in shown]


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({}, "`type` is missing or unknown; known are: webhook, slack"),
        ({"type": "irc"}, "`type` is missing or unknown"),
        ("slack", "is no table; write [sinks.x]"),
        ({"type": "file", "path": "a", "paht": "b"}, "has no key `paht`; did you mean `path`?"),
        ({"type": "file", "path": "a", "name": "b"}, "has no key `name`"),
        ({"type": "file", "path": 1}, "`path`: Expected `str`, got `int`"),
        ({"type": "file"}, "missing required field `path`"),
        (
            {"type": "file", "path": "a", "kinds": ["terminate", "terminated"]},
            "`kinds[1]` is no kind; did you mean `ter",
        ),
        ({"type": "file", "path": "a", "kinds": ["zzz"]}, f"`kinds[0]` is no kind; known are: {', '.join(ALL_KINDS)}"),
        ({"type": "file", "path": "a", "kinds": [1]}, "`kinds[0]`: Expected `str`, got `int`"),
        (
            {"type": "webhook", "url": "https://10.1.2.3", "secret_env": "A"},
            "`url` is an address that is not public; set",
        ),
        ({"type": "alertmanager", "url": "https://169.254.1.1/a"}, "set allow_private = true"),
        ({"type": "alertmanager", "url": "https://[fe80::1]/a"}, "set allow_private = true"),
        ({"type": "alertmanager", "url": "https://[::ffff:10.1.2.3]"}, "set allow_private = true"),
        (
            {"type": "github", "token_env": "A", "api_url": "https://192.168.0.1"},
            "`api_url` is an address that is not p",
        ),
        ({"type": "file", "path": "a", "give_up_minutes": 0}, "`give_up_minutes`: Expected `float` > 0"),
        ({"type": "file", "path": "a", "give_up_minutes": 1_441}, "`give_up_minutes`: Expected `float` <= 1440"),
        ({"type": "slack"}, "lacks `url_env` or `url_file`; add one of them"),
        ({"type": "slack", "url": "https://a.test"}, "is a secret: name a variable in `url_env` or a file"),
        ({"type": "slack", "url_env": "A", "url_file": "b"}, "`url_env` and `url_file` exclude each other"),
        ({"type": "slack", "url_env": "https://a.test"}, "`url_env`: Expected `str` matching regex"),
        ({"type": "webhook", "secret_env": "A"}, "lacks `url` or `url_env` or `url_file`"),
        ({"type": "webhook", "url": "https://a.test"}, "lacks `secret_env` or `secret_file`"),
        ({"type": "webhook", "url": "ftp://a.test", "secret_env": "A"}, "`url` is no address"),
        ({"type": "webhook", "url": "https://", "secret_env": "A"}, "`url` is no address"),
        ({"type": "webhook", "url": "https://a.test:99999", "secret_env": "A"}, "`url` is no address"),
        ({"type": "webhook", "url": "https://a.test\\@b.test", "secret_env": "A"}, "`url` is no address"),
        ({"type": "webhook", "url": "https://u:p@a.test", "secret_env": "A"}, "has a user name or password"),
        ({"type": "webhook", "url": "http://a.test", "secret_env": "A"}, "set allow_http = true"),
        ({"type": "webhook", "url": "http://localhost.a.test", "secret_env": "A"}, "set allow_http = true"),
        ({"type": "github", "token_env": "A", "repo": "shop"}, "`repo`: Expected `str` matching regex"),
        ({"type": "github", "token_env": "A", "api_url": "http://ghe.test"}, "`api_url` would send unencrypted"),
    ],
)
def test_what_is_wrong_is_told(table: Any, told: str) -> None:
    """A table that cannot be used is refused with its file and name, the key, and what to do."""
    with pytest.raises(InvalidSinks) as caught:
        read_sinks({"x": table}, "policy.toml")

    assert str(caught.value).startswith("policy.toml: [sinks.x]: ")
    assert told in str(caught.value)


@pytest.mark.parametrize("name", ["", "Team", "a b", "-a", "a" * 64, "a.b"])
def test_a_name_that_is_none(name: str) -> None:
    """A name that could not stand in a consumer group and a label is refused; the longest one is taken."""
    assert read_sinks({"a" * 63: {"type": "stdout"}}, "p")
    with pytest.raises(InvalidSinks, match="no name for a sink"):
        read_sinks({name: {"type": "stdout"}}, "p")


def test_the_number_of_sinks_has_a_limit() -> None:
    """As many as the limit are read, one more is not."""
    tables = {f"s{number}": {"type": "stdout"} for number in range(MAX_SINKS)}
    assert len(read_sinks(tables, "p")) == MAX_SINKS
    with pytest.raises(InvalidSinks, match=f"name {MAX_SINKS} at most"):
        read_sinks({**tables, "more": {"type": "stdout"}}, "p")


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://[::1]:1/a", "http://localhost/a", "https://1.1.1.1/a"])
def test_addresses_that_are_taken(url: str) -> None:
    """Unencrypted is enough on this machine, a public address needs nothing, a private one is taken where allowed."""
    assert read_sinks({"x": {"type": "alertmanager", "url": url}}, "p")
    assert read_sinks({"x": {"type": "alertmanager", "url": "https://10.0.0.1/a", "allow_private": True}}, "p")


def test_every_kind_is_listed() -> None:
    """All kinds are told with a wrong one, besides the nearest, and each of them is taken."""
    with pytest.raises(InvalidSinks, match=r"`terminate`.*known are: ") as caught:
        read_sinks({"x": {"type": "stdout", "kinds": ["terminated"]}}, "p")
    assert all(kind in str(caught.value) for kind in ALL_KINDS)
    (settings,) = read_sinks({"x": {"type": "stdout", "kinds": list(ALL_KINDS)}}, "p")
    assert settings.kinds == ALL_KINDS


def test_a_secret_is_read_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file's content without blanks is the secret; a changed one makes another sink, one written anew the same."""
    file = tmp_path / "key"
    (settings,) = read_sinks({"x": {"type": "pagerduty", "routing_key_file": str(file)}}, "p")
    file.write_text(f"{KEY}\n")
    first = make(settings, "p")
    file.write_text(f" {KEY}")
    assert first.same(make(settings, "p"))
    file.write_text("f" * 32)
    assert not first.same(make(settings, "p"))

    for content, told in ((b"", "is empty"), (b"\xff", "is not UTF-8"), (b"a" * (MAX_SECRET_BYTES + 1), "longer than")):
        file.write_bytes(content)
        with pytest.raises(InvalidSinks, match=told):
            make(settings, "p")
    file.unlink()
    with pytest.raises(InvalidSinks, match="cannot be read"):
        make(settings, "p")

    monkeypatch.delenv("NOT_SET", raising=False)
    with pytest.raises(InvalidSinks, match="the variable NOT_SET is not set"):
        make(read_sinks({"x": {"type": "pagerduty", "routing_key_env": "NOT_SET"}}, "p")[0], "p")


@pytest.mark.parametrize(
    ("table", "secret", "told"),
    [
        ({"type": "pagerduty", "routing_key_env": "S"}, KEY[1:], "32 letters and digits"),
        ({"type": "github", "token_env": "S"}, "ghp_one\nghp_two", "one word"),
        ({"type": "github", "token_env": "S"}, "ghp_\xfc", "one word"),
        ({"type": "slack", "url_env": "S"}, "hooks.slack.com/secret", "is no address"),
        ({"type": "slack", "url_env": "S"}, "http://hooks.slack.com/secret", "would send unencrypted"),
        ({"type": "slack", "url_env": "S"}, "https://10.1.2.3/secret", "is an address that is not public"),
        ({"type": "webhook", "url": "https://a.test", "secret_env": "S"}, SECRET[6:], "is not whsec_"),
        ({"type": "webhook", "url": "https://a.test", "secret_env": "S"}, "whsec_c2hvcnQ=", "24 to 64"),
        ({"type": "webhook", "url": "https://a.test", "secret_env": "S"}, f"{SECRET} whsec_?", "24 to 64"),
    ],
)
def test_a_secret_that_is_none(table: Any, secret: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be the secret is refused when the sink is made, and is not quoted."""
    monkeypatch.setenv("S", secret)
    with pytest.raises(InvalidSinks, match=told) as caught:
        make(read_sinks({"x": table}, "p")[0], "p")
    assert secret not in str(caught.value)


def test_a_sink_tells_what_it_was_chosen_for(notification: MakeNotification) -> None:
    """The policy's choice and the kinds decide; by default what asks for a person, and that it is over."""
    choice = Choice(FileSettings(name="log", path="p"))
    assert choice.wanted(notification())
    assert choice.wanted(notification(sinks=("a", "log")))
    assert not choice.wanted(notification(sinks=()))
    assert not choice.wanted(notification(sinks=("other",)))
    kinds: tuple[NotificationKind, ...] = NotificationKind.__args__  # type: ignore[attr-defined]
    assert {kind for kind in kinds if choice.wanted(notification(kind=kind, incident_id=kind))} == set(KINDS)
    assert set(KINDS) >= set(RESOLVING)


def test_that_it_is_over_is_told_where_it_was_told_that_it_began(notification: MakeNotification) -> None:
    """Where the begin of an incident was not this sink's to tell, its end is not; where that is not known, it is."""
    choice = Choice(FileSettings(name="log", path="p"))
    assert not choice.wanted(notification(kind="inject_guidance"))
    assert not choice.wanted(notification(kind="recovered", resolves=True))
    assert choice.wanted(notification(kind="terminate"))
    assert choice.wanted(notification(kind="recovered", resolves=True))
    assert choice.wanted(notification(kind="recovered", resolves=True, incident_id="of before the start"))


def test_an_open_incident_is_always_resolved(notification: MakeNotification) -> None:
    """A pager is told that it is over, whatever kinds it tells."""
    choice = Choice(PagerDutySettings(name="pager", kinds=("terminate",)))
    assert not choice.wanted(notification(kind="escalate_human"))
    assert choice.wanted(notification(kind="ended", resolves=True))
    assert not choice.wanted(notification(kind="ended", resolves=True, sinks=("other",)))


def test_what_was_delivered_is_not_wanted_again(notification: MakeNotification) -> None:
    """A repeated notification is dropped as long as it is remembered, and memory is bounded."""
    choice = Choice(FileSettings(name="log", path="p"))
    for number in range(REMEMBERED + 1):
        choice.delivered(notification(f"n{number}"))
    assert not choice.wanted(notification("n1"))
    assert choice.wanted(notification("n0"))


def test_secrets_are_not_in_settings() -> None:
    """No setting of any type holds a secret itself: those that may are variables and files."""
    for kind in TYPES.values():
        for secret in kind.secrets:
            fields = {field.name for field in msgspec.structs.fields(kind)}
            assert secret not in fields
            assert {f"{secret}_env", f"{secret}_file"} <= fields
