"""The manifests as Kustomize renders them: valid by the schemas of their kinds, and what they name is there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from streams.access.roles import Names, rules
from streams.access.rules import Kind, Operation, Pattern, Rule
from streams.cli import bridge, escalate, ingest, worker
from streams.escalation import process as escalation
from streams.gateway import bridge_process
from streams.gateway import process as gateway
from streams.kafka import KafkaSettings
from streams.layout import read_layout
from streams.topics import REPLICATION, configured, plan
from streams.worker.settings import WorkerSettings
from tests.deploy.composed import DEPLOY, compose
from tests.deploy.test_compose import leaf, variables

pytestmark = pytest.mark.tools

KUBERNETES = DEPLOY / "kubernetes"
OVERLAYS = ("base", "overlays/dev", "overlays/prod", "strimzi")
BRIDGED = "base with bridge"
WITH_BRIDGE = {BRIDGED: ("base", "bridge"), "prod with bridge": ("overlays/prod", "bridge-prod")}
"""Overlays as docs/deployment.md has them made, for who runs the bridge: a folder and a component."""

RUN = ("base", "overlays/dev", "overlays/prod", *WITH_BRIDGE)
"""What has processes of ours."""

CRDS = {file.stem: json.loads(file.read_text("utf-8")) for file in (Path(__file__).parent / "crds").iterdir()}
PORTS = {"worker": 9401, "escalate": 9402, "ingest": 8321, "bridge": 9403}

SECRETS_OF_OTHERS = {
    "traction-worker", "traction-escalation", "traction-gateway", "traction-bridge", "kafka-cluster-ca-cert",
    "traction-gateway-tokens", "traction-pages",
}  # fmt: skip
"""Secrets that somebody else makes, as the folders for production say."""

APPLIED_BYTES = 256 * 1024
"""The largest annotation, in which `kubectl apply` keeps the whole object: Kubernetes' documentation, "Annotations"."""

Document = dict[str, Any]


