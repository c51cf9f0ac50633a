"""The command: what it prints, when it is wrong use, and how it ends."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from streams.cli import traction
from streams.follow import Notes
from tests.processes import TRACTION, TractionProcess
from tests.streams.follow.kit import answers, asks, call
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_dry_run(tmp_path: Path, number: int) -> None:
    """Without brokers alerts are printed as the transcript grows, and a signal ends it in order."""
    flags = ("--json",) if number == signal.SIGINT else ()
    process = TractionProcess(TRACTION, "follow", "--dry-run", "--interval", "0.05", *flags, str(tmp_path))
    try:
        await process.ready()
        same = json.loads(asks(0))["message"]["content"][0]
        lines = b""
        for each in range(1, 7):
            line = json.loads(asks(each))
            line["message"]["content"] = [same | {"id": f"call{each}"}]
            lines += json.dumps(line).encode() + b"\n" + answers(each)
        (tmp_path / "a.jsonl").write_bytes(call(0) + lines + b"{broken\n")

        async def told() -> bool:
            return "terminate" in "\n".join(process.lines).lower()

        await until(told)
        assert await process.end(number) == 0
    finally:
        process.kill()
    if not flags:
        assert process.lines[0] == "follow ready: 0 files; events go to the detectors, here"
        assert process.lines[-1] == "follow ended: 7 events"
        assert any(line.startswith("TERMINATE  s1  call #") for line in process.lines)
        assert "a.jsonl:15: " in process.log
        return
    rows = [json.loads(line) for line in process.lines]
    assert rows[0] == {"what": "ready", "files": 0}
    assert rows[-1] == {"what": "ended", "files": 1, "sent": 7}
    assert {"fault", "alert", "progress"} <= {row["what"] for row in rows}
    assert next(row for row in rows if row["what"] == "alert")["alert"]["session_id"] == "s1"
    assert process.log == ""


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--dry-run", "--gateway", "http://localhost:1"], "drop --gateway"),
        (["--dry-run", "--state", "x"], "drop --state"),
        (["--gateway", "localhost:1"], "http://"),
        (["--gateway-token-file", "{file}"], "goes with --gateway"),
        (["--limits", "{file}"], "go with --dry-run"),
        (["--since", "yesterday"], "for example 30m"),
    ],
)
def test_wrong_use(tmp_path: Path, flags: list[str], said: str) -> None:
    """What contradicts itself or cannot be used is wrong use, and says what to do."""
    file = tmp_path / "file"
    file.write_text("text")
    result = CliRunner().invoke(traction, ["follow", *(each.format(file=file) for each in flags), str(tmp_path)])
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


def test_a_state_that_is_used(tmp_path: Path) -> None:
    """A state that another process uses is told with what to do, and exit code 1."""
    with Notes(tmp_path / "state"):
        flags = ["--gateway", "http://localhost:1", "--state", str(tmp_path / "state")]
        result = CliRunner().invoke(traction, ["follow", *flags, str(tmp_path)])
    assert result.exit_code == 1
    assert "another traction follow uses it; give --state" in result.output
