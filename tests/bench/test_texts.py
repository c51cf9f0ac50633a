"""What a long text costs: no more than its length says, and nothing more beyond what is read."""

from __future__ import annotations

import time

import pytest

from tests.bench.texts import FLAT, KINDS, ROUGH, SIZES, WORKS, Work, checked, growth


@pytest.mark.parametrize("name", WORKS)
def test_costs_grow_no_faster_than_texts(name: str) -> None:
    """From 1 kB to 1 MB a character costs no more in a longer text, and beyond the bound of a result nothing."""
    grown = [found for kind in KINDS if not (found := checked(name, kind))["kept"]]
    assert not grown


def test_growth_is_told() -> None:
    """Squares show within what is read, and so does reading on beyond it; straight and flat costs do not."""
    straight = [size * 1e-9 for size in SIZES]
    assert growth(Work(len, reads_all=True), straight) == pytest.approx((1.0, 1.0))
    assert growth(Work(len, reads_all=False), straight)[1] == pytest.approx(SIZES[-1] / SIZES[-2])
    assert growth(Work(len, reads_all=False), [*straight[:3], straight[2], straight[2]])[1] == pytest.approx(1.0)
    assert min(growth(Work(len, reads_all=True), [size**2 * 1e-12 for size in SIZES])) > ROUGH


def test_a_cost_that_grows_too_fast_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work that goes through all of a text where it should end, or more often the longer it is, is noticed."""

    def squares(text: str) -> None:
        end = time.thread_time() + max(1e-4, 1e-13 * len(text) ** 2)
        while time.thread_time() < end:
            pass

    monkeypatch.setitem(WORKS, "squares", Work(squares, reads_all=True))
    monkeypatch.setitem(WORKS, "to the end", Work(lambda text: sum(map(ord, text)), reads_all=False))
    assert not checked("squares", "letters", looks=1)["kept"]
    assert checked("to the end", "letters", looks=1)["beyond"] > FLAT
