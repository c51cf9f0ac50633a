"""Honest work that looks like a loop: nobody is told to stop, and mostly nobody is told anything."""

import pytest

from schemas.testing import at, tool_call
from tests.detectors.traces import edit, numbered, shell, view

SERVICES = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliet")


def levels(alerts):
    """The levels that were reached."""
    return {alert.level for alert in alerts}


@pytest.mark.parametrize(
    ("tool", "argument", "answer"),
    [
        ("bash", "ls services/{}", "Dockerfile\nmain.go\nREADME.md"),
        ("bash", "head -1 data/{}.csv", "id,name,value"),
        ("Read", "pkg/{}/__init__.py", "     1\t# Licensed to the city archive under the usual terms"),
        ("get_permissions", "{}", {"role": "reader", "teams": ["archive", "harbour"]}),
    ],
)
def test_equal_records_of_different_things_end_nobody(play_weighed, tool, argument, answer):
    """Looking at one thing after the other may bring the same each time."""
    key = "command" if tool == "bash" else "path"
    events = [tool_call(n, tool, {key: argument.format(name)}, answer) for n, name in enumerate(SERVICES)]
    assert "terminate" not in levels(play_weighed(events))


@pytest.mark.parametrize("answer", [{"available": False}, {"blocked": False, "rank": 0}, {"km": 12}])
def test_small_records_are_data(play_weighed, answer):
    """True, false and a number are answers to the question that was asked."""
    assert play_weighed([tool_call(n, "check_name", {"name": name}, answer) for n, name in enumerate(SERVICES)]) == []


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("kubectl get pods", "web-1   0/1   Pending   0   5m"),
        ("aws cloudformation describe-stacks --stack-name s", '{"StackStatus": "CREATE_IN_PROGRESS"}'),
        ("gh run view 1 --json status", '{"status": "in_progress"}'),
        ("curl -s http://jobs.example/12", '{"state": "running"}'),
        ("docker inspect web", "health: starting"),
    ],
)
@pytest.mark.parametrize(("looks", "warned"), [(8, False), (9, True)])
def test_looking_at_what_goes_on_is_polling(play_weighed, command, answer, looks, warned):
    """An answer that says that something is under way has the limits of pollers."""
    alerts = play_weighed([shell(n, command, answer) for n in range(looks)])
    assert bool(alerts) is warned
    assert "terminate" not in levels(alerts)


@pytest.mark.parametrize(
    ("pause_s", "looks", "reached"),
    [(59, 5, {"warn", "terminate"}), (60, 8, set()), (60, 9, {"warn"}), (60, 19, {"warn"})],
)
def test_looking_with_patience_is_polling(play_weighed, pause_s, looks, reached):
    """Whoever lets a minute pass between two looks waits for something, whatever the answer."""
    events = [shell(n, "dig +short www.example", "192.0.2.1", occurred_at=at(n * pause_s)) for n in range(looks)]
    assert levels(play_weighed(events)) == reached


@pytest.mark.parametrize(("pause_s", "reached"), [(9, {"warn", "terminate"}), (10, {"warn"})])
@pytest.mark.parametrize("look", ["gh pr checks 812", "kubectl logs job/a"])
def test_unhurried_polls_end_nobody(play_weighed, look, pause_s, reached):
    """Whoever waits ten seconds between looks waits; faster, a poller spins."""
    rows = [shell(n, look, "(no new output)", occurred_at=at(n * pause_s)) for n in range(40)]
    assert levels(play_weighed(rows)) == reached
    laps = [
        shell(n, look if n % 2 else "sleep 5", "none yet" if n % 2 else "", occurred_at=at(n * pause_s / 2))
        for n in range(40)
    ]
    assert levels(play_weighed(laps)) == reached


@pytest.mark.parametrize(("runs", "reached"), [(14, {"warn"}), (15, {"warn", "terminate"})])
def test_running_a_flaky_test_again_ends_nobody_soon(play_weighed, runs, reached):
    """Five green runs are how one sees that it is mended."""
    events = [shell(n, "pytest tests/test_net.py", f"1 passed in 0.{n}s") for n in range(runs)]
    assert levels(play_weighed(events)) == reached


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("python app.py", "ModuleNotFoundError: No module named '{}'"),
        ("cargo build", "error[E0425]: cannot find function `{}` in this scope"),
        ("npx tsc --noEmit | head -1", "src/{}.ts(4,2): error TS2300: Cannot find name '{}'"),
        ("pytest -x -q", "FAILED tests/test_{}.py::test_{} - E assert 3 == 4"),
    ],
)
def test_mending_one_error_after_the_other_ends_nobody(play_weighed, command, message):
    """What fails is another thing after each accepted edit, though it fails in the same words."""
    events = []
    for n in range(15):
        name = f"{SERVICES[n % 10]}_{SERVICES[n // 10]}"
        events += [edit(0, f"src/{name}.x", f"row {n}"), shell(0, command, message.replace("{}", name), error="red")]
    assert "terminate" not in levels(play_weighed(numbered(events)))


