"""Words the report for the person who is called: what was tried, how often, what recurs, where to begin.

Pure: the same alert gives the same report. It says only what the alert says; nothing is looked up.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import msgspec

from detectors.excerpt import cut
from schemas.outputs import Report
from streams.escalation.text import line, markdown_block, markdown_text
from streams.escalation.words import times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from schemas.outputs import Alert

MOST_TITLE = 160
MOST_LINE = 240
MOST_CALLS = 12
MOST_IDS = 4
MOST_TYPED = 128

MOST_MARKDOWN = 7_900
"""Characters of the page: below what issues take (65,536) and, as JSON, most webhooks (20 kB)."""

_MOST_CELL = 100
_SHARE_TRIED = 0.6  # of the page's room that the calls may take; the rest is the evidence's

PERSON = "person"
"""What stands in a detector's place where a person decided."""

_BEGIN = {
    "different_files": "The cause is likely not in the files that were changed: look at what they depend on.",
    "different_method": "The same approach was tried again and again: decide on another one before anybody retries.",
    "escalate_human": "The attempts are exhausted: decide whether the task is well posed and can be done as it stands.",
    "skip_subtask": "This part blocks the rest: decide whether the task can go on without it.",
    "analyze_root_cause": "The same failure came back each time: reproduce it by hand and find its cause first.",
}
_BEGIN_FAILING = "Reproduce the recurring failure by hand: it did not change, whatever the agent did."
_BEGIN_TASK = "Look at the attempts above: find out what each of them took for granted, and whether that holds."
_BEGIN_PERSON = "Nothing was noticed before: ask who decided it."
_BEGIN_ELSE = "Look at the calls above: find out what the agent expected of them, and why they could not give it."


def report(alert: Alert, done: Sequence[str] = ()) -> Report:
    """Word the report on an alert.

    Args:
        alert: the alert that led to what was done; `PERSON` as its detector: a person's decision.
        done: what was done so far, this step included, in our words.
    """
    tried = tuple(_short(call, MOST_LINE) for call in alert.evidence.calls[:MOST_CALLS])
    failure = _short(alert.evidence.error, MOST_LINE) if alert.evidence.error else None
    of_task = alert.scope == "task"
    where = f"task {alert.task_id}" if of_task else f"session {alert.session_id}"
    what = "stopped on a person's word" if alert.detector == PERSON else f"{alert.detector}: {alert.count:g} times"
    title = _short(f"{what}{':' if alert.detector == PERSON else ' in'} {where}", MOST_TITLE)
    otherwise = _BEGIN_TASK if of_task else _BEGIN_ELSE
    begin = _BEGIN.get(alert.suggested_strategy or "") or (_BEGIN_FAILING if failure else otherwise)
    begin = begin if tried or failure or alert.detector != PERSON else _BEGIN_PERSON
    told = Report(
        title=title,
        tried=tried,
        times=alert.count,
        spin_score=alert.spin_score,
        recurring_failure=failure,
        look_at=begin,
        done=tuple(done),
        commands=_commands(alert),
        tokens_wasted=alert.tokens_wasted,
        cost_wasted=alert.cost_wasted,
        wasted_estimated=alert.wasted_estimated,
        markdown="",
    )
    return msgspec.structs.replace(told, markdown=_markdown(alert, told))


def _commands(alert: Alert) -> tuple[str, ...]:
    """List what a person can type; nothing about an id that cannot be typed as it is."""
    session, task, wrong = _typed(alert.session_id), _typed(alert.task_id), _typed(alert.alert_id)
    words = ("sessions show", "sessions resume", "sessions terminate", "sessions mute") if session else ()
    commands = [f"traction {word} {session}" for word in words]
    if task:
        commands.append(f"traction tasks clear {task}")
    if wrong and alert.detector != PERSON:
        commands.append(f"traction alerts wrong {wrong}")
    return tuple(commands)


def _typed(name: str) -> str:
    """Return an id as a shell's word; empty when it is long, or has characters that do not show or cannot be typed."""
    if not (name.isascii() and name.isprintable() and len(name) <= MOST_TYPED):
        return ""
    return f"-- {shlex.quote(name)}" if name.startswith("-") else shlex.quote(name)


