"""The sessions that the demo plays, and what is expected of each.

They are written by hand, in the neutral form of recordings, in `sessions/`; `traction replay` reads them too.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from importlib import resources
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING

from schemas.events import ToolCall
from streams.importers import Session, read_path

if TYPE_CHECKING:
    from schemas.events import SessionInput


@dataclass(frozen=True, slots=True)
class Role:
    """A session to play.

    Attributes:
        name: its session id, and its file's name.
        story: what happens in it, for the audience.
        warned: whether it is expected to be warned about.
        terminated: whether it is expected to be terminated.
    """

    name: str
    story: str
    warned: bool = False
    terminated: bool = False

    @property
    def expected(self) -> str:
        """What is expected, in words."""
        if self.terminated:
            return "warned, then terminated"
        return "warned" if self.warned else "silence"


ROLES = (
    Role("pagination", "works: reads, edits, tests, waits for CI"),
    Role("deploy-config", "reads the same file again and again", warned=True, terminated=True),
    Role("formatters", "two formatters undo each other: A, B, A, B", warned=True, terminated=True),
    Role("cart-totals", "mends a test and breaks another: A, B, C, A", warned=True),
)
"""The sessions, in the order in which they are named. The last one finds its way out after the warning."""


@dataclass(frozen=True, slots=True)
class Part:
    """A role with its recording."""

    role: Role
    session: Session

    @property
    def calls(self) -> int:
        """How many tool calls it has."""
        return self.session.calls

    @property
    def opening(self) -> list[SessionInput]:
        """What happens before the first call."""
        return list(takewhile(lambda event: not isinstance(event, ToolCall), self.session.events))

    @property
    def seconds(self) -> float:
        """How long it lasted, from the first call on, when it was recorded."""
        return self.cues()[-1][0]

    def cues(self) -> list[tuple[float, int, SessionInput]]:
        """Give the events from the first call on, with their seconds since then and their positions among the calls."""
        events = self.session.events[len(self.opening) :]
        start = events[0].occurred_at
        made = accumulate((isinstance(event, ToolCall) for event in events), initial=0)
        return [
            ((event.occurred_at - start).total_seconds(), position, event)
            for event, position in zip(events, made, strict=False)
        ]


def load() -> list[Part]:
    """Read the sessions.

    Raises:
        RuntimeError: one of them is missing or broken, which an installation can bring about.
    """
    parts = []
    with contextlib.ExitStack() as stack:
        for role in ROLES:
            place = resources.files("streams.demo") / "sessions" / f"{role.name}.jsonl"
            found = list(read_path(stack.enter_context(resources.as_file(place))))
            if len(found) != 1 or not isinstance(found[0], Session):
                raise RuntimeError(f"the demo's session {role.name} cannot be read ({found}); install Traction again")
            parts.append(Part(role, found[0]))
    return parts