def kustomize(folder: Path) -> str:
    """Render a folder: with kubectl where it is, else with what `tests/tools/install.sh` built."""
    built = DEPLOY.parent / "build" / "tools" / "kustomize"
    kubectl = shutil.which("kubectl")
    command = [kubectl, "kustomize"] if kubectl else [shutil.which("kustomize") or str(built), "build"]
    done = subprocess.run([*command, str(folder)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "deprecated" not in done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Render each folder, and those with the bridge as somebody's own overlay."""
    rendered = {name: kustomize(KUBERNETES / name) for name in OVERLAYS}
    for name, (folder, component) in WITH_BRIDGE.items():
        own = tmp_path_factory.mktemp("own")
        there = Path(os.path.relpath(KUBERNETES, own.resolve()))
        lines = (f"resources: [{there / folder}]", f"components: [{there / 'components' / component}]")
        (own / "kustomization.yaml").write_text("\n".join(lines))
        rendered[name] = kustomize(own)
    return rendered


@pytest.fixture(scope="module")
def rendered(texts: dict[str, str]) -> dict[str, list[Document]]:
    """Give the objects of each folder."""
    return {name: list(yaml.safe_load_all(text)) for name, text in texts.items()}


def every(rendered: dict[str, list[Document]]) -> Iterator[tuple[str, Document]]:
    """Give each object with what to call it."""
    for folder, documents in rendered.items():
        for each in documents:
            yield f"{folder}: {each['kind']} {each['metadata']['name']}", each


def pods(documents: list[Document]) -> dict[str, Document]:
    """Give the templates of pods, by the name of what has them."""
    return {
        each["metadata"]["name"]: each["spec"]["template"] for each in documents if "template" in each.get("spec", {})
    }


def find(documents: list[Document], kind: str, name: str) -> Document:
    """Give one object."""
    (found,) = [each for each in documents if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found


def validate(text: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """Validate manifests by Kubernetes' own schemas, strictly."""
    file = directory / "all.yaml"
    file.write_text(text)
    command = [str(Path(sys.executable).parent / "kubernetes-validate"), "--strict", str(file)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def test_kubernetes_kinds_are_valid(texts: dict[str, str], tmp_path: Path) -> None:
    """By Kubernetes' schemas; what these do not know has a schema of ours."""
    done = validate("---\n".join(texts.values()), tmp_path)
    said = (done.stdout + done.stderr).splitlines()
    assert done.returncode == 0, "\n".join(line for line in said if not line.startswith("INFO"))
    for line in (line for line in said if not line.startswith("INFO")):
        assert any(kind.lower() in line.lower() for kind in CRDS), line
    assert {"statefulset", "networkpolicy", "job"} <= {word for line in said for word in re.findall(r"\w+(?=/)", line)}


def test_a_misspelt_key_would_be_noticed(texts: dict[str, str], tmp_path: Path) -> None:
    """The check of manifests can fail."""
    done = validate(texts["base"].replace("livenessProbe", "livenesProbe"), tmp_path)
    assert done.returncode != 0
    assert "livenesProbe" in done.stdout + done.stderr


def test_other_kinds_are_valid(rendered: dict[str, list[Document]]) -> None:
    """By small schemas of ours, which know what we use and nothing else."""
    seen = set()
    for called, each in every(rendered):
        if each["kind"] in CRDS:
            errors = list(jsonschema_rs.validator_for(CRDS[each["kind"]]).iter_errors(each))
            assert not errors, f"{called}: {errors[0].message}"
            seen.add(each["kind"])
    assert seen == set(CRDS)


@pytest.mark.parametrize("folder", RUN)
def test_commands_and_variables_are_ours(rendered: dict[str, list[Document]], folder: str) -> None:
    """Each container runs a command that is there, with options and variables that it reads, and files that it has."""
    documents = rendered[folder]
    ran = set()
    for name, pod in pods(documents).items():
        for container in pod["spec"]["containers"]:
            if not container["image"].startswith("traction:"):
                continue
            context = leaf(list(container["args"]))
            ran.add(str(context.info_name))
            given = {one["name"]: one.get("value", "") for one in container.get("env", ())}
            for source in container["envFrom"]:
                given |= find(documents, "ConfigMap", source["configMapRef"]["name"])["data"]
            assert set(given) <= variables(context) | {"POD_NAME"}, name
            mounted = [mount["mountPath"] for mount in container["volumeMounts"]]
            values = [word.partition("=")[2] for word in container["args"]] + list(given.values())
            paths = [value for value in values if value.startswith("/")]
            assert all(any(path.startswith(f"{mount}/") for mount in mounted) for path in paths), (name, paths)
            assert {mount["name"] for mount in container["volumeMounts"]} <= {
                *(volume["name"] for volume in pod["spec"]["volumes"]),
                *(["state"] if "worker" in name else []),
            }
            assert set(re.findall(r"\$\((\w+)\)", str(container["args"]))) <= set(given)
    assert {"worker", "escalate", "ingest", *(["bridge"] if folder in WITH_BRIDGE else [])} <= ran


def test_what_is_mounted_is_there(rendered: dict[str, list[Document]]) -> None:
    """Configuration that is rendered too; secrets that are rendered, or that the overlay says it needs."""
    for folder in RUN:
        documents = rendered[folder]
        made = {each["metadata"]["name"] for each in documents if each["kind"] == "Secret"}
        for name, pod in pods(documents).items():
            for volume in pod["spec"]["volumes"]:
                if "configMap" in volume:
                    assert find(documents, "ConfigMap", volume["configMap"]["name"])["data"]
                if "secret" in volume:
                    assert volume["secret"]["secretName"] in made | SECRETS_OF_OTHERS, (folder, name)
    folders = ("overlays/prod", "components/bridge-prod")
    text = "".join((KUBERNETES / name / "kustomization.yaml").read_text("utf-8") for name in folders)
    assert all(name in text for name in SECRETS_OF_OTHERS)
    named = {
        one["name"]
        for one in find(rendered["overlays/prod"], "TriggerAuthentication", "traction-keda")["spec"]["secretTargetRef"]
    }
    assert named <= SECRETS_OF_OTHERS | {"traction-keda"}


def test_selectors_select(rendered: dict[str, list[Document]]) -> None:
    """Each service, budget, policy of the network and monitor is for pods that there are, and a port of theirs."""
    for folder in RUN:
        templates = pods(rendered[folder]).values()
        for each in rendered[folder]:
            spec = each.get("spec", {})
            selector = spec.get("podSelector") or spec.get("selector") or {}
            wanted = selector.get("matchLabels", selector if each["kind"] == "Service" else {})
            if each["kind"] not in {"Service", "PodDisruptionBudget", "NetworkPolicy", "PodMonitor"}:
                continue
            assert wanted.get("app.kubernetes.io/name"), each["metadata"]["name"]
            selected = [one for one in templates if wanted.items() <= one["metadata"]["labels"].items()]
            assert selected, (folder, each["kind"], each["metadata"]["name"])
            ports = {port["name"] for one in selected for c in one["spec"]["containers"] for port in c.get("ports", ())}
            if each["kind"] == "Service":
                assert {port["targetPort"] for port in spec["ports"]} <= ports
            if each["kind"] == "PodMonitor":
                assert {one["port"] for one in spec["podMetricsEndpoints"]} <= ports
                (relabel,) = spec["podMetricsEndpoints"][0]["relabelings"]
                text = (DEPLOY / "prometheus" / "prometheus.yaml").read_text("utf-8")
                assert f"job_name: {relabel['replacement']}\n" in text, "the rules know the jobs by these names"


def test_pages_are_probed(rendered: dict[str, list[Document]]) -> None:
    """On the port that the command has by default; alive from `/healthz`, ready from `/readyz`."""
    ports = {worker.DEFAULT_PORT, escalate.DEFAULT_PORT, ingest.DEFAULT_PORT, bridge.DEFAULT_PORT}
    assert ports == set(PORTS.values())
    for name, pod in pods(rendered[BRIDGED]).items():
        (container,) = pod["spec"]["containers"]
        assert container["ports"] == [{"name": "pages", "containerPort": PORTS[container["args"][0]]}], name
        for probe, path in (("startup", "/healthz"), ("liveness", "/healthz"), ("readiness", "/readyz")):
            assert container[f"{probe}Probe"]["httpGet"] == {"path": path, "port": "pages"}


def test_pods_may_do_nothing_more_than_they_must(rendered: dict[str, list[Document]]) -> None:
    """By the profile `restricted` of the pod security standards, and ours with a root that is read-only."""
    for folder in RUN:
        for each in rendered[folder]:
            if each["kind"] == "Namespace":
                enforced = {f"pod-security.kubernetes.io/{how}": "restricted" for how in ("enforce", "audit", "warn")}
                assert enforced.items() <= each["metadata"]["labels"].items()
        for name, pod in pods(rendered[folder]).items():
            spec = pod["spec"]
            assert spec["securityContext"]["runAsNonRoot"] is True
            assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
            assert spec["automountServiceAccountToken"] is False
            assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
            for container in spec["containers"]:
                context = container["securityContext"]
                assert context["allowPrivilegeEscalation"] is False
                assert context["capabilities"] == {"drop": ["ALL"]}
                assert container["resources"]["limits"]["memory"]
                if container["image"].startswith("traction:"):
                    assert context["readOnlyRootFilesystem"] is True, name
                    assert spec["securityContext"]["runAsUser"] == 10001


def test_a_node_or_zone_may_go(rendered: dict[str, list[Document]]) -> None:
    """Pods of a kind are spread over both, one is moved at a time, and one that is not ready holds up no drain."""
    documents = rendered[BRIDGED]
    for name, pod in pods(documents).items():
        labels = {key: pod["metadata"]["labels"][f"app.kubernetes.io/{key}"] for key in ("name", "component")}
        spread = pod["spec"]["topologySpreadConstraints"]
        assert [each["topologyKey"] for each in spread] == ["topology.kubernetes.io/zone", "kubernetes.io/hostname"]
        for each in spread:
            wanted = each["labelSelector"]["matchLabels"]
            assert wanted == {f"app.kubernetes.io/{key}": value for key, value in labels.items()}, name
        budget = find(documents, "PodDisruptionBudget", name)["spec"]
        assert (budget["maxUnavailable"], budget["unhealthyPodEvictionPolicy"]) == (1, "AlwaysAllow")


def test_there_is_time_to_end(rendered: dict[str, list[Document]]) -> None:
    """Kubernetes kills later than our processes need at the longest."""
    needed = {
        "traction-worker": WorkerSettings().away_timeout,
        "traction-escalate": 1.5 * escalation.STOP_SECONDS,
        "traction-ingest": gateway.STOP_SECONDS + gateway.CLOSE_SECONDS,
        "traction-bridge": 1.5 * bridge_process.STOP_SECONDS,
    }
    assert needed.keys() == pods(rendered[BRIDGED]).keys()
    for name, seconds in needed.items():
        spec = pods(rendered[BRIDGED])[name]["spec"]
        sleep = spec["containers"][0].get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
        assert spec["terminationGracePeriodSeconds"] > seconds + sleep + 5


def mebibytes(quantity: str) -> float:
    """Read a quantity of memory."""
    number, unit = float(quantity[:-2]), quantity[-2:]
    return number * {"Mi": 1, "Gi": 1024}[unit]


def test_a_worker_has_the_memory_that_it_needs(rendered: dict[str, list[Document]]) -> None:
    """As docs/sizing.md reckons: the start, the sessions that are kept decoded, and RocksDB's."""
    (container,) = pods(rendered["base"])["traction-worker"]["spec"]["containers"]
    megabytes = 70 + WorkerSettings().live_sessions * 20 / 1000 + 64
    assert mebibytes(container["resources"]["requests"]["memory"]) > megabytes / 1.048576
    (ingesting,) = pods(rendered["base"])["traction-ingest"]["spec"]["containers"]
    assert mebibytes(ingesting["resources"]["limits"]["memory"]) > 70 + 4 * 128


def test_workers_are_scaled_with_care(rendered: dict[str, list[Document]]) -> None:
    """Never none, never more than partitions, by a topic and a group that there are, one at a time and seldom."""
    prod = rendered["overlays/prod"]
    layout, names = read_layout(DEPLOY / "kafka.toml"), Names()
    spec = find(prod, "ScaledObject", "traction-worker")["spec"]
    assert 1 <= spec["minReplicaCount"] < spec["maxReplicaCount"] <= (layout.topics.partitions or 0)
    assert "replicas" not in find(prod, "StatefulSet", "traction-worker")["spec"]
    (trigger,) = spec["triggers"]
    settings = find(prod, "ConfigMap", "traction-kafka")["data"]
    assert trigger["metadata"]["topic"] in names.topics
    assert trigger["metadata"]["consumerGroup"] == names.app_id
    assert trigger["metadata"]["bootstrapServers"] == settings["TRACTION_BOOTSTRAP"]
    behavior = spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    for direction, least in (("scaleUp", 300), ("scaleDown", 1800)):
        (policy,) = behavior[direction]["policies"]
        assert (policy["type"], policy["value"]) == ("Pods", 1)
        assert policy["periodSeconds"] >= least
        assert behavior[direction]["stabilizationWindowSeconds"] >= least


def test_versions_are_the_same_everywhere(rendered: dict[str, list[Document]]) -> None:
    """Our image has the version of the project, Kafka's that of the compose file."""
    version = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    images = {
        c["image"]
        for _, each in every(rendered)
        for c in each.get("spec", {}).get("template", {}).get("spec", {}).get("containers", ())
    }
    assert images == {f"traction:{version}", compose()["services"]["kafka"]["image"]}
    assert compose()["services"]["worker"]["image"] == f"traction:{version}"


def test_objects_can_be_applied(rendered: dict[str, list[Document]]) -> None:
    """`kubectl apply` keeps each object in an annotation of it."""
    for called, each in every(rendered):
        assert len(json.dumps(each)) < APPLIED_BYTES, called


def test_strimzi_makes_what_the_commands_make(rendered: dict[str, list[Document]]) -> None:
    """The topics of `traction topics create`, and the rules of `traction acl apply`: no right more, none less."""
    layout = read_layout(DEPLOY / "kafka.toml")
    topics = {each["metadata"]["name"]: each["spec"] for each in rendered["strimzi"] if each["kind"] == "KafkaTopic"}
    assert topics == {
        each.name: {
            "partitions": each.partitions,
            "replicas": REPLICATION,
            "config": configured(each, REPLICATION),
        }
        for each in plan(KafkaSettings(), partitions=layout.topics.partitions or 0, config=layout.configs(Names()))
    }
    kinds = {"topic": Kind.TOPIC, "group": Kind.GROUP, "transactionalId": Kind.TRANSACTIONAL_ID}
    made = {
        Rule(
            f"User:{each['metadata']['name']}",
            kinds[acl["resource"]["type"]],
            acl["resource"]["name"],
            {"literal": Pattern.LITERAL, "prefix": Pattern.PREFIXED}[acl["resource"]["patternType"]],
            next(one for one in Operation if one.word == operation),
        )
        for each in rendered["strimzi"]
        if each["kind"] == "KafkaUser"
        for acl in each["spec"]["authorization"]["acls"]
        for operation in acl["operations"]
    }
    assert made == set(rules(layout.principals, Names()))
    clusters = {each["metadata"]["labels"]["strimzi.io/cluster"] for each in rendered["strimzi"]}
    assert clusters == {"kafka"}


def test_the_broker_for_development_is_set_up_as_that_of_compose(rendered: dict[str, list[Document]]) -> None:
    """With settings that a test starts a broker with, but for logins, rights, and what is only known there."""
    (container,) = pods(rendered["overlays/dev"])["kafka"]["spec"]["containers"]
    mine = {one["name"]: one["value"] for one in container["env"]}
    other = compose()["services"]["kafka"]["environment"]
    differing = {name for name in mine if mine[name] != other.get(name)}
    assert differing == {
        "KAFKA_ADVERTISED_LISTENERS",
        "KAFKA_INTER_BROKER_LISTENER_NAME",
        "KAFKA_LISTENERS",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP",
    }
    assert other.keys() >= mine.keys()
