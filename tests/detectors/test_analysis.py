"""Analysis loops: looking without doing anything, by role and profile; what is exempt, and when it is a warning."""

import pytest

from schemas.common import Agent
from schemas.testing import at, control, session_event, tool_call
from tests.detectors.traces import edit, found, numbered, shell, think, view, work

AT_ONCE = {"analysis.exempt": 0}
"""For tests of what comes after the opening: no call is exempt."""


def looks(count):
    """Reads and searches that bring something new each time."""
    return [
        view(n, f"src/{n}.py", f"module {n}")
        if n % 2
        else tool_call(n, "grep", {"pattern": f"name_{n}", "path": "src"}, f"src/{n}.py: name_{n}")
        for n in range(count)
    ]


def analysis(alerts):
    """Level and position of what the rule found."""
    return [(level, seq) for level, _, seq in found(alerts, "analysis")]


@pytest.mark.parametrize(("exempt", "seq"), [(0, 4), (4, 4), (5, 5), (20, 20), (30, 30)])
def test_the_opening_of_a_task_is_exempt(play, exempt, seq):
    """Real work opens with reading: five looks are too many only once the first calls are over."""
    assert play(looks(seq), {"analysis.exempt": exempt}) == []
    assert analysis(play(looks(seq + 1), {"analysis.exempt": exempt})) == [("notice", seq)]


def test_twenty_calls_are_exempt_by_default(play):
    """The twenty-first look in a row is the first that says something."""
    assert play(looks(20)) == []
    assert analysis(play(looks(21))) == [("notice", 20)]


@pytest.mark.parametrize("waits", [(), (shell(0, "sleep 30", ""),)], ids=["at once", "after a sleep"])
def test_asking_again_how_something_is_getting_on_is_one_look(play, waits):
    """A build that answers otherwise each of sixty times is waited for; looks at so many builds are an analysis."""
    asked, others = list(waits), list(waits)
    for n in range(60):
        asked += [shell(n, "curl -s http://ci/build/7", f"step {n}: {n * 37 % 91} files"), *waits]
        others += [shell(n, f"curl -s http://ci/build/{n}", f"log of part {n}"), *waits]
    assert analysis(play(numbered(asked))) == []
    assert analysis(play(numbered(others))) != []


@pytest.mark.parametrize(
    "opens", [session_event(30, "user_message"), session_event(30, "started"), control(30, "reset")]
)
def test_a_new_task_opens_anew(play, opens):
    """Who was told something new reads first."""
    assert play([*numbered(work(n) for n in range(30)), opens, *numbered([*[work(0)] * 30, *looks(20)])[30:]]) == []


@pytest.mark.parametrize(("role", "threshold"), [("code", 5), ("debugger", 6), ("orchestrator", 7), ("explore", 10)])
def test_each_role_has_its_threshold(play, role, threshold):
    """Who explores by profession looks longer."""
    events = [tool_call(n, "read", {"path": f"{n}.py"}, f"{n}", agent=Agent(role=role)) for n in range(threshold)]
    assert play(events[:-1], AT_ONCE) == []
    assert analysis(play(events, AT_ONCE)) == [("notice", threshold - 1)]


@pytest.mark.parametrize("agent", [None, Agent(name="codex"), Agent(role="gardener")])
def test_roles_nobody_knows_have_the_common_threshold(play, agent):
    """Five, as the profile says."""
    events = [tool_call(n, "read", {"path": f"{n}.py"}, f"{n}", agent=agent) for n in range(5)]
    assert play(events[:-1], AT_ONCE) == []
    assert analysis(play(events, AT_ONCE)) == [("notice", 4)]


@pytest.mark.parametrize(("profile", "threshold"), [("standard", 5), ("conservative", 8), ("aggressive", 3)])
@pytest.mark.parametrize("role", [None, "debugger"])
def test_a_profile_other_than_the_standard_goes_before_the_role(play, profile, threshold, role):
    """Who chooses a profile means it for everybody; the standard one leaves roles theirs."""
    threshold = 6 if role and profile == "standard" else threshold
    limits = {**AT_ONCE, "analysis.profile": profile}
    events = [tool_call(n, "read", {"path": f"{n}.py"}, f"{n}", agent=Agent(role=role)) for n in range(threshold)]
    assert play(events[:-1], limits) == []
    assert analysis(play(events, limits)) == [("notice", threshold - 1)]


def test_thresholds_of_roles_are_limits(play):
    """A role of one's own is one more line; the alert says where the number came from."""
    events = [tool_call(n, "read", {"path": f"{n}.py"}, f"{n}", agent=Agent(role="reviewer")) for n in range(12)]
    limits = {**AT_ONCE, "analysis": {"roles": {"reviewer": 12}}}
    assert play(events[:-1], limits) == []
    (alert,) = play(events, limits)
    (limit,) = alert.limits
    assert (limit.value, limit.layer) == (12, "test")


@pytest.mark.parametrize(
    "step", [edit(0, "a.py", "x"), shell(0, "pytest", "3 passed"), shell(0, "python -c 'print(1)'", "1")]
)
def test_doing_something_starts_over(play, step):
    """Four looks, a step, four looks are no eight."""
    events = [*looks(4), step, *looks(8)[4:]]
    assert play(numbered(events), AT_ONCE) == []


@pytest.mark.parametrize("step", [think(0, "what now"), tool_call(0, "todo_write", {"todos": ["read"]}, "ok")])
def test_thoughts_and_notes_neither_add_nor_start_over(play, step):
    """Planning what to read is no doing."""
    events = numbered([*looks(4), step, *looks(5)[4:]])
    assert play(events[:-1], AT_ONCE) == []
    assert analysis(play(events, AT_ONCE)) == [("notice", 5)]


