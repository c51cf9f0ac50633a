"""When a delivery is tried again, after how long, how fast, and when it ends; in time that passes at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from streams.sinks.delivery import (
    FIRST_PAUSE_SECONDS,
    MOST_PAUSE_SECONDS,
    MOST_RETRY_AFTER_SECONDS,
    Abandoned,
    Bucket,
    deliver,
)
from streams.sinks.errors import Gone, Refused, Unavailable
from tests.streams.sinks.conftest import Clock


class Attempts:
    """Fails as it is told, one error a try, and is taken after them."""

    def __init__(self, clock: Clock, errors: Iterator[Exception] | list[Exception]) -> None:
        self.clock = clock
        self.errors = iter(errors)
        self.at: list[float] = []
        self.retried: list[float] = []

    async def __call__(self) -> None:
        """Make one try."""
        self.at.append(self.clock.now)
        for error in self.errors:
            raise error

    async def deliver(self, minutes: float = 30, per_second: float = 1_000, ours: int = 1_000_000) -> None:
        """Try, as long as it is ours for so many tries."""
        await deliver(
            self,
            give_up_seconds=minutes * 60,
            bucket=Bucket(per_second, self.clock.timing),
            timing=self.clock.timing,
            retried=lambda _, seconds: self.retried.append(seconds),
            ours=lambda: len(self.at) < ours,
        )


def forever(retry_after: float | None = None) -> Iterator[Exception]:
    """Give errors without an end."""
    while True:
        yield Unavailable("away", retry_after=retry_after)


async def test_taken_at_once(clock: Clock) -> None:
    """What is taken is tried once, without a pause."""
    attempts = Attempts(clock, [])
    await attempts.deliver()
    assert (len(attempts.at), clock.slept) == (1, [])


async def test_it_is_tried_until_it_is_taken(clock: Clock) -> None:
    """After failures that may pass it is tried again, and each is told."""
    attempts = Attempts(clock, [Unavailable("a"), Unavailable("b")])
    await attempts.deliver()
    assert (len(attempts.at), len(attempts.retried)) == (3, 2)


async def test_pauses_double_up_to_a_bound_at_random(clock: Clock) -> None:
    """Each pause lies between 0 and a bound that doubles, and is not the same for all."""
    attempts = Attempts(clock, forever())
    with pytest.raises(Unavailable):
        await attempts.deliver()
    bounds = [min(MOST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2**number) for number in range(len(attempts.retried))]
    assert all(0 <= pause <= bound for pause, bound in zip(attempts.retried, bounds, strict=True))
    assert len(set(attempts.retried)) == len(attempts.retried)
    assert max(attempts.retried) > MOST_PAUSE_SECONDS / 2


async def test_it_is_given_up_in_time(clock: Clock) -> None:
    """The last try is made at the end of the time, no earlier and no later."""
    attempts = Attempts(clock, forever())
    with pytest.raises(Unavailable):
        await attempts.deliver(minutes=2)
    assert attempts.at[-1] - attempts.at[0] == pytest.approx(120)
    assert attempts.at[-2] - attempts.at[0] < 120


async def test_a_receiver_is_left_alone_as_it_asks(clock: Clock) -> None:
    """A pause is as long as the receiver asks for, to a limit."""
    attempts = Attempts(
        clock,
        [
            Unavailable("a", retry_after=100),
            Unavailable("b", retry_after=MOST_RETRY_AFTER_SECONDS),
            Unavailable("c", retry_after=MOST_RETRY_AFTER_SECONDS + 1),
        ],
    )
    await attempts.deliver(minutes=60)
    assert attempts.retried == [100, MOST_RETRY_AFTER_SECONDS, MOST_RETRY_AFTER_SECONDS]


async def test_what_is_asked_for_does_not_outlast_the_time(clock: Clock) -> None:
    """Asked to wait for longer than there is time, the last try is made at its end."""
    attempts = Attempts(clock, forever(retry_after=500))
    with pytest.raises(Unavailable):
        await attempts.deliver(minutes=1)
    assert [at - attempts.at[0] for at in attempts.at] == [0, 60]


@pytest.mark.parametrize("error", [Refused("no"), Gone("never")])
async def test_a_refusal_is_final(clock: Clock, error: Exception) -> None:
    """What is refused is not tried again."""
    attempts = Attempts(clock, [error])
    with pytest.raises(type(error)):
        await attempts.deliver()
    assert len(attempts.at) == 1


async def test_a_defect_is_a_refusal_that_quotes_nothing(clock: Clock) -> None:
    """An error of ours sets one notification aside, and its text, which may hold a secret, is not told."""
    attempts = Attempts(clock, [ZeroDivisionError("hunter2")])
    with pytest.raises(Refused, match="ZeroDivisionError in the sink itself") as caught:
        await attempts.deliver()
    assert "hunter2" not in str(caught.value)


async def test_what_is_no_longer_ours_is_left(clock: Clock) -> None:
    """Once another process has the partition, no further try is made."""
    attempts = Attempts(clock, forever())
    with pytest.raises(Abandoned):
        await attempts.deliver(ours=2)
    assert len(attempts.at) == 2


async def test_tries_are_paced(clock: Clock) -> None:
    """Beyond one at once, tries of whatever notifications come as fast as allowed on average, and no faster."""
    bucket = Bucket(0.5, clock.timing)
    for _ in range(5):
        await bucket.take()
    assert clock.now == 1_000 + 4 * 2
    clock.now += 100
    await bucket.take()
    assert clock.now == 1_000 + 8 + 100


async def test_a_burst_is_a_second_s_worth(clock: Clock) -> None:
    """After a quiet time as many are let through at once as in a second, then they are paced."""
    bucket = Bucket(10, clock.timing)
    for _ in range(10):
        await bucket.take()
    assert clock.now == 1_000
    await bucket.take()
    assert clock.now == pytest.approx(1_000.1)
