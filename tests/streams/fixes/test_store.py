"""The history in a file: many processes, kills, privacy, expiry, and files that cannot be used."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from streams.fixes import CircularFixDetector, FixOutcome, InvalidAttempt, StoreError, database
from streams.fixes.store import MAX_KEPT
from tests.streams.fixes_kit import APART, FAILED, configured, failing

WRITER = """
import sys
from pathlib import Path
from streams.fixes import CircularFixDetector, FixOutcome
with CircularFixDetector(store=Path(sys.argv[1])) as detector:
    for number in range(int(sys.argv[3])):
        detector.record_attempt("task", f"{sys.argv[2]} {number}", ["a.py"], FixOutcome.FAILED)
        print(number, flush=True)
"""


@pytest.fixture
def path(tmp_path):
    """Give a file that is not there yet, in a directory that is not there either."""
    return tmp_path / "state" / "fixes.sqlite3"


def writer(path, name, count):
    """Start a process that records attempts."""
    return subprocess.Popen(
        [sys.executable, "-P", "-c", WRITER, str(path), name, str(count)], stdout=subprocess.PIPE, text=True
    )


def kept(path, subtask="task"):
    """Give the attempts that a file holds, as a process that starts now sees them."""
    with CircularFixDetector(store=path) as detector:
        return [entry.attempt for entry in detector.get_timeline(subtask)]


def aged(path, milliseconds):
    """Make all attempts older."""
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE attempts SET at_ms = at_ms - ?", (milliseconds,))


def test_processes_write_at_once(path):
    """Three processes that begin with no file: nothing is lost or doubled, and the numbers have no gaps."""
    count = 20
    writers = [writer(path, name, count) for name in "abc"]
    assert [each.communicate() and each.wait() for each in writers] == [0] * 3

    attempts = kept(path)
    assert [each.number for each in attempts] == list(range(1, 3 * count + 1))
    assert sorted(each.approach for each in attempts) == sorted(f"{name} {n}" for name in "abc" for n in range(count))
    with CircularFixDetector(store=path) as detector:
        assert detector.get_summary()["total_attempts"] == 3 * count
        assert detector.get_summary()["subtasks"] == 1


def test_a_kill_leaves_whole_attempts(path):
    """What a process had recorded before SIGKILL is there, and the next one goes on with the next number."""
    process = writer(path, "a", 10_000)
    assert process.stdout
    for _ in range(5):
        process.stdout.readline()
    process.kill()
    process.communicate()

    with CircularFixDetector(store=path) as detector:
        before = detector.get_summary()["total_attempts"]
        assert before >= 5
        assert failing(detector, "b").number == before + 1
    assert [each.number for each in kept(path)] == list(range(1, before + 2))[-MAX_KEPT:]


def test_a_file_that_is_just_being_made_is_waited_for(path):
    """SQLite itself does not wait where the log is set up while another process writes."""
    path.parent.mkdir()
    path.touch()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        release = threading.Timer(0.2, other.rollback)
        release.start()
        with CircularFixDetector(store=path) as detector:
            assert failing(detector, "x").number == 1
        release.join()


@pytest.mark.parametrize("in_file", [True, False])
def test_threads_share_a_detector(path, in_file):
    """Numbers have no gaps there either."""
    with CircularFixDetector(store=path if in_file else None) as detector:

        def work(name):
            for number in range(10):
                failing(detector, f"{name} {number}")
                detector.is_circular_fix("task", "whiskey")

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, "abcd"))

        numbers = [entry.attempt.number for entry in detector.get_timeline("task")]
        assert numbers == list(range(1, 41))
        # From the 6th failed attempt on every check says so.
        assert 0 < detector.get_summary()["circular_count"] <= 40


def test_a_forked_process_writes_to_the_same_file(path):
    """A detector that was made before the fork serves both sides of it."""
    with CircularFixDetector(store=path) as detector:
        failing(detector, "before")
        child = multiprocessing.get_context("fork").Process(target=failing, args=(detector, "in the child"))
        child.start()
        child.join()
        assert child.exitcode == 0
        failing(detector, "after")
    assert [each.approach for each in kept(path)] == ["before", "in the child", "after"]


def test_only_the_user_may_read_it(path):
    """Approaches quote code: the directory that is made is private, and so is the file beside its log."""
    with CircularFixDetector(store=path) as detector:
        failing(detector, "x")
        with contextlib.closing(sqlite3.connect(path)) as reader:
            reader.execute("SELECT * FROM attempts").fetchall()  # keeps the log there
            failing(detector, "y")
            modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert modes == {path.name: 0o600, f"{path.name}-wal": 0o600, f"{path.name}-shm": 0o600}


def test_no_diff_and_no_credential_is_kept(path):
    """Of a diff only digests; of texts what is left when credentials are taken out; nothing of what was forgotten."""
    secret = "sk-" + "a1B2" * 8
    with CircularFixDetector(store=path) as detector:
        detector.record_attempt(
            "task",
            f"Use the key {secret}",
            ["a.py"],
            FAILED,
            f"refused: password={secret}",
            diff="--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-an_old_line = 1\n+a_new_line = 2\n",
            failing=["test_whatever"],
        )
        data = path.read_bytes()
        assert b"Use the key [redacted]" in data
        assert not [each for each in (secret.encode(), b"old_line", b"new_line") if each in data]
        detector.cleanup_subtask("task")
    assert b"Use the key" not in path.read_bytes()


def test_long_texts_are_cut(path):
    """4,000 characters of an approach, 400 of an error, 50 paths of 300; how many files there were is known."""
    with CircularFixDetector(store=path) as detector:
        long = detector.record_attempt("task", "a" * 4_001, [f"{n}" * 301 for n in range(51)], FAILED, "e" * 401)
        exact = detector.record_attempt("task", "a" * 4_000, ["p" * 300] * 50, FAILED, "e" * 400)
    assert kept(path) == [long, exact]
    assert (len(long.approach), long.approach[-1], len(long.error_message or "")) == (4_000, "…", 400)
    assert (len(long.files_modified), long.files_total, max(map(len, long.files_modified))) == (50, 51, 300)
    assert (exact.approach, exact.error_message) == ("a" * 4_000, "e" * 400)
    assert exact.files_modified == ("p" * 300,) * 50


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("", "x", [], FAILED), "subtask_id: Expected `str` of length >= 1"),
        (("s" * 257, "x", [], FAILED), "subtask_id: Expected `str` of length <= 256; shorten it, or leave a part out"),
        (("s", 1, [], FAILED), "approach: Expected `str | null`, got `int`"),
        (("s", "x", "main.py", FAILED), "files: Expected `array`, got `str`"),
        (("s", "x", ["ok", "p" * 1_025], FAILED), "files[1]: Expected `str` of length <= 1024; shorten it"),
        (("s", "x", [], "broken"), "outcome: Invalid enum value 'broken'"),
        (("s", "x" * 1_000_001, [], FAILED), "approach: Expected `str` of length <= 1000000; shorten it"),
    ],
)
def test_what_cannot_be_taken_is_refused(path, arguments, words):
    """With the argument's name, and without a trace in the file."""
    with CircularFixDetector(store=path) as detector, pytest.raises(InvalidAttempt) as problem:
        detector.record_attempt(*arguments)
    assert str(problem.value).startswith(words)
    assert not path.exists()


