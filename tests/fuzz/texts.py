"""What people and other programs write into files, and what agents say: from any bytes to a result or a clear error.

Each function takes any bytes and keeps the one documented error to itself. Whatever else is raised is a finding.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from detectors import InvalidLimits, Limits, SessionState, limits_from, step
from detectors.call import read_call
from detectors.canonical import canonical_arguments, opened, plain_text
from detectors.catalogue import Tools
from detectors.checks import failing_checks
from detectors.facts import Mark
from detectors.masks import mask_failure, mask_result
from detectors.patch import patch_digest
from detectors.tasks.diffs import read_diff
from detectors.weights import InvalidWeights, read_weights
from schemas.encode import encode
from schemas.testing import tool_call
from streams.backtest.labels import InvalidLabels, read_labels
from streams.cli import COMMANDS
from streams.config import ConfigError, load
from streams.fixes.config import read_config
from streams.fixes.records import InvalidFixConfig
from streams.importers import Session, read_path
from streams.policy.load import InvalidPolicy, parse_policy
from streams.policy.policy import Policy
from streams.replay import play
from streams.timeline import session_lines

LIMITS = Limits()
TOOLS = Tools()
FOLDER = Path(mkdtemp(prefix="fuzz-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))  # noqa: S108
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
NAMES = ("bash", "edit", "browser_click", "grep", "read", "pytest")
MAX_PLAYED = 50
"""Calls of a recording that are played: what comes later goes the same way."""

Target = Callable[[bytes], None]


def text_of(data: bytes) -> str:
    """Give a text that JSON can carry: any text without half surrogate pairs."""
    return data.decode("utf-8", "replace")


def in_file(data: bytes, name: str) -> Path:
    """Write a file."""
    path = FOLDER / f"{os.getpid()}-{name}"
    path.write_bytes(data)
    return path


def policy(data: bytes) -> None:
    """Read a policy, and ask it."""
    with contextlib.suppress(InvalidPolicy):
        found = parse_policy(Path("policy.toml"), data, LIMITS)
        found.limits(None, None)
        found.ladder(None, None)


def settings(data: bytes) -> None:
    """Read a file of settings, with its limits."""
    with contextlib.suppress(ConfigError, InvalidLimits):
        found = load(in_file(data, "settings.toml"), COMMANDS)
        limits_from(found.layers, LIMITS)


def fix_settings(data: bytes) -> None:
    """Read the settings of the detector of fixes."""
    with contextlib.suppress(InvalidFixConfig):
        read_config(in_file(data, "fixes.json"))


def recording(data: bytes) -> None:
    """Read a recording of any format, play its sessions and show them."""
    for found in read_path(in_file(data, "recording.jsonl")):
        if isinstance(found, Session):
            del found.events[MAX_PLAYED:]
            for event in found.events:
                encode(event)
            for _ in session_lines(play(found, Policy())):
                pass


def labels(data: bytes) -> None:
    """Read the labels of recordings."""
    with contextlib.suppress(InvalidLabels):
        read_labels(in_file(data, "labels.jsonl"))


def weights(data: bytes) -> None:
    """Read the weights of the spin score."""
    with contextlib.suppress(InvalidWeights):
        read_weights(data).score([0.0] * 100)


def diff(data: bytes) -> None:
    """Take a diff apart."""
    read_diff(text_of(data))


def command_line(data: bytes) -> None:
    """Tell what a command line is for."""
    text = text_of(data)
    for arguments in ({"command": text}, {"command": text.split(" ")}, text):
        TOOLS.use("bash", arguments)


def said(data: bytes) -> None:
    """Look at a text as arguments and as a result of all kinds of tools, and at what it has in common with another."""
    text = text_of(data)
    head, _, tail = text.partition("\n")
    arguments: Any = opened(head)
    for name in NAMES:
        call = tool_call(1, name, arguments if isinstance(arguments, dict) else {"path": head}, tail)
        read_call(call, Mark(), LIMITS)
    for status in ("ok", "error"):
        state = SessionState()
        for number in range(3):
            step(state, tool_call(number, head[:256] or "t", text, text, status=status), LIMITS)
    mask_failure(mask_result(text), arguments)
    failing_checks(text)
    patch_digest("edit", arguments, ())
    canonical_arguments(arguments)
    plain_text(arguments)


TARGETS: dict[str, Target] = {
    "policy": policy,
    "settings": settings,
    "fix-settings": fix_settings,
    "recording": recording,
    "labels": labels,
    "weights": weights,
    "diff": diff,
    "command-line": command_line,
    "said": said,
}
"""The targets of what stands in files, and of what is said."""
