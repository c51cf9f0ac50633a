"""The dashboard of the pipeline's health: is it in time, does it read, commit, recover, and what can it not read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deploy.grafana.board import Section, board
from deploy.grafana.budgets import budget, burning
from deploy.grafana.look import BLUE, EACH, GREEN, NEVER, ORANGE, PAGES, PURPLE, RED, Query, runbook
from deploy.grafana.panels import heat, lines, number, ranking
from deploy.grafana.queries import RECENT, grown, highest, of, quantile, rate, top, total
from deploy.grafana.recovery import at_work
from deploy.grafana.refusals import gateway, unreadable
from deploy.grafana.slo import (
    ALERT_SECONDS,
    BEHIND_SECONDS,
    COMMIT_AGE_SECONDS,
    COMMIT_SECONDS,
    IN_TIME,
    WORKER,
)
from deploy.grafana.tables import words

if TYPE_CHECKING:
    from grafana_foundation_sdk.models import dashboard

UID = "traction-pipeline"

HOW_TO_READ = f"""\
Go from top to bottom. **Are alerts in time?** If not, **does it read**: lag and its age? If it falls behind, **does it
commit**, since slow transactions are the brokers' doing, and **is it at work**: no partitions, a recovery, rebalances
one after the other? Then what is lost on the way: **what cannot be read**, and what **the gateway** refuses.
While brokers are away lag and its age stay as they were seen last: look at *Brokers out of reach* first.
[Operating]({PAGES}/operating.md) · [Runbooks]({PAGES}/runbooks.md) · [Sizing]({PAGES}/sizing.md)
"""


def _in_time() -> Section:
    late = f"alerts may be out later than {ALERT_SECONDS:g} s after their event"
    return Section(
        "Are alerts in time?",
        [
            budget("Alerts in time", late, IN_TIME, width=4),
            number(
                "Brokers out of reach",
                "Processes whose last look at the brokers got no answer. Good: 0.",
                f"count({of('traction_brokers_reachable')} == 0) or vector(0)",
                "none",
                steps=NEVER,
                links=[runbook("TractionBrokersAway"), runbook("TractionBrokersUnreachable")],
                width=4,
            ),
            number(
                "Processes that hang",
                "Processes whose /healthz says that work waits and nothing moves. Good: 0. One that stays: restart "
                "it, nothing is lost.",
                f"count({of('traction_healthy')} == 0) or vector(0)",
                "none",
                steps=NEVER,
                links=[runbook("TractionHanging")],
                width=4,
            ),
            number(
                "Records lost unread",
                "Input that retention deleted before it was read, over the time shown. Must be 0: these events are "
                "lost.",
                grown("traction_deleted_unread_records_total"),
                "none",
                steps=NEVER,
                decimals=0,
                links=[runbook("TractionDeletedUnread")],
                width=4,
            ),
            number(
                "Applied twice",
                "Events that the state says were applied already, over the time shown. Must be 0: anything else is "
                "a defect, or offsets that expired.",
                grown("traction_applied_twice_total"),
                "none",
                steps=NEVER,
                decimals=0,
                links=[runbook("TractionAppliedTwice")],
                width=4,
            ),
            number(
                "Inputs made anew",
                "Partitions of inputs whose topic was deleted and created again, over the time shown. Good: 0, "
                "unless somebody meant it.",
                grown("traction_source_resets_total"),
                "none",
                steps=NEVER,
                decimals=0,
                links=[runbook("TractionSourceReset")],
                width=4,
            ),
            lines(
                "From event to alert",
                "How long it took from the broker's append of an event to the commit of the alert that it brought "
                f"about. Good: 99 of 100 below the dashed line at {ALERT_SECONDS:g} s. Points stand alone where "
                "alerts are rare.",
                [
                    Query(quantile(0.5, "traction_append_to_alert_seconds"), "half"),
                    Query(quantile(0.9, "traction_append_to_alert_seconds"), "90 of 100"),
                    Query(quantile(0.99, "traction_append_to_alert_seconds"), "99 of 100"),
                ],
                "s",
                steps=[(ALERT_SECONDS, RED)],
                colours={"half": GREEN, "90 of 100": BLUE, "99 of 100": PURPLE},
                links=[runbook(IN_TIME.alert)],
            ),
            heat(
                "All alerts, by how long they took",
                "The same as a heat map: the darker, the more alerts. Good: one dark band well below "
                f"{ALERT_SECONDS:g} s. Two bands: some partitions or workers are slow.",
                Query(rate("traction_append_to_alert_seconds_bucket", "le")),
                "s",
            ),
            burning("Alerts in time", late, IN_TIME),
        ],
    )


def _reads() -> Section:
    return Section(
        "Does it read?",
        [
            lines(
                "How far behind, in time",
                "Age of the input that each process is at; 0 when there is no lag. Good: below a second. Above "
                f"{BEHIND_SECONDS:g} s for long it is reported. A line that climbs by a second each second: that "
                "process does nothing.",
                [Query(highest("traction_consumer_behind_seconds", "job", "instance"), EACH)],
                "s",
                steps=[(BEHIND_SECONDS, RED)],
                links=[runbook("TractionBehind"), runbook("TractionFallingBehind")],
            ),
            lines(
                "How far behind, in records",
                "Records between what is committed and the end of the topics, by topic. Good: a level of some "
                "hundreds, which is what comes between two commits; a peak that goes down again is a burst.",
                [Query(total("traction_consumer_lag_records", "job", "topic"), "{{job}} {{topic}}")],
                "short",
                stacked=True,
                links=[runbook("TractionCapacityShort")],
            ),
            ranking(
                "Partitions furthest behind now",
                "The partitions with most records to read. Good: all alike and few. One far ahead of the others: a "
                "session or task that floods, or an owner that hangs.",
                Query(
                    top(10, highest("traction_consumer_lag_records", "topic", "partition")), "{{topic}} {{partition}}"
                ),
                "short",
                none="no lag",
                steps=[(1000, ORANGE), (10000, RED)],
            ),
            lines(
                "Events read, by worker",
                "Events a second that each worker reads. Good: alike, as far as partitions and sessions are. One at "
                "0 while others work: it has no partitions, or hangs.",
                [Query(rate("traction_events_total", "instance", where=WORKER), "{{instance}}")],
                "eps",
                stacked=True,
            ),
            lines(
                "Events read, by topic",
                "Events a second by topic, over all processes that read it. Good: as much as agents produce.",
                [Query(rate("traction_events_total", "topic"), "{{topic}}")],
                "eps",
                stacked=True,
            ),
            lines(
                "Events in the wrong partition",
                "Events that are not where murmur2 of their key puts them, by topic: their session is split over "
                "two workers, and judged wrongly. Good: none. Otherwise a producer uses another partitioner.",
                [Query(rate("traction_misrouted_events_total", "topic"), "{{topic}}")],
                "eps",
                links=[runbook("TractionMisrouted")],
            ),
        ],
    )


def _commits() -> Section:
    return Section(
        "Does it commit?",
        [
            lines(
                "How long transactions take",
                "From begin to commit, over each job. Good: half below 20 ms, 99 of 100 below a quarter of a "
                f"second. Above {COMMIT_SECONDS:g} s it is reported: look at the brokers' disks and replicas.",
                [
                    Query(quantile(0.5, "traction_commit_duration_seconds", "job"), "{{job}} half"),
                    Query(quantile(0.99, "traction_commit_duration_seconds", "job"), "{{job}} 99 of 100"),
                ],
                "s",
                steps=[(COMMIT_SECONDS, RED)],
                links=[runbook("TractionCommitsSlow")],
            ),
            lines(
                "Time since the last commit",
                "How long ago each process last committed. It may grow while there is nothing to read. While there "
                f"is lag, good is below a few seconds, and {COMMIT_AGE_SECONDS:g} s is reported.",
                [
                    Query(
                        f"time() - max by (job, instance) ({of('traction_last_commit_timestamp_seconds')} > 0)",
                        EACH,
                    )
                ],
                "s",
                steps=[(COMMIT_AGE_SECONDS, RED)],
                links=[runbook("TractionNotCommitting")],
            ),
            lines(
                "Transactions that failed",
                "Transactions that ended otherwise than by a commit. Good: none, but for a few fenced ones at a "
                "rebalance. Many fenced: two fleets share a name. Failed: the brokers, or rights.",
                [
                    Query(
                        grown("traction_transaction_failures_total", "job", "reason", window=RECENT),
                        "{{job}} {{reason}}",
                    )
                ],
                "short",
                bars=True,
                stacked=True,
                links=[runbook("TractionTransactionsFailing")],
            ),
            lines(
                "Commits",
                "Transactions committed a second. Good: a few for each partition at most; a worker commits every "
                "half second, and at once for an alert.",
                [Query(rate("traction_commit_duration_seconds_count", "job", "instance"), EACH)],
                "cps",
            ),
            lines(
                "Records of a batch",
                "Size of the batches that are fetched from one partition. Good: small, which is when it keeps up. "
                "Near the most that a fetch brings it is catching up.",
                [
                    Query(quantile(0.5, "traction_batch_records", "job"), "{{job}} half"),
                    Query(quantile(0.99, "traction_batch_records", "job"), "{{job}} 99 of 100"),
                ],
                "short",
            ),
            lines(
                "State written",
                "Bytes a second that go to the changelogs of sessions and tasks, and to the topic of ladders. Good: "
                "follows the events. It is what the brokers' disks and the next recovery have to bear.",
                [Query(rate("traction_state_written_bytes_total", "job"), "{{job}}")],
                "Bps",
                stacked=True,
            ),
        ],
    )


def made() -> dashboard.Dashboard:
    """Make the dashboard."""
    return board(
        UID,
        "Pipeline health",
        "Is it in time, does it read, commit, recover, and what can it not read. For when alerts are late or missing.",
        [
            Section("How to read this", [words(HOW_TO_READ)]),
            _in_time(),
            _reads(),
            _commits(),
            at_work(),
            unreadable(),
            gateway(),
        ],
        metric="traction_build_info",
    )
