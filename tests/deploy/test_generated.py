"""What is made under `deploy` is what the code makes, and all YAML there is well-formed and cannot be misread."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from deploy import generate
from streams.access.roles import Names
from streams.layout import read_layout
from tests.deploy.composed import DEPLOY

if TYPE_CHECKING:
    from streams.layout import Layout


def layout(directory: Path, text: str) -> Layout:
    """Read a layout of the test's own."""
    file = directory / "kafka.toml"
    file.write_text(text)
    return read_layout(file)


def test_made_files_are_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them; one that were changed by hand, or forgotten, would be named."""
    assert generate.differences() == []
    made = generate.files()
    changed = DEPLOY / "kubernetes" / "strimzi" / "users.yaml"
    monkeypatch.setattr(generate, "files", lambda: made | {changed: made[changed] + "#", DEPLOY / "new.yaml": ""})
    assert generate.differences() == ["kubernetes/strimzi/users.yaml", "new.yaml"]


def test_rules_are_wrapped_as_they_are() -> None:
    """What is tested with promtool is what the operator gets."""
    wrapped = yaml.safe_load((DEPLOY / "kubernetes" / "overlays" / "prod" / "rules.yaml").read_text("utf-8"))
    assert wrapped["spec"] == yaml.safe_load((DEPLOY / "prometheus" / "rules.yaml").read_text("utf-8"))


def test_topics_follow_the_layout(tmp_path: Path) -> None:
    """Partitions, copies and configuration; with fewer than three copies no two must have a record."""
    said = '[topics]\npartitions = 3\nreplication = 1\n[topics.config]\nalerts = { "retention.ms" = 5 }\n'
    made = {
        each["metadata"]["name"]: each["spec"] for each in generate.topics(layout(tmp_path, said), Names(app_id="a"))
    }
    assert made["agent.alerts"] == {
        "partitions": 3,
        "replicas": 1,
        "config": {"cleanup.policy": "delete", "retention.ms": "5"},
    }
    assert "a-sessions-changelog" in made


def test_who_logs_in_with_a_certificate_is_no_user(tmp_path: Path) -> None:
    """Its name is another one than that of the principal: it is told, and no wrong user made."""
    said = layout(tmp_path, '[principals]\nworker = ["User:CN=worker"]\n')
    with pytest.raises(ValueError, match="User:CN=worker cannot be a KafkaUser"):
        generate.users(said, Names())


@pytest.mark.tools
def test_yaml_has_style(tmp_path: Path) -> None:
    """No key twice, no value that one reads otherwise than a program; such a file would be noticed."""
    command = [
        str(Path(sys.executable).parent / "yamllint"),
        "--strict",
        "-c",
        str(Path(__file__).parent / "yamllint.yaml"),
    ]
    done = subprocess.run([*command, str(DEPLOY)], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")
    (tmp_path / "wrong.yaml").write_text("a: 1\na: 2\n")
    assert subprocess.run([*command, str(tmp_path)], check=False, capture_output=True).returncode == 1
