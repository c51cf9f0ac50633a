"""What the audience sees: one line for every call, marked ones for what Traction says and does, a table at the end.

Lines are only ever added, and say in words what colours repeat, so that a pipe or a log shows as much as a terminal.
"""

from __future__ import annotations

import os
import shutil
import textwrap
import time
from typing import TYPE_CHECKING

import click

from streams.timeline import COLOURS, plain

if TYPE_CHECKING:
    from schemas.events import ToolCall
    from schemas.outputs import Alert, Directive, Termination
    from streams.demo.cast import Part
    from streams.demo.story import Account

_NAME_CHARS = 14
_CALL_CHARS = 64
_TEXT_CHARS = 330
_INDENT = " " * 30
_WIDTHS = (80, 120)
"""Narrowest and widest that lines are written; between them the terminal decides."""


class Screen:
    """Writes lines, each with the seconds since the beginning."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._colour = False if os.environ.get("NO_COLOR") else None
        self._width = min(max(shutil.get_terminal_size((100, 24)).columns, _WIDTHS[0]), _WIDTHS[1])

    def say(self, text: str = "") -> None:
        """Write a line as it is."""
        click.echo(text, color=self._colour)

    def step(self, what: str, text: str) -> None:
        """Write what the demo itself does."""
        self.say(f"{self._clock()}  {click.style(f'{what:<{_NAME_CHARS}}', bold=True)}  {text}")

    def call(self, name: str, position: int, call: ToolCall) -> None:
        """Write a call that an agent makes."""
        given = call.arguments if isinstance(call.arguments, dict) else {}
        shown = plain(str(next(iter(given.values()), "")), _CALL_CHARS)
        failed = "" if call.status != "error" else "  -> fails"
        self.say(
            click.style(f"{self._clock()}  {name:<{_NAME_CHARS}}  #{position:<3} {call.tool} {shown}{failed}", dim=True)
        )

    def alert(self, alert: Alert) -> None:
        """Write an alert."""
        level = click.style(f"{alert.level.upper()}", fg=COLOURS[alert.level], bold=True)
        name = click.style(f"{alert.session_id:<{_NAME_CHARS}}", bold=True)
        place = f"{'call' if alert.scope == 'session' else 'attempt'} #{alert.seq}"
        self.say(f"{self._clock()}  {name}  >>> {level} at {place}, detector `{alert.detector}`:")
        self._wrapped(alert.reasoning)

    def directive(self, directive: Directive) -> None:
        """Write what the orchestrator is asked to do."""
        self._consequence(directive.session_id, f"directive `{directive.action}`, for the agent to read:")
        self._wrapped(directive.text)

    def termination(self, termination: Termination) -> None:
        """Write the verdict."""
        self._consequence(termination.session_id, "termination published, with a report for a person:")
        self._wrapped(f"{termination.report.title}. {termination.report.look_at}")

    def obeyed(self, name: str, position: int, calls: int) -> None:
        """Write that the orchestrator has stopped a session."""
        self._consequence(name, f"its orchestrator stops it: {calls - position} of {calls} calls are not made")

    def _consequence(self, name: str, what: str) -> None:
        head = click.style(f"{name:<{_NAME_CHARS}}", bold=True)
        self.say(f"{self._clock()}  {head}  ==> {what}")

    def _wrapped(self, text: str) -> None:
        lines = textwrap.wrap(plain(text, _TEXT_CHARS), self._width - len(_INDENT), break_on_hyphens=False)
        for line in lines:
            self.say(f"{_INDENT}{line}")

    def cast(self, parts: list[Part]) -> None:
        """Introduce the sessions."""
        self.say()
        for part in parts:
            self.say(f"  {part.role.name:<{_NAME_CHARS}} {part.role.story:<45} expected: {part.role.expected}")
        self.say()
        self.say("  #7 is an agent's call, >>> is what Traction notices, ==> is what is done about it")
        self.say()

    def table(self, parts: list[Part], account: Account) -> None:
        """Write what became of every session."""
        self.say()
        self.say(f"  {'session':<{_NAME_CHARS}} {'calls':>9}  {'expected':<24} {'what happened':<42} verdict")
        for part in parts:
            name = part.role.name
            right = account.as_expected(part.role)
            verdict = click.style("as expected" if right else "NOT as expected", fg="green" if right else "red")
            made = f"{account.made[name]}/{part.calls}"
            self.say(f"  {name:<{_NAME_CHARS}} {made:>9}  {part.role.expected:<24} {account.words(name):<42} {verdict}")
        self.say()

    def _clock(self) -> str:
        return f"{time.monotonic() - self._start:6.1f} s"
