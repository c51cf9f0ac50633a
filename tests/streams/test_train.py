"""`traction train`: the file it writes, what it tells, and what keeps it from writing one, on sessions written here."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import click
import pytest

from detectors.weights import read_weights
from streams import pool, training
from streams.cli import COMMANDS
from streams.cli import train as command
from tests.streams import backtest_kit
from tests.streams.backtest_kit import ALERT, code, label, line, spinning, write

run = partial(backtest_kit.run, "train")

ONSET = ALERT - 2
"""The first of the same calls in `spinning`."""

CALLS = 16
"""Calls of a session that works."""


def busy(session, calls=CALLS):
    """Give a session in which nearly every call brings something new, and the tenth and the fourteenth nothing."""
    files = [seq - 5 if seq in {9, 13} else seq for seq in range(calls)]
    return [line(session, seq, f"cat {session}/{name}", f"text {name} of {session}") for seq, name in enumerate(files)]


LABELS = [
    *(label(f"{source}/loop-{n}", "loop", first_loop_seq=ONSET) for source in "xyz" for n in range(2)),
    *(label(f"{source}/well-{n}", "healthy") for source in "xyz" for n in range(2)),
    *(label(f"{source}/hard", "healthy", why="hard: polls") for source in "xy"),
    label("x/short", "healthy"),
    label("x/unclear", "ambiguous"),
]


@pytest.fixture
def labels(tmp_path):
    """Write labels of sessions of three sources."""
    return write(tmp_path / "labels.jsonl", LABELS)


@pytest.fixture
def recordings(tmp_path):
    """Write these sessions and one without a label, in two files."""
    folder = tmp_path / "recordings"
    folder.mkdir()
    names = [each["session_id"] for each in LABELS]
    loops = [call for name in names if "loop" in name for call in spinning(name, times=8)]
    well = [call for name in names if "well" in name or "hard" in name for call in busy(name)]
    write(folder / "a.jsonl", loops + busy("x/short", 2))
    write(folder / "b.jsonl", well + spinning("x/unclear") + spinning("lonely"))
    return folder


def refused(result, output):
    """Give what is told when there are no weights: neither on standard output nor in the file, nor a part of one."""
    assert result.stdout == ""
    assert not output.exists()
    assert [path.name for path in output.parent.iterdir() if path.name.startswith(".")] == []
    return result.stderr + (str(result.exception) if isinstance(result.exception, click.ClickException) else "")


@pytest.fixture
def output(tmp_path):
    """Name a file to write to."""
    return tmp_path / "weights.json"


def test_weights_are_written_and_figures_told(recordings, labels, output):
    """The file can be read and tells loops from work; what came of it is on standard output."""
    result = run("--labels", labels, "--output", output, recordings)
    assert (code(result), result.stderr) == (0, "")
    source = read_weights(output.read_bytes()).source
    trained = source.trained
    assert (trained.sessions, trained.loops, trained.sources) == (14, 6, 3)
    assert trained.labels_sha256 == hashlib.sha256(labels.read_bytes()).hexdigest()
    assert source.features["run_pair"][0] > 0 > source.features["news"][0]
    told = result.stdout.splitlines()
    assert told[0] == (
        f"learned from 14 sessions, 6 loops among them, of 3 sources: {trained.calls} scored calls, "
        f"{trained.spinning} of them spinning"
    )
    assert "  left out 1 session too short to score" in told
    assert "  left out 1 session labelled ambiguous" in told
    assert "each session scored by what was learned from the other sources:" in told
    assert "  loops found           6 of 6 reach warn" in told
    assert "  healthy, easy         0 of 6" in told
    assert "  healthy, hard         0 of 2" in told
    assert f"limits: notice {source.notice:g}, warn {source.warn:g}, " in result.stdout
    name, weight = max(((name, pair[0]) for name, pair in source.features.items()), key=lambda pair: abs(pair[1]))
    strongest = told[told.index("strongest weights, in log odds; more speaks for spinning:") + 1]
    assert strongest.split() == [name, f"{weight:+.2f}"]


def test_without_a_file_the_weights_are_printed(recordings, labels, output):
    """The same bytes, and nothing else, on standard output; the figures on standard error."""
    to_file = run("--labels", labels, "--output", output, recordings)
    result = run("--labels", labels, recordings)
    assert code(result) == 0
    assert result.stdout_bytes == output.read_bytes()
    assert result.stderr == to_file.stdout


def test_one_object_has_the_figures(recordings, labels, output):
    """`--json` prints one object and nothing else."""
    result = run("--labels", labels, "--output", output, "--json", recordings)
    assert (code(result), result.stderr) == (0, "")
    found, source = json.loads(result.stdout), read_weights(output.read_bytes()).source
    counts = {name: found[name] for name in ("sessions", "loops", "easy", "hard", "sources", "calls", "spinning")}
    assert counts == {
        "sessions": 14, "loops": 6, "easy": 6, "hard": 2, "sources": 3,
        "calls": source.trained.calls, "spinning": source.trained.spinning,
    }  # fmt: skip
    assert (found["too_short"], found["ambiguous"], found["repeated"]) == (["x/short"], ["x/unclear"], [])
    assert found["left_out"] == {
        "by_source": True, "call_auc": source.trained.call_auc, "session_auc": source.trained.session_auc,
        "found": 6, "easy": 0, "hard": 0,
    }  # fmt: skip
    assert found["limits"]["warn"] == source.warn
    assert found["weights"] == {name: weight for name, (weight, _) in source.features.items() if weight}
    strengths = [abs(weight) for weight in found["weights"].values()]
    assert strengths == sorted(strengths, reverse=True)


def test_the_same_input_gives_the_same_bytes(recordings, labels, output, monkeypatch):
    """However many processes measure, and in whatever order files and labels come."""
    monkeypatch.setattr(pool, "PORTION_CALLS", 1)
    first = run("--labels", labels, recordings)
    assert code(first) == 0
    turned = run("--labels", labels, recordings / "b.jsonl", recordings / "a.jsonl")
    assert turned.stdout_bytes == first.stdout_bytes
    assert code(run("--labels", labels, "--output", output, "--jobs", 2, recordings)) == 0
    assert output.read_bytes() == first.stdout_bytes


def test_sources_that_are_too_few_are_told(tmp_path, recordings, output):
    """Where one source has all loops, figures are of sessions whose source was known: it is said so."""
    labels = write(tmp_path / "few.jsonl", [each for each in LABELS if "loop" not in each["session_id"]] + LABELS[:2])
    result = run("--labels", labels, "--output", output, recordings)
    assert code(result) == 0
    assert "learned from others, some of its own source, since sources are too few:" in result.stdout
    found = run("--labels", labels, "--output", output, "--json", recordings)
    assert json.loads(found.stdout)["left_out"]["by_source"] is False


def test_the_source_is_what_the_label_says(tmp_path, recordings, output):
    """As in a backtest; without one it is the first part of the id."""
    labels = write(tmp_path / "one.jsonl", [each | {"source": "nightly"} for each in LABELS])
    assert code(run("--labels", labels, "--output", output, recordings)) == 0
    assert read_weights(output.read_bytes()).source.trained.sources == 1


def test_the_first_recording_of_a_session_counts(recordings, labels, output):
    """One that comes again is left out, and told."""
    first = run("--labels", labels, recordings)
    write(recordings / "c.jsonl", busy("x/loop-0"))
    again = run("--labels", labels, "--output", output, recordings)
    assert code(again) == 0
    assert "  left out 1 recording of a session that was read before" in again.stdout
    assert output.read_bytes() == first.stdout_bytes


def test_limits_say_what_tools_are_for(tmp_path, recordings, labels):
    """Those of `--limits` and of `--config` both change what is measured."""
    limits = tmp_path / "limits.toml"
    limits.write_text('[limits.tools.commands]\ncat = "run"\n')
    plain = run("--labels", labels, recordings)
    found = run("--labels", labels, "--limits", limits, recordings)
    assert code(found) == 0
    assert found.stdout_bytes != plain.stdout_bytes
    assert run("--labels", labels, recordings, before=["--config", limits]).stdout_bytes == found.stdout_bytes


def test_labelled_sessions_that_are_missing_are_named(recordings, labels, output):
    """Weights of less than all that is labelled are not written: the code is 1."""
    (recordings / "b.jsonl").unlink()
    result = run("--labels", labels, "--output", output, recordings)
    told = refused(result, output)
    assert code(result) == 1
    assert "error: labelled session y/well-1 is not among the recordings\n" in told
    assert "error: labelled session x/unclear is not among the recordings\n" in told
    assert told.endswith("error: no weights are written; mend or leave out what is told above\n")


@pytest.mark.parametrize("beyond", [0, 1])
def test_a_loop_that_would_begin_after_the_end_is_refused(tmp_path, recordings, output, beyond):
    """It would teach that a loop is work; one that begins with the last call is fine."""
    last = len(spinning("s", times=8)) - 1
    moved = {"first_loop_seq": last + beyond}
    labels = write(
        tmp_path / "l.jsonl", [each | (moved if each["session_id"] == "x/loop-0" else {}) for each in LABELS]
    )
    result = run("--labels", labels, "--output", output, recordings)
    assert code(result) == beyond
    if beyond:
        told = refused(result, output)
        assert f"{labels}: session x/loop-0: field `first_loop_seq` is beyond its last call, #{last}; write the" in told


def test_what_cannot_be_read_keeps_weights_from_being_written(recordings, labels, output):
    """A broken line may have been a call of a labelled session."""
    with (recordings / "b.jsonl").open("a") as file:
        file.write("{broken\n")
    result = run("--labels", labels, "--output", output, recordings)
    assert code(result) == 1
    assert "b.jsonl:" in refused(result, output)


def test_an_older_file_stays_when_there_are_no_new_weights(recordings, labels, output):
    """Whatever the reason."""
    output.write_text("old")
    (recordings / "b.jsonl").unlink()
    assert code(run("--labels", labels, "--output", output, recordings)) == 1
    assert output.read_text() == "old"


def test_what_teaches_nothing_is_told(tmp_path, recordings, output):
    """Too few examples: 1, with the remedy."""
    labels = write(tmp_path / "few.jsonl", [each for each in LABELS if each["label"] != "loop"])
    result = run("--labels", labels, "--output", output, recordings)
    assert code(result) == 1
    assert "there are too few examples; label at least two loops" in refused(result, output)


def test_a_missing_library_is_told_before_anything_is_read(recordings, labels, output, monkeypatch):
    """With the remedy, and 1."""
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setattr(command, "Reader", lambda _: pytest.fail("recordings are read"))
    result = run("--labels", labels, "--output", output, recordings)
    assert code(result) == 1
    assert refused(result, output) == training.LIBRARY_MISSING
    assert "pip install 'traction[train]'" in training.LIBRARY_MISSING


def test_nothing_is_measured_while_the_score_is_off(tmp_path, recordings, labels, output):
    """The file that switches it off is named, and the remedy."""
    limits = tmp_path / "limits.toml"
    limits.write_text('[limits]\noff = ["spin_score"]\n')
    result = run("--labels", labels, "--output", output, "--limits", limits, recordings)
    assert code(result) == 2
    told = f"file:{limits}: spin_score is switched off, and nothing can be measured; take it out of `off`"
    assert refused(result, output) == told


@pytest.mark.parametrize(
    "arguments",
    [[], ["--jobs", "0"], ["--limits", "nowhere.toml"], ["--output", "."], ["--json"], ["--fast"], ["--spin-weights"]],
)
def test_wrong_use(recordings, labels, arguments):
    """No labels, and values that cannot be, are refused with 2."""
    result = run(*arguments, *(["--labels", labels] if arguments else []), recordings)
    assert (code(result), result.stdout) == (2, "")


def test_wrong_labels_are_wrong_use(recordings, labels, output):
    """Line, field and remedy are told."""
    with labels.open("a") as file:
        file.write(json.dumps(label("z", "looop")))
    result = run("--labels", labels, "--output", output, recordings)
    assert code(result) == 2
    assert f"{labels}:{len(LABELS) + 1}: field `label` is missing or wrong; write loop" in refused(result, output)


def test_the_digest_is_that_of_the_labels_that_were_read(tmp_path, recordings, labels, output):
    """The content is read once, as a pipe shows, which can be read only once: the same comes of it as of a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(labels.read_bytes(),), daemon=True)
    writer.start()
    assert code(run("--labels", pipe, "--output", output, recordings)) == 0
    writer.join()
    assert output.read_bytes() == run("--labels", labels, recordings).stdout_bytes


