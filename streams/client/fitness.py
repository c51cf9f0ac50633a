"""Sums the fitness of agents' configurations over the partitions that count them, and ranks them.

Pure. A ranking is advice for whoever selects agents: it says which did well with a type of task, and excludes none.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

from streams.escalation.context import label

if TYPE_CHECKING:
    from collections.abc import Iterable

    from schemas.outputs import Fitness


@dataclass(frozen=True, slots=True)
class FitnessTotals:
    """How one configuration of an agent fared with one type of task, over all partitions.

    Attributes:
        name: product name of the agent; empty when not known, as the three that follow.
        model: its language model.
        config: its configuration.
        task_type: kind of the tasks.
        tasks: tasks that it tried, or was alerted about.
        attempts: attempts, sent or read from tool calls.
        converged: tasks of which an attempt succeeded, or a change was merged.
        flapped: tasks about which a person was called, or that were abandoned or terminated.
        tokens: tokens spent on them, where usage was sent.
        cost_usd: US dollars likewise.
    """

    name: str = ""
    model: str = ""
    config: str = ""
    task_type: str = ""
    tasks: int = 0
    attempts: int = 0
    converged: int = 0
    flapped: int = 0
    tokens: int = 0
    cost_usd: float = 0.0

    @property
    def label(self) -> str:
        """The configuration in one word, as directives name it: name/model/config, what is not known left out."""
        return label(self.name, self.model, self.config)

    @property
    def convergence_rate(self) -> float:
        """Share of its tasks that converged, from 0 to 1; 0 without tasks."""
        return self.converged / self.tasks if self.tasks else 0.0

    @property
    def flapping_rate(self) -> float:
        """Share of its tasks that flapped, likewise."""
        return self.flapped / self.tasks if self.tasks else 0.0

    @property
    def score(self) -> float:
        """How probably it brings a task to an end, from 0 to 1: the share that converged of what converged or flapped.

        One of each is added (Laplace's rule of succession), so that one task says little, and one of which nothing is
        known stands at a half. Rotations choose by the same share.
        """
        return (self.converged + 1) / (self.converged + self.flapped + 2)


def total(records: Iterable[Fitness], task_type: str | None = None) -> list[FitnessTotals]:
    """Sum records that agree in name, model, config and task type.

    Args:
        records: the latest record of each key.
        task_type: only this type of task; None for all of them, each for itself.

    Returns:
        The sums, the highest score first.
    """
    sums: dict[tuple[str, str, str, str], FitnessTotals] = {}
    for record in records:
        if task_type in {None, record.task_type}:
            key = (record.name, record.model, record.config, record.task_type)
            sums[key] = _plus(sums.get(key, FitnessTotals(*key)), record)
    return sorted(sums.values(), key=_best_first)


def rank(totals: Iterable[FitnessTotals], task_type: str | None = None) -> list[FitnessTotals]:
    """Order configurations by how well they do, each of them once: the best first, those that flap last.

    Args:
        totals: the sums, as `Orchestrator.fitness` gives them.
        task_type: only by tasks of this type; None for tasks of all types together.
    """
    sums: dict[tuple[str, str, str], FitnessTotals] = {}
    for each in totals:
        if task_type in {None, each.task_type}:
            key = (each.name, each.model, each.config)
            sums[key] = _plus(sums.get(key, FitnessTotals(*key, task_type=task_type or "")), each)
    return sorted(sums.values(), key=_best_first)


def _plus(one: FitnessTotals, other: Fitness | FitnessTotals) -> FitnessTotals:
    return FitnessTotals(
        name=one.name,
        model=one.model,
        config=one.config,
        task_type=one.task_type,
        tasks=one.tasks + other.tasks,
        attempts=one.attempts + other.attempts,
        converged=one.converged + other.converged,
        flapped=one.flapped + other.flapped,
        tokens=one.tokens + other.tokens,
        cost_usd=one.cost_usd + other.cost_usd,
    )


def _best_first(each: FitnessTotals) -> tuple[float, tuple[object, ...]]:
    return -each.score, astuple(each)
