"""Rereads: reading what was read, by coverage; what is progress in it and what clears it."""

import pytest
from msgspec import UNSET

from detectors import Limits, SessionState, observe
from schemas.testing import at, session_event, tool_call
from tests.detectors.traces import click, edit, found, numbered, reached, shell, view

WHOLE = view(0, "notes/plan.md", "the plan in ten points")
OTHERS = [view(0, f"src/{n}.py", f"module {n}") for n in range(40)]
"""Reads of other files, to lie in between, so that only coverage sees the loop."""


def spaced(reads):
    """The reads with one of another file before each."""
    return numbered(call for turn in zip(OTHERS, reads, strict=False) for call in turn)


def chapter(first, lines=100, text="", path="book.txt"):
    """A read of some lines of one long file."""
    return view(0, path, text or f"lines {first} and on", offset=first, limit=lines)


def rounds(pages, times, lines=100):
    """Reads of a file from beginning to end, so many times over."""
    return [chapter(1 + lines * page, lines) for page in range(pages)] * times


def rereads(alerts):
    """Level and position of what the rule found."""
    return [(level, seq) for level, _, seq in found(alerts, "rereads")]


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (2, []),
        (3, [("notice", 5)]),
        (5, [("notice", 5)]),
        (6, [("notice", 5), ("warn", 11)]),
        (11, [("notice", 5), ("warn", 11)]),
        (12, [("notice", 5), ("warn", 11), ("warn", 23)]),
    ],
)
def test_whole_reads_are_noticed_at_three_and_warned_about_at_six(play, times, expected):
    """Nobody is paged for the third read; the next warning comes at double the count; it never terminates."""
    alerts = play(spaced([WHOLE] * times), {"session_mode": "explore", "identical.window_warn": 7})
    assert rereads(alerts) == expected
    assert {alert.limits[0].name for alert in alerts if alert.detector == "rereads"} <= {
        "rereads.notice",
        "rereads.warn",
    }


@pytest.mark.parametrize(
    "read",
    [
        shell(0, "cat notes/plan.md", "the plan"),
        tool_call(0, "mcp__files__read_text_file", {"path": "notes/plan.md"}, "the plan"),
        tool_call(0, "str_replace_editor", {"command": "view", "path": "notes/plan.md"}, "the plan"),
        tool_call(0, "get_issue", {"owner": "o", "repo": "r", "issue_number": 7}, {"title": "the plan"}),
        tool_call(0, "web_fetch", {"url": "https://example.org/plan"}, "the plan"),
    ],
)
def test_whatever_tool_reads_it(play, read):
    """Files, records and pages are read by tools of many names."""
    assert rereads(play(spaced([read] * 3))) == [("notice", 5)]


@pytest.mark.parametrize("pages", [4, 15])
def test_paging_through_a_file_once_is_progress(play, pages):
    """Each read brings new lines, however many there are of one file."""
    assert play(numbered(rounds(pages, 1)), {"session_mode": "explore"}) == []


@pytest.mark.parametrize("pages", [2, 3, 5, 8])
def test_paging_round_and_round_a_file_is_noticed_with_the_third_round(play, pages):
    """No two calls in a row are equal, and yet nothing new is read."""
    alerts = play(numbered(rounds(pages, 3)), {"session_mode": "explore"})
    assert rereads(alerts)[:1] == [("notice", 2 * pages)]


@pytest.mark.parametrize("pages", [2, 3, 5, 8, 9, 15, 24])
def test_paging_round_and_round_a_file_of_any_length_is_warned_about(play, pages):
    """Where a file has more pages than the coverage remembers, they are known as revisits."""
    assert "warn" in {alert.level for alert in play(numbered(rounds(pages, 6)), {"session_mode": "explore"})}


def test_three_pages_six_times_over_are_warned_about_as_rereads(play):
    """The warning needs no equal results in order: each round reads the pages in another one."""
    order = [0, 1, 2, 0, 2, 1, 1, 0, 2, 1, 2, 0, 2, 0, 1, 2, 1, 0]
    alerts = play(spaced([chapter(1 + 100 * page) for page in order]), {"identical.window_warn": 7})
    assert [level for level, _ in rereads(alerts)] == ["notice", "warn"]


