"""Lets Java start sooner: the classes that a broker loads are kept in a file as they are once loaded and linked.

It is Java's ahead-of-time cache (JEP 483, made as in JEP 514). It lies beside Java, as Java's own archives do, and is
gone with it. Java checks whether it fits Java, the jars and the options, and starts without it where it does not.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from streams.kafka_broker.jars import class_path
from streams.kafka_broker.java import archive_of, find_java
from streams.kafka_broker.process import KafkaBroker

if TYPE_CHECKING:
    from collections.abc import Callable


def make(cache: Path, *, tell: Callable[[str], object]) -> Path | None:
    """Make the file unless it is there, from what a broker loads until it answers.

    Args:
        cache: the directory of Kafka's jars.
        tell: is called with a sentence before anything slow, and where the file cannot be made.

    Returns:
        The file; None where it cannot be kept beside Java.

    Raises:
        BrokerError: the broker cannot be started.
    """
    kept = archive_of(find_java(), class_path(cache, tell=tell))
    if kept.is_file():
        return kept
    tell("keeping the classes that a broker loads, for quicker starts ...")
    try:
        with tempfile.TemporaryDirectory(prefix=".kafka-", dir=kept.parent) as staging:
            made = Path(staging) / kept.name
            with KafkaBroker(cache=cache, record=made):
                pass
            made.replace(kept)
    except OSError as problem:
        tell(f"{kept}: not made ({problem.strerror}); brokers start all the same")
        return None
    return kept
