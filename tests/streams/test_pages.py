"""The HTTP pages and the health they show."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter

from streams.health import STALL_BOUNDS, Health
from streams.page_settings import PageError, PageSettings
from streams.pages import Pages

if TYPE_CHECKING:
    from collections.abc import Callable

STALL = 100.0


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        """Tell the time."""
        return self.now


def look(clock: Clock, health: Health, position: int, end: int, *, seconds: float = STALL, step: float = 5.0) -> None:
    """Look at one partition again and again for so many seconds."""
    for _ in range(round(seconds / step)):
        clock.now += step
        health.progress("p", position, end)


@pytest.fixture
def clock() -> Clock:
    """Give a clock."""
    return Clock()


@pytest.fixture
def health(clock: Clock) -> Health:
    """Give a health with two conditions of readiness."""
    return Health(("assigned", "taken"), clock=clock, stall_seconds=STALL)


def test_a_process_is_ready_when_all_conditions_hold(health: Health) -> None:
    """Not before, not after one fails again; the reason is told."""
    assert health.ready().checks == {"assigned": "not yet", "taken": "not yet"}
    health.hold("assigned")
    assert not health.ready().ok
    health.hold("taken")
    assert health.ready().ok
    health.fail("taken", "2 of 4 partitions")
    assert not health.ready().ok
    assert health.ready().checks["taken"] == "2 of 4 partitions"


def test_a_condition_must_be_known(health: Health) -> None:
    """A condition misspelt cannot make a process ready or unready for ever."""
    with pytest.raises(KeyError):
        health.hold("asigned")


def test_work_that_lies_untouched_makes_the_process_not_alive(clock: Clock, health: Health) -> None:
    """Seen waiting at one position for the stall time: not alive, and the page says where; just before: alive."""
    health.progress("p", 7, 10)
    look(clock, health, 7, 10, seconds=STALL - 5)
    assert health.live().ok
    look(clock, health, 7, 10, seconds=5)
    assert not health.live().ok
    assert health.live().checks["p"] == "stuck at 7 for 100 s with 3 waiting"


def test_what_hangs_is_not_ready(clock: Clock, health: Health) -> None:
    """Whatever its conditions said when it began to hang; the page names what hangs, and nothing that goes on."""
    health.hold("assigned")
    health.hold("taken")
    for _ in range(round(STALL / 5)):
        assert health.ready().ok
        clock.now += 5
        health.progress("turns", round(clock.now), round(clock.now) + 1)
        health.progress("p", 7, 10)
    clock.now += 5
    health.progress("p", 7, 10)
    assert health.ready().checks == {
        "assigned": "ok",
        "taken": "ok",
        "p": "stuck at 7 for 100 s with 3 waiting",
    }
    assert not health.ready().ok
    health.forget("p")
    assert health.ready().ok


@pytest.mark.parametrize("seconds", STALL_BOUNDS)
def test_the_stall_limit_has_bounds(seconds: float) -> None:
    """The shortest and the longest are taken, and what lies beyond is refused with both."""
    assert PageSettings(stall_seconds=seconds).stall_seconds == seconds
    beyond = seconds * (0.99 if seconds == STALL_BOUNDS[0] else 1.01)
    with pytest.raises(ValueError, match="must be 1 to 3,600 seconds"):
        PageSettings(stall_seconds=beyond)


def test_it_is_alive_again_once_the_position_moves(clock: Clock, health: Health) -> None:
    """A stall that ended is over."""
    look(clock, health, 7, 10, seconds=2 * STALL)
    assert not health.live().ok
    health.progress("p", 8, 10)
    assert health.live().ok


@pytest.mark.parametrize("moves", ["position", "both", "nothing waiting"])
def test_progress_is_alive_however_far_behind(clock: Clock, health: Health, moves: str) -> None:
    """A long recovery, growing lag, or idleness for hours are alive as long as the position moves or nothing waits."""
    for step in range(1_000):
        clock.now += 5
        position, end = {"position": (step, 5_000), "both": (step, 100 + 2 * step), "nothing waiting": (9, 9)}[moves]
        health.progress("p", position, end)
        assert health.live().ok


def test_time_in_which_nobody_looked_does_not_count(clock: Clock, health: Health) -> None:
    """While the broker is away, or the process was frozen, no position can move: that is no reason to restart it."""
    look(clock, health, 7, 10, seconds=STALL - 10)
    clock.now += 10 * STALL  # the broker is away
    assert health.live().ok
    health.progress("p", 7, 10)  # it is back
    assert health.live().ok
    look(clock, health, 7, 10, seconds=STALL - 5)
    assert health.live().ok
    look(clock, health, 7, 10, seconds=5)
    assert not health.live().ok


def test_what_was_given_up_is_not_watched(clock: Clock, health: Health) -> None:
    """A partition that went to another process cannot make this one not alive."""
    look(clock, health, 7, 10, seconds=2 * STALL)
    health.forget("p")
    assert health.live().ok


@given(looks=st.lists(st.tuples(st.floats(0.1, STALL), st.integers(0, 3), st.integers(0, 5)), max_size=60))
def test_a_process_is_never_called_stuck_too_soon(looks: list[tuple[float, int, int]]) -> None:
    """Whatever is seen: not alive means that one position, with work waiting, was seen for the whole stall time."""
    clock = Clock()
    health = Health((), clock=clock, stall_seconds=STALL)
    same_since = clock.now
    last: int | None = None
    for seconds, position, waiting in looks:
        clock.now += seconds
        health.progress("p", position, position + waiting)
        if position != last or waiting == 0:
            same_since, last = clock.now, position
        if not health.live().ok:
            assert clock.now - same_since >= STALL


async def get(url: str, **headers: str) -> tuple[int, str, str]:
    """Read a page: status, content type, text."""
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as answer:
        return answer.status, answer.headers["Content-Type"], await answer.text()


@pytest.fixture
def registry() -> CollectorRegistry:
    """Give a registry with one counter."""
    registry = CollectorRegistry()
    Counter("traction_things", "Things.", registry=registry).inc()
    return registry


async def test_health_pages_answer_200_or_503_with_reasons(registry: CollectorRegistry, health: Health) -> None:
    """Probes read the status, people the reasons."""
    pages = Pages(PageSettings(), registry, health)
    await pages.start()
    try:
        assert (await get(f"{pages.url}/healthz"))[0] == 200
        status, kind, text = await get(f"{pages.url}/readyz")
        assert (status, kind) == (503, "application/json; charset=utf-8")
        assert json.loads(text) == {"ok": False, "checks": {"assigned": "not yet", "taken": "not yet"}}
        health.hold("assigned")
        health.hold("taken")
        assert (await get(f"{pages.url}/readyz"))[0] == 200
        assert (await get(f"{pages.url}/nothing"))[0] == 404
    finally:
        await pages.stop()


async def test_metrics_are_given_in_the_format_asked_for(registry: CollectorRegistry, health: Health) -> None:
    """Plain text by default and for nonsense, OpenMetrics for a scraper that asks for it."""
    pages = Pages(PageSettings(), registry, health)
    await pages.start()
    try:
        _, kind, text = await get(f"{pages.url}/metrics")
        assert kind.startswith("text/plain; version=")
        assert "traction_things_total 1.0" in text
        _, kind, text = await get(f"{pages.url}/metrics", Accept="application/openmetrics-text; version=1.0.0")
        assert kind.startswith("application/openmetrics-text")
        assert text.endswith("# EOF\n")
        status, kind, _ = await get(f"{pages.url}/metrics", Accept="application/openmetrics-text; version=none")
        assert (status, kind.partition(";")[0]) == (200, "text/plain")
    finally:
        await pages.stop()


async def test_a_port_in_use_is_named_with_the_remedy(registry: CollectorRegistry, health: Health) -> None:
    """Whoever starts a second process on one machine is told what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PageError, match=rf"port {port} of 127\.0\.0\.1 is in use.*--port"):
            await Pages(PageSettings(port=port), registry, health).start()


async def test_an_address_that_is_not_ours_is_named(registry: CollectorRegistry, health: Health) -> None:
    """A wrong --host is a sentence, not a stack trace."""
    with pytest.raises(PageError, match=r"192\.0\.2\.1:0.*--host"):
        await Pages(PageSettings(host="192.0.2.1"), registry, health).start()


async def test_pages_listen_on_localhost_by_default(registry: CollectorRegistry, health: Health) -> None:
    """From another address of this machine they cannot be reached."""
    pages = Pages(PageSettings(), registry, health)
    await pages.start()
    try:
        port = int(pages.url.rpartition(":")[2])
        with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.2", port), timeout=2):
            pass
    finally:
        await pages.stop()


def test_the_builders_give_independent_health(clock: Clock) -> None:
    """Two processes' health in one interpreter share nothing."""
    make: Callable[[], Health] = lambda: Health(("x",), clock=clock)  # noqa: E731
    one, two = make(), make()
    one.hold("x")
    assert not two.ready().ok