@pytest.mark.parametrize(
    "place",
    [
        ("nowhere/weights.json", "there is no directory"),
        ("pipe", "is no regular file"),
        ("n" * 300, "cannot be written (File name too long)"),
        ("labels.jsonl/weights.json", "there is no directory"),
        ("astray", "there is no directory"),
        ("stdout", "is no regular file"),
    ],
)
def test_a_place_that_cannot_take_the_file_is_told_first(tmp_path, recordings, labels, monkeypatch, place):
    """Before minutes of work; a device is not replaced by a file, and a link must not lead nowhere."""
    name, words = place
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "astray").symlink_to(tmp_path / "nowhere" / "weights.json")
    ends = os.pipe()
    (tmp_path / "stdout").symlink_to(f"/proc/self/fd/{ends[1]}")  # leads to what has no path
    monkeypatch.setattr(command, "Reader", lambda _: pytest.fail("recordings are read"))
    result = run("--labels", labels, "--output", tmp_path / name, recordings)
    assert (code(result), result.stdout) == (2, "")
    assert f"--output {tmp_path / name}: {words}" in str(result.exception)
    assert (tmp_path / "pipe").is_fifo()
    for end in ends:
        os.close(end)


NAMES = ("the same", "another spelling", "a link", "a hard link")
"""How a file is named that is read under its own name."""


