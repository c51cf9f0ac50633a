"""Reads recorded sessions of agents, in the agents' own formats, as events of the contract.

One module per format, `detect` to find it by content, `build` for what all formats need. `read_path` is the way in,
`is_read` tells what it would read.
"""

from streams.importers.build import Session
from streams.importers.files import Damaged, Skipped, Unreadable
from streams.importers.reading import is_read, read_path

__all__ = ["Damaged", "Session", "Skipped", "Unreadable", "is_read", "read_path"]
