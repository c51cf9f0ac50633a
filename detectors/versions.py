"""The versions of what is remembered, as bytes: which one is written, which are read, and how an old one becomes new.

One mechanism for all kinds of states, so that a release reads what the one before it wrote. It never guesses: what is
newer than this release, older than what it still reads, or damaged is refused.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, TypeVar

import msgspec

T = TypeVar("T")

Step = Callable[[list[Any]], list[Any]]
"""Takes what follows the version in the form of one version, as plain values, and gives that of the next one.

What follows is one value today, the list of the state's fields by position. A step changes nothing outside, and goes by
no type of today's: these change, and it does not.
"""

MAX_VERSION: Final = 127
"""The highest version that takes one byte: readers look for it there."""


class UnsupportedState(ValueError):
    """The encoded state is of a version that this release does not read, or is damaged."""


class _Head(msgspec.Struct, array_like=True, frozen=True):
    version: int


_ENCODER = msgspec.msgpack.Encoder()
_HEAD = msgspec.msgpack.Decoder(_Head)
_PLAIN = msgspec.msgpack.Decoder(list[Any])


class Versions(Generic[T]):
    """The versions of one kind of state.

    Args:
        name: what it is, as messages say it: "a session's state".
        kind: its type.
        current: the version that is written.
        steps: for each older version that is still read, the way to the next one; there is none missing in between.
    """

    def __init__(self, name: str, kind: type[T], current: int, steps: Mapping[int, Step] | None = None) -> None:
        self.name = name
        self.current = current
        self._steps = dict(steps or {})
        self._decoder = msgspec.msgpack.Decoder(kind)
        self._head = _ENCODER.encode((current, None))[:-1]
        if sorted(self._steps) != list(range(self.oldest, current)) or current > MAX_VERSION:
            raise ValueError(f"{name}: each version from the oldest one on needs its step")

    @property
    def oldest(self) -> int:
        """The oldest version that is read."""
        return min(self._steps, default=self.current)

    def encode(self, value: T) -> bytes:
        """Return the compact form (MessagePack, fields by position), with its version in front."""
        return _ENCODER.encode((self.current, value))

    def decode(self, data: bytes) -> T:
        """Return what a compact form of any version that is read means today.

        Raises UnsupportedState when it is damaged or of another version; the message says what to do.
        """
        try:
            if data.startswith(self._head):
                return self._decoder.decode(memoryview(data)[len(self._head) :])
            version = _HEAD.decode(data).version
            self.check(version)
            _, *fields = _PLAIN.decode(data)
            for each in range(version, self.current):
                fields = self._steps[each](fields)
            return self._decoder.decode(_ENCODER.encode(fields[0]))
        except (msgspec.MsgspecError, RecursionError) as error:
            raise UnsupportedState(f"{self.name} is damaged: {error}") from None
        except (IndexError, KeyError, TypeError, ValueError) as error:
            if isinstance(error, UnsupportedState):
                raise
            # Of the step, whose fields are not there: never quoted, since they are.
            raise UnsupportedState(f"{self.name} is damaged: {type(error).__name__} when it was migrated") from None

    def check(self, version: int) -> None:
        """Raise UnsupportedState unless this version is read; the message says which are, and what to do."""
        if version > self.current:
            raise UnsupportedState(
                f"{self.name} has version {version}, of a newer release; this one reads {self._reads}. "
                "Run the release that wrote it, or a newer one"
            )
        if version < self.oldest:
            raise UnsupportedState(
                f"{self.name} has version {version}, of an older release; this one reads {self._reads}. "
                "Run a release first that reads both, until what is still in use is written anew and the rest expired"
            )

    @property
    def _reads(self) -> str:
        if self.oldest == self.current:
            return f"version {self.current}"
        return f"versions {self.oldest} to {self.current}"
