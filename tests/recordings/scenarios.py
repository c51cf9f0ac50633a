"""Plays a collection of short event sequences of other systems' tests and checks that each is judged as it expects.

They are other people's data and no part of the project: `$TRACTION_RECORDINGS/scenarios/scenarios.jsonl`. A scenario
that depends on its author's numbers is played under them (`scenario_limits`), every other one under the defaults.
What we have no rule for is left out, and told; nothing is left out because it fails.

    python tests/recordings/scenarios.py PATH [--id NAME]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from detectors import InvalidLimits, Limits, SessionState, TaskState, limits_from, observe_task, step
from schemas.events import SessionInput
from schemas.outputs import Alert
from tests.recordings.scenario_events import Entry, records
from tests.recordings.scenario_limits import ACCEPTED, Figure, known_limits, limits_for, missing, unknown

Level = Literal["none", "notice", "warn", "terminate"]
RANK: Mapping[str, int] = {"none": 0, "notice": 0, "recovered": 0, "warn": 1, "terminate": 2}
"""How loud a level is. A notice asks nothing of anyone and a recovery is good news: neither is an alert here."""

EXCEPTIONS = {
    "rec-013": "twelve calls of tools that do not exist: the specification terminates at ten",
    "rec-028": "eighteen equal polls: the specification terminates at three times five",
    "rec-031": "five laps of two views: the specification terminates at five",
}
"""Scenarios that are judged to be wrong, with the reason; they are played and must differ, else the entry is stale."""

MAX_EXCEPTIONS = 5


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """What has to be noticed: how grave, by which step (1-based; None: by the last), and what would be too much."""

    detector: str
    level: Level
    at_step: int | None
    max_level: Level
    any_of: tuple[str, ...]


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """A sequence of events and what is expected of it."""

    id: str
    kind: Literal["positive", "negative"]
    events: tuple[Entry, ...]
    expect: Expectation
    replay_config: dict[str, Any] = {}
    threshold_sensitive: bool = False
    note: str = ""


class Unreadable(ValueError):
    """A file of scenarios is empty, or a line of it is none."""


class Step(NamedTuple):
    """One event as it was played, with the alerts it brought about."""

    number: int
    entry: Entry
    alerts: list[Alert]


def check(path: Path) -> list[str]:
    """Play the scenarios of a file, tell how many held and which were left out, and give the faults."""
    try:
        scenarios = sorted(read(path), key=lambda each: (each.expect.detector, each.id))
    except (OSError, Unreadable) as error:
        return [str(error)]
    faults: list[str] = []
    played: Counter[bool] = Counter()
    held: Counter[bool] = Counter()
    left_out: dict[str, list[str]] = defaultdict(list)
    excepted = dict(EXCEPTIONS)
    for scenario in scenarios:
        if reasons := why_not(scenario):
            left_out["; ".join(reasons)].append(scenario.id)
            continue
        played[scenario.threshold_sensitive] += 1
        fault = fault_of(scenario)
        if reason := excepted.pop(scenario.id, None):
            say(f"  judged wrong: {scenario.id}: {reason}")
            fault = None if fault else "is judged wrong, and holds: take it out of the exceptions"
        held[scenario.threshold_sensitive] += fault is None
        faults += [f"{scenario.id} ({scenario.expect.detector}): {fault}"] if fault else []
    for reason, names in sorted(left_out.items()):
        say(f"  left out: {', '.join(names)}: {reason}")
    say(
        f"scenarios: {held[False]} of {played[False]} held under the defaults, {held[True]} of {played[True]} under "
        f"their authors' numbers; {sum(map(len, left_out.values()))} left out"
    )
    if len(EXCEPTIONS) > MAX_EXCEPTIONS:
        faults.append(f"{len(EXCEPTIONS)} scenarios are judged wrong, more than {MAX_EXCEPTIONS}: doubt the detectors")
    return faults + [f"{name}: is judged wrong and was not played" for name in excepted]


def read(path: Path) -> Iterator[Scenario]:
    """Read the scenarios of a file, one a line; raises Unreadable, and OSError for a file that is not there."""
    lines = path.read_text("utf-8").splitlines()
    if not lines:
        raise Unreadable(f"{path}: there are no scenarios")
    for number, line in enumerate(lines, start=1):
        try:
            yield msgspec.json.decode(line, type=Scenario)
        except msgspec.DecodeError as error:
            raise Unreadable(f"{path}:{number}: {error}") from None


def why_not(scenario: Scenario) -> list[str]:
    """Give the reasons why a scenario cannot be played; none when it can."""
    return sorted(set(missing(scenario.replay_config))) if scenario.threshold_sensitive else []


def fault_of(scenario: Scenario) -> str | None:
    """Play a scenario and give what is wrong with the outcome."""
    lacking = unknown(scenario.replay_config) if scenario.threshold_sensitive else []
    lacking += [f"no entry for the detector {word}" for word in words_of(scenario) if word not in ACCEPTED]
    if lacking:
        return f"cannot be judged: {'; '.join(lacking)}"
    try:
        return judge(scenario, play(scenario, limits_from([(scenario.id, settings_of(scenario))])))
    except (InvalidLimits, msgspec.ValidationError) as error:
        return f"cannot be judged: {error}"


def words_of(scenario: Scenario) -> tuple[str, ...]:
    """Give the detectors that a positive scenario accepts, by its own words."""
    expect = scenario.expect
    return tuple(dict.fromkeys((expect.detector, *expect.any_of))) if scenario.kind == "positive" else ()


def settings_of(scenario: Scenario) -> dict[str, Figure]:
    """Give the limits that a scenario is played under where they are not the defaults."""
    if not scenario.threshold_sensitive:
        return {}
    return limits_for(scenario.replay_config, negative=scenario.kind == "negative")


def play(scenario: Scenario, limits: Limits) -> list[Step]:
    """Play a scenario through one session and the tasks that it speaks of."""
    session = SessionState()
    tasks: dict[str, TaskState] = defaultdict(TaskState)
    return [
        Step(number, entry, [alert for record in made for alert in _alerts(session, tasks, record, limits)])
        for number, (entry, made) in enumerate(records(scenario.events), start=1)
    ]


def _alerts(
    session: SessionState, tasks: Mapping[str, TaskState], record: SessionInput, limits: Limits
) -> Iterator[Alert]:
    """Give what a record brings about in its session and then in its task."""
    alerts, told = step(session, record, limits)
    yield from alerts
    if told is not None:
        yield from observe_task(tasks[told.task_id], told, limits)


def judge(scenario: Scenario, steps: list[Step]) -> str | None:
    """Compare what was noticed with what is expected, and give the difference in one line."""
    expect = scenario.expect
    loud = [(step.number, alert) for step in steps for alert in step.alerts if RANK[alert.level]]
    got = ", ".join(told(number, alert) for number, alert in loud) or "nothing"
    if any(RANK[alert.level] > RANK[expect.max_level] for _, alert in loud):
        return f"wanted {expect.max_level} at most, got {got}"
    if scenario.kind == "negative":
        return None
    meant: set[str] = set().union(*(ACCEPTED[word] for word in words_of(scenario)))
    last = expect.at_step or len(steps)
    for number, alert in loud:
        if RANK[alert.level] >= RANK[expect.level] and alert.detector in meant and number <= last:
            return None
    return f"wanted {expect.level} by step {last} for {' or '.join(words_of(scenario))}, got {got}"


def told(number: int, alert: Alert) -> str:
    """Say an alert in a few words."""
    limits = ", ".join(f"{limit.name} = {limit.value:g}" for limit in alert.limits)
    return f"{alert.level} by {alert.detector} at step {number} ({alert.count:g}; {limits})"


def show(scenario: Scenario) -> None:
    """Tell a scenario step by step, with the alerts; limits that do not exist are passed over."""
    say(f"{scenario.id} ({scenario.kind}): {scenario.note}")
    say(f"expected: {json.dumps(msgspec.to_builtins(scenario.expect))}")
    settings = {name: value for name, value in settings_of(scenario).items() if name in known_limits()}
    say(f"limits: {', '.join(f'{name} = {value:g}' for name, value in settings.items()) or 'the defaults'}")
    for played in play(scenario, limits_from([(scenario.id, settings)])):
        arguments, result = (json.dumps(each, default=str)[:100] for each in (played.entry.args, played.entry.result))
        say(f"{played.number:4} {played.entry.tool} {arguments} -> {result} error={played.entry.error}")
        for alert in played.alerts:
            say(f"     {told(played.number, alert)}")
    say(f"outcome: {'; '.join(why_not(scenario)) or fault_of(scenario) or 'holds'}")


def say(text: str) -> None:
    """Write a line."""
    sys.stdout.write(f"{text}\n")


def main() -> int:
    """Check a file, or show one scenario of it, and give the exit code."""
    parser = argparse.ArgumentParser(description="Play the scenarios of a file against the detectors.")
    parser.add_argument("path", type=Path)
    parser.add_argument("--id", help="show this scenario step by step")
    asked = parser.parse_args()
    if asked.id:
        wanted = [scenario for scenario in read(asked.path) if scenario.id == asked.id]
        for scenario in wanted:
            show(scenario)
        return 0 if wanted else 1
    faults = check(asked.path)
    for fault in faults:
        say(f"  FAULT {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
