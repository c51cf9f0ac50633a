"""Tells the person at an agent that the gateway refuses what its hooks send, as with a wrong token: nobody else would.

The agent itself goes on as before. It is said once an hour at most, since hooks are called all the time.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from streams.hook_command import Options
    from streams.spool import Spool

QUIET_S = 3_600.0
"""How long it is not said again."""

_SHOWING = ("claude-code", "codex", "gemini-cli")
"""Agents that show their user the field `systemMessage` of a hook's answer, and do not give it to the model."""


def words(url: str) -> str:
    """Say what is wrong and what to do.

    Args:
        url: of the gateway.
    """
    return (
        f"Traction: the gateway at {url} refuses what this agent's hooks send (401 or 403). Give them its token: "
        "TRACTION_GATEWAY_TOKEN, or the file that TRACTION_GATEWAY_TOKEN_FILE or --token-file names. Until then "
        "nothing is watched; it is kept, and `traction-hook --flush` sends it and says what is wrong."
    )


def tell(options: Options, kept: Spool) -> None:
    """Say it where the agent's user sees it, unless that was done lately.

    Args:
        options: whose hook it is.
        kept: where the time is remembered.
    """
    try:
        if options.agent not in _SHOWING or not kept.mark("barred", QUIET_S, time.time()):
            return
    except OSError:
        return  # it would be said at each call
    import json  # noqa: PLC0415 - once an hour

    os.write(1, json.dumps({"systemMessage": words(options.gateway)}).encode())
