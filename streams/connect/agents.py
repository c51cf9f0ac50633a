"""Where each agent has its settings, and what is written into them: which hooks, and the command that they start.

The command never fails and says nothing on standard error, whatever becomes of the installation: some agents take
another exit code than 0 for a denial, and show what stands on standard error.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streams.privacy import Level

Connected = Literal["claude-code", "codex", "gemini-cli"]
Scope = Literal["user", "project"]
Mode = Literal["observe", "enforce"]

COMMAND: Final = "traction-hook"
_SECONDS: Final = 5
"""How long an agent waits for the command, which gives up by itself much sooner: for a machine that hardly moves."""

_OURS: Final = re.compile(rf"(?:^|[\s/\\'\"]){re.escape(COMMAND)}['\"]?\s")


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent whose settings can be written.

    Attributes:
        name: as the hooks call it.
        title: as people call it.
        folder: name of its directory, in the user's home and in a project.
        variable: environment variable that names another directory than the user's.
        variable_is_home: that variable names what the directory is in.
        file: the settings file in it.
        comments: whether comments may stand in it.
        observing: hooks that tell what happens.
        enforcing: hooks whose answers are needed besides.
        timeout: how long the agent is to wait, in its own unit.
        after: what a person has to do besides.
        off: where its settings switch hooks off: path in the settings file, and the value that does.
    """

    name: Connected
    title: str
    folder: str
    variable: str
    variable_is_home: bool
    file: str
    comments: bool
    observing: tuple[str, ...]
    enforcing: tuple[str, ...]
    timeout: int
    after: str
    off: tuple[tuple[str, ...], bool]

    def path(self, scope: Scope, environ: Mapping[str, str], project: Path) -> Path:
        """Say where its settings are.

        Args:
            scope: of the user, or of a project.
            environ: the environment.
            project: the project's directory.
        """
        if scope == "project":
            return project / self.folder / self.file
        named = environ.get(self.variable)
        if named and not self.variable_is_home:
            return Path(named).expanduser() / self.file
        home = Path(named).expanduser() if named else Path.home()
        return home / self.folder / self.file

    def events(self, mode: Mode) -> tuple[str, ...]:
        """Name the hooks that a mode needs."""
        return (*self.enforcing, *self.observing) if mode == "enforce" else self.observing

    def group(self, command: str) -> dict[str, Any]:
        """Give the entry for one hook; without a matcher, which all agents take for every tool."""
        handler: dict[str, Any] = {"type": "command", "command": command, "timeout": self.timeout}
        return {"hooks": [{"name": COMMAND, **handler} if self.name == "gemini-cli" else handler]}


AGENTS: Final[dict[Connected, Agent]] = {
    "claude-code": Agent(
        name="claude-code",
        title="Claude Code",
        folder=".claude",
        variable="CLAUDE_CONFIG_DIR",
        variable_is_home=False,
        file="settings.json",
        comments=False,
        observing=(
            *("PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "SessionStart", "SessionEnd"),
            *("SubagentStart", "SubagentStop"),
        ),
        enforcing=("PreToolUse",),
        timeout=_SECONDS,
        after="Sessions that run already take it up when they are started anew.",
        off=(("disableAllHooks",), True),
    ),
    "codex": Agent(
        name="codex",
        title="Codex",
        folder=".codex",
        variable="CODEX_HOME",
        variable_is_home=False,
        file="hooks.json",
        comments=False,
        observing=("PostToolUse", "UserPromptSubmit", "SessionStart", "SubagentStart", "SubagentStop"),
        enforcing=("PreToolUse",),
        timeout=_SECONDS,
        after="Codex starts hooks only once you trust them: start it, and say /hooks.",
        off=(("features", "hooks"), False),
    ),
    "gemini-cli": Agent(
        name="gemini-cli",
        title="Gemini CLI",
        folder=".gemini",
        variable="GEMINI_CLI_HOME",
        variable_is_home=True,
        file="settings.json",
        comments=True,
        observing=("AfterTool", "BeforeAgent", "SessionStart", "SessionEnd", "PreCompress"),
        enforcing=("BeforeTool",),
        timeout=_SECONDS * 1_000,
        after="Sessions that run already take it up when they are started anew.",
        off=(("hooksConfig", "enabled"), False),
    ),
}
"""By name."""


def hook_command(
    agent: Connected, script: str, *, mode: Mode, privacy: Level, gateway: str | None, token_file: str | None
) -> str:
    """Write the command line for a shell.

    Args:
        agent: whose hooks start it.
        script: `traction-hook`, or where it is.
        mode: whether the agent is told what was decided.
        privacy: how much of a call's content goes on.
        gateway: URL of the gateway; None for what the environment says.
        token_file: file with its token; None for what the environment says.
    """
    words = [script, agent, f"--{mode}", "--privacy", privacy]
    if gateway is not None:
        words += ["--gateway", gateway]
    if token_file is not None:
        words += ["--token-file", token_file]
    return f"{shlex.join(words)} 2>/dev/null || true"


def is_ours(handler: object) -> bool:
    """Tell whether a handler in an agent's settings is one that we wrote, whatever its flags."""
    command = handler.get("command") if isinstance(handler, dict) else None
    return isinstance(command, str) and _OURS.search(command) is not None
