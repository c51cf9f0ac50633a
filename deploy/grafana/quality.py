"""The dashboard of one detector's quality: how often it speaks, how often it is right, and what comes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deploy.grafana.board import Section, board, chosen
from deploy.grafana.look import BLUE, GREEN, LEVELS, ORANGE, PAGES, RED, Query
from deploy.grafana.panels import heat, lines, number, ranking
from deploy.grafana.queries import RECENT, flapping, grown, of, rate, share, top
from deploy.grafana.slo import FALSE_SHARE, FLAPPING_SHARE
from deploy.grafana.tables import Column, grid, words

if TYPE_CHECKING:
    from grafana_foundation_sdk.models import dashboard

UID = "traction-detectors"

DETECTOR = 'detector=~"$detector"'

FEW_FALSE = 0.05
"""Below this share of false alarms a detector is trusted."""

HOW_TO_READ = f"""\
Choose a detector above. It is good when few of its warnings are marked as false alarms, and many of the loops that it
warns about recover. What it got wrong people say with `traction alerts wrong`, and orchestrators by a control record:
where nobody says so, a low share proves nothing. Too many false alarms: raise its limits for that repository or role in
the policy, and try the change on recorded sessions with `traction backtest` before.
[Detectors]({PAGES}/detectors.md) · [Policy]({PAGES}/policy.md)
"""


def _one() -> Section:
    warned = grown("traction_alerts_total", where=f'{DETECTOR},level="warn"')
    return Section(
        "The detector, over the time shown",
        [
            number(
                "Warnings",
                "Loops that it warned about. Neither many nor few is good: compare with the days before.",
                warned,
                "short",
                base=ORANGE,
                decimals=0,
            ),
            number(
                "False alarms",
                f"Warned loops that people marked as none, as a share of the warnings. Good: below {FEW_FALSE:.0%}; "
                f"above {FALSE_SHARE:.0%} people stop listening, and it is reported. Only what is reported counts, "
                "so a low share proves little where nobody reports.",
                share(grown("traction_false_alarms_total", where=DETECTOR), warned),
                "percentunit",
                steps=[(FEW_FALSE, ORANGE), (FALSE_SHARE, RED)],
                none="no warnings",
                decimals=1,
            ),
            number(
                "Recoveries",
                "Warned loops that ended by themselves or since the agent took the hint, as a share of the "
                "warnings. The higher the better: it warns early enough, and its guidance helps.",
                share(grown("traction_alerts_total", where=f'{DETECTOR},level="recovered"'), warned),
                "percentunit",
                none="no warnings",
                decimals=0,
            ),
            number(
                "Asked to terminate",
                "Loops that went on until it asked for a termination. Good: few beside the warnings. Whether it "
                "then comes to one is the policy's decision.",
                grown("traction_alerts_total", where=f'{DETECTOR},level="terminate"'),
                "short",
                base=RED,
                decimals=0,
            ),
            number(
                "Terminated",
                "Sessions that were terminated on its word, counted by the escalation consumer. Good: no more than "
                "asked for; fewer, where the policy observes, warns only, or tries other steps first.",
                grown("traction_terminations_total", where='attempt="first",reason=~"$detector"'),
                "short",
                base=RED,
                decimals=0,
            ),
            number(
                "Notices",
                "Beginnings of loops, for the record only: nobody is told. Far more of them than warnings is good: "
                "most loops end before.",
                grown("traction_alerts_total", where=f'{DETECTOR},level="notice"'),
                "short",
                base=BLUE,
                decimals=0,
            ),
            lines(
                "Alerts by level",
                "Its alerts over time. Good: few, and recovered follows warn. A burst at one time over many "
                "sessions: a tool or repository broke, rather than the agents.",
                [Query(grown("traction_alerts_total", "level", where=DETECTOR, window=RECENT), "{{level}}")],
                "short",
                bars=True,
                stacked=True,
                colours=LEVELS,
                width=12,
            ),
            lines(
                "False alarms and recoveries, as shares of the warnings of a day",
                f"Of the loops warned about within the 24 hours before. Good: false alarms below the dashed line at "
                f"{FALSE_SHARE:.0%}, recoveries level or rising. A step: somebody changed limits, or agents changed.",
                [
                    Query(
                        share(
                            grown("traction_false_alarms_total", where=DETECTOR, window="1d"),
                            grown("traction_alerts_total", where=f'{DETECTOR},level="warn"', window="1d"),
                        ),
                        "false alarms",
                    ),
                    Query(
                        share(
                            grown("traction_alerts_total", where=f'{DETECTOR},level="recovered"', window="1d"),
                            grown("traction_alerts_total", where=f'{DETECTOR},level="warn"', window="1d"),
                        ),
                        "recoveries",
                    ),
                ],
                "percentunit",
                steps=[(FALSE_SHARE, RED)],
                colours={"false alarms": RED, "recoveries": GREEN},
                width=12,
            ),
        ],
    )


def _all() -> Section:
    def of_level(level: str) -> str:
        return grown("traction_alerts_total", "detector", where=f'level="{level}"')

    warned = of_level("warn")
    return Section(
        "All detectors beside each other",
        [
            grid(
                "Detectors, over the time shown",
                "Every detector that warned, with what came of it. Good: false alarms below 5 % of the warnings. A "
                "detector at the top with many warnings is the one to look at first.",
                [
                    f"{warned} > 0",
                    share(grown("traction_false_alarms_total", "detector"), warned),
                    share(of_level("recovered"), warned),
                    f"{of_level('terminate')} and on (detector) ({warned} > 0)",
                ],
                {
                    "detector": Column("Detector"),
                    "Value #A": Column("Warnings", decimals=0),
                    "Value #B": Column(
                        "False alarms",
                        "percentunit",
                        decimals=1,
                        steps=[(FEW_FALSE, ORANGE), (FALSE_SHARE, RED)],
                    ),
                    "Value #C": Column("Recovered", "percentunit", decimals=0),
                    "Value #D": Column("Asked to terminate", decimals=0),
                },
                sort="Warnings",
                height=9,
                width=16,
            ),
            ranking(
                "False alarms reported, by detector",
                "Loops that people marked as none, over the time shown. Good: none, where people do report.",
                Query(top(10, grown("traction_false_alarms_total", "detector")), "{{detector}}"),
                "short",
                base=RED,
                decimals=0,
                none="none reported",
                height=9,
            ),
        ],
    )


def _around() -> Section:
    flapping_words = (
        "Share of tasks about which a person was called, or that were abandoned or terminated, over the time shown. "
        "Good: a few per cent, and none far above the others. At most 30 values are told apart; the rest is other."
    )
    worse = [(0.1, ORANGE), (FLAPPING_SHARE, RED)]
    return Section(
        "What it works on: all detectors together",
        [
            heat(
                "Spin score of calls",
                "How likely it is that the latest calls of a session spin, at each call: 0 is all new, 1 is all "
                "known. Good: most near 0, and no band that wanders upwards.",
                Query(rate("traction_spin_score_bucket", "le")),
                "none",
                width=12,
            ),
            lines(
                "What people and orchestrators decided",
                "Control records by action. Good: obeyed, for nearly all. Many refusals, resets, resumes or forced "
                "modes after alerts say that people disagree with them, also where nobody marks a false alarm.",
                [Query(grown("traction_control_total", "action", window=RECENT) + " > 0", "{{action}}")],
                "short",
                bars=True,
                stacked=True,
                colours={"false_alarm": RED, "refused": ORANGE, "obeyed": GREEN},
                width=12,
            ),
            *(
                ranking(
                    f"Tasks that flap, by {name}",
                    flapping_words,
                    Query(top(8, flapping(label)), f"{{{{{label}}}}}"),
                    "percentunit",
                    base=GREEN,
                    steps=worse,
                    top=1,
                )
                for name, label in (
                    ("repository", "repo"),
                    ("role of the agent", "role"),
                    ("type of task", "task_type"),
                )
            ),
        ],
    )


def made() -> dashboard.Dashboard:
    """Make the dashboard."""
    detectors = f"label_values({of('traction_alerts_total')}, detector)"
    return board(
        UID,
        "Detector quality",
        "How often a detector speaks, how often it is right, and what comes of it.",
        [Section("How to read this", [words(HOW_TO_READ, height=3)]), _one(), _all(), _around()],
        metric="traction_build_info",
        variables=[chosen("detector", "Detector", detectors, several=False)],
        shown="24h",
    )
