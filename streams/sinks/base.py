"""What every kind of sink is: something that takes one notification at a time, with its settings and secrets.

Kinds differ in what they make of a notification. Whether one is tried again is not theirs to decide.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeAlias, TypeVar

from streams.sinks.errors import InvalidSinks
from streams.sinks.http import Http
from streams.sinks.secrets import Secret, read_secret
from streams.sinks.settings import HttpSettings, SinkSettings, check_address

if TYPE_CHECKING:
    from schemas.outputs import Notification

Settings = TypeVar("Settings", bound=SinkSettings)
OverHttp = TypeVar("OverHttp", bound=HttpSettings)


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of a notification that a sink dealt with.

    Attributes:
        told: in words, what came back.
        outcome: skipped: there was nothing to do for this sink.
    """

    told: str
    outcome: Literal["delivered", "skipped"] = "delivered"


class Sink(ABC, Generic[Settings]):
    """One sink; to be used as an asynchronous context manager.

    Args:
        settings: its settings.
        place: file and table of the settings, for messages.

    Raises:
        InvalidSinks: a secret is missing, or not what it should be.
    """

    def __init__(self, settings: Settings, place: str) -> None:
        self.settings = settings
        self.secrets = self._read_secrets(place)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *problem: object) -> None:
        """Let go of what it holds."""

    @abstractmethod
    async def send(self, notification: Notification) -> Sent:
        """Give a notification to whoever is told, once.

        Raises:
            Undelivered: it was not taken.
        """

    def same(self, other: AnySink) -> bool:
        """Tell whether another sink would do the same with everything."""
        return (self.settings, self.secrets) == (other.settings, other.secrets)

    def _read_secrets(self, place: str) -> dict[str, Secret]:
        found = {}
        for key in (*self.settings.secrets, "url"):
            variable = getattr(self.settings, f"{key}_env", None)
            secret = read_secret(key, variable, getattr(self.settings, f"{key}_file", None), place)
            if secret is not None:
                found[key] = secret
        return found


AnySink: TypeAlias = Sink[Any]
"""A sink of any kind."""


class HttpSink(Sink[OverHttp]):
    """A sink that is reached by HTTP.

    Args:
        settings: its settings.
        place: file and table of the settings, for messages.
        default: the address where the settings name none.

    Raises:
        InvalidSinks: a secret is missing, or not what it should be.
    """

    def __init__(self, settings: OverHttp, place: str, default: str | None = None) -> None:
        super().__init__(settings, place)
        address = self.secrets["url"].reveal if "url" in self.secrets else getattr(settings, "url", None) or default
        if address is None:
            raise InvalidSinks(f"{place}: lacks `url`; add it")
        self.url = check_address(address, settings, "url", place)
        self.http = Http(settings, self.url, self.secrets.values())

    async def __aenter__(self) -> Self:
        await self.http.__aenter__()
        return self

    async def __aexit__(self, *problem: object) -> None:
        await self.http.__aexit__(*problem)
