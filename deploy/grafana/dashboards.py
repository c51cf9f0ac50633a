"""Makes Grafana's dashboards from code, as the classic JSON that Grafana 9 to 13 read.

`python deploy/generate.py` writes the files, `--check` tells whether the committed ones are what the code says. They
are read-only in Grafana: change them here.
"""

from __future__ import annotations

import json
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from deploy.grafana import escalations, fleet, pipeline, quality, saved

FOLDER = Path(__file__).resolve().parent

BOARDS = (fleet, quality, pipeline, escalations, saved)
"""The dashboards, each in a module of its own."""

SCHEMA = 39
"""Version of the classic form, that of Grafana 11. Newer ones bring it up to date, older ones read what they know."""


def files() -> dict[Path, str]:
    """Give each dashboard's file with its text."""
    made = {}
    for each in BOARDS:
        board = json.loads(JSONEncoder().encode(each.made()))
        # Grafana gives ids itself: a number from elsewhere would be that of another dashboard.
        board |= {"id": None, "schemaVersion": SCHEMA}
        made[FOLDER / f"{each.UID}.json"] = (
            json.dumps(_shown(board), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        )
    return made


def _shown(value: object) -> object:
    """Leave out where links stand: the library has them in a menu, where nobody finds them, and cannot do otherwise."""
    if isinstance(value, dict):
        return {
            name: _shown(inner) for name, inner in value.items() if name != "placement" or inner != "inControlsMenu"
        }
    if isinstance(value, list):
        return [_shown(each) for each in value]
    return value
