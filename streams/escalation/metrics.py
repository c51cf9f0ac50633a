"""What the escalation consumer measures, as Prometheus metrics on a registry of their own.

Labels' values come from closed sets, but for models and configurations of agents, of which only the busiest are told
apart. Nothing in here decides or logs anything.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, get_args

from prometheus_client import Counter, Gauge, Histogram

from detectors.limits import DetectorName
from detectors.tasks.facts import Word
from schemas.outputs import Action, Level, NotificationKind
from streams.escalation.report import PERSON
from streams.escalation.savings import Basis, By
from streams.labels import MAX_LABEL_VALUES, OTHER, Bounded, create, label_value
from streams.metrics import SECONDS_TO_ALERT, ConsumerMetrics, state_written

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client import CollectorRegistry

    from schemas.outputs import Fitness
    from streams.escalation.ladders import Totals

ATTEMPTS = ("first", "repeated")
"""Whether a termination was written for the first time, or again for want of an answer."""

ANSWERED = ("termination", "directive", "alert", "nothing")
"""What a word answered: one that is waited for, the latest directive, an alert; or nothing that is known."""

RESULTS = ("tried", "converged", "flapped")

RECORD_RESULTS = ("applied", "duplicate", "dead")
"""What becomes of an alert or a forwarded event."""

MAX_NAMES = 30
"""Most repositories, roles and types of task that are told apart; further ones are `other`."""

MAX_COMBINATIONS = 300
"""Most combinations of these: what a fleet has of them, and of two metrics some 100 KB of a page."""

SECONDS_OF_RESTORE = (0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300)
"""Reading back an empty partition takes some 0.1 s, a million states some minutes."""


class EscalationMetrics(ConsumerMetrics):
    """What the escalation consumer measures.

    Args:
        registry: where the metrics are registered.
        topics: the inputs, by their names on the brokers.
    """

    def __init__(self, registry: CollectorRegistry, topics: Iterable[str] = ()) -> None:
        super().__init__(registry, topics, RECORD_RESULTS)
        self.alerts = Counter(
            "traction_alerts_read_total", "Alerts read, by level, duplicates included.", ["level"], registry=registry
        )
        create(self.alerts, get_args(Level))
        self.duplicates = Counter(
            "traction_duplicate_alerts_total", "Alerts dropped because their id was seen before.", registry=registry
        )
        self.answers = Counter(
            "traction_answers_total",
            "What people and orchestrators said, by their word and what it answered.",
            ["word", "answered"],
            registry=registry,
        )
        create(self.answers, get_args(Word), ANSWERED)
        self.directives = Counter(
            "traction_directives_total", "Directives written, by action.", ["action"], registry=registry
        )
        create(self.directives, get_args(Action))
        terminations = Counter(
            "traction_terminations_total",
            "Terminations written: for the first time, or repeated for want of an answer; by the detector of the loop "
            "that is the reason, or person.",
            ["attempt", "reason"],
            registry=registry,
        )
        self.terminations = Bounded(create(terminations, ATTEMPTS, (*get_args(DetectorName), PERSON)))
        self.notifications = Counter(
            "traction_notifications_total", "Notifications written, by kind.", ["kind"], registry=registry
        )
        create(self.notifications, get_args(NotificationKind))
        self.unanswered = Counter(
            "traction_unanswered_terminations_total",
            "Terminations given up after all repetitions without an answer: a person is told.",
            registry=registry,
        )
        self.timers = Counter(
            "traction_timers_fired_total",
            "Times that a task's ladder changed because time had passed, without any record.",
            registry=registry,
        )
        self.response_seconds = Histogram(
            "traction_alert_to_response_seconds",
            "Time from an alert's record to the commit of what was made of it.",
            buckets=SECONDS_TO_ALERT,
            registry=registry,
        )
        self._of_states(registry)
        self._of_tasks(registry)
        self._of_savings(registry)

    def _of_states(self, registry: CollectorRegistry) -> None:
        self.ladders = Gauge("traction_ladders", "Tasks whose ladder is held in memory.", registry=registry)
        self.ladder_bytes = Gauge("traction_ladder_bytes", "Size of these ladders as they are held.", registry=registry)
        self.open_climbs = Gauge(
            "traction_open_climbs", "Sessions and tasks with a loop that is not over.", registry=registry
        )
        self.cooldowns = Gauge("traction_open_cooldowns", "Cooldowns that run.", registry=registry)
        self.pending = Gauge(
            "traction_pending_terminations", "Terminations that wait for an answer.", registry=registry
        )
        self.state_bytes = state_written(registry)
        self.restored = Counter(
            "traction_restored_records_total", "Records of ladders read back to take partitions.", registry=registry
        )
        self.restore_seconds = Histogram(
            "traction_restore_duration_seconds",
            "Time that it took to read back the ladders of one partition.",
            buckets=SECONDS_OF_RESTORE,
            registry=registry,
        )

    def _of_tasks(self, registry: CollectorRegistry) -> None:
        self.fitness = Gauge(
            "traction_fitness_tasks",
            "Tasks by the agent's model and configuration and what came of them, in the partitions owned.",
            ["model", "config", "result"],
            registry=registry,
        )
        of = ["repo", "role", "task_type"]
        tasks = Counter(
            "traction_tasks_total",
            "Tasks that were heard of, once for each configuration of an agent at work on them, by repository, the "
            "agent's role and type of task.",
            of,
            registry=registry,
        )
        self.tasks = Bounded(tasks, MAX_NAMES, MAX_COMBINATIONS)
        flapping = Counter(
            "traction_flapping_tasks_total",
            "Those of them that flapped: a person was called, or they were abandoned or terminated.",
            of,
            registry=registry,
        )
        self.flapping = Bounded(flapping, MAX_NAMES, MAX_COMBINATIONS)

    def _of_savings(self, registry: CollectorRegistry) -> None:
        wasted = Counter(
            "traction_wasted_tokens_total",
            "Tokens that loops had spent since they began to repeat, when they were first to be terminated: measured "
            "where usage was sent, else estimated at 1,000 a call.",
            ["kind"],
            registry=registry,
        )
        self.wasted_tokens = Bounded(create(wasted, get_args(Basis)))
        self.wasted_cost = Counter(
            "traction_wasted_cost_usd_total", "US dollars likewise, where costs were sent.", registry=registry
        )
        saved = Counter(
            "traction_saved_tokens_total",
            "Tokens saved, taken to be as many as a loop had spent since it began to repeat: of loops whose session "
            "was terminated, and of those that recovered after a directive. Kinds as of what is wasted.",
            ["kind", "by"],
            registry=registry,
        )
        self.saved_tokens = Bounded(create(saved, get_args(Basis), get_args(By)))
        saved_cost = Counter(
            "traction_saved_cost_usd_total",
            "US dollars likewise, where costs were sent.",
            ["by"],
            registry=registry,
        )
        self.saved_cost = Bounded(create(saved_cost, get_args(By)))

    def hold(self, totals: Totals) -> None:
        """Show what is held in memory."""
        self.ladders.set(totals.ladders)
        self.ladder_bytes.set(totals.size)
        self.open_climbs.set(totals.climbs)
        self.cooldowns.set(totals.cooldowns)
        self.pending.set(totals.pending)

    def fare(self, counts: Iterable[Fitness]) -> None:
        """Show how configurations fare: those with most tasks, and the others together."""
        sums: defaultdict[tuple[str, str], tuple[int, int, int]] = defaultdict(lambda: (0, 0, 0))
        for each in counts:
            tried, converged, flapped = sums[each.model, each.config]
            sums[each.model, each.config] = tried + each.tasks, converged + each.converged, flapped + each.flapped
        busiest = sorted(sums, key=lambda names: (-sums[names][0], names))[:MAX_LABEL_VALUES]
        rest = tuple(map(sum, zip(*(sums[names] for names in sums.keys() - set(busiest)), strict=True)))
        self.fitness.clear()
        for names in busiest:
            for result, count in zip(RESULTS, sums[names], strict=True):
                self.fitness.labels(*map(label_value, names), result).inc(count)
        for result, count in zip(RESULTS, rest, strict=False):
            self.fitness.labels(OTHER, OTHER, result).inc(count)
