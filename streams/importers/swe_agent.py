"""Reads trajectories of SWE-agent (`<instance>.traj`), of the versions before and after 1.0.

One JSON document with `trajectory`, a list of steps `{action, observation, state, …}`. An action is a command line: its
first word is the tool, the rest its arguments; the windowed `edit` names no file, so that the open one is added. The
format has no error flag and no times.
"""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from streams.importers.build import Builder, Call, Session, agent_of, recording_id
from streams.importers.mend import NotJson, parse
from streams.importers.shape import as_amount, as_dict, as_list, as_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streams.importers.files import Recording

NAME = "swe-agent"

_WINDOWED_EDIT = re.compile(r"edit (\d+:\d+)[ \t]*\n(.*)", re.DOTALL)


def recognise(value: object) -> bool:
    """Tell whether a document is one of this format."""
    steps = as_list(as_dict(value).get("trajectory"))
    if not steps:
        return {"trajectory", "info"} <= as_dict(value).keys()
    return {"action", "observation"} <= as_dict(steps[0]).keys()


def read(recording: Recording, *, whole: bool) -> Iterator[Session]:
    """Read the session of a file.

    Args:
        recording: the file.
        whole: the file is one JSON document.
    """
    name = re.sub(r"\.traj(?:\.json)?(?:\.gz)?$", "", PurePath(recording.source).name)
    for _, value, text in recording.values(whole=whole):
        document = as_dict(value)
        if not recognise(document):
            continue
        builder = Builder(recording_id(name, text), agent_of(NAME))
        builder.happened("started")
        builder.happened("user_message")  # the task, in `history`
        open_before = ""
        for step in map(as_dict, as_list(document.get("trajectory"))):
            action = step.get("action")
            state = step.get("state")
            open_now = _open_file(state)
            # A state in text form was taken before the action, one in object form (from 1.0 on) after it.
            target = open_now if isinstance(state, str) else open_before
            open_before = open_now
            if not isinstance(action, str) or not action.strip():
                continue
            observation = step.get("observation")
            seconds = as_amount(step.get("execution_time"))
            tool, arguments = _command(action, target)
            builder.call(
                Call(
                    tool,
                    arguments,
                    result=observation if isinstance(observation, str) else UNSET,
                    duration_ms=None if seconds is None else seconds * 1000,
                )
            )
        exit_status = as_text(as_dict(document.get("info")).get("exit_status"))
        if exit_status:
            builder.happened("ended", reason=exit_status)
        yield builder.build(recording.source, NAME)


def _open_file(state: object) -> str:
    if isinstance(state, str):
        try:
            state = parse(state.encode("utf-8", "replace")).value
        except NotJson:
            return ""
    return as_text(as_dict(state).get("open_file")) or ""


def _command(action: str, open_file: str) -> tuple[str, dict[str, Any]]:
    edit = _WINDOWED_EDIT.fullmatch(action)
    if edit is not None:
        text = edit[2].rstrip().removesuffix("end_of_edit").removesuffix("\n")
        return "edit", {"file": open_file, "range": edit[1], "new_str": text}
    tool, _, rest = action.strip().partition(" ")
    if "\n" in tool:
        tool, _, rest = action.strip().partition("\n")
    return tool, {"action": rest.strip()}
