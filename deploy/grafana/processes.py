"""The section on processes of the dashboard of the fleet: which run, and what they use."""

from __future__ import annotations

from deploy.grafana.board import Section
from deploy.grafana.look import EACH, GREEN, RED, Query
from deploy.grafana.panels import lines
from deploy.grafana.queries import highest, of, rate
from deploy.grafana.slo import FULL_CORE
from deploy.grafana.tables import Column, grid


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
                width=12,
            ),
            lines(
                "Memory",
                "Memory that each process holds. Good: level, once all sessions that live at a time have been seen.",
                [Query(highest("process_resident_memory_bytes", "job", "instance"), EACH)],
                "bytes",
                width=12,
            ),
        ],
    )
