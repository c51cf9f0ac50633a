"""Parts that several records share: identifiers, who acted, for which task, and what it cost.

Everything here is plain data with its limits; a limit that a value breaks is reported with the path of the field.
"""

from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

SCHEMA_VERSION = "1.0"
"""Version written into every record that Traction publishes; within major 1 fields are only ever added."""

MAX_ID_CHARS = 256
"""Longest identifier accepted. Long enough for any UUID, path-like or composite id, short enough to keep in state."""

Identifier = Annotated[str, Meta(min_length=1, max_length=MAX_ID_CHARS)]
Name = Annotated[str, Meta(max_length=MAX_ID_CHARS)]
Note = Annotated[str, Meta(max_length=4096)]
Text = Annotated[str, Meta(max_length=1_000_000)]
SchemaVersion = Annotated[
    str,
    Meta(
        pattern=r"^1\.[0-9]+$",
        description="Version of the contract that the record was written for. Absent: some 1.x, and every 1.x is read.",
    ),
]
Digest = Annotated[str, Meta(min_length=1, max_length=256)]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Amount = Annotated[float, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
Integer = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Json = Any | UnsetType
"""Any JSON value, or absent. An explicit ``null`` counts as absent too."""


def current_version() -> str:
    """Give the version for a new record: a computed default, since a constant one would be left out of the JSON."""
    return SCHEMA_VERSION


OBSERVED: Final = "observed"
"""Role of agents that somebody only watches, as hooks and adapters that observe tell it: their mode is `observe`,
whatever holds for everyone, unless a rule or an override says otherwise. What they are asked would not reach them."""


class Agent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which agent acted, and in which configuration it ran."""

    id: Annotated[Name | None, Meta(description="Stable identifier of this agent.")] = None
    role: Annotated[
        Name | None, Meta(description="What it does in the fleet, for example code, debugger, orchestrator or review.")
    ] = None
    name: Annotated[Name | None, Meta(description="Product name, for example claude-code.")] = None
    model: Annotated[Name | None, Meta(description="Language model behind it.")] = None
    config: Annotated[
        Name | None, Meta(description="Name of its configuration: skill, prompt, strategy or temperature set.")
    ] = None


def as_observed(agent: Agent | None) -> Agent:
    """Give an agent, of which nothing else need be known, as one that is only watched."""
    return msgspec.structs.replace(agent or Agent(), role=OBSERVED)


class Task(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the session works on. One task may be tried in many sessions."""

    id: Annotated[Identifier | None, Meta(description="Identifier of the task. Absent means: the session's own.")] = (
        None
    )
    type: Annotated[Name | None, Meta(description="Kind of task, for example bugfix, feature, docs.")] = None
    repo: Annotated[Name | None, Meta(description="Repository, as owner/name.")] = None
    ref: Annotated[Name | None, Meta(description="Branch, commit or pull request.")] = None
    paths: Annotated[
        tuple[Annotated[str, Meta(max_length=1024)], ...],
        Meta(max_length=1000, description="Paths the task is about; sensitive ones may have lower limits."),
    ] = ()


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a call, turn or attempt consumed."""

    input_tokens: Annotated[Count | None, Meta(description="Tokens read by the model, cached ones included.")] = None
    output_tokens: Annotated[Count | None, Meta(description="Tokens written by the model, reasoning included.")] = None
    cost_usd: Annotated[Amount | None, Meta(description="Price in US dollars.")] = None


class ErrorInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a call failed, as far as the producer knows."""

    type: Annotated[
        Name | None,
        Meta(
            description="Low-cardinality class: exception name, timeout, tool_error. transient: it passes by itself. "
            "unknown_tool: there is no such tool. nothing_found: a search whose command fails where it finds nothing."
        ),
    ] = None
    code: Annotated[Name | Integer | None, Meta(description="Exit code, HTTP status or error code of the tool.")] = None
    message: Annotated[Text | None, Meta(description="The message a person would read.")] = None
    digest: Annotated[
        Digest | None,
        Meta(
            description="Digest of the kind of failure: of what the message says but for names, numbers and paths. For "
            "where the text may not be sent, or was cut short."
        ),
    ] = None
    about_digest: Annotated[
        Digest | None, Meta(description="Likewise of what the message names: files, tests, what is quoted.")
    ] = None
    failing: Annotated[Count | None, Meta(description="Likewise how many checks fail.")] = None
    passing: Annotated[
        Count | None, Meta(description="Likewise how many checks pass, or ran where the runner counts these.")
    ] = None


__all__ = [
    "MAX_ID_CHARS",
    "SCHEMA_VERSION",
    "UNSET",
    "Agent",
    "Amount",
    "Count",
    "Digest",
    "ErrorInfo",
    "Identifier",
    "Integer",
    "Json",
    "Name",
    "Note",
    "SchemaVersion",
    "Share",
    "Task",
    "Text",
    "Usage",
    "current_version",
]
