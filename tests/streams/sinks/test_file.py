"""Files are appended to whole or not at all, whatever they are and whoever else writes them."""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from schemas.outputs import Notification
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


async def test_standard_output(capsys: pytest.CaptureFixture[str], notification: MakeNotification) -> None:
    """A notification is printed as a line of JSON."""
    await Stdout(StdoutSettings(name="out"), "p").send(notification("n1"))
    assert msgspec.json.decode(capsys.readouterr().out)["notification_id"] == "n1"


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
    assert b"standard output cannot be written to (BrokenPipeError)" in told
