"""Replay without Kafka: alerts, words, exit codes and signals of `traction replay`."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys

import msgspec
import pytest
from click.testing import CliRunner

from streams.cli import traction
from streams.importers import Session, read_path
from streams.policy.policy import Policy
from streams.replay import Played, Totals, play, row
from streams.timeline import session_lines, summary_lines

COMMAND = [sys.executable, "-P", "-m", "traction", "replay"]


def line(session, seq, **more):
    """Give a line of the neutral form."""
    return {
        "session_id": session,
        "seq": seq,
        "tool": "bash",
        "args": {"command": "ls"},
        "result": "a",
        "error": False,
    } | more


def write(path, *values):
    """Write JSON lines."""
    path.write_text("".join(f"{value if isinstance(value, str) else json.dumps(value)}\n" for value in values), "utf-8")
    return path


@pytest.fixture
def loop(tmp_path):
    """Write a session in which one call repeats six times."""
    return write(tmp_path / "loop.jsonl", *(line("spins", seq) for seq in range(6)))


@pytest.fixture
def quiet(tmp_path):
    """Write a session in which nothing repeats."""
    calls = (line("works", seq, args={"command": f"cat {seq}"}, result=f"text {seq}") for seq in range(6))
    return write(tmp_path / "quiet.jsonl", *calls)


def run(*arguments, **environment):
    """Run the command in this process."""
    return CliRunner().invoke(traction, ["replay", *map(str, arguments)], env=environment, standalone_mode=False)


def code(result):
    """Give the exit code: what the command returned, or the usage error's."""
    problem = result.exception
    return getattr(problem, "exit_code", None) if problem else result.return_value


def sessions(*paths):
    """Read sessions."""
    return [found for path in paths for found in read_path(path) if isinstance(found, Session)]


def test_the_detectors_see_every_event_once(loop):
    """A loop is warned about at its third call and terminated at its fifth, and the summary says so."""
    (session,) = sessions(loop)
    played = play(session, Policy())
    assert [(alert.level, alert.seq) for alert in played.alerts] == [("warn", 2), ("terminate", 4)]
    assert played.verdict == "terminate"
    totals = Totals()
    totals.add(played)
    assert (totals.sessions, totals.calls, totals.reached("warn"), totals.reached("terminate")) == (1, 6, 1, 1)


def test_notices_are_shown_and_counted_apart(loop):
    """A session with nothing above a notice is neither warned nor quiet, in the timeline and in the summary."""
    (session,) = sessions(loop)
    notice = msgspec.structs.replace(play(session, Policy()).alerts[0], level="notice")
    played = Played(session, [notice])
    totals = Totals()
    totals.add(played)
    assert (totals.reached("notice"), totals.reached("warn")) == (1, 0)
    timeline = "\n".join(session_lines(played))
    assert "NOTICED" in timeline
    assert "call #2" in timeline
    assert "notice" in timeline
    summary = "\n".join(summary_lines(totals))
    assert "0 to be terminated, 0 warned, 1 noticed, 0 quiet" in summary
    assert f"{notice.detector:<16} 1 notice" in summary


@pytest.mark.parametrize(
    ("mode", "words", "note"),
    [
        ("enforce", ("to be terminated", "warned"), ""),
        ("warn", ("would be terminated", "warned"), "  mode is warn: guidance is given, and no termination"),
        ("observe", ("would be terminated", "would be warned"), "  mode is observe: nothing is asked of anyone"),
    ],
)
def test_what_a_mode_holds_back_is_not_said_to_be_done(mode, words, note, loop, tmp_path):
    """Nothing is to be terminated where the mode lets nobody be terminated; the summary says so once."""
    six, three = words
    warned = write(tmp_path / "warned.jsonl", *(line("repeats", seq) for seq in range(3)))
    limits = tmp_path / "limits.toml"
    limits.write_text(f'[limits]\nmode = "{mode}"\n')
    result = run("--limits", limits, loop, warned, "--fail-on", "terminate")
    assert f"{six.upper()}  spins" in result.stdout
    assert f"\n{three.upper()}  repeats" in result.stdout
    assert f"2 sessions, 9 tool calls: 1 {six}, 1 {three}, 0 quiet\n{note}" in result.stdout
    assert result.stdout.count("mode is") == bool(note)
    assert code(result) == 3


def test_the_level_of_fail_on_counts_whatever_the_mode():
    """The help of `--fail-on` says so, and which exit code goes first."""
    text = " ".join(run("--help").stdout.split())
    assert "when a session reaches this level, whatever the mode" in text
    assert "nothing was found (also when it would be 3)" in text
    assert "docs/recordings.md" in text


