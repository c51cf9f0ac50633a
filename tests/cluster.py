"""Several Kafka processes on loopback in a throw-away directory, each broker and controller, to stop, kill and freeze.

Clients connect as `Security` says; brokers speak with each other in plain text on a listener of their own, so that
nothing of a test's passwords and lists of rights is in their way.
"""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from streams.kafka_broker.directory import DataDirectory
from streams.kafka_broker.errors import BrokerError
from streams.kafka_broker.jars import class_path, default_cache
from streams.kafka_broker.java import JavaProcess, class_options, find_java
from streams.kafka_broker.ports import answers, pick_port
from streams.kafka_broker.process import START_TIMEOUT, STOP_TIMEOUT, cluster_id
from streams.kafka_broker.settings import java_options, properties
from tests.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streams.kafka import SecurityProtocol

HOST = "127.0.0.1"

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


class Certificates:
    """An authority of the test's own, and what it signed, as PEM files in a directory.

    Attributes:
        ca: the authority's certificate.
        broker: the brokers' key and certificates, as Kafka reads them.
        other: the same for another host name.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._authority = trustme.CA()
        self.ca = directory / "ca.pem"
        self._authority.cert_pem.write_to_path(self.ca)
        self.broker = self._broker("broker", HOST, "localhost")
        self.other = self._broker("other", "kafka.example")

    def _broker(self, name: str, *hosts: str) -> Path:
        signed, file = self._authority.issue_cert(*hosts), self._directory / f"{name}.pem"
        # Kafka reads keys in the one form only.
        key = load_pem_private_key(signed.private_key_pem.bytes(), None).private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
        )
        file.write_bytes(key + b"".join(blob.bytes() for blob in signed.cert_chain_pems))
        return file

    def client(self, name: str) -> tuple[Path, Path]:
        """Sign a client's certificate, and give the files of it and of its key.

        Args:
            name: its common name; Kafka knows the client as `User:CN=...` with the whole subject.
        """
        signed = self._authority.issue_cert(name, common_name=name)
        certificate, key = self._directory / f"{name}.pem", self._directory / f"{name}.key"
        certificate.write_bytes(b"".join(blob.bytes() for blob in signed.cert_chain_pems))
        signed.private_key_pem.write_to_path(key)
        return certificate, key


@dataclass(frozen=True)
class Security:
    """What brokers demand of clients.

    Attributes:
        protocol: of the clients' listener.
        mechanisms: the ways to log in.
        users: passwords by name, for PLAIN and SCRAM.
        certificates: those of the brokers, where the protocol encrypts.
        client_certificate: whether clients have to show one.
        authorizer: whether rights are checked; nobody has one that was not given, but for the super users.
        super_users: names of those who may do everything; the brokers themselves always may.
        java: further options of Java.
        settings: further settings of Kafka; those of the clients' listener begin with `listener.name.clients.`.
        listeners: further listeners, by a name in capitals: their protocols. Their settings are in `settings`.
    """

    protocol: SecurityProtocol = "PLAINTEXT"
    mechanisms: tuple[str, ...] = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
    users: Mapping[str, str] = field(default_factory=dict)
    certificates: Certificates | None = None
    client_certificate: bool = False
    authorizer: bool = False
    super_users: tuple[str, ...] = ("admin",)
    java: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    listeners: Mapping[str, SecurityProtocol] = field(default_factory=dict)

    def properties(self) -> dict[str, str]:
        """Give Kafka's settings."""
        found: dict[str, str] = {}
        if "SASL" in self.protocol:
            found["sasl.enabled.mechanisms"] = ",".join(self.mechanisms)
            users = " ".join(f'user_{name}="{password}"' for name, password in self.users.items())
            for mechanism in self.mechanisms:
                module = {"PLAIN": f"{PLAIN} required {users};"}.get(mechanism, f"{SCRAM} required;")
                if mechanism == "PLAIN" or mechanism.startswith("SCRAM"):
                    found[f"listener.name.clients.{mechanism.lower()}.sasl.jaas.config"] = module
        if "SSL" in self.protocol:
            assert self.certificates is not None
            found |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": self.certificates.broker.as_posix(),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": self.certificates.ca.as_posix(),
                "ssl.client.auth": "required" if self.client_certificate else "none",
            }
        if self.authorizer:
            found["authorizer.class.name"] = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
            # Brokers come without a name: on their own listener, which clients do not know.
            found["super.users"] = ";".join(f"User:{name}" for name in (*self.super_users, "ANONYMOUS"))
        return found | dict(self.settings)

    @property
    def format_arguments(self) -> list[str]:
        """What the storage is laid out with: passwords for SCRAM."""
        return [
            argument
            for mechanism in self.mechanisms
            if "SASL" in self.protocol and mechanism.startswith("SCRAM")
            for name, password in self.users.items()
            for argument in ("--add-scram", f"{mechanism}=[name={name},password={password}]")
        ]


