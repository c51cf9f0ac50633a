"""The AsyncAPI document: whole, in step with the topics, and valid by the AsyncAPI initiative's own schema."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

import schemas
from schemas.records import BY_STRUCT, DEAD_LETTER
from schemas.topics import DEFAULT_PREFIX, TOPICS

HERE = Path(schemas.__file__).parent
DOCUMENT: dict[str, Any] = json.loads((HERE / "asyncapi.json").read_text("utf-8"))
TOOLS = Path(__file__).parents[1] / "tools"


def resolve(reference: str) -> Any:
    """Give what a reference points to: in the document, or a file beside it."""
    file, _, pointer = reference.partition("#")
    target = json.loads((HERE / file).read_text("utf-8")) if file else DOCUMENT
    for step in pointer.strip("/").split("/") if pointer else []:
        target = target[step]
    return target


def references(part: Any) -> list[str]:
    """Give every reference in a part of the document."""
    if isinstance(part, dict):
        own = [part["$ref"]] if isinstance(part.get("$ref"), str) else []
        return own + [found for value in part.values() for found in references(value)]
    return [found for value in part for found in references(value)] if isinstance(part, list) else []


def test_every_reference_leads_somewhere() -> None:
    """A generator of code or pages that follows references finds everything in the checkout."""
    found = references(DOCUMENT)

    assert len(found) > 30
    for reference in found:
        assert resolve(reference), reference


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.name)
def test_every_topic_is_a_channel_with_an_operation(topic: Any) -> None:
    """Name, retention, direction, key and record of a topic are those of `schemas.topics`."""
    channel = DOCUMENT["channels"][topic.name]
    action = "receive" if topic.direction == "in" else "send"
    operation = DOCUMENT["operations"][f"{action}-{topic.name}"]
    (message,) = (resolve(entry["$ref"]) for entry in channel["messages"].values())
    configuration = channel["bindings"]["kafka"]["topicConfiguration"]

    assert channel["address"] == f"{DEFAULT_PREFIX}{topic.name}"
    assert ",".join(configuration["cleanup.policy"]) == topic.cleanup
    hours = topic.retention_hours
    assert configuration.get("retention.ms") == (None if hours is None else hours * 3_600_000)
    assert operation["action"] == action
    assert resolve(operation["channel"]["$ref"]) == channel
    assert [resolve(resolve(entry["$ref"])["$ref"]) for entry in operation["messages"]] == [message]
    if topic.record is None:
        assert message["headers"]["schema"]["$ref"] == f"json/{DEAD_LETTER.schema_file}"
    else:
        assert message["payload"]["schema"]["$ref"] == f"json/{BY_STRUCT[topic.record].schema_file}"
        assert message["bindings"]["kafka"]["key"]["description"].startswith(topic.key)


def test_there_is_nothing_else() -> None:
    """No channel, operation or message is left over from a topic that is gone."""
    assert len(DOCUMENT["channels"]) == len(DOCUMENT["operations"]) == len(TOPICS)
    assert len(DOCUMENT["components"]["messages"]) == len(TOPICS)


def test_the_partitioner_is_stated() -> None:
    """Producers whose client hashes keys otherwise by default are told."""
    assert "murmur2" in DOCUMENT["info"]["description"]
    assert "partitioner=murmur2_random" in DOCUMENT["info"]["description"]


@pytest.mark.tools
def test_the_document_is_valid_asyncapi(tmp_path: Path) -> None:
    """The AsyncAPI initiative's own schema accepts the document, bindings included, and would notice a fault."""
    npm = shutil.which("npm")
    assert npm, "npm is needed: install Node.js"
    for name in ("package.json", "package-lock.json"):
        shutil.copy(TOOLS / name, tmp_path)
    subprocess.run([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=tmp_path, check=True)
    schema = json.loads((tmp_path / "node_modules/@asyncapi/specs/schemas/3.0.0.json").read_text("utf-8"))
    validator = jsonschema_rs.Draft7Validator(schema)

    validator.validate(DOCUMENT)

    faults = ('"send"', '"publish"'), ('"0.5.0"', '"0.5.1"'), ('"compact"', '"squeeze"'), ('"channels":', '"topics":')
    for right, wrong in faults:
        assert not validator.is_valid(json.loads(json.dumps(DOCUMENT).replace(right, wrong))), wrong


def test_the_npm_lock_names_no_registry() -> None:
    """The lock works with whichever registry a machine uses, and every package in it is pinned by its sum."""
    lock = json.loads((TOOLS / "package-lock.json").read_text("utf-8"))
    packages = {name: entry for name, entry in lock["packages"].items() if name}

    assert packages
    for name, entry in packages.items():
        assert "resolved" not in entry, name
        assert entry["integrity"].startswith("sha512-"), name
