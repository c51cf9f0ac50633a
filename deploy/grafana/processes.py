"""The section on processes of the dashboard of the fleet: which run, and what they use."""

from __future__ import annotations

from deploy.grafana.board import Section
from deploy.grafana.look import EACH, GREEN, RED, Query, runbook
from deploy.grafana.panels import lines
from deploy.grafana.queries import highest, of, rate
from deploy.grafana.slo import CERTIFICATE_SECONDS, FULL_CORE, LIVE_SHARE
from deploy.grafana.tables import Column, grid

EACH_BY = ("job", "instance")


def processes() -> Section:
    """Make the section."""
    return Section(
        "Processes",
        [
            grid(
                "What runs",
                "Every process that Prometheus scrapes: its version, whether it is ready and healthy, and since "
                "when it runs. Good: one version, but for a rolling update, and all ready. A start that is always "
                "recent: it crashes again and again.",
                [
                    f"max by (job, instance, version, python) ({of('traction_build_info')})",
                    highest("traction_ready", "job", "instance"),
                    highest("traction_healthy", "job", "instance"),
                    f"1000 * {highest('process_start_time_seconds', 'job', 'instance')}",
                ],
                {
                    "job": Column("Job"),
                    "instance": Column("Instance"),
                    "version": Column("Version"),
                    "python": Column("Python"),
                    "Value #B": Column("Ready", "bool_yes_no", steps=[(0, RED), (1, GREEN)]),
                    "Value #C": Column("Healthy", "bool_yes_no", steps=[(0, RED), (1, GREEN)]),
                    "Value #D": Column("Runs since", "dateTimeFromNow"),
                },
                sort="Job",
                width=24,
                height=7,
            ),
            lines(
                "Processor time",
                "Cores that each process uses, of the one that it can use. Good: below 0.7. A worker near 1 is at "
                "its limit: add workers, up to the number of partitions.",
                [Query(f"{rate('process_cpu_seconds_total', 'job', 'instance')}", EACH)],
                "short",
                steps=[(FULL_CORE, RED)],
                width=6,
            ),
            lines(
                "Memory",
                "Memory that each process holds. Good: level, once all sessions that live at a time have been seen.",
                [Query(highest("process_resident_memory_bytes", "job", "instance"), EACH)],
                "bytes",
                width=6,
            ),
            lines(
                "Sessions kept decoded",
                "Of the sessions and tasks that a worker may keep decoded (--live-sessions), how many it does. At its "
                "limit others are decoded for each event. Good: below 95 %, or a worker that is not busy.",
                [
                    Query(
                        f"({highest('traction_live_sessions', *EACH_BY)} + {highest('traction_live_tasks', *EACH_BY)}) "
                        f"/ {highest('traction_live_states_limit', *EACH_BY)}",
                        EACH,
                    )
                ],
                "percentunit",
                steps=[(LIVE_SHARE, RED)],
                top=1,
                width=6,
            ),
            lines(
                "Certificates",
                "How long the certificates of processes are valid still: their own for the brokers (kafka), and those "
                "of their pages. Good: above a week. The brokers' own are not seen here.",
                [
                    Query(
                        f"min by (job, instance, certificate) ({of('traction_certificate_expiry_timestamp_seconds')}) "
                        "- time()",
                        f"{EACH} {{{{certificate}}}}",
                    )
                ],
                "s",
                steps=[(CERTIFICATE_SECONDS, RED)],
                none="none in use",
                links=[runbook("TractionCertificateExpiring")],
                width=6,
            ),
        ],
    )
