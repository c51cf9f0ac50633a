"""Runs the commands for dead letters as the page has them, on a letter of our own."""

from __future__ import annotations

import asyncio
import os
import subprocess
from typing import TYPE_CHECKING

from schemas import topics
from streams.kafka import KafkaSettings
from streams.topics import create_topics
from tests.processes import TRACTION
from tests.streams.letters.kit import came, records, refused, write

if TYPE_CHECKING:
    from pathlib import Path

    from tests.docs.conftest import Find


async def test_the_commands_do_what_they_say(bootstrap: str, prefix: str, block: Find, tmp_path: Path) -> None:
    """All of them succeed on the letter they name, the file has the bytes, and the record is back after the last."""
    kafka = KafkaSettings(bootstrap=bootstrap, prefix=prefix)
    await create_topics(kafka, partitions=2, replication=1, app_id=prefix.rstrip("."))
    (name,) = await write(kafka, [refused(came(kafka.topic(topics.TOOL_CALLS), b"{\xff"))], partition=1)
    text = block("dead-letters").text.replace("3@1207", name)
    own = {"TRACTION_BOOTSTRAP": bootstrap, "TRACTION_PREFIX": prefix}
    path = f"{os.path.dirname(TRACTION)}:{os.environ['PATH']}"  # noqa: PTH120 - as the variable has it
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TRACTION_")}
    ran = await asyncio.to_thread(
        subprocess.run,
        ["/bin/sh", "-e", "-c", text],
        cwd=tmp_path,
        env=kept | own | {"PATH": path},
        input="y\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert (tmp_path / "refused.bin").read_bytes() == b"{\xff"
    assert ran.stdout.count("to be put back: 1\n") == 2
    assert ran.stdout.endswith("put back 1 record\n")
    (record,) = await records(kafka, topics.TOOL_CALLS)
    assert (record.partition, record.value) == (1, b"{\xff")
