"""Who acts and for which task, as far as it is remembered: names cut, and the first paths of a task.

It decides nothing. Rules of a policy go by what is remembered, so that they hold for all events of a session alike.
"""

from typing import TypeVar

import msgspec

from detectors.excerpt import cut
from schemas.common import Agent, Task

MAX_TASK_PATHS = 6  # of a task's paths; what rules of a policy go by, too
NAME_BYTES = 96  # of the names that say who acts, for which task

_Who = TypeVar("_Who", Agent, Task)


def fitting_agent(agent: Agent) -> Agent:
    """Return an agent with its names cut to what the state has room for."""
    return _cut(agent)


def fitting_task(task: Task, known: Task | None) -> Task:
    """Return a task cut likewise, but for its id, which is a key and stays whole.

    One that does not say which it is is the one that is ``known``; and what is not said of that one stays as it was,
    so that an event that only names its task takes it out of no rule.
    """
    paths = tuple(cut(path, NAME_BYTES) for path in task.paths[:MAX_TASK_PATHS])
    said = msgspec.structs.replace(_cut(task), id=task.id, paths=paths)
    if known is None or task.id not in {None, known.id}:
        return said
    kept = {name: value for name, value in msgspec.structs.asdict(said).items() if value not in {None, ()}}
    return msgspec.structs.replace(known, **kept)


def _cut(who: _Who) -> _Who:
    names = msgspec.structs.asdict(who).items()
    return msgspec.structs.replace(who, **{key: cut(name, NAME_BYTES) for key, name in names if isinstance(name, str)})
