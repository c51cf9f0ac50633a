"""How the tests are spread over the processes of pytest-xdist: in units that stay together, the longest first.

Four processes share two cores: most tests that start processes wait half of their time. What needs none comes last,
in small units, so that all cores are busy to the end. It chooses no test and must not change what one finds.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    import pytest

HERE = Path(__file__).parent

TOGETHER = tuple(HERE / name for name in ("doors", "torture", "examples"))
"""Folders whose tests share brokers, or what they build; elsewhere each file is a unit."""

LONGEST = (
    *(HERE / name for name in ("examples", "deploy/test_faults.py", "adapters")),
    *(HERE / name for name in ("torture", "streams/test_demo.py", "doors", "integration/test_state_store.py")),
    *(HERE / name for name in ("streams/test_broker.py", "streams/escalation/test_crash.py", "bench/test_engines.py")),
    *(HERE / name for name in ("integration", "streams/escalation/test_faults.py", "docs")),
)
"""Files and folders that take longest, which begin first."""

PURE = (
    *(HERE / name for name in ("fuzz", "detectors", "recordings", "schemas")),
    *(HERE / "streams" / name for name in ("importers", "inspection", "training", "sinks/test_injection.py")),
    *HERE.glob("streams/escalation/test_ladder_*.py"),
    *(HERE / f"bench/test_{name}.py" for name in ("growth", "micro", "skew", "texts")),
    *(HERE / f"streams/worker/test_{name}.py" for name in ("apply", "engine", "keeping", "live", "records", "states")),
    *(HERE / f"streams/worker/test_{name}.py" for name in ("partition", "sweep", "sweep_order", "tasks")),
)
"""Folders and files of tests that start no process of ours and need no broker; those of the longest units first."""


def place(item: pytest.Item) -> tuple[int, int]:
    """Give what to sort tests by: the longest first, what keeps a core busy by itself last."""
    for number, path in enumerate(LONGEST):
        if item.path.is_relative_to(path):
            return 0, number
    for number, path in enumerate(PURE):
        if item.path.is_relative_to(path):
            return 2, number
    return 1, 0


class Units(LoadScopeScheduling):  # type: ignore[misc]  # published without types
    """Hands out units in the order in which their first tests come."""

    def _split_scope(self, nodeid: str) -> str:
        file = HERE.parent / nodeid.partition("::")[0]
        folder = next((folder for folder in TOGETHER if file.is_relative_to(folder)), file)
        return folder.as_posix()
