"""What Traction publishes: alerts, directives, terminations, known-flapping entries and dead-letter headers.

Identifiers are deterministic (derived from the events that led to them), so that a reader can drop what it has seen.
No record carries a full argument, result or diff: only short redacted excerpts.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from schemas.common import Agent, Amount, Count, Identifier, Name, SchemaVersion, Share, Task, current_version
from schemas.events import Instant
from schemas.invalid import Reason, Stage

Level = Literal["notice", "warn", "terminate", "recovered"]
Mode = Literal["observe", "warn", "enforce"]
Strategy = Literal["different_files", "different_method", "escalate_human", "skip_subtask", "analyze_root_cause"]
Action = Literal[
    "inject_guidance",
    "cooldown",
    "rotate_strategy",
    "force_implementation",
    "escalate_human",
    "abandon",
    "skip_subtask",
]

NotificationKind = Literal[
    "inject_guidance",
    "cooldown",
    "rotate_strategy",
    "force_implementation",
    "escalate_human",
    "abandon",
    "skip_subtask",
    "terminate",
    "refused",
    "unanswered",
    "recovered",
    "ended",
    "resumed",
    "false_alarm",
]
Severity = Literal["info", "warning", "error", "critical"]

SessionId = Annotated[
    Identifier, Meta(description="The session that spins; for a task, the one whose event brought it about.")
]
TaskId = Annotated[Identifier, Meta(description="The task; the session's own id when none was given.")]
AlertId = Annotated[Identifier, Meta(description="The alert that this answers.")]
LoopId = Annotated[str, Meta(description="Fingerprint of what repeats; the same loop has the same one.")]
DetectorName = Annotated[str, Meta(description="Name of the detector, for example identical.")]


class LimitReached(msgspec.Struct, frozen=True, kw_only=True):
    """One limit that was reached, and who set it."""

    name: Annotated[str, Meta(description="Dotted name of the setting, for example identical.warn.")]
    value: Annotated[float, Meta(description="The limit itself.")]
    layer: Annotated[str, Meta(description="Layer of configuration that set it: default, a file, or an override.")]


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """Where in Kafka the event stands that brought an alert about."""

    topic: Annotated[str, Meta(description="Topic it was read from.")]
    partition: Annotated[Count, Meta(description="Partition of the topic.")]
    offset: Annotated[Count, Meta(description="Offset in the partition.")]


Repeats = Annotated[
    tuple[str, ...],
    Meta(
        description="Digest of the call that the loop is nothing but, of its tool and canonical arguments: it may be "
        "refused when it is asked for once more, as long as nothing else was done in between. Absent where that is not "
        "certain: the loop is another, the evidence weak, or the call waits for something."
    ),
]


class Evidence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a person needs to check an alert without the recording."""

    event_ids: Annotated[
        tuple[str, ...], Meta(description="Latest events of the loop, oldest first, a dozen at most.")
    ] = ()
    position: Annotated[Position | None, Meta(description="The event that brought it about; absent outside Kafka.")] = (
        None
    )
    calls: Annotated[
        tuple[str, ...], Meta(description="The calls that repeat, readable, redacted and cut short, in order.")
    ] = ()
    repeats: Repeats = ()
    error: Annotated[str | None, Meta(description="The recurring failure, masked and cut short.")] = None
    counts: Annotated[dict[str, float], Meta(description="Further counts by name.")] = {}
    weak: Annotated[bool, Meta(description="True when failure was read from text, not from a flag.")] = False
    attempt_ids: Annotated[
        tuple[str, ...], Meta(description="For a task: its attempts that make the loop, oldest first, a dozen at most.")
    ] = ()
    derived: Annotated[
        bool, Meta(description="True when attempts among them were read from tool calls: edits, then a check.")
    ] = False
    word_similarity: Annotated[
        Share | None,
        Meta(description="How alike the words of the attempts are, from 0 to 1; absent where there are none."),
    ] = None
    diff_similarity: Annotated[
        Share | None, Meta(description="How alike their changes are, likewise: the share of changed lines in common.")
    ] = None


