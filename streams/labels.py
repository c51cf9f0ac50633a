"""Labels of metrics whose sets of values are closed, or are kept small: whatever somebody sends, pages stay short.

A value is a series for each process, and stays one as long as the process lives. Nothing in here knows what is counted.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from typing import TYPE_CHECKING, Generic, TypeVar

from prometheus_client.metrics import MetricWrapperBase

from detectors.excerpt import cut
from streams.escalation.text import line

if TYPE_CHECKING:
    from collections.abc import Iterable

Metric = TypeVar("Metric", bound=MetricWrapperBase)

OTHER = "other"
"""Label value that takes what is beyond the bounds."""

UNKNOWN = "unknown"
"""Label value that stands for none: to Prometheus an empty one is the same as a label that is not there."""

MAX_LABEL_VALUES = 50
"""Most values of a label whose set is open in principle (detectors by name); more fold into `other`."""

MAX_LABEL_BYTES = 64
"""Of one value in UTF-8. The longest names of models and repositories in use have about 50 characters."""


class Bounded(Generic[Metric]):
    """A labelled metric whose labels take a limited number of values each; further ones count as `other`.

    The first that come are told apart. Values are made fit for a page: one line, cut, without what cannot be seen.
    Children are kept, since looking one up by label costs more than counting in it; values that fold are not kept.

    Args:
        metric: the metric.
        limit: most values of each label.
        most: most combinations of values; beyond it all labels are `other`.
    """

    def __init__(self, metric: Metric, limit: int = MAX_LABEL_VALUES, most: float = math.inf) -> None:
        self._metric = metric
        self._limit = limit
        self._most = most
        self._children: dict[tuple[str, ...], Metric] = {}
        self._values: defaultdict[int, set[str]] = defaultdict(set)

    def labels(self, *values: str) -> Metric:
        """Give the child with these label values, or the one that stands for it when there are too many."""
        child = self._children.get(values)
        if child is not None:
            return child
        folded = tuple(map(self._fold, range(len(values)), values))
        others = (OTHER,) * len(values)
        if folded not in self._children and folded != others and len(self._children) >= self._most:
            folded = others
        child = self._children.get(folded)
        if child is None:
            child = self._children[folded] = self._metric.labels(*folded)
        return child

    def _fold(self, place: int, value: str) -> str:
        known, value = self._values[place], label_value(value)
        if value == OTHER or value in known:
            return value
        if len(known) >= self._limit:
            return OTHER
        known.add(value)
        return value


def label_value(text: str) -> str:
    """Make a label's value of text that came from outside: see `Bounded`."""
    if text.isascii() and text.isprintable() and text == text.strip() and 0 < len(text) <= MAX_LABEL_BYTES:
        return text
    return cut(line(text, MAX_LABEL_BYTES), MAX_LABEL_BYTES) or UNKNOWN


def create(metric: Metric, *sets: Iterable[str]) -> Metric:
    """Make the children of a metric for all combinations of label values, so that they count from 0 on.

    Args:
        metric: the metric.
        sets: the values of each label, in order.
    """
    for values in itertools.product(*sets):
        metric.labels(*values)
    return metric
