"""The dashboard of escalations and sinks: what is done about loops, is it obeyed, and are people told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deploy.grafana.board import Section, board
from deploy.grafana.budgets import budget, burning
from deploy.grafana.look import BLUE, GREEN, GREY, LEVELS, NEVER, ORANGE, PAGES, RED, Query, runbook
from deploy.grafana.panels import lines, number, ranking
from deploy.grafana.queries import RECENT, flapping, grown, quantile, rate, share, top, total
from deploy.grafana.sinks import sinks
from deploy.grafana.slo import ANSWERED, RESPONDED, RESPONSE_SECONDS
from deploy.grafana.tables import Column, grid, words

if TYPE_CHECKING:
    from grafana_foundation_sdk.models import dashboard

UID = "traction-escalations"

HOW_TO_READ = f"""\
An alert about an agent leads up a ladder: guidance, cooldown, another strategy, a person, at last a termination, which
an orchestrator answers. **Terminations without an answer** are agents that go on although they were to be stopped: look
whether the orchestrator runs, and reads agent.terminations. **Sinks** tell people: where the queue of one ages, or its
deliveries are dead, they do not know.
[The ladder]({PAGES}/escalation.md) · [Sinks]({PAGES}/sinks.md) · [Orchestrators]({PAGES}/orchestrators.md)
"""


def _obeyed() -> Section:
    return Section(
        "Are agents stopped?",
        [
            budget(
                "Answered terminations", "terminations may stay without an orchestrator's answer", ANSWERED, width=5
            ),
            budget(
                "Responses in time",
                f"responses may be out later than {RESPONSE_SECONDS:g} s after their alert",
                RESPONDED,
                width=5,
            ),
            number(
                "Waiting for an answer",
                "Terminations that no orchestrator has answered yet. Good: 0 but for seconds. What stays is "
                "repeated, and then a person is told.",
                total("traction_pending_terminations"),
                "none",
                steps=[(1, ORANGE), (5, RED)],
                instant=False,
                links=[runbook("TractionOrchestratorSilent")],
                width=4,
            ),
            number(
                "Given up",
                "Terminations that were repeated to the end without an answer, over the time shown. Must be 0: "
                "those sessions may still run.",
                grown("traction_unanswered_terminations_total"),
                "none",
                steps=NEVER,
                decimals=0,
                links=[runbook("TractionTerminationUnanswered"), runbook("TractionTerminationsUndelivered")],
                width=3,
            ),
            number(
                "Loops open",
                "Sessions and tasks with a loop that is not over. Good: a small part of the live ones, and a level "
                "that falls again after a burst.",
                total("traction_open_climbs"),
                "short",
                base=BLUE,
                instant=False,
                width=4,
            ),
            number(
                "Cooling down",
                "Cooldowns that run: agents that were told to wait. Good: few beside the open loops.",
                total("traction_open_cooldowns"),
                "short",
                base=BLUE,
                instant=False,
                width=3,
            ),
            lines(
                "Alerts read",
                "Alerts that the escalation consumer read, by level. Good: as many as workers wrote.",
                [Query(grown("traction_alerts_read_total", "level", window=RECENT), "{{level}}")],
                "short",
                bars=True,
                stacked=True,
                colours=LEVELS,
            ),
            lines(
                "Directives, by what they ask",
                "What orchestrators were asked to do next with a session. Good: most loops end on the lower steps, "
                "with guidance and cooldowns; calls for a person are few.",
                [Query(grown("traction_directives_total", "action", window=RECENT) + " > 0", "{{action}}")],
                "short",
                bars=True,
                stacked=True,
                colours={"inject_guidance": GREEN, "cooldown": BLUE, "escalate_human": ORANGE, "abandon": RED},
            ),
            lines(
                "Terminations, by reason",
                "Sessions to be stopped, by the detector that found the loop, or person where somebody asked for "
                "it. Good: no repeated ones, each of which is a termination that was not answered in time.",
                [
                    Query(
                        grown("traction_terminations_total", "reason", where='attempt="first"', window=RECENT) + " > 0",
                        "{{reason}}",
                    ),
                    Query(
                        grown("traction_terminations_total", where='attempt="repeated"', window=RECENT) + " > 0",
                        "repeated",
                    ),
                ],
                "short",
                bars=True,
                stacked=True,
                colours={"repeated": GREY},
                links=[runbook("TractionOrchestratorSilent")],
            ),
            lines(
                "Answers",
                "What orchestrators and people said, by their word. Good: obeyed, for nearly all. Refused: they "
                "cannot or will not; what answers nothing comes too late, or is about something that is over.",
                [
                    Query(
                        grown("traction_answers_total", "word", where='answered!="nothing"', window=RECENT) + " > 0",
                        "{{word}}",
                    ),
                    Query(
                        grown("traction_answers_total", where='answered="nothing"', window=RECENT) + " > 0",
                        "answers nothing",
                    ),
                ],
                "short",
                bars=True,
                stacked=True,
                colours={"obeyed": GREEN, "refused": RED, "false_alarm": ORANGE, "answers nothing": GREY},
                links=[runbook("TractionTerminationsRefused")],
            ),
            lines(
                "From alert to response",
                "From an alert's record to the commit of what was made of it. Good: 99 of 100 below the dashed line "
                f"at {RESPONSE_SECONDS:g} s.",
                [
                    Query(quantile(0.5, "traction_alert_to_response_seconds"), "half"),
                    Query(quantile(0.99, "traction_alert_to_response_seconds"), "99 of 100"),
                ],
                "s",
                steps=[(RESPONSE_SECONDS, RED)],
                colours={"half": GREEN, "99 of 100": BLUE},
                links=[runbook(RESPONDED.alert)],
            ),
            burning("Answered terminations", "terminations may stay without an answer", ANSWERED),
        ],
    )


def _fitness() -> Section:
    def by_result(result: str) -> str:
        return total("traction_fitness_tasks", "model", "config", where=f'result="{result}"')

    return Section(
        "How agents fare, and what the ladder keeps",
        [
            grid(
                "Agents by model and configuration",
                "Tasks that each configuration tried, how many came to an end, and how many flapped. Good: flapped "
                "below a tenth. A configuration far above the others should not be given such tasks.",
                [
                    f"{by_result('tried')} > 0",
                    share(by_result("converged"), by_result("tried")),
                    share(by_result("flapped"), by_result("tried")),
                ],
                {
                    "model": Column("Model"),
                    "config": Column("Configuration"),
                    "Value #A": Column("Tasks tried", decimals=0),
                    "Value #B": Column("Converged", "percentunit", decimals=0),
                    "Value #C": Column("Flapped", "percentunit", decimals=0, steps=[(0.1, ORANGE), (0.3, RED)]),
                },
                sort="Tasks tried",
                width=16,
            ),
            ranking(
                "Types of task that flap",
                "Share of tasks of a type that flapped, over the time shown, the worst ten. Good: a few per cent.",
                Query(
                    top(10, flapping("task_type")),
                    "{{task_type}}",
                ),
                "percentunit",
                base=GREEN,
                steps=[(0.1, ORANGE), (0.3, RED)],
                top=1,
            ),
            lines(
                "Ladders held",
                "Tasks whose ladder the escalation consumer holds in memory. Good: level.",
                [Query(total("traction_ladders", "instance"), "{{instance}}")],
                "short",
                stacked=True,
                width=6,
            ),
            lines(
                "Size of the ladders",
                "Bytes that they take. Good: level, some kilobytes a ladder.",
                [Query(total("traction_ladder_bytes", "instance"), "{{instance}}")],
                "bytes",
                stacked=True,
                width=6,
            ),
            lines(
                "Ladders read back",
                "Records read back to take partitions over. Good: only after a start or a rebalance.",
                [Query(rate("traction_restored_records_total", "instance"), "{{instance}}")],
                "cps",
                width=6,
            ),
            lines(
                "By time alone, and duplicates",
                "Steps of ladders that came since time had passed, such as the end of a cooldown; and alerts "
                "dropped since they had been read. Good: hardly any duplicates; they are harmless.",
                [
                    Query(rate("traction_timers_fired_total"), "steps by time"),
                    Query(rate("traction_duplicate_alerts_total"), "duplicate alerts"),
                ],
                "cps",
                width=6,
            ),
        ],
    )


def made() -> dashboard.Dashboard:
    """Make the dashboard."""
    return board(
        UID,
        "Escalations and sinks",
        "What is done about loops, whether orchestrators obey, and whether people are told.",
        [Section("How to read this", [words(HOW_TO_READ)]), _obeyed(), sinks(), _fitness()],
        metric="traction_alerts_read_total",
    )
