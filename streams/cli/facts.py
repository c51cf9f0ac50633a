"""Options that say for whom: repository, role, kind of task and paths, as the rules of a policy ask for them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import click

from streams.policy.conditions import Facts

if TYPE_CHECKING:
    from collections.abc import Callable

    from streams.cli.options import Command


def _facts_options(tail: str) -> Callable[[Command], Command]:
    """Make a decorator that gives a command the options, as its argument `facts`.

    Args:
        tail: what the help of each ends with.
    """

    def decorate(command: Command) -> Command:
        @click.option("--repo", metavar="OWNER/NAME", help=f"The repository{tail}")
        @click.option("--role", metavar="NAME", help=f"The agent's role{tail}")
        @click.option("--task-type", metavar="NAME", help=f"The kind of task{tail}")
        @click.option(
            "--path", "task_paths", multiple=True, metavar="PATH", help=f"A path of the task{tail} Repeatable."
        )
        @functools.wraps(command)
        def with_facts(
            *, repo: str | None, role: str | None, task_type: str | None, task_paths: tuple[str, ...], **others: Any
        ) -> Any:
            return command(facts=Facts(repo or None, role or None, task_type or None, task_paths), **others)

        return with_facts

    return decorate


facts_options = _facts_options(".")
"""For whom something is asked."""

assumed_options = _facts_options(", for sessions whose recording does not say it.")
"""What is taken for true of recordings, whose formats seldom say it: for the rules of a policy."""
