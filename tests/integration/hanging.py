"""The command, parts of which wait for as long as a file is there; run with `python -m`, a folder, then its own words.

Where the folder has `fetch`, whatever fetches hangs; where it has `take`, taking a partition of a collector's does, and
where it has `slow`, each of the three steps of that is slow. Nothing else of the command is changed.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer

from streams import ownership
from streams.cli import main
from streams.gateway.owned import CollectedPartitions

PAUSE_SECONDS = 2.4
"""How long a step takes where it is slow: three are longer than the stall limit of tests, and one is shorter."""


def hanging(where: Any, what: str, folder: Path, name: str) -> None:
    """Have a part wait."""
    once = getattr(where, what)

    async def hang(*arguments: Any, **named: Any) -> Any:
        while (folder / name).exists():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.05)
        if name == "take" and (folder / "slow").exists():
            await asyncio.sleep(PAUSE_SECONDS)
        return await once(*arguments, **named)

    setattr(where, what, hang)


if __name__ == "__main__":
    at = Path(sys.argv.pop(1))
    hanging(AIOKafkaConsumer, "getmany", at, "fetch")
    hanging(AIOKafkaConsumer, "committed", at, "take")
    hanging(CollectedPartitions, "_start", at, "take")
    hanging(ownership, "start_client", at, "take")
    main()
