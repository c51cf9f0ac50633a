"""The last line that a process logs when it ends with an error is the one that says why, whatever clients it had."""

from __future__ import annotations

import gc
import logging
import socket
import sys
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from streams.cli import traction

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.kit import Wire

COMMANDS = ("worker", "escalate", "ingest", "bridge")
FAULTS = ("port", "topics")


@pytest.fixture
def taken() -> Iterator[int]:
    """Give a port that somebody listens on."""
    before = sys.getswitchinterval()  # which a worker sets for its process
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]
    sys.setswitchinterval(before)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("command", COMMANDS)
def test_no_client_complains_after_the_error(
    wire: Wire, taken: int, command: str, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A port that is in use, or topics that are not there: no client is left to be collected unclosed."""
    prefix = wire.settings.prefix if fault == "port" else "none."
    words = [
        command,
        "--bootstrap",
        wire.settings.bootstrap,
        "--prefix",
        prefix,
        "--port",
        str(taken),
        "--log-level",
        "error",
    ]
    if command in {"worker", "escalate"}:
        words += ["--app-id", wire.app_id]
    if command == "bridge":
        words += ["--spans-topic", f"{prefix}tool-calls", "--no-logs"]
    with caplog.at_level(logging.WARNING):
        ended = CliRunner().invoke(traction, words, standalone_mode=False).exception
        assert isinstance(ended, click.ClickException)
        said = ended.message
        del ended  # its traceback has the clients
        gc.collect()
    assert ("is in use" in said) == (fault == "port"), said
    assert not [each for each in caplog.messages if "Unclosed" in each]