def test_what_is_left_out_as_a_repeat_is_told(tmp_path, quiet):
    """Calls of one session with one `seq` are counted in its timeline and on standard error, also for programs."""
    again = line("counts", 0, args={"command": "cat other"})
    calls = [line("counts", seq) for seq in range(3)]
    doubled = write(tmp_path / "doubled.jsonl", *calls, again, again, calls[2])
    note = (
        "note: left out 3 records as repeats, with the seq of a call that their session had before, "
        "2 of them another call than that one: give every call of a session a seq of its own\n"
    )
    result = run(doubled, quiet)
    assert f"WARNED  counts  (3 calls, 3 records left out as repeats, {doubled})" in result.stdout
    assert (result.stderr, code(result)) == (note, 0)
    assert run("--json", doubled).stderr == note
    once = run(write(tmp_path / "once.jsonl", *calls, calls[2]))
    assert once.stderr == "note: left out 1 record as repeats, with the seq of a call that their session had before\n"
    assert run(quiet).stderr == ""


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_where_nothing_is_found_it_is_told(tmp_path, flags):
    """A directory without recordings is no success: what is read is named, and where to read on."""
    (tmp_path / "notes.md").write_text("# notes")
    result = run(*flags, tmp_path)
    assert result.stderr.startswith(f"error: {tmp_path}: nothing was found")
    assert "Claude Code transcripts" in result.stderr
    assert "neutral form" in result.stderr
    assert "docs/recordings.md" in result.stderr
    assert code(result) == 1


@pytest.mark.parametrize(("number", "words"), [(1, "1 file or line"), (2, "2 files or lines")])
def test_what_cannot_be_read_is_counted_in_words(tmp_path, loop, number, words):
    """One is in the singular, more are in the plural."""
    missing = [tmp_path / f"nowhere-{n}" for n in range(number)]
    assert f"  could not read {words}: told above\n" in run(loop, *missing).stdout


def test_one_object_per_alert_and_line(loop):
    """`--json` prints the alerts with their keys and nothing else."""
    result = run("--json", loop)
    rows = [json.loads(text) for text in result.stdout.splitlines()]
    (session,) = sessions(loop)
    assert rows == [row(session, alert) for alert in play(session, Policy()).alerts]
    assert rows[0] == rows[0] | {"source": str(loop), "session_id": "spins", "seq": 2, "level": "warn", "count": 3}
    assert list(rows[0]) == [
        "source", "session_id", "scope", "seq", "level", "detector", "loop_id", "count", "spin_score", "reasoning",
        "alert_id",
    ]  # fmt: skip
    assert code(result) == 0


def test_the_spin_score_is_shown_once(loop):
    """Timeline and rows carry it, unless there is none yet, or the reasoning tells it."""
    (session,) = sessions(loop)
    few, enough = play(session, Policy()).alerts
    assert (few.spin_score, row(session, few)["spin_score"]) == (None, None)
    assert enough.spin_score is not None
    assert row(session, enough)["spin_score"] == enough.spin_score
    early, late = [text for text in session_lines(Played(session, [few, enough])) if "called at" in text]
    assert early.endswith("called at #0 #1 #2")
    assert late.endswith(f"called at #0 #1 #2 #3 #4 (spin score {enough.spin_score:.2f})")
    told = msgspec.structs.replace(enough, reasoning="hardly anything new (spin score 0.93): the same call")
    assert "\n".join(session_lines(Played(session, [told]))).count("spin score") == 1


def test_the_timeline_says_what_where_and_how_bad(loop, quiet):
    """The text names the session, the calls, the level and what repeats; quiet sessions are in the summary only."""
    result = run(loop, quiet)
    assert "TO BE TERMINATED  spins" in result.stdout
    assert "call #2" in result.stdout
    assert "called at #0 #1 #2" in result.stdout
    assert "command=ls" in result.stdout
    assert "works" not in result.stdout
    assert "2 sessions, 12 tool calls: 1 to be terminated, 0 warned, 1 quiet" in result.stdout
    assert "\x1b" not in result.stdout
    assert "QUIET  works" in run("--all", quiet).stdout


def test_what_cannot_be_read_is_named_and_the_exit_code_tells(tmp_path, loop):
    """A broken line and a missing file are told with place and reason; the rest is judged all the same."""
    broken = write(tmp_path / "broken.jsonl", line("b", 0), "{broken", line("b", 1))
    result = run("--json", broken, tmp_path / "nowhere", loop)
    assert f"error: {broken}:2: not JSON" in result.stderr
    assert f"error: {tmp_path / 'nowhere'}: no such file" in result.stderr
    assert len(result.stdout.splitlines()) == 2
    assert code(result) == 1


def test_other_files_of_a_directory_are_no_error(tmp_path, loop, quiet):
    """What is no recording is counted as skipped and leaves the exit code alone."""
    (tmp_path / "README.md").write_text("# notes")
    result = run(tmp_path)
    assert "2 sessions" in result.stdout
    assert "skipped 1 file of no known format" in result.stdout
    assert (code(result), result.stderr) == (0, "")
    assert loop.parent == quiet.parent == tmp_path


