"""What is counted of a partition between two commits: it reaches the metrics once the transaction was committed.

So that a counter says what was done, not what was tried: what a process applied and lost, its successor applies and
counts. It must not count what is about the process itself, such as a failed transaction.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client import Counter

    from streams.worker.metrics import WorkerMetrics


@dataclass(slots=True)
class Tally:
    """Counts by counter, and spin scores, of what was applied since the last commit.

    Attributes:
        counts: by how much each counter rises; of a labelled one, the child.
        scores: spin scores of calls.
    """

    counts: dict[Counter, float] = field(default_factory=dict)
    scores: list[float] = field(default_factory=list)

    def count(self, counter: Counter, amount: float = 1) -> None:
        """Have a counter rise with the commit."""
        self.counts[counter] = self.counts.get(counter, 0) + amount

    def publish(self, metrics: WorkerMetrics) -> None:
        """Add it all to the metrics; under a microsecond each, so that some thousand scores hold up nothing."""
        for counter, amount in self.counts.items():
            counter.inc(amount)
        for score in self.scores:
            metrics.spin_score.observe(score)