def test_names_and_texts_that_are_no_unicode_are_taken():
    """A command line may hold any bytes."""
    with CircularFixDetector() as detector:
        failing(detector, "caf\udce9", "a\udce9.py", "boom \udce9", subtask="s\udce9")
        (entry,) = detector.get_timeline("s\udce9")
        assert entry.attempt.subtask_id == "s?"
        assert detector.cleanup_subtask("s\udce9") == 1


def test_a_success_clears_and_the_figures_stay(path):
    """Its own history only; numbers begin anew, and so does a history in the average."""
    with CircularFixDetector(store=path) as detector:
        for approach in APART[:2]:
            failing(detector, approach)
        failing(detector, "x", subtask="other")
        done = detector.record_attempt("task", "y", [], FixOutcome.SUCCESS)
        assert (done.number, detector.get_timeline("task")) == (3, [])
        assert failing(detector, "z").number == 1
        assert detector.get_summary() == {
            "total_attempts": 5,
            "subtasks": 3,
            "outcomes": {"failed": 4, "success": 1, "partial": 0, "skipped": 0},
            "circular_count": 0,
            "average_attempts_per_subtask": 5 / 3,
            "kept_attempts": 2,
            "kept_subtasks": 2,
        }


def test_a_success_clears_nothing_when_it_is_told_not_to(tmp_path):
    """With `auto_cleanup_on_success` off the attempts stay, the success among them."""
    with configured(tmp_path, {"automation": {"auto_cleanup_on_success": False}}) as detector:
        failing(detector, "x")
        detector.record_attempt("task", "y", [], FixOutcome.SUCCESS)
        assert [entry.attempt.outcome for entry in detector.get_timeline("task")] == ["failed", "success"]


