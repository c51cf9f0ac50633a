"""Follows transcripts of agents as they are written, and sends their events: for agents without hooks.

`scan` finds the files, `tail` reads one that grows, `notes` remembers on disk what was sent, `follower` ties them
together, `sinks` and `judging` are where events go. Which format a file is of is for `streams.importers` to tell.
"""

from streams.follow.follower import Follower, FollowSettings
from streams.follow.notes import Notes, NotesUnusable
from streams.follow.told import Told

__all__ = ["FollowSettings", "Follower", "Notes", "NotesUnusable", "Told"]
