"""What agents, orchestrators and people send: the records of the input topics.

Every record names its session and its own identifier, so that a repeated delivery is recognised. Unknown fields are
ignored; a field of the wrong type refuses the whole record with the path of the field.
"""

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta

from schemas.common import (
    Agent,
    Amount,
    Count,
    Digest,
    ErrorInfo,
    Identifier,
    Integer,
    Json,
    Name,
    Note,
    SchemaVersion,
    Task,
    Text,
    Usage,
    current_version,
)

Instant = Annotated[
    datetime,
    Meta(
        tz=True,
        description="RFC 3339 date and time with an offset, of the years 1970 to 2999.",
        extra_json_schema={
            "pattern": r"^(19[7-9][0-9]|2[0-9]{3})-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?"
            r"([Zz]|[+-][0-9]{2}:[0-9]{2})$"
        },
    ),
]
"""A point in time. The years are limited so that adding a week or taking an hour is always defined."""

ControlAction = Literal[
    "resume", "mode", "reset", "force", "obeyed", "refused", "ended", "false_alarm", "terminate", "clear", "forget"
]

FilePath = Annotated[str, Meta(max_length=1024)]


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What every event of a session says about itself."""

    event_id: Annotated[Identifier, Meta(description="Unique for this event; a retry sends the same one again.")]
    session_id: Annotated[
        Identifier,
        Meta(description="The agent's session and the record's key. A sub-agent is a session: session_id:agent_id."),
    ]
    occurred_at: Annotated[Instant, Meta(description="When it happened, by the producer's clock.")]
    schema_version: SchemaVersion = msgspec.field(default_factory=current_version)
    sequence: Annotated[
        Count | None, Meta(description="The producer's own counter of this session's events on this topic, rising.")
    ] = None
    agent: Agent | None = None
    task: Task | None = None
    parent_session_id: Annotated[
        Identifier | None, Meta(description="Session that started this one as its sub-agent.")
    ] = None
    continues_session_id: Annotated[
        Identifier | None, Meta(description="Session whose work goes on here in a fresh context window.")
    ] = None


class CallUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a call is for, as far as its arguments would tell: for where these may not be sent, or were cut short."""

    kind: Annotated[
        Literal["read", "search", "edit", "run", "check", "poll", "plan", "interact", "talk", "other"],
        Meta(
            description="read: views something named. search: looks for what may not be there. edit: changes files or "
            "other state. run: executes. check: a run that judges the work. poll: waits, or asks how something gets "
            "on. plan: thinks. interact: operates a user interface. talk: speaks to a person, or hands in."
        ),
    ]
    changes: Annotated[bool, Meta(description="Whether it changes files or other state if it succeeds.")] = False
    program_digest: Annotated[Digest | None, Meta(description="Digest of the name of the program it runs.")] = None


class ToolCall(Event, frozen=True, kw_only=True, omit_defaults=True):
    """One call of a tool by an agent, with its result."""

    tool: Annotated[Identifier, Meta(description="Name of the tool as the agent calls it.")]
    arguments: Annotated[Json, Meta(description="Arguments, any JSON. Absent or null: not recorded.")] = UNSET
    arguments_digest: Annotated[
        Digest | None, Meta(description="Digest of the canonical arguments, when they may not be sent.")
    ] = None
    result: Annotated[
        Json,
        Meta(
            description="Result, text or any JSON; blocks of content, as MCP has them, are read as their text. Absent "
            "or null: not recorded; an empty text is a result."
        ),
    ] = UNSET
    result_digest: Annotated[
        Digest | None, Meta(description="Digest of the whole result, when it may not be sent or was cut short.")
    ] = None
    result_length: Annotated[Count | None, Meta(description="Length of the whole result in characters, if cut.")] = None
    status: Annotated[
        Literal["ok", "error", "timeout", "denied"] | None,
        Meta(description="How it ended. Absent: not recorded, then the text of the result is weaker evidence."),
    ] = None
    error: ErrorInfo | None = None
    duration_ms: Annotated[Amount | None, Meta(description="How long the call took, in milliseconds.")] = None
    usage: Usage | None = None
    call_id: Annotated[Identifier | None, Meta(description="The model's own id of the call.")] = None
    batch_id: Annotated[
        Identifier | None, Meta(description="Common to calls that one model response asked for in parallel.")
    ] = None
    phase: Annotated[
        Literal["start", "end"] | None,
        Meta(description="For producers that send both ends of a call: they count as one, by call_id."),
    ] = None
    use: CallUse | None = None