def test_waiting_is_no_looking(play):
    """Asking how a build gets on is not analysis."""
    events = [tool_call(n, "get_job_status", {"job": 7}, f"{n} of 90") for n in range(49)]
    assert analysis(play(events, AT_ONCE)) == []


@pytest.mark.parametrize(
    "line", ["cat src/{}.py", "sed -n '{}p' src/a.py", "grep -rn name_{} src", "ls -la pkg/{}", "git show HEAD~{}"]
)
def test_looks_on_a_command_line_are_looks(play, line):
    """An agent with nothing but a shell reads with it."""
    events = [shell(n, line.format(n), f"found {n}") for n in range(1, 6)]
    assert analysis(play(events, AT_ONCE)) == [("notice", 4)]


def test_explore_mode_by_control_event(play):
    """A session that was told to explore may look as long as it likes; told otherwise, it may not."""
    explore = control(0, "mode", mode="explore", event_id="m1")
    calls = looks(60)
    assert play([explore, *calls], AT_ONCE) == []
    assert analysis(play([explore, *calls[:30], control(30, "force"), *calls[30:]], AT_ONCE))[0] == ("notice", 30)
    neither = control(30, "mode", event_id="m2")
    assert analysis(play([explore, *calls[:30], neither, *calls[30:]], AT_ONCE))[0] == ("notice", 30)


@pytest.mark.parametrize(("until", "seq"), [(9.5, 10), (10, 10), (10.5, 11)])
def test_explore_mode_until_it_expires(play, until, seq):
    """What was allowed until some time counts from then on."""
    calls = [view(n, f"part{n}.py", f"content {n}") for n in range(40)]
    explore = control(0, "mode", mode="explore", event_id="m1", expires_at=at(until))
    assert analysis(play([explore, *calls], AT_ONCE))[0] == ("notice", seq)


def test_explore_mode_by_override_goes_before_the_control_event(play):
    """What a standing exception says holds for the session, whatever it was told before."""
    explore = control(0, "mode", mode="explore", event_id="m1")
    assert play(looks(60), {**AT_ONCE, "session_mode": "explore"}) == []
    alerts = play([explore, *looks(6)], {**AT_ONCE, "session_mode": "implement"})
    assert analysis(alerts) == [("notice", 4)]


def test_notices_come_at_double_the_count(play):
    """Guidance is repeated when it changed nothing: at 5, 10 and 20 looks, each of them for the agent to read."""
    assert analysis(play(looks(39), AT_ONCE)) == [("notice", 4), ("notice", 9), ("notice", 19)]


def test_two_notices_ignored_and_forty_looks_are_a_warning(play):
    """Guidance was given twice and nothing was done: somebody should look."""
    assert "warn" not in {level for level, _ in analysis(play(looks(39), AT_ONCE))}
    assert analysis(play(looks(40), AT_ONCE))[-1] == ("warn", 39)


@pytest.mark.parametrize(
    ("interventions", "ignored", "seq"), [(1, 6, 5), (2, 6, 10), (2, 15, 14), (3, 15, 20), (4, 40, 40)]
)
def test_how_much_guidance_may_be_ignored_is_a_limit(play, interventions, ignored, seq):
    """Both must be reached, the number of notices and that of looks."""
    limits = {**AT_ONCE, "analysis.interventions": interventions, "analysis.ignored_warn": ignored}
    alerts = analysis(play(looks(41), limits))
    assert next(at for level, at in alerts if level == "warn") == seq


@pytest.mark.parametrize(("rereads", "level"), [(5, "notice"), (6, "warn")])
def test_together_with_rereads_it_is_a_warning(play, rereads, level):
    """Looking without end at what was seen already: six times over is the rereads' own warning."""
    again = [step for n in range(rereads) for step in (view(0, "plan.md", "the plan"), *looks(2 * n + 2)[2 * n :])]
    last = 3 * rereads - 3
    assert analysis(play(numbered(again[: last + 1]), {"analysis.exempt": last})) == [(level, last)]


def test_rereads_before_the_latest_doing_do_not_count(play):
    """They belong to another stretch."""
    before = [step for n in range(6) for step in (view(0, "plan.md", "the plan"), *looks(2 * n + 2)[2 * n :])]
    events = numbered([*before, shell(0, "make", "built"), *looks(25)[18:]])
    assert analysis(play(events, {"analysis.exempt": 19})) == [("notice", 23)]


def test_guidance_before_the_latest_doing_does_not_count(play):
    """What was ignored in another stretch was not ignored in this one."""
    limits = {**AT_ONCE, "analysis.interventions": 2, "analysis.ignored_warn": 6}
    events = numbered([*looks(10), shell(0, "make", "built"), *looks(19)[10:]])
    assert "warn" not in {level for level, _ in analysis(play(events, limits))}
    assert ("warn", 10) in analysis(play(looks(11), limits))


def test_it_never_terminates(play):
    """However long somebody looks, that alone is no reason to stop them."""
    assert {level for level, _ in analysis(play(looks(399)))} == {"notice", "warn"}


def test_the_guidance_asks_to_act(play):
    """The notice is for the agent: how long it has looked, and that a first step is due."""
    (alert,) = play(looks(5), AT_ONCE)
    assert (alert.level, alert.count, alert.detector) == ("notice", 5, "analysis")
    assert "5 calls in a row only read or search" in alert.reasoning
    assert "smallest change" in alert.guidance
