"""Fuzzes the targets one after another, coverage-guided, and says what came of it: `make fuzz`.

Each target runs in a process of its own for so many seconds, from its seeds and from what earlier runs on this machine
reached. An input that makes it fail, takes too long or too much memory is kept, and named. It mends nothing.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.targets import CORPUS, ROOT, TARGETS, contents, seeds

KEPT = ROOT / ".fuzz"
"""Where inputs that reached something new are kept from run to run; in no way needed."""

MOST_BYTES = 100_000
"""Longest input; what only longer ones do is tried by `tests/fuzz/test_bounds.py`."""

HANG_SECONDS = 20
"""How long one input may take: a thousand times what the slowest takes."""

MOST_MIB = 1_500
"""Memory that the process may come to have, instrumented code and the collected inputs included."""

NEEDS = (
    "atheris is not here: it comes with the development environment on Linux, x86-64, Python below 3.14 (make setup)"
)


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of one target.

    Attributes:
        name: the target.
        executed: inputs tried.
        findings: files of inputs that it fails at.
        log: what the process said.
    """

    name: str
    executed: int
    findings: list[Path]
    log: str


def fuzz(name: str, seconds: int, kept: Path) -> Ran:
    """Fuzz one target.

    Args:
        name: the target.
        seconds: for how long.
        kept: a folder for what is reached and found.
    """
    reached, found = kept / "reached" / name, kept / "found" / name
    begins = kept / "seeds" / name
    for folder in (reached, found, begins):
        folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(contents(name)):
        (begins / f"{number:03}").write_bytes(seed)
    before = set(found.iterdir())
    command = [sys.executable, "-m", "tests.fuzz.one", name]
    options = [
        *(f"-max_total_time={seconds}", f"-max_len={MOST_BYTES}", f"-timeout={HANG_SECONDS}"),
        *(f"-rss_limit_mb={MOST_MIB}", "-print_final_stats=1", f"-artifact_prefix={found}/", "-seed=1"),
    ]
    done = subprocess.run(
        [*command, *options, str(reached), str(begins)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    log = done.stderr + done.stdout
    counted = re.findall(r"stat::number_of_executed_units: (\d+)", log) or re.findall(r"^#(\d+)\s", log, re.MULTILINE)
    findings = sorted(set(found.iterdir()) - before)
    if done.returncode and not findings:
        raise RuntimeError(f"{name} did not run:\n{log[-2_000:]}")
    return Ran(name, int(counted[-1]) if counted else 0, findings, log)


def main() -> int:
    """Fuzz what is asked for, and tell; 1 when something was found, 2 when it cannot run."""
    options = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    options.add_argument("targets", nargs="*", metavar="TARGET", help="targets; all when none is named")
    options.add_argument("--seconds", type=int, default=60, help="for each target (60)")
    options.add_argument("--keep", type=Path, default=KEPT, help="folder for what is reached and found")
    asked = options.parse_args()
    names = asked.targets or list(TARGETS)
    if unknown := [name for name in names if name not in TARGETS]:
        options.error(f"there is no target {', '.join(unknown)}; there are {', '.join(TARGETS)}")
    if importlib.util.find_spec("atheris") is None:
        print(NEEDS, file=sys.stderr)  # noqa: T201
        return 2
    total, failed = 0, 0
    for name in names:
        ran = fuzz(name, asked.seconds, asked.keep)
        total += ran.executed
        failed += len(ran.findings)
        print(f"{name:16} {len(seeds(name)):4} seeds {ran.executed:9,} executions", flush=True)  # noqa: T201
        for path in ran.findings:
            print(f"  FOUND {path}\n{ran.log[-3_000:]}", flush=True)  # noqa: T201
    corpus = sum(1 for path in CORPUS.rglob("*") if path.is_file())
    told = f"{len(names)} targets, {corpus} files in the corpus, {total:,} executions, {failed} findings"
    print(told)  # noqa: T201
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
