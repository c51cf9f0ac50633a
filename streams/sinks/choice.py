"""Chooses which notifications one sink tells: by the policy's choice, their kind, and what it told before.

What was told is remembered in memory alone: after a restart a sink may say once too often that an incident is over, and
never once too seldom.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from schemas.outputs import Notification
    from streams.sinks.settings import SinkSettings

REMEMBERED = 1_000
"""Ids kept of what was delivered, of incidents that were told, and of those that were not."""


class Memory:
    """Identifiers seen lately, a bounded number of them."""

    def __init__(self) -> None:
        self._ids: OrderedDict[str, None] = OrderedDict()

    def __contains__(self, identifier: str) -> bool:
        return identifier in self._ids

    def add(self, identifier: str) -> None:
        """Remember one; the oldest makes room."""
        self._ids[identifier] = None
        self._ids.move_to_end(identifier)
        if len(self._ids) > REMEMBERED:
            self._ids.popitem(last=False)

    def discard(self, identifier: str) -> None:
        """Forget one."""
        self._ids.pop(identifier, None)


class Choice:
    """What one sink tells.

    Args:
        settings: the sink's.
    """

    def __init__(self, settings: SinkSettings) -> None:
        self._settings = settings
        self._delivered, self._told, self._untold = Memory(), Memory(), Memory()

    def wanted(self, notification: Notification) -> bool:
        """Tell whether the sink is to deliver it, and take note of the incident."""
        incident = notification.incident_id
        wanted = self._settings.named(notification) and self._settings.tells(notification)
        if notification.resolves:
            # Nobody wants to hear that something is over of which they never heard.
            wanted = wanted and (self._settings.always_resolves or incident not in self._untold)
        elif wanted:
            self._untold.discard(incident)
            self._told.add(incident)
        elif incident not in self._told:
            self._untold.add(incident)
        return wanted and notification.notification_id not in self._delivered

    def delivered(self, notification: Notification) -> None:
        """Take note that it was delivered: a repeated one is not wanted."""
        self._delivered.add(notification.notification_id)
