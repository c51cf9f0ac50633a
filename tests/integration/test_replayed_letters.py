"""What was refused has its effect once when it is put back after the cause is mended; what is still bad comes again."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from detectors import Step, step
from schemas import topics
from streams.letters.letter import ATTEMPT, Choice, read_letter
from streams.letters.replay import Order, Outcome, Replay
from streams.worker.judge import Detection
from tests.integration.test_bad_input import BAD
from tests.kit import WorkerInside, tool_call
from tests.waiting import until

if TYPE_CHECKING:
    from detectors import Limits, SessionState
    from schemas.events import SessionInput
    from tests.kit import Wire


async def put_back(wire: Wire, **choice: tuple[str, ...]) -> list[Outcome]:
    """Put letters back."""
    told: list[Outcome] = []
    await Replay(wire.settings, Order(Choice(**choice), "dana"), 60.0, lambda _: None, told.append).perform()  # type: ignore[arg-type]
    return told


async def test_a_mended_detector_alerts_once(wire: Wire) -> None:
    """The calls that a detector failed on bring their alert after a replay, once, however often it is asked for."""

    def fragile(state: SessionState, event: SessionInput, limits: Limits) -> Step:
        if event.session_id == "poison":
            raise KeyError(event.event_id)
        return step(state, event, limits)

    calls = [tool_call("poison", number, arguments={"path": "a"}, result="the same") for number in range(3)]
    async with WorkerInside(wire, detection=Detection(fragile)):
        await wire.send(calls)
        await wire.until_applied()
    assert (await wire.alerts(), len(await wire.dead_letters())) == ([], 3)
    async with WorkerInside(wire):
        for expected in ("replayed", "already"):
            told = await put_back(wire, reasons=("detector_error",))
            assert [each.what for each in told] == [expected] * 3
        await wire.until_applied()
    (alert,) = await wire.alerts()
    assert (alert.session_id, alert.count) == ("poison", 3)
    assert (await wire.states())["poison"].calls == 3


async def test_what_is_still_bad_comes_again(wire: Wire) -> None:
    """Every kind of bad input is put back as it came or hindered, and refused again for its reason, as an attempt."""
    for value, key, _ in BAD.values():
        await wire.raw(topics.TOOL_CALLS, value, key=key, partition=1, headers=[("odd", b"\xff")])
    await wire.raw(topics.OVERRIDES, b"{}", key=b"session:s")
    async with WorkerInside(wire):
        await wire.until_applied()

        async def refused(count: int) -> bool:
            return len(await wire.dead_letters()) == count

        await until(lambda: refused(len(BAD) + 1))
        told = await put_back(wire)
        what = Counter((each.what, each.why) for each in told)
        assert what == {("replayed", None): len(BAD) - 1, ("refused", "too_large"): 1, ("refused", "override"): 1}
        await wire.until_applied()
        # Letters, receipts, and letters once more.
        await until(lambda: refused(len(BAD) + 1 + 2 * (len(BAD) - 1)))
    letters = [letter for record in await wire.dead_letters() if (letter := read_letter(record)) is not None]
    first, second = ([each for each in letters if each.attempts == attempts] for attempts in (0, 1))
    assert len(second) == len(BAD) - 1
    came = {(each.key, each.value, each.reason) for each in first if each.reason != "too_large"}
    assert {(each.key, each.value, each.reason) for each in second} == {
        each for each in came if each[0] != b"session:s"
    }
    assert {(ATTEMPT, b"1"), ("odd", b"\xff")} == {header for each in second for header in each.headers}
