"""Work in several processes: its order, how far items are read ahead, a process that is lost, and interruptions."""

from __future__ import annotations

import math
import multiprocessing
import operator
import os
import time

import pytest

from streams import pool
from streams.pool import WorkersLost, run_all


def ignore(_):
    """Take a result and do nothing."""


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("portion", [1, 7, 1_000])
def test_results_come_in_the_order_of_the_items(monkeypatch, jobs, portion):
    """However many processes and however large the portions; what is told is what is given."""
    monkeypatch.setattr(pool, "PORTION_CALLS", portion)
    told: list[int] = []
    assert run_all(range(30), lambda _: 3, operator.neg, jobs, told.append) == [-each for each in range(30)]
    assert told == [-each for each in range(30)]
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("jobs", [1, 2])
def test_nothing_comes_of_nothing(jobs):
    """No item, no result."""
    assert run_all([], lambda _: 1, operator.neg, jobs, ignore) == []


def test_items_are_read_as_they_are_needed(monkeypatch):
    """When the first result is told, no more was read than the portions that may be under way."""
    monkeypatch.setattr(pool, "PORTION_CALLS", 10)
    read: list[int] = []
    ahead: list[int] = []

    def items():
        for each in range(60):
            read.append(each)
            yield each

    run_all(items(), lambda _: 5, operator.neg, 2, lambda _: ahead.append(len(read)))
    assert ahead[0] == 2 * pool.PORTIONS_PER_JOB * 2  # two items a portion
    assert len(read) == 60


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_the_work_raises_is_raised_here(monkeypatch, jobs):
    """A failure reaches the caller as it is, and no process is left."""
    monkeypatch.setattr(pool, "PORTION_CALLS", 1)
    with pytest.raises(ValueError, match=r"domain error|nonnegative"):
        run_all([4, -1, 9], lambda _: 1, math.sqrt, jobs, ignore)
    assert multiprocessing.active_children() == []


def test_a_process_that_ends_by_itself_is_told():
    """It is said, rather than waited for."""
    with pytest.raises(WorkersLost, match="memory"):
        run_all([3], lambda _: 1, os._exit, 2, ignore)
    assert multiprocessing.active_children() == []


def test_a_process_that_is_killed_is_told(monkeypatch):
    """When the system ends a process at work, it is said, nothing hangs, and no other is left."""
    monkeypatch.setattr(pool, "PORTION_CALLS", 1)

    def kill(_):
        for process in multiprocessing.active_children()[:1]:
            process.kill()

    with pytest.raises(WorkersLost):
        run_all(range(200), lambda _: 1, operator.neg, 2, kill)
    assert multiprocessing.active_children() == []


def test_an_interruption_waits_for_no_work(monkeypatch):
    """What a process is at is not done to its end before Ctrl-C is obeyed, and no process is left."""
    monkeypatch.setattr(pool, "PORTION_CALLS", 1)

    def items():
        yield 40
        time.sleep(1)  # so that a process is at it
        raise KeyboardInterrupt

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_all(items(), lambda _: 1, time.sleep, 2, ignore)
    assert time.monotonic() - started < 20
    assert multiprocessing.active_children() == []
