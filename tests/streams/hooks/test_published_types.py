"""Payloads as agents send them and answers as they take them, by the types that the agents' own packages publish.

The packages are fetched, not installed: only their declarations are read. Codex publishes none; see `codex_schemas`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from streams.hooks import Observed, answer, read
from streams.verdicts.model import Verdict
from tests.streams.hooks.payloads import CLAUDE_CODE, CLAUDE_CODE_SUB, GEMINI_CLI, OPENHANDS

if TYPE_CHECKING:
    from streams.hooks import Agents
    from streams.verdicts.model import Step

AT = datetime(2026, 11, 30, 10, 0, 1, tzinfo=UTC)
STEPS: tuple[Step, ...] = ("guide", "deny", "ask", "stop")
TYPESCRIPT = "typescript@5.9.3"
CLAUDE_CODE_TYPES = "@anthropic-ai/claude-agent-sdk@0.3.333"
GEMINI_CLI_TYPES = "@google/gemini-cli-core@0.61.0"
OPENHANDS_TYPES = "openhands-sdk==1.58.2"
UV = str(Path(sys.executable).parent / "uv")


def fetch(package: str, folder: Path) -> Path:
    """Fetch a package of npm, and give the directory of what is in it."""
    folder.mkdir()
    npm = shutil.which("npm")
    assert npm, "npm is needed: install Node.js"
    subprocess.run([npm, "pack", "--silent", package], cwd=folder, check=True, capture_output=True, timeout=300)
    (archive,) = folder.glob("*.tgz")
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    return folder / "package"


@pytest.fixture(scope="module")
def tsc(tmp_path_factory):
    """The TypeScript compiler."""
    return fetch(TYPESCRIPT, tmp_path_factory.mktemp("tsc") / "typescript") / "lib" / "tsc.js"


def check(tsc: Path, folder: Path, program: str) -> None:
    """Let the compiler check a program; what it says of a line is what the types say of that payload or answer."""
    (folder / "check.ts").write_text(program, "utf-8")
    flags = ["--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--target", "es2022"]
    node = shutil.which("node")
    assert node, "Node.js is needed"
    done = subprocess.run(
        [node, str(tsc), *flags, "check.ts"], cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )
    assert (done.returncode, done.stdout) == (0, "")


def lines(kind: str, values: list[Any], wrong: Any) -> list[str]:
    """Write values of one type, and one that must not be of it, so that the check can fail."""
    good = [f"({json.dumps(value)}) satisfies {kind};" for value in values]
    return [*good, f"// @ts-expect-error\n({json.dumps(wrong)}) satisfies {kind};"]


def answers(agent: Agents, payload: Any) -> list[Any]:
    """Give what we answer to a payload, for each step of a verdict."""
    seen = read(agent, json.dumps(payload).encode(), at=AT, privacy="full")
    assert isinstance(seen, Observed)
    return [answer(agent, seen, Verdict(action=step, text="Read the error first."), enforce=True) for step in STEPS]


@pytest.mark.tools
def test_claude_codes_types(tsc, tmp_path):
    """Each payload is of the type of its hook, and each answer of the type of answers, in its Agent SDK."""
    fetch(CLAUDE_CODE_TYPES, tmp_path / "sdk")
    program = ['import type * as sdk from "./sdk/package/sdk.js";']
    for hook, payload in CLAUDE_CODE.items():
        program += lines(f"sdk.{hook}HookInput", [payload], {**payload, "session_id": 1})
        program += lines("sdk.SyncHookJSONOutput", answers("claude-code", payload), {"continue": "no"})
    program += lines("sdk.PreToolUseHookInput", [CLAUDE_CODE_SUB], {**CLAUDE_CODE_SUB, "agent_id": 1})
    wrong = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "no"}}
    program += lines("sdk.SyncHookJSONOutput", [], wrong)
    check(tsc, tmp_path, "\n".join(program))


@pytest.mark.tools
def test_gemini_clis_types(tsc, tmp_path):
    """Each payload is of the type of its hook, and each answer of the type of its answers, in its core package."""
    fetch(GEMINI_CLI_TYPES, tmp_path / "core")
    program = ['import * as core from "./core/package/dist/src/hooks/types.js";']
    enumerations = {'"source": "startup"': '"source": core.SessionStartSource.Startup'}
    enumerations |= {'"reason": "exit"': '"reason": core.SessionEndReason.Exit'}
    enumerations |= {'"trigger": "auto"': '"trigger": core.PreCompressTrigger.Auto'}
    for hook, payload in GEMINI_CLI.items():
        written = lines(f"core.{hook}Input", [payload], {**payload, "session_id": 1})
        for text, member in enumerations.items():
            written = [each.replace(text, member) for each in written]
        program += written
        kind = "core.HookOutput" if hook == "SessionEnd" else f"core.{hook}Output"
        program += lines(kind, answers("gemini-cli", payload), {"systemMessage": 1})
    check(tsc, tmp_path, "\n".join(program))


@pytest.mark.tools
def test_openhands_types(tmp_path):
    """Each payload is one that the OpenHands SDK would send: read by its model, it is written the same."""
    fetching = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    only = ["--python-version", "3.12", "--only-binary", ":all:", "--dest", str(tmp_path), OPENHANDS_TYPES]
    subprocess.run([*fetching, *only], check=True, capture_output=True, timeout=300)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        (tmp_path / "types_of_hooks.py").write_bytes(opened.read("openhands/sdk/hooks/types.py"))
    program = (
        "import json, sys; from types_of_hooks import HookEvent\n"
        "for line in sys.stdin: print(HookEvent.model_validate_json(line).model_dump_json())"
    )
    done = subprocess.run(
        [UV, "run", "--quiet", "--no-project", "--with", "pydantic>=2,<3", "python", "-c", program],
        input="\n".join(json.dumps(payload) for payload in OPENHANDS.values()),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    empty = {"tool_name": None, "tool_input": None, "tool_response": None, "message": None}
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {**empty, **payload} for payload in OPENHANDS.values()
    ]
    assert {key for payload in OPENHANDS.values() for key in payload} - {"event_type"} <= set(empty) | {
        "session_id",
        "working_dir",
        "metadata",
    }
