"""Reads recorded sessions of agents, in the agents' own formats, as events of the contract.

One module per format, `detect` to find it by content, `build` for what all formats need, `containers` for those that
are databases or archives. `read_path` is the way in, `is_read` tells what it would read.

A format that is written line by line has a `Reader` (`lines.LineReader`): it is fed one line after the other, and gives
an event as soon as the call's result is known. Reading a file is feeding its reader all lines; `Growing` feeds one that
is still written. To follow a file:

    growing = Growing(str(path))
    growing.feed(line)                # bytes of one whole line; raises NotFollowed for what cannot be followed
    events = growing.take(now)        # what is settled and was not given yet, as often as you like
    growing.faults                    # (line, reason) of what could not be read; empty it
    events = growing.close(now)       # nothing more is to come: calls without a result have none

Events have the same identifiers as `read_path` gives them, whenever they are taken. What a recording tells only after
the result of a call is missing where that was taken before: that it was one of a batch, the model in the first events.
Tokens that come too late are on the next call.
"""

from streams.importers.build import Session
from streams.importers.files import Damaged, Skipped, Unreadable
from streams.importers.growing import Growing, NotFollowed
from streams.importers.reading import is_read, read_path

__all__ = ["Damaged", "Growing", "NotFollowed", "Session", "Skipped", "Unreadable", "is_read", "read_path"]