@pytest.mark.parametrize("case", list(itertools.product(("labels", "file", "folder", "link among them"), NAMES)))
def test_what_is_read_is_not_overwritten(tmp_path, recordings, labels, monkeypatch, case):
    """Labels and recordings are the work of hours: whatever name they are given, it is wrong use before any reading."""
    read, named = case
    paths = {"file": recordings / "a.jsonl"}.get(read, recordings)
    file = labels if read == "labels" else recordings / "a.jsonl"
    if read == "link among them":
        file = file.rename(tmp_path / "elsewhere.jsonl")
        (recordings / "a.jsonl").symlink_to(file)
    output = {"the same": file, "another spelling": file.parent / ".." / file.parent.name / file.name}.get(named)
    if output is None:
        output = tmp_path / "other"
        (output.symlink_to if named == "a link" else output.hardlink_to)(file)
    before = file.read_bytes()
    monkeypatch.setattr(command, "Reader", lambda _: pytest.fail("recordings are read"))
    result = run("--labels", labels, "--output", output, paths)
    assert (code(result), result.stdout) == (2, "")
    reads = "--labels" if read == "labels" else f"PATH {paths}"
    assert str(result.exception) == f"--output {output}: would overwrite what {reads} reads; name another file"
    assert file.read_bytes() == before


