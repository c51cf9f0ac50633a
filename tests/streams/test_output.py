"""Output that cannot be written: every command that prints says so and ends, and a service goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from streams import cli
from streams.cli.output import json_text

COMMAND = [sys.executable, "-P", "-m", "traction"]
FULL = Path("/dev/full")


@pytest.fixture
def recording(tmp_path):
    """Write a session in which one call repeats."""
    call = {"session_id": "s", "tool": "bash", "args": {"command": "ls"}, "result": "a", "error": False}
    path = tmp_path / "loop.jsonl"
    path.write_text("".join(f"{json.dumps(call | {'seq': seq})}\n" for seq in range(6)))
    return path


def run(*arguments, unbuffered=False, **streams):
    """Run a command to its end."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TRACTION_")}
    environment |= {"PYTHONUNBUFFERED": "1"} if unbuffered else {}
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], text=True, timeout=60, check=False, env=environment, **streams
    )


def assert_told(done):
    """One line says what is wrong, and the code that it failed."""
    assert done.stderr.splitlines()[-1] == "Error: standard output cannot be written to: No space left on device"
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert done.returncode == 1


@pytest.mark.parametrize("unbuffered", [False, True])
@pytest.mark.parametrize("arguments", [[], ["--json"], ["--all"]])
def test_results_on_a_full_disk(recording, arguments, unbuffered):
    """Results that were lost are a failure: whoever judges by the exit code must not take them for complete."""
    with FULL.open("w") as full:
        assert_told(run("replay", *arguments, recording, stdout=full, stderr=subprocess.PIPE, unbuffered=unbuffered))


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], *([name, "--help"] for name in cli.COMMANDS)])
def test_help_on_a_full_disk(arguments):
    """What click prints by itself is no other."""
    with FULL.open("w") as full:
        assert_told(run(*arguments, stdout=full, stderr=subprocess.PIPE))


@pytest.mark.parametrize("arguments", [["create"], ["list"], ["list", "--json"], ["check"], ["check", "--json"]])
def test_topics_on_a_full_disk(bootstrap, prefix, arguments):
    """Whatever a command prints on its way."""
    flags = ["--bootstrap", bootstrap, "--prefix", prefix, "--app-id", prefix]
    assert run("topics", "create", *flags, stdout=subprocess.PIPE, stderr=subprocess.PIPE).returncode == 0
    with FULL.open("w") as full:
        assert_told(run("topics", *arguments, *flags, stdout=full, stderr=subprocess.PIPE))


@pytest.mark.parametrize("arguments", [["broker", "--ephemeral", "--port", "0"], ["demo"]])
def test_processes_are_stopped_on_a_full_disk(tmp_path, monkeypatch, arguments):
    """What a command has started does not stay when it ends by that."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with FULL.open("w") as full:
        assert_told(run(*arguments, stdout=full, stderr=subprocess.PIPE))
    assert list(tmp_path.iterdir()) == []


def test_errors_on_a_full_disk():
    """Where errors cannot be told either, the code remains."""
    with FULL.open("w") as full:
        assert run("replay", "/nowhere", stdout=full, stderr=full).returncode == 1
        assert run("wrker", stdout=full, stderr=full).returncode == 1


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_reader_that_is_gone(tmp_path, recording, stream):
    """A closed pipe ends it with the shell's code for that and without a word, on either stream."""
    ours, theirs = os.pipe()
    os.close(ours)
    with (tmp_path / "other").open("w") as other, os.fdopen(theirs, "w") as gone:
        streams = {"stdout": other, "stderr": other} | {stream: gone}
        paths = [recording] if stream == "stdout" else [tmp_path / "nowhere"]
        assert run("replay", *paths, **streams).returncode == 141
    assert (tmp_path / "other").read_text() == ""


def test_streams_that_are_closed(recording):
    """Who closes standard output wants nothing of it, as always."""
    done = run("replay", recording, stderr=subprocess.PIPE, preexec_fn=lambda: os.close(1))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", ["worker", "escalate"])
def test_a_service_goes_on_without_its_ready_line(bootstrap, prefix, command):
    """A worker is not lost because whoever waited for its ready line has gone."""
    flags = ["--bootstrap", bootstrap, "--prefix", prefix]
    assert run("topics", "create", *flags, "--app-id", prefix, stdout=subprocess.DEVNULL).returncode == 0
    service = [*COMMAND, command, *flags, "--app-id", prefix, "--port", "0"]
    ours, theirs = os.pipe()
    os.close(ours)
    with subprocess.Popen(service, stdout=theirs, stderr=subprocess.PIPE, text=True) as process:
        os.close(theirs)
        assert process.stderr is not None
        try:
            assert any("going on without its lines" in line for line in process.stderr)
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(2)
            process.send_signal(signal.SIGTERM)
            process.stderr.read()
            assert process.wait(30) == 0
        finally:
            process.kill()


@pytest.mark.parametrize("indent", [-1, 2])
def test_json_steers_no_terminal_and_means_the_same(indent):
    """Control characters, directions, line ends and what is not seen become escapes; letters stay letters."""
    nasty = "\x1b[2J\x9b2J\x07\x7f\x85\xad\u061c\u180e\u200b\u2028\u202e\u2066\ufe0f\ufeff\U000e0041\U000e0100"
    text = json_text({nasty: [nasty, "é漢🙂"]}, indent=indent).decode()
    assert json.loads(text) == {nasty: [nasty, "é漢🙂"]}
    assert not [char for char in nasty if ord(char) != 0x5B and not char.isalnum() and char in text]
    assert "é漢🙂" in text
    assert len(text.splitlines()) == (1 if indent < 0 else 6)
