"""How configurations fare is counted once, in bounds, and a rotation goes where most tasks end well."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.outputs import Fitness
from streams.escalation.fitness import MAX_COUNT, MAX_KEYS, OTHER, Partial, Standing, best, fitness_id
from streams.escalation.ladder import Tally, label
from streams.policy.model import Candidate

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def counts(name: str, task_type: str = "", partition: int = 0, **of: Any) -> Fitness:
    """Give counts of a configuration that has only a name."""
    key = fitness_id((name, "", "", task_type), partition)
    return Fitness(fitness_id=key, name=name, task_type=task_type, partition=partition, updated_at=NOW, **of)


@pytest.mark.parametrize(
    ("outcomes", "exclude", "expected"),
    [
        ({"a": (0, 0), "b": (0, 0)}, [], "a"),
        ({"a": (0, 1), "b": (0, 0)}, [], "b"),
        ({"a": (0, 0), "b": (1, 0)}, [], "b"),
        ({"a": (8, 1), "b": (9, 0)}, [], "b"),
        ({"a": (1, 0), "b": (0, 9)}, ["a"], "b"),
        ({"a": (1, 1), "b": (5, 5), "c": (0, 0)}, [], "a"),
        ({"a": (1, 0)}, ["a"], None),
        ({}, [], None),
    ],
    ids=["order", "worse than unknown", "better than unknown", "more", "excluded", "ties", "all excluded", "none"],
)
def test_the_best_of_those_left_is_chosen(
    outcomes: dict[str, tuple[int, int]], exclude: list[str], expected: str | None
) -> None:
    """The largest share of tasks that ended well, unknown ones at a half; of equal ones the policy's first."""
    candidates = [Candidate(name=name) for name in outcomes]
    found = best(candidates, {label(name, "", "") for name in exclude}, lambda each: outcomes[each.name])
    assert (found and found.name) == expected


@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 0), (0, 0)])
def test_what_is_taken_back_leaves_no_count_below_zero(before: int, after: int) -> None:
    """A false alarm takes back that a task flapped; where counts were lost, there is nothing to take back."""
    partial = Partial(0, [counts("a", flapped=before)])
    partial.add(Tally("a", "", "", "", flapped=-1), NOW)
    assert [each.flapped for each in partial.changed()] == [after]


def test_all_partitions_count_and_the_type_of_task_first() -> None:
    """Sums go over partitions; of a type of task about which nothing is known, all types count."""
    standing = Standing()
    standing.put(counts("a", "bug", 0, converged=1, flapped=1))
    standing.put(counts("a", "bug", 1, converged=1, flapped=4))
    standing.put(counts("a", "docs", 1, converged=9))
    standing.put(counts("b", "docs", 0, converged=1, flapped=1))
    a, b = Candidate(name="a"), Candidate(name="b")
    assert standing.outcomes(a, "bug") == (2, 5)
    assert standing.outcomes(a, "tests") == (11, 5)
    assert standing.choose((a, b), frozenset(), "bug") == b
    assert standing.choose((a, b), frozenset(), "docs") == a
    standing.put(counts("a", "bug", 1, converged=5, flapped=4))
    assert standing.outcomes(a, "bug") == (6, 5), "a later record replaces the earlier one of its key"
    standing.remove(fitness_id(("a", "", "", "bug"), 1))
    assert standing.outcomes(a, "bug") == (1, 1)
    assert [each.task_type for each in standing.of_partition(1)] == ["docs"]


@given(tallies=st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["", "bug"]), st.integers(0, 5))))
def test_counts_are_sums(tallies: list[tuple[str, str, int]]) -> None:
    """What was added up goes on from what was known, and each change is given once."""
    partial = Partial(3, [counts("a", "bug", 3, tasks=2)])
    for name, task_type, tasks in tallies:
        partial.add(Tally(name, "", "", task_type, tasks=tasks), NOW)
    written = {(each.name, each.task_type): each for each in partial.changed()}
    assert written.keys() == {(name, task_type) for name, task_type, _ in tallies}
    for (name, task_type), each in written.items():
        added = sum(tasks for *names, tasks in tallies if names == [name, task_type])
        assert each.tasks == added + 2 * ((name, task_type) == ("a", "bug"))
        assert each.fitness_id == fitness_id((name, "", "", task_type), 3)
    assert partial.changed() == []


@pytest.mark.parametrize(("known", "expected"), [(MAX_KEYS - 1, "new"), (MAX_KEYS, OTHER[0])])
def test_a_partition_counts_so_many_configurations_apart(known: int, expected: str) -> None:
    """The thousandth is counted under its name, the next ones together; those known stay apart."""
    partial = Partial(0, [counts(f"n{number}") for number in range(known)])
    partial.add(Tally("new", "m", "c", "bug", tasks=1), NOW)
    partial.add(Tally("n0", "", "", "", tasks=1), NOW)
    assert {each.name for each in partial.changed()} == {expected, "n0"}
    partial.add(Tally("newer", "", "", "", tasks=1), NOW)
    (changed,) = partial.changed()
    assert (changed.name, changed.tasks) == (OTHER[0], 1 + (expected == OTHER[0]))


def test_counts_stay_what_a_reader_can_read() -> None:
    """However much is added, numbers stay in the contract's range, also a price that would become infinite."""
    partial = Partial(0)
    for _ in range(2):
        partial.add(Tally("a", "", "", "", tokens=MAX_COUNT - 1, cost=1e308), NOW)
    (changed,) = partial.changed()
    assert changed.tokens == MAX_COUNT
    assert msgspec.json.decode(msgspec.json.encode(changed), type=Fitness) == changed
