"""The section on work and state of the dashboard of the pipeline: partitions, recovery, what is stored."""

from __future__ import annotations

from deploy.grafana.board import Section
from deploy.grafana.look import EACH, GREEN, ORANGE, RED, Query, runbook
from deploy.grafana.panels import lines, number
from deploy.grafana.queries import RECENT, grown, highest, of, quantile, rate, total


def at_work() -> Section:
    """Make the section."""
    return Section(
        "Is it at work? Partitions, recovery, state",
        [
            lines(
                "Partitions owned",
                "Partitions of the inputs that each process owns. Good: level and shared out evenly within a job, "
                "whose sum must be the number of partitions; less: some have no owner.",
                [Query(highest("traction_assigned_partitions", "job", "instance"), EACH)],
                "none",
                stacked=True,
                links=[runbook("TractionPartitionsUnowned")],
            ),
            lines(
                "Rebalances",
                "Times that partitions were assigned anew, by process. Good: only when processes start or end. "
                "Again and again: one crashes, or is away longer than its session lasts.",
                [Query(grown("traction_rebalances_total", "job", "instance", window=RECENT), EACH)],
                "none",
                bars=True,
                stacked=True,
                links=[runbook("TractionRebalancingOften"), runbook("TractionRestarting")],
            ),
            lines(
                "Recovery: still to be read back",
                "Changelog records that workers still have to read back until they go on. Good: 0; after a start it "
                "falls steadily to 0. One that stands still is stuck.",
                [Query(highest("traction_recovery_remaining_records", "job", "instance"), EACH)],
                "short",
                links=[runbook("TractionRecoveryLong")],
            ),
            number(
                "Recovering now",
                "Workers that read back state now: their partitions stand still until they have. Good: 0, but for a "
                "while after a start or a rebalance.",
                total("traction_recovery_active"),
                "none",
                steps=[(1, ORANGE)],
                links=[runbook("TractionRecoveryLong")],
                width=4,
                height=8,
            ),
            number(
                "Last recovery",
                "How long the last reading back of state took, of the slowest worker. So long do its partitions "
                "stand still after a crash. Good: as the page on sizing says for so many sessions.",
                highest("traction_recovery_duration_seconds"),
                "s",
                width=4,
                height=8,
            ),
            number(
                "Free on the disk of the state",
                "The least free share of the disks that --state-dir is on. Good: above a fifth; below a twentieth "
                "it is reported. Only where state is kept on disk.",
                f"min({of('traction_state_disk_free_bytes')} / {of('traction_state_disk_size_bytes')})",
                "percentunit",
                base=RED,
                steps=[(0.05, ORANGE), (0.2, GREEN)],
                none="in memory",
                decimals=0,
                links=[runbook("TractionStateDiskFull"), runbook("TractionStateDiskFilling")],
                width=4,
                height=8,
            ),
            lines(
                "State that is stored",
                "Bytes of the states of sessions and tasks, the standby copies apart; with RocksDB its own "
                "estimate. Good: level, since what is not heard of for long is forgotten.",
                [Query(total("traction_stored_state_bytes", "table", "copy"), "{{table}} {{copy}}")],
                "bytes",
                stacked=True,
                width=12,
            ),
            lines(
                "Recovery: records read back",
                "Changelog records read back a second: its own while a worker recovers, a standby copy's all the "
                "time where such are kept. Good: many while it recovers, else none of its own.",
                [Query(rate("traction_recovered_records_total", "copy"), "{{copy}}")],
                "cps",
            ),
            lines(
                "Sessions and tasks that are stored",
                "How many states are stored; with RocksDB its own estimate, which counts what is written anew until "
                "it tidies up. Good: level. What grows by the week: agents that use a new session for each call, or "
                "states that are kept for too long.",
                [Query(total("traction_stored_states", "table", "copy"), "{{table}} {{copy}}")],
                "short",
                stacked=True,
            ),
            lines(
                "Forgotten",
                "Sessions and tasks that were forgotten a second, since nothing was heard of them for as long as "
                "they are kept. Good: as many as come anew.",
                [
                    Query(rate("traction_sessions_expired_total"), "sessions"),
                    Query(rate("traction_tasks_expired_total"), "tasks"),
                ],
                "cps",
            ),
            lines(
                "Events forwarded to tasks",
                "What sessions tell their tasks a second, by kind. Good: follows the attempts and reviews.",
                [Query(rate("traction_task_events_total", "kind"), "{{kind}}")],
                "eps",
                stacked=True,
                width=6,
            ),
            lines(
                "Time of reading back ladders",
                "How long the escalation consumer took to read back the ladders of a partition. Good: below a "
                "second; it is how long alerts of that partition wait after a rebalance.",
                [
                    Query(quantile(0.5, "traction_restore_duration_seconds"), "half"),
                    Query(quantile(0.99, "traction_restore_duration_seconds"), "99 of 100"),
                ],
                "s",
                width=6,
            ),
            lines(
                "Policy reads",
                "Times that a changed policy file was read. Good: applied, on all processes, soon after a change. "
                "Refused: it cannot be used, and the one before stays in force.",
                [
                    Query(
                        grown("traction_policy_reloads_total", "job", "result", window=RECENT),
                        "{{job}} {{result}}",
                    ),
                    Query(highest("traction_policy_refused", "job"), "{{job}} refuses it now"),
                ],
                "none",
                bars=True,
                stacked=True,
                links=[runbook("TractionPolicyRefused")],
                width=6,
            ),
            lines(
                "Age of the policy in force",
                "Time since the policy in force was read. Good: the same on all processes, and since the last change "
                "of the file. Nothing where no policy file is used.",
                [
                    Query(
                        f"time() - ({highest('traction_policy_loaded_timestamp_seconds', 'job', 'instance')} > 0)",
                        EACH,
                    )
                ],
                "s",
                width=6,
            ),
        ],
    )
