"""Files are appended to whole or not at all, whatever they are and whoever else writes them."""

from __future__ import annotations

import asyncio
import fcntl
import os
import resource
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from schemas.outputs import Notification
from streams.sinks import file
from streams.sinks.errors import Unavailable
from streams.sinks.file import File, Stdout
from streams.sinks.settings import FileSettings, StdoutSettings
from tests.streams.sinks.conftest import MakeNotification


def sink(path: Path) -> File:
    """Give a sink of lines of JSON."""
    return File(FileSettings(name="log", path=str(path)), "p")


def ids(path: Path) -> list[str]:
    """Give the ids of what is in a file."""
    return [msgspec.json.decode(line, type=Notification).notification_id for line in path.read_bytes().splitlines()]


async def test_each_is_a_line_and_the_file_is_not_everybody_s(tmp_path: Path, notification: MakeNotification) -> None:
    """Notifications are appended in order to a file that others may not read."""
    path = tmp_path / "log.jsonl"
    for number in range(3):
        await sink(path).send(notification(f"n{number}"))
    assert ids(path) == ["n0", "n1", "n2"]
    assert path.stat().st_mode & 0o007 == 0


async def test_many_writers_do_not_mix(tmp_path: Path, notification: MakeNotification) -> None:
    """What is written side by side stays line by line."""
    path = tmp_path / "log.jsonl"
    await asyncio.gather(*(sink(path).send(notification(f"n{number}")) for number in range(50)))
    assert sorted(ids(path)) == sorted(f"n{number}" for number in range(50))


async def test_a_torn_line_stays_one(tmp_path: Path, notification: MakeNotification) -> None:
    """What is written after a line that a crash of the machine left unfinished begins a line of its own."""
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"half')
    await sink(path).send(notification("n1"))
    first, second = path.read_bytes().splitlines()
    assert first == b'{"half'
    assert msgspec.json.decode(second)["notification_id"] == "n1"


async def test_a_write_without_room_leaves_nothing(tmp_path: Path, notification: MakeNotification) -> None:
    """Where only a part fits, that part is taken back, and it may be tried again."""
    path = tmp_path / "log.jsonl"
    await sink(path).send(notification("n0"))
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 10, hard))
    try:
        with pytest.raises(Unavailable, match="no room"):
            await sink(path).send(notification("n1"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before
    await sink(path).send(notification("n1"))
    assert ids(path) == ["n0", "n1"]


async def test_what_is_no_file_is_told(tmp_path: Path, notification: MakeNotification) -> None:
    """A directory, a missing one and a pipe that nobody reads are told at once, and may be mended."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "missing" / "log", tmp_path / "pipe"):
        with pytest.raises(Unavailable, match="cannot be written"):
            await sink(path).send(notification())


async def test_markdown_is_a_page(tmp_path: Path, notification: MakeNotification) -> None:
    """With Markdown the report's page is appended below the time and the sentence."""
    path = tmp_path / "log.md"
    await File(FileSettings(name="log", path=str(path), format="markdown"), "p").send(notification())
    text = path.read_text("utf-8")
    assert text.startswith("2026-11-30T09:15:41+00:00 terminate: Session s1 is to be terminated.\n\n# identical")


async def test_a_locked_file_is_waited_for(
    tmp_path: Path, notification: MakeNotification, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process's lock is waited for, but not so long that this process could not end."""
    path = tmp_path / "log.jsonl"
    with path.open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        sending = asyncio.create_task(sink(path).send(notification("n1")))
        await asyncio.sleep(5 * file.LOOK_SECONDS)
        assert ids(path) == []
        fcntl.flock(held, fcntl.LOCK_UN)
        await sending
        fcntl.flock(held, fcntl.LOCK_EX)
        monkeypatch.setattr(file, "PATIENCE_SECONDS", 0.05)
        with pytest.raises(Unavailable, match="another process has it locked"):
            await sink(path).send(notification("n2"))
    assert ids(path) == ["n1"]


async def test_standard_output(capfd: pytest.CaptureFixture[str], notification: MakeNotification) -> None:
    """A notification is printed as a line of JSON."""
    await Stdout(StdoutSettings(name="out"), "p").send(notification("n1"))
    assert msgspec.json.decode(capfd.readouterr().out)["notification_id"] == "n1"


async def test_standard_output_that_is_closed(notification: MakeNotification, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one, as in a daemon, the sink says so."""
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(Unavailable, match="it is closed"):
        await Stdout(StdoutSettings(name="out"), "p").send(notification())


async def test_a_reader_that_stops_holds_up_nothing(
    notification: MakeNotification, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full pipe is given up in time; when it is read again, the torn line is one, and what comes next is whole."""
    reader, writer = os.pipe()
    monkeypatch.setattr(file, "PATIENCE_SECONDS", 0.05)
    with os.fdopen(reader, "rb") as read, os.fdopen(writer, "w") as written:
        monkeypatch.setattr(sys, "stdout", written)
        out = Stdout(StdoutSettings(name="out"), "p")
        long = notification("n0", report=msgspec.structs.replace(notification().report, markdown="x" * 8_000))

        async def fill() -> None:
            for _ in range(1_000):
                await out.send(long)

        with pytest.raises(Unavailable, match="nobody reads it"):
            await fill()
        got = os.read(reader, 2**20)
        await out.send(notification("n1"))
        written.close()
        *whole, torn, last = (got + read.read()).splitlines()
    assert {msgspec.json.decode(each)["notification_id"] for each in whole} == {"n0"}
    assert msgspec.json.encode("n0") in torn
    assert not torn.endswith(b"}")
    assert msgspec.json.decode(last)["notification_id"] == "n1"


def test_standard_output_without_a_reader() -> None:
    """When nobody reads standard output any more, the sink says so and the process goes on."""
    code = (
        "import asyncio, sys\n"
        "from streams.sinks.file import Stdout\n"
        "from streams.sinks.settings import StdoutSettings\n"
        "from streams.sinks.errors import Unavailable\n"
        "from tests.streams.sinks.conftest import build\n"
        "sys.stdin.read()\n"
        "try:\n"
        "    asyncio.run(Stdout(StdoutSettings(name='out'), 'p').send(build()))\n"
        "except Unavailable as problem:\n"
        "    print(problem, file=sys.stderr)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    )
    assert process.stdout
    process.stdout.close()
    process.stdout = None
    _, told = process.communicate(b"")
    assert b"standard output cannot be written to (Broken pipe)" in told
