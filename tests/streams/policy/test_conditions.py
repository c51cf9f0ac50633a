"""For whom rules hold: globs match by parts, and go by nothing that a session's state does not remember."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from detectors import Limits, SessionState, step
from detectors.who import MAX_TASK_PATHS, NAME_BYTES
from schemas.common import Agent, Task
from schemas.events import SessionEvent
from streams.policy.conditions import Facts, Glob, InvalidGlob, When, facts_of, read_glob


def when(**globs: str) -> When:
    """Build a condition."""
    return When(**{field: (read_glob(glob),) for field, glob in globs.items()})


@pytest.mark.parametrize(
    ("glob", "matching", "others"),
    [
        ("acme/docs", ["acme/docs"], ["acme/docs2", "acme", "acme/docs/x", "Acme/docs"]),
        ("acme/*", ["acme/docs", "acme/a"], ["acme", "acme/a/b", "xacme/a"]),
        ("acme/**", ["acme/docs", "acme/a/b", "acme"], ["acmex/a"]),
        ("*", ["code"], ["a/b"]),
        ("**", ["code", "a/b/c"], []),
        ("auth/", ["auth", "auth/login.py", "auth/a/b", "./auth/a"], ["src/auth/a", "author/a"]),
        ("**/auth/**", ["auth", "src/auth/a.py", "a/b/auth/c/d", "/src/auth/x"], ["src/author/a", "oauth/a"]),
        ("**/*.sql", ["a.sql", "db/up/1.sql"], ["a.sqlx", "sql"]),
        ("src/*/api/**/v?.py", ["src/a/api/v1.py", "src/a/api/b/c/v2.py"], ["src/api/v1.py", "src/a/api/v10.py"]),
        ("[a-c]x", ["ax", "cx"], ["dx", "x"]),
        ("[!a]x", ["bx"], ["ax"]),
        ("[[]x", ["[x"], ["x"]),
        ("a.b+c", ["a.b+c"], ["aXb+c"]),
    ],
)
def test_globs(glob: str, matching: list[str], others: list[str]) -> None:
    """A star stays within its part, two stars as a part of their own do not, and nothing else is special."""
    found = read_glob(glob)
    assert [name for name in matching if not found.matches(name)] == []
    assert [name for name in others if found.matches(name)] == []


def test_a_glob_takes_no_time_on_long_names() -> None:
    """Many stars do not make it try each way to share a name out: that would freeze a worker."""
    many = read_glob("/".join(["**", "*a*a*a*a*a*a*a*b"] * 8))
    assert not many.matches("/".join(["a" * 40] * 40))


@pytest.mark.parametrize(
    ("glob", "told"),
    [
        ("", "is empty"),
        ("/", "is empty"),
        (" a", "blank"),
        ("a\t", "blank"),
        ("a\x00b", "control characters"),
        ("a**", "has ** beside other characters"),
        ("src/**.py", "has ** beside other characters"),
        ("[z-a]", "none is in"),
        ("a[bc", "not closed"),
        ("a[]", "not closed"),
        ("x" * (NAME_BYTES + 1), f"longer than the {NAME_BYTES} bytes"),
        ("ö" * (NAME_BYTES // 2) + "x", f"longer than the {NAME_BYTES} bytes"),
    ],
)
def test_globs_that_never_match(glob: str, told: str) -> None:
    """They are refused with what to write instead."""
    with pytest.raises(InvalidGlob, match=re.escape(told)) as refused:
        read_glob(glob)
    assert ": " in str(refused.value)


def test_a_glob_as_long_as_a_name_can_be() -> None:
    """One just as long as what is remembered matches it; stars add nothing to the length."""
    name = "x" * NAME_BYTES
    assert read_glob(name).matches(name)
    assert read_glob(f"**/*{name}").matches(name)


def test_each_field_that_is_asked_for_must_match() -> None:
    """All fields, any glob of a field, any path of the task; what is not known matches nothing, not even a star."""
    facts = Facts("acme/shop", "code", "bugfix", ("src/a.py", "auth/b.py"))
    assert when(repo="acme/*", role="code", task_type="bug*", paths="auth/").holds(facts)
    for field in ("repo", "role", "task_type", "paths"):
        assert not when(**{"repo": "acme/*", field: "other"}).holds(facts)
        assert not when(**{field: "**"}).holds(Facts())
    assert When(role=(read_glob("x"), read_glob("code"))).holds(facts)
    assert When().holds(Facts())


def test_facts_are_what_the_state_remembers() -> None:
    """What an event says and what its session's state says afterwards is one to a rule: paths and long names too."""
    paths = tuple(f"src/{number}/{'y' * 100}" for number in range(MAX_TASK_PATHS + 1))
    agent, task = Agent(role="r" * 200), Task(repo="o/" + "ö" * 100, type="t" * 200, paths=paths)
    state = SessionState()
    at = datetime(2026, 1, 1, tzinfo=UTC)
    event = SessionEvent(event_id="e", session_id="s", occurred_at=at, kind="started", agent=agent, task=task)
    step(state, event, Limits())
    assert facts_of(state.agent, state.task) == facts_of(agent, task)
    asked = [when(paths=f"src/{number}/*").holds(facts_of(agent, task)) for number in range(MAX_TASK_PATHS + 1)]
    assert asked == [*[True] * MAX_TASK_PATHS, False]


def test_paths_of_windows_are_matched_by_their_parts() -> None:
    """A rule for sensitive paths holds wherever the agent runs."""
    facts = facts_of(None, Task(paths=("C:\\src\\auth\\login.py",)))
    assert when(paths="**/auth/**").holds(facts)
    assert not when(paths="auth/**").holds(facts)


def test_empty_names_are_not_said() -> None:
    """A role or repository that is an empty text is none."""
    assert facts_of(Agent(role=""), Task(repo="", type="")) == facts_of(None, None) == Facts()


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ({"repo": "a/x"}, {"repo": "a/y"}, True),
        ({"repo": "a/x"}, {"repo": "b/*"}, True),
        ({"repo": "a/x"}, {"repo": "a/*"}, False),
        ({"repo": "a/x*"}, {"repo": "a/y*"}, False),
        ({"repo": "a/x"}, {"role": "code"}, False),
        ({"repo": "a/x", "role": "code"}, {"repo": "a/*", "role": "review"}, True),
        ({"paths": "a"}, {"paths": "b"}, False),
    ],
)
def test_conditions_that_exclude_each_other(one: dict[str, str], other: dict[str, str], apart: bool) -> None:  # noqa: FBT001
    """Plain cases are seen both ways round; a task has many paths, so that these exclude nothing."""
    assert when(**one).excludes(when(**other)) is apart
    assert when(**other).excludes(when(**one)) is apart


def test_lists_of_names_are_compared_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of repositories in each of many rules are checked while a worker goes on: none is matched by one."""
    monkeypatch.delattr(Glob, "matches")
    names = [tuple(read_glob(f"acme/{half}{number}") for number in range(500)) for half in "ab"]
    first, second = (When(repo=globs) for globs in names)
    assert first.excludes(second)
    assert not first.excludes(When(repo=(*names[1], read_glob("acme//a7"))))
