"""What the broker is told: Kafka's settings for one small process, and the Java options.

Everything is sized for a developer's machine (memory, threads, files); what a client can observe is as in a
production cluster, except for the replication factors. It starts nothing and writes nothing.
"""

from __future__ import annotations

from pathlib import Path

from streams.kafka_broker.ports import bracketed

LOG_CONFIGURATION = Path(__file__).with_name("log4j2.properties")

NODE_ID = 1

CONTROLLER_HOST = "127.0.0.1"
"""The process talks with itself as its own controller; nobody else needs to reach that."""


def properties(*, host: str, port: int, controller_port: int, partitions: Path) -> dict[str, str]:
    """Give Kafka's settings.

    Args:
        host: the address to listen on and to tell clients.
        port: the port for clients.
        controller_port: the port on which the process talks with itself as its own controller.
        partitions: the directory of the partitions.
    """
    address = f"{bracketed(host)}:{port}"
    controller = f"{CONTROLLER_HOST}:{controller_port}"
    return {
        "process.roles": "broker,controller",
        "node.id": str(NODE_ID),
        "controller.quorum.bootstrap.servers": controller,
        "listeners": f"PLAINTEXT://{address},CONTROLLER://{controller}",
        "advertised.listeners": f"PLAINTEXT://{address},CONTROLLER://{controller}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": partitions.as_posix(),
        # Topics are made by `traction topics create`, never by a misspelt name.
        "auto.create.topics.enable": "false",
        # There is one broker: internal topics cannot have more replicas, and small ones start faster.
        "default.replication.factor": "1",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "4",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "1",
        # A group of one machine is complete at once; a stopped member may be given up after a second.
        "group.initial.rebalance.delay.ms": "0",
        "group.min.session.timeout.ms": "1000",
        # What a killed producer left open holds readers of committed records up: look for it every second, not ten.
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
        # A week, and at most 1 GiB per partition, in small files.
        "log.retention.hours": "168",
        "log.retention.bytes": str(1 << 30),
        "log.segment.bytes": str(64 << 20),
        "log.index.size.max.bytes": str(1 << 20),
        # The compaction buffer lies in the heap, by default 128 MiB of it.
        "log.cleaner.dedupe.buffer.size": str(16 << 20),
        "num.network.threads": "2",
        "num.io.threads": "4",
        "background.threads": "2",
    }


def java_options(*, heap: str, log: Path, temporary: Path) -> list[str]:
    """Give the Java options.

    Args:
        heap: the largest heap, as Java writes it (256m).
        log: the file for Kafka's log.
        temporary: the directory for the native libraries that jars unpack.
    """
    return [
        f"-Xmx{heap}",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-XX:+ExitOnOutOfMemoryError",
        # These would leave files outside of the data directory.
        "-XX:-UsePerfData",
        f"-XX:ErrorFile={log.with_name('java-crash.log')}",
        f"-Djava.io.tmpdir={temporary}",
        # Some bundled libraries call native code; Java would warn of each.
        "--enable-native-access=ALL-UNNAMED",
        "-Djava.awt.headless=true",
        f"-Dlog4j2.configurationFile={LOG_CONFIGURATION.as_uri()}",
        f"-Dtraction.log={log}",
    ]