def _short(text: str, most: int) -> str:
    """Return text as one line of so many characters and half as many bytes again, as excerpts are."""
    return cut(line(text, most), most + most // 2)


def _wasted(alert: Alert) -> str:
    """Say what the loop has cost so far, and whether that is measured, or that nothing is known of it."""
    if not alert.tokens_wasted and alert.cost_wasted is None:
        return "not known"
    cost = "" if alert.cost_wasted is None else f" ({alert.cost_wasted:,.2f} USD)"
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


def _who(alert: Alert) -> list[tuple[str, str]]:
    """Say which repository and agent it is about, as far as that is known."""
    rows = []
    if alert.task is not None and alert.task.repo:
        rows.append(("repository", alert.task.repo))
    if alert.agent is not None:
        agent = alert.agent
        who = [_short(part, 40) for part in (agent.name, agent.role, agent.model, agent.config) if part]
        rows += [("agent", ", ".join(who))] if who else []
    return rows


def _seen(alert: Alert) -> list[tuple[str, str]]:
    """Say when it was, what it cost, and by which limit it was found."""
    rows = [
        ("first seen", alert.first_seen.isoformat(timespec="seconds")),
        ("last seen", alert.occurred_at.isoformat(timespec="seconds")),
        ("spent on it", _wasted(alert)),
        ("alerts before", f"{alert.interventions_so_far}"),
    ]
    if alert.spin_score is not None:
        rows.append(("spin score", f"{alert.spin_score:g} likely, from 0 to 1, that the latest calls spin"))
    return [*rows, *(("limit", f"{limit.name} = {limit.value:g} ({limit.layer})") for limit in alert.limits[:2])]


def _markdown(alert: Alert, told: Report) -> str:
    """Return the page; of the calls and the evidence as much as there is room for."""
    rows = [*_spinning(alert), *_likeness(alert), *_who(alert), *_seen(alert)]
    table = [f"| {name} | {markdown_text(_short(value, _MOST_CELL))} |" for name, value in rows]
    head = [
        f"# {markdown_text(told.title)}",
        markdown_text(_short(alert.reasoning, MOST_LINE)),
        "\n".join(["| | |", "|---|---|", *table]),
    ]
    foot = []
    if told.recurring_failure:
        weak = " (read from text; no status was sent)" if alert.evidence.weak else ""
        foot += [f"## Recurring failure{weak}", markdown_block((told.recurring_failure,))]
    if told.done:
        foot += ["## Done so far", "\n".join(f"- {each}" for each in told.done)]
    foot += ["## Where to begin", told.look_at]
    if told.commands:
        foot += ["## How to answer", markdown_block(told.commands)]
    left = MOST_MARKDOWN - len("\n\n".join([*head, *foot]))
    often = max(alert.count, len(told.tried))  # what is counted may be more than one call, a cycle say
    body = _fitting(f"## Tried, {times(often)}", told.tried, round(left * _SHARE_TRIED))
    left -= sum(len(part) + 2 for part in body)
    return "\n\n".join([*head, *body, *foot, *_fitting("## Evidence", _evidence(alert), left)]) + "\n"


def _fitting(heading: str, lines: Sequence[str], most: int) -> list[str]:
    """Return a heading and a block of the first lines, as many as fit into a number of characters; else nothing."""
    for count in range(len(lines), 0, -1):
        block = markdown_block(tuple(lines[:count]))
        if len(heading) + len(block) + 5 <= most:  # blank lines between, and the page's last line end
            return [heading, block]
    return []


def _evidence(alert: Alert) -> tuple[str, ...]:
    evidence = alert.evidence
    lines = [f"alert {_short(alert.alert_id, _MOST_CELL)}, loop {_short(alert.loop_id, _MOST_CELL)}"]
    if evidence.position is not None:
        position = evidence.position
        lines.append(f"triggered by {_short(position.topic, _MOST_CELL)}-{position.partition} offset {position.offset}")
    lines += [f"attempt {_short(attempt, _MOST_CELL)}" for attempt in evidence.attempt_ids[-MOST_IDS:]]
    lines += [f"event {_short(event, _MOST_CELL)}" for event in evidence.event_ids[-MOST_IDS:]]
    return tuple(lines)
