"""The section on sinks of the dashboard of escalations: are people told."""

from __future__ import annotations

from deploy.grafana.board import Section
from deploy.grafana.look import GREEN, GREY, ORANGE, PURPLE, RED, Query, runbook
from deploy.grafana.panels import heat, lines
from deploy.grafana.queries import RECENT, grown, highest, quantile, rate
from deploy.grafana.slo import QUEUE_SECONDS, RESPONSE_SECONDS
from deploy.grafana.tables import Column, grid


def sinks() -> Section:
    """Make the section."""
    return Section(
        "Are people told? Sinks",
        [
            grid(
                "Sinks, over the time shown",
                "Each sink of the policy: what was delivered, tried again, given up (dead) and not for it "
                "(skipped), how old the notification is that it is at, and whether its receiver said that it is "
                "gone. Good: nothing dead, no age, nothing off.",
                [
                    grown("traction_sink_deliveries_total", "sink", where='outcome="delivered"'),
                    grown("traction_sink_deliveries_total", "sink", where='outcome="retried"'),
                    grown("traction_sink_deliveries_total", "sink", where='outcome="dead"'),
                    grown("traction_sink_deliveries_total", "sink", where='outcome="skipped"'),
                    highest("traction_sink_queue_age_seconds", "sink"),
                    highest("traction_sink_disabled", "sink"),
                    grown("traction_sink_restarts_total", "sink"),
                    grown("traction_sink_deleted_untold_records_total", "sink"),
                ],
                {
                    "sink": Column("Sink"),
                    "Value #A": Column("Delivered", decimals=0),
                    "Value #B": Column("Tried again", decimals=0, steps=[(1, ORANGE)]),
                    "Value #C": Column("Dead", decimals=0, steps=[(1, RED)]),
                    "Value #D": Column("Skipped", decimals=0),
                    "Value #E": Column("Queue's age", "s", steps=[(60, ORANGE), (QUEUE_SECONDS, RED)]),
                    "Value #F": Column("Off", "bool_yes_no", steps=[(1, RED)]),
                    "Value #G": Column("Begun anew", decimals=0, steps=[(1, ORANGE)]),
                    "Value #H": Column("Deleted untold", decimals=0, steps=[(1, RED)]),
                },
                sort="Dead",
                height=7,
            ),
            lines(
                "Age of what a sink is at",
                "Age of the notification that each sink is trying to deliver; 0 when it has none. Good: near 0. "
                f"Above {QUEUE_SECONDS:g} s it is reported: the receiver is away or slow.",
                [Query(highest("traction_sink_queue_age_seconds", "sink"), "{{sink}}")],
                "s",
                steps=[(QUEUE_SECONDS, RED)],
                links=[runbook("TractionSinkBehind"), runbook("TractionSinkFailing")],
            ),
            lines(
                "Deliveries, by outcome",
                "What became of notifications and tries, all sinks together. Good: delivered and skipped only.",
                [
                    Query(grown("traction_sink_deliveries_total", "outcome", window=RECENT), "{{outcome}}"),
                ],
                "short",
                bars=True,
                stacked=True,
                colours={"delivered": GREEN, "skipped": GREY, "retried": ORANGE, "dead": RED},
                links=[runbook("TractionNotificationsUndelivered"), runbook("TractionSinkFailing")],
            ),
            lines(
                "From notification to delivery",
                "How long 99 of 100 notifications took until the receiver had them, by sink. Good: seconds.",
                [Query(quantile(0.99, "traction_sink_delivery_seconds", "sink"), "{{sink}}")],
                "s",
            ),
            lines(
                "Notifications written",
                "What people are to be told, by kind. Good: few terminations and calls for a person; unanswered and "
                "refused ask for somebody to look.",
                [Query(grown("traction_notifications_total", "kind", window=RECENT) + " > 0", "{{kind}}")],
                "short",
                bars=True,
                stacked=True,
                colours={"recovered": GREEN, "terminate": RED, "unanswered": PURPLE, "refused": ORANGE, "ended": GREY},
                width=12,
            ),
            heat(
                "All responses, by how long they took",
                "From alert to response as a heat map: the darker, the more. Good: one dark band well below "
                f"{RESPONSE_SECONDS:g} s.",
                Query(rate("traction_alert_to_response_seconds_bucket", "le")),
                "s",
                width=12,
            ),
        ],
    )
