"""A gateway of the test's own, and emitters that send to it and keep what it does not take in the test's directory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from streams.emitter import AsyncEmitter, Emitter, EmitterSettings, sending
from tests.streams.emitter.kit import GatewayStub

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def gateway() -> Iterator[GatewayStub]:
    """Give a gateway that runs."""
    with GatewayStub() as stub:
        yield stub


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the gateway tried again soon."""
    monkeypatch.setattr(sending, "FIRST_PAUSE_SECONDS", 0.02)
    monkeypatch.setattr(sending, "LONGEST_PAUSE_SECONDS", 0.05)


@pytest.fixture
def emitter(gateway: GatewayStub, tmp_path: Path) -> Iterator[Callable[..., Emitter]]:
    """Give what makes emitters, which are closed at the end; settings by name, `on_verdict` and the like too."""
    made: list[Emitter] = []

    def make(**given: Any) -> Emitter:
        own = {name: given.pop(name) for name in ("on_verdict", "agent", "task") if name in given}
        settings = {"url": gateway.url, "spool": str(tmp_path / "spool"), **given}
        made.append(Emitter(EmitterSettings(**settings), **own))
        return made[-1]

    yield make
    for each in made:
        each.close(0.1)


@pytest.fixture
def asynchronous(gateway: GatewayStub, tmp_path: Path) -> Iterator[AsyncEmitter]:
    """Give an emitter for an event loop, which is closed at the end."""
    made = AsyncEmitter(EmitterSettings(url=gateway.url, spool=str(tmp_path / "spool")))
    yield made
    made.emitter.close(0.1)