class Alert(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A loop was noticed, goes on, or ended."""

    alert_id: Annotated[Identifier, Meta(description="Deterministic: the same events give the same id.")]
    schema_version: SchemaVersion = msgspec.field(default_factory=current_version)
    level: Annotated[Level, Meta(description="How grave it is; recovered: a loop that was warned about is broken.")]
    scope: Annotated[
        Literal["session", "task"],
        Meta(description="What spins: one session, or a task over all its sessions. The record's key is task_id."),
    ] = "session"
    mode: Annotated[Mode, Meta(description="observe: nothing is asked of anyone. warn: no termination.")]
    muted: Annotated[bool, Meta(description="An override silenced it: recorded only.")] = False
    detector: DetectorName
    loop_id: LoopId
    session_id: SessionId
    task_id: TaskId
    agent: Agent | None = None
    task: Task | None = None
    seq: Annotated[
        Count,
        Meta(
            description="Position, from 0, of the triggering call among the session's calls; for a task, of the "
            "triggering attempt or review among the task's."
        ),
    ]
    occurred_at: Annotated[Instant, Meta(description="Event time of the triggering event.")]
    first_seen: Annotated[Instant, Meta(description="Event time of the loop's first call.")]
    count: Annotated[float, Meta(description="What was counted against the limit; halves occur.")]
    spin_score: Annotated[
        Share | None,
        Meta(
            description="How likely it is, from 0 to 1, that the session's latest calls spin, by how little in them is "
            "new: an estimate from learned weights, to three decimals. Absent where the call has none: there are too "
            "few calls before it, it only talks, or the score is off.",
        ),
    ] = None
    limits: Annotated[tuple[LimitReached, ...], Meta(description="The limits that were reached.")]
    evidence: Evidence
    pattern: Annotated[
        Name | None,
        Meta(
            description="For a task, the kind of flapping: fix_break_oscillation, review_ping_pong, approach_churn or "
            "flaky_test_loop. More may be added."
        ),
    ] = None
    suggested_strategy: Annotated[Strategy | None, Meta(description="What to try instead.")] = None
    reasoning: Annotated[str, Meta(description="One sentence for people: what repeated and how often.")]
    guidance: Annotated[str, Meta(description="What to tell the agent.")] = ""
    tokens_wasted: Annotated[Count, Meta(description="Tokens spent since the loop began to repeat.")] = 0
    cost_wasted: Annotated[Amount | None, Meta(description="US dollars likewise, where costs were sent.")] = None
    wasted_estimated: Annotated[bool, Meta(description="True when no usage was sent: 1,000 tokens a call.")] = False
    interventions_so_far: Annotated[Count, Meta(description="Alerts of this session, or task, before this one.")] = 0


class Acknowledgement(msgspec.Struct, frozen=True, kw_only=True):
    """How an orchestrator answers: a control record with one of these actions that names the id."""

    topic: Annotated[str, Meta(description="Topic to write the control record to, its key the session's id.")]
    answers: Annotated[Identifier, Meta(description="What the control record puts into its field answers.")]
    actions: Annotated[tuple[str, ...], Meta(description="The actions it may choose from.")]


class Directive(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the orchestrator should do next with a session."""

    directive_id: Annotated[Identifier, Meta(description="Deterministic: derived from the alert and the action.")]
    schema_version: SchemaVersion = msgspec.field(default_factory=current_version)
    action: Annotated[Action, Meta(description="What to do. An action that is not known is answered with refused.")]
    session_id: SessionId
    task_id: TaskId
    alert_id: AlertId
    loop_id: LoopId
    detector: DetectorName
    text: Annotated[str, Meta(description="Text to show the agent. Quotations of tool output are marked.")] = ""
    parameters: Annotated[dict[str, str | int | float | bool], Meta(description="Further settings of the action.")] = {}
    repeats: Repeats = ()
    issued_at: Annotated[Instant, Meta(description="When it was decided.")]
    expires_at: Annotated[Instant, Meta(description="After this it should not be carried out any more.")]
    acknowledge: Acknowledgement


class Report(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """For the person who is called: what was tried, how often, what recurs, what to look at."""

    title: Annotated[str, Meta(description="One line.")]
    tried: Annotated[tuple[str, ...], Meta(description="What was tried, readable, redacted and cut short.")]
    times: Annotated[float, Meta(description="How often; halves occur.")]
    spin_score: Annotated[Share | None, Meta(description="As in the alert.")] = None
    recurring_failure: Annotated[str | None, Meta(description="What failed each time, masked and cut short.")] = None
    look_at: Annotated[str, Meta(description="Where a person should begin.")]
    done: Annotated[
        tuple[str, ...], Meta(description="What was done about it so far, this step included, and how often.")
    ] = ()
    commands: Annotated[
        tuple[str, ...], Meta(description="Commands of a shell by which a person looks and answers.")
    ] = ()
    tokens_wasted: Annotated[Count, Meta(description="As in the alert.")] = 0
    cost_wasted: Annotated[Amount | None, Meta(description="As in the alert.")] = None
    wasted_estimated: Annotated[bool, Meta(description="As in the alert.")] = False
    markdown: Annotated[str, Meta(description="The same as one page of Markdown.")]


class Termination(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The verdict: this session is to be stopped."""

    termination_id: Annotated[Identifier, Meta(description="Deterministic: derived from the alert.")]
    schema_version: SchemaVersion = msgspec.field(default_factory=current_version)
    session_id: SessionId
    task_id: TaskId
    alert_id: AlertId
    loop_id: LoopId
    detector: DetectorName
    reason: Annotated[str, Meta(description="One sentence for people.")]
    attempt: Annotated[int, Meta(ge=1, description="1 at first; raised when an unanswered one is repeated.")] = 1
    agent: Agent | None = None
    task: Task | None = None
    issued_at: Annotated[Instant, Meta(description="When it was decided.")]
    expires_at: Annotated[
        Instant | None, Meta(description="After this it should not be carried out any more. Absent: it holds.")
    ] = None
    acknowledge: Acknowledgement
    report: Report


class KnownFlapping(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task that should not be retried without a person, until this entry expires or is removed."""

    task_id: TaskId
    schema_version: SchemaVersion = msgspec.field(default_factory=current_version)
    session_id: Annotated[Identifier, Meta(description="The session that was terminated last.")]
    alert_id: AlertId
    termination_id: Annotated[Identifier, Meta(description="The verdict that put the task here.")]
    loop_id: LoopId
    detector: DetectorName
    pattern: Annotated[Name | None, Meta(description="Kind of flapping.")] = None
    reason: Annotated[str, Meta(description="One sentence for people.")]
    task: Task | None = None
    since: Annotated[Instant, Meta(description="When it was put here.")]
    expires_at: Annotated[Instant, Meta(description="When it may be tried again without a person.")]


class Notification(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What people are told: what was done about a loop, or that it is over. Sinks deliver it."""

    notification_id: Annotated[
        Identifier, Meta(description="Deterministic; the idempotency key of every delivery of it.")
    ]
    schema_version: SchemaVersion = msgspec.field(default_factory=current_version)
    kind: Annotated[
        NotificationKind,
        Meta(
            description="The action that was taken; or refused, unanswered: what an orchestrator made of a "
            "termination, or of the last directive that was left; or recovered, ended, resumed, false_alarm: why it is "
            "over. More may be added."
        ),
    ]
    severity: Annotated[Severity, Meta(description="How much of a hurry there is.")]
    incident_id: Annotated[
        Identifier, Meta(description="Common to all that is told of one climb of the ladder, until it is over.")
    ]
    resolves: Annotated[bool, Meta(description="The incident is over: nothing is left to be done.")] = False
    sinks: Annotated[
        tuple[str, ...] | None, Meta(description="Names of the sinks that the policy chose. Absent: all of them.")
    ] = None
    session_id: SessionId
    task_id: TaskId
    alert_id: AlertId
    loop_id: LoopId
    detector: DetectorName
    answers: Annotated[
        Identifier | None, Meta(description="The directive_id or termination_id of what was done, if anything was.")
    ] = None
    agent: Agent | None = None
    task: Task | None = None
    issued_at: Annotated[Instant, Meta(description="When it was decided.")]
    text: Annotated[str, Meta(description="One sentence: what happened, and what follows from it.")]
    report: Report


class Fitness(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How one configuration of an agent fares with one type of task: a negative signal for who selects agents.

    Counts only grow, but for flapped, which a false alarm takes back. Each partition of the alerts counts its own
    tasks: what holds over all is the sum of the records that agree in name, model, config and task_type.
    """

    fitness_id: Annotated[Identifier, Meta(description="The record's key: a digest of the four names, and partition.")]
    schema_version: SchemaVersion = msgspec.field(default_factory=current_version)
    name: Annotated[str, Meta(description="Product name of the agent; empty when not known.")] = ""
    model: Annotated[str, Meta(description="Its language model, likewise.")] = ""
    config: Annotated[str, Meta(description="Its configuration: skill, prompt, strategy. Likewise.")] = ""
    task_type: Annotated[str, Meta(description="Kind of the tasks, likewise.")] = ""
    partition: Annotated[Count, Meta(description="Partition of the alerts whose tasks are counted here.")]
    tasks: Annotated[Count, Meta(description="Tasks that the configuration tried, or was alerted about.")] = 0
    attempts: Annotated[Count, Meta(description="Attempts, sent or read from tool calls.")] = 0
    converged: Annotated[Count, Meta(description="Tasks of which an attempt succeeded, or a change was merged.")] = 0
    flapped: Annotated[
        Count, Meta(description="Tasks about which a person was called, or that were abandoned or terminated.")
    ] = 0
    tokens: Annotated[Count, Meta(description="Tokens spent on the tasks, where usage was sent.")] = 0
    cost_usd: Annotated[Amount, Meta(description="US dollars likewise.")] = 0.0
    updated_at: Annotated[Instant, Meta(description="When it last changed.")]


class DeadLetterHeaders(msgspec.Struct, frozen=True, kw_only=True):
    """Headers that a dead letter carries besides its own; key and value stay the bytes that came.

    Names follow Kafka Connect's convention of a double-underscore prefix; the `__streams.errors.*` names of KIP-1034
    (Kafka Streams) are written too, so that existing viewers work.
    """

    topic: Annotated[str, Meta(description="Topic it came from.")] = msgspec.field(name="__traction.errors.topic")
    partition: Annotated[str, Meta(pattern=r"^[0-9]+$", description="Partition it came from.")] = msgspec.field(
        name="__traction.errors.partition"
    )
    offset: Annotated[str, Meta(pattern=r"^[0-9]+$", description="Offset it had.")] = msgspec.field(
        name="__traction.errors.offset"
    )
    timestamp: Annotated[
        str, Meta(pattern=r"^-?[0-9]+$", description="Record time it had, in milliseconds since 1970 (UTC).")
    ] = msgspec.field(name="__traction.errors.timestamp")
    group: Annotated[str, Meta(description="Consumer group that refused it.")] = msgspec.field(
        name="__traction.errors.group"
    )
    stage: Annotated[
        Stage,
        Meta(description="Where it was refused: reading bytes, checking fields or key, applying, or telling people."),
    ] = msgspec.field(name="__traction.errors.stage")
    reason: Annotated[Reason, Meta(description="What is wrong, as a code; more may be added.")] = msgspec.field(
        name="__traction.errors.reason"
    )
    message: Annotated[str, Meta(description="What is wrong and what to do.")] = msgspec.field(
        name="__traction.errors.message"
    )
    replayed: (
        Annotated[
            str,
            Meta(
                pattern=r"^[0-9]+$",
                description="Only on a receipt, which has no content: the offset, in this partition, of the dead "
                "letter that was put back onto its topic.",
            ),
        ]
        | UnsetType
    ) = msgspec.field(name="__traction.errors.replayed", default=UNSET)
