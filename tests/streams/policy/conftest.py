"""Policy files as people write them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from detectors import Limits
from streams.policy.load import InvalidPolicy, read_policy

if TYPE_CHECKING:
    from pathlib import Path

    from streams.policy.policy import Policy

Read = Callable[..., "Policy"]
Faults = Callable[..., list[str]]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Give where the policy is."""
    return tmp_path / "policy.toml"


@pytest.fixture
def read(file: Path) -> Read:
    """Give what writes a policy and reads it."""

    def made(text: str, base: Limits | None = None) -> Policy:
        file.write_text(text, "utf-8")
        return read_policy(file, base or Limits())

    return made


@pytest.fixture
def faults(file: Path, read: Read) -> Faults:
    """Give what writes a policy that is refused, and tells its faults without the file's name."""

    def found(text: str, base: Limits | None = None) -> list[str]:
        with pytest.raises(InvalidPolicy) as refused:
            read(text, base)
        lines = str(refused.value).splitlines()
        assert all(line.startswith(f"{file}: ") for line in lines)
        return [line.removeprefix(f"{file}: ") for line in lines]

    return found
