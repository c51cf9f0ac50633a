"""The dashboard of cost saved: what loops cost until they were stopped, and what stopping them spared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deploy.grafana.board import Section, board
from deploy.grafana.look import BLUE, GREEN, ORANGE, PAGES, RED, Query
from deploy.grafana.panels import lines, number, ranking
from deploy.grafana.queries import RECENT, grown, top
from deploy.grafana.tables import words

if TYPE_CHECKING:
    from grafana_foundation_sdk.models import dashboard

UID = "traction-saved"

FIRST = 'attempt="first"'
"""Terminations, each counted once."""

HOW_TO_READ = f"""\
**Saved** is counted when a loop was stopped (its termination was obeyed, or its session ended) or recovered after a
directive: as much again as it had spent since it began to repeat. Nobody knows for how long it would have gone on: as
long again is an assumption. **Measured**: the agents sent their usage. **Estimated**: they did not, and a call is taken
for 1,000 tokens. The two are never added up here; costs are only there where agents send them.
**Wasted** is what loops had spent until they were first to be terminated: no assumption in it.
[Metrics]({PAGES}/operating.md#metrics)
"""


def _numbers() -> Section:
    def tokens(name: str, kind: str) -> str:
        return grown(f"traction_{name}_tokens_total", where=f'kind="{kind}"')

    return Section(
        "Over the time shown",
        [
            number(
                "Tokens saved, measured",
                "Tokens that stopped loops did not burn, where agents sent their usage. Good: more than was wasted. "
                "Compare it with what agents spend in all.",
                tokens("saved", "measured"),
                "short",
                decimals=1,
            ),
            number(
                "Tokens saved, estimated",
                "The same where no usage was sent: 1,000 tokens a call. Good: little beside the measured ones; have "
                "agents send usage otherwise.",
                tokens("saved", "estimated"),
                "short",
                base=BLUE,
                decimals=1,
            ),
            number(
                "Cost saved",
                "US dollars that stopped loops did not burn, where agents sent costs: always measured. Good: more "
                "than was wasted.",
                grown("traction_saved_cost_usd_total"),
                "currencyUSD",
                decimals=2,
            ),
            number(
                "Tokens wasted, measured",
                "Tokens that loops had burnt until their termination, where agents sent their usage. Good: less "
                "than is saved; otherwise loops are stopped late.",
                tokens("wasted", "measured"),
                "short",
                base=ORANGE,
                decimals=1,
            ),
            number(
                "Tokens wasted, estimated",
                "The same where no usage was sent: 1,000 tokens a call. Good: little beside the measured ones.",
                tokens("wasted", "estimated"),
                "short",
                base=ORANGE,
                decimals=1,
            ),
            number(
                "Cost wasted",
                "US dollars that loops had burnt until their termination, where agents sent costs. Good: less than "
                "is saved.",
                grown("traction_wasted_cost_usd_total"),
                "currencyUSD",
                base=ORANGE,
                decimals=2,
            ),
        ],
    )


def _course() -> Section:
    spent = {"wasted, measured": RED, "wasted, estimated": ORANGE}
    both = {"saved": GREEN, "wasted": RED}

    def tokens(kind: str) -> list[Query]:
        return [
            Query(grown(f"traction_{name}_tokens_total", where=f'kind="{kind}"', window=RECENT), name)
            for name in ("saved", "wasted")
        ]

    return Section(
        "Over time",
        [
            lines(
                "Tokens, measured",
                "Tokens of loops that were stopped, where agents sent their usage. It comes in bursts, as loops do. "
                "Good: saved is at least what was wasted.",
                tokens("measured"),
                "short",
                colours=both,
            ),
            lines(
                "Tokens, estimated",
                "The same where no usage was sent: 1,000 tokens a call. Good: little beside the measured ones.",
                tokens("estimated"),
                "short",
                colours=both,
            ),
            lines(
                "Cost",
                "US dollars of loops that were stopped, where agents sent costs. Good: saved is at least what was "
                "wasted.",
                [
                    Query(grown("traction_saved_cost_usd_total", window=RECENT), "saved"),
                    Query(grown("traction_wasted_cost_usd_total", window=RECENT), "wasted"),
                ],
                "currencyUSD",
                colours=both,
            ),
            ranking(
                "Tokens saved, by what stopped the loop",
                "Whether a termination was needed, or a directive was enough, over the time shown. Good: directives "
                "do most of it, since then the work goes on.",
                Query(top(10, grown("traction_saved_tokens_total", "by", "kind")), "{{by}}, {{kind}}"),
                "short",
                base=GREEN,
                width=12,
            ),
            lines(
                "Tokens wasted by a terminated loop, on the average of a day",
                "What a loop costs until it is stopped, of the loops terminated within the 24 hours before. Good: "
                "level or falling; the lower, the sooner loops are stopped.",
                [
                    Query(
                        f"{grown('traction_wasted_tokens_total', 'kind', window='1d')} / on () group_left () "
                        f"({grown('traction_terminations_total', where=FIRST, window='1d')} > 0)",
                        "wasted, {{kind}}",
                    )
                ],
                "short",
                colours=spent,
                width=12,
            ),
            ranking(
                "Terminations, by detector",
                "Which detectors stopped sessions, over the time shown. Good: no one of them for most: its loops "
                "could be stopped by a hint earlier.",
                Query(top(10, grown("traction_terminations_total", "reason", where=FIRST)), "{{reason}}"),
                "short",
                decimals=0,
                width=12,
            ),
            ranking(
                "Repositories whose tasks flap most",
                "Tasks that flapped, over the time shown, by repository: where there is most to save. Good: none "
                "far above the others.",
                Query(top(10, grown("traction_flapping_tasks_total", "repo")), "{{repo}}"),
                "short",
                base=ORANGE,
                decimals=0,
                width=12,
            ),
        ],
    )


def made() -> dashboard.Dashboard:
    """Make the dashboard."""
    return board(
        UID,
        "Cost saved",
        "What loops cost until they were stopped, and what stopping them spared; measured and estimated apart.",
        [Section("How to read this", [words(HOW_TO_READ)]), _numbers(), _course()],
        metric="traction_alerts_read_total",
        shown="24h",
    )
