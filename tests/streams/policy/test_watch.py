"""A policy file is followed: what changes holds, what cannot be used does not, and nothing ends the watch."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry

from detectors import Limits
from streams.policy import watch as module
from streams.policy.load import InvalidPolicy
from streams.policy.metrics import PolicyMetrics
from streams.policy.watch import PolicyWatch
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from streams.policy.policy import Policy

OFTEN, SELDOM = 0.02, 3_600.0


def text(warn: int) -> str:
    """Write a policy."""
    return f"[limits]\nidentical.warn = {warn}\n"


def write(path: Path, content: str) -> None:
    """Write a file as an editor does, which empties it first."""
    path.write_text(content, "utf-8")


def remove(path: Path) -> None:
    """Remove a file."""
    path.unlink()


class Followed:
    """A process that follows a file: what was put in force, in order, and the metrics."""

    def __init__(self, path: Path | None, interval: float) -> None:
        self.registry = CollectorRegistry()
        self.warns: list[int] = []
        self.refusing: Exception | None = None
        self.watch = PolicyWatch(path, Limits(), self.apply, PolicyMetrics(self.registry), interval=interval)
        self.looks = 0

    def apply(self, policy: Policy) -> None:
        """Put in force, or fail as is asked for."""
        if self.refusing is not None:
            raise self.refusing
        self.warns.append(policy.common.identical.warn)

    def count(self, result: str) -> float:
        """Give how often a file was applied or refused."""
        return self.registry.get_sample_value("traction_policy_reloads_total", {"result": result}) or 0.0

    @property
    def refused_now(self) -> float | None:
        """Give whether the file is told to be refused as it is now."""
        return self.registry.get_sample_value("traction_policy_refused")

    async def counted(self, result: str, number: int) -> None:
        """Wait until it was."""

        async def reached() -> bool:
            return self.count(result) >= number

        await until(reached)
        assert self.count(result) == number


@asynccontextmanager
async def following(path: Path | None, interval: float = OFTEN) -> AsyncIterator[Followed]:
    """Follow a file for the time of a test; the watch must be running still at the end."""
    followed = Followed(path, interval)
    task = asyncio.create_task(followed.watch.run())
    try:
        yield followed
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def looks(number: int = 20) -> None:
    """Let some looks pass."""
    await asyncio.sleep(number * OFTEN)


async def test_a_change_is_put_in_force_and_a_touch_is_not(file: Path) -> None:
    """The content counts: it is applied at the start and once for each change, not for a new time of the same."""
    write(file, text(4))
    async with following(file) as followed:
        await followed.counted("applied", 1)
        os.utime(file, (1, 1))
        write(file, text(4))
        await looks()
        write(file, text(5))
        await followed.counted("applied", 2)
        assert followed.warns == [4, 5]
        assert (followed.registry.get_sample_value("traction_policy_loaded_timestamp_seconds") or 0) > 1e9


async def test_a_bad_file_is_refused_and_the_one_before_stays(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is told once with what is wrong, however often it is looked at; the next good one is taken."""
    write(file, text(4))
    async with following(file) as followed:
        await followed.counted("applied", 1)
        assert followed.refused_now == 0
        write(file, "[limits]\nidentical.wran = 4\n")
        await followed.counted("refused", 1)
        assert followed.refused_now == 1
        await looks()
        write(file, "[limits\n")
        await followed.counted("refused", 2)
        write(file, text(4))  # as before the bad ones
        await followed.counted("applied", 2)
        assert followed.refused_now == 0
        assert followed.warns == [4, 4]
    assert caplog.text.count("there is no limit 'identical.wran'") == 1
    assert "line 1, column 8" in caplog.text


async def test_a_file_that_is_being_written_is_waited_for(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is there in part for a moment is neither put in force nor refused: only what two looks in a row find."""
    contents = iter([text(4), "[limits]\n", "[lim", text(5), text(3), text(3)])
    last: list[bytes] = []

    def part(path: Path) -> bytes:
        assert path == file
        last[:] = [content.encode() for content in [next(contents, None)] if content is not None] or last
        return last[0]

    monkeypatch.setattr(module, "read_bytes", part)
    async with following(file) as followed:
        await followed.counted("applied", 2)
        assert (followed.warns, followed.count("refused")) == ([4, 3], 0)


async def test_a_file_that_goes_and_comes_back(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    """While it is gone the policy stays, which is told once."""
    write(file, text(4))
    async with following(file) as followed:
        await followed.counted("applied", 1)
        remove(file)
        await followed.counted("refused", 1)
        await looks()
        write(file, text(5))
        await followed.counted("applied", 2)
        assert (followed.warns, followed.count("refused")) == ([4, 5], 1)
    assert caplog.text.count("No such file") == 1


async def test_a_config_map_is_seen(tmp_path: Path) -> None:
    """Kubernetes swaps the directory that the file is a link into; neither the link nor the old file changes."""
    for name, warn in (("one", 4), ("two", 5)):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "policy.toml", text(warn))
    (tmp_path / "..data").symlink_to("one")
    (tmp_path / "policy.toml").symlink_to("..data/policy.toml")
    async with following(tmp_path / "policy.toml") as followed:
        await followed.counted("applied", 1)
        (tmp_path / "..tmp").symlink_to("two")
        (tmp_path / "..tmp").replace(tmp_path / "..data")
        await followed.counted("applied", 2)
        assert followed.warns == [4, 5]


async def test_a_sighup_looks_at_once(file: Path) -> None:
    """Long before the next look is due; the same file is read again, and a bad one told again."""
    write(file, text(4))
    async with following(file, SELDOM) as followed:
        await followed.counted("applied", 1)
        os.kill(os.getpid(), signal.SIGHUP)
        await followed.counted("applied", 2)
        write(file, "[limits\n")
        for number in (1, 2):
            os.kill(os.getpid(), signal.SIGHUP)
            await followed.counted("refused", number)
        write(file, text(5))
        os.kill(os.getpid(), signal.SIGHUP)
        await followed.counted("applied", 3)
        assert followed.warns == [4, 4, 5]


async def test_a_sighup_without_a_policy_file_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """It is said that there is nothing to read, and how there would be."""

    async def told() -> bool:
        return "there is no policy file to read; start with --policy FILE" in caplog.text

    async with following(None, OFTEN) as followed:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        os.kill(os.getpid(), signal.SIGHUP)
        await until(told)
        assert (followed.count("applied"), followed.count("refused")) == (0, 0)


@pytest.mark.parametrize("problem", [RuntimeError("unforeseen"), "invalid"])
async def test_what_cannot_be_applied_is_refused(
    file: Path, problem: Exception | str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever putting in force raises, the watch goes on, and the next file is taken."""
    write(file, text(4))
    async with following(file) as followed:
        await followed.counted("applied", 1)
        followed.refusing = InvalidPolicy(file, ["unforeseen"]) if isinstance(problem, str) else problem
        write(file, text(5))
        await followed.counted("refused", 1)
        followed.refusing = None
        write(file, text(3))
        await followed.counted("applied", 2)
        assert followed.warns == [4, 3]
    assert "unforeseen" in caplog.text
