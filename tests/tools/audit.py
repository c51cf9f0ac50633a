"""Asks whether a weakness is known of any dependency that is locked: `python -m tests.tools.audit`, or `make audit`.

It resolves and installs nothing. What could not be asked is said and is no success: some mirrors of PyPI answer that no
package exists, which pip-audit passes over. Exit codes: 0 nothing is known, 1 something is, 75 not all could be asked.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parent.parent.parent
LOCKS = tuple(ROOT / name for name in ("requirements.lock", "requirements-bench.lock", "requirements-tools.lock"))
NPM = ROOT / "tests" / "tools"
JARS = ROOT / "streams" / "kafka_broker" / "jars.lock"
IGNORED = NPM / "audit.toml"

EXIT_FOUND = 1
EXIT_NOT_ASKED = 75
"""`EX_TEMPFAIL` of sysexits.h: nothing is known to be wrong, and the same command may succeed later."""

SECONDS = 600
"""How long one of the tools may take: pip-audit asks for each package by itself."""

WORDS = 300
"""Characters of a tool's last words that are passed on."""


class NotAsked(Exception):
    """The weaknesses could not be asked for: the message says why."""


@dataclass(frozen=True, slots=True)
class Weakness:
    """A known weakness of a dependency.

    Attributes:
        package: name and version, where it is known.
        ids: its names in the registers of weaknesses.
        remedy: the versions without it, or what the tool says.
    """

    package: str
    ids: tuple[str, ...]
    remedy: str


def of_python(command: Sequence[str], lock: Path) -> list[Weakness]:
    """Ask about the Python packages.

    Args:
        command: pip-audit, with arguments of its own.
        lock: the requirements, each with its version and hashes.

    Raises:
        NotAsked: pip-audit failed, or did not find some package where it looks.
    """
    # One first: where the index has no answers at all, the others need not be asked for.
    with tempfile.TemporaryDirectory() as folder:
        first = Path(folder) / "first.lock"
        first.write_text(_first(lock.read_text("utf-8")), "utf-8")
        _asked(command, first)
    return [
        Weakness(
            f"{each['name']} {each['version']}",
            (found["id"], *found["aliases"]),
            f"fixed in {', '.join(found['fix_versions']) or 'no version'}",
        )
        for each in _asked(command, lock)
        for found in each["vulns"]
    ]


def _first(lock: str) -> str:
    """Give the first requirement that holds everywhere."""
    requirements = lock.replace("\\\n", " ").splitlines()
    return next(each for each in requirements if "==" in each and ";" not in each) + "\n"


def _asked(command: Sequence[str], lock: Path) -> list[dict[str, Any]]:
    arguments = ("--requirement", str(lock), "--require-hashes", "--disable-pip", "--format", "json")
    said = _run([*command, *arguments, "--progress-spinner", "off"], ROOT)
    dependencies: list[dict[str, Any]] = said["dependencies"]
    skipped = [each["name"] for each in dependencies if "skip_reason" in each]
    if skipped:
        raise NotAsked(
            f"the index has no answer for {len(skipped)} of {len(dependencies)} packages, {skipped[0]} among them; a "
            "mirror may not have them all: ask the public index itself, or say AUDIT_ARGS='--service osv'"
        )
    return dependencies


def of_npm(command: Sequence[str], folder: Path) -> list[Weakness]:
    """Ask about the packages of JavaScript that the tests need.

    Args:
        command: npm, with arguments of its own.
        folder: where its lock is.

    Raises:
        NotAsked: npm is missing or failed.
    """
    said = _run([*command, "audit", "--package-lock-only", "--json"], folder)
    if "vulnerabilities" not in said:
        raise NotAsked(str(said.get("message") or said.get("error") or "npm gives no reason")[:WORDS])
    return [
        Weakness(f"{name} {each['range']}", (found["url"].rpartition("/")[2],), found["title"])
        for name, each in said["vulnerabilities"].items()
        for found in each["via"]
        if isinstance(found, dict)  # else the name of the package that it comes from, which is listed itself
    ]


def _run(command: Sequence[str], folder: Path) -> dict[str, Any]:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    except FileNotFoundError:
        raise NotAsked(f"{command[0]} is missing") from None
    except subprocess.TimeoutExpired:
        raise NotAsked(f"{command[0]} took more than {SECONDS} s") from None
    try:
        said: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        last = (done.stderr or done.stdout).strip().rpartition("\n")[2]
        raise NotAsked(f"{Path(command[0]).name} ended with {done.returncode}: {last[:WORDS]}") from None
    return said


def ignored(file: Path, today: dt.date) -> dict[str, str]:
    """Give the weaknesses that are let pass, by id, with the reason.

    Args:
        file: tables `[ID]`, each with a `reason`, and `until`, a date after which it counts again.
        today: the date.

    Raises:
        ValueError: an entry lacks either.
    """
    let_pass = {}
    for name, entry in tomllib.loads(file.read_text("utf-8")).items():
        reason, until = (entry.get("reason"), entry.get("until")) if isinstance(entry, dict) else (None, None)
        if not isinstance(reason, str) or not reason or not isinstance(until, dt.date):
            raise ValueError(f"{file}: [{name}] needs a `reason`, and a date `until` when it is looked at again")
        if today <= until:
            let_pass[name] = f"{reason} (until {until})"
    return let_pass


def audit(asking: dict[str, Callable[[], list[Weakness]]], let_pass: dict[str, str]) -> int:
    """Ask for everything, tell what is known, and give the exit code.

    Args:
        asking: what gives the weaknesses, by the file it is about.
        let_pass: weaknesses that do not count, by id.
    """
    code = 0
    for name, ask in asking.items():
        try:
            found = ask()
        except NotAsked as problem:
            click.echo(f"audit: could not run: {name}: {problem}")
            code = code or EXIT_NOT_ASKED
            continue
        counted = 0
        for each in found:
            reasons = [let_pass[one] for one in each.ids if one in let_pass]
            counted += not reasons
            what = f"let pass, {reasons[0]}" if reasons else each.remedy
            click.echo(f"audit: {name}: {each.package}: {', '.join(each.ids)}: {what}")
        click.echo(f"audit: {name}: {counted or 'no'} known weakness{'es' * (counted > 1)}")
        code = EXIT_FOUND if counted else code
    return code


def main() -> int:
    """Ask about everything that this checkout locks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--service", default="pypi", choices=["pypi", "osv"], help="who is asked about Python packages")
    parser.add_argument("--osv-url", default="https://api.osv.dev/v1/query", help="address of that service")
    given = parser.parse_args()
    pip_audit = [
        sys.executable,
        "-m",
        "pip_audit",
        "--vulnerability-service",
        given.service,
        "--osv-url",
        given.osv_url,
    ]
    jars = len(JARS.read_text("utf-8").splitlines())
    code = audit(
        {
            **{lock.name: partial(of_python, pip_audit, lock) for lock in LOCKS},
            "tests/tools/package-lock.json": lambda: of_npm(["npm"], NPM),
        },
        ignored(IGNORED, dt.datetime.now(dt.UTC).date()),
    )
    click.echo(
        f"audit: {JARS.relative_to(ROOT)}: nothing asks about its {jars} jars. They are fixed by their SHA-256, and "
        "only `traction broker`, which is for development, runs them: see https://kafka.apache.org/cve-list"
    )
    return code


if __name__ == "__main__":
    sys.exit(main())
