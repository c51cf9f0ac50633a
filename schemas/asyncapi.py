"""The AsyncAPI 3 document: which topics there are, what each carries, its key and its headers, from our point of view.

Built from `schemas.topics`; payloads point to the JSON Schema files. Partitions, replicas and addresses of brokers are
the operator's and left out.
"""

from typing import Any

from schemas.common import SCHEMA_VERSION
from schemas.records import BY_STRUCT, DEAD_LETTER, MAJOR
from schemas.topics import DEFAULT_PREFIX, TOPICS, Topic

SCHEMA_FORMAT = "application/schema+json;version=draft-2020-12"
KAFKA_BINDING_VERSION = "0.5.0"

_MS_PER_HOUR = 3_600_000
_TRACEPARENT = {
    "type": "string",
    "pattern": "^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$",
    "description": "Trace context (W3C). What is published carries that of the event which led to it.",
}


def document() -> dict[str, Any]:
    """Give the document as JSON."""
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Traction",
            "version": SCHEMA_VERSION,
            "description": (
                "Wheelspin detection for AI agents. Receive: what agents, orchestrators and people send. "
                f"Send: what Traction publishes. Topics are named with the prefix `{DEFAULT_PREFIX}`, a setting.\n\n"
                "Records are keyed, and **keys are hashed with murmur2**, as the Java client and aiokafka do. With "
                "librdkafka set `partitioner=murmur2_random`, with kafka-go take `Murmur2Balancer`; other clients want "
                "a murmur2 hasher likewise. Any other hash splits a session over two partitions.\n\n"
                "Within a major version fields are only added; readers ignore fields, enum values and records that "
                "they do not know."
            ),
        },
        "defaultContentType": "application/json",
        "channels": {topic.name: _channel(topic) for topic in TOPICS},
        "operations": dict(_operation(topic) for topic in TOPICS),
        "components": {
            "messages": {_message_name(topic): _message(topic) for topic in TOPICS},
            "messageTraits": {
                "published": {"headers": _headers("published")},
                "accepted": {"headers": _headers("accepted")},
            },
        },
    }


def _channel(topic: Topic) -> dict[str, Any]:
    configuration: dict[str, Any] = {"cleanup.policy": topic.cleanup.split(",")}
    if topic.retention_hours is not None:
        configuration["retention.ms"] = topic.retention_hours * _MS_PER_HOUR
    name = _message_name(topic)
    return {
        "address": f"{DEFAULT_PREFIX}{topic.name}",
        "description": topic.description,
        "messages": {name: {"$ref": f"#/components/messages/{name}"}},
        "bindings": {"kafka": {"topicConfiguration": configuration, "bindingVersion": KAFKA_BINDING_VERSION}},
    }


def _operation(topic: Topic) -> tuple[str, dict[str, Any]]:
    action = "receive" if topic.direction == "in" else "send"
    channel = f"#/channels/{topic.name}"
    return f"{action}-{topic.name}", {
        "action": action,
        "channel": {"$ref": channel},
        "summary": topic.description,
        "messages": [{"$ref": f"{channel}/messages/{_message_name(topic)}"}],
    }


def _message_name(topic: Topic) -> str:
    return "dead-letter" if topic.record is None else BY_STRUCT[topic.record].name


def _message(topic: Topic) -> dict[str, Any]:
    key = {
        "type": "string",
        "description": f"{topic.key}, as UTF-8 text and not as JSON; the partition is murmur2 of it.",
    }
    if topic.record is None:
        return {
            "name": _message_name(topic),
            "summary": topic.description,
            "contentType": "application/octet-stream",
            "headers": {"schemaFormat": SCHEMA_FORMAT, "schema": {"$ref": f"json/{DEAD_LETTER.schema_file}"}},
            "payload": {"description": "The bytes as they came, whatever they are."},
            "bindings": {
                "kafka": {
                    "key": {"description": "The key as it came, or none."},
                    "bindingVersion": KAFKA_BINDING_VERSION,
                }
            },
        }
    record = BY_STRUCT[topic.record]
    trait = "published" if topic.direction == "out" else "accepted"
    return {
        "name": record.event_type,
        "summary": (topic.record.__doc__ or "").strip(),
        "contentType": "application/json",
        "payload": {"schemaFormat": SCHEMA_FORMAT, "schema": {"$ref": f"json/{record.schema_file}"}},
        "traits": [{"$ref": f"#/components/messageTraits/{trait}"}],
        "bindings": {"kafka": {"key": key, "bindingVersion": KAFKA_BINDING_VERSION}},
    }


def _headers(trait: str) -> dict[str, Any]:
    """Give the headers of a record: attributes of CloudEvents 1.0 in binary mode, and the trace context."""
    names = {
        "ce_specversion": {"type": "string", "const": "1.0"},
        "ce_id": {"type": "string", "minLength": 1, "description": "Unique among the events of one source."},
        "ce_source": {"type": "string", "minLength": 1, "description": "Who publishes, as a URI reference."},
        "ce_type": {"type": "string", "minLength": 1, "description": f"traction.RECORD.v{MAJOR} where we publish."},
        "ce_subject": {"type": "string", "description": "The same text as the record's key."},
        "ce_time": {"type": "string", "format": "date-time"},
        "content-type": {"type": "string"},
        "traceparent": _TRACEPARENT,
    }
    optional = ("traceparent",) if trait == "published" else tuple(names)
    headers: dict[str, Any] = {
        "type": "object",
        "description": (
            "Always there, beside a value that is complete without them."
            if trait == "published"
            else "None is needed. With ce_specversion the record is a CloudEvent in binary mode, and its attributes "
            "fill the identifier, time and key that the value leaves out; a structured CloudEvent is read as well."
        ),
        "properties": names,
    }
    required = [name for name in names if name not in optional]
    return {**headers, "required": required} if required else headers
