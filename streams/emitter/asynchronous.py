"""The emitter for agents that run in an event loop: the same, with what waits made awaitable.

Events are handed over at once and sent by the emitter's thread, which a busy loop cannot hold up, and which does not
hold up the loop.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any

from streams.emitter.emitter import Emitter

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from schemas.common import Agent, Task
    from streams.emitter.settings import EmitterSettings
    from streams.verdicts.model import Verdict


class AsyncEmitter:
    """Sends events of agents to a gateway; to be used with `async with`, in one event loop.

    `tool_call`, `fix_attempt`, `review`, `session`, `send`, `verdict`, `call_key`, `answer` and `counts` are those of
    `emitter` and are not awaited; what may wait is.

    Args:
        settings: see `Emitter`.
        agent: likewise.
        task: likewise.
        on_verdict: is called, and awaited if it is to be, in the event loop.

    Attributes:
        emitter: the emitter beneath.
    """

    def __init__(
        self,
        settings: EmitterSettings | None = None,
        *,
        agent: Agent | None = None,
        task: Task | None = None,
        on_verdict: Callable[[Verdict], Any] | None = None,
    ) -> None:
        self._on_verdict = on_verdict
        self._loop: asyncio.AbstractEventLoop | None = None
        self._running: set[asyncio.Task[Any]] = set()
        hear = None if on_verdict is None else self._hear
        self.emitter = Emitter(settings, agent=agent, task=task, on_verdict=hear)
        self.tool_call = self.emitter.tool_call
        self.fix_attempt = self.emitter.fix_attempt
        self.review = self.emitter.review
        self.session = self.emitter.session
        self.send = self.emitter.send
        self.verdict = self.emitter.verdict
        self.call_key = self.emitter.call_key
        self.answer = self.emitter.answer

    async def __aenter__(self) -> Self:
        """Take the event loop that verdicts are told in."""
        self._loop = asyncio.get_running_loop()
        return self

    async def __aexit__(self, *problem: object) -> None:
        """Close it."""
        await self.close()

    async def ask(self, session_id: str, *, seconds: float = 0.3) -> Verdict:
        """Ask the gateway what a session is told; see `Emitter.ask`."""
        return await asyncio.to_thread(self.emitter.ask, session_id, seconds=seconds)

    async def flush(self, seconds: float = 5.0) -> bool:
        """Wait until everything was sent or is kept; see `Emitter.flush`."""
        return await asyncio.to_thread(self.emitter.flush, seconds)

    async def close(self, seconds: float | None = None) -> None:
        """Send or keep what is left; see `Emitter.close`."""
        await asyncio.to_thread(self.emitter.close, seconds)

    def _hear(self, verdict: Verdict) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._tell, verdict)

    def _tell(self, verdict: Verdict) -> None:
        if self._on_verdict is None:
            return
        try:
            told = self._on_verdict(verdict)
        except Exception as problem:  # noqa: BLE001 - it is the caller's own
            self.emitter.callback_failed(problem)
            return
        if inspect.iscoroutine(told):
            task = asyncio.ensure_future(told)
            self._running.add(task)
            task.add_done_callback(self._told)

    def _told(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        problem = None if task.cancelled() else task.exception()
        if problem is not None:
            self.emitter.callback_failed(problem)