class Replacement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A change given as the text before and the text after."""

    path: Annotated[FilePath, Meta(description="The file that is changed.")]
    old: Annotated[Text | None, Meta(description="The text that was there. Absent: nothing, the file is new.")] = None
    new: Annotated[Text | None, Meta(description="The text in its place. Absent: none, it is taken out.")] = None


class FixAttempt(Event, frozen=True, kw_only=True, omit_defaults=True):
    """One try at solving the session's task."""

    attempt_id: Annotated[Identifier, Meta(description="Unique among the session's attempts.")]
    approach: Annotated[Text | None, Meta(description="In words: what this attempt tries.")] = None
    files: Annotated[tuple[FilePath, ...], Meta(max_length=10_000, description="Files it touched.")] = ()
    diff: Annotated[Text | None, Meta(description="Unified diff of the attempt.")] = None
    replacements: Annotated[
        tuple[Replacement, ...], Meta(max_length=10_000, description="The change as old and new texts, if no diff.")
    ] = ()
    outcome: Annotated[
        Literal["failed", "success", "partial", "skipped"],
        Meta(description="What became of it. partial: better than before and not done. skipped: given up untried."),
    ]
    error_message: Annotated[Text | None, Meta(description="What failed.")] = None
    failing: Annotated[
        tuple[Annotated[str, Meta(max_length=1024)], ...],
        Meta(max_length=10_000, description="Names of the checks that fail after it."),
    ] = ()
    state_digest: Annotated[Digest | None, Meta(description="Digest of the tree after it.")] = None
    usage: Usage | None = None


class ReviewFinding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One remark of a review."""

    id: Annotated[
        Identifier | None, Meta(description="The same in each round in which the reviewer makes this remark.")
    ] = None
    path: Annotated[FilePath | None, Meta(description="The file it is about.")] = None
    text: Annotated[Text, Meta(description="The remark.")]


class Review(Event, frozen=True, kw_only=True, omit_defaults=True):
    """One round of review of a pull request."""

    pull_request: Annotated[Identifier, Meta(description="The pull request, as owner/name#number or a URL.")]
    round: Annotated[Count | None, Meta(description="Number of this round, from 1.")] = None
    author: Annotated[Literal["agent", "person"], Meta(description="Who reviewed.")]
    verdict: Annotated[
        Literal["approved", "changes_requested", "commented", "merged", "closed"],
        Meta(description="What the round came to; merged and closed end the pull request."),
    ]
    findings: Annotated[
        tuple[ReviewFinding, ...], Meta(max_length=10_000, description="The remarks of this round.")
    ] = ()
    comments_total: Annotated[Count | None, Meta(description="Comments on the pull request so far.")] = None


class SessionEvent(Event, frozen=True, kw_only=True, omit_defaults=True):
    """What the agent's harness says of the session itself."""

    kind: Annotated[
        Literal["started", "user_message", "context_trimmed", "turn", "ended"],
        Meta(
            description="started, ended: the session did. user_message: a person spoke to the agent. context_trimmed: "
            "earlier text was taken from its context window. turn: one response of the model is complete."
        ),
    ]
    usage: Annotated[Usage | None, Meta(description="For a turn: what the model consumed in it.")] = None
    reason: Annotated[Note | None, Meta(description="For ended: why, for example completed, failed, aborted.")] = None


class Control(Event, frozen=True, kw_only=True, omit_defaults=True):
    """What an orchestrator or a person decides for one session."""

    action: Annotated[
        ControlAction,
        Meta(
            description="resume: go on, the loop is settled. mode: explore or implement. reset: forget what was "
            "counted. force: stop exploring and implement. obeyed, refused, ended: answer to a directive or "
            "termination. false_alarm: the alert was wrong, its loop is not alerted again for a week or until "
            "expires_at. terminate: stop the session, whatever it does. clear: the "
            "session's task may be tried again, as if nothing had been done about it. forget: erase what is remembered "
            "of the session, and of what it did for its task; of the whole task where that has the session's id."
        ),
    ]
    mode: Annotated[
        Literal["explore", "implement"] | None, Meta(description="For mode: the new mode. Absent: neither any more.")
    ] = None
    answers: Annotated[
        Identifier | None,
        Meta(
            description="What this answers: the directive_id or termination_id; for false_alarm the alert_id, which "
            "directives and terminations name as well."
        ),
    ] = None
    actor: Annotated[Name | None, Meta(description="Who decided.")] = None
    reason: Annotated[Note | None, Meta(description="Why.")] = None
    expires_at: Annotated[Instant | None, Meta(description="Until when it holds. Absent: until changed.")] = None


class Override(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A standing exception for a session, task, role or repository; an empty record with its key removes it."""

    scope: Annotated[
        str,
        Meta(
            pattern=r"^(session|task|role|repo):[\s\S]",
            max_length=300,
            description="What it applies to, and the record's key: session:ID, task:ID, role:NAME or repo:NAME.",
        ),
    ]
    set_at: Annotated[Instant, Meta(description="When it was set.")]
    schema_version: SchemaVersion = msgspec.field(default_factory=current_version)
    mute: Annotated[bool, Meta(description="Alerts are recorded and nothing is asked of anyone.")] = False
    mode: Annotated[Literal["explore", "implement"] | None, Meta(description="Mode the sessions run in.")] = None
    limits: Annotated[
        dict[Name, Integer | float | bool | Name],
        Meta(max_length=1000, description="Limits by dotted name, for example identical.warn."),
    ] = {}
    set_by: Annotated[Name | None, Meta(description="Who set it.")] = None
    reason: Annotated[Note | None, Meta(description="Why.")] = None
    expires_at: Annotated[Instant | None, Meta(description="Until when it holds. Absent: until removed.")] = None


SessionInput = ToolCall | FixAttempt | Review | SessionEvent | Control
"""Everything keyed by session: what the detectors' state of one session is made of."""
