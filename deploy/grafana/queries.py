"""Writes PromQL for panels: rates, growth over the range shown, quantiles and shares, all within the dashboard's scope.

Every selector is bound to the variables for fleet, namespace and job. Nothing in here knows what is worth showing.
"""

from __future__ import annotations

FLEET = 'fleet=~"$fleet"'
"""Restricts recorded series, which keep no other label of the scrape."""

SCOPE = f'{FLEET},namespace=~"$namespace",job=~"$job"'
"""Restricts a selector to what the variables choose; `.*`, for all fleets and namespaces, matches a missing label."""

RECENT = "$__rate_interval"
"""Grafana's window for rates: at least four scrapes, and no shorter than a point of the graph."""

SHOWN = "$__range"
"""The whole time that the dashboard shows."""


def of(metric: str, where: str = "") -> str:
    """Select a metric's series in scope.

    Args:
        metric: its name.
        where: further matchers, without braces.
    """
    return f"{metric}{{{SCOPE}{',' if where else ''}{where}}}"


def recorded(series: str) -> str:
    """Select a recorded series of the fleets chosen, but for values that are no number: nothing had happened."""
    return f"({series}{{{FLEET}}} >= 0)"


def _over(what: str, operation: str, by: tuple[str, ...]) -> str:
    return f"{operation} by ({', '.join(by)}) ({what})" if by else f"{operation}({what})"


def rate(metric: str, *by: str, where: str = "") -> str:
    """Sum a counter's growth per second, by labels."""
    return _over(f"rate({of(metric, where)}[{RECENT}])", "sum", by)


def grown(metric: str, *by: str, where: str = "", window: str = SHOWN) -> str:
    """Sum a counter's growth over a window, the whole range by default, by labels."""
    return _over(f"increase({of(metric, where)}[{window}])", "sum", by)


def total(metric: str, *by: str, where: str = "") -> str:
    """Sum a gauge, by labels."""
    return _over(of(metric, where), "sum", by)


def highest(metric: str, *by: str, where: str = "") -> str:
    """Take a gauge's highest value, by labels."""
    return _over(of(metric, where), "max", by)


def quantile(share: float, histogram: str, *by: str, window: str = RECENT) -> str:
    """Estimate below which value a share of a histogram's observations lies, by labels.

    Args:
        share: from 0 to 1.
        histogram: its name, without `_bucket`.
        by: labels to keep apart.
        window: over how long.
    """
    return f"histogram_quantile({share:g}, {grown(f'{histogram}_bucket', 'le', *by, window=window)})"


def within(histogram: str, edge: float, window: str = SHOWN) -> str:
    """Give the share of a histogram's observations at or below one of its edges; nothing where there are none."""
    below = grown(f"{histogram}_bucket", where=f'le="{float(edge)}"', window=window)
    return share(below, grown(f"{histogram}_count", window=window))


def share(part: str, whole: str) -> str:
    """Divide; give nothing, rather than a NaN, where the whole is 0."""
    return f"{part} / ({whole} > 0)"


def flapping(by: str) -> str:
    """Give the share of tasks that flapped, by a label.

    Never above 1, which a few tasks could make of it: a series that is new is counted from its second scrape on, and a
    task may have been tried before the range began.
    """
    flapped, tried = grown("traction_flapping_tasks_total", by), grown("traction_tasks_total", by)
    return f"clamp_max({share(flapped, tried)}, 1)"


def top(count: int, query: str) -> str:
    """Keep the largest series that are above 0."""
    return f"topk({count}, {query} > 0)"