State = Literal["new", "up", "paused", "down"]


@dataclass
class Node:
    """One broker.

    Attributes:
        number: its node id, from 1.
        clients: the port for clients.
        inside: the port for brokers.
        controller: the port for controllers.
        proxied: the port behind the proxy.
        directory: where its files are.
        others: the ports of further listeners, by name.
        process: the running one.
        state: what was done to it.
        proxy: what processes under test connect to.
    """

    number: int
    clients: int
    inside: int
    controller: int
    proxied: int
    directory: DataDirectory
    others: Mapping[str, int] = field(default_factory=dict)
    process: JavaProcess | None = None
    state: State = "new"
    proxy: Proxy | None = None


class Cluster:
    """A cluster of Kafka processes that ends with its context.

    Topics that are made without saying so have as many replicas as there are brokers (three at most), of which two have
    to have a record before it counts as written, if there are three.

    Args:
        brokers: how many.
        proxied: whether there is a second way in, through a proxy before each broker.
        security: what brokers demand of clients that come directly; those through the proxies need no more.
        heap: Java's largest heap, of each.
    """

    def __init__(
        self, brokers: int = 3, *, proxied: bool = False, security: Security | None = None, heap: str = "256m"
    ) -> None:
        self.replication = min(brokers, 3)
        self._size = brokers
        self._proxied = proxied
        self._security = security or Security()
        self._heap = heap
        self._stack = ExitStack()
        self._ports: set[int] = set()
        self.nodes: dict[int, Node] = {}

    @property
    def bootstrap(self) -> str:
        """The brokers' addresses."""
        return ",".join(f"{HOST}:{node.clients}" for node in self.nodes.values())

    @property
    def proxied_bootstrap(self) -> str:
        """The brokers' addresses behind the proxies."""
        return ",".join(f"{HOST}:{node.proxy.port}" for node in self.nodes.values() if node.proxy is not None)

    def listener(self, name: str) -> str:
        """Give the brokers' addresses on a further listener, or on the brokers' own, INSIDE."""
        ports = (node.inside if name == "INSIDE" else node.others[name] for node in self.nodes.values())
        return ",".join(f"{HOST}:{port}" for port in ports)

    def log(self, number: int) -> Path:
        """Give the file of a broker's log."""
        return self.nodes[number].directory.log

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._open(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def kill(self, number: int) -> None:
        """Kill a broker."""
        self._end(self.nodes[number], 0)

    def stop(self, number: int) -> None:
        """Stop a broker in order: it hands its partitions over first."""
        self._end(self.nodes[number], STOP_TIMEOUT)

    def pause(self, number: int) -> None:
        """Freeze a broker."""
        self._signal(number, signal.SIGSTOP, "paused")

    def resume(self, number: int) -> None:
        """Let a frozen broker go on."""
        self._signal(number, signal.SIGCONT, "up")

    def start(self, number: int) -> None:
        """Start a broker that was stopped or killed, on its ports and data, and wait until it answers."""
        self._launch(self.nodes[number])
        self._await(self.nodes[number])

    def _open(self, stack: ExitStack) -> None:
        root = DataDirectory(None)
        stack.callback(root.release)
        java = find_java()
        self._command = [str(java), *class_options(java, class_path(default_cache(), tell=print))]
        self._id = cluster_id()
        for number in range(1, self._size + 1):
            directory = DataDirectory(root.path / f"broker{number}")
            stack.callback(directory.release)
            clients, inside, controller, proxied, before = (self._port() for _ in range(5))
            others = {name: self._port() for name in self._security.listeners}
            node = Node(number, clients, inside, controller, proxied, directory, others)
            if self._proxied:
                node.proxy = stack.enter_context(Proxy(HOST, before, proxied))
            self.nodes[number] = node
        for node in self.nodes.values():
            stack.callback(self._end, node, 0)
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(self._format, self.nodes.values()))
        for node in self.nodes.values():
            self._launch(node)
        for node in self.nodes.values():
            self._await(node)

    def _port(self) -> int:
        """Pick a port that nothing of this cluster has: none is bound until its broker starts."""
        port = pick_port(HOST, given=self._ports)
        self._ports.add(port)
        return port

    def _properties(self, node: Node) -> dict[str, str]:
        base = properties(
            host=HOST, port=node.clients, controller_port=node.controller, partitions=node.directory.partitions
        )
        del base["controller.quorum.bootstrap.servers"]
        ports = {"CLIENTS": node.clients, "INSIDE": node.inside, "CONTROLLER": node.controller}
        advertised = dict(ports)
        protocols: dict[str, SecurityProtocol] = {
            "CLIENTS": self._security.protocol,
            "INSIDE": "PLAINTEXT",
            "CONTROLLER": "PLAINTEXT",
        }
        if node.proxy is not None:
            ports["PROXIED"], advertised["PROXIED"], protocols["PROXIED"] = node.proxied, node.proxy.port, "PLAINTEXT"
        ports |= node.others
        advertised |= node.others
        protocols |= self._security.listeners
        copies, needed = str(self.replication), str(max(1, self.replication - 1))

        def listeners(named: Mapping[str, int]) -> str:
            return ",".join(f"{name}://{HOST}:{port}" for name, port in named.items())

        return (
            base
            | {
                "node.id": str(node.number),
                "controller.quorum.voters": ",".join(
                    f"{each.number}@{HOST}:{each.controller}" for each in self.nodes.values()
                ),
                "listeners": listeners(ports),
                "advertised.listeners": listeners(advertised),
                "listener.security.protocol.map": ",".join(f"{name}:{value}" for name, value in protocols.items()),
                "inter.broker.listener.name": "INSIDE",
                "default.replication.factor": copies,
                "min.insync.replicas": needed,
                "offsets.topic.replication.factor": copies,
                "transaction.state.log.replication.factor": copies,
                "transaction.state.log.min.isr": needed,
                # A broker that is gone is noticed after some seconds, as a test has time for.
                "broker.session.timeout.ms": "5000",
                "broker.heartbeat.interval.ms": "1000",
                "replica.lag.time.max.ms": "5000",
            }
            | self._security.properties()
        )

    def _format(self, node: Node) -> None:
        node.directory.begin("".join(f"{key}={value}\n" for key, value in self._properties(node).items()))
        arguments = ["kafka.tools.StorageTool", "format", "-t", self._id, "-c", str(node.directory.settings)]
        if self._run(node, [*arguments, *self._security.format_arguments]).wait() != 0:
            raise BrokerError(node.directory.console.read_text("utf-8"))

    def _launch(self, node: Node) -> None:
        assert node.state in {"new", "down"}, node.state
        node.process = self._run(node, ["kafka.Kafka", str(node.directory.settings)])
        node.state = "up"

    def _run(self, node: Node, arguments: list[str]) -> JavaProcess:
        java, *class_path_arguments = self._command
        directory = node.directory
        options = java_options(heap=self._heap, log=directory.log, temporary=directory.temporary)
        return JavaProcess(
            [java, *options, *self._security.java, *class_path_arguments, *arguments],
            console=directory.console,
            inherits=directory.lock,
        )

    def _await(self, node: Node) -> None:
        deadline = time.monotonic() + START_TIMEOUT
        while not answers(HOST, node.inside):
            ended = node.process is None or node.process.poll() is not None
            if ended or time.monotonic() > deadline:
                said = [file.read_text("utf-8", "replace") for file in (node.directory.console, node.directory.log)]
                raise BrokerError(f"broker {node.number} does not answer: {''.join(said)[-4000:]}")
            time.sleep(0.05)

    def _end(self, node: Node, patience: float) -> None:
        if node.process is not None:
            node.process.stop(patience=patience)
        node.process, node.state = None, "down"

    def _signal(self, number: int, name: int, state: State) -> None:
        node = self.nodes[number]
        assert node.process is not None
        os.kill(node.process.pid, name)
        node.state = state