@pytest.mark.parametrize(("new", "count"), [(9, 1), (11, 0)])
def test_a_read_with_a_tenth_of_new_lines_is_progress(play, new, count):
    """Windows that overlap move on; what counts is the share of lines that were not read before."""
    reads = [chapter(1), chapter(1 + new)]
    assert rereads(play(spaced(reads), {"rereads.notice": 2})) == [("notice", 3)] * count


@pytest.mark.parametrize(("share", "count"), [(0.3, 1), (0.2, 0)])
def test_the_share_of_new_lines_is_a_limit(play, share, count):
    """A quarter of new lines is next to nothing where a setting says so."""
    reads = [chapter(1), chapter(26)]
    limits = {"rereads.notice": 2, "rereads.new_share": share}
    assert rereads(play(spaced(reads), limits)) == [("notice", 3)] * count


def test_smaller_windows_inside_a_larger_one_are_rereads(play):
    """Looking at parts of what was read as a whole brings nothing new."""
    inside = [chapter(1, 400), chapter(50, 100), chapter(300, 20), chapter(50, 60)]
    assert rereads(play(spaced(inside))) == [("notice", 7)]
    whole = [view(0, "book.txt", "all of it"), view(0, "book.txt", "all of it"), chapter(300)]
    assert rereads(play(spaced(whole))) == [("notice", 5)]


def test_a_whole_read_after_parts_is_new(play):
    """Parts do not tell how much of the file was still unread."""
    assert play(spaced([chapter(1), chapter(101), chapter(201), view(0, "book.txt", "all of it")])) == []


def test_ranges_without_an_end_are_known_by_where_they_begin(play):
    """From line 500 on, three times; from three different lines on, not."""
    assert rereads(play(spaced([view(0, "a.log", "tail", offset=500)] * 3))) == [("notice", 5)]
    assert play(spaced([view(0, "a.log", f"from {n}", offset=500 + n) for n in range(9)])) == []


@pytest.mark.parametrize("command", ["sed -n '{},{}p' src/big.c", "awk 'NR>={} && NR<={}' src/big.c"])
def test_lines_asked_for_on_a_command_line_are_lines(play, command):
    """Agents with nothing but a shell page with filters; one time through a file is progress for them as well."""
    once = [shell(0, command.format(1 + 80 * n, 80 + 80 * n), f"part {n}") for n in range(9)]
    assert play(numbered(once)) == []


def test_an_edit_of_the_file_clears(play):
    """Who changed a file may read it again."""
    change = edit(0, "notes/plan.md", "eleven points")
    assert rereads(play(spaced([WHOLE, WHOLE, change, WHOLE, WHOLE]))) == []
    assert rereads(play(spaced([WHOLE, WHOLE, change, WHOLE, WHOLE, WHOLE]))) == [("notice", 11)]


@pytest.mark.parametrize("command", ["git pull", "git reset --hard", "git checkout main", "git stash pop"])
def test_an_edit_of_a_file_that_is_not_named_clears(play, command):
    """Which files it changed, nobody knows."""
    change = shell(0, command, "12 files changed")
    assert rereads(play(spaced([WHOLE, WHOLE, change, WHOLE, WHOLE]))) == []


def test_acting_in_a_world_or_an_interface_clears(play):
    """What is looked at there may be another after each step; scrolling is no step."""
    look = tool_call(0, "get_page_text", {"tab": 1}, "the cart is empty but for shoes")
    pressed = [step for n in range(6) for step in (look, click(0, f"button {n}"))]
    assert found(play(numbered(pressed)), "rereads") == []
    scrolled = [step for n in range(3) for step in (look, tool_call(0, "scroll_down", {"pixels": n}, "ok"))]
    assert rereads(play(numbered(scrolled))) == [("notice", 4)]


@pytest.mark.parametrize(
    "change",
    [
        edit(0, "src/other.py", "x = 1"),
        edit(0, "notes/plan.md", "x", "no such text in the file", error="no_match"),
        shell(0, "make docs", "built"),
    ],
)
def test_other_changes_and_refused_ones_do_not_clear(play, change):
    """The file is what it was."""
    assert rereads(play(spaced([WHOLE, WHOLE, change, WHOLE]))) == [("notice", 7)]