@pytest.mark.parametrize(("beside_ms", "left"), [(60_000, 0), (-60_000, 2)])
def test_attempts_expire_after_a_week(path, beside_ms, left):
    """They count no more, are removed by the next recording, and stay in the figures."""
    with CircularFixDetector(store=path) as detector:
        for _ in range(2):
            failing(detector, "Raise the timeout")
        aged(path, 7 * 24 * 3600 * 1_000 + beside_ms)

        assert detector.is_circular_fix("task", "Raise the timeout").is_circular == bool(left)
        assert len(detector.get_timeline("task")) == left
        assert detector.get_summary()["kept_attempts"] == left
        failing(detector, "x", subtask="other")
        with contextlib.closing(sqlite3.connect(path)) as file:
            assert file.execute("SELECT count(*) FROM attempts WHERE subtask = 'task'").fetchone() == (left,)
        assert detector.get_summary()["total_attempts"] == 3


def test_so_many_attempts_of_one_subtask_are_kept():
    """The oldest goes; numbers go on, and the timeline says how many there were."""
    with CircularFixDetector() as detector:
        for _ in range(MAX_KEPT):
            failing(detector, "x")
        assert [entry.attempt.number for entry in detector.get_timeline("task")] == list(range(1, MAX_KEPT + 1))
        assert f"Total Attempts: {MAX_KEPT}\n" in detector.get_visualization("task")
        failing(detector, "x")
        assert [entry.attempt.number for entry in detector.get_timeline("task")] == list(range(2, MAX_KEPT + 2))
        assert f"Total Attempts: {MAX_KEPT + 1} ({MAX_KEPT} of them kept)" in detector.get_visualization("task")


def test_forgetting_says_how_many(path):
    """One subtask, whose attempts stay in the figures; or everything, and the figures too."""
    with CircularFixDetector(store=path) as detector:
        for subtask in ("a", "a", "b"):
            failing(detector, "x", subtask=subtask)
        assert [detector.cleanup_subtask("a"), detector.cleanup_subtask("a")] == [2, 0]
        assert detector.get_summary()["total_attempts"] == 3
        assert detector.cleanup_all() == 1
        assert detector.get_summary()["total_attempts"] == 0


def test_asking_makes_no_file(path):
    """A question about a history that is not there is answered, and leaves nothing behind."""
    with CircularFixDetector(store=path) as detector:
        assert not detector.is_circular_fix("task", "x").is_circular
        assert detector.get_timeline("task") == []
        assert detector.get_summary()["average_attempts_per_subtask"] == 0
        assert detector.cleanup_all() == 0
    assert not path.parent.exists()