def test_older_weights_among_the_recordings_are_replaced(recordings, labels):
    """They are no recording: the same command can be run again. Something broken, which may be one, stays."""
    output = recordings / "weights.json"
    for _ in range(2):
        assert code(run("--labels", labels, "--output", output, recordings)) == 0
    assert read_weights(output.read_bytes()).source.trained.sessions == 14
    output.write_text("{broken")
    assert code(run("--labels", labels, "--output", output, recordings)) == 2
    assert output.read_text() == "{broken"


@pytest.mark.parametrize("problem", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_the_old_file(recordings, labels, output, monkeypatch, problem):
    """And no part of the new one beside it."""
    output.write_text("old")

    def fail(*_):
        raise problem

    monkeypatch.setattr(Path, "replace", fail)
    before = set(output.parent.iterdir())
    result = run("--labels", labels, "--output", output, recordings)
    assert output.read_text() == "old"
    assert set(output.parent.iterdir()) == before
    if isinstance(problem, OSError):
        assert code(result) == 1
        assert f"--output {output}: cannot be written (No space left on device); name one" in str(result.exception)


def test_a_link_stays_one(tmp_path, recordings, labels, output):
    """What it leads to is replaced; the file can be read by whom the system lets by default."""
    target = tmp_path / "target.json"
    target.write_text("old")
    output.symlink_to(target)
    assert code(run("--labels", labels, "--output", output, recordings)) == 0
    assert output.is_symlink()
    assert read_weights(target.read_bytes()).source.trained.sessions == 14
    assert target.stat().st_mode == labels.stat().st_mode


def test_what_labels_say_cannot_steer_the_terminal(tmp_path, recordings, output):
    """Escape sequences in ids do not reach the terminal."""
    labels = write(tmp_path / "evil.jsonl", [label("gone\x1b[2J\x07\u202e", "healthy")])
    told = refused(run("--labels", labels, "--output", output, recordings), output)
    assert "labelled session gone" in told
    assert not any(char in told for char in "\x1b\x07\u202e")


def test_no_other_command_imports_the_library():
    """Not even `train` does before it learns: what scores needs none of it."""
    code = f"""
import sys, click
from streams.cli import traction
import streams.worker.run, streams.escalation.process, streams.demo
for name in {list(COMMANDS)}:
    assert traction.get_command(click.Context(traction), name) is not None
print(sorted({{"numpy", "scipy", "sklearn"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
