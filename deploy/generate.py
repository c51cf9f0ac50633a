"""Makes the files under `deploy` that follow from others: dashboards, Strimzi's manifests, rules for operators, copies.

`python deploy/generate.py` writes them, `--check` tells whether the committed ones are what they should be. What it
makes begins with a line that says so, where the form allows it, and is never changed by hand.
"""

from __future__ import annotations

import argparse
import sys
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from deploy.grafana.dashboards import files as dashboards
from streams.access.roles import Names, rules
from streams.access.rules import Kind, Pattern
from streams.kafka import KafkaSettings
from streams.layout import Layout, read_layout
from streams.topics import DEFAULT_PARTITIONS, REPLICATION, configured, plan

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streams.access.rules import Rule

HERE = Path(__file__).resolve().parent
COMMAND = "python deploy/generate.py"
KUBERNETES = HERE / "kubernetes"
CLUSTER = "kafka"
"""The name of Strimzi's `Kafka`, in the manifests as they are made."""

KINDS = {
    Kind.TOPIC: "topic",
    Kind.GROUP: "group",
    Kind.TRANSACTIONAL_ID: "transactionalId",
    Kind.CLUSTER: "cluster",
}
"""What Strimzi calls what a rule is about."""

PATTERNS = {Pattern.LITERAL: "literal", Pattern.PREFIXED: "prefix"}

RELEASE = "kube-prometheus-stack"
"""The Helm release whose Prometheus looks for rules, as in the other manifests of the overlay."""


class Dumper(yaml.SafeDumper):
    """Writes YAML as people do: lists indented, nothing abbreviated."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - PyYAML's
        """Indent lists in mappings too."""
        super().increase_indent(flow, indentless=False)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML's
        """Write everything out."""
        return True


def written(documents: Iterable[dict[str, Any]], source: str) -> str:
    """Write documents with a line that says what made them."""
    text = yaml.dump_all(documents, Dumper=Dumper, sort_keys=False, width=1_000, allow_unicode=True)
    return f"# Made of {source} by {COMMAND}: change it there.\n{text}"


def topics(layout: Layout, names: Names) -> list[dict[str, Any]]:
    """Make a `KafkaTopic` of each topic."""
    copies = layout.topics.replication or REPLICATION
    wanted = plan(
        KafkaSettings(prefix=names.prefix),
        partitions=layout.topics.partitions or DEFAULT_PARTITIONS,
        app_id=names.app_id,
        group=names.group,
        config=layout.configs(names),
    )
    return [
        {
            "apiVersion": "kafka.strimzi.io/v1",
            "kind": "KafkaTopic",
            "metadata": {"name": each.name, "labels": {"strimzi.io/cluster": CLUSTER}},
            "spec": {
                "partitions": each.partitions,
                "replicas": copies,
                "config": dict(sorted(configured(each, copies).items())),
            },
        }
        for each in wanted
    ]


def users(layout: Layout, names: Names) -> list[dict[str, Any]]:
    """Make a `KafkaUser` of each principal, with the rules of all its roles.

    Raises:
        ValueError: a principal is no user by its name, such as the subject of a certificate.
    """
    wanted = rules(layout.principals, names)
    made = []
    for principal, its in groupby(wanted, key=lambda rule: rule.principal):
        kind, _, name = principal.partition(":")
        if kind != "User" or "=" in name:
            raise ValueError(f"{principal} cannot be a KafkaUser: name users with a password, as User:traction-worker")
        made.append(
            {
                "apiVersion": "kafka.strimzi.io/v1",
                "kind": "KafkaUser",
                "metadata": {"name": name, "labels": {"strimzi.io/cluster": CLUSTER}},
                "spec": {
                    "authentication": {"type": "scram-sha-512"},
                    "authorization": {"type": "simple", "acls": list(_acls(its))},
                },
            }
        )
    return made


def _acls(its: Iterable[Rule]) -> Iterable[dict[str, Any]]:
    for (kind, name, pattern), same in groupby(its, key=lambda rule: (rule.kind, rule.name, rule.pattern)):
        yield {
            "resource": {"type": KINDS[kind], "name": name, "patternType": PATTERNS[pattern]},
            "operations": [rule.operation.word for rule in same],
        }


def prometheus_rule(rules_file: Path) -> dict[str, Any]:
    """Wrap the rules as the Prometheus operator takes them."""
    labels = {"app.kubernetes.io/name": "traction", "release": RELEASE}
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "traction", "labels": labels},
        "spec": yaml.safe_load(rules_file.read_text("utf-8")),
    }


def files() -> dict[Path, str]:
    """Give each file that is made, with its text."""
    layout, names = read_layout(HERE / "kafka.toml"), Names()
    strimzi, prod = KUBERNETES / "strimzi", KUBERNETES / "overlays" / "prod"
    return {
        strimzi / "topics.yaml": written(topics(layout, names), "deploy/kafka.toml"),
        strimzi / "users.yaml": written(users(layout, names), "deploy/kafka.toml"),
        prod / "rules.yaml": written(
            [prometheus_rule(HERE / "prometheus" / "rules.yaml")], "deploy/prometheus/rules.yaml"
        ),
        # Kustomize reads no files from outside of its folder.
        KUBERNETES / "base" / "policy.toml": (HERE / "policy.toml").read_text("utf-8"),
        KUBERNETES / "overlays" / "dev" / "kafka.toml": (HERE / "kafka.toml").read_text("utf-8"),
    } | dashboards()


def differences() -> list[str]:
    """List the files that are not as they should be, by their paths under `deploy`."""
    return [
        path.relative_to(HERE).as_posix()
        for path, text in files().items()
        if not path.exists() or path.read_text("utf-8") != text
    ]


def main() -> None:
    """Write the files, or check them and exit with 1 when one differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 when a file differs")
    if parser.parse_args().check:
        stale = differences()
        if stale:
            sys.exit(f"not as made of the code: {', '.join(stale)}; run: {COMMAND}")
        return
    for path, text in files().items():
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