@pytest.mark.parametrize(
    ("level", "limits", "expected"),
    [
        ("warn", 'mode = "enforce"', 3),
        ("terminate", 'mode = "enforce"', 3),
        ("terminate", "identical = { terminate = 9, window_terminate = 9 }", 0),
        ("warn", "identical = { warn = 9, terminate = 9, window_warn = 9, window_terminate = 9 }", 0),
    ],
)
def test_alerts_can_fail_a_build(level, limits, expected, loop, tmp_path):
    """`--fail-on` exits with 3 from its level on, under the limits of the file."""
    file = tmp_path / "traction.toml"
    file.write_text(f"[limits]\n{limits}\n")
    assert code(run("--fail-on", level, "--limits", file, loop)) == expected


def test_the_limits_of_the_configuration_file_hold_too(loop, tmp_path):
    """`--config` sets limits as for the worker, and `--limits` goes over it."""
    config, over = tmp_path / "a.toml", tmp_path / "b.toml"
    config.write_text("[limits.identical]\nwarn = 2\n")
    over.write_text("[limits.identical]\nwarn = 4\n")

    def first_alert(*arguments):
        result = CliRunner().invoke(traction, [*map(str, arguments), str(loop)], standalone_mode=False)
        return json.loads(result.stdout.splitlines()[0])["seq"]

    assert first_alert("--config", config, "replay", "--json") == 1
    assert first_alert("--config", config, "replay", "--json", "--limits", over) == 3


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[limits.identical]\nwran = 2\n", "wran"),
        ("[limits.identical]\nwarn = 'two'\n", "identical.warn"),
        ("[worker]\n", "[limits]"),
        ("[limits", "not TOML"),
    ],
)
def test_wrong_limits_are_wrong_use(text, named, loop, tmp_path):
    """A file that sets no limits, or wrong ones, ends it with 2 before anything is read, and names the key."""
    file = tmp_path / "limits.toml"
    file.write_text(text)
    result = run("--limits", file, loop)
    assert code(result) == 2
    assert named in str(result.exception)


@pytest.mark.parametrize(
    "arguments", [[], ["--speed", "2", "x"], ["--to-kafka", "--json", "x"], ["--speed", "0", "--to-kafka", "x"]]
)
def test_wrong_use(arguments):
    """Options that make no sense together are refused with 2."""
    assert code(run(*arguments)) == 2


def test_what_a_recording_says_cannot_steer_the_terminal(tmp_path):
    """Escape sequences in names, arguments and errors do not reach the terminal."""
    evil = "\x1b[2J\x1b]0;owned\x07\u202e"
    calls = [
        line(f"s{evil}", seq, args={"command": f"x{evil}"}, result=f"boom{evil} {seq}", error=True) for seq in range(6)
    ]
    result = run("--all", write(tmp_path / "evil.jsonl", *calls))
    assert "TERMINATED" in result.stdout or "WARNED" in result.stdout
    assert not any(char in result.stdout for char in "\x1b\x07\u202e")


def on_terminal(*arguments, **environment):
    """Run the command with its output on a terminal, and give what it wrote there."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *map(str, arguments)], stdout=theirs, stderr=subprocess.DEVNULL, env=os.environ | environment
    ) as process:
        os.close(theirs)
        text = b""
        try:
            while chunk := os.read(ours, 65536):
                text += chunk
        except OSError:  # how a terminal ends
            pass
        process.wait(30)
    os.close(ours)
    return text.decode()


def test_colours_are_for_terminals_that_want_them(loop):
    """A terminal gets colours, and none where NO_COLOR is set."""
    plain_environment = {"NO_COLOR": "", "TERM": "xterm"}
    assert "\x1b[" in on_terminal(loop, **plain_environment)
    without = on_terminal(loop, NO_COLOR="1", TERM="xterm")
    assert "\x1b[" not in without
    assert "TERMINATED" in without


def test_a_reader_that_goes_away_is_no_fault(tmp_path):
    """With `| head` it ends without a stack trace, with the code of a closed pipe."""
    many = write(tmp_path / "many.jsonl", *(line(f"s{n}", seq) for n in range(3_000) for seq in range(5)))
    with subprocess.Popen([*COMMAND, "--json", many], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(60) == 141
        assert process.stderr.read() == b""


def test_an_interruption_ends_it_at_once(tmp_path):
    """Ctrl-C ends it with 130 and without a stack trace."""
    many = write(tmp_path / "many.jsonl", *(line(f"s{n}", seq) for n in range(20_000) for seq in range(5)))
    with subprocess.Popen([*COMMAND, "--json", many], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        assert process.wait(60) == 130
        assert b"Traceback" not in process.stderr.read()