def test_a_closed_detector_says_so():
    """What it knew is gone, and it does not begin anew in silence."""
    with CircularFixDetector() as detector:
        failing(detector, "x")
    with pytest.raises(StoreError, match="the detector is closed; make a new one"):
        detector.get_summary()


def refused(path):
    """Give what is told when an attempt is recorded."""
    with CircularFixDetector(store=path) as detector, pytest.raises(StoreError) as problem:
        failing(detector, "x")
    return str(problem.value)


def test_files_of_another_version_are_refused(path):
    """A newer one, as that release alone can read it; an older one, whose digests mean something else."""
    kept(path)
    with CircularFixDetector(store=path) as detector:
        failing(detector, "x")
    for change, remedy in ((1, "use the release that wrote it"), (-1, "remove it to begin anew")):
        with contextlib.closing(sqlite3.connect(path)) as file:
            file.execute(f"PRAGMA user_version = {database._VERSION + change}")
        assert refused(path).startswith(f"{path}: is of version {database._VERSION + change}, and this release")
        assert remedy in refused(path)


def test_files_that_are_not_ours_are_left_alone(tmp_path):
    """Neither another program's database nor a text is written to."""
    other, text = tmp_path / "other.db", tmp_path / "notes.txt"
    with contextlib.closing(sqlite3.connect(other)) as file:
        file.execute("CREATE TABLE a (b)")
    text.write_text("These are my notes, and not at all a database." * 100)
    before = other.read_bytes(), text.read_bytes()

    assert refused(other) == f"{other}: is a database of another program; name a file of its own"
    assert refused(text) == f"{text}: is no SQLite database; name a file of its own"
    assert (other.read_bytes(), text.read_bytes()) == before


def test_a_damaged_file_is_told(path):
    """Pages that make no sense, or facts that do not."""
    with CircularFixDetector(store=path) as detector:
        for _ in range(20):
            failing(detector, "x" * 2_000)
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE attempts SET facts = x'00'")
    with (
        CircularFixDetector(store=path) as detector,
        pytest.raises(StoreError, match=r"is damaged .*remove it to begin"),
    ):
        detector.is_circular_fix("task", "x")

    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(data)
    assert f"{path}: is damaged (database disk image is malformed); remove it to begin anew" in refused(path)


def test_a_path_that_is_no_file_is_told(tmp_path):
    """A directory, something in a file, a place that does not exist."""
    (tmp_path / "file").write_text("")
    assert refused(tmp_path) == (
        f"{tmp_path}: is a directory; name a file in it, for example {tmp_path / 'fixes.sqlite3'}"
    )
    inside = tmp_path / "file" / "fixes.sqlite3"
    assert refused(inside).startswith(f"{inside}: cannot be used (")
    assert refused(Path("/proc/none/fixes.sqlite3")).endswith("); name a file in a directory of your own")


def test_a_file_that_may_not_be_written_to_is_told():
    """As somebody who may only read it, as root may write to everything."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "fixes.sqlite3"
        with CircularFixDetector(store=path) as detector:
            failing(detector, "x")
        path.chmod(0o444)
        path.parent.chmod(0o755)
        was = os.geteuid()
        if was == 0:
            os.seteuid(65_534)
        try:
            told = refused(path)
        finally:
            os.seteuid(was)
        assert told == f"{path}: cannot be used (Permission denied); name a file in a directory of your own"


def test_a_file_that_is_locked_for_long_is_told(path, monkeypatch):
    """Who holds it for moments is waited for."""
    monkeypatch.setattr(database, "_BUSY_SECONDS", 0.3)
    with CircularFixDetector(store=path) as detector:
        failing(detector, "x")
        with contextlib.closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
            other.execute("BEGIN IMMEDIATE")
            threading.Timer(0.1, other.rollback).start()
            failing(detector, "y")
            other.execute("BEGIN IMMEDIATE")
            assert refused(path) == f"{path}: another process has locked it for 0.3 seconds; end that process"
    assert len(kept(path)) == 2
