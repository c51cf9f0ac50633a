"""Types for other languages: what generators make of the JSON Schemas takes the records, and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from schemas.generate import HERE, json_schema
from schemas.records import DEAD_LETTER, RECORDS
from tests.examples.conftest import ROOT

pytestmark = [pytest.mark.tools, pytest.mark.timeout(300)]

PLACE = ROOT / "build" / "types"
KINDS = (*RECORDS, DEAD_LETTER)
GO_MODULE = "module contract\n\ngo 1.21\n"
GO_MAIN = """package main

import (
	"bufio"
	"encoding/json"
	"os"
)

func main() {
	lines := bufio.NewReader(os.Stdin)
	answers := json.NewEncoder(os.Stdout)
	for {
		kind, err := lines.ReadString('\\n')
		if err != nil {
			return
		}
		line, _ := lines.ReadBytes('\\n')
		answers.Encode(decode(kind[:len(kind)-1], line))
	}
}

func decode(kind string, line []byte) any {
	var found any
	var err error
	switch kind {
CASES	}
	if err != nil {
		return err.Error()
	}
	return found
}
"""
TYPESCRIPT = """import type { ToolCall } from "./tool-call.v1";
import type { Termination } from "./termination.v1";

const call: ToolCall = {
  event_id: "e", session_id: "s", occurred_at: new Date().toISOString(), tool: "Bash", status: "error",
  arguments: { command: "pytest -q" }, result: "1 failed", agent: null, task: { id: "SHOP-412" },
};
const digest: ToolCall = { ...call, arguments: ["a", 1], result: 3.5, sequence: null };
export const reason = (of: Termination): string => `${of.session_id}: ${of.reason} (${of.attempt ?? 1})`;
// @ts-expect-error a status that there is not
const status: ToolCall = { ...digest, status: "sideways" };
// @ts-expect-error a tool is always named
const nameless: ToolCall = { event_id: "e", session_id: "s", occurred_at: "2026-01-01T00:00:00Z" };
// @ts-expect-error a task is no text
const task: ToolCall = { ...call, task: "SHOP-412" };
export const all = [status, nameless, task];
"""


def camel(name: str) -> str:
    """Give the name that the generators make of a record's."""
    return "".join(part.capitalize() for part in name.split("-"))


def examples() -> dict[str, list[Any]]:
    """Give the examples of each record."""
    found = {
        kind.name: [json.loads(path.read_text("utf-8")) for path in sorted((HERE / "examples" / kind.name).glob("*"))]
        for kind in KINDS
    }
    assert all(found.values())
    return found


def run(*command: str, cwd: Path = PLACE, given: str | None = None) -> str:
    """Run a command; fails with what it said."""
    program = shutil.which(command[0], path=f"{PLACE / 'node_modules' / '.bin'}{os.pathsep}{os.environ['PATH']}")
    assert program, f"{command[0]} is missing"
    ran = subprocess.run([program, *command[1:]], cwd=cwd, input=given, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"{command}: {ran.stdout}{ran.stderr}"
    return ran.stdout


@pytest.fixture(scope="module")
def generators() -> None:
    """Have the generators installed, as the lock says."""
    PLACE.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(Path(__file__).parent / "types" / name, PLACE)
    run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")


@pytest.mark.usefixtures("generators")
def test_types_for_typescript() -> None:
    """They take every example and any JSON as a result, and refuse a wrong value, a missing field and a wrong type."""
    place = PLACE / "typescript"
    shutil.rmtree(place, ignore_errors=True)
    run("json2ts", "-i", f"{HERE / 'json'}/*.json", "-o", str(place))
    lines = [f'import type {{ {camel(kind.name)} }} from "./{kind.name}.v1";' for kind in KINDS]
    for name, shown in examples().items():
        lines += [f"export const {camel(name)}{at}: {camel(name)} = {json.dumps(it)};" for at, it in enumerate(shown)]
    (place / "examples.ts").write_text("\n".join(lines), "utf-8")
    (place / "program.ts").write_text(TYPESCRIPT, "utf-8")
    run(
        "tsc",
        "--strict",
        "--noEmit",
        "--target",
        "es2022",
        "--module",
        "nodenext",
        "examples.ts",
        "program.ts",
        cwd=place,
    )


@pytest.mark.usefixtures("generators")
def test_types_for_go() -> None:
    """What they read of every example has all that is in it, and they refuse a text in the place of a number."""
    place = PLACE / "go"
    shutil.rmtree(place, ignore_errors=True)
    (place / "schemas").mkdir(parents=True)
    for kind in KINDS:  # the file's name becomes the type's
        shutil.copy(HERE / "json" / kind.schema_file, place / "schemas" / f"{kind.name}.json")
    paths = sorted(str(path) for path in (place / "schemas").glob("*.json"))
    to_go = ("--src-lang", "schema", "--lang", "go", "--package", "main", "--out", str(place / "types.go"))
    run("quicktype", *to_go, *paths)
    cases = [f'\tcase "{kind.name}":\n\t\tfound, err = Unmarshal{camel(kind.name)}(line)\n' for kind in KINDS]
    (place / "main.go").write_text(GO_MAIN.replace("CASES", "".join(cases)), "utf-8")
    (place / "go.mod").write_text(GO_MODULE, "utf-8")

    given = [(name, shown) for name, of_kind in examples().items() for shown in of_kind]
    given.append(("tool-call", {"sequence": "nine"}))
    told = run("go", "run", ".", cwd=place, given="".join(f"{name}\n{json.dumps(shown)}\n" for name, shown in given))
    *read, refused = map(json.loads, told.splitlines())
    assert [plain(each) for each in read] == [plain(named(name, shown)) for name, shown in given[:-1]]
    assert "cannot unmarshal string" in refused


def named(name: str, shown: dict[str, Any]) -> dict[str, Any]:
    """Give of an example what its schema names: a dead letter has the producer's own headers besides."""
    (kind,) = (kind for kind in KINDS if kind.name == name)
    known = json_schema(kind)["properties"]
    return {field: part for field, part in shown.items() if field in known}


def plain(value: Any) -> Any:
    """Give a record without what is null or empty, which says as much as what is absent, and with times as such."""
    if isinstance(value, dict):
        found = {name: plain(part) for name, part in value.items()}
        return {name: part for name, part in found.items() if part not in (None, {}, [])}
    if isinstance(value, list):
        return [plain(part) for part in value]
    if isinstance(value, str) and value[10:11] == "T":
        return datetime.fromisoformat(value)
    return value
