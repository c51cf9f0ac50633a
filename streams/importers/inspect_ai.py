"""Reads logs of Inspect: `.eval`, an archive with one file for each sample, and `.json`, all samples in one document.

What was called stands in a sample's `events`; its `messages` are what the model saw last, and count only where there
are no events. Long texts are kept apart as attachments and are put back. An agent that a tool starts is a session of
its own. A tool that ran a command tells nothing of how it ended.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from schemas.common import ErrorInfo, Usage
from streams.importers.build import Builder, Call, Session, Status, agent_of
from streams.importers.containers import Members, archive, member
from streams.importers.files import CannotRead
from streams.importers.mend import NotJson, parse
from streams.importers.shape import arguments_of, as_amount, as_count, as_dict, as_list, as_text, as_time, result_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streams.importers.files import Recording

NAME = "inspect-ai"

_HEADS = ("header.json", "_journal/start.json", "start.json")
_SAMPLES = "samples/"
_ATTACHMENT = re.compile(r"attachment://([0-9a-f]{32})")
_ERRORS: dict[str, Status] = {"timeout": "timeout", "approval": "denied"}
_SHELLS = ("bash", "python", "bash_session", "exec", "shell")
_AGENT = "agent"
MAX_DEPTH = 100
"""Deepest nesting in which attachments are put back; what lies deeper stays as it is."""


def recognise(value: object) -> bool:
    """Tell whether a document or an archive is one of this format."""
    if isinstance(value, Members):
        return any(head in value.names for head in _HEADS) and any(name.startswith(_SAMPLES) for name in value.names)
    document = as_dict(value)
    told = as_dict(document.get("eval"))
    return "task" in told and "model" in told and ("samples" in document or "plan" in document)


def read(recording: Recording, *, whole: bool) -> Iterator[Session]:
    """Read the samples of a log, one at a time from an archive.

    Args:
        recording: the file.
        whole: the file is one JSON document.
    """
    if isinstance(recording.contents, Members):
        yield from _archived(recording, recording.contents)
        return
    for _, value, _ in recording.values(whole=whole):
        document = as_dict(value)
        if recognise(document):
            for sample in map(as_dict, as_list(document.get("samples"))):
                yield from _sample(recording, sample, as_dict(document.get("eval")))


def _archived(recording: Recording, members: Members) -> Iterator[Session]:
    try:
        with archive(recording.path) as opened:
            head = next((name for name in _HEADS if name in members.names), _HEADS[0])
            spec = as_dict(_json(recording, head, member(opened, head)).get("eval"))
            for name in members.names:
                if name.startswith(_SAMPLES) and name.endswith(".json"):
                    yield from _sample(recording, _json(recording, name, member(opened, name)), spec)
    except CannotRead as problem:
        recording.fault(None, str(problem))


def _json(recording: Recording, name: str, text: bytes) -> dict[str, Any]:
    try:
        return as_dict(parse(text).value)
    except NotJson as problem:
        recording.fault(None, f"{name}, line {problem.line}: {problem.reason}")
        return {}


class _Sample:
    """Collects the sessions of one sample: its own, and those of agents that its tools started."""

    def __init__(self, name: str, model: object, attachments: dict[str, Any]) -> None:
        self.name = name
        self.model = model
        self.attachments = attachments
        self.builders: dict[str, Builder] = {}
        self.spans: dict[str, tuple[str, str, str]] = {}
        self._responses: dict[str, tuple[str, Usage | None, int]] = {}
        self.builder("")

    def builder(self, agent: str) -> Builder:
        """Give the session of an agent; the sample's own has no name."""
        if agent not in self.builders:
            name = f"{self.name}:{agent}" if agent else self.name
            who = agent_of(NAME, self.model, agent or None)
            self.builders[agent] = Builder(name, who, parent=self.name if agent else None)
        return self.builders[agent]

    def agent_in(self, span: object) -> str:
        """Name the agent in whose session a span lies: the innermost one that a tool started."""
        inner = as_text(span)
        seen: set[str] = set()
        while inner is not None and inner in self.spans and inner not in seen:
            seen.add(inner)
            parent, kind, _ = self.spans[inner]
            if kind == _AGENT and self.spans.get(parent, ("", "", ""))[1] == "tool":
                return inner
            inner = parent
        return ""

    def whole(self, value: Any, depth: int = 0) -> Any:
        """Put attachments back into a value."""
        if isinstance(value, str):
            return _ATTACHMENT.sub(lambda found: str(self.attachments.get(found[1], found[0])), value)
        if depth >= MAX_DEPTH:
            return value
        if isinstance(value, list):
            return [self.whole(part, depth + 1) for part in value]
        if isinstance(value, dict):
            return {key: self.whole(part, depth + 1) for key, part in value.items()}
        return value

    def take(self, event: dict[str, Any], agent: str | None = None) -> None:
        """Take one event; `agent` names the one whose it is where events lie within those of tools."""
        kind, at = event.get("event"), as_time(event.get("timestamp"))
        whose = self.agent_in(event.get("span_id")) if agent is None else agent
        if kind == "span_begin":
            name = as_text(event.get("id")) or ""
            self.spans[name] = (
                as_text(event.get("parent_id")) or "",
                as_text(event.get("type")) or "",
                as_text(event.get("name")) or "",
            )
        elif kind == "model":
            self._model(event)
        elif kind == "compaction":
            self.builder(whose).happened("context_trimmed", at)
        elif kind == "tool":
            self._tool(event, whose)

    def _model(self, event: dict[str, Any]) -> None:
        """Note which calls a response asked for, and what it consumed."""
        output = as_dict(event.get("output"))
        message = as_dict(as_dict(next(iter(as_list(output.get("choices"))), None)).get("message"))
        ids = [as_text(as_dict(call).get("id")) for call in as_list(message.get("tool_calls"))]
        usage = _usage(as_dict(output.get("usage")))
        response = as_text(message.get("id")) or as_text(event.get("uuid")) or ids[0] if ids else None
        for call_id in ids:
            if call_id is not None:
                self._responses[call_id] = (response or call_id, usage, len(ids))
                usage = None

    def _tool(self, event: dict[str, Any], agent: str) -> None:
        name = as_text(event.get("id"))
        arguments = self.whole(arguments_of(event.get("arguments")))
        call = Call(as_text(event.get("function")) or "", arguments, as_time(event.get("timestamp")), name)
        response, call.usage, together = self._responses.pop(name or "", ("", None, 1))
        call.batch_id = response if together > 1 else None
        self.builder(agent).call(call)
        ended = as_time(event.get("completed"))
        if event.get("pending") is not True and (ended is not None or "result" in event or event.get("error")):
            _ended(call, self.whole(event.get("result")), as_dict(event.get("error")))
        if ended is not None and call.at is not None and ended >= call.at:
            call.duration_ms = (ended - call.at).total_seconds() * 1000
        # Before there were spans, an agent's events lay within its tool's.
        for inner in map(as_dict, as_list(event.get("events"))):
            self.take(inner, name or agent)


