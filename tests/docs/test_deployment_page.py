"""The page on deployment: its layout is one, and what its commands name is there."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import yaml

from streams.access.roles import Names
from streams.layout import read_layout
from tests.deploy.composed import compose

if TYPE_CHECKING:
    from pathlib import Path

    from tests.docs.conftest import Find

BLOCKS = ("image", "compose", "kubernetes", "production", "systemd")


def test_the_layout_is_one(block: Find, tmp_path: Path) -> None:
    """And says what the sentences below it say."""
    file = tmp_path / "kafka.toml"
    file.write_text(block("deployment-layout").text)
    layout = read_layout(file)
    assert layout.topics.partitions == 32
    assert layout.configs(Names()) == {
        "agent.tool-calls": {"retention.ms": "1209600000", "compression.type": "zstd"},
        "traction-sessions-changelog": {"segment.bytes": "33554432"},
    }


def test_what_commands_name_is_there(block: Find, root: Path) -> None:
    """Each file and folder of the project, each service that is scaled, each unit that is enabled."""
    for name in BLOCKS:
        text = block(f"deployment-{name}").text
        for path in re.findall(r"\bdeploy/[\w./@-]+", text):
            assert (root / path).exists(), path
    compose_lines = block("deployment-compose").text.splitlines()
    (scaled,) = [word.partition("=")[0] for line in compose_lines for word in shlex.split(line) if "=" in word]
    assert scaled in compose()["services"]
    *_, enabled = block("deployment-systemd").text.splitlines()
    for unit in shlex.split(enabled)[3:]:
        assert (root / "deploy" / "systemd" / f"{re.sub('@.', '@', unit)}.service").exists(), unit


def test_an_overlay_of_ones_own_names_what_is_there(block: Find, root: Path) -> None:
    """The folder, the component that tests render with it, and the image that the manifests have."""
    own = yaml.safe_load(block("deployment-overlay").text)
    paths = [path.removeprefix("traction/deploy/kubernetes/") for path in (*own["resources"], *own["components"])]
    assert paths == ["overlays/prod", "components/bridge-prod"]
    for path in paths:
        assert (root / "deploy" / "kubernetes" / path / "kustomization.yaml").exists()
    (image,) = own["images"]
    assert compose()["services"]["bridge"]["image"] == f"{image['name']}:{image['newTag']}"


def test_secrets_are_those_that_pods_ask_for(block: Find, root: Path) -> None:
    """With the key that is mounted."""
    made = re.findall(r"secret generic (\S+) --from-literal=(\w+)=", block("deployment-production").text)
    needed = (root / "deploy" / "kubernetes" / "overlays" / "prod" / "kustomization.yaml").read_text("utf-8")
    assert made == [("traction-gateway-tokens", "tokens"), ("traction-pages", "token")]
    assert all(f"{name} ({key})" in needed for name, key in made)