@pytest.mark.parametrize(
    "read", ["tail -n 30 build.log", "cat build.log", "head -20 report.csv", "sed -n 1,40p report.csv"]
)
def test_new_content_is_no_reread(play, read):
    """Running something and looking at the same place of its output is work while what stands there is new."""
    events = []
    for n in range(8):
        events += [shell(0, f"python simulate.py --seed {n}", f"wrote report {n}"), shell(0, read, f"gain,{n * n}.25")]
    assert play(numbered(events)) == []


def test_new_content_starts_the_count_over(play):
    """Two reads before the change and two after it are no four."""
    later = view(0, "notes/plan.md", "another plan")
    assert rereads(play(spaced([WHOLE, WHOLE, later, later]))) == []
    assert rereads(play(spaced([WHOLE, WHOLE, later, later, later]))) == [("notice", 9)]


@pytest.mark.parametrize(("between", "count"), [(19, 1), (20, 0)])
def test_a_reread_after_more_than_twenty_calls_counts_anew(play, between, count):
    """Coming back to a file after a long time is reasonable: one forgets."""
    gap = [shell(0, f"./job {n}", f"job {n} is done") for n in range(between)]
    assert rereads(play(numbered([WHOLE, *gap, WHOLE, *gap, WHOLE]))) == [("notice", 2 * between + 2)] * count


@pytest.mark.parametrize(
    "read",
    [
        view(0, "gone.md", "no such file", error="ENOENT"),
        view(0, "locked.md", "may not be read by this user", status="denied"),
        view(0, "notes/plan.md", UNSET, status=None),
        tool_call(0, "grep", {"pattern": "plan", "path": "notes"}, "notes/plan.md:1: plan"),
        shell(0, "git diff", "nothing to see"),
    ],
)
def test_failures_unseen_results_and_searches_are_no_rereads(play, read):
    """Nothing was read, nobody knows what was, or it is no reading of one thing."""
    assert found(play(spaced([read] * 4)), "rereads") == []


def test_files_are_told_apart(play):
    """Two reads of each of many files are no reread of any."""
    assert play(numbered([*OTHERS[:8], *OTHERS[:8]]), {"session_mode": "explore"}) == []


def test_a_trimmed_context_clears(play):
    """What was taken from the window has to be read again: silent after it, and counted anew."""
    events = spaced([WHOLE] * 6)
    trim = session_event(0, "context_trimmed", occurred_at=at(3.5))
    assert rereads(play([*events[:4], trim, *events[4:8]])) == []
    assert rereads(play([*events[:4], trim, *events[4:10]])) == [("notice", 9)]


@pytest.mark.parametrize("came", range(9))
def test_a_trimmed_context_clears_in_either_order_of_topics(came):
    """Read early or late, it concerns the reads before it: those after it count, from one."""
    events = spaced([WHOLE] * 5)
    trim = session_event(0, "context_trimmed", occurred_at=at(3.5))
    state = SessionState()
    for event in [*events[:came], trim, *events[came:]]:
        observe(state, event, Limits())
    (read,) = [seen for seen in state.reads if seen.times > 1]
    assert (read.times, len(read.spans)) == (3, 3)


def test_a_loop_that_a_trimmed_context_does_not_explain_is_still_a_loop(play):
    """A trim every few calls silences rereads, not equal runs."""
    runs = [shell(n, "./convert.sh", "0 rows") for n in range(5)]
    events = [step for n, run in enumerate(runs) for step in (session_event(n, "context_trimmed"), run)]
    assert found(play(events)) == [("warn", "identical", 2), ("terminate", "identical", 4)]


def test_the_evidence_says_how_often(play):
    """A person can check the notice; what is advised is to decide."""
    (alert,) = play(spaced([WHOLE] * 3))
    assert (alert.level, alert.count) == ("notice", 3)
    assert "the same lines read 3 times" in alert.reasoning
    assert reached([alert], "") == [("notice", "rereads.notice", 5)]
    assert "decide" in alert.guidance