def _sample(recording: Recording, sample: dict[str, Any], spec: dict[str, Any]) -> Iterator[Session]:
    if not sample:
        return
    run = as_text(spec.get("run_id")) or as_text(spec.get("task")) or NAME
    name = as_text(sample.get("uuid")) or f"{run}/{sample.get('id')}/{sample.get('epoch')}"
    told = _Sample(name, spec.get("model"), as_dict(sample.get("attachments")))
    own = told.builder("")
    begun = as_time(sample.get("started_at"))
    own.happened("started", begun)
    own.happened("user_message", begun)  # the sample's input
    events = as_list(sample.get("events"))
    for event in map(as_dict, events):
        told.take(event)
    if not events:
        _messages(told, as_list(sample.get("messages")))
    limit, error = as_text(as_dict(sample.get("limit")).get("type")), sample.get("error")
    own.happened("ended", as_time(sample.get("completed_at")), f"limit: {limit}" if limit else _why(error))
    for builder in told.builders.values():
        yield builder.build(recording.source, NAME)


def _why(error: object) -> str:
    return "error" if error else "completed"


def _messages(told: _Sample, messages: list[Any]) -> None:
    builder = told.builder("")
    by_id: dict[str, Call] = {}
    for message in map(as_dict, messages):
        if message.get("role") == "assistant":
            for asked in map(as_dict, as_list(message.get("tool_calls"))):
                name = as_text(asked.get("id"))
                arguments = told.whole(arguments_of(asked.get("arguments")))
                call = builder.call(Call(as_text(asked.get("function")) or "", arguments, call_id=name))
                by_id[name or ""] = call
        elif message.get("role") == "tool":
            answered = by_id.pop(as_text(message.get("tool_call_id")) or "", None)
            if answered is not None:
                _ended(answered, told.whole(message.get("content")), as_dict(message.get("error")))


def _usage(usage: dict[str, Any]) -> Usage | None:
    if not usage:
        return None
    names = ("input_tokens", "input_tokens_cache_read", "input_tokens_cache_write")
    return Usage(
        input_tokens=sum(as_count(usage.get(name)) for name in names),
        output_tokens=as_count(usage.get("output_tokens")),
        cost_usd=as_amount(usage.get("total_cost")),
    )


def _ended(call: Call, result: object, error: dict[str, Any]) -> None:
    if error:
        kind, said = as_text(error.get("type")), error.get("message")
        call.status = _ERRORS.get(kind or "", "error")
        call.error = ErrorInfo(type=kind) if call.status == "error" and kind else None
        call.result = result_of(said) if as_text(said) else result_of(result)
        return
    call.result = UNSET if result is None else result_of([result] if isinstance(result, dict) else result)
    call.status = None if call.tool in _SHELLS else "ok"
