"""The dashboard to open first: is all well, what do agents do, who spins, and which processes run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deploy.grafana.board import Section, board
from deploy.grafana.budgets import budget
from deploy.grafana.look import BLUE, GREEN, LEVELS, NEVER, ORANGE, PAGES, RED, Query, runbook
from deploy.grafana.panels import lines, number, ranking
from deploy.grafana.processes import processes
from deploy.grafana.queries import FLEET, RECENT, flapping, grown, highest, of, quantile, rate, share, top, total
from deploy.grafana.slo import (
    ALERT_SECONDS,
    ANSWERED,
    BEHIND_SECONDS,
    FLAPPING_SHARE,
    IN_TIME,
    READABLE,
    RESPONDED,
    RESPONSE_SECONDS,
    SPINNING_SHARE,
    WORKER,
)
from deploy.grafana.tables import Column, grid, words

if TYPE_CHECKING:
    from grafana_foundation_sdk.models import dashboard

UID = "traction-fleet"

HOW_TO_READ = f"""\
**Start here.** All of the next two lines green: Traction is well, and what you see below is what the *agents* do.
Something red: the number links to its runbook, and so does the table of alerts. Then go on to **Pipeline health** when
alerts are late or missing, **Escalations and sinks** when agents are not stopped or people are not told, **Detector
quality** when people complain of false alarms, **Cost saved** when somebody asks what it is for. The *i* of a panel
says what good is. [Runbooks]({PAGES}/runbooks.md) · [Metrics]({PAGES}/operating.md#metrics)
"""


def _well() -> Section:
    return Section(
        "Is all well?",
        [
            number(
                "Alerts that fire",
                "Traction's own alerts in Prometheus that fire now. Good: 0. Otherwise the table below names them, "
                "with their runbooks.",
                'count(ALERTS{alertname=~"Traction.+",alertstate="firing",' + FLEET + "}) or vector(0)",
                "none",
                steps=NEVER,
                width=6,
            ),
            number(
                "Processes not ready",
                "Processes that Prometheus cannot scrape, or whose /readyz says no. Good: 0. A few seconds above it "
                "after a start or a rolling update are normal; a worker that reads back its state is not ready "
                "until it has.",
                f"(count({of('up')} == 0) or vector(0)) + (count({of('traction_ready')} == 0) or vector(0))",
                "none",
                steps=NEVER,
                links=[runbook("TractionNotReady"), runbook("TractionDown")],
                width=6,
            ),
            number(
                "Brokers out of reach",
                "Processes whose last look at the Kafka brokers got no answer. Good: 0. All of them: the brokers or "
                "the network; one of them: that machine.",
                f"count({of('traction_brokers_reachable')} == 0) or vector(0)",
                "none",
                steps=NEVER,
                links=[runbook("TractionBrokersAway"), runbook("TractionBrokersUnreachable")],
                width=6,
            ),
            number(
                "Furthest behind",
                "Age of the input that the slowest worker, escalation consumer or bridge is at. Good: below a "
                f"second. Above {BEHIND_SECONDS:g} s for long it is reported; what grows without end is a process "
                "that hangs or is too slow.",
                highest("traction_consumer_behind_seconds"),
                "s",
                steps=[(5, ORANGE), (BEHIND_SECONDS, RED)],
                instant=False,
                links=[runbook("TractionBehind"), runbook("TractionFallingBehind")],
                width=6,
            ),
            *(
                budget(title, what, objective, width=6)
                for title, what, objective in (
                    ("Alerts in time", f"alerts may be out later than {ALERT_SECONDS:g} s after their event", IN_TIME),
                    (
                        "Responses in time",
                        f"responses may be out later than {RESPONSE_SECONDS:g} s after their alert",
                        RESPONDED,
                    ),
                    ("Readable events", "events may become dead letters", READABLE),
                    ("Answered terminations", "terminations may stay without an orchestrator's answer", ANSWERED),
                )
            ),
            grid(
                "Which alerts fire",
                "Traction's alerts that fire or are about to (pending), with how grave they are. Good: empty. The "
                "name links to the runbook: what it means, how to check, what to do.",
                [
                    'max by (alertname, severity, alertstate, job, instance) (ALERTS{alertname=~"Traction.+",'
                    + FLEET
                    + "})"
                ],
                {
                    "alertname": Column("Alert", link=f"{PAGES}/runbooks.md#${{__value.text}}"),
                    "severity": Column("Severity"),
                    "alertstate": Column("State"),
                    "job": Column("Job"),
                    "instance": Column("Instance"),
                },
                sort="Severity",
                height=6,
            ),
        ],
    )


def _agents() -> Section:
    return Section(
        "What agents do",
        [
            lines(
                "Events read",
                "Events that workers read, by what became of them. Good: nearly all applied. Duplicates come from "
                "producers that try again, and are dropped; late ones are too old to count; dead ones cannot be "
                "read; rekeyed ones are written again to the partition of their key.",
                [Query(rate("traction_events_total", "result", where=WORKER), "{{result}}")],
                "eps",
                stacked=True,
                colours={"applied": GREEN, "dead": RED, "late": ORANGE},
            ),
            lines(
                "Sessions and tasks in memory",
                "Agents' sessions and tasks whose state workers hold. Good: as many as agents are at work, plus "
                "those not yet forgotten. What only ever grows will fill the memory.",
                [
                    Query(total("traction_live_sessions"), "sessions"),
                    Query(total("traction_live_tasks"), "tasks"),
                ],
                "short",
            ),
            lines(
                "Agents' alerts",
                "Alerts about agents, by level: notice is for the record, warn reaches the agent, terminate asks to "
                "stop it, recovered ends a loop. Good: few, and recovered follows warn. Many at once: a tool or "
                "repository is broken for all.",
                [Query(grown("traction_alerts_total", "level", window=RECENT), "{{level}}")],
                "short",
                bars=True,
                stacked=True,
                colours=LEVELS,
            ),
            lines(
                "Loops that are not over",
                "Sessions and tasks that spin now, those of them that cool down, and terminations that no "
                "orchestrator has answered yet. Good: terminations fall to 0 within seconds.",
                [
                    Query(total("traction_open_climbs"), "loops"),
                    Query(total("traction_open_cooldowns"), "cooling down"),
                    Query(total("traction_pending_terminations"), "terminations without an answer"),
                ],
                "short",
                colours={"loops": ORANGE, "cooling down": BLUE, "terminations without an answer": RED},
            ),
            ranking(
                "Detectors that warned most",
                "Warnings by the detector that gave them, over the time shown. Good: shared out as in the days "
                "before. One that leads by far is either right, since many agents share a fault, or has a limit "
                "that does not suit this fleet: see Detector quality.",
                Query(top(10, grown("traction_alerts_total", "detector", where='level="warn"')), "{{detector}}"),
                "short",
                decimals=0,
            ),
            ranking(
                "Share of tasks that flap, by repository",
                "Share of tasks that flapped: a person was called, or they were abandoned or terminated. Over the "
                "time shown, the ten worst. Good: a few per cent; a repository far above the others is where to "
                "look.",
                Query(
                    top(10, flapping("repo")),
                    "{{repo}}",
                ),
                "percentunit",
                steps=[(0.1, ORANGE), (FLAPPING_SHARE, RED)],
                base=GREEN,
                top=1,
            ),
            lines(
                "Calls that bring little new",
                "Share of agents' calls with a spin score above 0.3. Good: a level well below the dashed line. A "
                "call or two are ordinary; a share that rises and stays says that many sessions get on badly at "
                "once, often before there are alerts.",
                [
                    Query(
                        "1 - "
                        + share(
                            rate("traction_spin_score_bucket", where='le="0.3"'), rate("traction_spin_score_count")
                        ),
                        "little new",
                    )
                ],
                "percentunit",
                steps=[(SPINNING_SHARE, RED)],
                top=1,
                colours={"little new": ORANGE},
                links=[runbook("TractionSpinScoreHigh")],
            ),
            lines(
                "From event to alert",
                "How long half, and 99 of 100, of the agents' alerts took from the broker's append of the event to "
                f"their commit. Good: 99 of 100 below the dashed line at {ALERT_SECONDS:g} s.",
                [
                    Query(quantile(0.5, "traction_append_to_alert_seconds"), "half"),
                    Query(quantile(0.99, "traction_append_to_alert_seconds"), "99 of 100"),
                ],
                "s",
                steps=[(ALERT_SECONDS, RED)],
            ),
            lines(
                "How loops end",
                "Loops that were over: recovered after a warning, stopped since an orchestrator carried the "
                "termination out, or given up without its answer. Good: mostly recovered, since then the work goes "
                "on; none given up.",
                [
                    Query(grown("traction_alerts_total", where='level="recovered"', window=RECENT), "recovered"),
                    Query(
                        grown(
                            "traction_answers_total",
                            where='answered="termination",word=~"obeyed|ended"',
                            window=RECENT,
                        ),
                        "stopped",
                    ),
                    Query(grown("traction_unanswered_terminations_total", window=RECENT), "given up"),
                ],
                "short",
                bars=True,
                stacked=True,
                colours={"recovered": GREEN, "stopped": BLUE, "given up": RED},
                links=[runbook("TractionTerminationUnanswered")],
            ),
        ],
    )


def made() -> dashboard.Dashboard:
    """Make the dashboard."""
    return board(
        UID,
        "Fleet overview",
        "Is Traction well, what do agents do, who spins, and which processes run. Open this first.",
        [Section("How to read this", [words(HOW_TO_READ)]), _well(), _agents(), processes()],
        metric="traction_build_info",
    )
