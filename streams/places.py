"""Where the user's files of each kind lie on each platform: data, state, and what can be fetched again."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Literal

Kind = Literal["data", "state", "cache"]

_UNIX: dict[Kind, tuple[str, str]] = {
    "data": ("XDG_DATA_HOME", ".local/share"),
    "state": ("XDG_STATE_HOME", ".local/state"),
    "cache": ("XDG_CACHE_HOME", ".cache"),
}
"""For each kind the variable that names the directory, and where it is else (XDG Base Directory Specification)."""


def user_directory(kind: Kind) -> Path:
    """Give our directory among the user's files of a kind; it need not be there."""
    if sys.platform == "darwin":
        base = Path.home() / "Library" / ("Caches" if kind == "cache" else "Application Support")
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        variable, otherwise = _UNIX[kind]
        base = Path(os.environ.get(variable) or Path.home() / otherwise)
    return base / "traction"
