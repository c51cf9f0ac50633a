"""Under which names attributes are found, in the order in which they are believed.

They are those of OpenTelemetry's GenAI conventions of all versions, OpenInference, OpenLLMetry, MCP and agents; kept
here, not imported, since conventions move between packages. Tables and plain look-ups only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from schemas.common import MAX_ID_CHARS, Agent, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SESSION: Final = (
    "gen_ai.conversation.id",
    "session.id",
    "traceloop.association.properties.session_id",
    "conversation.id",
)
TOOL: Final = ("gen_ai.tool.name", "tool.name", "traceloop.entity.name", "tool_name", "function_name")
CALL: Final = ("gen_ai.tool.call.id", "gen_ai.tool.call_id", "tool_call.id", "tool_use_id", "call_id")
ARGUMENTS: Final = (
    "gen_ai.tool.call.arguments",
    "input.value",
    "traceloop.entity.input",
    "function_args",
    "tool_input",
    "arguments",
)
"""Not ``tool.parameters``: by OpenInference's conventions the tool's definition, the same at every call."""

RESULT: Final = ("gen_ai.tool.call.result", "output.value", "traceloop.entity.output", "output")
SERIALISED: Final = frozenset({"gen_ai.tool.call.result", "traceloop.entity.output"})
"""Of these, which hold a value's JSON: by the GenAI conventions (`gen_ai.tool.call.result`: a JSON string where no
structured value can be set) and as OpenLLMetry writes it. ``output.value`` of OpenInference does where its MIME type
says so, and is plain text otherwise. ``output`` is what Codex's tool printed."""

QUOTED: Final = frozenset({"traceloop.entity.output"})
"""Of those, which hold the JSON of a text too; GenAI's instrumentations set a text as it is."""

_MIME_TYPE: Final = "output.mime_type"
_JSON: Final = "application/json"
ERROR: Final = ("error.type", "error_type")

_INPUT: Final = (
    *("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt"),
    *("input_tokens", "input_token_count"),
)
_OUTPUT: Final = (
    *("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion"),
    *("output_tokens", "output_token_count"),
)
_BESIDE: Final = ("cache_read_tokens", "cache_creation_tokens")
"""What Anthropic's API counts apart from the input, and Claude Code's events as it does."""

_COST: Final = ("cost_usd", "llm.cost.total", "gen_ai.usage.cost")
_UNNAMED: Final = "unknown_service"  # what SDKs call a service without a name (OpenTelemetry, resource conventions)
_MAX_TOKENS: Final = 2**62


def first(attributes: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Give the first attribute of these names that is there; None for none."""
    return next((attributes[name] for name in names if attributes.get(name) is not None), None)


def holds_json(attributes: Mapping[str, Any], name: str) -> bool:
    """Tell whether the result of this name is known to be a value's JSON, not a text that may look like it."""
    return name in SERIALISED or (name == "output.value" and attributes.get(_MIME_TYPE) == _JSON)


def text_of(value: Any) -> str | None:
    """Give a text that is not blank, or an integer as one; None for anything else."""
    if isinstance(value, str):
        return value if value.strip() else None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def first_text(attributes: Mapping[str, Any], names: Sequence[str]) -> str | None:
    """Give the first attribute of these names that is a text; None for none."""
    return next((text for name in names if (text := text_of(attributes.get(name)))), None)


def number_of(value: Any) -> float | None:
    """Give a number from 0, also one that came as text; None for anything else."""
    try:
        number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else -1.0
    except (ValueError, OverflowError):
        return None
    return number if 0 <= number < float("inf") else None


def truth_of(value: Any) -> bool | None:
    """Give a truth value, also one that came as text; None for anything else."""
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.lower())
    return value if isinstance(value, bool) else None


def usage_of(attributes: Mapping[str, Any]) -> Usage | None:
    """Give what a response of the model consumed; None where nothing says so."""
    used, made = number_of(first(attributes, _INPUT)), number_of(first(attributes, _OUTPUT))
    cost = number_of(first(attributes, _COST))
    beside = sum(number_of(attributes.get(name)) or 0 for name in _BESIDE)
    if used is None and made is None and cost is None:
        return None
    return Usage(
        input_tokens=None if used is None else _count(used + beside),
        output_tokens=None if made is None else _count(made),
        cost_usd=cost,
    )


def _count(number: float) -> int:
    return int(min(number, _MAX_TOKENS))


def agent_of(attributes: Mapping[str, Any], resource: Mapping[str, Any], product: str | None = None) -> Agent | None:
    """Say who acted.

    Args:
        attributes: of the span or record.
        resource: of its process.
        product: the agent, where the record can be no other's.
    """
    name = product or text_of(attributes.get("gen_ai.agent.name"))
    if name is None:
        service = text_of(resource.get("service.name"))
        name = None if service is None or service.startswith(_UNNAMED) else service
    agent_id = text_of(attributes.get("gen_ai.agent.id"))
    model = first_text(attributes, ("gen_ai.request.model", "gen_ai.response.model", "llm.model_name", "model"))
    if not (name or agent_id or model):
        return None
    return Agent(id=_name(agent_id), name=_name(name), model=_name(model))


def _name(text: str | None) -> str | None:
    return text[:MAX_ID_CHARS] if text else None
