"""Kafka's jars: fetched once into a cache, and checked against the sums of `jars.lock` before every start.

What to run is pinned by that file alone, transitive dependencies included; nothing is resolved at run time. This
module only reads it (`relock.py` writes it), and it never uses a jar that differs from its sum.
"""

from __future__ import annotations

import hashlib
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from streams.kafka_broker.errors import BrokerError
from streams.places import user_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

LOCK_FILE = Path(__file__).with_name("jars.lock")
"""One jar a line: its Maven coordinate and the SHA-256 sum of its content."""

FETCHES_AT_ONCE = 6
"""Few enough to be polite to the repository; the time goes to many small files."""

FETCH_TRIES = 3
"""A repository that hangs or cuts a jar short mostly does not do it twice."""

REMEDY_EXTRA = "install the extra traction[broker]: pip install '.[broker]' in the checkout"


@dataclass(frozen=True, slots=True)
class Jar:
    """One jar as the lock file pins it.

    Attributes:
        group: the Maven group id.
        artifact: the Maven artifact id.
        version: the version.
        sha256: the sum of its content, in hex.
    """

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def filename(self) -> str:
        """The file's name in the cache, as in the repository."""
        return f"{self.artifact}-{self.version}.jar"

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"


def default_cache() -> Path:
    """Give the directory for the jars: in the user's cache directory, as the platform has it."""
    return user_directory("cache") / "kafka"


def read_lock(path: Path = LOCK_FILE) -> list[Jar]:
    """Read the lock file.

    Args:
        path: the file.
    """
    jars = []
    for line in path.read_text("ascii").splitlines():
        coordinate, sha256 = line.split()
        group, artifact, version = coordinate.split(":")
        jars.append(Jar(group, artifact, version, sha256.removeprefix("sha256:")))
    return jars


def class_path(cache: Path, *, jars: Iterable[Jar] | None = None, tell: Callable[[str], object]) -> list[Path]:
    """Give the jars to run, all present and all as the lock file says.

    Args:
        cache: the directory that they are in, or are fetched into.
        jars: the jars; those of the lock file when None.
        tell: is called with a sentence before anything slow.

    Returns:
        The jars' paths, in the lock file's order.

    Raises:
        BrokerError: a jar differs from its sum, or cannot be fetched, or the cache cannot be written.
    """
    wanted = list(read_lock() if jars is None else jars)
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise BrokerError(
            f"{cache}: cannot keep jars there ({problem.strerror}); give --cache a directory"
        ) from problem
    missing = [jar for jar in wanted if not (cache / jar.filename).is_file()]
    for jar in wanted:
        if jar not in missing and digest(cache / jar.filename) != jar.sha256:
            raise BrokerError(
                f"{cache / jar.filename}: differs from the locked {jar} (SHA-256 {jar.sha256}); "
                "it is damaged or was tampered with: delete it, and it is fetched anew"
            )
    if missing:
        tell(f"fetching {len(missing)} of {len(wanted)} jars of Apache Kafka into {cache} ...")
        fetch(missing, cache)
    return [cache / jar.filename for jar in wanted]


def fetch(jars: Iterable[Jar], cache: Path) -> None:
    """Fetch jars from the Maven repositories that jgo is set up for, by default the central one.

    A jar appears in the cache whole and checked or not at all, also when several processes fetch at once.

    Args:
        jars: the jars.
        cache: the directory to put them in; it exists.

    Raises:
        BrokerError: jgo is not installed, a jar cannot be had, or what came differs from its sum.
    """
    try:
        from jgo.config import GlobalSettings  # noqa: PLC0415 - part of an extra, and needed once
        from jgo.maven import MavenContext  # noqa: PLC0415
    except ImportError as problem:
        raise BrokerError(f"Kafka's jars are not in {cache}, and jgo is not installed; {REMEDY_EXTRA}") from problem
    repositories = GlobalSettings.load().repositories or None

    def fetch_one(jar: Jar, staging: Path) -> None:
        component = MavenContext(repo_cache=staging, remote_repos=repositories, timeout=60).project(
            jar.group, jar.artifact
        )
        try:
            path = component.at_version(jar.version).artifact().resolve()
        except (OSError, RuntimeError) as problem:  # of requests and of jgo, in this order
            raise BrokerError(f"{jar}: cannot be fetched ({problem}); check the network and try again") from problem
        if (found := digest(path)) != jar.sha256:
            raise BrokerError(
                f"{jar}: what the repository sent has SHA-256 {found}, not the locked {jar.sha256}; "
                "it was cut short or is not the jar that was locked: try again, from a repository that you trust"
            )
        path.replace(cache / jar.filename)

    def persist(jar: Jar) -> None:
        for attempt in range(1, FETCH_TRIES + 1):
            with tempfile.TemporaryDirectory(prefix=".fetch-", dir=cache) as staging:
                try:
                    fetch_one(jar, Path(staging))
                except BrokerError:
                    if attempt == FETCH_TRIES:
                        raise
                else:
                    return

    with ThreadPoolExecutor(FETCHES_AT_ONCE) as pool:
        list(pool.map(persist, jars))


def digest(path: Path) -> str:
    """Compute the SHA-256 sum of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
