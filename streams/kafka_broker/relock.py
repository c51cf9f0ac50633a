"""Remakes `jars.lock`: resolves Kafka and a logging backend, fetches every jar and writes down its sum.

For maintainers (`python -m streams.kafka_broker.relock`, when Kafka's version changes). Nothing runs this by itself:
a lock file that rewrote itself would pin nothing.
"""

import sys
import tempfile
from pathlib import Path

from jgo.maven import MavenContext

from streams.kafka_broker.jars import LOCK_FILE, digest

KAFKA = "org.apache.kafka:kafka_2.13:4.3.1"
"""What is run; everything but the next one follows from it."""

LOGGING = "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4"
"""Kafka logs through slf4j 1.7 and brings log4j 2.25.4, but not what joins the two."""


def main() -> None:
    """Write the lock file."""
    with tempfile.TemporaryDirectory() as staging:
        context = MavenContext(repo_cache=Path(staging), timeout=60)
        # Each by itself: resolved together, the versions that the second one manages would rule over Kafka's.
        given, followed = context.resolver.resolve([context.create_dependency(KAFKA)])
        wanted = [*given, *(each for each in followed if each.scope in {"compile", "runtime"})]
        wanted.append(context.create_dependency(LOGGING))
        artifacts = {f"{each.groupId}:{each.artifactId}:{each.version}": each.artifact for each in wanted}
        lines = [f"{name} sha256:{digest(artifact.resolve())}\n" for name, artifact in sorted(artifacts.items())]
    LOCK_FILE.write_text("".join(lines), "ascii")
    sys.stdout.write(f"{LOCK_FILE}: {len(lines)} jars\n")


if __name__ == "__main__":
    main()
