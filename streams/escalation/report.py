"""Words the report for the person who is called: what was tried, how often, what recurs, where to begin.

Pure: the same alert gives the same report. It says only what the alert says; nothing is looked up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from schemas.outputs import Report
from streams.escalation.text import line, markdown_block, markdown_text

if TYPE_CHECKING:
    from schemas.outputs import Alert

MOST_TITLE = 160
MOST_LINE = 500
MOST_CALLS = 20
MOST_IDS = 12

_BEGIN = {
    "different_files": "The cause is likely not in the files that were changed: look at what they depend on.",
    "different_method": "The same approach was tried again and again: decide on another one before anybody retries.",
    "escalate_human": "The attempts are exhausted: decide whether the task is well posed and can be done as it stands.",
    "skip_subtask": "This part blocks the rest: decide whether the task can go on without it.",
    "analyze_root_cause": "The same failure came back each time: reproduce it by hand and find its cause first.",
}
_BEGIN_FAILING = "Reproduce the recurring failure by hand: it did not change, whatever the agent did."
_BEGIN_TASK = "Look at the attempts above: find out what each of them took for granted, and whether that holds."
_BEGIN_ELSE = "Look at the calls above: find out what the agent expected of them, and why they could not give it."


def report(alert: Alert) -> Report:
    """Word the report on an alert.

    Args:
        alert: the alert that led to the termination.
    """
    tried = tuple(line(call, MOST_LINE) for call in alert.evidence.calls[:MOST_CALLS])
    failure = line(alert.evidence.error, MOST_LINE) if alert.evidence.error else None
    of_task = alert.scope == "task"
    where = f"task {alert.task_id}" if of_task else f"session {alert.session_id}"
    title = line(f"{alert.detector}: {alert.count:g} times in {where}", MOST_TITLE)
    otherwise = _BEGIN_TASK if of_task else _BEGIN_ELSE
    begin = _BEGIN.get(alert.suggested_strategy or "") or (_BEGIN_FAILING if failure else otherwise)
    return Report(
        title=title,
        tried=tried,
        times=alert.count,
        spin_score=alert.spin_score,
        recurring_failure=failure,
        look_at=begin,
        tokens_wasted=alert.tokens_wasted,
        cost_wasted=alert.cost_wasted,
        wasted_estimated=alert.wasted_estimated,
        markdown=_markdown(alert, title, tried, failure, begin),
    )


def _wasted(alert: Alert) -> str:
    """Say what the loop has cost so far, and whether that is measured."""
    cost = "" if alert.cost_wasted is None else f" (${alert.cost_wasted:,.2f})"
    return f"{alert.tokens_wasted:,} tokens{cost}, {'estimated' if alert.wasted_estimated else 'measured'}"


def _spinning(alert: Alert) -> list[tuple[str, str]]:
    """Say what spins: a session, or a task over its sessions, and in which way."""
    if alert.scope == "session":
        return [("session", alert.session_id), ("task", alert.task_id)]
    rows = [("task", alert.task_id), ("latest session", alert.session_id)]
    if alert.pattern is not None:
        rows.append(("pattern", alert.pattern.replace("_", " ")))
    if alert.suggested_strategy is not None:
        rows.append(("suggested strategy", alert.suggested_strategy.replace("_", " ")))
    return rows


def _likeness(alert: Alert) -> list[tuple[str, str]]:
    """Say how alike the attempts are, where that was measured, and where they were read from."""
    evidence = alert.evidence
    rows = []
    if evidence.word_similarity is not None:
        rows.append(("alike in words", f"{evidence.word_similarity:.0%}"))
    if evidence.diff_similarity is not None:
        rows.append(("alike in changes", f"{evidence.diff_similarity:.0%} of the changed lines"))
    if evidence.derived:
        rows.append(("attempts", "read from tool calls: edits, then a check"))
    return rows


def _markdown(alert: Alert, title: str, tried: tuple[str, ...], failure: str | None, begin: str) -> str:
    def row(name: str, value: str) -> str:
        return f"| {name} | {markdown_text(line(value, MOST_LINE))} |"

    rows = [row(name, value) for name, value in (*_spinning(alert), *_likeness(alert))]
    if alert.task is not None and alert.task.repo:
        rows.append(row("repository", alert.task.repo))
    if alert.agent is not None:
        who = [part for part in (alert.agent.name, alert.agent.role, alert.agent.model) if part]
        rows += [row("agent", ", ".join(who))] if who else []
    rows += [
        row("first seen", alert.first_seen.isoformat(timespec="seconds")),
        row("last seen", alert.occurred_at.isoformat(timespec="seconds")),
        row("spent on it", _wasted(alert)),
        row("alerts before", f"{alert.interventions_so_far}"),
    ]
    if alert.spin_score is not None:
        rows.append(row("spin score", f"{alert.spin_score:g} likely, from 0 to 1, that the latest calls spin"))
    rows += [row("limit", f"{limit.name} = {limit.value:g} ({limit.layer})") for limit in alert.limits]
    parts = [
        f"# {markdown_text(title)}",
        markdown_text(line(alert.reasoning, MOST_LINE)),
        "\n".join(["| | |", "|---|---|", *rows]),
    ]
    if tried:
        parts += [f"## Tried, {alert.count:g} times", markdown_block(tried)]
    if failure:
        weak = " (read from text; no status was sent)" if alert.evidence.weak else ""
        parts += [f"## Recurring failure{weak}", markdown_block((failure,))]
    parts += ["## Where to begin", begin]
    parts += ["## Evidence", markdown_block(_evidence(alert))]
    return "\n\n".join(parts) + "\n"


def _evidence(alert: Alert) -> tuple[str, ...]:
    lines = [f"alert {line(alert.alert_id, MOST_LINE)}, loop {line(alert.loop_id, MOST_LINE)}"]
    if alert.evidence.position is not None:
        position = alert.evidence.position
        lines.append(f"triggered by {line(position.topic, MOST_LINE)}-{position.partition} offset {position.offset}")
    lines += [f"attempt {line(attempt, MOST_LINE)}" for attempt in alert.evidence.attempt_ids[-MOST_IDS:]]
    lines += [f"event {line(event, MOST_LINE)}" for event in alert.evidence.event_ids[-MOST_IDS:]]
    return tuple(lines)
