"""Reads recorded sessions of agents, in the agents' own formats, as events of the contract.

One module per format, `detect` to find it by content, `build` for what all formats need. `read_path` is the way in.
"""

from streams.importers.build import Session
from streams.importers.files import Damaged, Skipped, Unreadable
from streams.importers.reading import read_path

__all__ = ["Damaged", "Session", "Skipped", "Unreadable", "read_path"]