@pytest.mark.parametrize(("tries", "reached"), [(8, set()), (9, {"warn"})])
def test_retrying_an_outage_warns_late(play_weighed, tries, reached):
    """Three tries are common practice."""
    events = [shell(n, "pip install harbour", "503 Service Unavailable", error=503) for n in range(tries)]
    assert levels(play_weighed(events)) == reached


def test_filling_in_a_form_is_no_loop(play_weighed):
    """The page is the same after each field."""
    page = "Page URL: http://shop.example/form\nPage Title: Application form\nThe form is shown"
    events = [tool_call(n, "browser_type", {"ref": f"e{n}", "text": f"text {n}"}, f"typed. {page}") for n in range(12)]
    assert play_weighed(events) == []


@pytest.mark.parametrize(
    "message",
    [
        "HTTPSConnectionPool(host='pkgs.example', port=443): Read timed out.",
        "curl: (7) Failed to connect to pkgs.example port 443",
        "curl: (6) Could not resolve host: pkgs.example",
        "connect: Network is unreachable",
        "dial tcp 192.0.2.1:443: i/o timeout",
    ],
)
def test_retrying_an_outage_ends_nobody(play_weighed, message):
    """What passes by itself is worth another try."""
    events = [shell(n, "pip install harbour", message, error="outage") for n in range(8)]
    assert "terminate" not in levels(play_weighed(events))


@pytest.mark.parametrize(
    "summary",
    [
        "FAILED (failures={})",
        "Tests run: 90, Failures: {}",
        "error: could not compile `harbour` due to {} previous errors",
        "{} failed, 3 passed in 2.1s",
    ],
)
def test_fewer_failures_from_round_to_round_are_progress(play_weighed, summary):
    """Whatever the framework calls them: the count begins anew each time it falls."""
    events = []
    for n in range(18):
        events += [
            edit(0, f"src/p{n}.py", f"row {n}"),
            shell(0, "make verify", summary.format(40 - 2 * n), error="red"),
        ]
    assert play_weighed(numbered(events)) == []


def test_fewer_lines_of_failures_are_progress(play_weighed):
    """Where no summary counts them, the lines of failures do."""
    events = []
    for n in range(18):
        report = "\n".join(f"--- FAIL: TestPart{k} (0.00s)" for k in range(40 - 2 * n))
        events += [edit(0, f"src/p{n}.go", f"row {n}"), shell(0, "go test ./...", report, error="red")]
    assert play_weighed(numbered(events)) == []


def test_going_on_with_a_rebase_is_no_loop(play_weighed):
    """Each time another conflict, resolved in between."""
    events = []
    for n in range(8):
        conflict = f"CONFLICT (content): Merge conflict in src/p{n}.py\nerror: could not apply {n}f1e"
        events += [shell(0, "git rebase --continue", conflict, error="conflict")]
        events += [edit(0, f"src/p{n}.py", f"resolved {n}"), shell(0, f"git add src/p{n}.py", "")]
    assert "terminate" not in levels(play_weighed(numbered(events)))


def test_working_through_a_queue_is_no_loop(play_weighed):
    """The next ticket is another one, and many are closed alike."""
    events = []
    for n in range(20):
        events += [
            tool_call(0, "next_ticket", {}, {"ticket": 700 + n}),
            tool_call(0, "get_ticket", {"id": 700 + n}, f"t {n}"),
        ]
        events += [tool_call(0, "close_ticket", {"resolution": "refunded"}, {"closed": 700 + n})]
    assert play_weighed(numbered(events)) == []


def test_committing_after_each_change_is_no_loop(play_weighed):
    """The command is the same, what it commits is not."""
    events = []
    for n in range(15):
        events += [
            edit(0, f"src/p{n}.py", f"row {n}"),
            shell(0, "git add -A && git commit -m wip", f"[main {n}a1f] wip"),
        ]
    assert play_weighed(numbered(events)) == []


def test_what_another_agent_reports_is_no_failure(play_weighed):
    """It found nothing wrong: that is an answer."""
    events = [tool_call(n, "Task", {"prompt": f"review part {n}"}, "The agent found no bug there.") for n in range(6)]
    assert "same_failure" not in {alert.detector for alert in play_weighed(events)}


def test_placeholders_of_pictures_are_no_answers(play_weighed):
    """What a recording left in the place of a picture says nothing about it."""
    events = [tool_call(n, "view_image", {"path": f"img/{n}.png"}, "[image omitted]") for n in range(12)]
    assert play_weighed(events) == []


def test_stepping_through_a_program_is_seen_to_move(play_weighed):
    """A short screen of a debugger is a result, and another one each time."""
    events = [
        tool_call(n, "send_keys", {"keys": "n\n"}, f"> /app/m.py({20 + n})f()\n-> v{n} = g({n})\n(Pdb)")
        for n in range(20)
    ]
    assert play_weighed(events) == []


def test_reading_between_edits_of_other_files_warns_nobody_early(play_weighed):
    """Coming back to a specification after each part is how one works from it."""
    events = []
    for n in range(5):
        events += [view(0, "spec.md", "the specification"), edit(0, f"src/p{n}.py", f"row {n}")]
    assert levels(play_weighed(numbered(events))) <= {"notice"}
